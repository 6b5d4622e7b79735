#!/bin/bash
# Builds the test programs with nvcc: build.sh [FOLDER], by default build/gpu-programs. Programs that are newer than
# their sources are kept. KPROF_CUDA_ARCH chooses the target ("sm_90" unless a GPU says otherwise).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/build/gpu-programs}

find_nvcc() {
  command -v nvcc && return
  local candidate
  for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /opt/cuda/bin/nvcc; do
    [ -x "$candidate" ] && echo "$candidate" && return
  done
  echo "build.sh: no nvcc found: set CUDA_HOME to a CUDA toolkit" >&2
  return 1
}

gpu_arch() {
  local capability
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '.' || true)
  echo "sm_${capability:-90}"
}

# compile TARGET SOURCE OPTIONS...
compile() {
  local target=$out/$1 source=$2
  shift 2
  if [ "$target" -nt "$source" ] && [ "$target" -nt "$here/programs/check.h" ] &&
    [ "$target" -nt "$here/programs/sweep.h" ] && [ "$target" -nt "$here/programs/spin.h" ] &&
    [ "$target" -nt "$here/exact/exact.h" ]; then
    return
  fi
  "$nvcc" -arch="$arch" -O2 -Xlinker -s "$@" -o "$target.new" "$source"
  mv "$target.new" "$target"
}

# compile_folder NAME: one program of several sources, with lines.
compile_folder() {
  local target=$out/$1 file old=
  for file in "$here/$1"/*.cu "$here/$1"/*.h "$here/programs/check.h"; do
    [ "$target" -nt "$file" ] || old=1
  done
  [ -n "$old" ] || return 0
  "$nvcc" -arch="$arch" -O2 -Xlinker -s -cudart static -lineinfo -t "$(nproc)" -o "$target.new" "$here/$1"/*.cu
  mv "$target.new" "$target"
}

# The same, with instructions in clock.cu that one generation has.
compile_pairs() {
  local target=$out/pairs folder file name old=
  for file in "$here"/pairs/*.cu "$here/pairs/pairs.h" "$here/programs/check.h"; do
    [ "$target" -nt "$file" ] || old=1
  done
  [ -n "$old" ] || return 0
  folder=$(mktemp -d)
  for file in "$here"/pairs/*.cu; do
    name=$(basename "$file" .cu)
    if [ "$name" = clock ]; then
      "$nvcc" -gencode arch=compute_90a,code=sm_90a -O2 -c -o "$folder/$name.o" "$file"
    else
      "$nvcc" -arch="$arch" -O2 -c -o "$folder/$name.o" "$file"
    fi
  done
  "$nvcc" -arch="$arch" -Xlinker -s -cudart static -o "$target.new" "$folder"/*.o
  rm -r "$folder"
  mv "$target.new" "$target"
}

# At most as many compilers as processors.
make_room() {
  [ "$(jobs -rp | wc -l)" -lt "$(nproc)" ] || wait -n
}

nvcc=$(find_nvcc)
arch=${KPROF_CUDA_ARCH:-$(gpu_arch)}
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
mkdir -p "$out"

jobs=()
compile vectorAdd "$root/samples/vectorAdd/vectorAdd.cu" -cudart static & jobs+=($!)
compile vectorAdd-shared "$root/samples/vectorAdd/vectorAdd.cu" -cudart shared & jobs+=($!)
compile transpose-before "$root/samples/transpose/transpose.cu" -cudart static -lineinfo -DTILE_ROW=32 & jobs+=($!)
compile transpose-after "$root/samples/transpose/transpose.cu" -cudart static -lineinfo -DTILE_ROW=33 & jobs+=($!)
for source in "$here"/programs/*.cu; do
  options=(-cudart static)
  case $(basename "$source") in
    driver_api.cu | compression.cu | waits.cu) options+=(-L"$cuda/lib64/stubs" -L"$cuda/lib/stubs" -lcuda) ;;
  esac
  compile "$(basename "$source" .cu)" "$source" "${options[@]}" & jobs+=($!)
  make_room
done
for source in "$here"/exact/*.cu; do
  name=exact-$(basename "$source" .cu)
  options=(-cudart static -L"$cuda/lib64/stubs" -L"$cuda/lib/stubs" -lcuda)
  case $name in
    exact-module_kernels)
      compile exact-module.ptx "$source" -ptx & jobs+=($!)
      compile exact-module.cubin "$source" -cubin & jobs+=($!)
      continue
      ;;
    exact-plugin)
      compile exact-plugin.so "$source" -shared -Xcompiler -fPIC -cudart static & jobs+=($!)
      continue
      ;;
    exact-streams) compile exact-streams-per-thread "$source" -default-stream per-thread "${options[@]}" & jobs+=($!) ;;
    exact-device_side) options+=(-rdc=true -lcudadevrt) ;;
  esac
  compile "$name" "$source" "${options[@]}" & jobs+=($!)
  make_room
done
compile_folder findings & jobs+=($!)
compile_folder planted & jobs+=($!)
compile_pairs & jobs+=($!)
for job in "${jobs[@]}"; do
  wait "$job"
done
echo "build.sh: programs for $arch are in $out"
