# Language levels, warnings and sanitizers, as one interface target every target of the project links.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(gpushmem_flags INTERFACE)
target_compile_options(gpushmem_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow -Wno-unused-parameter>
  $<$<COMPILE_LANGUAGE:C>:-Wpedantic -Wstrict-prototypes -Wmissing-prototypes>)
# What it defines with GPUSHMEM_API is exported.
target_compile_definitions(gpushmem_flags INTERFACE GPSH_EXPORTS)
if(GPUSHMEM_WERROR)
  target_compile_options(gpushmem_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(GPUSHMEM_SANITIZE)
  target_compile_options(gpushmem_flags INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GPUSHMEM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(gpushmem_flags INTERFACE -fsanitize=${GPUSHMEM_SANITIZE})
  # What one part of the library promises another is looked at too.
  target_compile_definitions(gpushmem_flags INTERFACE GPSH_ASSERTS)
endif()
