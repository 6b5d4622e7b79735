#!/usr/bin/env python3
"""Samples programs whose use of the GPU over time is known (programs/utilization.cu) with kprof trace --pm-sampling:
busy and idle parts must be where the trace has kernels, the mean be the kernels' share of the time, and bytes over PCIe
those that were copied. Then times launches alone, traced and sampled. Prints Markdown, also to a file, with all figures
that a run has left, however it ended; exits 1 when one is off.

    utilization.py [--output FILE] [--rounds N] [--only WORD]
"""
import argparse
import json
import sqlite3
import statistics
import sys
import tempfile

import harness

MS = 1000000
BUSY = "SMs Busy"
INF = float("inf")


class Samples:
    """The samples of a report, and its kernels."""

    def __init__(self, base, case, options=()):
        words = [harness.programs() / "utilization", case]
        self.result = harness.run([harness.kprof(), "trace", "--pm-sampling", "--verbose", "-f", "-o", base, *options,
                                   *words], limit=300)
        print(*(f"{case}: {line}" for line in self.result.stderr.splitlines() if "sampl" in line), sep="\n",
              file=sys.stderr)
        self.known = {name: float(number) for name, number in
                      (line.split() for line in self.result.stdout.splitlines())}
        stats = harness.run([harness.kprof(), "stats", harness.report_path(base), "--report",
                             "pm_sampling_sum,pm_sampling_steps,pm_sampling_trace,gpu_busy", "--json"])
        if stats.status != 0:
            raise harness.Failure(f"kprof stats: {harness.last_lines(stats.stderr)}")
        self.tables = json.loads(stats.stdout)
        with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
            self.kernels = database.execute("SELECT start_ns, end_ns FROM trace_kernel ORDER BY 1").fetchall()
            self.first_call = database.execute("SELECT min(start_ns) FROM trace_call").fetchone()[0]
            start = database.execute("SELECT min(t) FROM (SELECT min(start_unix_ns) AS t FROM trace UNION ALL SELECT "
                                     "min(start_ns) FROM trace_range UNION ALL SELECT min(start_ns) FROM "
                                     "trace_call)").fetchone()[0]
        for row in self.tables["pm_sampling_trace"]:
            row["Start (ns)"] += start

    def of(self, metric):
        return [(row["Start (ns)"], row["Start (ns)"] + row["Duration (ns)"], row["Value"])
                for row in self.tables["pm_sampling_trace"] if row["Metric"] == metric and row["Value"] is not None]


def overlap(kernels, start, end):
    return sum(max(0, min(b, end) - max(a, start)) for a, b in kernels)


def mean(samples, start, end):
    """Of samples, in a time."""
    parts = [(min(b, end) - max(a, start), value) for a, b, value in samples if a < end and b > start]
    return sum(ns * value for ns, value in parts) / max(1, sum(ns for ns, _ in parts))


def away(samples, kernels, margin=MS):
    """The share of samples, in per cent, that say the wrong thing: of those that lie within a kernel, and of those that
    lie outside of all, by a margin."""
    wrong = counted = 0
    for start, end, value in samples:
        inside = any(a + margin <= start and end <= b - margin for a, b in kernels)
        outside = overlap(kernels, start - margin, end + margin) == 0
        counted += inside or outside
        wrong += inside and value < 95 or outside and value > 5
    return 100 * wrong / max(1, counted)


def offset_us(samples, kernels):
    """How much later than the trace's clock that of samples is: where a kernel begins, by both, the median."""
    found = []
    for begin, _ in kernels:
        near = [(a, b, value) for a, b, value in samples if begin - 5 * MS <= a and b <= begin + 5 * MS]
        if len(near) >= 8:
            idle = sum((b - a) * (1 - value / 100) for a, b, value in near)
            found.append((near[0][0] - begin + idle) / 1e3)
    return statistics.median(found) if found else INF


