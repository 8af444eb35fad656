# The kernels of stream operations: compiled for the architectures of CMAKE_CUDA_ARCHITECTURES, and as PTX for all others, into
# one fatbin that becomes bytes of the library.
set(kernels ${CMAKE_CURRENT_SOURCE_DIR}/stream/stream_kernels.cu)
set(image ${CMAKE_CURRENT_BINARY_DIR}/stream_kernels.fatbin)
set(code)
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  if(architecture MATCHES "^([0-9]+[af]?)(-real|-virtual)?$")
    list(APPEND code -gencode=arch=compute_${CMAKE_MATCH_1},code=sm_${CMAKE_MATCH_1})
  elseif(architecture MATCHES "^(native|all|all-major)$")
    list(APPEND code -arch=${architecture})
  endif()
endforeach()
if(NOT CMAKE_CUDA_ARCHITECTURES MATCHES "native|all") # nvcc's -arch=... stands alone
  list(APPEND code -gencode=arch=compute_75,code=compute_75)
endif()
add_custom_command(OUTPUT ${image}
  COMMAND ${CMAKE_CUDA_COMPILER} -fatbin -std=c++17 -O3 ${code} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_BINARY_DIR}/include
          -MD -MF ${image}.d -MT ${image} -o ${image} ${kernels}
  DEPENDS ${kernels} DEPFILE ${image}.d VERBATIM COMMENT "Compiling the kernels of stream operations")
set_source_files_properties(stream/stream_image.c PROPERTIES OBJECT_DEPENDS ${image}
  COMPILE_DEFINITIONS "GPSH_STREAM_IMAGE=\"${image}\"")
