#!/usr/bin/env bash
# Tests all of kprof that needs no GPU, and the rest too where there is one: installs the Debian packages that are
# missing, builds with gcc, with clang, with AddressSanitizer and UBSan, with ThreadSanitizer and without CUDA, runs the
# tests in each build, runs the command line under valgrind, tries an installed tree and checks the style. Ends with
# "N passed, N failed" and fails if anything failed.
#
#   tests/run.sh             everything
#   tests/run.sh gcc lint    only these steps: gcc clang asan tsan reporter valgrind install lint
#   KPROF_TEST_BUILD=DIR     where to build (build/tests); kept, so that a second run is quick
set -u
export LC_ALL=C NO_COLOR=1
cd "$(dirname "$0")/.." || exit 1
root=$PWD
work=${KPROF_TEST_BUILD:-$root/build/tests}
jobs=$(nproc)
passed=0 failed=0

packages=(cmake make gcc clang clang-format clang-tidy libc6-dev libcjson-dev libcsv-dev libcmocka-dev libpcre2-dev
          libsqlite3-dev libiberty-dev sqlite3 valgrind universal-ctags shellcheck python3 groff-base)

# pass WHAT [N], fail WHAT [N]: count one test, or N.
pass() { passed=$((passed + ${2:-1})); printf 'pass: %s\n' "$1"; }
fail() { failed=$((failed + ${2:-1})); printf 'FAIL: %s\n' "$1"; }
title() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }

# try WHAT COMMAND...: one test; its output is shown when it fails.
try() {
  local what=$1 output status
  shift
  output=$("$@" 2>&1 </dev/null)
  status=$?
  if [[ $status -eq 0 ]]; then
    pass "$what"
  else
    fail "$what"
    printf '%s\n' "$output" | tail -60 | sed 's/^/  /'
  fi
  return $status
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  elif [[ -t 1 && -z ${CI:-} ]]; then
    sudo "$@" # may ask, on the terminal
  else
    sudo -n "$@"
  fi
}

install_packages() {
  command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
  local package missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return 0
  title "installing ${missing[*]}"
  if ! { as_root apt-get update -qq &&
         as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } \
       >"$work/apt.log" 2>&1 </dev/null; then
    tail -20 "$work/apt.log"
    echo "Could not install them. As root: apt-get install ${missing[*]}"
    return 1
  fi
}

# build NAME CMAKE-OPTIONS...: into $work/NAME, warnings are errors.
build() {
  local name=$1
  shift
  try "$name: configure" cmake -S . -B "$work/$name" -DKPROF_WERROR=ON "$@" &&
    try "$name: build" cmake --build "$work/$name" -j "$jobs"
}

# Sanitizers of older compilers stumble over the address layouts that newer kernels choose.
plain_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

# A defect that eats memory fails its test instead of the machine. CUDA and the sanitizers reserve far more than they
# use, so they go without.
bounded_memory() {
  [[ $1 == *san || -e /dev/nvidiactl ]] || ulimit -v $((16 << 20))
  "${@:2}"
}

# run_tests NAME CTEST-OPTIONS...: adds ctest's counts to ours; skipped tests count as neither.
run_tests() {
  local name=$1 log=$work/$1.log total bad skipped
  shift
  (bounded_memory "$name" plain_addresses \
    ctest --test-dir "$work/$name" --no-tests=error --output-on-failure -j "$jobs" "$@") >"$log" 2>&1 </dev/null
  local status=$?
  total=$(sed -n 's/.*tests failed out of \([0-9]*\)$/\1/p' "$log")
  bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of .*/\1/p' "$log")
  skipped=$(grep -cE '\*\*\*Skipped|\*\*\*Not Run \(Disabled\)' "$log")
  if [[ -z $total || ($status -ne 0 && $bad -eq 0) ]]; then
    tail -60 "$log"
    fail "$name: ctest"
    return 1
  fi
  [[ $bad -gt 0 ]] && sed '/tests passed,/,$d' "$log" | grep -vE '^ *[0-9]+/[0-9]+ Test .* Passed |^ *Start ' |
    head -200
  sed -n '/tests passed,/,$p' "$log"
  [[ $bad -gt 0 ]] && fail "$name: $bad of $total tests" "$bad"
  [[ $((total - bad - skipped)) -gt 0 ]] && pass "$name: $((total - bad - skipped)) tests" $((total - bad - skipped))
  return $status
}

# The build that later steps use as well; made once.
gcc_build=
build_gcc() {
  if [[ -z $gcc_build ]]; then
    build gcc -DCMAKE_C_COMPILER=gcc && gcc_build=whole || gcc_build=broken
  fi
  [[ $gcc_build == whole ]]
}

step_gcc() {
  build_gcc && run_tests gcc
}

# What is tried on more chips or documents (breadth), what CUPTI makes of names (schedules), whole programs and random
# ones are the same with each compiler.
step_clang() {
  build clang -DCMAKE_C_COMPILER=clang && run_tests clang -LE '^(breadth|schedules)$' -E '^(e2e_|test_sim_)'
}

# The GPU tests measure; under a sanitizer that means little and takes long. CUPTI takes ten times as long there, so
# what is tried on many chips is tried on one, and tests that repeat others on more chips or documents are left out.
step_asan() {
  export KPROF_TEST_CHIPS=TU102
  # LeakSanitizer crashes on what its own interceptor notes of the thread-local storage of libraries opened later.
  # CUPTI allocates so much that noting where takes a fifth of the time; eight frames tell enough.
  export ASAN_OPTIONS=detect_stack_use_after_return=1:intercept_tls_get_addr=0:malloc_context_size=8
  export UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
  build asan -DCMAKE_C_COMPILER=gcc -DKPROF_ASAN=ON && run_tests asan -E '^gpu$' -LE '^breadth$'
  unset ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS KPROF_TEST_CHIPS
}

