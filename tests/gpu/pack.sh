#!/bin/bash
# Packs kprof and the test programs for a machine that has a GPU and no compiler: pack.sh FILE.tar.gz. There:
#
#   tar -xzf FILE.tar.gz -C FOLDER
#   KPROF=FOLDER/kprof/bin/kprof KPROF_GPU_PROGRAMS=FOLDER/programs KPROF_COMMIT=$(cat FOLDER/commit) tests/gpu/run.sh
#
# What it builds is kept in build/gpu-pack. KPROF_CUDA_ARCH chooses the target of the programs (sm_90).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/gpu-pack
[ $# -eq 1 ] || { echo "usage: pack.sh FILE.tar.gz" >&2; exit 2; }

generator=()
command -v ninja >/dev/null && generator=(-G Ninja)
rm -rf "$work/pack"
mkdir -p "$work/pack"
# shellcheck disable=SC2016 # the loader expands it
# The other machine may lack the libraries of the command line; the injection library needs none.
cmake "${generator[@]}" -S "$root" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
  -DCMAKE_INSTALL_PREFIX="$work/pack/kprof" -DCMAKE_INSTALL_RPATH='$ORIGIN/../lib/kprof/needed' >"$work/log" ||
  { cat "$work/log"; exit 1; }
cmake --build "$work/build" -j "$(nproc)"
cmake --install "$work/build" >"$work/log"
mkdir "$work/pack/kprof/lib/kprof/needed"
ldd "$work/build/src/cli/kprof" | awk '$2 == "=>" && $1 !~ /^lib(c|m)\.so/ { print $3 }' |
  xargs -r cp -Lt "$work/pack/kprof/lib/kprof/needed"
KPROF_CUDA_ARCH=${KPROF_CUDA_ARCH:-sm_90} "$here/build.sh" "$work/programs"
cp -r "$work/programs" "$work/pack"
git -C "$root" describe --always --dirty >"$work/pack/commit"
tar -czf "$1" -C "$work/pack" .
ls -l "$1"
