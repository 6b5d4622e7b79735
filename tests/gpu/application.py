#!/usr/bin/env python3
"""Compares values of --replay-mode application with those of launches that are repeated. The programs do the same in
each run: all launches match, and counts of instructions are equal. Prints Markdown, also to a file; exits 1 when a
launch lacks what one pass measures, such a count differs, or many metrics differ by more than the tolerance.

    application.py [--launches N] [--set NAME] [--tolerance PCT] [--output FILE] [PROGRAM...]
"""
import argparse
import collections
import pathlib
import sys
import tempfile

import harness

# Of each kernel, whatever the caches and clocks do.
EXACT = "smsp__inst_executed.sum"
MOST_DIFFERENT = 0.05 # of the metrics
# Smaller values are mostly what others do.
LEAST_BYTES = 1 << 20
LEAST_PCT, LEAST_COUNT = 1, 1000


def measure(program, launches, options, base):
    """(launches, standard error); the program prints once in each run."""
    words = [harness.programs() / program, launches, *harness.PROGRAMS[program]]
    alone = harness.run(words).stdout
    result = harness.run([harness.kprof(), *options, "-f", "-o", base, *words], limit=600)
    if result.status != 0:
        raise harness.Failure(f"kprof ended with {result.status}: {harness.last_lines(result.stderr)}")
    runs = len(result.stdout) // max(1, len(alone))
    if result.stdout != alone * runs:
        raise harness.Failure("the program's output is not that of the program alone, so many times")
    return harness.read_report(base)[0], runs


def is_compared(name, launch):
    """What neither describes the launch or its passes, nor is the traffic of others beside a kernel with little."""
    is_small = (launch.metrics.get("dram__bytes.sum") or 0) < LEAST_BYTES
    is_of_memory = name.startswith(("dram__", "fbpa__", "lts__", "gpu__dram"))
    return not name.startswith("launch__") and not name.endswith(".pct_spread_over_passes") and not (
        is_small and is_of_memory)


def differences(found, repeated):
    """By kernel and metric, in percent of the larger value, of launches that have it in both."""
    by_metric = collections.defaultdict(list)
    for ours, theirs in zip(found, repeated):
        for name in set(ours.metrics) & set(theirs.metrics):
            values = [ours.metrics[name], theirs.metrics[name]]
            if None in values or not is_compared(name, theirs):
                continue
            largest = max(map(abs, values))
            is_shown = largest >= (LEAST_PCT if ".pct" in name else LEAST_COUNT if name.endswith(".sum") else 0)
            if is_shown:
                by_metric[ours.kernel, name].append((100 * abs(values[0] - values[1]) / max(largest, 1e-300), *values))
    return {key: sorted(pairs)[len(pairs) // 2] for key, pairs in by_metric.items()}


def names_of(launches):
    return {name for launch in launches for name, value in launch.metrics.items()
            if value is not None and is_compared(name, launch)}


def compare(program, found, repeated, tolerance_pct):
    """Rows of the table, how many metrics of kernels were compared, and failures."""
    rows, failures = [], []
    if [launch.kernel for launch in found] != [launch.kernel for launch in repeated]:
        failures.append(f"{program}: other launches than where they are repeated")
    missing = sorted(names_of(repeated) - names_of(found))
    if missing:
        failures.append(f"{program}: no launch has {', '.join(missing[:5])} and {max(0, len(missing) - 5)} others")
    compared = differences(found, repeated)
    for (kernel, name), (difference, ours, theirs) in sorted(compared.items()):
        if difference > tolerance_pct:
            rows.append([program, kernel, f"`{name}`", f"{ours:.6g}", f"{theirs:.6g}", f"{difference:.1f}"])
        if name == EXACT and difference > 0:
            failures.append(f"{program}: {name} of {kernel} is {ours}, and {theirs} where launches are repeated")
    if len(rows) > MOST_DIFFERENT * len(compared):
        failures.append(f"{program}: {len(rows)} of {len(compared)} metrics differ by more than {tolerance_pct:g} %")
    return rows, len(compared), failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM",
                        help=", ".join(harness.PROGRAMS) + " (vectorAdd, fma)")
    parser.add_argument("--launches", type=int, default=4, help="of each kernel (4)")
    parser.add_argument("--set", default="default", help="of metrics (default)")
    parser.add_argument("--tolerance", type=float, default=10, help="in percent (10)")
    parser.add_argument("--output", help="Markdown file (application.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    rows, failures, told = [], [], []
    collect = ["--set", options.set, "--metrics", EXACT]
    with tempfile.TemporaryDirectory(prefix="kprof-application-") as folder:
        for program in options.programs or ["vectorAdd", "fma"]:
            base = f"{folder}/{program}"
            try:
                found, runs = measure(program, options.launches,
                                      [*collect, "--replay-mode", "application", "--app-replay-mode", "strict"], base)
                repeated, _ = measure(program, options.launches, [*collect, "--replay-mode", "kernel"], base)
            except harness.Failure as failure:
                failures.append(f"{program}: {failure}")
                continue
            more, compared, failed = compare(program, found, repeated, options.tolerance)
            rows += more
            failures += failed
            told.append([program, len(found), runs, compared, len(more)])
    document = harness.Document(pathlib.Path(options.output or harness.results_folder() / "application.md"))
    document.add("# Application replay against repeated launches\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/application.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "launches", "runs", "metrics of kernels", "that differ"], told))
    document.add(harness.table(["program", "kernel", "metric", "application", "repeated", "differs, %"], rows))
    document.add(f"## Result\n\n{len(told)} programs compared, {len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures or not told else 0


if __name__ == "__main__":
    sys.exit(main())
