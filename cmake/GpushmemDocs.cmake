# Man pages, completion and a settings file, made of the headers and of what the program says. They are made where the system's
# Python is and the program can run, and installed if they were made.
find_program(GPUSHMEM_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT GPUSHMEM_SYSTEM_PYTHON OR CMAKE_CROSSCOMPILING OR GPUSHMEM_SANITIZE)
  return()
endif()

set(docs ${PROJECT_BINARY_DIR}/docs)
set(scripts ${PROJECT_SOURCE_DIR}/docs/site)
file(GLOB sources CONFIGURE_DEPENDS ${scripts}/*.py ${PROJECT_SOURCE_DIR}/include/gpushmem/*.h
  ${PROJECT_SOURCE_DIR}/include/gpushmem/*.cuh)
set(described gpushmem_cli)
if(GPUSHMEM_TESTS)
  list(APPEND described gpushmem-perf) # `gpushmem perf --help` is this one's
endif()
add_custom_command(OUTPUT ${docs}/man/man1/gpushmem.1 ${docs}/completion/gpushmem DEPENDS ${described} ${sources} VERBATIM
  COMMAND ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER}
    ${GPUSHMEM_SYSTEM_PYTHON} -B ${scripts}/man.py ${PROJECT_SOURCE_DIR} $<TARGET_FILE:gpushmem_cli> ${docs}/man
  COMMAND ${GPUSHMEM_SYSTEM_PYTHON} -B ${scripts}/completion.py $<TARGET_FILE:gpushmem_cli> ${docs}/completion)
add_custom_command(OUTPUT ${docs}/settings.conf DEPENDS gpushmem_cli VERBATIM
  COMMAND sh -c "\"$1\" info --settings-file >\"$2\"" sh $<TARGET_FILE:gpushmem_cli> ${docs}/settings.conf)
add_custom_command(OUTPUT ${docs}/api-index.md DEPENDS ${sources} VERBATIM
  COMMAND ${GPUSHMEM_SYSTEM_PYTHON} -B ${scripts}/api_index.py ${PROJECT_SOURCE_DIR} ${CMAKE_CXX_COMPILER} ${docs}/api-index.md)
add_custom_target(gpushmem_man ALL DEPENDS ${docs}/man/man1/gpushmem.1 ${docs}/settings.conf ${docs}/api-index.md)

install(FILES ${docs}/settings.conf DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT gpushmem_programs OPTIONAL)
install(FILES ${docs}/api-index.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT gpushmem_development OPTIONAL)
install(DIRECTORY ${docs}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT gpushmem_programs OPTIONAL
  PATTERN "osh*" EXCLUDE PATTERN "shmem_info.1" EXCLUDE)
install(DIRECTORY ${docs}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT gpushmem_shmem OPTIONAL
  FILES_MATCHING PATTERN "osh*" PATTERN "shmem_info.1")
# Most of them are links, thousands, whose names nobody wants to see passing. Those of OpenSHMEM's names are not in the component
# of its library: there CPack starts two programs for each file.
install(DIRECTORY ${docs}/man/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT gpushmem_development OPTIONAL MESSAGE_NEVER)
install(FILES ${docs}/completion/gpushmem DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  COMPONENT gpushmem_programs OPTIONAL)
install(FILES ${docs}/completion/_gpushmem DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
  COMPONENT gpushmem_programs OPTIONAL)
