#!/bin/bash
# Sets kprof up and shows it at work: installs the Debian packages that are missing, builds into build/, and profiles
# samples/vectorAdd. Without a GPU, or without a CUDA toolkit, it prints a run that was recorded on an H200.
#
#   samples/demo.sh            everything
#   samples/demo.sh --report   build, then print the recorded run even where there is a GPU
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
kprof=$build/src/cli/kprof
recorded=$root/samples/vectorAdd-h200.kprof
packages=(gcc g++ make cmake pkg-config libcjson-dev libcsv-dev libcmocka-dev libdw-dev libpcre2-dev libsqlite3-dev
          libiberty-dev)

say() {
  printf '\n== %s\n' "$*" >&2
}

run_as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "demo.sh: as root, run: $*" >&2
    return 1
  fi
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "This is not a Debian system: the packages of ${packages[*]} are taken to be there"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing ${missing[*]}"
  run_as_root apt-get update -qq
  run_as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

build_kprof() {
  say "Building kprof into $build"
  cmake -S "$root" -B "$build" >&2
  cmake --build "$build" -j "$(nproc)" >&2
}

find_nvcc() {
  command -v nvcc && return
  local candidate
  for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /opt/cuda/bin/nvcc; do
    [ -x "$candidate" ] && echo "$candidate" && return
  done
  return 1
}

# Why the sample cannot be profiled here; nothing when it can.
obstacle() {
  if ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
    echo "there is no NVIDIA GPU here"
  elif ! find_nvcc >/dev/null; then
    echo "there is no CUDA toolkit here (no nvcc; set CUDA_HOME to one)"
  elif [ ! -e "$build/src/inject/libkprof-inject.so" ]; then
    echo "this build of kprof is the reporter alone (cmake found no cupti.h; set CUDA_HOME)"
  fi
}

build_sample() {
  local target=$build/vectorAdd
  "$(find_nvcc)" -O2 -arch=native -o "$target" "$root/samples/vectorAdd/vectorAdd.cu" >&2
  echo "$target"
}

profile_sample() {
  local sample
  sample=$(build_sample)
  say "kprof --set full -k vectorAdd $sample"
  "$kprof" --set full -k vectorAdd --page details -f -o "$build/vectorAdd" "$sample"
  say "The report is $build/vectorAdd.kprof. Next: $kprof report $build/vectorAdd.kprof --page raw --csv"
}

show_recorded() {
  say "Not profiling: $1. This is a run recorded on an H200, samples/vectorAdd-h200.kprof:"
  "$kprof" report "$recorded" --page details
  say "Next: $kprof report $recorded --page raw --csv"
}

recorded_only=""
case "$#:${1:-}" in
  0:) ;;
  1:--report) recorded_only="the recorded run was asked for" ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
install_packages
build_kprof
reason=${recorded_only:-$(obstacle)}
if [ -n "$reason" ]; then
  show_recorded "$reason"
else
  profile_sample
fi
