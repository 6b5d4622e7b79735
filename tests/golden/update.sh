#!/bin/sh
# Record the golden files anew from what the report prints now. Usage: tests/golden/update.sh [build folder]
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
cmake --build "$build" --target test_report_golden
KPROF_UPDATE_GOLDEN=1 "$build/tests/report/test_report_golden" >/dev/null 2>&1 || true
"$build/tests/report/test_report_golden"
git --no-pager diff --stat -- tests/golden
