#!/usr/bin/env python3
"""Holds findings to pairs of kernels: the finding that is worth most of a slow kernel names what its mended twin
changed, and the estimated gain is near the measured one. Times each kernel of tests/gpu/pairs without kprof, records
them with the full set and with the default one, and prints a table. Exits 1 when fewer pairs than wanted hold, 77 where
there is no GPU.

Leaves pairs-times.json and six small reports in the folder of results; `--from FOLDER` makes the table of such a
folder again, without a GPU and with the rules of the kprof that is there.

    pairs.py [--output FILE] [--from FOLDER]
"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import sqlite3
import sys

import harness

# What was mended, and the findings that name it.
Pair = collections.namedtuple("Pair", "name findings")
PAIRS = [Pair("coalescing", {"UncoalescedGlobal"}),
         Pair("conflicts", {"SharedBankConflicts"}),
         Pair("spills", {"LocalSpills"}),
         Pair("tensor", {"TensorIdle"}),
         Pair("double", {"DoubleByAccident"}),
         Pair("fusion", {"UnfusedFp"}),
         Pair("occupancy", {"TheoreticalOccupancy"}),
         Pair("tail", {"TailEffect"}),
         Pair("atomics", {"Atomics"}),
         Pair("divergence", {"ThreadDivergence"}),
         Pair("host", {"SystemMemory"}),
         Pair("clock", {"LowClock"}),
         Pair("blocking", {"L2Reuse", "L1Reuse", "L1Traffic"}),
         Pair("launch", {"SmallGrid"}),
         Pair("vectors", {"NarrowAccesses"})]
NAMED_WANTED, NEAR_WANTED = 14, 10
SETS = {"full": ["--set", "full"], "default": []}
LAUNCHES = 5
TIME = re.compile(r"^time (\w+) (slow|mended) ([\d.]+)$", re.MULTILINE)
HEADER = ["pair", "slow, us", "mended, us", "measured gain, %", "worth most", "names it", "estimate, %", "ratio",
          "default set"]

Top = collections.namedtuple("Top", "id estimate advice")
Row = collections.namedtuple("Row", "pair slow mended gain top named ratio default")


def read_times(text):
    """{pair: {"slow": us, "mended": us}} of what the program prints."""
    times = {}
    for name, which, microseconds in TIME.findall(text):
        times.setdefault(name, {})[which] = float(microseconds)
    return times


def tops_of(details):
    """{kernel: Top} of a report's details page as JSON, by the last launch of each kernel that has a verdict."""
    tops = {}
    for launch in details["launches"]:
        chosen = launch["verdict"] and launch["verdict"]["finding"]
        if not chosen or not chosen["id"]:
            continue
        finding = next(one for one in launch["findings"] if one["id"] == chosen["id"])
        estimate = (finding["estimated_speedup"] or {}).get("pct")
        tops[launch["kernel"]["function"]] = Top(chosen["id"], estimate, finding["advice"] or "")
    return tops


def names_it(pair, top):
    return top is not None and top.id in pair.findings


def make_rows(times, tops, default):
    rows = []
    for pair in PAIRS:
        slow, mended = (times.get(pair.name, {}).get(which) for which in ("slow", "mended"))
        gain = 100 * (1 - mended / slow) if slow and mended else None
        top = tops.get(f"{pair.name}_slow")
        ratio = top.estimate / gain if top and top.estimate is not None and gain and gain > 0 else None
        rows.append(Row(pair.name, slow, mended, gain, top, names_it(pair, top), ratio,
                        default.get(f"{pair.name}_slow")))
    return rows


def is_near(row):
    return row.named and row.ratio is not None and 0.5 <= row.ratio <= 2


def shown(row):
    def rounded(number):
        return None if number is None else round(number, 2)

    return [row.pair, row.slow, row.mended, rounded(row.gain), row.top and row.top.id, "yes" if row.named else "no",
            rounded(row.top and row.top.estimate), rounded(row.ratio), row.default and row.default.id]


