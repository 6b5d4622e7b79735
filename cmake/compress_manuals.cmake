# CPack runs this on the files of a package: Debian's have their manual pages compressed, without a time stamp.
if(CPACK_GENERATOR STREQUAL DEB)
  file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*.1)
  if(pages)
    execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endif()
