#!/bin/bash
# Runs the checks that need a GPU, and says so and exits 77 where there is none, or time for a part of them.
#
#   run.sh [PART [ARGUMENT...]]
#
# Without a PART: validate, behave and graphs. Parts: build, validate, values, behave, graphs, exact, bench,
# frameworks, multiplex, findings, planted, pairs, nvtx, ncu_lines, ncu_csv, source, source_ncu, lines, pm_sampling,
# stacks, control, trace, trace_torch, utilization, application, waits, census, carveouts, ranks, facts; their arguments
# are those of the script of that name.
# `validate` compares values with ncu's, `values` those of batches with those of launches repeated alone; `graphs`
# measures a CUDA graph kernel by kernel and as one launch; `exact` runs the programs of exact/, each a kind of
# memory, launch or ending that replay must not disturb, plain and under every mode, and compares; `frameworks` runs
# programs of PyTorch, JAX, Triton and CuPy plain, under kprof and under ncu; `multiplex` measures without repeating;
# `findings` records kernels that show one performance problem each; `planted` looks for the lines of faults in code
# as programs have it; `pairs` holds findings to kernels that were
# mended; `nvtx` compares the NVTX ranges of launches with those that programs open, and the launches that expressions
# choose with those that ncu chooses; `ncu_lines` runs command lines of ncu with both tools, and compares what they
# collect, `ncu_csv` what they print as CSV;
# `source` compares what is counted of instructions with what is counted of their launches, `source_ncu` the
# source pages of both tools; `lines` looks for the lines of kernels of each compiler; `pm_sampling` compares means
# over time with values of the launch; `stacks` looks for the lines of a program of PyTorch; `control` times a
# training loop under kprof that is not armed, measures a step of it, and lets torch.profiler record beside it; `trace`
# traces programs with known gaps, copies and overlaps; `trace_torch` compares traces of programs of PyTorch with
# torch.profiler's, and tells what tracing costs; `application` compares application replay with repeated launches.
# `utilization` samples programs whose use of the GPU over time is known, and tells what that costs.
# `census` measures the kernels with most time of a program of PyTorch in the run that counts all.
# `carveouts` compares what SMs are configured for with ncu's.
# `ranks` trains on all GPUs of the machine, of which there must be two, with a process for each.
# `waits` runs programs whose GPU waits for the host, another stream or another process, and some that end without a
# word.
# Environment:
#   KPROF               kprof to test (build/src/cli/kprof)
#   KPROF_GPU_PROGRAMS  folder of the test programs (build/gpu-programs), built when they are missing or old
#   KPROF_GPU_RESULTS   folder for the results as Markdown (build/gpu-results)
#   KPROF_COMMIT        the commit that the results name, where git does not know
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export KPROF=${KPROF:-$root/build/src/cli/kprof}
export KPROF_GPU_PROGRAMS=${KPROF_GPU_PROGRAMS:-$root/build/gpu-programs}
export KPROF_GPU_RESULTS=${KPROF_GPU_RESULTS:-$root/build/gpu-results}
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

skip() {
  echo "run.sh: skipped: $1" >&2
  exit 77
}

have_programs() {
  local source
  for source in "$here"/programs/*.cu; do
    [ -x "$KPROF_GPU_PROGRAMS/$(basename "$source" .cu)" ] || return 1
  done
  for source in "$here"/exact/*.cu; do
    case $(basename "$source" .cu) in
      module_kernels) [ -f "$KPROF_GPU_PROGRAMS/exact-module.cubin" ] || return 1 ;;
      plugin) [ -f "$KPROF_GPU_PROGRAMS/exact-plugin.so" ] || return 1 ;;
      *) [ -x "$KPROF_GPU_PROGRAMS/exact-$(basename "$source" .cu)" ] || return 1 ;;
    esac
  done
  [ -x "$KPROF_GPU_PROGRAMS/vectorAdd" ] && [ -x "$KPROF_GPU_PROGRAMS/findings" ] &&
    [ -x "$KPROF_GPU_PROGRAMS/pairs" ] && [ -x "$KPROF_GPU_PROGRAMS/planted" ]
}

# Programs built elsewhere will do where there is no compiler.
build_programs() {
  if ! "$here/build.sh" "$KPROF_GPU_PROGRAMS"; then
    have_programs || skip "the test programs cannot be built"
    echo "run.sh: using the programs in $KPROF_GPU_PROGRAMS as they are" >&2
  fi
}

need_gpu() {
  nvidia-smi -L 2>/dev/null | grep -q GPU || skip "no GPU"
  command -v python3 >/dev/null || skip "no python3"
  [ -x "$KPROF" ] || { echo "run.sh: $KPROF is not there: build kprof first, or set KPROF" >&2; exit 1; }
}

facts() {
  uname -a
  nvidia-smi
  "$KPROF" --version
  grep -i admin /proc/driver/nvidia/params || true
  ls -l "$KPROF_GPU_PROGRAMS"
}

# part NAME ARGUMENTS...: run one and remember how it ended.
outcomes=()
part() {
  local name=$1 status=0 start=$SECONDS
  shift
  case $name in
    build) ;;
    facts) facts ;;
    validate | values | behave | graphs | exact | bench | frameworks | multiplex | findings | planted | pairs | nvtx | \
      ncu_lines | ncu_csv | source | source_ncu | lines | pm_sampling | stacks | control | trace | \
      trace_torch | utilization | application | waits | census | carveouts | ranks)
      python3 "$here/$name.py" "$@" || status=$? ;;
    *) echo "run.sh: unknown part $name" >&2; status=2 ;;
  esac
  outcomes+=("$(printf '| %-10s | %6s | %4s s |' "$name" "$status" $((SECONDS - start)))")
  case $status in
    0) ;;
    77) [ "$outcome" -ne 0 ] || outcome=77 ;;
    *) outcome=1 ;;
  esac
}

outcome=0
if [ "${1:-}" = build ]; then
  "$here/build.sh" "$KPROF_GPU_PROGRAMS"
  exit
fi
need_gpu
build_programs
mkdir -p "$KPROF_GPU_RESULTS"
if [ $# -gt 0 ]; then
  part "$@"
else
  part validate
  part behave
  part graphs
fi
printf '\n| part       | status | time   |\n|------------|--------|--------|\n'
printf '%s\n' "${outcomes[@]}"
echo "Results are in $KPROF_GPU_RESULTS"
exit "$outcome"
