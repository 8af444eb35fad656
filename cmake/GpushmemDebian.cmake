# Called by cpack before it makes Debian packages of what was installed: adds what Debian's policy wants beside it, and that only
# packages have. Man pages are compressed; each package has its copyright, changelog, and reasons where lintian would object.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

function(gpushmem_compress file)
  execute_process(COMMAND gzip -9 -n -f ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# A page that is a link becomes one to the page's new name. There are thousands of them, and one process for all pages.
function(gpushmem_compress_pages folder)
  file(GLOB_RECURSE pages ${folder}/*/share/man/*)
  foreach(page ${pages})
    if(IS_SYMLINK ${page})
      file(READ_SYMLINK ${page} target)
      file(REMOVE ${page})
      file(CREATE_LINK ${target}.gz ${page}.gz SYMBOLIC)
    endif()
  endforeach()
  execute_process(COMMAND find ${folder} -path */share/man/* -type f -exec gzip -9 -n -f {} + COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Debian's loader finds libpmix without the folder that PMIx's pkg-config file names.
function(gpushmem_forget_pmix folder)
  file(GLOB_RECURSE binaries ${folder}/usr/bin/gpushmem* ${folder}/usr/lib*/libgpushmem.so.*.*)
  foreach(binary ${binaries})
    file(READ_ELF ${binary} RUNPATH path CAPTURE_ERROR error)
    if(path MATCHES "/pmix2/lib")
      file(RPATH_REMOVE FILE ${binary})
    endif()
  endforeach()
endfunction()

function(gpushmem_describe folder package)
  set(doc ${folder}/usr/share/doc/${package})
  file(WRITE ${doc}/changelog "gpushmem (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the "
       "project.\n\n -- ${CPACK_PACKAGE_CONTACT}  Thu, 01 Jan 2026 00:00:00 +0000\n")
  gpushmem_compress(${doc}/changelog)
  file(READ ${CPACK_RESOURCE_FILE_LICENSE} license)
  string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
  string(REGEX REPLACE "\n([^\n])" "\n \\1" license "${license}")
  file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"
       "Copyright: the gpushmem authors\nLicense: BSD-3-Clause\n ${license}")
  set(why "# cpack writes these scripts beside the trigger\n${package}: maintscript-calls-ldconfig *\n")
  if(package MATCHES "openshmem|nvshmem")
    string(APPEND why "# an environment to compile with, under names that other implementations have: one package, with its link\n"
           "${package}: link-to-shared-library-in-wrong-package *\n${package}: package-name-doesnt-match-sonames *\n"
           "# it gives functions of libgpushmem further names, and calls nothing else\n"
           "${package}: library-not-linked-against-libc *\n")
  endif()
  file(WRITE ${folder}/usr/share/lintian/overrides/${package} "${why}")
  file(GLOB_RECURSE written ${doc}/* ${folder}/usr/share/lintian/*)
  file(CHMOD ${written} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  set(folder ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component})
  string(TOUPPER ${component} upper)
  if(EXISTS ${folder})
    gpushmem_compress_pages(${folder})
    gpushmem_forget_pmix(${folder})
    gpushmem_describe(${folder} ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  endif()
endforeach()