def check_end(name, results):
    """Runs that do not end well: the first one's status, which is None where it did not end, and -1 here."""
    bad = next((result for result in results if result.status != 0), None)
    if bad:
        print(f"{name}: {harness.last_lines(bad.stderr)}", file=sys.stderr)
    yield f"{name}: status", 0 if bad is None else -1 if bad.status is None else bad.status, 0, 0


def checks_pulses(run):
    """(what, told, lowest, highest) of each figure."""
    samples = run.of(BUSY)
    if not samples:
        yield "samples", 0, 1, INF
        return
    first, last = samples[0][0], samples[-1][1]
    kernels = [kernel for kernel in run.kernels if kernel[1] > first]
    end = min(last, kernels[-1][1] + 50 * MS)
    share = 100 * overlap(kernels, first, end) / (end - first)
    yield "kernels while samples ran", len(kernels), run.known["kernels"] - 12, run.known["kernels"]
    yield "from the first call to the first sample (ms)", (first - run.first_call) / MS, 0, 1000
    sampled_pct = 100 * sum(b - a for a, b, _ in samples) / (last - first)
    yield "samples, of those that fit into the time (%)", sampled_pct, 98, 100.1
    yield "gaps", max(row["Gaps"] for row in run.tables["pm_sampling_sum"]), 0, 2
    yield "longest sample (ns)", max(b - a for a, b, _ in samples), 0.9 * MS, 1.1 * MS
    yield "kernels' share of the time (%)", share, 40, 60
    yield "SMs busy, mean of that time (%)", mean(samples, first, end), 0.95 * share, 1.05 * share
    yield "samples that say busy for idle, or idle for busy (%)", away(samples, kernels), 0, 1
    yield "clock of samples, later than that of kernels (us)", offset_us(samples, kernels), -500, 500
    steps = {row["Range"]: row[f"{BUSY} (%)"] for row in run.tables["pm_sampling_steps"]}
    yield "SMs busy in ranges \"on\" (%)", steps.get(":on", -1), 95, 100.5
    yield "SMs busy in ranges \"off\" (%)", steps.get(":off", INF), 0, 5


def checks_limited(run, kernels, busy_pct, fewest_samples):
    """Of pulses that are traced for a part of their time, in which the SMs are busy for so much."""
    samples = run.of(BUSY)
    yield "kernels", len(run.kernels), kernels, kernels
    yield "samples", len(samples), fewest_samples, fewest_samples + 0.2 * kernels * 50 * 100 / busy_pct
    yield "SMs busy, mean of all samples (%)", sum(value for _, _, value in samples) / len(samples), \
        0.95 * busy_pct, 1.02 * busy_pct
    yield "GPU busy (%)", run.tables["gpu_busy"][0]["Busy (%)"], 0.95 * busy_pct, 1.06 * busy_pct


def checks_in_ranges(run):
    # samples begin half a second after the program
    yield from checks_limited(run, run.known["kernels"], 100, 0.85 * run.known["kernels"] * 50)


def checks_between_calls(run):
    yield from checks_limited(run, run.known["chosen"], 50, 0.97 * run.known["chosen"] * 100)


def checks_copies(run):
    for metric in ("PCIe Read", "PCIe Write"):
        got = sum((b - a) * value for a, b, value in run.of(metric))
        yield f"{metric} (GB)", got / 1e9, run.known["bytes"] / 1e9, 1.3 * run.known["bytes"] / 1e9
    for metric in ("DRAM Read", "DRAM Write"):
        yield f"{metric}, most (%)", max((value for _, _, value in run.of(metric)), default=-1), 0.3, 100


def checks_peers(run):
    """Of GPUs that NVLink does not link there is nothing to say."""
    if run.known["bytes"] == 0:
        return
    for metric, device in (("NVLink Write", 0), ("NVLink Read", 1)):
        rows = [row for row in run.tables["pm_sampling_trace"] if row["Metric"] == metric and row["Device"] == device]
        got = sum(row["Duration (ns)"] * row["Value"] for row in rows)
        yield f"{metric} of GPU {device} (GB)", got / 1e9, run.known["bytes"] / 1e9, 1.3 * run.known["bytes"] / 1e9