step_tsan() {
  build tsan -DCMAKE_C_COMPILER=gcc -DKPROF_TSAN=ON && run_tests tsan -L threads
}

# What somebody without a CUDA toolkit gets. Random programs know none.
step_reporter() {
  build reporter -DKPROF_WITH_CUDA=OFF && run_tests reporter -E '^test_sim_random'
}

# Recorded runs that ship with the sources.
recorded_reports() {
  find samples tests/fixtures -name '*.kprof' 2>/dev/null | sort
}

# under_valgrind STATUS ARGUMENTS...: kprof ends with that status, and valgrind finds no error and no leak.
under_valgrind() {
  local expected=$1 status
  shift
  valgrind -q --leak-check=full --errors-for-leak-kinds=definite,possible --error-exitcode=99 \
    --suppressions=tests/valgrind.supp "$work/gcc/src/cli/kprof" "$@"
  status=$?
  [[ $status -eq $expected ]] || { echo "exit status $status instead of $expected"; return 1; }
}

has_cuda() {
  grep -q '^CUDA_INCLUDE:PATH=/' "$work/gcc/CMakeCache.txt"
}

step_valgrind() {
  build_gcc || return
  local arguments report page format
  for arguments in --help --version --list-sets --list-sections "report --help"; do
    # shellcheck disable=SC2086 # words on purpose
    try "valgrind: kprof $arguments" under_valgrind 0 $arguments
  done
  try "valgrind: kprof --list-chips" under_valgrind "$(has_cuda && echo 0 || echo 111)" --list-chips
  try "valgrind: unknown option" under_valgrind 101 --no-such-option true
  try "valgrind: unknown set" under_valgrind 102 --set nonesuch true
  try "valgrind: missing report" under_valgrind 107 report "$work/missing.kprof"
  head -c 5000 /dev/urandom >"$work/foreign.kprof"
  try "valgrind: foreign report" under_valgrind 107 report "$work/foreign.kprof"
  for report in $(recorded_reports | head -3); do
    for page in details raw summary; do
      for format in "" --csv --json; do
        # shellcheck disable=SC2086 # an empty format is no word
        try "valgrind: report $report --page $page $format" under_valgrind 0 report "$report" --page $page $format
      done
    done
  done
}

# tree_is_whole PREFIX: all that `cmake --install` should have put there.
tree_is_whole() {
  local file status=0
  for file in bin/kprof share/kprof/metricsets/sets share/man/man1/kprof.1 share/doc/kprof/LICENSE \
              share/bash-completion/completions/kprof share/zsh/site-functions/_kprof \
              share/fish/vendor_completions.d/kprof.fish share/man/man1/kprof-list.1 share/man/man1/kprof-plan.1; do
    [[ -e $1/$file ]] || { echo "missing: $file"; status=1; }
  done
  return $status
}

# The library inside the application: one symbol to the outside, nothing that ends the program or writes to stdout.
library_is_a_good_guest() {
  local library=$1 exported unwanted
  exported=$(nm -D --defined-only "$library" | awk '{ print $3 }')
  [[ $exported == InitializeInjection ]] || { echo "exports: $exported"; return 1; }
  unwanted=$(nm -D --undefined-only "$library" | awk '{ print $2 }' | sed 's/@.*//' |
             grep -xE 'exit|_exit|_Exit|quick_exit|abort|__assert_fail|stdout|printf|__printf_chk|puts|putchar|system')
  [[ -z $unwanted ]] || { echo "calls: $unwanted"; return 1; }
}

# From an empty folder, so that nothing is found in the source tree by accident.
runs_elsewhere() {
  (cd "$1" && env -i PATH=/usr/bin:/bin HOME="$1" "${@:2}")
}

manual_reads() {
  local warnings
  warnings=$(groff -ww -z -man -Tutf8 "$1"/share/man/man1/*.1 2>&1)
  [[ -z $warnings ]] || { echo "$warnings"; return 1; }
}

step_install() {
  build_gcc || return
  local tree=$work/tree report library
  rm -rf "$tree"
  try "install: cmake --install" cmake --install "$work/gcc" --prefix "$tree" || return
  try "install: the tree is whole" tree_is_whole "$tree"
  try "install: kprof --version" runs_elsewhere "$tree" bin/kprof --version
  try "install: kprof --list-sets" runs_elsewhere "$tree" bin/kprof --list-sets
  try "install: the manual pages read" manual_reads "$tree"
  report=$(recorded_reports | head -1)
  [[ -n $report ]] && try "install: kprof report" runs_elsewhere "$tree" bin/kprof report "$root/$report"
  library=$(find "$tree" -name libkprof-inject.so)
  if has_cuda; then
    try "install: the injection library is a good guest" library_is_a_good_guest "$library"
  fi
}

step_lint() {
  build_gcc
  try "lint" tests/lint.sh "$work/gcc"
}

mkdir -p "$work" || exit 1
install_packages || exit 1
[[ $# -gt 0 ]] || set -- gcc clang asan tsan reporter valgrind install lint
for step in "$@"; do
  title "$step"
  if declare -F "step_$step" >/dev/null; then "step_$step"; else fail "there is no step $step"; fi
done
printf '\n%d s\n%d passed, %d failed\n' "$SECONDS" "$passed" "$failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
