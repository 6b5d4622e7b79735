#!/usr/bin/env bash
# Checks the rules of CONTRIBUTING.md that a machine can check. Usage: tests/lint.sh [BUILD_FOLDER [deep]]; the folder's
# compile_commands.json lets clang-tidy see every file as the compiler does. With `deep` its analyzer follows many more
# paths. Prints what is wrong; fails if anything is.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
depth=${2:-}

# Every file of the project, in a clone or in an unpacked archive.
mapfile -t files < <(git ls-files -co --exclude-standard 2>/dev/null ||
                     find . \( -path './build*' -o -path ./.git \) -prune -o -type f -printf '%P\n')
select_files() { # select_files REGEX: those that exist, one a line
  local file
  for file in "${files[@]}"; do
    [[ -f $file && $file =~ $1 ]] && printf '%s\n' "$file"
  done
}

rules=0 broken=0
rule() { # rule "what must hold" COMMAND: COMMAND prints every place where it does not
  local found
  found=$("${@:2}" 2>&1)
  rules=$((rules + 1))
  [[ -z $found ]] && return
  broken=$((broken + 1))
  printf 'lint: %s\n%s\n\n' "$1" "$(sed 's/^/  /' <<<"$found" | head -50)"
}

c_layout() {
  local tool
  tool=$(command -v clang-format-14 || command -v clang-format) || { echo "clang-format is missing"; return; }
  if ! "$tool" --version | grep -q 'version 14\.'; then # other versions lay out some lines in another way
    echo "note: the layout is checked by clang-format 14 only, this is $("$tool" --version)" >&3
    return
  fi
  select_files '\.[ch]$' | xargs -r "$tool" --dry-run 2>&1 | sed -n 's/:.* warning: .*//p' | sort -u
}

vendor_headers() {
  select_files '^src/.*\.[ch]$' | grep -vE '^src/(cupti/|host/load\.h$)' |
    xargs -r grep -nE '^ *# *include *(<|")(cupti_|cupti\.h|nvperf|cuda|generated_cuda|nvToolsExt|nvtx)'
}

# What the files of each folder may include beside their own: folders, and single headers of others. CONTRIBUTING.md,
# "Where things go", says why.
declare -A may_include=(
  [core]=''
  [code]='core/'
  [callstack]='core/'
  [spool]='core/'
  [host]='core/'
  [planner]='core/ host/'
  [metricset]='core/ host/host.h planner/'
  [report]='core/ code/code.h code/native.h spool/ planner/ metricset/'
  [cupti]='core/ spool/ host/'
  [inject]='core/ callstack/stacks.h spool/ cupti/'
  [cli]='core/ code/nvdisasm.h spool/ planner/ metricset/ report/ cupti/probe.h'
)
dependencies() {
  local folder allowed
  for folder in src/*/; do
    folder=$(basename "$folder")
    [[ -v may_include[$folder] ]] || { echo "src/$folder: tests/lint.sh does not say what it may include"; continue; }
    allowed=$(tr ' ' '|' <<<"$folder/ kprof/ ${may_include[$folder]}" | sed 's/|$//')
    select_files "^src/$folder/.*\.[ch]$" | xargs -r grep -nE '^ *# *include *"' /dev/null |
      grep -vE "include *\"($allowed)"
  done
}

# The floors of src/report: each includes those before it alone.
report_floors() {
  local floor below='report\.h'
  for floor in store model emit page diff; do
    below+="|$floor/"
    select_files "^src/report/$floor/.*\.[ch]$" | xargs -r grep -nE '^ *# *include *"report/' /dev/null |
      grep -vE "include *\"report/($below)"
  done
}

# A unit is X.c with X.h; none leads back to itself through the headers that units of its folder include.
circles() {
  local folder
  for folder in src/*/; do
    folder=$(basename "$folder")
    select_files "^src/$folder/.*\.[ch]$" | xargs -r grep -E "^ *# *include \"$folder/" /dev/null |
      sed -E 's|^src/([^:]*)\.[ch]:.*"([^"]*)\.h".*|\1 \2|' | awk '$1 != $2' | tsort 2>&1 >/dev/null |
      sed 's/^tsort: -: .*/a circle:/; s/^tsort: /  /'
  done
}

nvpw_calls() {
  select_files '^src/.*\.[ch]$' | grep -vE '^src/host/(nvpw\.c|load\.h)$' | xargs -r grep -nE '\bNVPW_[A-Z]'
}

# These folders end up inside other people's programs.
library_calls() {
  local file
  # The preloaded library stands for the C library's _exit.
  select_files '^src/(callstack|core|spool|inject|cupti|host)/.*\.c$' | grep -vx src/inject/exec.c |
  while read -r file; do
    gcc -fpreprocessed -dD -E "$file" 2>/dev/null | # without its comments
      sed -E 's/"([^"\\]|\\.)*"/""/g' | # and texts, such as PTX
      grep -nE '\b(exit|_exit|_Exit|quick_exit|abort|assert|printf|vprintf|puts|putchar|system) *\(|\bstdout\b' |
      sed "s|^|$file:|"
  done
}

functions() {
  command -v clang-tidy >/dev/null || { echo "clang-tidy is missing"; return; }
  local database=$build/compile_commands.json
  [[ -f $database ]] || { echo "$database is missing: run cmake -B $build"; return; }
  python3 tests/tidy.py "$build" ${depth:+"$depth"}
}

# Most functions are short: style, not arithmetic, so only the median counts.
median_function() {
  command -v ctags >/dev/null || { echo "universal-ctags is missing"; return; }
  select_files '^src/.*\.c$' | xargs -r ctags -x --c-kinds=f --_xformat='%{line} %{end}' |
    awk 'NF == 2 { print $2 - $1 + 1 }' | sort -n |
    awk '{ n[NR] = $1 } END { m = n[int((NR + 1) / 2)]; if (m > 20) print "the median function has " m " lines" }'
}

