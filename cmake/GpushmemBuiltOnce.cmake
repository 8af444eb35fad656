# What the programs with kernels of this build, on CPU threads, need not compile each: the longest functions of the emulation
# and, where there are tests, the device headers. Reasons and measurements: docs/design/building.md.

# gpushmem_built_once(TARGET source...): links the one and takes the other. Sources that set macros for the device headers
# compile these headers themselves, and with GPUSHMEM_DEVICE_CHECKS all of it. One that does so by way of another header, or
# has compile options of its own, wants SKIP_PRECOMPILE_HEADERS: the compiler says so otherwise.
function(gpushmem_built_once target)
  foreach(source ${ARGN})
    file(STRINGS ${source} macros REGEX "^#define GPUSHMEM_")
    if(macros MATCHES "GPUSHMEM_DEVICE_CHECKS")
      return()
    elseif(macros OR source MATCHES "\\.c$")
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE gpushmem_emu_operations)
  if(GPUSHMEM_TESTS)
    target_precompile_headers(${target} REUSE_FROM gpushmem_kernel_headers)
  endif()
endfunction()