def seconds(case, base, rounds):
    """The program's own seconds for its launches: alone, traced, and sampled, the least of each; and all runs."""
    words = [harness.programs() / "utilization", case]
    runs = {"alone": words}
    for name, option in (("traced", []), ("sampled", ["--pm-sampling"])):
        runs[name] = [harness.kprof(), "trace", *option, "-f", "-o", base, *words]
    least, results = {}, []
    for _ in range(rounds):
        for name, line in runs.items():
            results.append(harness.run(line, limit=300))
            told = results[-1].stdout.split()
            if len(told) == 2: # also of one that crashed as it ended
                least[name] = min(least.get(name, INF), float(told[1]))
    return least, results


def checks_cost(case, least):
    """Without those of a run that told no time."""
    for what, name, other, highest in ((f"{case}: seconds alone", "alone", None, INF),
                                       (f"{case}: traced, times as long", "traced", "alone", INF),
                                       (f"{case}: sampled, too, times as long as traced", "sampled", "traced", 1.05)):
        known = name in least and (other is None or other in least)
        yield what, least[name] / least.get(other, 1) if known else -1, 0, highest


def judge(figures, rows, failures):
    """Add a row for each figure, up to the first that what a run has left does not give."""
    try:
        for what, told, lowest, highest in figures:
            good = lowest <= told <= highest
            rows.append((what, told, lowest, highest, "good" if good else "**off**"))
            if not good:
                failures.append(f"{what} is {told:g}")
    except (LookupError, ValueError, statistics.StatisticsError) as error:
        rows.append(("the figures that follow", "none", "", "", "**off**"))
        failures.append(repr(error))


def sampled(case, checks, folder, rows, failures):
    """The rows of what was sampled of a program; `case` has the options of kprof trace, too."""
    try:
        run = Samples(f"{folder}/run", *case.split()[:1], case.split()[1:])
    except (harness.Failure, sqlite3.Error, ValueError) as failure:
        failures.append(f"{case}: {failure}")
        return []
    judge(check_end(case, [run.result]), rows, failures)
    judge(checks(run), rows, failures)
    return [(case, *(row[key] for key in ("Metric", "Unit", "Mean", "Min", "Max", "Samples", "Gaps", "Over Time")))
            for row in run.tables["pm_sampling_sum"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="Markdown file (utilization.md among the results)")
    parser.add_argument("--rounds", type=int, default=3, help="how often launches are timed; 0: not (3)")
    parser.add_argument("--only", default="", help="only programs whose line has this word, such as peers")
    options = parser.parse_args()
    harness.need_gpu()
    rows, failures, shown = [], [], []
    with tempfile.TemporaryDirectory(prefix="kprof-utilization-") as folder:
        for case, checks in (("pulses", checks_pulses), ("pulses --nvtx-include on/", checks_in_ranges),
                             ("pulses --profile-from-start off", checks_between_calls), ("copies", checks_copies),
                             ("peers", checks_peers)):
            if options.only in case:
                shown += sampled(case, checks, folder, rows, failures)
        for case in ("busy", "launches") if options.rounds > 0 and not options.only else ():
            least, results = seconds(case, f"{folder}/{case}", options.rounds)
            judge(check_end(case, results), rows, failures)
            judge(checks_cost(case, least), rows, failures)
    document = harness.Document(options.output or harness.results_folder() / "utilization.md")
    document.add("# Samples over the time of programs whose use of the GPU is known\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/utilization.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["figure", "told", "lowest", "highest", ""], rows))
    document.add(harness.table(["program", "metric", "unit", "mean", "least", "most", "samples", "gaps", "over time"],
                               shown))
    document.add(f"## Result\n\n{len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
