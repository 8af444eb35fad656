# cmake --install: headers, library, CMake package and pkg-config file. The programs and the device headers are installed where
# they are built.
include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/gpushmem DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS gpushmem gpushmem_device EXPORT gpushmem-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT gpushmem_development)

# find_package(gpushmem) gives gpushmem::gpushmem (host) and gpushmem::gpushmem_device (headers for kernels).
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gpushmem)
install(EXPORT gpushmem-targets FILE gpushmem-config.cmake NAMESPACE gpushmem:: DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpushmem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpushmem-config-version.cmake DESTINATION ${package})

file(RELATIVE_PATH GPUSHMEM_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_CURRENT_LIST_DIR}/gpushmem.pc.in ${PROJECT_BINARY_DIR}/gpushmem.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpushmem.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
