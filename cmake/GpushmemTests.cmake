# Tests on real verbs devices, in the Soft-RoCE guest (tests/softroce/README.md).

# gpushmem_add_softroce_test(NAME name COMMAND command... [RAILS n] [TIMEOUT seconds] [LABELS label...]
#                            [OPTIONS guest.sh option...])
# Runs the command, whose first word may be a target, in the guest: two rxe devices, or four with RAILS 2. A boot costs
# about 4 s, so let the command be a script where several short things are to be run. Always has the label softroce.
function(gpushmem_add_softroce_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;RAILS;TIMEOUT" "COMMAND;LABELS;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_COMMAND)
    message(FATAL_ERROR "gpushmem_add_softroce_test: wants NAME and COMMAND, does not know '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_RAILS)
    set(arg_RAILS 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${arg_NAME}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/softroce/guest.sh --rails ${arg_RAILS} --timeout ${arg_TIMEOUT} ${arg_OPTIONS}
            -- ${program} ${arg_COMMAND})
  list(PREPEND arg_LABELS softroce)
  math(EXPR limit "${arg_TIMEOUT} + 200")
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${limit}
    RESOURCE_LOCK softroce FIXTURES_REQUIRED softroce_kernel)
endfunction()

# Tests on the software HCA (tests/softhca/README.md): verbs devices without hardware or guest, in host memory.

# gpushmem_add_softhca_test(NAME name COMMAND command... [DEVICES n] [TIMEOUT seconds] [LABELS label...]
#                           [ENVIRONMENT NAME=value...])
# Runs the command, whose first word may be a target, with the software HCA in the place of libibverbs and with verbs as
# the only transport. Always has the label softhca. Several may run at once: each has devices of its own.
function(gpushmem_add_softhca_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;DEVICES;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_COMMAND)
    message(FATAL_ERROR "gpushmem_add_softhca_test: wants NAME and COMMAND, does not know '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_DEVICES)
    set(arg_DEVICES 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  list(PREPEND arg_LABELS softhca)
  # A sanitizer's runtime wants to come first in the process; it may come second here, since this library needs none.
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:gpushmem_softhca>;GPUSHMEM_TRANSPORTS=verbs;ASAN_OPTIONS=verify_asan_link_order=0;GPUSHMEM_SOFTHCA_DIR=/dev/shm/gpushmem-${arg_NAME};GPUSHMEM_SOFTHCA_DEVICES=${arg_DEVICES};${arg_ENVIRONMENT}")
endfunction()

# Tests on GPUs that are none: the CUDA driver of tests/fakes/cuda, where the library finds the real one.

# gpushmem_add_fake_gpu_test(NAME name COMMAND command... [TIMEOUT seconds] [LABELS label...] [ENVIRONMENT NAME=value...])
# Runs the command, whose first word may be a target, with a heap in fake GPU memory. Misuse of the driver, and what is not
# released at exit, fail the test. Always has the label fakegpu.
function(gpushmem_add_fake_gpu_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_COMMAND)
    message(FATAL_ERROR "gpushmem_add_fake_gpu_test: wants NAME and COMMAND, does not know '${arg_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  list(PREPEND arg_LABELS fakegpu)
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    FAIL_REGULAR_EXPRESSION "fake cuda: "
    ENVIRONMENT "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_cuda_new>;GPUSHMEM_HEAP_KIND=device;GPUSHMEM_HEAP_SIZE=16M;${arg_ENVIRONMENT}")
endfunction()
