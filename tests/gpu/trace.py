#!/usr/bin/env python3
"""Traces programs whose timelines are known by arithmetic (programs/timeline.cu), and compares what the tables tell.
Then measures launches with and without --trace: counters must be the same, and each launch recorded as often as it ran.
Prints Markdown, also to a file, with the seconds of each program alone and traced; exits 1 when a figure is off.

    trace.py [--output FILE]
"""
import argparse
import collections
import json
import sqlite3
import sys
import tempfile

import harness

CASES = ("gaps", "overlap", "copies", "launches", "steps", "managed")
TABLES = "gpu_busy,gpu_idle_sum,transfer_sum,memory_sum,cuda_gpu_kern_sum,cuda_gpu_mem_size_sum,cuda_api_sum"


def trace(case, base):
    """What the program tells of itself, the tables, and the seconds of both runs."""
    words = [harness.programs() / "timeline", case]
    alone = harness.run(words)
    is_managed = case == "managed"
    options = ["--unified-memory"] if is_managed else []
    result = harness.run([harness.kprof(), "trace", *options, "-f", "-o", base, *words], limit=600)
    if alone.status != 0 or result.status != 0:
        raise harness.Failure(f"the program ends with {alone.status}, traced with {result.status}: "
                      f"{harness.last_lines(result.stderr)}")
    if result.stdout != alone.stdout:
        raise harness.Failure("the program's output is not that of the program alone")
    stats = harness.run([harness.kprof(), "stats", harness.report_path(base), "--json", "--report",
                         TABLES + (",um_total_sum" if is_managed else "")])
    if stats.status != 0:
        raise harness.Failure(f"kprof stats: {harness.last_lines(stats.stderr)}")
    known = {name: float(number) for name, number in (line.split() for line in alone.stdout.splitlines())}
    return known, json.loads(stats.stdout), alone.seconds, result.seconds


def total(rows, column, **where):
    return sum(row[column] or 0 for row in rows
               if all(row[name.replace("_", " ")] == value for name, value in where.items()))


def idle(tables, cause):
    return total(tables["gpu_idle_sum"], "Total Time (ns)", Cause=cause) / 1e3


def checks(case, known, tables):
    """(what, told, lowest, highest) of each figure."""
    kernels, busy = tables["cuda_gpu_kern_sum"], tables["gpu_busy"][0]
    kernel_us = total(kernels, "Total Time (ns)") / 1e3
    if "kernels" in known:
        yield "kernels", total(kernels, "Instances"), known["kernels"], known["kernels"]
        launches = total(tables["cuda_api_sum"], "Num Calls", Name="cudaLaunchKernel")
        yield "launches", launches, known["kernels"], known["kernels"]
        parts = sum(row["Num Calls"] for row in tables["cuda_api_sum"] if row["Name"].startswith("cuLaunchKernel"))
        yield "launches that are told as calls of the driver, too", parts, 0, 0
    if "kernel_us" in known:
        yield "time of kernels (us)", kernel_us, known["kernel_us"], 1.05 * known["kernel_us"]
    if case == "gaps":
        yield "idle by host code (us)", idle(tables, "host code"), known["host_us"], 1.1 * known["host_us"]
        yield "busy (%)", busy["Busy (%)"], 14, 17.5 # 1 of 6 ms
    if case == "overlap":
        yield "copies overlapped (%)", busy["Copies Overlapped (%)"], 99, 100
        yield "bytes", total(tables["transfer_sum"], "Total (MB)") * 1e6, *around(known["copied_bytes"], 1e-4)
        yield "throughput (GB/s)", tables["transfer_sum"][0]["Throughput (GB/s)"], 5, 500
    if case == "copies":
        rows = tables["transfer_sum"]
        to = total([row for row in rows if row["SrcMemKd"] == "Pageable"], "Total (MB)") * 1e6
        back = total([row for row in rows if row["DstMemKd"] == "Pinned"], "Total (MB)") * 1e6
        yield "bytes from pageable memory", to, *around(known["pageable_bytes"], 1e-4)
        yield "bytes to pinned memory", back, *around(known["pinned_bytes"], 1e-4)
        yield "small copies in a row", total(rows, "Small in a Row"), known["small"] - 1, known["small"]
        sizes = total(tables["cuda_gpu_mem_size_sum"], "Total (MB)", Operation="[CUDA memset]") * 1e6
        yield "bytes that are set", sizes, *around(known["set_bytes"], 1e-4)
        high = total(tables["memory_sum"], "High Water (MB)", Memory="Device") * 1e6
        yield "bytes allocated", high, *around(known["allocated_bytes"], 1e-3)
    if case == "launches":
        of_span = 100 * idle(tables, "launching") / (busy["Span (ns)"] / 1e3)
        yield "idle by launching (%)", 100 * of_span / busy["Idle (%)"], 80, 101
    if case == "managed":
        [row] = tables["um_total_sum"]
        for way in ("HtoD", "DtoH"):
            moved = row[f"Total {way} Migration Size (MB)"] * 1e6
            yield f"managed bytes, {way}", moved, *around(known["managed_bytes"], 0.05)
        yield "page faults of the GPU", row["Total GPU PageFaults"], 1, float("inf")
        yield "page faults of the host", row["Total CPU Page Faults"], 1, float("inf")
    if case == "steps":
        yield "queue depth", busy["Queue Depth Max"], known["depth"], known["kernels"]
        yield "busy (%)", busy["Busy (%)"], 95, 100


