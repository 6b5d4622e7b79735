#!/usr/bin/env python3
"""Runs clang-tidy on each unit of a build, once for each way in which it is compiled.

Usage: tests/tidy.py BUILD_FOLDER [deep]. Prints what clang-tidy finds. Units in which it found nothing are not looked
at again until one of these changes: a file that it includes, its command, .clang-tidy, clang-tidy itself. The analyzer
takes most of the time. With `deep` it follows seventy times as many paths through each function, and those of the
tests, too, which AddressSanitizer runs for each change.
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

NODES, NODES_DEEP = 3000, 225000  # of the analyzer's graph of a function
BATCH = 16  # units that one clang-tidy looks at


@functools.lru_cache(maxsize=None)
def hash_of(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def find_units(database):
    """Entries of the database, by their commands without the object: those that differ in more than that."""
    units = {}
    for entry in json.loads(database.read_text()):
        words = shlex.split(entry["command"])
        at = words.index("-o")
        del words[at:at + 2]
        words.remove("-c")
        units.setdefault(tuple(words), entry)
    return units


def object_of(entry):
    words = shlex.split(entry["command"])
    return pathlib.Path(entry["directory"], words[words.index("-o") + 1])


def read_rule(text, directory):
    """The files that a rule of make depends on."""
    return sorted(os.path.join(directory, path) for path in text.replace("\\\n", " ").split(":", 1)[1].split())


@functools.lru_cache(maxsize=None)
def read_by_ninja(build):
    """The files that the compiler read for each object; empty where another program than ninja has built them."""
    if not (build / "build.ninja").exists():
        return {}
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False).stdout
    blocks = [block.splitlines() for block in listed.split("\n\n") if "(VALID)" in block]
    return {build / lines[0].split(": #deps")[0]: sorted(str(build / line.strip()) for line in lines[1:])
            for lines in blocks}


def built_from(entry):
    """The files that the compiler read for an object; None where there is none, or one of them has changed since."""
    made = object_of(entry)
    rule = pathlib.Path(f"{made}.d")
    try:
        files = read_by_ninja(pathlib.Path(entry["directory"])).get(made) or read_rule(rule.read_text(),
                                                                                       entry["directory"])
        return files if all(os.path.getmtime(file) < made.stat().st_mtime for file in files) else None
    except OSError:
        return None


def key_of(words, entry, tool):
    """None where the files that it includes cannot be listed."""
    files = built_from(entry)
    if files is None:
        listed = subprocess.run([*words, "-M"], cwd=entry["directory"], capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            return None
        files = read_rule(listed.stdout, entry["directory"])
    return hashlib.sha256("\0".join([tool, *words, *map(hash_of, files)]).encode()).hexdigest()


def look_at(entries, folder, is_deep):
    """The findings of clang-tidy in units that are all of src or all of the tests; one process is quicker than many."""
    files = sorted({entry["file"] for entry in entries})
    nodes = NODES_DEEP if is_deep else NODES
    depth = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={nodes}")]
    if not is_deep and is_test(entries[0]):
        depth = ["--checks=-clang-analyzer-*"]  # beside those of .clang-tidy
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    ran = subprocess.run(["clang-tidy", "--quiet", *depth, "-p", str(folder), *files], capture_output=True, text=True,
                         check=False)
    found = [line for line in ran.stdout.splitlines() if re.search(r"(error|warning):", line)]
    if ran.returncode != 0 and not found:
        found = [f"{', '.join(files)}: clang-tidy failed: {ran.stderr.strip()[-300:]}"]
    return found


def is_test(entry):
    return "/tests/" in entry["file"]


def batches_of(units):
    """Some units each, the tests apart. Neighbours take about as long, so they go to different batches."""
    for wanted in (False, True):
        part = [words for words, entry in units.items() if is_test(entry) == wanted]
        count = -(-len(part) // BATCH)
        yield from (part[i::count] for i in range(count))


def main():
    build, is_deep = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] == ["deep"]
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    tool = version + hash_of(".clang-tidy") + hash_of(__file__) + str(is_deep)
    kept = build / "tidy" / "clean"
    clean_before = set(kept.read_text().split()) if kept.exists() else set()
    units, findings = find_units(build / "compile_commands.json"), set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        keys = dict(zip(units, pool.map(lambda words: key_of(words, units[words], tool), units)))
        clean = clean_before.intersection(keys.values())

        def check(numbered):
            number, batch = numbered
            found = look_at([units[words] for words in batch], build / "tidy" / str(number), is_deep)
            findings.update(found)
            if not found:
                clean.update(filter(None, map(keys.get, batch)))

        unknown = {words: entry for words, entry in units.items() if keys[words] not in clean}
        list(pool.map(check, enumerate(batches_of(unknown))))
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("\n".join(sorted(clean)) + "\n")
    print("\n".join(sorted(findings)), end="\n" if findings else "")


main()
