#!/usr/bin/env python3
"""Measures a loop of equal launches without repeating any (--replay-mode multiplex), and compares time and values with
the same loop plain and repeated. Prints Markdown; the exit status is 0 when all limits are kept, 1 otherwise, and 77
where there is no GPU.

    multiplex.py [--launches N] [--parts times,values,mixed] [--caches all] [--programs WORDS] [--output FILE]

- Time: N launches with the full set, against the plain program: at most 1.5 times its time and 10 s; with
  --multiplex-samples 5 at most 1.1 times and 5 s.
- Values: the median of each metric over the samples, against that over launches that were repeated
  (--replay-mode kernel), for the default and the full set: at most 2 % apart. Counts below a thousand, shares below
  0.01 %, and values that are no further apart than repeated launches spread, are told apart; so are those of elapsed
  time, which fail.
- Every sample that has had all passes has every value, and the program prints what it prints alone.
- Mixed programs: some launches are proved and repeated, others are multiplexed, in the mode auto. What is told of each
  launch, and the time beside ncu's for the same launches (set basic, --clock-control none): no slower, where ncu
  measures the program to its end."""
import argparse
import itertools
import pathlib
import re
import shlex
import sqlite3
import statistics
import sys
import tempfile

import harness

REPLAYED = 60  # launches that are repeated, for comparison
NEAR_PCT, SMALL_COUNT, SMALL_SHARE_PCT = 2, 1000, 0.01
HARDWARE = """SELECT launch_id, name, value FROM value JOIN metric ON metric.id = metric_id
JOIN launch ON launch.id = launch_id WHERE kind = 'hardware' AND passes = (SELECT max(passes) FROM launch)"""
MIXED = [("pinned and mapped memory", "exact-memory", "mapped", "registered"),
         ("managed memory", "exact-memory", "managed"), ("VMM growth", "exact-memory", "vmm", "growth"),
         ("threads that write host memory", "exact-host_writes", "counter", "counter-registered", "watcher", "mailbox"),
         ("8 launching threads", "exact-streams", "threads"), ("host functions", "exact-streams", "callbacks"),
         ("two contexts", "exact-streams", "contexts"),
         ("memory of another GPU", "exact-shared_devices", "peer", "copies"),
         ("arrays", "exact-arrays", "mipmapped", "layered")]
# Loops of one kernel, with -k: the time of the first depends on what L2 and DRAM do, that of the second does not.
LOOPS = [("launches", "work"), ("fma", "fmaFloat")]
LIMITS = [("full", [], 1.5, 10), ("full", ["--multiplex-samples", "5"], 1.1, 5)]


# Of the time of a range, which begins before its kernel.
ELAPSED = re.compile("elapsed|per_second|time_duration")


def is_small(metric, value):
    """Of a count below a thousand a few more are more than 2 %, and so they are of a share that is hardly there."""
    if ".pct_of_peak_sustained_" in metric:
        return abs(value) < SMALL_SHARE_PCT
    return metric.endswith((".sum", ".avg", ".max", ".min")) and abs(value) < SMALL_COUNT


def is_within_spread(_, expected, seen, spread_pct):
    """`spread_pct`: of the repeated launches, from the least to the most."""
    return abs(seen - expected) <= spread_pct / 100 * max(abs(expected), 1e-30)


def values_of(base):
    """{metric: [values]} of the launches that have all passes, and the number of values that are missing there."""
    found, missing = {}, 0
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        for _, name, value in database.execute(HARDWARE):
            found.setdefault(name, [])
            if value is None:
                missing += 1
            else:
                found[name].append(value)
    return found, missing


