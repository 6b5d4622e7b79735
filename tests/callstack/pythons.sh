#!/usr/bin/env bash
# Runs check_python.py in every Python of 3.9 on that this machine has; exit status 77 where there is none. Usage:
# pythons.sh WALKER_LIBRARY [cost]
set -u
folder=$(dirname "$0") ran=0 failed=0
for python in python3 python3.{9..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3; do
  path=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable) if sys.version_info >= (3, 9) else "")' \
    2>/dev/null) || continue
  [[ -z $path || " ${seen:-} " == *" $path "* ]] && continue
  seen+=" $path"
  ran=$((ran + 1))
  "$path" -B "$folder/check_python.py" "$@" || failed=$((failed + 1))
done
[[ $ran -gt 0 ]] || exit 77
exit $((failed > 0))
