#!/bin/sh
# Record the golden files anew from what the report prints now. Usage: tests/golden/update.sh [build folder]
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
cmake --build "$build" --target test_report_golden test_report_diff
for tests in golden diff; do
  KPROF_UPDATE_GOLDEN=1 "$build/tests/report/test_report_$tests" >/dev/null 2>&1 || true
  "$build/tests/report/test_report_$tests"
done
git --no-pager diff --stat -- tests/golden