def stacks(base):
    """(what, told, lowest, highest) of a run with call stacks."""
    words = [harness.programs() / "timeline", "steps"]
    result = harness.run([harness.kprof(), "trace", "--call-stack-type", "native", "-f", "-o", base, *words], limit=600)
    stats = harness.run([harness.kprof(), "stats", harness.report_path(base), "--json", "--report",
                         "kern_line_sum,call_line_sum,cuda_gpu_kern_sum,cuda_api_sum"])
    if result.status != 0 or stats.status != 0:
        raise harness.Failure(f"traced with {result.status}, kprof stats with {stats.status}: "
                              f"{harness.last_lines(result.stderr + stats.stderr)}")
    tables = json.loads(stats.stdout)
    kernels, calls = total(tables["cuda_gpu_kern_sum"], "Instances"), total(tables["cuda_api_sum"], "Num Calls")
    of_kernels, of_calls = ([row for row in tables[name] if row["Line"]] for name in ("kern_line_sum", "call_line_sum"))
    yield "kernels with a line", total(of_kernels, "Instances"), kernels, kernels
    yield "calls with a line", total(of_calls, "Num Calls"), kernels, calls
    yield "lines of kernels", len({row["Line"] for row in of_kernels}), 1, 3


# Counters of what does not change from run to run, some of them in one pass and some in several.
COUNTED = ("smsp__inst_executed.sum", "smsp__sass_inst_executed_op_global_ld.sum", "l1tex__t_sectors.sum",
           "smsp__thread_inst_executed.sum")
BY_INSTRUCTION = "inst_executed" # which would be 0 beside records of kernels
LAUNCHES = 20


