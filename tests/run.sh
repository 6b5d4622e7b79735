#!/usr/bin/env bash
# Tests all of kprof that needs no GPU, and the rest too where there is one: installs the Debian packages that are
# missing, builds with gcc, with AddressSanitizer and UBSan, with ThreadSanitizer and without CUDA, runs the
# tests in each build, runs the command line under valgrind, tries an installed tree and checks the style. Ends with
# "N passed, N failed" and fails if anything failed.
#
#   tests/run.sh             what continuous integration runs for each change: 7 to 20 minutes of processor time where
#                            nothing was compiled before, and four to eleven minutes on two processors
#   tests/run.sh all         with what a change seldom breaks: CUPTI's answers for every chip instead of GH100's, all
#                            random programs, clang's AddressSanitizer beside gcc's, all programs of tests without CUDA,
#                            large files, all that a browser shows, clang-tidy in depth, 20 seconds of fuzzing for
#                            each harness
#   tests/run.sh gcc lint    only these steps and the builds that they need: gcc clang tsan reporter valgrind asan lint
#                            install fuzz; `all gcc`, too
#   KPROF_TEST_BUILD=DIR     where to build (build/tests); kept, so that a second run is quick
#
# Tests have labels: `breadth` for what only `all` runs, `once` for what one build is enough for, `many` for more of
# what is random, `schedules` for what CUPTI makes slow, `threads` for what ThreadSanitizer looks at. ccache is used
# where it is installed.
set -u
export LC_ALL=C NO_COLOR=1
cd "$(dirname "$0")/.." || exit 1
root=$PWD
work=${KPROF_TEST_BUILD:-$root/build/tests}
plans=$work/gcc/plans.cache
jobs=$(nproc)
passed=0 failed=0
is_broad=         # whether `all` was asked for
live_chip=GH100   # whose answers are asked of CUPTI for each change
ended=$work/ended # what each build and step leaves there is described at run_part

packages=(cmake ninja-build gcc clang clang-format clang-tidy libclang-rt-dev libc6-dev libcjson-dev libcsv-dev
          libcmocka-dev libdw-dev libpcre2-dev libsqlite3-dev libiberty-dev sqlite3 valgrind universal-ctags shellcheck
          python3 groff-base dpkg-dev file)

# pass WHAT [N], fail WHAT [N]: count one test, or N.
pass() { passed=$((passed + ${2:-1})); printf 'pass: %s\n' "$1"; }
fail() { failed=$((failed + ${2:-1})); printf 'FAIL: %s\n' "$1"; }
title() { printf '\n== %s\n' "$1"; }

