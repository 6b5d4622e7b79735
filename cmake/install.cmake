# What `cmake --install` adds to the program, its data and its manual pages: the texts that explain them.

foreach(text LICENSE NEWS.md README.md CONTRIBUTING.md)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${text})
    install(FILES ${text} DESTINATION ${CMAKE_INSTALL_DOCDIR})
  endif()
endforeach()
install(FILES src/report/html/THIRD-PARTY.txt DESTINATION ${CMAKE_INSTALL_DOCDIR})

# A folder of their own, so that the links between the documents hold.
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.json"
  PATTERN "*.csv" PATTERN "*.png" PATTERN "*.txt" PATTERN "man" EXCLUDE)
# What their examples read.
install(DIRECTORY samples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.kprof" PATTERN "*.md"
  PATTERN "*.cu" PATTERN "*.ipynb" PATTERN "*.py")

# Exit codes, for programs that start kprof.
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
