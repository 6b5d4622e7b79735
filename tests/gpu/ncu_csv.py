#!/usr/bin/env python3
"""Prints one program's launches with ncu and with kprof under that name, and compares what a script would read: the
columns, the metrics, their units, and how numbers are written.

    ncu_csv.py [--output FILE]

Both tools run in the C locale. Exits with 1 where kprof lacks a column of ncu's, or writes units or numbers of the
launch, or the decimals of others, in other ways. What else ncu alone prints is listed."""
import argparse
import csv
import os
import pathlib
import re
import sys
import tempfile

import harness

SHOWN = 6  # names in a cell of the table
SECTIONS = ["--section", "LaunchStats", "--section", "Occupancy", "--section", "SpeedOfLight"]
LINES = [
    [*SECTIONS],
    ["--set", "full"],
    [*SECTIONS, "--print-details", "all"],
    [*SECTIONS, "--print-units", "base"],
    [*SECTIONS, "--print-metric-name", "name"],
    [*SECTIONS, "--print-metric-name", "label-name"],
    [*SECTIONS, "--print-summary", "per-kernel"],
    [*SECTIONS, "--page", "raw"],
    [*SECTIONS, "--page", "raw", "--print-units", "base"],
    [*SECTIONS, "--page", "raw", "--print-fp"],
    [*SECTIONS, "--print-fp"],
    ["--metrics", "gpu__time_duration.sum,dram__bytes.sum,launch__grid_size,launch__block_size"],
    ["--metrics", "gpu__time_duration,launch__registers_per_thread", "--page", "raw"],
]
# What depends on the launch alone, so that both tools must print the same.
SAME = ("launch__", "Block Size", "Grid Size", "Registers Per Thread", "Threads", "Waves Per SM", "Theoretical",
        "Static Shared", "Dynamic Shared", "Driver Shared", "Block Limit")
# ncu keeps what it computes a derived metric from under this name, and its documentation does not tell what that is.
OWN = "derived_tempMetric"
# What is so of the run, or of the driver.
NUMBERED = ("launch__context_id", "launch__stream_id", "launch__shared_mem_config_size")


def decimals(value):
    """How many a number has; None: it is whole, which some values are by chance, or no number."""
    number = re.fullmatch(r"-?[\d,]+\.(\d+)", value)
    return len(number[1]) if number else None


def rows_of(text):
    """[header, row...] of the CSV among other lines, or []."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith(('"ID"', '"Process ID"'))), None)
    return [] if start is None else list(csv.reader(line for line in lines[start:] if line.startswith('"')))


def cells_of(rows):
    """{(kernel, section, metric): (unit, value)}; the first launch of a kernel tells."""
    header, found = rows[0], {}
    is_raw = "Metric Name" not in header
    units = dict(zip(header, rows[1])) if is_raw else {}
    for row in rows[2:] if is_raw else rows[1:]:
        cells = dict(zip(header, row))
        kernel = cells["Kernel Name"].partition("(")[0]
        if is_raw:
            for name in header[header.index("CC") + 1:]:
                found.setdefault((kernel, "", name), (units[name], cells.get(name, "")))
        elif cells["Metric Name"]:
            value = cells.get("Metric Value", cells.get("Average", ""))
            found.setdefault((kernel, cells.get("Section Name", ""), cells["Metric Name"]),
                             (cells["Metric Unit"], value))
    return found


def shorten(names):
    names = sorted(set(names))
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def compare(theirs, ours):
    """(columns that ours lack, names that ours lack, cells that differ, cells in both) of two tables."""
    lacking = [name for name in theirs[0] if name not in ours[0] and not name.startswith(OWN) and
               ("Metric Name" in theirs[0] or "__" not in name)]
    their_cells, our_cells = cells_of(theirs), cells_of(ours)
    both = sorted(their_cells.keys() & our_cells.keys())
    names = [key[2] for key in their_cells.keys() - our_cells.keys()]
    differing = []
    for key in both:
        (unit, value), (our_unit, our_value) = their_cells[key], our_cells[key]
        if key[2].startswith(SAME) and key[2] not in NUMBERED and (unit, value) != (our_unit, our_value):
            differing.append(f"{key[2]}: {value} {unit}, kprof {our_value} {our_unit}")
        elif ("," in value) != ("," in our_value) or (None not in (decimals(value), decimals(our_value)) and
                                                      decimals(value) != decimals(our_value)):
            differing.append(f"{key[2]}: {value}, kprof {our_value}")
    return lacking, names, differing, len(both)


def printed(tool, options, program):
    environment = {**os.environ, "LC_ALL": "C"}
    result = harness.run([tool, *options, "--clock-control", "none", "--csv", *program], limit=300, env=environment)
    return rows_of(result.stdout), harness.last_lines(result.stderr or result.stdout, 2)


def check(options, link, program):
    """A row of the table."""
    theirs, why = printed(harness.ncu(), options, program)
    if not theirs:
        return [" ".join(options), "", "", "", f"ncu printed no table: {why}"]
    ours, why = printed(link, options, program)
    if not ours:
        return [" ".join(options), "", "", "", f"**fail**: no table: {why}"]
    lacking, names, differing, both = compare(theirs, ours)
    verdict = "**fail**" if lacking or differing else "pass"
    said = [f"no columns {shorten(lacking)}"] * bool(lacking) + [shorten(differing)] * bool(differing)
    return [" ".join(options), str(both), shorten(names), "; ".join(said), verdict]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="Markdown file (ncu_csv.md among the results)")
    options = parser.parse_args()
    harness.need_gpu(and_ncu=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="kprof-csv-") as folder:
        link = pathlib.Path(folder, "ncu")
        link.symlink_to(harness.kprof())
        for line in LINES:
            rows.append(check(line, link, [harness.programs() / "profiler_calls", "none"]))
            print(*rows[-1], sep=": ", flush=True)
    document = harness.Document(options.output or harness.results_folder() / "ncu_csv.md")
    document.add("# What ncu prints as CSV, and kprof under that name\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/ncu_csv.py")))
    document.add(harness.table(["options", "cells in both", "in ncu's alone", "differences", "verdict"], rows))
    return 1 if any("fail" in row[-1] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
