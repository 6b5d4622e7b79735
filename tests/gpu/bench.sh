#!/bin/bash
# Times kprof side by side with ncu: bench.sh [--only PART[,PART]] [--rows ROW[,ROW]], or bench.sh --merge FILE... for
# one document of several. bench.py tells what each part is and which environment variables set counts and repetitions.
# Exits 77 without a GPU, which --merge does not need.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --merge ]; then
  exec python3 -B "$here/bench.py" "$@"
fi
exec "$here/run.sh" bench "$@"
