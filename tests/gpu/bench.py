#!/usr/bin/env python3
"""Times kprof side by side with ncu in one session, clocks left alone, and prints Markdown.

    bench.py [--only PART[,PART]] [--rows ROW[,ROW]] [--output FILE] [PART...]
    bench.py --merge [--output FILE] FILE...

Parts:
- process: one launch of vectorAdd with `--set full`, wall time of the whole process, plain, kprof and ncu.
- unselected: what a launch costs that no filter selects: 200,000 tiny kernels before the one that is selected. The
  program times its launch calls in bursts that fit the launch queue, so the figure is the host's time per call.
- census: what a launch costs that `--census` counts and times, in the same way.
- added: added time per selected launch of 60 us, from the program's own clock (`loop`: from the first of N launches
  until its memory is freed and a stream destroyed, after one launch that sets the profiler up) and from the wall time
  of the whole process. Both tools flush caches, as they do by default. Rows: dram, default, full, same (the sections
  that the full sets of both tools have), source (what ncu has of instructions).
- memory: the same with much memory allocated. Rows: memory (full set, 60 GB), crowded (default set, 110 GB).
- pinned: the default set in a program that has pinned host memory, whose launches need a proof. Row: pinned.
- added-none, memory-none: the same with `--cache-control none` given to both tools; added-l2: with `l2` given to
  kprof.
- reporter: 10,000 launches x 300 metrics as CSV, where the reporter's own benchmark has been built.

Without parts all of them. As they take longer together than one command may, `--merge` makes one document of several:
each section from the last file that has it. Repetitions of the tools alternate, so that drift of the machine falls on
all of them. A run of ncu that meets its limit is not repeated, and the table says that it took longer. Every kprof run
has to have measured all its launches.

Environment: BENCH_ONLY and BENCH_ROWS as --only and --rows; BENCH_REPS (5): repetitions; BENCH_CROWDED_REPS (1): of the
crowded row, which takes minutes; BENCH_SECONDS (330): none starts later than this, and the tables give the number that
was done; BENCH_NCU_LIMIT (150): seconds for a run of ncu; BENCH_GB (60), BENCH_CROWDED_GB (110): memory of the rows
above. BENCH_COUNTS sets launches as row=KPROF:NCU, comma-separated:
dram=1000:100,default=200:10,full=200:4,same=200:4,source=200:6,memory=64:3,crowded=20:2,pinned=20:10. BENCH_REPORT
is the reporter's own benchmark (tests/report/bench_report of kprof's build)."""
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
DEFAULT_COUNTS = {"dram": (1000, 100), "default": (200, 10), "full": (200, 4), "same": (200, 4), "source": (200, 6),
                  "memory": (64, 3), "crowded": (20, 2), "pinned": (20, 10)}
LIMIT = 200


class LimitMet(RuntimeError):
    """A program was stopped because it took too long: `seconds` is the least that it takes."""

    def __init__(self, seconds):
        super().__init__(f"over {seconds:g} s (stopped at this limit)")
        self.seconds = seconds


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
        self.least = None  # what is known of a figure that has no value: a limit was met

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
        self.folder, self.serial, self.last_report = folder, 0, None

    def plain(self, argv, *_):
        return [str(word) for word in argv]

    def kprof(self, argv, *options):
        self.serial += 1
        base = self.last_report = f"{self.folder}/k{self.serial}"
        return [harness.kprof(), *options, "-o", base, "--log-file", f"{base}.log", *map(str, argv)]

    def ncu(self, argv, *options):
        self.serial += 1
        # ncu calls kprof's default set basic, and has one way to flush.
        options = [{"default": "basic", "l2": "all"}.get(word, word) for word in options]
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
            except LimitMet as limit:
                samples[name].problem, samples[name].least = str(limit), limit.seconds
                print(f"bench.py: {name}: {limit}", file=sys.stderr, flush=True)
            except RuntimeError as error:
                samples[name].problem = f"failed: {error}"
                print(f"bench.py: {name}: {error}", file=sys.stderr, flush=True)
    return samples


def checked(argv, limit=LIMIT):
    result = harness.run(argv, limit=limit)
    if result.status is None:
        raise LimitMet(limit)
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
        document.add(f"ncu / kprof: {faster}; aim: 2.5 times or more\n")


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


def bench_census(document, tools, clock):
    launches, label = [harness.programs() / "launches", "0", "0", "200000"], "tiny_ns_per_launch"
    samples = repeat({"plain": printed(lambda: tools.plain(launches), label),
                      "kprof --census": printed(lambda: tools.kprof(launches, "--census"), label)},
                     number("BENCH_REPS", 5), clock)
    plain = samples["plain"].median()
    rows = [(name, sample.text(), difference(sample.median(), plain)) for name, sample in samples.items()]
    document.add("## A launch that is counted and timed\n")
    document.add(harness.table(["", "host time per launch (ns): median (range, repetitions)", "added (ns)"], rows))
    document.add("Target: kprof adds less than 50,000 ns\n")