def counts_of(base):
    """Launches of the report by mode, and samples among them."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        modes = dict(database.execute("SELECT replay_mode, count(*) FROM launch GROUP BY 1"))
        samples = database.execute("SELECT count(*) FROM launch WHERE replay_mode = 'multiplex' AND measured > 0")
        return modes, samples.fetchone()[0]


class Check:
    def __init__(self, launches, caches, document, folder):
        self.argv, self.caches = [harness.programs() / "launches", str(launches)], caches
        self.document, self.folder, self.failed = document, pathlib.Path(folder), False

    def plain(self):
        runs = [harness.run(self.argv) for _ in range(3)]
        return min(run.seconds for run in runs[1:]), runs[0].stdout

    def kprof(self, name, options, argv=None, kernel="work"):
        base = self.folder / name
        run = harness.run([harness.kprof(), "-q", "-k", kernel, "--cache-control", self.caches, "-o", base, *options,
                           *(argv or self.argv)], limit=200)
        if run.status != 0:
            print(harness.last_lines(run.stderr), file=sys.stderr)
            self.failed = True
        return run, base

    def times(self):
        plain_s, stdout = self.plain()
        rows = []
        for number, (name, options, factor, more_s) in enumerate(LIMITS):
            run, base = self.kprof(f"time{number}", ["--set", name, "--replay-mode", "multiplex", *options])
            modes, samples = counts_of(base)
            limit_s = factor * plain_s + more_s
            kept = run.seconds <= limit_s and run.stdout == stdout and samples > 0
            self.failed |= not kept
            rows.append([" ".join(["--set", name, *options]), round(plain_s, 2), round(run.seconds, 2),
                         round(limit_s, 2), samples, sum(modes.values()), "yes" if kept else "NO"])
        header = ["options", "plain, s", "multiplexed, s", "limit, s", "samples", "launches told of", "kept"]
        self.document.add(harness.table(header, rows))

    def compare(self, name, program, kernel):
        argv = [harness.programs() / program, "2000"]
        repeat = ["--set", name, "--replay-mode", "kernel", "-c", str(REPLAYED)]
        label = f"{name}-{kernel}"
        _, replayed = self.kprof(f"replayed-{label}", repeat, argv, kernel)
        _, sampled = self.kprof(f"sampled-{label}", ["--set", name, "--replay-mode", "multiplex"], argv, kernel)
        (before, _), (after, missing) = values_of(replayed), values_of(sampled)
        near, far = 0, []
        for metric in sorted(before):
            if not before[metric] or not after.get(metric):
                far.append((metric, None, None, None))
                continue
            expected, seen = statistics.median(before[metric]), statistics.median(after[metric])
            apart_pct = 0 if expected == seen else 100 * abs(seen - expected) / max(abs(expected), 1e-30)
            spread = 100 * (max(before[metric]) - min(before[metric])) / max(abs(expected), 1e-30)
            if apart_pct <= NEAR_PCT:
                near += 1
            else:
                far.append((metric, expected, seen, spread))
        return len(before), near, missing, far

    def values(self):
        rows, details = [], []
        for (program, kernel), name in itertools.product(LOOPS, ("default", "full")):
            count, near, missing, far = self.compare(name, program, kernel)
            noise = [row for row in far if row[1] is not None and (is_within_spread(*row) or is_small(*row[:2]))]
            longer = [row for row in far if row not in noise and row[1] is not None and ELAPSED.search(row[0])]
            others = len(far) - len(noise) - len(longer)
            self.failed |= missing > 0 or bool(longer) or others > 0
            rows.append([kernel, name, count, near, len(noise), len(longer), others, missing])
            details += [[kernel, name, *row] for row in far]
        header = ["kernel", "set", "metrics", "within 2 %", "within the spread, or small", "of elapsed time", "others",
                  "missing values"]
        self.document.add(harness.table(header, rows))
        if details:
            header = ["kernel", "set", "metric", "repeated", "multiplexed", "spread of the repeated, %"]
            self.document.add(harness.table(header, details))


def told(base):
    """What a report says of its launches: complete, samples, in samples, not measured, with the reasons, the most
    frequent first; no reasons if one of these launches lacks its own."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        rows = database.execute("SELECT replay_mode, measured > 0, reason FROM launch").fetchall()
    replayed = sum(mode == "batch" and measured for mode, measured, _ in rows)
    samples = sum(mode == "multiplex" and measured for mode, measured, _ in rows)
    others = sum(mode == "multiplex" and not measured for mode, measured, _ in rows)
    missing = [reason for mode, measured, reason in rows if mode != "multiplex" and not measured]
    why = "" if "" in missing else "; ".join(sorted(set(missing), key=missing.count, reverse=True))
    return [replayed, samples, others, len(missing), why]


def time_of(ncu):
    """Seconds of a run under ncu, None where it measured the program only in part, and what the table says."""
    if ncu.status is None:
        return None, "over 120"
    if ncu.status != 0:
        return None, f"ended with {ncu.status} after {round(ncu.seconds, 2)} s"
    return ncu.seconds, round(ncu.seconds, 2)


def mixed(check, words):
    rows = []
    for number, (label, program, *parts) in enumerate(MIXED):
        if words not in label:
            continue
        argv = [harness.programs() / program, *parts]
        plain = [harness.run(argv) for _ in range(2)]
        if plain[0].status == harness.SKIPPED:  # it needs two GPUs
            continue
        base = check.folder / f"mixed{number}"
        run = harness.run([harness.kprof(), "-q", "--set", "default", "-o", base, *argv], limit=200)
        ncu_s, ncu_told = None, "none here"
        if harness.ncu():
            beside = harness.run([harness.ncu(), "--set", "basic", "--clock-control", "none", "-f", "-o", base, *argv])
            ncu_s, ncu_told = time_of(beside)
        plain_s, same = min(result.seconds for result in plain), run.stdout == plain[0].stdout and run.status == 0
        kept = same and (ncu_s is None or run.seconds <= ncu_s)
        counts = told(base)
        check.failed |= not kept or (counts[-2] > 0 and not counts[-1])
        rows.append([label, *counts, "same" if same else "DIFFERENT", round(plain_s, 2), round(run.seconds, 2),
                     ncu_told, "yes" if kept else "NO"])
    header = ["program", "complete, repeated", "samples", "launches in samples or between", "not measured", "why",
              "output", "plain, s", "kprof, s", "ncu, s", "kept"]
    check.document.add(harness.table(header, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=10000)
    parser.add_argument("--parts", default="times,values,mixed", help="what to do (times,values,mixed)")
    parser.add_argument("--caches", default="all", choices=["all", "l2", "none"],
                        help="--cache-control of the loops; l2 has repeated launches and samples begin alike (all)")
    parser.add_argument("--programs", default="", help="mixed programs: those with these words in their name (all)")
    parser.add_argument("--output", default=None)
    options = parser.parse_args()
    harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "multiplex.md")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/multiplex.py " + shlex.join(sys.argv[1:]))))
    with tempfile.TemporaryDirectory() as folder:
        check = Check(options.launches, options.caches, document, folder)
        for part in options.parts.split(","):
            {"times": check.times, "values": check.values, "mixed": lambda: mixed(check, options.programs)}[part]()
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