# Sets cpu to the seconds of processor time that this shell and all that it has waited for took.
read_cpu_time() {
  local file=$work/times.$BASHPID
  times >"$file" # in another subshell it would tell of that
  cpu=$(awk '{ for (i = 1; i <= 2; i++) { split($i, part, "[ms]"); sum += 60 * part[1] + part[2] } }
             END { printf "%d", sum }' "$file")
  rm "$file"
}

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

# try_beside WHAT COMMAND...: as try, but while others run; await_tries tells how they ended.
beside=()
try_beside() {
  local what=$1 log=$work/beside.${#beside[@]}
  shift
  while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do wait -n; done
  ("$@" >"$log" 2>&1 </dev/null; echo $? >"$log.status") &
  beside+=("$what")
}

show_end() {
  cat "$1"
  return "$(<"$1.status")"
}

await_tries() {
  local i
  wait
  for i in "${!beside[@]}"; do
    try "${beside[i]}" show_end "$work/beside.$i"
  done
  beside=()
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

# Tests make thousands of files, for which the kernel takes a sixth less processor time where they are in memory.
use_memory_for_files() {
  local folder=/dev/shm options free_kilobytes
  options=$(findmnt -no OPTIONS "$folder" 2>/dev/null) || return 0
  free_kilobytes=$(df --output=avail -k "$folder" | tail -1)
  # Some tests run programs there, with the rights of others.
  [[ -z ${TMPDIR:-} && ! $options =~ noexec|nosuid && $free_kilobytes -gt $((4 << 20)) && -w $folder ]] || return 0
  TMPDIR=$(mktemp -d "$folder/kprof-tests-XXXXXX") || exit 1
  export TMPDIR
  chmod 755 "$TMPDIR"
  trap 'rm -rf "$TMPDIR"' EXIT
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

# install_if_possible PACKAGE WITHOUT PROGRAM...: not every distribution has it, and what it is for works without.
install_if_possible() {
  command -v "${@:3}" >/dev/null || ! command -v apt-get >/dev/null && return
  title "installing $1"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" \
    >"$work/$1.log" 2>&1 </dev/null || echo "It could not be installed; $2."
}

# The tests of Parquet and of the documents' lines for DuckDB are skipped without its engine.
install_duckdb() {
  export KPROF_DUCKDB=$work/duckdb
  command -v duckdb >/dev/null || ! command -v npm >/dev/null || [[ -d $KPROF_DUCKDB/node_modules ]] && return
  title "installing duckdb"
  mkdir -p "$KPROF_DUCKDB"
  timeout 120 npm install --prefix "$KPROF_DUCKDB" --no-package-lock --no-save --no-audit --no-fund @duckdb/node-api \
    >"$work/duckdb.log" 2>&1 </dev/null || echo "It could not be installed; Parquet is tested without."
}

# The compiler lists what it read for ninja; ccache need not preprocess each file first to know the same.
export CCACHE_DEPEND=1

# configure NAME CMAKE-OPTIONS..., build NAME TARGETS: in $work/NAME.
configure() {
  local launcher python generator="Unix Makefiles"
  launcher=$(command -v ccache)
  # What the PATH has may be a script that looks for an interpreter, each time for longer than that takes to start.
  python=$(python3 -c 'import sys; print(sys.executable)')
  command -v ninja >/dev/null && generator=Ninja # takes a quarter less processor time
  # CMake refuses a folder of another generator.
  grep -qsx "CMAKE_GENERATOR:INTERNAL=$generator" "$work/$1/CMakeCache.txt" || rm -rf "${work:?}/$1"
  # cpack takes what is built, and builds nothing first.
  try "$1: configure" cmake -G "$generator" -S . -B "$work/$1" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" \
    -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON ${python:+-DPython3_EXECUTABLE="$python" -DPYTHON3="$python"} "${@:2}"
}
build() {
  # shellcheck disable=SC2086 # words on purpose
  try "$1: build" cmake --build "$work/$1" -j "$jobs" --target $2
}

# Compilers take three times as long to optimize as to check, so only gcc's build is the one that people install.
fast=CMAKE_C_FLAGS_RELWITHDEBINFO

# Sanitizers of older compilers stumble over the address layouts that newer kernels choose.
plain_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

# A defect that eats memory fails its test instead of the machine. CUDA and the sanitizers reserve far more than they
# use, so they go without; Chromium too, which raises the limit again.
bounded_memory() {
  [[ $1 == *san || -e /dev/nvidiactl ]] || ulimit -S -v $((16 << 20))
  "${@:2}"
}

# run_tests NAME LABELS CTEST-OPTIONS...: all tests but those with one of the LABELS (words). Adds ctest's counts to
# ours; skipped tests count as neither. Many tests wait for something, so twice as many run as there are processors.
# Tests that are not about planning share the plans that one of them has made, or one of the planner's tests in gcc's
# build, which ctest lets begin with none.
run_tests() {
  local name=$1 labels=$2 log=$work/$1.log total bad skipped
  shift 2
  [[ -n $is_broad ]] || labels+=" breadth"
  labels=$(xargs <<<"${labels:-none}" | tr ' ' '|')
  (export KPROF_TEST_CACHE=$plans
   bounded_memory "$name" plain_addresses \
     ctest --test-dir "$work/$name" --no-tests=error --output-on-failure -j "$((2 * jobs))" -LE "^($labels)$" "$@") \
    >"$log" 2>&1 </dev/null
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
  grep -h '^skipped: ' "$work/$name/Testing/Temporary/LastTest.log"
  [[ $bad -gt 0 ]] && fail "$name: $bad of $total tests" "$bad"
  [[ $((total - bad - skipped)) -gt 0 ]] && pass "$name: $((total - bad - skipped)) tests" $((total - bad - skipped))
  return $status
}

# make NAME TARGETS CMAKE-OPTIONS...: one build.
make() {
  configure "$1" "${@:3}" && build "$1" "$2"
}

compiles_nothing() { # compiles_nothing NAME: where it is configured again
  cmake "$work/$1" >/dev/null && ! cmake --build "$work/$1" | grep Building
}

# As distributions build it: gcc's optimizer warns of what it does not see in the other builds.
build_gcc() {
  make gcc all -DCMAKE_BUILD_TYPE=Release -DKPROF_WERROR=ON -DCMAKE_C_COMPILER=gcc &&
    try "gcc: configured again, it compiles nothing" compiles_nothing gcc
}

# clang warns of other things, and looks for other undefined behaviour; for each change clang-tidy tells its warnings.
build_clang() {
  make clang all -DKPROF_WERROR=ON -DCMAKE_C_COMPILER=clang -DKPROF_ASAN=ON "-D$fast=-O1 -g1"
}

# gcc compiles with the sanitizers in two thirds of clang's time. What they add to the code makes it warn of faults that
# are none.
build_asan() {
  local options=()
  # A hundred programs are linked with the sanitizers' libraries, in half of the time where LLVM's linker is installed.
  command -v ld.lld >/dev/null && options+=(-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld)
  make asan all -DKPROF_ASAN=ON "-D$fast=-Og -g1" -DCMAKE_C_COMPILER=gcc "${options[@]}"
}

build_tsan() {
  make tsan threaded_tests -DCMAKE_C_COMPILER=gcc -DKPROF_TSAN=ON "-D$fast=-O1 -g1"
}

# Without a CUDA toolkit, and otherwise like gcc's, so that ccache has most of it from there. For each change the
# command line only.
build_reporter() {
  local target="kprof write_fixture"
  [[ -n $is_broad ]] && target=all
  make reporter "$target" -DCMAKE_BUILD_TYPE=Release -DKPROF_WERROR=ON -DCMAKE_C_COMPILER=gcc \
    -DKPROF_WITH_CUDA=OFF
}

builds_of() { # builds_of STEP: those that it needs
  case $1 in
    gcc | valgrind | lint) echo gcc ;;
    install) echo gcc "${is_broad:+reporter}" ;;
    clang | asan | tsan | reporter) echo "$1" ;;
  esac
}

await() { # await PART: false where it failed
  local status
  while [[ ! -e $ended/$1 ]] && kill -0 "$builder" 2>/dev/null; do sleep 0.3; done
  [[ -e $ended/$1 ]] && read -r status _ <"$ended/$1" && [[ $status -eq 0 ]]
}

step_gcc() {
  # ThreadSanitizer's build has the threaded programs, AddressSanitizer's the first of what is damaged or random; here
  # more of these are tried.
  local skipped='test_sim_random(_engine_threads_(more|wait)|_threads_more)?'
  skipped+='|test_report_hostile'
  [[ -n $is_broad ]] && skipped=test_planner_limits_of_passes
  run_tests gcc "" -E "^($skipped)$"
}

# What CUPTI makes of names, whole programs and random ones are the same with each compiler. So is what SQLite makes of
# damaged reports.
step_clang() {
  sanitizer_options
  export KPROF_TEST_CHIPS=TU102
  run_tests clang "once many schedules" -E '^(e2e_|gpu|test_sim_|test_report_hostile)'
  unset ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
  choose_chips
}

sanitizer_options() {
  # LeakSanitizer crashes on what its own interceptor notes of the thread-local storage of libraries opened later.
  # CUPTI allocates so much that noting where takes a fifth of the time; four frames tell enough.
  export ASAN_OPTIONS=detect_stack_use_after_return=1:intercept_tls_get_addr=0:malloc_context_size=4
  export UBSAN_OPTIONS=print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$root/tests/lsan.supp:print_suppressions=0
}

# The GPU tests measure; under a sanitizer that means little and takes long. CUPTI takes ten times as long there, a run
# of kprof five times. For each change this build has the tests of single parts, damaged files and random programs, and
# runs in which somebody meddles; the other tests go through the same code of ours, and `all` runs them here, too.
step_asan() {
  local many=many skipped='gpu|docs_|samples_|test_planner_(kept|limits|schedule|witness|select|breakdown|pack)'
  skipped+='|test_planner_(instructions|proof|questions|sets_GH|memory|evaluate)|test_cli_completion'
  skipped+='|test_report_(rollups|recorded|names)|test_cupti_saving|test_sim_random_(engine_)?threads'
  skipped+='|e2e_test_([^h]|hostile.(Bounds|RawText|Places))'
  [[ -n $is_broad ]] && many='' skipped='gpu|test_planner_sets_(TU|GA|AD|GB.)'
  export KPROF_TEST_CHIPS=TU102
  sanitizer_options
  run_tests asan "once $many" -E "^($skipped)"
  unset ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
  choose_chips
}

step_tsan() {
  local skipped=none
  [[ -n $is_broad ]] || skipped=test_sim_random_threads_more
  run_tests tsan "" -L threads -E "^$skipped$"
}

# What somebody without a CUDA toolkit gets. For each change what the command line tells without CUDA, and what the
# documents show: the reporter's pages are those of gcc's build. `all` runs every test that CUDA makes a difference to.
step_reporter() {
  local chosen=(-R '^(test_cli_without_cuda|docs_.*_reporter$)')
  [[ -n $is_broad ]] && chosen=(-E '^(gpu_|test_(sim_random|report_html|report_hostile))')
  run_tests reporter "" "${chosen[@]}"
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

unkept_under_valgrind() {
  KPROF_CACHE=off under_valgrind "$@"
}

has_cuda() { # has_cuda BUILD
  grep -q '^CUDA_INCLUDE:PATH=/' "$work/$1/CMakeCache.txt"
}

step_valgrind() {
  local arguments report page format
  export XDG_CACHE_HOME=$plans
  for arguments in ${is_broad:+--version --list-sets "report --help"} --help --list-sections; do
    # shellcheck disable=SC2086 # words on purpose
    try_beside "valgrind: kprof $arguments" under_valgrind 0 $arguments
  done
  if [[ -n $is_broad ]]; then
    try_beside "valgrind: kprof --list-chips" under_valgrind "$(has_cuda gcc && echo 0 || echo 111)" --list-chips
  fi
  try_beside "valgrind: unknown option" under_valgrind 101 --no-such-option true
  try_beside "valgrind: unknown set" under_valgrind 102 --set nonesuch true
  try_beside "valgrind: missing report" under_valgrind 107 report "$work/missing.kprof"
  head -c 5000 /dev/urandom >"$work/foreign.kprof"
  try_beside "valgrind: foreign report" under_valgrind 107 report "$work/foreign.kprof"
  if [[ -n $is_broad ]] && has_cuda gcc; then
    try_beside "valgrind: planning" unkept_under_valgrind 0 --plan --chips TU102 --metrics \
      sm__throughput.avg.pct_of_peak_sustained_elapsed,lts__throughput.avg.pct_of_peak_sustained_elapsed
  fi
  # For each change a report's pages once; the tests of the golden files show all to AddressSanitizer in every format.
  report=$(recorded_reports | head -1)
  for arguments in "--page details" "--page raw --csv" "--page summary --json"; do
    # shellcheck disable=SC2086 # words on purpose
    try_beside "valgrind: report $arguments" under_valgrind 0 report "$report" $arguments
  done
  for report in ${is_broad:+$(recorded_reports | head -3)}; do
    for page in details raw summary; do
      for format in --width=100 --csv --json; do
        arguments="$report --page $page $format"
        # shellcheck disable=SC2086 # words on purpose
        try_beside "valgrind: report $arguments" under_valgrind 0 report $arguments
      done
    done
  done
  report=$(recorded_reports | head -1)
  try_beside "valgrind: report --html" under_valgrind 0 report "$report" -f --html "$work/report.html"
  await_tries
  unset XDG_CACHE_HOME
}

# tree_is_whole PREFIX: all that `cmake --install` should have put there.
tree_is_whole() {
  local file status=0
  for file in bin/kprof share/kprof/metricsets/sets share/man/man1/kprof.1 share/doc/kprof/LICENSE \
              share/doc/kprof/samples/vectorAdd-h200.kprof \
              share/doc/kprof/THIRD-PARTY.txt share/bash-completion/completions/kprof share/zsh/site-functions/_kprof \
              share/fish/vendor_completions.d/kprof.fish share/man/man1/kprof-list.1 share/man/man1/kprof-plan.1 \
              share/man/man1/kprof-recover.1 share/man/man1/kprof-explain.1 share/kprof/metricsets/aliases \
              share/kprof/python/kprof.py share/kprof/python/ncu_report.py share/kprof/ncu/ncu \
              share/kprof/ncu/extras/python/ncu_report.py; do
    [[ -e $1/$file ]] || { echo "missing: $file"; status=1; }
  done
  return $status
}

# The library inside the application: two symbols to the outside, nothing that ends the program or writes to stdout.
library_is_a_good_guest() {
  local library=$1 exported unwanted
  exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | xargs)
  [[ $exported == "InitializeInjection InitializeInjectionNvtx2" ]] || { echo "exports: $exported"; return 1; }
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

# package_works BUILD NAME PATH...: cpack makes a Debian package of that name and an archive, in which these paths are.
# Unpacked into an empty root, the package's kprof finds its own sets and findings.
package_works() {
  local build=$1 name=$2 made=$work/packages.$1 root=$work/root.$1 path
  rm -rf "$made" "$root"
  cpack --config "$work/$build/CPackConfig.cmake" -G "DEB;TGZ" -B "$made" || return
  dpkg-deb -f "$made/$name"_*.deb Depends | grep -q 'libc6 (>= .*libcjson1' || { echo "wrong Depends"; return 1; }
  dpkg-deb -x "$made/$name"_*.deb "$root" || return
  for path in bin/kprof share/kprof/metricsets/aliases "${@:3}"; do
    [[ -e $root/usr/$path ]] || { echo "missing: $path"; return 1; }
    tar -tzf "$made/$name"-*.tar.gz | grep "^$name-[^/]*/$path" >"$made/found" ||
      { echo "not in the archive: $path"; return 1; }
  done
  [[ -e $root/usr/share/man/man1/kprof.1.gz ]] || { echo "the manual is not compressed"; return 1; }
  runs_elsewhere "$root" usr/bin/kprof --version | grep -x 'kprof [0-9.]*' || return
  runs_elsewhere "$root" usr/bin/kprof list sections | grep -q ^SpeedOfLight || { echo "no sections"; return 1; }
  runs_elsewhere "$root" usr/bin/kprof report "$PWD/samples/vectorAdd-h200.kprof" >"$made/report" || return
  grep -q 'GPU Speed Of Light Throughput' "$made/report" || { echo "no report"; return 1; }
  grep -q '! Warps wait' "$made/report" || { echo "no findings"; return 1; }
}

step_install() {
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
  if has_cuda gcc; then
    try "install: the injection library is a good guest" library_is_a_good_guest "$library"
    try "install: the preloaded library is beside it" test -e "${library%/*}/libkprof-exec.so"
    try "install: package of kprof" package_works gcc kprof lib/kprof/libkprof-inject.so lib/kprof/libkprof-exec.so \
      lib/kprof/libkprof-guests.so
  fi
  [[ -z $is_broad ]] || try "install: package of the reporter" package_works reporter kprof-reporter # made as the other
}

step_lint() {
  try "lint" tests/lint.sh "$work/gcc" ${is_broad:+deep}
}

step_fuzz() {
  local file
  export KPROF_FUZZ_BUILD=$work/fuzz
  for file in tests/fuzz/fuzz_*.c; do
    file=${file#tests/fuzz/fuzz_}
    try "fuzz: ${file%.c}" tests/fuzz/run.sh 20 "${file%.c}"
  done
}

choose_chips() {
  if [[ -n $is_broad ]]; then unset KPROF_TEST_CHIPS; else export KPROF_TEST_CHIPS=$live_chip; fi
}

# run_part COMMAND: a build or a step. Shows what it printed when it has ended, whole, since others run beside it, and
# leaves "STATUS PASSED FAILED NAME WALL CPU" in $ended, the last two in seconds.
run_part() {
  local wall=$SECONDS name=${1#step_} before status
  name=${name/_/ }
  read_cpu_time
  before=$cpu passed=0 failed=0
  { title "$name"; "$1"; } >"$work/$1.out" 2>&1
  status=$?
  read_cpu_time
  printf '%s: %d s\n' "$name" "$((SECONDS - wall))" >>"$work/$1.out"
  cat "$work/$1.out"
  echo "$status $passed $failed ${name/ /-} $((SECONDS - wall)) $((cpu - before))" >"$ended/.$1"
  mv "$ended/.$1" "$ended/$1"
}

run_step() {
  local build
  for build in $(builds_of "$1"); do await "build_$build" || [[ $1 == lint ]] || return; done
  run_part "step_$1"
}

# run_builds STEP...: each build once that these steps need.
run_builds() {
  local step build
  for step in "$@"; do
    for build in $(builds_of "$step"); do [[ -e $ended/build_$build ]] || run_part "build_$build"; done
  done
}

is_of_tests() {
  [[ $1 =~ ^(gcc|clang|asan|tsan|reporter|valgrind)$ ]] # which uses the plans of gcc's tests
}

# Builds, and after them the steps that check what is built, go on beside the tests, many of which wait: one after the
# other they leave a quarter of the processors' time unused. Tests have limits of time, so they go first.
run_beside() {
  local step
  set +m
  renice -n 19 -p "$BASHPID" >/dev/null
  run_builds "$@"
  for step in "$@"; do is_of_tests "$step" || run_step "$step"; done
}

run_all_tests() {
  local step
  set +m
  for step in "$@"; do ! is_of_tests "$step" || run_step "$step"; done
}

{ rm -rf "$plans" "$ended" && mkdir -p "$plans" "$ended"; } || exit 1
install_packages || exit 1
install_if_possible chromium "the HTML page is tested without" chromium chromium-browser google-chrome
install_if_possible openmpi-bin "the test of eight ranks is skipped" mpirun
install_if_possible lld "programs are linked in twice the time" ld.lld
install_if_possible ccache "the build without CUDA compiles again what gcc's has compiled" ccache
install_duckdb
[[ ${1:-} == all ]] && is_broad=yes && shift
[[ $# -gt 0 ]] || set -- gcc ${is_broad:+clang} tsan reporter valgrind asan lint install ${is_broad:+fuzz}
for step in "$@"; do
  declare -F "step_$step" >/dev/null || { echo "there is no step $step"; exit 1; }
done
choose_chips
# What is done wrong with large files shows with smaller ones; their time and space are for `all`. So is the time of
# failing each allocation. Of much that tests try one after the other the commit chooses some.
if [[ -z $is_broad ]]; then
  export KPROF_TEST_MEGABYTES=2 KPROF_TEST_TRIES=some
else
  export KPROF_TEST_ALLOCATIONS_TRIED=100
fi
use_memory_for_files
set -m # so that each of the two is a process group, all of which ends when this script is interrupted
run_beside "$@" </dev/null &
builder=$!
run_all_tests "$@" </dev/null &
tester=$!
set +m
trap 'kill -- "-$builder" "-$tester"; exit 1' INT TERM HUP
wait "$builder" "$tester"
for step in "$@"; do [[ -e $ended/step_$step ]] || fail "$step did not run"; done
read -r more_passed more_failed < <(cat "$ended"/* | awk '{ p += $2; f += $3 } END { print p + 0, f + 0 }')
passed=$((passed + more_passed)) failed=$((failed + more_failed))
read_cpu_time
printf '\n%-14s %6s %6s\n' part s "CPU s"
cat "$ended"/* | awk '{ printf "%-14s %6d %6d\n", $4, $5, $6 }'
printf '%-14s %6d %6d\n' together "$SECONDS" "$cpu"
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 && $passed -gt 0 ]]
