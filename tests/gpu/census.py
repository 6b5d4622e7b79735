#!/usr/bin/env python3
"""A training loop of PyTorch under `--census` alone and under `--census --top 5`, which measures in the same run.
Checks that the program runs once and gets the same weights, that both count the same launches, that nearly all of them
are timed, and that the kernels with most time are measured, with times that their census has too; and that with
`--armed no` a census that the program starts and stops around one step has the launches of that step. Exits 1 when a
check fails, 77 where there is no GPU or no PyTorch.

    census.py [--top N] [--output FILE]
"""
import argparse
import json
import os
import pathlib
import sqlite3
import sys
import tempfile

import harness

PROGRAM = pathlib.Path(__file__).parent / "programs/control_torch.py"
LEAST_TIMED = 0.999
# Caches are emptied before a measured launch, and a launch of 2 us is timed to some tenths of it.
MOST_RATIO = 3
SHAPES = """SELECT kernel.function, census.grid_x, census.grid_y, census.grid_z, sum(census.launches),
                   sum(census.total_ns), max(census.longest_ns)
            FROM census JOIN kernel ON kernel.id = census.kernel_id GROUP BY kernel.mangled, 2, 3, 4"""
MEASURED = """SELECT kernel.function, launch.grid_x, launch.grid_y, launch.grid_z, value.value
              FROM launch JOIN kernel ON kernel.id = launch.kernel_id JOIN value ON value.launch_id = launch.id
              JOIN metric ON metric.id = value.metric_id WHERE metric.name = 'gpu__time_duration.sum'"""
COUNTED = "SELECT sum(launches) FROM process WHERE id IN (SELECT process_id FROM census)"


def ask(base, text):
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        return database.execute(text).fetchall()


def take(options, base, *words):
    """(what the program printed in each of its runs, standard error); None where it cannot run."""
    environment = {**os.environ, "PYTHONPATH": str(harness.ROOT / "python"), "KPROF": str(harness.kprof())}
    done = harness.run([harness.kprof(), "--census", *options, "-f", "-o", base, sys.executable, PROGRAM, *words],
                       limit=500, env=environment)
    if done.status == harness.SKIPPED:
        return None
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.status != 0 or not lines:
        raise harness.Failure(f"kprof ended with {done.status}: {harness.last_lines(done.stderr)}")
    return lines, done.stderr


def judge_step(alone, all_launches, launches):
    """What is not as it should be of the census of one step. The program launches a few kernels before its steps."""
    per_step = all_launches // alone["steps"]
    return [] if launches == per_step > 0 else [f"{launches} launches are in the census of a step of {per_step}"]


def judge(runs, counted, timed, rows):
    """What is not as it should be. `runs`: what the program printed, alone and measured. `rows`: (kernel, mean of its
    census in ns, measured ns)."""
    alone, measured = runs
    wrong = []
    if len(measured) != 1:
        wrong.append(f"the program ran {len(measured)} times")
    if len({result["checksum"] for result in alone + measured}) != 1:
        wrong.append("other weights")
    if counted[0] != counted[1]:
        wrong.append(f"{counted[0]} launches were counted alone, and {counted[1]} beside counters")
    if timed < LEAST_TIMED * counted[1]:
        wrong.append(f"{counted[1] - timed} of {counted[1]} launches were not timed")
    if not rows:
        wrong.append("no launch was measured")
    for kernel, mean_ns, measured_ns in rows:
        if not mean_ns / MOST_RATIO <= measured_ns <= MOST_RATIO * mean_ns:
            wrong.append(f"{kernel}: {measured_ns:.0f} ns where it was measured, {mean_ns:.0f} on average")
    return wrong


def compare(base):
    """(kernel, mean of the census, measured) of each measured launch."""
    means = {row[:4]: row[5] / row[4] for row in ask(base, SHAPES)}
    return [(row[0], means[row[:4]], row[4]) for row in ask(base, MEASURED) if row[:4] in means]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--top", type=int, default=5, help="kernels to measure (5)")
    parser.add_argument("--output", help="Markdown file (census.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-census-") as folder:
        alone = take([], f"{folder}/alone")
        if alone is None:
            print("census.py: no PyTorch: skipped", file=sys.stderr)
            return harness.SKIPPED
        measured = take(["--top", options.top, "--set", "default"], f"{folder}/measured")
        counted = [ask(f"{folder}/{name}", COUNTED)[0][0] for name in ("alone", "measured")]
        times = [sum(row[5] for row in ask(f"{folder}/{name}", SHAPES)) for name in ("alone", "measured")]
        timed = sum(row[4] for row in ask(f"{folder}/measured", SHAPES))
        rows = compare(f"{folder}/measured")
        take(["--armed", "no"], f"{folder}/step", "counted")
        of_step = sum(row[4] for row in ask(f"{folder}/step", SHAPES))
    wrong = judge((alone[0], measured[0]), counted, timed, rows) + judge_step(alone[0][0], counted[0], of_step)
    document = harness.Document(options.output or harness.results_folder() / "census.md")
    document.add("# A census that measures in the same run\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/census.py")))
    document.add(harness.table(["", "launches", "GPU time, ms", "best step, µs"],
                               [(name, count, time_ns / 1e6, lines[0]["us"]) for name, count, time_ns, lines in
                                zip(("alone", "measured"), counted, times, (alone[0], measured[0]))]))
    document.add(f"{counted[1] - timed} launches were not timed. {of_step} are in the census of one step.\n")
    document.add(harness.table(["kernel", "mean of its census, ns", "measured, ns"], rows))
    document.add("\n".join(f"    {line}" for line in measured[1].splitlines() if line.startswith("kprof:")))
    document.add("\n".join(f"- **fail**: {line}" for line in wrong) or "All checks pass.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
