#!/usr/bin/env python3
"""Runs command lines of ncu with ncu and with kprof on one program, and compares the launches and the metrics that they
collect. Also counts what torch.cuda.profiler, CuPy and Numba choose under kprof, where these are installed.

    ncu_lines.py [--no-ncu] [--output FILE]

ncu always gets --clock-control none. Exits with 1 where kprof chooses other launches than the line asks for, or lacks a
metric that the line names."""
import argparse
import pathlib
import re
import shlex
import sqlite3
import sys
import tempfile

import harness

LINES = pathlib.Path(__file__).with_name("ncu_lines.txt")
SHOWN = 4  # names in a cell of the table
# One launch is between the calls, and others are before and after.
SNIPPETS = [
    ("torch.cuda.profiler", "import torch\nx = torch.ones(1 << 16, device='cuda')\ntorch.cuda.synchronize()\n"
     "torch.cuda.profiler.start()\ny = x * 3\ntorch.cuda.synchronize()\ntorch.cuda.profiler.stop()\ny = x - 2\n"
     "torch.cuda.synchronize()\n"),
    ("CuPy", "import cupy\nx = cupy.ones(1 << 16, dtype=cupy.float32)\ny = x + 1\ncupy.cuda.Device().synchronize()\n"
     "cupy.cuda.runtime.profilerStart()\ny = x * 3\ncupy.cuda.Device().synchronize()\n"
     "cupy.cuda.runtime.profilerStop()\ny = x - 2\ncupy.cuda.Device().synchronize()\n"),
    ("Numba", "import numpy\nfrom numba import cuda\n@cuda.jit\ndef triple(x):\n    x[cuda.grid(1)] *= 3\n"
     "x = cuda.to_device(numpy.ones(1024, dtype=numpy.float32))\ntriple[4, 256](x)\ncuda.synchronize()\n"
     "cuda.profile_start()\ntriple[4, 256](x)\ncuda.synchronize()\ncuda.profile_stop()\ntriple[4, 256](x)\n"
     "cuda.synchronize()\n"),
]


def read_lines(text):
    """[(options, argument of the program, numbers of launches)]"""
    lines = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            options, argument, launches = line.split(" | ")
            lines.append((shlex.split(options), argument, [int(number) for number in launches.split()]))
    return lines


def is_facts(name):
    """What describes the device and ncu itself, and which --page raw has always."""
    return name.startswith(("device__attribute_", "profiler__", "numa__", "nvlink__", "c2clink__"))


def of_ncu(text):
    """(numbers of launches, names of metrics) of ncu's raw page."""
    launches, _ = harness.parse_ncu_raw(text)
    rows = re.findall(r'^"\d+",.*$', text, re.MULTILINE)
    grids = [re.findall(r'"\((\d+), *1, *1\)"', row) for row in rows]  # the block and the grid
    names = {name for launch in launches for name in launch.metrics if not is_facts(name)}
    return sorted(int(grid[1]) for grid in grids), names


def of_kprof(base):
    """The same of a report."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        numbers = [row[0] for row in database.execute("SELECT grid_x FROM launch ORDER BY grid_x")]
        names = {row[0] for row in database.execute("SELECT metric FROM launch_metrics WHERE value IS NOT NULL")}
    return numbers, {name for name in names if not is_facts(name) and "pct_spread_over_passes" not in name}


def missing_names(options, names):
    """Full names that the line asks for, and that are not among these."""
    given = [value for option, value in zip(options, options[1:]) if option == "--metrics"]
    full = [name for value in given for name in value.split(",") if re.fullmatch(r"\w+__\w+\.[\w.]+", name)]
    return [name for name in full if name not in names]


def shorten(names):
    names = sorted(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def compare(line, folder, with_ncu):
    """A row of the table."""
    options, argument, wanted = line
    program = [harness.programs() / "profiler_calls", argument]
    base = f"{folder}/run"
    under = harness.run([harness.kprof(), *options, "-f", "-o", base, *program], limit=300)
    shown = [" ".join(options), argument]
    if under.status != 0:
        return [*shown, f"status {under.status}: {harness.last_lines(under.stderr, 2)}", "", "", "", "**fail**"]
    chosen, names = of_kprof(base)
    missing = missing_names(options, names)
    is_right = chosen == wanted and not missing
    verdict = "pass" if is_right else "**fail**" + (f": no {shorten(missing)}" if missing else "")
    if not with_ncu:
        return [*shown, str(chosen), "not run", "", "", verdict]
    log = f"{folder}/ncu.csv"
    pathlib.Path(log).unlink(missing_ok=True)
    other = harness.run([harness.ncu(), *options, "--clock-control", "none", "--csv", "--page", "raw", "--log-file",
                         log, *program], limit=600)
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace") if pathlib.Path(log).exists() else ""
    theirs, their_names = of_ncu(text)
    if not theirs:
        return [*shown, str(chosen), f"status {other.status}: {harness.last_lines(text + other.stdout, 2)}", "", "",
                verdict]
    if is_right and theirs != chosen:
        verdict = "pass; ncu differs"
    only_theirs = their_names - names
    return [*shown, str(chosen), str(theirs), f"{len(names & their_names)} of {len(their_names)}",
            shorten(only_theirs), verdict]


def check_snippet(name, text, folder):
    program = [sys.executable, "-c", text]
    plain = harness.run(program, limit=300)
    if "ModuleNotFoundError" in plain.stderr or "ImportError" in plain.stderr:
        return [name, "not installed", "skipped"]
    if plain.status != 0:
        return [name, f"does not run alone: {harness.last_lines(plain.stderr, 2)}", "skipped"]
    base = f"{folder}/snippet"
    under = harness.run([harness.kprof(), "--profile-from-start", "off", "--metrics", "gpu__time_duration.sum", "-f",
                         "-o", base, *program], limit=300)
    if under.status != 0:
        return [name, f"status {under.status}: {harness.last_lines(under.stderr, 2)}", "**fail**"]
    launches, _ = harness.read_report(base)
    kernels = ", ".join(launch.kernel.partition("(")[0] for launch in launches)
    return [name, kernels, "pass" if len(launches) == 1 else "**fail**"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-ncu", action="store_true", help="do not compare with ncu")
    parser.add_argument("--output", help="Markdown file (ncu_lines.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with_ncu = bool(harness.ncu()) and not options.no_ncu
    rows, frameworks = [], []
    with tempfile.TemporaryDirectory(prefix="kprof-lines-") as folder:
        for line in read_lines(LINES.read_text(encoding="utf-8")):
            rows.append(compare(line, folder, with_ncu))
            print(*rows[-1], sep=": ", flush=True)
        for name, text in SNIPPETS:
            frameworks.append(check_snippet(name, text, folder))
            print(*frameworks[-1], sep=": ", flush=True)
    document = harness.Document(options.output or harness.results_folder() / "ncu_lines.md")
    document.add("# Command lines of ncu, under kprof and under ncu\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/ncu_lines.py")))
    document.add("The launches of programs/profiler_calls.cu, by their numbers, that each line collects, and how many "
                 "of ncu's metrics kprof has too:\n")
    document.add(harness.table(["options", "argument", "kprof's launches", "ncu's launches", "metrics in both",
                                "in ncu's alone", "verdict"], rows))
    document.add("What is between the calls of a framework's profiler:\n")
    document.add(harness.table(["framework", "launches", "verdict"], frameworks))
    return 1 if any("fail" in row[-1] for row in rows + frameworks) else 0


if __name__ == "__main__":
    sys.exit(main())
