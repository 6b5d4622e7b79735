#!/usr/bin/env python3
"""Compares what is counted of instructions with what the range profiler counts of the same launches: the sums over the
instructions of each kernel must be equal, every repeated launch must have samples, and programs must give the results
that they give alone. With --multiplex nothing is repeated: of each kernel and shape some launches are counted by their
instructions and some are sampled, in their own runs, and means over launches must be equal. A kernel that runs seldom
may lack values then, and what it has must be right; each program has one that runs often enough. Prints Markdown, also
to a file; exits 1 when a sum differs, or something is missing.

    source.py [--launches N] [--multiplex] [--output FILE] [PROGRAM...]
"""
import argparse
import collections
import sqlite3
import sys
import tempfile

import harness

# Counters of instructions, and the metrics of the launch that count the same.
PAIRS = {
    "smsp__sass_inst_executed": "smsp__sass_inst_executed.sum",
    "smsp__sass_thread_inst_executed": "smsp__sass_thread_inst_executed.sum",
    "smsp__sass_thread_inst_executed_pred_on": "smsp__sass_thread_inst_executed_pred_on.sum",
    "smsp__sass_sectors_mem_global": "smsp__sass_sectors_mem_global.sum",
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared": "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared.sum",
}
# The hardware's own count of the first one: that of patched code has another way to be wrong.
HARDWARE = ("smsp__sass_inst_executed", "smsp__inst_executed.sum")

SUMS = """SELECT kernel.function, metric.name, sum(value) FROM instruction_value
JOIN code_profile AS profile ON profile.id = profile_id JOIN kernel ON kernel.id = profile.kernel_id
JOIN metric ON metric.id = metric_id WHERE metric.name LIKE 'smsp__sass_%' GROUP BY kernel.function, metric.name"""
# Of each launch of a kernel.
LAUNCHES = "SELECT kernel, metric, avg(value) FROM launch_metrics GROUP BY kernel, metric"
PROFILES = """SELECT kernel.function, sum(counted), sum(sampled), max(reason), sum(dropped),
(SELECT count(*) FROM launch WHERE launch.kernel_id = kernel.id)
FROM code_profile AS profile JOIN kernel ON kernel.id = profile.kernel_id
GROUP BY kernel.id"""

MULTIPLEXED = 60  # launches of each kernel
MOST = {"inplace": 8}  # what a program can do at most
# One launch is watched, one counted and one sampled, and each of the two passes takes another one.
ENOUGH = 6
OPTIONS = ["--set", "source", "--metrics", ",".join([*PAIRS.values(), HARDWARE[1]]), "--cache-control", "none"]


def read(base):
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        sums, launches = collections.defaultdict(dict), collections.defaultdict(dict)
        for kernel, metric, value in database.execute(SUMS):
            sums[kernel][metric] = value
        for kernel, metric, value in database.execute(LAUNCHES):
            launches[kernel][metric] = value
        return sums, launches, database.execute(PROFILES).fetchall()


def verdict(over, alone):
    if over is None or alone is None:
        return "not measured"
    return "equal" if abs(over - alone) <= 1e-6 * max(abs(alone), 1) else "**differs**"


def compare(program, base, multiplexes):
    """Rows of the table, and failures."""
    sums, launches, profiles = read(base)
    return judge(program, sums, launches, profiles, multiplexes)


def judge(program, sums, launches, profiles, multiplexes):
    rows, failures = [], []
    for kernel, counted, sampled, reason, dropped, count in profiles:
        seldom = multiplexes and count < ENOUGH
        for name, whole in [*PAIRS.items(), HARDWARE]:
            over = sums[kernel].get(name, 0.0) / counted if counted else None
            alone = launches[kernel].get(whole)
            found = verdict(over, alone)
            rows.append((program, kernel, f"`{name}`", f"`{whole}`", *("n/a" if value is None else value
                                                                       for value in (over, alone)), found))
            if found != "equal" and not (seldom and found == "not measured"):
                failures.append(f"{program}, {kernel}: {name} is {over} over the instructions, {whole} is {alone}")
        if not seldom and (min(counted, sampled) < (1 if multiplexes else count) or reason):
            failures.append(f"{program}, {kernel}: of {count} launches {counted} have counters of their instructions, "
                            f"{sampled} samples; {reason}")
        rows.append((program, kernel, "launches with counters and samples, samples dropped", "", counted, sampled,
                     dropped))
    if not any(row[-1] == "equal" for row in rows):
        failures.append(f"{program}: no sum could be compared")
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(harness.PROGRAMS) + " (all)")
    parser.add_argument("--launches", type=int, help="of each kernel (5; 60 with --multiplex)")
    parser.add_argument("--multiplex", action="store_true", help="repeat no launch")
    parser.add_argument("--output", help="Markdown file (source.md among the results)")
    options = parser.parse_args()
    for name in set(options.programs) - set(harness.PROGRAMS):
        parser.error(f"{name}: not one of {', '.join(harness.PROGRAMS)}")
    harness.need_gpu()
    rows, failures = [], []
    launches = options.launches or (MULTIPLEXED if options.multiplex else 5)
    words = OPTIONS + (["--replay-mode", "multiplex", "--multiplex-samples", "2"] if options.multiplex else [])
    with tempfile.TemporaryDirectory(prefix="kprof-source-") as folder:
        for program in options.programs or harness.PROGRAMS:
            base = f"{folder}/{program}"
            try:
                seconds = harness.measure_as_alone(program, min(launches, MOST.get(program, launches)), words,
                                                    base).seconds
                more, failed = compare(program, base, options.multiplex)
                rows += more
                failures += failed
                print(f"source.py: {program}: {seconds:.1f} s under kprof", file=sys.stderr, flush=True)
            except harness.Failure as failure:
                failures.append(f"{program}: {failure}")
    document = harness.Document(options.output or harness.results_folder() / "source.md")
    document.add("# Counters of instructions against those of their launches\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/source.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "kernel", "of instructions", "of the launch",
                                "mean of launches, over instructions", "mean of launches", ""], rows))
    document.add(f"## Result\n\n{len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
