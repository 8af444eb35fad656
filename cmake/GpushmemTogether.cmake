# Where no GPU will run them, programs for GPUs need not exist: what tells whether nvcc takes their sources is one file that
# includes many of them, each within a namespace of its own. nvcc takes 6 s for every file before it has seen any code
# (docs/design/building.md). tests/run.sh sets the option; the programs can be built by name all the same.
option(GPUSHMEM_CUDA_TOGETHER "Compile the sources of GPU programs together, and leave the programs out of 'all'" OFF)

# gpushmem_together(PROGRAM source...): what gpushmem_add_cuda_program calls. Leaves the program out, and takes its sources.
function(gpushmem_together program)
  if(NOT GPUSHMEM_CUDA_TOGETHER)
    return()
  endif()
  set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL ON)
  list(FILTER ARGN INCLUDE REGEX "\\.cu$")
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY GPUSHMEM_TOGETHER ${ARGN})
endfunction()

# gpushmem_compile_together(NAME REGEX first...): a library, compiled and no more, of the sources taken that match. What comes
# first: what the sources #define for the device headers, and all headers that they include, so that none is within a namespace.
function(gpushmem_compile_together name regex)
  get_property(sources GLOBAL PROPERTY GPUSHMEM_TOGETHER)
  set(left ${sources})
  list(REMOVE_DUPLICATES sources) # of programs that are made of the same ones with other options
  list(FILTER sources INCLUDE REGEX ${regex})
  list(FILTER left EXCLUDE REGEX ${regex})
  set_property(GLOBAL PROPERTY GPUSHMEM_TOGETHER "${left}")
  list(TRANSFORM ARGN REPLACE "^<.*>$" "#include \\0")
  list(TRANSFORM ARGN REPLACE "^[a-z].*$" "#include \"\\0\"")
  list(JOIN ARGN "\n" text)
  foreach(source ${sources})
    file(RELATIVE_PATH namespace ${PROJECT_SOURCE_DIR} ${source})
    string(MAKE_C_IDENTIFIER ${namespace} namespace)
    string(APPEND text "\nnamespace ${namespace} {\n#include \"${source}\"\n}")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/together/${name}.cu @ONLY CONTENT "${text}\n")
  add_library(compile_together_${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/together/${name}.cu)
  target_compile_definitions(compile_together_${name} PRIVATE GPUSHMEM_DEVICE_NIC=1) # all that there is
  target_include_directories(compile_together_${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/runtime
    ${PROJECT_BINARY_DIR}/runtime ${PROJECT_SOURCE_DIR}/include/gpushmem/compat)
  target_link_libraries(compile_together_${name} PRIVATE gpushmem_device_headers)
endfunction()
