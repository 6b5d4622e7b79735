#!/usr/bin/env python3
"""Compares values of --replay-mode application with those of launches that are repeated. The programs do the same in
each run: all launches match, and counts of instructions are equal. Prints Markdown, also to a file; exits 1 when a
launch lacks what one pass measures, such a count differs, or many metrics differ by more than the tolerance.

    application.py [--launches N] [--set NAME] [--tolerance PCT] [--output FILE] [PROGRAM...]
"""
import argparse
import pathlib
import statistics
import sys
import tempfile

import harness

# Of each kernel, whatever the caches and clocks do.
EXACT = "smsp__inst_executed.sum"
MOST_DIFFERENT = 0.1 # of the metrics


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


def medians(launches):
    """By metric, over launches that have it."""
    names = {name for launch in launches for name, value in launch.metrics.items() if value is not None}
    return {name: statistics.median(launch.metrics[name] for launch in launches
                                    if launch.metrics.get(name) is not None) for name in names}


def compare(program, found, repeated, tolerance_pct):
    """Rows of the table, and failures."""
    rows, failures = [], []
    ours, theirs = medians(found), medians(repeated)
    if len(found) != len(repeated):
        failures.append(f"{program}: {len(found)} launches, {len(repeated)} where they are repeated")
    missing = sorted(name for name in set(theirs) - set(ours) if not name.endswith(".pct_spread_over_passes"))
    if missing:
        failures.append(f"{program}: no launch has {', '.join(missing[:5])} and {max(0, len(missing) - 5)} others")
    for name in sorted(set(ours) & set(theirs)):
        largest = max(abs(ours[name]), abs(theirs[name]))
        difference = 100 * abs(ours[name] - theirs[name]) / largest if largest > 0 else 0
        if difference > tolerance_pct:
            rows.append([program, f"`{name}`", f"{ours[name]:.6g}", f"{theirs[name]:.6g}", f"{difference:.1f}"])
        if name == EXACT and difference > 0:
            failures.append(f"{program}: {name} is {ours[name]}, and {theirs[name]} where launches are repeated")
    if len(rows) > MOST_DIFFERENT * len(theirs):
        failures.append(f"{program}: {len(rows)} of {len(theirs)} metrics differ by more than {tolerance_pct:g} %")
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM",
                        help=", ".join(harness.PROGRAMS) + " (vectorAdd, fma)")
    parser.add_argument("--launches", type=int, default=4, help="of each kernel (4)")
    parser.add_argument("--set", default="default", help="of metrics (default)")
    parser.add_argument("--tolerance", type=float, default=10, help="in percent (10)")
    parser.add_argument("--output", help="Markdown file (application.md among the results)")
    options = parser.parse_args()
    if not harness.have_gpu():
        print("application.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
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
            more, failed = compare(program, found, repeated, options.tolerance)
            rows += more
            failures += failed
            told.append([program, len(found), runs, len(medians(found)), len(more)])
    document = harness.Document(pathlib.Path(options.output or harness.results_folder() / "application.md"))
    document.add("# Application replay against repeated launches\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/application.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "launches", "runs", "metrics", "that differ"], told))
    document.add(harness.table(["program", "metric", "application", "repeated", "differs, %"], rows))
    document.add(f"## Result\n\n{len(told)} programs compared, {len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures or not told else 0


if __name__ == "__main__":
    sys.exit(main())
