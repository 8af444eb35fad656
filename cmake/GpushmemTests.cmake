# The room of a test is the folder of tests/ that registers it; a transport's own tests belong to network, those of examples/
# to house. Every test has its room as a label.
function(gpushmem_room_of_test room)
  file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(path MATCHES "^tests/([^/]+)")
    set(${room} ${CMAKE_MATCH_1} PARENT_SCOPE)
  elseif(path MATCHES "^transports/")
    set(${room} network PARENT_SCOPE)
  else()
    set(${room} house PARENT_SCOPE)
  endif()
endfunction()

# Keeps, for each label, the targets that words of a command or an environment name. What is labelled guest or dev runs in
# dev alone, which builds everything: it adds nothing.
function(gpushmem_need_for_test room labels)
  if(labels MATCHES "guest|dev")
    return()
  endif()
  foreach(word ${ARGN})
    string(REGEX MATCHALL "TARGET_FILE(_DIR)?:[^>]+" named "${word}")
    list(TRANSFORM named REPLACE "^[^:]+:" "")
    list(APPEND words ${named})
  endforeach()
  list(GET ARGN 0 program)
  foreach(label ${room} ${labels})
    set_property(GLOBAL APPEND PROPERTY GPUSHMEM_NEEDED_BY_${label} ${program} ${words})
  endforeach()
endfunction()

# For each label L a target tests_L: what its tests need, and no more. tests/run.sh builds these in all presets but dev.
function(gpushmem_add_test_targets)
  foreach(label ${ARGN})
    add_custom_target(tests_${label})
    get_property(words GLOBAL PROPERTY GPUSHMEM_NEEDED_BY_${label})
    list(REMOVE_DUPLICATES words)
    foreach(word ${words})
      if(TARGET ${word})
        add_dependencies(tests_${label} ${word})
      endif()
    endforeach()
  endforeach()
endfunction()

# gpushmem_add_test(NAME name COMMAND command... [LABELS label...] [TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#                   [PROPERTIES name value...] [UNDER program])
# What every test of the project is registered with. The first word of the command may be a target; UNDER gets the command as its
# arguments, whose first word is a path or a target then. The time limit, 120 s if none is given, is against hangs only. Jobs of
# `gpushmem run` end themselves shortly before, saying what each PE waits for.
# LABELS are for what tests/run.sh cannot tell by the room: asan, tsan, nocuda (run in that preset, too), guest (needs the
# Soft-RoCE guest), dev (runs in no other preset, and not with --quick), long (runs with --long only). No test reads the settings
# files of whoever runs it.
function(gpushmem_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT;UNDER" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_COMMAND)
    message(FATAL_ERROR "gpushmem_add_test: wants NAME and COMMAND, does not know '${arg_UNPARSED_ARGUMENTS}' (${arg_NAME})")
  endif()
  foreach(label ${arg_LABELS})
    if(NOT label MATCHES "^(asan|tsan|nocuda|guest|dev|long)$")
      message(FATAL_ERROR "gpushmem_add_test: ${arg_NAME} has the label '${label}'. Its folder of tests/ is its label; LABELS may "
                          "add asan, tsan, nocuda, guest, dev or long (docs/testing.md)")
    endif()
  endforeach()
  gpushmem_room_of_test(room)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  list(SUBLIST arg_COMMAND 0 2 start)
  if(start STREQUAL "gpushmem_cli;run")
    math(EXPR limit "${arg_TIMEOUT} * 5 / 6")
    list(INSERT arg_COMMAND 2 --timeout ${limit})
    # libpmix has hwloc look at the PCI devices, which reads all names that there are: 1.2 s of each job under AddressSanitizer.
    if(GPUSHMEM_SANITIZE)
      list(APPEND arg_ENVIRONMENT HWLOC_COMPONENTS=-pci)
    endif()
  endif()
  if(arg_UNDER)
    list(POP_FRONT arg_COMMAND program)
    if(NOT program MATCHES "[/<]")
      set(program $<TARGET_FILE:${program}>)
    endif()
    list(PREPEND arg_COMMAND ${arg_UNDER} ${program})
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND})
  gpushmem_need_for_test("${room}" "${arg_LABELS}" ${arg_COMMAND} ${arg_ENVIRONMENT})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${room};${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "GPUSHMEM_SETTINGS_FILE=none;${arg_ENVIRONMENT}" ${arg_PROPERTIES})
endfunction()

# Tests on real verbs devices, in the Soft-RoCE guest (tests/network/softroce/README.md).

