#!/bin/bash
# Times kprof side by side with ncu: bench.sh [process|unselected|table|reporter ...]; bench.py tells what each part is
# and which environment variables set counts and repetitions. Exits 77 without a GPU.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/run.sh" bench "$@"
