# What kprof is built from. Everything but CUDA is a Debian package; without CUDA the reporter alone is built.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# kprof_static_library(TARGET name header): an imported static library, so that the injection library carries its own copy
# and the command line runs on machines without the package.
function(kprof_find_library target name header)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  find_library(${target}_LIBRARY NAMES lib${name}.a ${name} REQUIRED)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

kprof_find_library(dep_pcre2 pcre2-8 pcre2.h)
target_compile_definitions(dep_pcre2 INTERFACE PCRE2_CODE_UNIT_WIDTH=8)
kprof_find_library(dep_sqlite sqlite3 sqlite3.h)
target_link_libraries(dep_sqlite INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
kprof_find_library(dep_csv csv csv.h)
kprof_find_library(dep_cjson cjson cjson/cJSON.h)
kprof_find_library(dep_iberty iberty libiberty/demangle.h)

# CUDA: headers only at build time; libcupti and libnvperf_host are loaded at run time, by path.
find_path(CUDA_INCLUDE cupti.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda /usr/local/cuda/extras/CUPTI /opt/cuda
  PATH_SUFFIXES include extras/CUPTI/include)
option(KPROF_WITH_CUDA "Build the profiler as well as the reporter" ON)
set(KPROF_HAVE_CUDA OFF)
if(KPROF_WITH_CUDA AND CUDA_INCLUDE)
  set(KPROF_HAVE_CUDA ON)
  add_library(dep_cuda INTERFACE)
  # cupti_profiler_host.h includes <string>; an empty file of that name lets a C compiler take it.
  file(WRITE ${PROJECT_BINARY_DIR}/cupti-c/string "")
  target_include_directories(dep_cuda SYSTEM INTERFACE ${CUDA_INCLUDE} ${PROJECT_BINARY_DIR}/cupti-c)
  target_link_libraries(dep_cuda INTERFACE ${CMAKE_DL_LIBS})
else()
  message(STATUS "No CUDA toolkit: the reporter alone is built")
endif()
