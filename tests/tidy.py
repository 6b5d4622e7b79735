#!/usr/bin/env python3
"""Runs clang-tidy on each unit of a build, once for each way in which it is compiled.

Usage: tests/tidy.py BUILD_FOLDER [deep]. Prints what clang-tidy finds. A unit in which it found nothing is not looked
at again until one of these changes: a file that it includes, its command, .clang-tidy, clang-tidy itself. The analyzer
takes most of the time. With `deep` it follows more than twenty times as many paths through each function, and those of
the tests, too, which AddressSanitizer runs for each change.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

NODES, NODES_DEEP = 10000, 225000  # of the analyzer's graph of a function


@functools.lru_cache(maxsize=None)
def hash_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def find_units(database):
    """The entries of the database that differ in more than the object they make."""
    units = {}
    for entry in json.loads(database.read_text()):
        words = shlex.split(entry["command"])
        at = words.index("-o")
        del words[at:at + 2]
        words.remove("-c")
        units.setdefault(tuple(words), entry)
    return list(units.items())


def object_of(entry):
    words = shlex.split(entry["command"])
    return pathlib.Path(entry["directory"], words[words.index("-o") + 1])


def read_rule(text, directory):
    """The files that a rule of make depends on."""
    return sorted(os.path.join(directory, path) for path in text.replace("\\\n", " ").split(":", 1)[1].split())


def built_from(entry):
    """The files that the compiler read for an object; None where there is none, or one of them has changed since."""
    try:
        rule = pathlib.Path(f"{object_of(entry)}.d")
        files = read_rule(rule.read_text(), entry["directory"])
        return files if all(os.path.getmtime(file) < rule.stat().st_mtime for file in files) else None
    except OSError:
        return None


def key_of(unit, tool):
    """None where the files that it includes cannot be listed."""
    words, entry = unit
    files = built_from(entry)
    if files is None:
        listed = subprocess.run([*words, "-M"], cwd=entry["directory"], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            return None
        files = read_rule(listed.stdout, entry["directory"])
    return hashlib.sha256("\0".join([tool, *words, *map(hash_of, files)]).encode()).hexdigest()


def look_at(unit, folder, is_deep):
    """The findings of clang-tidy; None where it failed without any."""
    _, entry = unit
    nodes = NODES_DEEP if is_deep else NODES
    depth = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={nodes}")]
    if not is_deep and "/tests/" in entry["file"]:
        depth = ["--checks=-clang-analyzer-*"]  # beside those of .clang-tidy
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps([entry]))
    ran = subprocess.run(["clang-tidy", "--quiet", *depth, "-p", str(folder), entry["file"]], capture_output=True,
                         text=True, check=False)
    found = [line for line in ran.stdout.splitlines() if re.search(r"(error|warning):", line)]
    if ran.returncode != 0 and not found:
        found = [f"{entry['file']}: clang-tidy failed: {ran.stderr.strip()[-300:]}"]
    return found


def main():
    build, is_deep = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] == ["deep"]
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    tool = version + hash_of(".clang-tidy") + hash_of(__file__) + str(is_deep)
    kept = build / "tidy" / "clean"
    clean_before = set(kept.read_text().split()) if kept.exists() else set()
    clean, findings = set(), set()

    def check(numbered):
        number, unit = numbered
        key = key_of(unit, tool)
        found = [] if key in clean_before else look_at(unit, build / "tidy" / str(number), is_deep)
        findings.update(found)
        if key and not found:
            clean.add(key)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(check, enumerate(find_units(build / "compile_commands.json"))))
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("\n".join(sorted(clean)) + "\n")
    print("\n".join(sorted(findings)), end="\n" if findings else "")


main()
