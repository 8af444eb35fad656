# Each folder of transports/ is a transport: its CMakeLists.txt calls gpushmem_add_transport, and its settings.def, if there is
# one, has its settings. Nothing outside the folder names it: the list of transports is made here.
function(gpushmem_add_transport name)
  target_sources(gpushmem_core PRIVATE ${ARGN})
  set_property(GLOBAL APPEND PROPERTY GPUSHMEM_TRANSPORTS ${name})
endfunction()

# A transport whose library is not here: its name and its settings stay, and the program says why it does nothing.
function(gpushmem_skip_transport name why)
  set_property(GLOBAL APPEND PROPERTY GPUSHMEM_SKIPPED_TRANSPORTS ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY GPUSHMEM_SKIPPED_WHY "${name}: ${why}")
endfunction()

file(GLOB transports CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/transports
  ${PROJECT_SOURCE_DIR}/transports/*/CMakeLists.txt)
foreach(list_file ${transports})
  get_filename_component(folder ${list_file} DIRECTORY)
  add_subdirectory(${PROJECT_SOURCE_DIR}/transports/${folder} ${PROJECT_BINARY_DIR}/transports/${folder})
endforeach()

get_property(transports GLOBAL PROPERTY GPUSHMEM_TRANSPORTS)
get_property(skipped GLOBAL PROPERTY GPUSHMEM_SKIPPED_TRANSPORTS)
get_property(skipped_why GLOBAL PROPERTY GPUSHMEM_SKIPPED_WHY)
set(declarations)
set(entries)
set(settings)
foreach(name ${transports})
  string(APPEND declarations "extern const struct gpsh_transport_ops gpsh_${name}_ops;\n")
  string(APPEND entries "    &gpsh_${name}_ops,\n")
endforeach()
set(all ${transports} ${skipped})
list(SORT all)
foreach(name ${all})
  if(EXISTS ${PROJECT_SOURCE_DIR}/transports/${name}/settings.def)
    string(APPEND settings "#include \"transports/${name}/settings.def\"\n")
  endif()
endforeach()
list(JOIN all "|" names)
set(generated ${CMAKE_CURRENT_BINARY_DIR}/generated)
file(CONFIGURE OUTPUT ${generated}/transports.h @ONLY CONTENT
"// Made by cmake/GpushmemTransports.cmake.
#define GPSH_TRANSPORT_NAMES \"@names@\"
#define GPSH_TRANSPORTS_SKIPPED \"@skipped_why@\"
struct gpsh_transport_ops;
@declarations@")
file(CONFIGURE OUTPUT ${generated}/transports.c @ONLY CONTENT
"// Made by cmake/GpushmemTransports.cmake.
#include \"transport/transport.h\"

const struct gpsh_transport_ops *const gpsh_transports[] = {
@entries@    NULL,
};
")
file(CONFIGURE OUTPUT ${generated}/transport_settings.def @ONLY CONTENT "@settings@")
target_sources(gpushmem_core PRIVATE ${generated}/transports.c)
