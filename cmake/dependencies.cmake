# What kprof is built from. Everything but CUDA is a Debian package; without CUDA the reporter alone is built.

find_package(Threads REQUIRED)

# kprof_find_library(TARGET name header package): an interface target for a C library, the static one where there is one,
# so that the injection library carries its own copy and the command line runs on machines without the package.
function(kprof_find_library target name header package)
  find_path(${target}_INCLUDE ${header})
  find_library(${target}_LIBRARY NAMES lib${name}.a ${name})
  mark_as_advanced(${target}_INCLUDE ${target}_LIBRARY)
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "lib${name} with ${header} was not found; Debian and Ubuntu: apt install ${package}")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
endfunction()

kprof_find_library(dep_pcre2 pcre2-8 pcre2.h libpcre2-dev)
target_compile_definitions(dep_pcre2 INTERFACE PCRE2_CODE_UNIT_WIDTH=8)
kprof_find_library(dep_sqlite sqlite3 sqlite3.h libsqlite3-dev)
target_link_libraries(dep_sqlite INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
kprof_find_library(dep_csv csv csv.h libcsv-dev)
kprof_find_library(dep_cjson cjson cjson/cJSON.h libcjson-dev)
kprof_find_library(dep_iberty iberty libiberty/demangle.h libiberty-dev)

# CUDA: headers only at build time; libcupti and libnvperf_host are loaded at run time, by path.
option(KPROF_WITH_CUDA "Build the profiler as well as the reporter" ON)
set(KPROF_HAVE_CUDA OFF)
if(KPROF_WITH_CUDA)
  find_path(CUDA_INCLUDE cupti_range_profiler.h
    HINTS ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda /usr/local/cuda/extras/CUPTI /opt/cuda
    PATH_SUFFIXES include extras/CUPTI/include)
endif()
if(KPROF_WITH_CUDA AND CUDA_INCLUDE)
  set(KPROF_HAVE_CUDA ON)
  add_library(dep_cuda INTERFACE)
  # cupti_profiler_host.h includes <string>; an empty file of that name lets a C compiler take it.
  # Unlike file(WRITE), this leaves a file alone that is right already, and with it what was compiled.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cupti-c/string CONTENT "")
  target_include_directories(dep_cuda SYSTEM INTERFACE ${CUDA_INCLUDE} ${PROJECT_BINARY_DIR}/cupti-c)
  target_link_libraries(dep_cuda INTERFACE ${CMAKE_DL_LIBS})
  message(STATUS "CUPTI headers: ${CUDA_INCLUDE}")
else()
  message(STATUS "No CUDA toolkit with CUPTI's Range Profiler: the reporter alone is built")
endif()

if(KPROF_HAVE_CUDA OR KPROF_FUZZ)
  # What reads the code of kernels. The static library does not bring along what it is made of.
  kprof_find_library(dep_dw dw elfutils/libdw.h libdw-dev)
  kprof_find_library(dep_elf elf libelf.h libelf-dev)
  kprof_find_library(dep_z z zlib.h zlib1g-dev)
  target_link_libraries(dep_dw INTERFACE dep_elf dep_z)
endif()
