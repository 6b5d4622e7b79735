#!/usr/bin/env python3
"""Compares what is sampled over the time of launches with what the range profiler counts of them: what samples add up
to, over the launch's duration, with values of the whole launch, and sums with sums. The first and the last sample are
of the launch in part, so that means over samples would be smaller. The median over a kernel's launches is judged.
Programs must give the results that they give alone.
Prints Markdown, also to a file, and writes the series of each program's first launch to a CSV file beside it; exits 1
when one differs by more than the tolerance, or something is missing.

    pm_sampling.py [--launches N] [--tolerance PCT] [--output FILE] [PROGRAM...]
"""
import argparse
import collections
import csv
import pathlib
import sqlite3
import statistics
import sys
import tempfile

import harness

# What is sampled by counters that do not go with those of the launch, and the launch's own name for it. The launch has
# none for the FMA pipe, whose samples count what it does for FP16, too.
OF_LAUNCH = {
    "TPC.TriageCompute.sm__inst_executed_realtime.avg.per_cycle_elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.avg.pct_of_peak_sustained_elapsed":
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.avg.pct_of_peak_sustained_elapsed":
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_elapsed",
    "FE_B.TriageCompute.gr__ctas_launched_realtime.sum": "sm__ctas_launched.sum",
}
# Shares and rates of elapsed time, whose means over time are those of the launch.
RATES = [
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
    "dram__bytes_write.sum.pct_of_peak_sustained_elapsed",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed.avg.per_cycle_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.per_cycle_elapsed",
    "smsp__inst_executed.avg.per_cycle_elapsed",
]
SUMS = ["sm__ctas_launched.sum"]
LEAST_SAMPLES = 20
LEAST_RATE = 5 # of a rate; smaller ones are shown, and not judged, as is a kernel of fewer launches:
LEAST_LAUNCHES = 3 # the first replay of all also writes to DRAM what the caches still have of kprof's own work

DURATION = "gpu__time_duration.sum"

OVER_TIME = """SELECT kernel.function, launch.id, metric.name, sum(value * duration_ns), sum(value), count(value)
FROM timeline JOIN launch ON launch.id = launch_id JOIN kernel ON kernel.id = kernel_id
JOIN metric ON metric.id = metric_id WHERE value IS NOT NULL GROUP BY launch.id, metric.id"""
WHOLE = "SELECT launch, metric, value FROM launch_metrics"
REASONS = "SELECT DISTINCT printf('pass %d: %s', pass, reason) FROM timeline_pass WHERE reason != ''"
SERIES = """SELECT launch_id, metric.name, start_ns, timeline.duration_ns, value
FROM timeline JOIN metric ON metric.id = metric_id WHERE launch_id = (SELECT min(launch_id) FROM timeline)
ORDER BY metric.id, start_ns"""


OPTIONS = ["--set", "pmsampling", "--metrics", ",".join(RATES + SUMS)]


def difference_pct(sampled, whole):
    """Of the larger one."""
    largest = max(abs(sampled), abs(whole))
    return 100 * abs(sampled - whole) / largest if largest > 0 else 0


def compare(program, base, tolerance_pct):
    """Rows of the table, and what was not sampled."""
    rows = []
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        sampled = database.execute(OVER_TIME).fetchall()
        whole = {(launch, metric): value for launch, metric, value in database.execute(WHOLE)}
        reasons = [row[0] for row in database.execute(REASONS)]
    if not sampled:
        raise harness.Failure(f"nothing was sampled: {'; '.join(reasons) or 'no reason'}")
    for kernel, launch, name, integral, total, count in sampled:
        metric = OF_LAUNCH.get(name, name)
        duration, other = whole.get((launch, DURATION)), whole.get((launch, metric))
        if metric not in RATES + SUMS or other is None or not duration:
            continue
        own = total if metric in SUMS else integral / duration
        differs = difference_pct(own, other)
        is_compared = count >= LEAST_SAMPLES and max(own, other) >= LEAST_RATE
        verdict = "not compared" if not is_compared else "equal" if differs <= tolerance_pct else "**differs**"
        rows.append((program, kernel, launch, f"`{metric}`", count, f"{own:.4g}", f"{other:.4g}", f"{differs:.2f}",
                     verdict))
    return rows, [f"{program}: {reason}" for reason in reasons]