# gpushmem_add_softroce_test(NAME name COMMAND command... [RAILS n] [TIMEOUT seconds] [LABELS label...]
#                            [ENVIRONMENT NAME=value...] [PROPERTIES name value...] [OPTIONS guest.sh option...])
# Runs the command, whose first word may be a target, in the guest: two rxe devices, or four with RAILS 2. A boot costs
# about 4 s, so let the command be a script where several short things are to be run. Always has the label guest. Soft-RoCE
# takes 7 retries, which are the default, as for ever: a dead peer would never be found. They run one after another, for ten
# minutes in all: so they begin before all other tests, which run beside them (COST).
function(gpushmem_add_softroce_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;RAILS;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES;OPTIONS")
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
  math(EXPR limit "${arg_TIMEOUT} + 200")
  gpushmem_add_test(${arg_UNPARSED_ARGUMENTS} NAME ${arg_NAME} LABELS guest ${arg_LABELS} TIMEOUT ${limit}
    ENVIRONMENT GPUSHMEM_VERBS_TIMEOUT=14 GPUSHMEM_TEST_VERBS_RETRY_COUNT=6 ${arg_ENVIRONMENT}
    COMMAND ${PROJECT_SOURCE_DIR}/tests/network/softroce/guest.sh --rails ${arg_RAILS} --timeout ${arg_TIMEOUT} ${arg_OPTIONS}
            -- ${program} ${arg_COMMAND}
    PROPERTIES RESOURCE_LOCK softroce FIXTURES_REQUIRED softroce_kernel COST ${limit} ${arg_PROPERTIES})
endfunction()

# Settings under which the library finds the CUDA driver of tests/fakes/cuda where it looks for the real one, and has its heap
# in that one's memory. Misuse of the driver, and what is not released at exit, fail the test.
set(GPUSHMEM_FAKE_GPU "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:fake_cuda_new>" GPUSHMEM_HEAP_KIND=device GPUSHMEM_HEAP_SIZE=16M)
set(GPUSHMEM_FAKE_GPU_FAILS FAIL_REGULAR_EXPRESSION "fake cuda: ")

# Tests on the software HCA (tests/network/softhca/README.md): verbs devices without hardware or guest.

# gpushmem_add_softhca_test(NAME name COMMAND command... [GPU] [MLX5] [DEVICES n] [LABELS label...] [TIMEOUT seconds]
#                           [ENVIRONMENT NAME=value...] [PROPERTIES name value...])
# Runs the command with the software HCA in the place of libibverbs and with verbs as the only transport. With GPU
# the heap is in fake GPU memory; with MLX5 kernels may take the devices' queues, whose misuse fails the test, as do queues
# elsewhere than in GPU memory where the heap is there. Several may run
# at once, of several builds too: each has devices of its own, in a folder that goes with it.
string(MD5 GPUSHMEM_BUILD_ID "${PROJECT_BINARY_DIR}")
string(SUBSTRING "${GPUSHMEM_BUILD_ID}" 0 8 GPUSHMEM_BUILD_ID)
function(gpushmem_add_softhca_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "GPU;MLX5" "NAME;DEVICES;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  if(NOT arg_DEVICES)
    set(arg_DEVICES 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(arg_GPU)
    list(PREPEND arg_ENVIRONMENT ${GPUSHMEM_FAKE_GPU})
    list(PREPEND arg_PROPERTIES ${GPUSHMEM_FAKE_GPU_FAILS})
  endif()
  set(preload $<TARGET_FILE:gpushmem_softhca>)
  if(arg_MLX5)
    string(APPEND preload ":$<TARGET_FILE:fake_mlx5>")
    list(PREPEND arg_ENVIRONMENT GPUSHMEM_SOFTHCA_MLX5=1)
    set(bad "fake cuda: |softhca: misuse|DEVICE_POST=nic, but|no kernel asked")
    if(arg_GPU)
      string(APPEND bad "|queues of kernels are in host memory")
    endif()
    list(APPEND arg_PROPERTIES FAIL_REGULAR_EXPRESSION "${bad}")
  endif()
  # A sanitizer's runtime wants to come first in the process; it may come second here, since this library needs none.
  gpushmem_add_test(${arg_UNPARSED_ARGUMENTS} NAME ${arg_NAME} COMMAND ${arg_COMMAND} TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} PROPERTIES ${arg_PROPERTIES} UNDER ${PROJECT_SOURCE_DIR}/tests/network/softhca/swept.sh
    ENVIRONMENT LD_PRELOAD=${preload} GPUSHMEM_TRANSPORTS=verbs ASAN_OPTIONS=verify_asan_link_order=0
                GPUSHMEM_SOFTHCA_DIR=/dev/shm/gpushmem-${GPUSHMEM_BUILD_ID}-${arg_NAME} GPUSHMEM_SOFTHCA_DEVICES=${arg_DEVICES}
                ${arg_ENVIRONMENT})
endfunction()

# gpushmem_add_nic_test(NAME name ...): the same with MLX5, by kernels that post to the devices' queues themselves. A test of
# which none does fails, by a line of level info.
function(gpushmem_add_nic_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "ENVIRONMENT")
  gpushmem_add_softhca_test(${arg_UNPARSED_ARGUMENTS} MLX5
    ENVIRONMENT GPUSHMEM_DEVICE_POST=nic GPUSHMEM_P2P=0 GPUSHMEM_LOG_LEVEL=info ${arg_ENVIRONMENT})
endfunction()

# gpushmem_add_ofi_test(NAME name COMMAND command... [LABELS label...] [TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#                       [PROPERTIES name value...])
# Runs the command with ofi as the only transport, over TCP on the loopback device. Without libfabric there is no such test.
function(gpushmem_add_ofi_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  if(NOT LIBFABRIC_FOUND)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  gpushmem_add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND} TIMEOUT ${arg_TIMEOUT} LABELS ${arg_LABELS}
    PROPERTIES ${arg_PROPERTIES}
    ENVIRONMENT GPUSHMEM_TRANSPORTS=ofi GPUSHMEM_OFI_PROVIDER=tcp GPUSHMEM_OFI_DOMAIN=lo ${arg_ENVIRONMENT})
endfunction()

# gpushmem_add_fake_gpu_test(NAME name COMMAND command... [LABELS label...] [TIMEOUT seconds] [ENVIRONMENT NAME=value...]
#                            [PROPERTIES name value...])
# Runs the command with a heap in fake GPU memory.
function(gpushmem_add_fake_gpu_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "COMMAND;LABELS;ENVIRONMENT;PROPERTIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  gpushmem_add_test(${arg_UNPARSED_ARGUMENTS} NAME ${arg_NAME} COMMAND ${arg_COMMAND} TIMEOUT ${arg_TIMEOUT}
    LABELS ${arg_LABELS} PROPERTIES ${GPUSHMEM_FAKE_GPU_FAILS} ${arg_PROPERTIES}
    ENVIRONMENT ${GPUSHMEM_FAKE_GPU} ${arg_ENVIRONMENT})
endfunction()
