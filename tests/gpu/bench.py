#!/usr/bin/env python3
"""Times kprof side by side with ncu in one session, clocks left alone, and prints Markdown.

    bench.py [--output FILE] [PART...]        PART: process unselected table reporter

- process: one launch of vectorAdd with `--set full`, wall time of the whole process, plain, kprof and ncu.
- unselected: what a launch costs that no filter selects: 200,000 tiny kernels before the one that is selected. The
  program times its launch calls in bursts that fit the launch queue, so the figure is the host's time per call.
- table: added time per selected launch of 60 us, from the program's own clock (`loop`: from the first of N launches to
  the result on the host, after one launch that sets the profiler up) and from the wall time of the whole process. Both
  tools leave caches alone (`--cache-control none`), which lets kprof measure launches in batches.
- reporter: 10,000 launches x 300 metrics as CSV, where the reporter's own benchmark has been built.

Repetitions of the tools alternate, so that drift of the machine falls on all of them. Environment: BENCH_REPS (5) for
the first two parts, BENCH_TABLE_REPS (3) for the table, BENCH_SECONDS (330): no repetition starts later than this; the
tables give the number that was done. BENCH_GB (60) is the memory of the table's fourth row. BENCH_COUNTS sets
launches as row=KPROF:NCU, comma-separated: dram=1000:100,default=200:10,full=200:4,memory=64:3. BENCH_REPORT is the
reporter's own benchmark (tests/report/bench_report of kprof's build)."""
import argparse
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import harness

DRAM_METRIC = "dram__bytes.sum.per_second"
DEFAULT_COUNTS = {"dram": (1000, 100), "default": (200, 10), "full": (200, 4), "memory": (64, 3)}
LIMIT = 200


def number(name, fallback):
    return int(os.environ.get(name, fallback))


def counts():
    chosen = dict(DEFAULT_COUNTS)
    for item in filter(None, os.environ.get("BENCH_COUNTS", "").split(",")):
        row, _, pair = item.partition("=")
        chosen[row] = tuple(int(count) for count in pair.split(":"))
    return chosen


