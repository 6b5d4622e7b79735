#!/usr/bin/env python3
"""No verdict on chance: the equal launches of a report are split into two halves in some ways, and `kprof diff` may
call no kernel better or worse in any. With one half a tenth slower, it calls each kernel worse. Two reports of one
program are compared as well. Exit status 77 where no report is there.

A report has launches enough if a kernel has LEAST of one shape (100). Such a run was recorded on an H200 with
  kprof --set default -k work -f -o samples/repeats-h200.kprof ./launches 200

Usage: check_repeats.py KPROF REPORT [REPORT] [--least N] [--splits N]
       check_repeats.py KPROF --made WRITE_FIXTURE [--splits N]   of made-up launches"""
import argparse
import collections
import json
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

SLOWER_SPLITS = 10
SLOWER = 1.1
MADE_LEAST = 20
TIMES = ("gpu__time_duration.sum", "gpc__cycles_elapsed.max")
# Launches that kprof diff compares with each other have these in common.
SHAPE = "kernel_id, device_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_smem_bytes"
FAILED = 113


def query(report, statement):
    with sqlite3.connect(f"file:{report}?mode=ro", uri=True) as database:
        return database.execute(statement).fetchall()


def equal_launches(report, least):
    """Ids of the launches that were measured, of each kernel and shape that has so many of them."""
    groups = collections.defaultdict(list)
    for launch, *shape in query(report, f"SELECT id, {SHAPE} FROM launch WHERE measured > 0 ORDER BY id"):
        groups[tuple(shape)].append(launch)
    return [launches for launches in groups.values() if len(launches) >= least]


def write_part(report, launches, target):
    """As `kprof report --launch` does, in a third of the time."""
    shutil.copyfile(report, target)
    chosen = ",".join(map(str, launches))
    with sqlite3.connect(target) as database:
        database.execute(f"DELETE FROM launch WHERE id NOT IN ({chosen})")
        for table in ("value", "graph_node", "nvtx"):
            database.execute(f"DELETE FROM {table} WHERE launch_id NOT IN ({chosen})")
    database.close()


def slow_down(report):
    with sqlite3.connect(report) as database:
        for metric in TIMES:
            database.execute("UPDATE value SET value = value * ? WHERE metric_id = "
                             "(SELECT id FROM metric WHERE name = ?)", (SLOWER, metric))
    database.close()


def verdicts(kprof, baseline, new):
    """[(kernel, verdict)], and whether a condition on the time failed."""
    done = subprocess.run([kprof, "diff", baseline, new, "--json", "-q", "--fail-on", "duration>+2%"],
                          capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    return [(row["kernel"], row["verdict"]) for row in json.loads(done.stdout)["verdicts"]], done.returncode == FAILED


def faults_of(kprof, baseline, new, name):
    rows, has_failed = verdicts(kprof, baseline, new)
    if not rows:
        yield f"{name}: nothing was compared"
    yield from (f"{name}: {kernel} is {verdict}" for kernel, verdict in rows if verdict in ("better", "worse"))
    if has_failed:
        yield f"{name}: --fail-on took chance for a change"


def halves(groups, seed):
    """Launches of all groups, each group in two halves, drawn by chance."""
    draw = random.Random(seed)
    sides = ([], [])
    for launches in groups:
        shuffled = draw.sample(launches, len(launches))
        sides[0].extend(shuffled[:len(shuffled) // 2])
        sides[1].extend(shuffled[len(shuffled) // 2:])
    return sides


def faults_of_splits(kprof, report, groups, splits):
    paths = [str(report.parent / "a.kprof"), str(report.parent / "b.kprof")]
    for seed in range(splits):
        for side, path in zip(halves(groups, seed), paths):
            write_part(report, side, path)
        yield from faults_of(kprof, *paths, f"{report.name}, split {seed}")
        if seed >= SLOWER_SPLITS:
            continue
        slow_down(paths[1])
        rows, has_failed = verdicts(kprof, *paths)
        yield from (f"{report.name}, split {seed}: {kernel} is {verdict}, and a tenth slower"
                    for kernel, verdict in rows if verdict != "worse")
        if not has_failed:
            yield f"{report.name}, split {seed}: --fail-on took a tenth for chance"


def check(kprof, reports, least, splits):
    faults = []
    for report in reports:
        if not report.exists():
            print(f"skipped: {report} has not been recorded")
            return 77
        groups = equal_launches(report, least)
        if not groups:
            print(f"{report}: no kernel has {least} equal launches")
            return 1
        with tempfile.TemporaryDirectory() as folder:
            # Copied, since opening a report for writing could change it.
            copy = pathlib.Path(shutil.copy(report, folder))
            faults += faults_of_splits(kprof, copy, groups, splits)
        counts = ", ".join(str(len(launches)) for launches in groups)
        print(f"{report.name}: {splits} splits of {counts} equal launches")
    if len(reports) == 2:
        faults += faults_of(kprof, *reports, "two runs")
    print(f"{len(faults)} faults", *faults, sep="\n")
    return 1 if faults else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kprof")
    parser.add_argument("reports", nargs="*", type=pathlib.Path)
    parser.add_argument("--least", type=int, default=100)
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--made", metavar="WRITE_FIXTURE")
    options = parser.parse_args()
    if not options.made:
        return check(options.kprof, options.reports, options.least, options.splits)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "made.kprof")
        subprocess.run([options.made, report, "before"], check=True)
        return check(options.kprof, [report], MADE_LEAST, options.splits)


if __name__ == "__main__":
    sys.exit(main())
