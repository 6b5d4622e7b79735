#!/usr/bin/env python3
"""Compares the values of launches that were repeated in batches with those of launches repeated alone, kernel by
kernel, with caches flushed and left alone. compare.py says what must agree and how closely. Prints Markdown, also to a
file; exits 1 when a value is outside or missing, or nothing was batched.

    values.py [--runs N] [--alone N] [--batched N] [--caches all|none] [--set SET] [--output FILE] [PROGRAM...]

known-differences-batched.txt may explain what is outside; it is listed all the same.

With caches left alone, what a launch finds there depends on how it is repeated: alone, what restoring memory left;
in a batch, what the launch before it left. So only counts of instructions fail the run there; all else is listed.
"""
import argparse
import collections
import statistics
import sys
import tempfile

import compare
import harness
import validate

# Programs, and what they are given besides the number of launches.
PROGRAMS = {"vectorAdd": [], "inplace": [], "reduction": [], "transpose": [], "fma": [], "tensor": [], "copy": ["1024"]}
VERDICTS = ["equal", "within", "near", "known difference", "outside", "missing"]


class Values:
    """What the runs of one program gave, by kernel: `alone` and `batched` hold launches."""

    def __init__(self, program, caches):
        self.program, self.caches, self.kernels = program, caches, []
        self.alone, self.batched = collections.defaultdict(list), collections.defaultdict(list)
        self.units, self.batches, self.seconds = {}, [], 0.0

    def plain(self):
        """Kernels are those that the program names in its expectations."""
        run = validate.Program(self.program, 1, self.caches)
        run.run_plain()
        self.kernels = run.kernels

    def collect(self, base, batch, launches, chosen_set):
        program = harness.programs() / self.program
        result = harness.run([harness.kprof(), "--verbose", "--set", chosen_set, "--cache-control", self.caches,
                              "--replay-batch", batch, "-k", harness.kernel_filter(self.kernels), "-o", base,
                              "--log-file", f"{base}.log", program, launches, *PROGRAMS[self.program]])
        self.seconds += result.seconds
        if result.status != 0:
            raise harness.Failure(f"kprof ended with {result.status}: {harness.last_lines(result.stderr)}")
        reported, units = harness.read_report(base)
        self.units.update(units)
        target = self.alone if batch == "1" else self.batched
        for launch in reported:
            if not launch.measured:
                raise harness.Failure(f"{launch.kernel} was not measured: {launch.reason}")
            target[launch.kernel].append(launch)
        if batch != "1":
            self.batches.append(harness.largest_batch(base))
            if self.batches[-1] < 2:
                raise harness.Failure("no launches were repeated together")

    def compared(self, kernel):
        """(metric, verdict, values alone, values batched)"""
        names = {}
        for launch in self.alone[kernel] + self.batched[kernel]:
            names.update(dict.fromkeys(launch.metrics))
        durations = validate.values(self.alone[kernel], validate.DURATION)
        duration = statistics.median(durations) if durations else None
        for name in names:
            alone, batched = (validate.values(launches[kernel], name) for launches in (self.alone, self.batched))
            if alone or batched:
                yield name, compare.judge_spread(name, batched, alone, duration), alone, batched


def fails(caches, name, verdict):
    if verdict not in ("outside", "missing"):
        return False
    return caches == "all" or verdict == "missing" or compare.is_exact(name)


