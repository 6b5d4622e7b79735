#!/usr/bin/env bash
# Break the engine in one way after the other, and see whether random programs or other tests find out. Run by hand,
# after a change of the engine, of the simulated machine or of random programs; it takes a quarter of an hour and is no
# part of CI.
#
# usage: tests/sim/mutations.sh [NAME...]     all mutations, or those of these names
#
# Each file in mutations/ says what breaks, then after "Run: " which programs find out (threads, first, count), or which
# test where the simulated machine lacks what it takes, then has the change as a patch. It is applied to a copy; the
# working tree stays as it is. These programs run with the engine as it is first. Exit status 2 when that fails, or does
# not build; 1 when a mutation does not apply or build, or is not caught. KPROF_MUTATIONS_DIR names the folder for the
# copy, to keep it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
copy=${KPROF_MUTATIONS_DIR:-}
if [ -z "$copy" ]; then
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
fi
status=0

# Files that are the same keep their time, so that a copy which is kept builds little.
mkdir -p "$copy/source" || exit 2
cd "$root" || exit 2
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -f "$file" ] || cmp -s "$file" "$copy/source/$file" || cp --parents "$file" "$copy/source"
done

change() { # PATCH [OPTION...]
  patch -d "$copy/source" -p1 -s -f -r - --no-backup-if-mismatch "${@:2}" <"$1"
}

build() { # "THREADS FIRST COUNT" or TEST
  case $1 in
  e2e_*) cmake --build "$copy/build" -j "$(nproc)" ;;
  test_*) cmake --build "$copy/build" -j "$(nproc)" --target "$1" ;;
  *) cmake --build "$copy/build" -j "$(nproc)" --target test_sim_random ;;
  esac
}

tell() { # NAME VERDICT DETAILS
  printf '%-32s %-14s %s\n' "$@"
  case $2 in DOES*) status=1 ;; esac
}

programs_of() { # PATCH
  sed -n 's/^Run: //p' "$1"
}

run() { # "THREADS FIRST COUNT" or TEST
  local run
  case $1 in
  e2e_* | test_*)
    # A broken engine may wait for ever: this ends all that the test has started.
    timeout 120 ctest --test-dir "$copy/build" -R "^$1\$" --output-on-failure --no-tests=error >"$copy/log" 2>&1
    return
    ;;
  esac
  read -ra run <<<"$1"
  "$copy/build/tests/sim/test_sim_random" "${run[@]}" >"$copy/log" 2>&1
}

# What an unbroken engine fails at tells nothing of a broken one.
check_unbroken() { # NAME...
  local name programs
  for name in "$@"; do
    programs_of "$here/mutations/$name.patch"
  done | sort -u | while IFS= read -r programs; do
    if ! { build "$programs" >"$copy/log" 2>&1 && run "$programs" </dev/null; }; then
      cat "$copy/log"
      echo "the engine fails as it is: $programs"
      exit 2
    fi
  done
}

try() { # NAME PATCH
  local programs said
  programs=$(programs_of "$2")
  if ! change "$2" --dry-run >"$copy/log" 2>&1; then
    tell "$1" 'DOES NOT APPLY' ''
    return
  fi
  change "$2"
  if ! build "$programs" >"$copy/log" 2>&1; then
    tell "$1" 'DOES NOT BUILD' "$(grep -m 1 'error:' "$copy/log")"
  elif run "$programs"; then
    tell "$1" 'NOT CAUGHT' "$programs"
    status=1
  else
    said=$(sed -nE 's/^((violation|ERROR|AssertionError): |\[  ERROR   \] --- )//p' "$copy/log" | head -n 1)
    tell "$1" caught "$programs: ${said:-the program crashed}"
  fi
  change "$2" -R
}

if ! cmake -S "$copy/source" -B "$copy/build" >"$copy/log" 2>&1; then
  cat "$copy/log"
  exit 2
fi
if [ $# -eq 0 ]; then
  for patch in "$here"/mutations/*.patch; do
    set -- "$@" "$(basename "$patch" .patch)"
  done
fi
check_unbroken "$@" || exit 2
for name in "$@"; do
  try "$name" "$here/mutations/$name.patch"
done
exit $status