def judge(rows, tolerance_pct):
    """Kernels that are judged, and metrics of which half of a kernel's launches or more differ."""
    differences = collections.defaultdict(list)
    for program, kernel, _, metric, _, _, _, differs, verdict in rows:
        if verdict != "not compared":
            differences[program, kernel, metric].append(float(differs))
    judged = {key: statistics.median(values) for key, values in differences.items() if len(values) >= LEAST_LAUNCHES}
    failures = [f"{program}, {kernel}: {metric}: the median of the launches differs by {median:.2f} %"
                for (program, kernel, metric), median in judged.items() if median > tolerance_pct]
    return {key[:2] for key in judged}, failures


def keep_series(program, base, writer):
    """The samples of the first launch."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        writer.writerows((program, *row) for row in database.execute(SERIES))


def find_phases(base):
    """What phases kprof finds in programs/phases.cu, by launch: numbers of units and ends in percent of the time."""
    words = [harness.programs() / "phases"]
    result = harness.run([harness.kprof(), "--set", "pmsampling", "-f", "-o", base, *words], limit=600)
    if result.status != 0:
        raise harness.Failure(f"kprof ended with {result.status}: {harness.last_lines(result.stderr)}")
    launches, _ = harness.read_report(base)
    names = ("phases", "phase1_unit", "phase1_end_pct", "phase2_unit", "phase2_end_pct")
    return [tuple(launch.metrics.get(f"timeline__{name}") for name in names) for launch in launches]


def judge_phases(found):
    """DRAM comes first, then the issue of instructions or a pipe."""
    if not found:
        yield "phases: no launch was measured"
    for count, first, end, second, last in found:
        if (count, first, last) != (2, 1, 100) or second not in (5, 7) or not 25 <= end <= 75:
            yield f"phases: {count} phases, unit {first} until {end} %, then {second} until {last} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(harness.PROGRAMS) + " (all)")
    parser.add_argument("--launches", type=int, default=3, help="of each kernel (3)")
    parser.add_argument("--tolerance", type=float, default=3, help="in percent (3)")
    parser.add_argument("--output", help="Markdown file (pm_sampling.md among the results)")
    options = parser.parse_args()
    for name in set(options.programs) - set(harness.PROGRAMS):
        parser.error(f"{name}: not one of {', '.join(harness.PROGRAMS)}")
    harness.need_gpu()
    rows, failures = [], []
    output = pathlib.Path(options.output or harness.results_folder() / "pm_sampling.md")
    with (tempfile.TemporaryDirectory(prefix="kprof-pm-sampling-") as folder,
          open(output.with_suffix(".csv"), "w", encoding="utf-8", newline="") as series):
        writer = csv.writer(series)
        writer.writerow(["program", "launch", "metric", "start_ns", "duration_ns", "value"])
        for program in options.programs or harness.PROGRAMS:
            base = f"{folder}/{program}"
            try:
                harness.measure_as_alone(program, options.launches, OPTIONS, base)
                keep_series(program, base, writer)
                more, failed = compare(program, base, options.tolerance)
                rows += more
                failures += failed
            except harness.Failure as failure:
                failures.append(f"{program}: {failure}")
        try:
            failures += judge_phases(find_phases(f"{folder}/phases"))
        except harness.Failure as failure:
            failures.append(f"phases: {failure}")
    document = harness.Document(output)
    document.add("# Samples over time against values of the launch\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/pm_sampling.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "kernel", "launch", "metric", "samples", "over time", "in all", "differs, %",
                                ""], rows))
    judged, failed = judge(rows, options.tolerance)
    failures += failed
    document.add(f"## Result\n\n{len(judged)} kernels compared, {len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures or not judged else 0


if __name__ == "__main__":
    sys.exit(main())
