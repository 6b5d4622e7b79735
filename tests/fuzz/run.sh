#!/usr/bin/env bash
# Looks for inputs that make kprof crash, leak, hang or take too much memory.
#
#   tests/fuzz/run.sh SECONDS [HARNESS...]   gives each harness so many seconds: all of them unless some are named, such
#                                            as "report values"; 3600 and more is worth it after a change of a reader
#   KPROF_FUZZ_BUILD=DIR                     where to build (build/fuzz); what is learned stays in DIR/corpus
#
# Ends with a line for each harness, and fails if an input was found. It stays in DIR/found; once its cause is mended,
# put it into tests/fuzz/found/HARNESS, which the tests of AddressSanitizer's build try for each change. Needs clang.
set -u
export LC_ALL=C
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || { echo "usage: tests/fuzz/run.sh SECONDS [HARNESS...]" >&2; exit 2; }
seconds=$1
shift
source=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
build=${KPROF_FUZZ_BUILD:-$source/build/fuzz}
here=$source/tests/fuzz

mkdir -p "$build/found" || exit 1
launcher=$(command -v ccache)
# Without CUDA: only code of kprof and its libraries that read files is tried.
if ! { cmake -S "$source" -B "$build" -DKPROF_FUZZ=ON -DKPROF_WITH_CUDA=OFF -DCMAKE_C_COMPILER=clang \
         -DCMAKE_C_COMPILER_LAUNCHER="$launcher" "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g1" &&
       cmake --build "$build" -j "$(nproc)" --target fuzzers; } >"$build/build.log" 2>&1; then
  tail -30 "$build/build.log"
  exit 1
fi

# Files of a harness that ends with a fault go with this folder; in memory, where there is one.
memory=/dev/shm
[[ -w $memory ]] || memory=/tmp
TMPDIR=$(mktemp -d "$memory/kprof-fuzz.XXXXXX") || exit 1
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# kprof promises that a file of up to 10 MB is read or refused within 5 seconds and 500 MB.
limits=(-timeout=5 -rss_limit_mb=500)
export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=8:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

fuzz() {
  local name=$1 log=$build/found/$1.log dictionary=$here/dictionaries/$1.dict folders=() folder status
  for folder in "$build/tests/fuzz/seeds/$name" "$here/found/$name"; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  mkdir -p "$build/corpus/$name"
  [[ -f $dictionary ]] || dictionary=
  "$build/tests/fuzz/fuzz_$name" "${limits[@]}" -max_total_time="$seconds" -artifact_prefix="$build/found/$name-" \
    -print_final_stats=1 ${dictionary:+-dict="$dictionary"} "$build/corpus/$name" "${folders[@]}" \
    >"$log" 2>&1 </dev/null
  status=$?
  awk -v name="$name" '/^#.* cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") covered = $(i + 1) }
    /^stat::number_of_executed_units/ { runs = $2 } /^stat::average_exec_per_sec/ { speed = $2 }
    /^stat::peak_rss_mb/ { memory = $2 }
    END { printf "%-10s %10d runs %7d /s %7d edges %4d MB\n", name, runs, speed, covered, memory }' "$log"
  [[ $status -eq 0 ]] && return
  grep -E '^(SUMMARY|==[0-9]+==ERROR)|runtime error|does not hold|Test unit written' "$log"
  return 1
}

harnesses=("$@")
if [[ $# -eq 0 ]]; then
  for file in "$here"/fuzz_*.c; do
    file=${file##*/fuzz_}
    harnesses+=("${file%.c}")
  done
fi
failed=0
for harness in "${harnesses[@]}"; do
  [[ -f $here/fuzz_$harness.c ]] || { echo "there is no harness $harness" >&2; exit 2; }
  fuzz "$harness" || failed=$((failed + 1))
done
[[ $failed -eq 0 ]]
