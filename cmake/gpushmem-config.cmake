# What find_package(gpushmem) reads. Needs the language C or CXX.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/gpushmem-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/GpushmemPrograms.cmake)
