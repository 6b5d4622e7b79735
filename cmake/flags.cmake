# Flags and definitions that every target shares, through the interface target kprof_options.

add_library(kprof_options INTERFACE)
target_compile_options(kprof_options INTERFACE -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wshadow)
# Functions of tests stand in for others, and need not use all of their parameters.
set(in_tests $<FILTER:$<TARGET_PROPERTY:SOURCE_DIR>,INCLUDE,^${PROJECT_SOURCE_DIR}/tests/>)
target_compile_options(kprof_options INTERFACE $<$<BOOL:${in_tests}>:-Wno-unused-parameter>)
target_compile_definitions(kprof_options INTERFACE _GNU_SOURCE KPROF_VERSION="${PROJECT_VERSION}")
target_include_directories(kprof_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(KPROF_WERROR)
  target_compile_options(kprof_options INTERFACE -Werror)
endif()

function(kprof_sanitize)
  target_compile_options(kprof_options INTERFACE ${ARGN} -fno-omit-frame-pointer)
  target_link_options(kprof_options INTERFACE ${ARGN})
endfunction()

if((KPROF_ASAN AND KPROF_TSAN) OR (KPROF_FUZZ AND (KPROF_ASAN OR KPROF_TSAN)))
  message(FATAL_ERROR "KPROF_ASAN, KPROF_TSAN and KPROF_FUZZ exclude each other")
elseif(KPROF_FUZZ AND NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "KPROF_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
elseif(KPROF_FUZZ)
  kprof_sanitize(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
elseif(KPROF_ASAN)
  kprof_sanitize(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
elseif(KPROF_TSAN)
  kprof_sanitize(-fsanitize=thread)
endif()