PINNED = ["0", "0", "1000000"]  # what follows the gigabytes in the arguments of `launches`

# What the full sets of both tools have: ncu's has PmSampling besides, which kprof's has not.
SAME_SECTIONS = ["SpeedOfLight", *(f"SpeedOfLight_Hierarchical{kind}RooflineChart" for kind in
                                   ("Double", "Single", "Half", "Tensor")),
                 "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables", "SchedulerStats",
                 "WarpStateStats", "InstructionStats", "SourceCounters", "LaunchStats", "Occupancy",
                 "WorkloadDistribution"]

# Row of the table: label, options of both tools, what has the gigabytes and how many, aim or None.
ROWS = {"dram": ("one DRAM metric", ["--metrics", DRAM_METRIC], None, 120),
        "default": ("default set", ["--set", "default"], None, 30),
        "full": ("full set", ["--set", "full"], None, 50),
        "same": ("sections of both full sets", [word for name in SAME_SECTIONS for word in ("--section", name)], None,
                 None),
        "source": ("section SourceCounters", ["--section", "SourceCounters"], None, None),
        "memory": ("full set, {gb} GB allocated", ["--set", "full"], ("BENCH_GB", 60), 30),
        "crowded": ("default set, {gb} GB allocated", ["--set", "default"], ("BENCH_CROWDED_GB", 110), 1),
        "pinned": ("default set, 1 MB of host memory pinned", ["--set", "default"], None, None)}


def measured_launches(base, count):
    """"21 of 21: batch", with the reasons that launches carry; an error unless all `count` were measured."""
    launches, _ = harness.read_report(base)
    measured = [launch for launch in launches if launch.measured]
    reasons = "; ".join(sorted({launch.reason for launch in launches if launch.reason}))
    if len(measured) != count or len(launches) != count:
        raise RuntimeError(f"kprof measured {len(measured)} of {count} launches: {reasons or 'no reason'}")
    modes = " and ".join(sorted({launch.replay_mode for launch in measured}))
    return f"{count} of {count}: {modes}" + (f" ({reasons})" if reasons else "")


class TableRow:
    """Added time per launch of one kind of work: samples of the wall time, and of the loop's time per launch."""

    def __init__(self, key, tools, cache_options):
        self.key, self.tools = key, tools
        self.label, self.options, memory, self.aim = ROWS[key]
        self.gigabytes = number(*memory) if memory else 0
        self.options = [*self.options, *cache_options]
        self.counts = dict(zip(("kprof", "ncu"), counts()[key]))
        self.loop = {name: Samples() for name in ("plain", "kprof", "ncu")}
        self.measured = None

    def job(self, name):
        count = self.counts.get(name, self.counts["kprof"])
        program = [harness.programs() / "launches", str(count), str(self.gigabytes),
                   *(PINNED if self.key == "pinned" else [])]
        limit = number("BENCH_NCU_LIMIT", 150) if name == "ncu" else LIMIT

        def sample():
            result = checked(getattr(self.tools, name)(program, *self.options, "-k", "work"), limit)
            if name == "kprof":
                self.measured = measured_launches(self.tools.last_report, count + 1)
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

    def least_wall_ms(self):
        """As added_wall_ms of ncu, where its limit was met: no less than this."""
        least = self.wall["ncu"].least if "ncu" in self.wall else None
        added = difference(least, self.wall["plain"].median())
        return None if added is None else added * 1e3 / (self.counts["ncu"] + 1)

    def ratio(self):
        """ncu's added time over kprof's; of whole processes where the limit left ncu no other."""
        ours, theirs = self.added_loop_ms("kprof"), self.added_loop_ms("ncu")
        if theirs is not None or self.least_wall_ms() is None:
            return noisy_ratio(theirs, ours, self.loop["plain"].spread() * 1e3) + self.ratio_range()
        whole = self.added_wall_ms("kprof")
        return f"over {ratio(self.least_wall_ms(), whole)} (process)" if whole else "n/a"

    def ratio_range(self):
        """" (LOW to HIGH)" over the repetitions of both tools."""
        plain, ours, theirs = (self.loop[name] for name in ("plain", "kprof", "ncu"))
        if not plain.values or not ours.values or not theirs.values:
            return ""
        fastest, slowest = min(ours.values) - plain.median(), max(ours.values) - plain.median()
        if fastest <= plain.spread():
            return ""
        low, high = ((value - plain.median()) / added for value, added in
                     ((min(theirs.values), slowest), (max(theirs.values), fastest)))
        return f" ({low:.3g} to {high:.3g})"

    def cells(self):
        limited = self.least_wall_ms()
        return (self.label.format(gb=self.gigabytes), self.counts["kprof"], self.added_loop_ms("kprof"),
                self.loop["kprof"].text(1e3), self.added_wall_ms("kprof"), self.measured or "none", self.counts["ncu"],
                self.added_loop_ms("ncu"), self.loop["ncu"].text(1e3),
                self.added_wall_ms("ncu") if limited is None else f"over {limited:,.6g}", self.ratio(),
                "none" if self.aim is None else f"{self.aim} times" if self.aim != 1 else "no slower")


