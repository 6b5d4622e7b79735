#!/bin/sh
# Makes blocks.ptx from blocks.cu. Run it after a change of blocks.cu; it needs nvcc.
set -eu
cd "$(dirname "$0")"
ptx=$(mktemp)
trap 'rm -f "$ptx"' EXIT
"${NVCC:-nvcc}" -ptx -arch=compute_75 -O3 blocks.cu -o "$ptx"
{
  echo '// Made from blocks.cu by make_blocks.sh: do not edit. The version is lowered so that older drivers take it.'
  sed -e 's/^\.version .*/.version 6.5/' -e '/^\/\//d' -e '/^$/d' -e 's/\t/  /g' "$ptx"
} >blocks.ptx
