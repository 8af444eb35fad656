# What find_package(gpushmem) reads. Needs the language C or CXX.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/gpushmem-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/GpushmemPrograms.cmake)
# OpenSHMEM programs: the functions of <shmem.h> are in line.
if(NOT TARGET gpushmem::shmem)
  add_library(gpushmem::shmem INTERFACE IMPORTED)
  get_target_property(GPUSHMEM_INCLUDE_DIRECTORY gpushmem::gpushmem_device INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(gpushmem::shmem INTERFACE ${GPUSHMEM_INCLUDE_DIRECTORY}/gpushmem/compat)
  target_link_libraries(gpushmem::shmem INTERFACE gpushmem::gpushmem)
  unset(GPUSHMEM_INCLUDE_DIRECTORY)
endif()
