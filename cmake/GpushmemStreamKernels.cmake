# The kernels of stream operations and collectives: compiled for the architectures of CMAKE_CUDA_ARCHITECTURES, and as PTX for
# all others, into a fatbin for each file that becomes bytes of the library.
set(code)
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  if(architecture MATCHES "^([0-9]+[af]?)-virtual$")
    list(APPEND code -gencode=arch=compute_${CMAKE_MATCH_1},code=compute_${CMAKE_MATCH_1})
  elseif(architecture MATCHES "^([0-9]+[af]?)(-real)?$")
    list(APPEND code -gencode=arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
  elseif(architecture MATCHES "^(native|all|all-major)$")
    list(APPEND code -arch=${architecture})
  endif()
endforeach()
if(NOT CMAKE_CUDA_ARCHITECTURES MATCHES "native|all") # nvcc's -arch=... stands alone
  list(APPEND code -gencode=arch=compute_75,code=compute_75)
endif()
list(REMOVE_DUPLICATES code)
separate_arguments(flags UNIX_COMMAND "-O3 ${CMAKE_CUDA_FLAGS}")
set(images)
set(definitions)
foreach(name stream coll)
  set(kernels ${CMAKE_CURRENT_SOURCE_DIR}/stream/${name}_kernels.cu)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}_kernels.fatbin)
  string(TOUPPER ${name} upper)
  list(APPEND images ${image})
  list(APPEND definitions "GPSH_${upper}_IMAGE=\"${image}\"")
  add_custom_command(OUTPUT ${image}
    COMMAND ${CMAKE_CUDA_COMPILER} -fatbin -std=c++17 ${flags} ${code}
            -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include -MD -MF ${image}.d -MT ${image} -o ${image} ${kernels}
    DEPENDS ${kernels} DEPFILE ${image}.d VERBATIM COMMENT "Compiling the kernels of ${name} operations")
endforeach()
set_source_files_properties(stream/stream_image.c PROPERTIES OBJECT_DEPENDS "${images}" COMPILE_DEFINITIONS "${definitions}")