def judge(rows):
    """(the table with its totals, faults)."""
    named, near = sum(row.named for row in rows), sum(is_near(row) for row in rows)
    alike = sum(bool(row.top and row.default and row.top.id == row.default.id) for row in rows)
    text = (harness.table(HEADER, [shown(row) for row in rows]) +
            f"\nThe finding that is worth most names what was mended in {named} of {len(rows)} pairs. The estimate of "
            f"such a finding is half to twice the measured gain in {near}. The default set has the same finding in "
            f"{alike}.\n")
    faults = [f"{row.pair} was not timed" for row in rows if row.gain is None]
    faults += [f"the mended kernel of {row.pair} is not faster" for row in rows
               if row.gain is not None and row.gain <= 0]
    if named < NAMED_WANTED:
        faults.append(f"the change is named in {named} pairs, fewer than {NAMED_WANTED}")
    if near < NEAR_WANTED:
        faults.append(f"the estimate is near in {near} pairs, fewer than {NEAR_WANTED}")
    return text, faults


def run_pairs(*words):
    done = harness.run(["./pairs", *words], cwd=harness.programs())
    faults = [] if done.status == 0 else [f"pairs {' '.join(words)} ended with {done.status}: "
                                          f"{harness.last_lines(done.stderr)}"]
    return read_times(done.stdout), faults


def record_times(folder):
    """Memory that the host shares keeps kernels from being repeated: the pair that has it runs by itself."""
    times, faults = run_pairs(str(LAUNCHES))
    host, more = run_pairs(str(LAUNCHES), "host")
    (folder / "pairs-times.json").write_text(json.dumps({**times, **host}, indent=1) + "\n", encoding="utf-8")
    return faults + more


def run_kprof(*words):
    done = harness.run([harness.kprof(), *words], limit=300, cwd=harness.programs())
    return [] if done.status == 0 else [f"kprof {' '.join(map(str, words))} ended with {done.status}: "
                                        f"{harness.last_lines(done.stderr)}"]


def shrink(report):
    with contextlib.closing(sqlite3.connect(report)) as database:
        database.execute("VACUUM")


def record_host(options, report):
    """The last measured launch of each kernel, by when samples of many launches have all values."""
    whole = report.with_name("whole.kprof")
    faults = run_kprof(*options, "-k", "regex:^host_", "-f", "-o", whole, "./pairs", "0", "host")
    if faults:
        return faults
    with contextlib.closing(sqlite3.connect(whole)) as database:
        last = database.execute("SELECT max(launch) FROM launches WHERE measured GROUP BY kernel ORDER BY 1").fetchall()
    faults = run_kprof("report", whole, "--launch", ",".join(str(launch) for launch, in last), "-f", "-o", report)
    whole.unlink()
    return faults


def record_clock(options, report):
    """A launch of the kernel that makes the GPU hot, after those that did. The other kernel stands in the report of all
    pairs, beside which this one would not be hot."""
    return run_kprof(*options, "-k", "clock_slow", "-s", "20", "-c", "1", "-f", "-o", report, "./pairs", "0", "clock")


def reports_of(folder, name):
    """The reports of a set, those that have a pair by itself last."""
    return [folder / f"pairs{part}-{name}.kprof" for part in ("", "-host", "-clock")]


def record(folder):
    faults = record_times(folder)
    for name, options in SETS.items():
        reports = reports_of(folder, name)
        faults += run_kprof(*options, "-f", "-o", reports[0], "./pairs", "0")
        faults += record_host(options, reports[1])
        faults += record_clock(options, reports[2])
        for report in filter(pathlib.Path.exists, reports):
            shrink(report)
    return faults


def read_tops(folder, name):
    tops = {}
    for report in reports_of(folder, name):
        if report.exists():
            done = harness.run([harness.kprof(), "report", report, "--json"])
            tops.update(tops_of(json.loads(done.stdout)) if done.status == 0 else {})
    return tops


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=None)
    parser.add_argument("--from", dest="folder", type=pathlib.Path, default=None)
    options = parser.parse_args()
    folder, faults = options.folder or harness.results_folder(), []
    if not options.folder:
        harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "pairs.md")
    if not options.folder:
        document.add(harness.table(["", ""], harness.facts("tests/gpu/pairs.py")))
        faults = record(folder)
    times = json.loads((folder / "pairs-times.json").read_text(encoding="utf-8"))
    text, more = judge(make_rows(times, read_tops(folder, "full"), read_tops(folder, "default")))
    document.add(text)
    document.add("".join(f"- FAULT: {fault}\n" for fault in faults + more) or "All checks hold.")
    return 1 if faults or more else 0


if __name__ == "__main__":
    sys.exit(main())