class Comparing:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.known = compare.load_known(harness.ROOT / "tests/gpu/known-differences-batched.txt")
        self.failures, self.rows = [], []
        self.listed = {verdict: [] for verdict in ("outside", "missing", "known difference", "near")}

    def collect(self, values):
        """Runs alone and in batches take turns, so that drift of the machine falls on both."""
        values.plain()
        for run in range(self.options.runs):
            base = f"{self.folder}/{values.program}-{values.caches}-{run}"
            values.collect(f"{base}-alone", "1", self.options.alone, self.options.set)
            values.collect(f"{base}-batched", "auto", self.options.batched, self.options.set)

    def explained(self, kernel, name, verdict):
        known = verdict == "outside" and compare.known_reason(self.known, kernel, name)
        return "known difference" if known else verdict

    def judge(self, values):
        for kernel in values.kernels:
            count = collections.Counter()
            for name, verdict, alone, batched in values.compared(kernel):
                verdict = self.explained(kernel, name, verdict)
                count[verdict] += 1
                if fails(values.caches, name, verdict):
                    self.failures.append(f"{kernel}, caches {values.caches}: {name} is {verdict}")
                if verdict in self.listed:
                    self.listed[verdict].append((kernel, values.caches, f"`{name}`", *cells(alone, batched),
                                                 values.units.get(name, "")))
            self.rows.append((kernel, values.caches, len(values.alone[kernel]), len(values.batched[kernel]),
                              min(values.batches), sum(count.values()), *(count[verdict] for verdict in VERDICTS)))

    def run(self, program, caches):
        values = Values(program, caches)
        try:
            self.collect(values)
            self.judge(values)
        except harness.Failure as failure:
            self.failures.append(f"{program}, caches {caches}: {failure}")
        print(f"values.py: {program}, caches {caches}: {values.seconds:.0f} s under kprof", file=sys.stderr, flush=True)

    def report(self):
        document = harness.Document(self.options.output or harness.results_folder() / "values.md")
        add = document.add
        add("# Batched values against values of launches repeated alone\n")
        add(harness.table(["", ""], harness.facts("tests/gpu/values.py " + " ".join(sys.argv[1:]))))
        add(f"kprof `--set {self.options.set}`, {self.options.runs} runs of each. " + " ".join(
            __doc__.rpartition("\n\n")[2].split()) + "\n")
        add(compare.SPREAD_RULE)
        add(harness.table(["kernel", "caches", "launches alone", "launches batched", "largest batch", "metrics",
                           *VERDICTS], self.rows))
        header = ["kernel", "caches", "metric", "alone: median (range)", "batched: median (range)", "difference",
                  "unit"]
        for verdict, rows in self.listed.items():
            add(f"## {verdict.capitalize()}\n")
            add(harness.table(header, rows) if rows else "None.\n")
        for pattern, reason in self.known:
            add(f"Known difference of `{pattern.pattern}`: {reason}.\n")
        add(f"## Result\n\n{len(self.failures)} failures.\n")
        for failure in self.failures:
            add(f"- {failure}")


def summary(values):
    if not values:
        return "n/a"
    return f"{harness.cell(float(statistics.median(values)))} ({validate.value_range(values)})"


def cells(alone, batched):
    difference = "n/a"
    if alone and batched and statistics.median(alone):
        reference = statistics.median(alone)
        difference = f"{100 * (statistics.median(batched) - reference) / abs(reference):+.3g} %"
    return summary(alone), summary(batched), difference


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS) + " (all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind (3)")
    parser.add_argument("--alone", type=int, default=3, help="launches of a kernel where each is repeated alone (3)")
    parser.add_argument("--batched", type=int, default=8, help="launches of a kernel where they are batched (8)")
    parser.add_argument("--caches", choices=["all", "none"], help="only with this --cache-control (both)")
    parser.add_argument("--set", default="full", help="set of metrics (full)")
    parser.add_argument("--output", help="Markdown file (values.md among the results)")
    options = parser.parse_args()
    for name in set(options.programs) - set(PROGRAMS):
        parser.error(f"{name}: not one of {', '.join(PROGRAMS)}")
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-values-") as folder:
        comparing = Comparing(options, folder)
        for caches in [options.caches] if options.caches else ["all", "none"]:
            for program in options.programs or PROGRAMS:
                comparing.run(program, caches)
        comparing.report()
    return 1 if comparing.failures or not comparing.rows else 0


if __name__ == "__main__":
    sys.exit(main())
