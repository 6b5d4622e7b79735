# `cpack` in a build folder: a Debian package and an archive of what `cmake --install` installs. A build without CUDA makes
# the reporter alone, a package of another name, so that nobody takes it for the whole.

set(CPACK_PACKAGE_NAME kprof)
set(other kprof-reporter)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "kernel-level metrics collector for CUDA")
string(CONCAT CPACK_PACKAGE_DESCRIPTION
  "kprof measures the CUDA kernels of a program with the GPU's hardware counters, without a change to the program. "
  "To profile it needs a CUDA Toolkit 13 with CUPTI, which it loads at run time.")
if(NOT KPROF_HAVE_CUDA)
  set(CPACK_PACKAGE_NAME kprof-reporter)
  set(other kprof)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "reads the reports of kprof, a metrics collector for CUDA")
  string(CONCAT CPACK_PACKAGE_DESCRIPTION
    "Prints, compares, merges and exports what kprof has measured of CUDA kernels. It profiles nothing and needs neither "
    "GPU nor CUDA toolkit.")
endif()

set(CPACK_PACKAGE_VENDOR kprof)
set(CPACK_PACKAGE_CONTACT "The kprof project")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_SOURCE_IGNORE_FILES "/build/" "/\\.git")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONFLICTS ${other})
set(CPACK_DEBIAN_PACKAGE_REPLACES ${other})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/compress_manuals.cmake)

# Dependencies are found by tools of Debian's packages dpkg-dev and file.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_COMMAND file)
mark_as_advanced(DPKG_SHLIBDEPS FILE_COMMAND)
set(CPACK_GENERATOR TGZ)
if(DPKG_SHLIBDEPS AND FILE_COMMAND)
  list(APPEND CPACK_GENERATOR DEB)
endif()
include(CPack)