HEADER = ["work", "kprof: launches", "added", "loop", "process", "measured", "ncu: launches", "added", "loop",
          "process", "ncu / kprof (added)", "aim"]


def bench_rows(title, keys, cache_options):
    """A part: one table with a row for each of the keys that --rows leaves."""
    def bench(document, tools, clock):
        rows = []
        for key in keys:
            if not chosen_row(key):
                continue
            row = TableRow(key, tools, cache_options)
            row.measure(number("BENCH_CROWDED_REPS", 1) if key == "crowded" else number("BENCH_REPS", 5), clock)
            rows.append(row.cells())
            print(f"bench.py: {rows[-1]}", file=sys.stderr, flush=True)
        document.add(f"## {title}\n")
        document.add("Milliseconds; in brackets range and repetitions of the loop's time per launch, and the range of "
                     "the ratio. `process` spreads the whole process, its start included, over the launches. Both "
                     "tools with "
                     f"{' '.join(f'`{word}`' for word in cache_options) or 'their default cache control, all'}.\n")
        document.add(harness.table(HEADER, rows))
    return bench


def chosen_row(key):
    wanted = os.environ.get("BENCH_ROWS")
    return not wanted or key in wanted.split(",")


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


WORK, MEMORY, NONE = ("dram", "default", "full", "same", "source"), ("memory", "crowded"), ["--cache-control", "none"]
L2 = ["--cache-control", "l2"]
PARTS = {"process": bench_process, "unselected": bench_unselected, "census": bench_census,
         "added": bench_rows("Added time per launch", WORK, []),
         "added-none": bench_rows("Added time per launch, caches left alone", WORK, NONE),
         "added-l2": bench_rows("Added time per launch, L2 flushed by copying", WORK, L2),
         "pinned": bench_rows("Added time per launch with pinned memory", ("pinned",), []),
         "memory": bench_rows("Added time per launch with much memory allocated", MEMORY, []),
         "memory-none": bench_rows("Added time per launch with much memory allocated, caches left alone", MEMORY, NONE),
         "reporter": bench_reporter}


# Documents of several commands


def sections_of(text):
    """{title: text} of a document; what comes before the first section has the title ""."""
    sections, title = {"": []}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            title = line
            sections[title] = []
        sections[title].append(line)
    return {title: "\n".join(lines).strip() + "\n" for title, lines in sections.items()}


def facts_of(head):
    """{name: value} of the table that opens a document."""
    rows = (re.match(r"\| (.+?) \| (.*) \|$", line) for line in head.splitlines())
    return {row.group(1): row.group(2) for row in rows if row}


def merge(texts):
    """One document: each section from the last text that has it, in the order in which they first came up; facts in
    which the texts differ are listed side by side."""
    sections, facts = {}, {}
    for text in texts:
        found = sections_of(text)
        for name, value in facts_of(found.pop("")).items():
            values = facts.setdefault(name, [])
            if value not in values:
                values.append(value)
        sections.update(found)
    table = "\n".join(f"| {name} | {'; '.join(values)} |" for name, values in facts.items())
    return "\n".join(["# Benchmarks\n", f"|  |  |\n|---|---|\n{table}\n", *sections.values()])


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS) + " (all)")
    parser.add_argument("--only", metavar="PART[,PART]", default=os.environ.get("BENCH_ONLY"), help="the same")
    parser.add_argument("--rows", metavar="ROW[,ROW]", help="rows of the tables: " + ", ".join(ROWS) + " (all)")
    parser.add_argument("--merge", action="store_true", help="make one document of those named instead of PARTs")
    parser.add_argument("--output", help="Markdown file (benchmarks.md among the results)")
    options = parser.parse_args()
    options.output = options.output or harness.results_folder() / "benchmarks.md"
    if options.merge:
        return options
    if options.rows:
        os.environ["BENCH_ROWS"] = options.rows
    options.parts += filter(None, (options.only or "").split(","))
    for part in set(options.parts) - set(PARTS):
        parser.error(f"{part}: not one of {', '.join(PARTS)}")
    for row in set(filter(None, os.environ.get("BENCH_ROWS", "").split(","))) - set(ROWS):
        parser.error(f"row {row}: not one of {', '.join(ROWS)}")
    return options


def main():
    options = parse_arguments()
    if options.merge:
        merged = merge([pathlib.Path(path).read_text(encoding="utf-8") for path in options.parts])
        pathlib.Path(options.output).write_text(merged, encoding="utf-8")
        return 0
    harness.need_gpu()
    document = harness.Document(options.output)
    document.add("# Benchmarks\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/bench.sh " + " ".join(sys.argv[1:]))))
    clock = Clock(number("BENCH_SECONDS", 330))
    with tempfile.TemporaryDirectory(prefix="kprof-bench-") as folder:
        tools = Tools(folder)
        for part in options.parts or PARTS:
            PARTS[part](document, tools, clock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
