#!/usr/bin/env python3
"""Compares launch__shared_mem_config_size with ncu's for launches that come after others, since the driver may leave L1
divided as the launch before had it. Runs programs/carveouts. Exits 1 where a value differs, 77 where there is no GPU or
no ncu.

    carveouts.py [--output FILE]
"""
import argparse
import pathlib
import re
import sys
import tempfile

import harness

METRIC = "launch__shared_mem_config_size"
WAYS = {"alone": METRIC, "with a pass": f"{METRIC},gpu__time_duration.sum"}
HEADER = ["launch", "threads", "shared memory, bytes", "kprof", *(f"ncu, {way}" for way in WAYS), "verdict"]


def of_kprof(program, folder):
    """(value of each launch, what the program prints)"""
    base = f"{folder}/run"
    done = harness.run([harness.kprof(), "--metrics", METRIC, "-f", "-o", base, program])
    launches = harness.read_report(base)[0]
    if not launches:
        print(f"carveouts.py: kprof told of no launch: {harness.last_lines(done.stderr)}", file=sys.stderr)
    return [launch.metrics.get(METRIC) for launch in launches], done.stdout


def of_ncu(program, metrics, folder):
    log = pathlib.Path(folder, "ncu.csv")
    harness.run([harness.ncu(), "--metrics", metrics, "--print-units", "base", "--clock-control", "none", "--csv",
                 "--page", "raw", "--log-file", log, program], limit=300)
    text = log.read_text(encoding="utf-8", errors="replace")
    launches, _ = harness.parse_ncu_raw(text)
    if not launches:
        print(f"carveouts.py: ncu told of no launch: {harness.last_lines(text)}", file=sys.stderr)
    return [launch.metrics.get(METRIC, (None, 0))[0] for launch in launches]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default=None)
    options = parser.parse_args()
    harness.need_gpu(and_ncu=True)
    program = harness.programs() / "carveouts"
    with tempfile.TemporaryDirectory(prefix="kprof-carveouts-") as folder:
        ours, printed = of_kprof(program, folder)
        theirs = [of_ncu(program, metrics, folder) or [None] * len(ours) for metrics in WAYS.values()]
    rows = []
    for (number, threads, size), mine, *others in zip(re.findall(r"launch (\d+) (\d+) (\d+)", printed), ours, *theirs):
        is_same = set(others) - {None} == {mine}
        rows.append([int(number), int(threads), int(size), mine, *others, "same" if is_same else "**differs**"])
    document = harness.Document(options.output or harness.results_folder() / "carveouts.md")
    document.add("# Shared memory that the SM is configured for\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/carveouts.py")))
    document.add(harness.table(HEADER, rows))
    return 0 if rows and all(row[-1] == "same" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