class Clock:
    """The time that is left for repetitions."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def over(self):
        return time.monotonic() > self.end


class Samples:
    """Repeated figures of one tool on one job."""

    def __init__(self):
        self.values, self.problem = [], None

    def add(self, value):
        self.values.append(value)

    def median(self):
        return statistics.median(self.values) if self.values else None

    def spread(self):
        return max(self.values) - min(self.values) if self.values else 0

    def text(self, scale=1.0, digits=4):
        """Median, range and number, or why there is none."""
        if not self.values:
            return self.problem or "not run: out of time"
        low, high = min(self.values) * scale, max(self.values) * scale
        return f"{self.median() * scale:.{digits}g} ({low:.{digits}g} to {high:.{digits}g}, n={len(self.values)})"


def ratio(slow, fast):
    if slow is None or fast is None or fast <= 0:
        return "n/a"
    return f"{slow / fast:.3g} times"


def noisy_ratio(slow, fast, noise):
    """As ratio, where `fast` may be lost in the noise: then no more than that can be said."""
    if slow is None or fast is None or fast > noise:
        return ratio(slow, fast)
    return f"over {slow / noise:.3g} times" if noise > 0 else "n/a"


def difference(a, b):
    return None if a is None or b is None else a - b


class Tools:
    """Command lines of the three ways to run a program."""

    def __init__(self, folder):
        self.folder, self.serial = folder, 0

    def plain(self, argv, *_):
        return [str(word) for word in argv]

    def kprof(self, argv, *options):
        self.serial += 1
        base = f"{self.folder}/k{self.serial}"
        return [harness.kprof(), *options, "-o", base, "--log-file", f"{base}.log", *map(str, argv)]

    def ncu(self, argv, *options):
        self.serial += 1
        # ncu calls kprof's default set basic.
        options = ["basic" if word == "default" else word for word in options]
        report = f"{self.folder}/n{self.serial}"
        return [harness.ncu(), "--clock-control", "none", *options, "-o", report, *map(str, argv)]


def repeat(jobs, repetitions, clock):
    """jobs: name -> function that makes a sample or raises. All run in turn, `repetitions` times."""
    samples = {name: Samples() for name in jobs}
    for _ in range(repetitions):
        for name, job in jobs.items():
            if clock.over():
                return samples
            if samples[name].problem:
                continue
            try:
                samples[name].add(job())
            except RuntimeError as error:
                samples[name].problem = f"failed: {error}"
                print(f"bench.py: {name}: {error}", file=sys.stderr, flush=True)
    return samples


def checked(argv):
    result = harness.run(argv, limit=LIMIT)
    if result.status != 0:
        raise RuntimeError(f"ended with {result.status}: {harness.last_lines(result.stderr or result.stdout, 3)}")
    return result


def wall(argv):
    return lambda: checked(argv()).seconds


def own_figure(result, label):
    """What a program says about itself on stderr."""
    match = re.search(rf"^{label} ([\d.]+)$", result.stderr, re.MULTILINE)
    if not match:
        raise RuntimeError(f"no line {label}: {harness.last_lines(result.stderr, 3)}")
    return float(match.group(1))


def printed(argv, label):
    return lambda: own_figure(checked(argv()), label)


def bench_process(document, tools, clock):
    add = [harness.programs() / "vectorAdd", "1"]
    jobs = {"plain": wall(lambda: tools.plain(add)),
            "kprof": wall(lambda: tools.kprof(add, "--set", "full", "-k", "vectorAdd"))}
    if harness.ncu():
        jobs["ncu"] = wall(lambda: tools.ncu(add, "--set", "full", "-k", "vectorAdd"))
    samples = repeat(jobs, number("BENCH_REPS", 5), clock)
    document.add("## One launch, full set, whole process\n")
    document.add(harness.table(["", "wall time (s): median (range, repetitions)"],
                               [(name, sample.text()) for name, sample in samples.items()]))
    if "ncu" in samples:
        faster = ratio(samples["ncu"].median(), samples["kprof"].median())
        document.add(f"ncu / kprof: {faster}; target: 2 times or more\n")


def bench_unselected(document, tools, clock):
    launches = [harness.programs() / "launches", "0", "0", "200000"]
    options = ["--metrics", DRAM_METRIC, "-k", "work"]
    label = "tiny_ns_per_launch"
    jobs = {"plain": printed(lambda: tools.plain(launches), label),
            "kprof": printed(lambda: tools.kprof(launches, *options), label)}
    if harness.ncu():
        jobs["ncu"] = printed(lambda: tools.ncu(launches, *options), label)
    samples = repeat(jobs, number("BENCH_REPS", 5), clock)
    plain = samples["plain"].median()
    rows = [(name, sample.text(), difference(sample.median(), plain)) for name, sample in samples.items()]
    document.add("## A launch that is not selected\n")
    document.add(harness.table(["", "host time per launch (ns): median (range, repetitions)", "added (ns)"], rows))
    document.add("Target: kprof adds less than 1,000 ns\n")


# Row of the table: label, options of both tools, gigabytes, target.
ROWS = {"dram": ("one DRAM metric", ["--metrics", DRAM_METRIC], 0, "120"),
        "default": ("default set", ["--set", "default"], 0, "25"),
        "full": ("full set", ["--set", "full"], 0, "40"),
        "memory": ("full set, {gb} GB allocated", ["--set", "full"], None, "30")}


class TableRow:
    """Added time per launch of one kind of work. Samples are (wall seconds, loop seconds per launch)."""

    def __init__(self, key, tools):
        self.key, self.tools = key, tools
        self.label, self.options, self.gigabytes, self.target = ROWS[key]
        if self.gigabytes is None:
            self.gigabytes = number("BENCH_GB", 60)
        self.counts = dict(zip(("kprof", "ncu"), counts()[key]))
        self.loop = {name: Samples() for name in ("plain", "kprof", "ncu")}

    def job(self, name):
        count = self.counts.get(name, self.counts["kprof"])
        program = [harness.programs() / "launches", str(count), str(self.gigabytes)]

        def sample():
            options = [*self.options, "--cache-control", "none", "-k", "work"]
            result = checked(getattr(self.tools, name)(program, *options))
            self.loop[name].add(own_figure(result, "work_ns_per_launch") * 1e-9)
            return result.seconds
        return sample

    def measure(self, repetitions, clock):
        names = ["plain", "kprof"] + (["ncu"] if harness.ncu() else [])
        self.wall = repeat({name: self.job(name) for name in names}, repetitions, clock)
        for name, samples in self.wall.items():
            self.loop[name].problem = samples.problem

    def added_loop_ms(self, name):
        added = difference(self.loop[name].median(), self.loop["plain"].median())
        return None if added is None else added * 1e3

    def added_wall_ms(self, name):
        """Whole process, its start and the first launch included, per launch."""
        if name not in self.wall:
            return None
        added = difference(self.wall[name].median(), self.wall["plain"].median())
        return None if added is None else added * 1e3 / (self.counts[name] + 1)

    def cells(self):
        ours, theirs = self.added_loop_ms("kprof"), self.added_loop_ms("ncu")
        return (self.label.format(gb=self.gigabytes), self.counts["kprof"], ours, self.loop["kprof"].text(1e3),
                self.added_wall_ms("kprof"), self.counts["ncu"], theirs, self.loop["ncu"].text(1e3),
                self.added_wall_ms("ncu"), noisy_ratio(theirs, ours, self.loop["plain"].spread() * 1e3),
                f"{self.target} times")


def bench_table(document, tools, clock):
    rows = []
    for key in ROWS:
        row = TableRow(key, tools)
        row.measure(number("BENCH_TABLE_REPS", 3), clock)
        rows.append(row.cells())
        print(f"bench.py: {rows[-1]}", file=sys.stderr, flush=True)
    document.add("## Added time per launch\n")
    document.add("Milliseconds; in brackets range and repetitions of the loop's time per launch. `process` spreads the "
                 "whole process, its start included, over the launches.\n")
    document.add(harness.table(["work", "kprof: launches", "added", "loop", "process", "ncu: launches", "added", "loop",
                                "process", "ncu / kprof (added)", "aim"], rows))


def bench_reporter(document, *_):
    document.add("## Reporter\n")
    built = pathlib.Path(harness.kprof()).parents[2] / "tests/report/bench_report"
    program = pathlib.Path(os.environ.get("BENCH_REPORT", built)).resolve()
    if not program.exists():
        document.add("tests/report/bench_report was not found; set BENCH_REPORT to it.\n")
        return
    result = harness.run([program], limit=LIMIT)
    document.add(f"```\n{result.stdout.strip()}\n```\n\nstatus {result.status}, {result.seconds:.2f} s in all; "
                 "target: 3 s and 300 MB to load 10,000 launches x 300 metrics and print them as CSV\n")


PARTS = {"process": bench_process, "unselected": bench_unselected, "table": bench_table, "reporter": bench_reporter}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--output", help="Markdown file (benchmarks.md among the results)")
    options = parser.parse_args()
    for part in set(options.parts) - set(PARTS):
        parser.error(f"{part}: not one of {', '.join(PARTS)}")
    if not harness.have_gpu():
        print("bench.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
    document = harness.Document(options.output or harness.results_folder() / "benchmarks.md")
    document.add("# Benchmarks\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/bench.sh " + " ".join(options.parts))))
    clock = Clock(number("BENCH_SECONDS", 330))
    with tempfile.TemporaryDirectory(prefix="kprof-bench-") as folder:
        tools = Tools(folder)
        for part in options.parts or PARTS:
            PARTS[part](document, tools, clock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