opening_comment() {
  local file
  select_files '^(src|include)/.*\.[ch]$' | while read -r file; do
    [[ $(head -c 2 "$file") == '/*' ]] || echo "$file:1"
  done
}

tidy_text() {
  local text='\.(c|h|cu|sql|sh|py|md|json|cmake|1|bash|yml)$|CMakeLists\.txt$|^\.ci/run$'
  select_files "$text" | xargs -r grep -nE '[[:space:]]+$' | sed 's/$/<-- space at the end/'
  select_files '\.(c|h|cu|py|sh|cmake)$|CMakeLists\.txt$' | xargs -r grep -nP '\t'
  select_files '\.(c|h|cu|py|sh)$|^src/.*\.sql$' |
    xargs -r awk 'length($0) > 120 { print FILENAME ":" FNR ": longer than 120 columns" }'
  select_files "$text" | while read -r file; do
    [[ -s $file && -n $(tail -c 1 "$file") ]] && echo "$file: no newline at the end"
  done
}

# SQLite takes a temporary table before one of the report that has the same name.
temporary_tables() {
  local made='CREATE (TEMP )?(TABLE|VIEW) [a-z_]+'
  comm -12 \
    <(select_files '^src/.*\.(c|sql)$' | xargs -r grep -ohE "$made" | sed -n 's/.* TEMP .* //p' | sort -u) \
    <(grep -oE "$made" tests/fixtures/schemas.sql | sed 's/.* //' | sort -u)
}

unfinished_work() {
  select_files '^(src|include|metricsets|completion|docs|cmake|samples)/|\.md$' |
    xargs -r grep -InE '\b(TODO|FIXME|XXX|HACK)\b'
}

# Variables that choose files, folders or libraries do not, where a program has more rights than its user. The others
# are about looks, about the program that the user names, or about other profilers.
environment() {
  select_files '^src/.*\.c$' | xargs -r grep -nE '(^|[^_])getenv\(' |
    grep -vE 'getenv\(("(NO_COLOR|COLUMNS|TERM|PATH|(CUDA|NVTX)_INJECTION64_PATH)"|name|variables\[i\])\)'
}

pages_and_formats() {
  select_files '^src/report/emit/' |
    xargs -r grep -nE '\bKPROF_PAGE_[A-Z]|\bKPROF_PAGES\b|\boptions(->|\.)page\b|->page, "'
  select_files '^src/(report/(page|diff)/.*|cli/(cmd_list|cmd_plan|cmd_explain|listing))\.[ch]$' |
    xargs -r grep -nE '\bKPROF_FORMAT(S\b|_[A-Z])|\boptions(->|\.)format\b'
}

# All files by one Python, which takes longer to start than to read most of them.
json_parses() {
  select_files '\.json$' | python3 -c '
import json, sys
for path in sys.stdin.read().splitlines():
    try:
        json.loads(open(path, encoding="utf-8").read())
    except ValueError as error:
        print(f"{path}: {error}")'
}

scripts_parse() {
  local file
  { select_files '\.(sh|bash)$' && select_files '^\.ci/run$'; } | while read -r file; do
    bash -n "$file" 2>&1
  done
  select_files '\.py$' | python3 -c '
import ast, sys
for path in sys.stdin.read().splitlines():
    try:
        ast.parse(open(path, encoding="utf-8").read(), path)
    except (SyntaxError, ValueError) as error:
        print(f"{path}: {error}")'
}

scripts_are_sound() {
  command -v shellcheck >/dev/null || { echo "shellcheck is missing"; return; }
  select_files '(\.sh|^\.ci/run|^ncu/ncu)$' | xargs -r shellcheck -S warning -f gcc
}

exec 3>&2
mutations_apply() {
  local patch run
  for patch in tests/sim/mutations/*.patch; do
    patch -p1 --dry-run -s -f <"$patch" >/dev/null || echo "$patch"
    run=$(sed -nE 's/^Run: test_([a-z]+)_(.*)/tests\/\1\/test_\2.c/p' "$patch")
    [[ ! $run || -f $run ]] || echo "$patch: there is no $run"
  done
}

rule "C files are laid out by clang-format (clang-format -i FILE)" c_layout
rule "CUDA's headers are included in src/cupti and src/host/load.h only" vendor_headers
rule "src/host/nvpw.c is the one file that calls NVPW" nvpw_calls
rule "each folder includes what CONTRIBUTING.md lets it include" dependencies
rule "each folder of src/report includes those below it alone: store, model, emit, page, diff" report_floors
rule "no file of a folder includes itself through others" circles
rule "code inside the application never exits, aborts or writes to stdout" library_calls
rule "functions have at most 100 lines, 4 parameters and 3 levels; clang-tidy finds nothing" functions
rule "the median function has at most 20 lines" median_function
rule "C files open with a comment on their job" opening_comment
rule "lines end cleanly, have no tabs and at most 120 columns" tidy_text
rule "no temporary table has the name of one of reports" temporary_tables
rule "nothing is left to be done in shipped files" unfinished_work
rule "secure_getenv asks for variables that choose files (tests/lint.sh has the others)" environment
rule "no emitter asks which page it prints, no page in which format" pages_and_formats
rule "the mutations of tests/sim apply to the engine, and their tests exist" mutations_apply
rule "patches and merges leave no copies behind" select_files '\.(orig|rej)$'
rule "JSON files parse" json_parses
rule "scripts parse" scripts_parse
rule "shellcheck finds nothing" scripts_are_sound
echo "lint: $((rules - broken)) of $rules rules hold"
[[ $broken -eq 0 ]]
