# cmake --install: library, headers, CMake package and pkg-config file first, then the programs, as far as they were built.
# Parts of it: cmake --install BUILD --component gpushmem (the library), gpushmem_development, gpushmem_programs,
# gpushmem_shmem (libshmem, oshcc, oshrun), gpushmem_nvshmem.
include(CMakePackageConfigHelpers)

if(SKBUILD)
  # Wheels have no links (pyproject.toml): each library is one file, and a linker script has the name that -l looks for.
  set(namelink NAMELINK_SKIP)
  foreach(target gpushmem gpushmem_shmem)
    set_target_properties(${target} PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
    get_target_property(name ${target} OUTPUT_NAME)
    string(REPLACE "name-NOTFOUND" "${target}" name ${name})
    file(WRITE ${PROJECT_BINARY_DIR}/lib${name}.so "INPUT(lib${name}.so.${PROJECT_VERSION_MAJOR})\n")
    install(FILES ${PROJECT_BINARY_DIR}/lib${name}.so DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT gpushmem_development)
  endforeach()
else()
  set(namelink NAMELINK_COMPONENT gpushmem_development)
endif()
install(TARGETS gpushmem gpushmem_device EXPORT gpushmem-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT gpushmem ${namelink})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gpushmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT gpushmem_development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/device/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gpushmem/device
  COMPONENT gpushmem_development FILES_MATCHING PATTERN *.cuh PATTERN *.hpp)

# find_package(gpushmem) gives gpushmem::gpushmem (host), gpushmem::gpushmem_device (kernels, and all that they need),
# gpushmem::shmem (OpenSHMEM programs) and gpushmem_add_kernel_program.
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gpushmem)
install(EXPORT gpushmem-targets NAMESPACE gpushmem:: DESTINATION ${package} COMPONENT gpushmem_development)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpushmem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpushmem-config-version.cmake ${CMAKE_CURRENT_LIST_DIR}/gpushmem-config.cmake
              ${CMAKE_CURRENT_LIST_DIR}/GpushmemPrograms.cmake
  DESTINATION ${package} COMPONENT gpushmem_development)

file(RELATIVE_PATH GPUSHMEM_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/gpushmem.pc.in ${PROJECT_BINARY_DIR}/gpushmem.pc @ONLY)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/modulefile DESTINATION ${CMAKE_INSTALL_DATADIR}/modulefiles/gpushmem
  RENAME ${PROJECT_VERSION} COMPONENT gpushmem_programs)
install(FILES ${PROJECT_BINARY_DIR}/gpushmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT gpushmem_development)
