# cmake --install: headers, library, program, CMake package, pkg-config file.