def measure(program, base, *options):
    """(launches of the report, what was counted by instruction, kernels recorded, those with a call stack, times of
    kprof's and their ms) of a program that is measured."""
    sets = ["--section", "SourceCounters", "--metrics", ",".join((*COUNTED, BY_INSTRUCTION))]
    harness.measure_as_alone(program, LAUNCHES, [*sets, *options], base)
    launches, _ = harness.read_report(base)
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        kernels = database.execute("SELECT count(*) FROM trace_kernel").fetchone()[0]
        stacks = database.execute("SELECT count(*) FROM trace_kernel WHERE (process_id, correlation) IN (SELECT "
                                  "process_id, correlation FROM trace_caller)").fetchone()[0]
        own, ns = database.execute("SELECT count(*), total(end_ns-start_ns) FROM trace_overhead JOIN trace_name n ON "
                                   "n.id=name_id WHERE text LIKE 'kprof: %'").fetchone()
        names = f"'{BY_INSTRUCTION}', 'smsp__sass_{BY_INSTRUCTION}'"
        counted = database.execute("SELECT total(value) FROM instruction_value JOIN metric ON metric.id=metric_id "
                                   f"WHERE metric.name IN ({names})").fetchone()[0]
    return launches, counted, kernels, stacks, own, ns / 1e6


def work_on_gpu(base):
    """Kernels by name and copies by kind and size, and how many a trace has of each."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        return collections.Counter(dict(database.execute(
            "SELECT text, count(*) FROM trace_kernel k JOIN trace_name n ON n.id=k.name_id GROUP BY 1 UNION ALL SELECT "
            "text || ' ' || bytes, count(*) FROM trace_copy c JOIN trace_name n ON n.id=c.operation_id GROUP BY 1")))


def beside(program, folder):
    """(what, told, lowest, highest) of a run that is traced and measured, beside one that is only measured."""
    plain, alone, *_ = measure(program, f"{folder}/plain")
    both, counted, kernels, stacks, own, ms = measure(program, f"{folder}/both", "--trace", "--call-stack")
    yield "launches measured", sum(launch.measured for launch in both), len(plain), len(plain)
    yield "kernels recorded", kernels, LAUNCHES, float("inf")
    harness.measure_as_alone(program, LAUNCHES, ["trace"], f"{folder}/traced")
    further = work_on_gpu(f"{folder}/both") - work_on_gpu(f"{folder}/traced")
    yield "kernels and copies that a trace alone has not", further.total(), 0, 0
    yield "kernels with a call stack", stacks, kernels, kernels
    yield "times of kprof's", own, 2, float("inf")
    yield "their time (ms)", ms, 1, float("inf")
    yield f"{BY_INSTRUCTION} of all instructions", counted, max(alone, 1), max(alone, 1)
    for metric in COUNTED:
        wanted, told = ([launch.metrics.get(metric) for launch in launches] for launches in (plain, both))
        yield f"launches with {metric}", sum(value is not None for value in told), 1, len(plain)
        yield f"launches with another {metric}", sum(a != b for a, b in zip(told, wanted)), 0, 0


def around(value, share):
    return value * (1 - share), value * (1 + share)


def judge(name, figures, rows, failures):
    for what, told, lowest, highest in figures:
        good = lowest <= told <= highest
        rows.append((name, what, told, lowest, highest, "good" if good else "**off**"))
        if not good:
            failures.append(f"{name}: {what} is {told:g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="Markdown file (trace.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix="kprof-trace-") as folder:
        for case in CASES:
            try:
                known, tables, alone, traced = trace(case, f"{folder}/{case}")
            except harness.Failure as failure:
                failures.append(f"{case}: {failure}")
                continue
            judge(case, checks(case, known, tables), rows, failures)
            rows.append((case, "seconds, and alone", f"{traced:.2f}, {alone:.2f}", "", "", ""))
        try:
            judge("steps with --call-stack", stacks(f"{folder}/stacks"), rows, failures)
        except harness.Failure as failure:
            failures.append(f"steps with --call-stack: {failure}")
        for program in ("vectorAdd", "reduction"):
            try:
                judge(f"{program} with --trace", beside(program, folder), rows, failures)
            except harness.Failure as failure:
                failures.append(f"{program} with --trace: {failure}")
    document = harness.Document(options.output or harness.results_folder() / "trace.md")
    document.add("# Traces of programs whose timelines are known\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/trace.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "figure", "told", "lowest", "highest", ""], rows))
    document.add(f"## Result\n\n{len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
