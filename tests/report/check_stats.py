#!/usr/bin/env python3
"""Adds up a trace again, from its records, and compares what `kprof stats` prints in all its tables. Usage:
check_stats.py WRITE_FIXTURE KPROF"""
import collections
import csv
import html.parser
import io
import json
import math
import os
import pathlib
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile

TIMES = ["Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
COUNTED = str(pathlib.Path(__file__).parents[1] / "fixtures/source/source.kprof")
BEGIN = 1751371199999500000 # of the trace, half a millisecond before its first activity
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def spread(values, digits=1):
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    return [round(statistics.mean(values), digits), statistics.median(values), min(values), max(values),
            round(deviation, digits)]


def add_up(rows):
    """Of (duration, key...) the share, the total and the spread of each key, the largest total first."""
    groups = collections.defaultdict(list)
    for duration, *key in rows:
        if duration is not None:
            groups[tuple(key)].append(duration)
    whole = sum(sum(values) for values in groups.values())
    table = [[round(100 * sum(values) / whole, 1), sum(values), len(values), *spread(values), *key]
             for key, values in groups.items()]
    return sorted(table, key=lambda row: (-row[1], row[-1]))


def summary(count, *names):
    return ["Time (%)", "Total Time (ns)", count, *TIMES, *names]


class Trace:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.names = dict(self.db.execute("SELECT id, text FROM trace_name"))
        self.demangled = dict(self.db.execute("SELECT id, demangled FROM trace_name"))

    def rows(self, table, *columns):
        return self.db.execute(f"SELECT {', '.join(columns)} FROM trace_{table} ORDER BY id").fetchall()

    def kernels(self):
        return [(end and end - start, self.demangled[name], grid, block) for start, end, name, grid, block in self.rows(
            "kernel", "start_ns", "end_ns", "name_id", "printf('%4d %4d %4d', grid_x, grid_y, grid_z)",
            "printf('%4d %4d %4d', block_x, block_y, block_z)")]

    def memory(self):
        """Duration, bytes and name of copies and sets."""
        copies = [(end - start, size, f"[CUDA memcpy {self.names[how]}]") for start, end, size, how in self.rows(
            "copy", "start_ns", "end_ns", "bytes", "operation_id")]
        return copies + [(end - start, size, "[CUDA memset]") for start, end, size in self.rows(
            "set", "start_ns", "end_ns", "bytes")]

    def calls(self):
        return [(end - start, self.names[name])
                for start, end, name in self.rows("call", "start_ns", "end_ns", "name_id")]

    def ranges(self):
        return [(end and end - start, self.names[style], f"{self.names.get(domain, '')}:{self.names[name]}")
                for start, end, style, domain, name in self.rows("range", "start_ns", "end_ns", "style_id", "domain_id",
                                                                 "name_id")]

    def executions(self):
        """Of each kernel with known times: its call's duration, queue, execution, all of it, and the names."""
        calls = {}
        for start, end, correlation, name in self.rows("call", "start_ns", "end_ns", "correlation", "name_id"):
            calls.setdefault(correlation, (start, end, self.names[name]))
        for start, end, correlation, name in self.rows("kernel", "start_ns", "end_ns", "correlation", "name_id"):
            if start is not None:
                began, returned, call = calls[correlation]
                yield end - began, returned - began, start - returned, end - start, call, self.demangled[name]

    def tables(self):
        gpu = [(d, "CUDA_KERNEL", name) for d, name, *_ in self.kernels()]
        memory = [(d, "MEMORY_OPER", name) for d, _, name in self.memory()]
        calls = [(d, "CUDA_API", name) for d, name in self.calls()]
        category = summary("Instances", "Category", "Operation")
        yield "cuda_gpu_kern_sum", summary("Instances", "Name"), add_up([k[:2] for k in self.kernels()])
        yield "cuda_api_sum", summary("Num Calls", "Name"), add_up(self.calls())
        yield "cuda_gpu_mem_time_sum", summary("Count", "Operation"), add_up(
            [(d, name) for d, _, name in self.memory()])
        yield "cuda_gpu_sum", category, add_up(gpu + memory)
        yield "cuda_api_gpu_sum", category, add_up(calls + gpu + memory)
        yield "cuda_gpu_kern_gb_sum", summary("Instances", "GridXYZ", "BlockXYZ", "Name"), add_up(
            [(d, grid, block, name) for d, name, grid, block in self.kernels()])
        yield "nvtx_sum", summary("Instances", "Style", "Range"), add_up(self.ranges())
        for style, name in (("PushPop", "nvtx_pushpop_sum"), ("StartEnd", "nvtx_startend_sum")):
            yield name, summary("Instances", "Range"), add_up([(d, n) for d, s, n in self.ranges() if s == style])
        yield "cuda_gpu_mem_size_sum", ["Total (MB)", "Count", "Avg (MB)", "Med (MB)", "Min (MB)", "Max (MB)",
                                        "StdDev (MB)", "Operation"], self.sizes()
        yield ("cuda_kern_exec_sum",
               ["PID", "TID", "DevId", "Count", "QCount"] +
               [f"{part}{what} (ns)" for part in "TAQK" for what in ("Avg", "Med", "Min", "Max", "StdDev")] +
               ["API Name", "Kernel Name"], self.exec_sum())

    def traces(self):
        """Tables with a row for each activity."""
        shape = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
        name, begin = self.names.get, lambda row: row[0]
        work = [(start - BEGIN, end - start, number, *sizes, registers, static / 1e6, dynamic / 1e6, None, None, None,
                 None, device, context, stream, self.demangled[kernel])
                for start, end, number, *sizes, registers, static, dynamic, device, context, stream, kernel
                in self.rows("kernel", "start_ns", "end_ns", "correlation", *shape, "registers_per_thread",
                             "static_smem_bytes", "dynamic_smem_bytes", "device", "context", "stream", "name_id")
                if start is not None]
        moved = [(*row, f"[CUDA memcpy {name(how)}]") for *row, how in self.rows(
            "copy", "start_ns", "end_ns", "correlation", "bytes", "source_memory_id", "target_memory_id", "device",
            "context", "stream", "operation_id")]
        moved += [(*row, "[CUDA memset]") for row in self.rows(
            "set", "start_ns", "end_ns", "correlation", "bytes", "memory_id", "NULL", "device", "context", "stream")]
        work += [(start - BEGIN, end - start, number, *[None] * 9, size / 1e6, round(size * 1e3 / (end - start), 3),
                  name(source), name(target), *rest) for start, end, number, size, source, target, *rest in moved]
        yield "cuda_gpu_trace", [
            "Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd",
            "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx",
            "Strm", "Name"], [
            [round(x, 3) if isinstance(x, float) else x for x in row] for row in sorted(work, key=begin)]
        calls = {number: (start - BEGIN, end - start, name(call), result, number, 4242, thread)
                 for start, end, call, result, number, thread in self.rows(
                     "call", "start_ns", "end_ns", "name_id", "result", "correlation", "thread")}
        yield "cuda_api_trace", ["Start (ns)", "Duration (ns)", "Name", "Result", "CorrID", "Pid", "Tid"], [
            list(row) for row in sorted(calls.values(), key=begin)]
        executions = []
        for row in work:
            if row[3] is not None:
                asked, took, call, *_, thread = calls[row[2]]
                queue = [asked + took, row[0] - asked - took] if row[0] > asked + took else [None, None]
                executions.append([asked, took, *queue, row[0], row[1], row[0] + row[1] - asked, 4242, thread, 0, call,
                                   "%4d %4d %4d" % row[3:6], "%4d %4d %4d" % row[6:9], row[-1]])
        yield "cuda_kern_exec_trace", [
            "API Start (ns)", "API Dur (ns)", "Queue Start (ns)", "Queue Dur (ns)", "Kernel Start (ns)",
            "Kernel Dur (ns)", "Total Dur (ns)", "PID", "TID", "DevId", "API Function", "GridXYZ", "BlockXYZ",
            "Kernel Name"], sorted(executions, key=begin)

    def sizes(self):
        groups = collections.defaultdict(list)
        for _, size, name in self.memory():
            groups[name].append(size / 1e6)
        table = [[round(sum(values), 3), len(values), *(round(x, 3) for x in spread(values, 3)), name]
                 for name, values in groups.items()]
        return sorted(table, key=lambda row: -row[0])

    def exec_sum(self):
        groups = collections.defaultdict(list)
        for *times, call, kernel in self.executions():
            groups[call, kernel].append(times)
        table = []
        for names, times in groups.items():
            queues = [queue for _, _, queue, _ in times if queue > 0]
            columns = [[t[0] for t in times], [t[1] for t in times], queues, [t[3] for t in times]]
            table.append([4242, 4242, 0, len(times), len(queues)] + [x for column in columns for x in spread(column)] +
                         list(names))
        return sorted(table, key=lambda row: -row[3] * row[5])


def lost():
    """Tables of what is lost, by hand from the times in trace_fixture.c."""
    span, steps = 2431000 - 20000, 3 # from the first copy to the last set
    copy, kernels, whole = 70000 + 50000, 3 * 300000 + 30000, 3 * (70000 + 300000 + 1000) + 30000
    share = lambda ns: round(100 * ns / span, 1)
    idle = [(span - whole, 15, "GPU idle"), (900000, 10, "Host code"), (240000, 5, "Allocation"),
            (steps * 70000, 2, "Pageable copies")]
    yield ("gpu_busy", ["Device", "Span (ns)", "Busy (%)", "Kernels (%)", "Copies Alone (%)", "Idle (%)",
                        "Copies Overlapped (%)", "Kernels", "Launch Latency Med (ns)", "Queue Depth Avg",
                        "Queue Depth Max"],
           [[0, span, share(whole), share(kernels), share(whole - kernels), share(span - whole),
             round(100 * 50000 / (copy + 1000), 1), 6, (6000 + 201000) / 2, 1.5, 2]])
    yield "goal_sum", ["Figure", "Value (%)", "Goal (%)", "Met"], [
        ["GPU busy", share(whole), "at least 85", "no"],
        ["Copies overlapped with kernels", round(100 * 50000 / (copy + 1000), 1), "at least 60", "no"],
        ["GPU idle, waiting for synchronization", share(18000), "at most 10", "yes"]]
    yield "lost_sum", ["Finding", "Time (%)", "Goal (%)", "Gain at Most (ns)"], [
        [name, share(ns), goal, ns] for ns, goal, name in idle]
    # Between steps the host waits for 9 us more, computes for 10, 10 and 430, allocates for 100 and frees for 20.
    # Behind the first copy of a step its call goes on for 10 us; a copy or a kernel begins 10 us after its call.
    yield "gpu_idle_sum", ["Device", "Time (%)", "Total Time (ns)", "Gaps", "Max (ns)", "Cause"], [
        [0, share(2 * 450000), 900000, 2, 450000, "host code"], [0, share(240000), 240000, 2, 120000, "allocation"],
        [0, share(50000), 50000, 5, 10000, "launching"], [0, share(30000), 30000, 3, 10000, "calls that copy"],
        [0, share(30000), 30000, 2, 20000, "queued work"], [0, share(18000), 18000, 2, 9000, "synchronization"]]
    yield "transfer_sum", ["Total Time (ns)", "Count", "Total (MB)", "Throughput (GB/s)", "Small", "Small in a Row",
                           "SrcMemKd", "DstMemKd", "Operation"], [
        [210000, 3, 3, round(3e6 / 210000, 3), 0, 0, "Pageable", "Device", "Host-to-Device"],
        [150000, 3, 1.5, 10, 0, 0, "Device", "Pinned", "Device-to-Host"]]
    yield "memory_sum", ["Memory", "Device", "High Water (MB)", "Allocations", "In the Loop", "Releases",
                         "Time in Calls (ns)"], [["Device", 0, 1, 3, 2, 3, 360000]]
    yield "kern_worth", ["Time (%)", "Instances", "Counted (%)", "Name"], [
        [round(100 * 600 / 930, 1), 3, 0, "vectorAdd"], [round(100 * 330 / 930, 1), 3, 0, "scale"]]
    yield "count_command", ["Command"], [
        ["kprof --set full -k 'regex:^(vectorAdd|scale)$' -c 3 --filter-mode per-launch-config -- ./train"]]
    times = lambda *values: [statistics.mean(values), statistics.median(values), min(values), max(values),
                             round(statistics.stdev(values), 1)]
    yield "nvtx_gpu_proj_sum", ["Range", "Style", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances",
                                "Proj Avg (ns)", "Proj Med (ns)", "Proj Min (ns)", "Proj Max (ns)", "Proj StdDev (ns)",
                                "Total GPU Ops", "Avg GPU Ops", "Avg Range Lvl", "Avg Num Child"], [
        [":step", "PushPop", 3 * 411000, 2700000, 3, *times(411000, 411000, 411000), 15, 5, 0, 0.7],
        ["net:forward", "StartEnd", 3 * 321000, 201000, 3, *times(321000, 321000, 321000), 12, 4, 0.7, 0]]
    adds, scale = "vectorAdd(float const*, float const*, float*, int)", "void scale<float>(float*, float, int)"
    yield "nvtx_kern_sum", ["NVTX Range", "Style", "PID", "TID", "NVTX Inst", "Kern Inst", "Total Time (ns)", *TIMES,
                            "Kernel Name"], [
        [":step", "PushPop", 4242, 4242, 3, 3, 600000, *times(200000, 200000, 200000), adds],
        ["net:forward", "StartEnd", 4242, 4242, 3, 3, 600000, *times(200000, 200000, 200000), adds],
        [":step", "PushPop", 4242, 4242, 3, 3, 330000, *times(100000, 110000, 120000), scale],
        ["net:forward", "StartEnd", 4242, 4242, 3, 3, 330000, *times(100000, 110000, 120000), scale]]
    megabytes = lambda moved, us: round(moved * 1e6 / us, 3)
    yield "um_sum", ["Virtual Address", "HtoD Migration Size (MB)", "DtoH Migration Size (MB)", "CPU Page Faults",
                     "GPU PageFaults", "Migration Throughput (MB/s)"], [
        ["0x7f0000000000", 8, 0.5, 0, 6, megabytes(8.5, 250)], ["0x7f0000010000", 4, 0, 0, 3, megabytes(4, 100)],
        ["0x7f0000001000", 0, 0, 2, 0, None], ["0x7f0000011000", 0, 0, 1, 0, None]]
    yield "um_total_sum", ["Total HtoD Migration Size (MB)", "Total DtoH Migration Size (MB)", "Total CPU Page Faults",
                           "Total GPU PageFaults", "Minimum Virtual Address", "Maximum Virtual Address"], [
        [12, 0.5, 3, 9, "0x7f0000000000", "0x7f0000011000"]]
    yield "um_cpu_page_faults_sum", ["CPU Page Faults", "CPU Instruction Address"], [[2, "0x401000"], [1, "0x401010"]]
    yield "step_sum", ["Instances", "Med (ns)", "Min (ns)", "Max (ns)", "Spread (%)", "GPU Busy (%)", "Range"], [
        [3, 900000, 900000, 900000, 0, round(100 * whole / 2700000, 1), ":step"],
        [2, 100500, 100000, 101000, 0.7, round(100 * (90000 + 91000) / 201000, 1), "net:forward"]]


def samples():
    """Begin, end and value of the samples of each metric, by hand from trace_fixture.c."""
    start = 1751371200000000000
    for metric, label, of_busy in (("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "SMs Busy", 1),
                                   ("dram__bytes_read.sum.pct_of_peak_sustained_elapsed", "DRAM Read", 0.5)):
        yield metric, label, [(start + 100000 * i, start + 100000 * (i + 1), (i % 10 * 10 * of_busy)
                               if (i, of_busy) != (2, 0.5) else None) for i in range(30) if i not in (15, 16)]


def mean_of(points, start, end):
    parts = [(min(b, end) - max(a, start), value) for a, b, value in points
             if value is not None and a < end and b > start]
    return sum(ns * value for ns, value in parts) / sum(ns for ns, _ in parts)


def sampled():
    """Tables of samples, as mean values over parts of the time."""
    start = 1751371200000000000
    steps = [(start + 1000000 * i, start + 1000000 * i + 900000) for i in range(3)]
    forward = [(a + 100000, a + 200000 + 1000 * i) for i, (a, _) in enumerate(steps[:2])]
    yield "pm_sampling_sum", ["PID", "Device", "Metric", "Unit", "Mean", "Min", "Max", "Samples", "Interval Max (ns)",
                              "Gaps", "Over Time"], [
        [4242, 0, label, "%", round(mean_of(points, start, start + 3000000), 3), 0, 90 * of_busy, 28, 100000, 1,
         line(points, start, start + 3000000)] for (_, label, points), of_busy in zip(samples(), (1, 0.5))]
    yield "pm_sampling_steps", ["Range", "Instances", "Med (ns)", "Device", "SMs Busy (%)", "DRAM Read (%)"], [
        [name, len(ranges), statistics.median(b - a for a, b in ranges), 0,
         *(of_means([round(mean_of(points, a, b), 3) for a, b in ranges])[0] for *_, points in samples())]
        for name, ranges in ((":step", steps), ("net:forward", forward))]
    yield "pm_sampling_step_spread", ["Range", "Instances", "Device", "Metric", "Unit", "Mean", "Min", "Max",
                                      "StdDev"], [
        [name, len(ranges), 0, label, "%", *of_means([round(mean_of(points, a, b), 3) for a, b in ranges])]
        for name, ranges in ((":step", steps), ("net:forward", forward)) for _, label, points in samples()]
    yield "pm_sampling_trace", ["Start (ns)", "Duration (ns)", "PID", "Device", "Name", "Metric", "Value", "Unit"], [
        [a - BEGIN, b - a, 4242, 0, metric, label, value, "%"] for pair in zip(*(
            [(metric, label, *point) for point in points] for metric, label, points in samples()))
        for metric, label, a, b, value in pair]


def of_means(means):
    return [round(statistics.mean(means), 3), min(means), max(means), round(statistics.stdev(means), 3)]


def line(points, first, last, parts=40):
    points = [(a - first, b - first, value) for a, b, value in points]
    edges = [(last - first) * i / parts for i in range(parts + 1)]
    values = [mean_of(points, a, b) if any(p[0] < b and p[1] > a and p[2] is not None for p in points) else None
              for a, b in zip(edges, edges[1:])]
    most = max(value for value in values if value is not None)
    return "|" + "".join("?" if value is None else " .:-=+*#%@"[0 if value <= 0 else 1 + math.floor(
        value / most * 8 + 0.5)] for value in values) + "|"


class Random:
    """A trace of random times: calls of two threads one after the other, and what they ask for on two GPUs. Some of
    that begins long after its call, and some has none. The tables follow from each moment of UNIT nanoseconds."""
    UNIT = 40
    WAY = 10000 // UNIT # in which work reaches the GPU
    CALLS = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMalloc", "cudaDeviceSynchronize")
    CAUSES = dict(zip(CALLS, ("launching", "calls that copy", "allocation", "synchronization")))

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.calls = [call for thread in (7, 8) for call in self.calls_of(thread)]
        self.work = [(device, begin, begin + self.random.randrange(1, 40), kind, call) for call in self.calls
                     for device, begin, kind in self.asked_by(call)]
        self.random.shuffle(self.work)

    def calls_of(self, thread):
        at = 0
        for i in range(250):
            at += self.random.choice((0, self.random.randrange(60)))
            end = at + self.random.randrange(1, 30)
            yield at, end, thread, 1000 * thread + i, self.random.choice(self.CALLS)
            at = end

    def asked_by(self, call):
        begin = call[0] + self.random.choice((3, 20, self.random.randrange(1, 900)))
        if call[4] == "cudaLaunchKernel":
            yield self.random.randrange(2), begin, "kernel"
        elif call[4] == "cudaMemcpyAsync":
            yield self.random.randrange(2), begin, "set"

    def write(self, path):
        of, base = {}, 1751371200000000000
        with sqlite3.connect(path) as database:
            for table in ("kernel", "copy", "set", "call", "memory", "range"):
                database.execute(f"DELETE FROM trace_{table}")
            for text, number in database.execute("SELECT text, id FROM trace_name"):
                of[text] = number
            for start, end, thread, number, name in self.calls:
                database.execute("INSERT INTO trace_call VALUES(NULL, 1, ?, ?, ?, ?, ?, ?, 0)", (
                    base + start * self.UNIT, base + end * self.UNIT, thread, number, of[name], of["runtime"]))
            for i, (device, begin, end, kind, call) in enumerate(self.work):
                number = 90000 + i if i % 9 == 0 else call[3]
                columns = "process_id, start_ns, end_ns, device, context, stream, correlation"
                more = {"kernel": ", name_id, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers_per_thread, "
                        "static_smem_bytes, dynamic_smem_bytes, local_bytes_per_thread", "set": ", bytes"}[kind]
                values = [1, base + begin * self.UNIT, base + end * self.UNIT, device, 1, 7, number]
                values += [1] * (more.count(",") if kind == "set" else 1) + [1] * (10 if kind == "kernel" else 0)
                database.execute(f"INSERT INTO trace_{kind}({columns}{more}) VALUES({','.join('?' * len(values))})",
                                 values)
        database.close()
        return [(*work[:4], None if i % 9 == 0 else work[4]) for i, work in enumerate(self.work)]

    def cause(self, thread, at):
        around = [call for call in self.calls if call[2] == thread and call[0] <= at < call[1]]
        return self.CAUSES[around[0][4]] if around else "host code"

    def gap(self, begin, end, call):
        """Moments of each cause."""
        if not call:
            return {"not known": end - begin}
        asked = max(begin, min(call[0], end))
        if asked == begin:
            on_its_way = min(end - begin, max(0, self.WAY - (begin - call[1])))
            return {"launching": on_its_way, "queued work": end - begin - on_its_way}
        causes = collections.Counter(self.cause(call[2], at) for at in range(begin, asked))
        causes["launching"] += end - asked
        return causes

    def idle(self, work):
        """The rows of gpu_idle_sum but for the share, by device and cause."""
        rows = {}
        for device in (0, 1):
            until = None
            for _, begin, end, _, call in sorted((w for w in work if w[0] == device), key=lambda w: w[1:3]):
                has_gap = until is not None and begin > until
                for cause, moments in self.gap(until, begin, call).items() if has_gap else ():
                    ns = moments * self.UNIT
                    total, gaps, most = rows.get((device, cause), (0, 0, 0))
                    rows[device, cause] = (total + ns, gaps + (ns > 0), max(most, ns))
                until = max(end, until or end)
        return {key: row for key, row in rows.items() if row[0] > 0}

    def busy(self, work, device):
        own = [w for w in work if w[0] == device]
        at = {kind: {ns for _, begin, end, of, _ in own if of == kind for ns in range(begin, end)}
              for kind in ("kernel", "set")}
        span, both = max(w[2] for w in own) - min(w[1] for w in own), at["kernel"] | at["set"]
        asked = [(call[0], begin) for _, begin, _, kind, call in own if kind == "kernel" and call]
        depths = [sum(c <= call < b for c, b in asked) for call, _ in asked]
        latency = statistics.median([begin - call[1] for _, begin, _, kind, call in own if kind == "kernel" and call])
        share = lambda ns: round(100 * ns / span, 1)
        return [device, span * self.UNIT, share(len(both)), share(len(at["kernel"])),
                share(len(both) - len(at["kernel"])), share(span - len(both)),
                round(100 * len(at["kernel"] & at["set"]) / len(at["set"]), 1),
                sum(w[3] == "kernel" for w in own), latency * self.UNIT,
                round(statistics.mean(depths), 1), max(depths)]


class Ranges:
    """Ranges of two threads, which may overlap. What each lies in follows from a look at all others."""

    NEVER = 1 << 62

    def __init__(self, seed):
        self.random, self.rows = random.Random(seed), []
        for _ in range(60):
            start, style = self.random.randrange(100), self.random.choice(("PushPop", "StartEnd"))
            self.rows.append((len(self.rows) + 1, start, start + self.random.randrange(1, 60), 7 + len(self.rows) % 2,
                              style))
        self.open = {61: 10, 62: 10, 63: 50} # pushed in thread 7 and not popped, the outermost first

    def write(self, path):
        with sqlite3.connect(path) as database:
            names = dict(database.execute("SELECT text, id FROM trace_name"))
            for table in ("range", "kernel", "call"):
                database.execute(f"DELETE FROM trace_{table}")
            for number, start, end, thread, style in self.rows:
                database.execute("INSERT INTO trace_range VALUES(?, 1, ?, ?, ?, ?, ?, NULL, ?)", (
                    number, start, end, thread, thread, names["step"], names[style]))
            for number, start in self.open.items():
                database.execute("INSERT INTO trace_range VALUES(?, 1, ?, NULL, 7, 7, ?, NULL, ?)", (
                    number, start, names["step"], names["PushPop"]))
            for i in range(120): # a set that runs when it is asked for, in a nanosecond
                database.execute("INSERT INTO trace_call VALUES(NULL, 1, ?, ?, ?, ?, ?, ?, 0)", (
                    i, i + 1, 7 + i % 2, i, names["cudaMemsetAsync"], names["runtime"]))
                database.execute("INSERT INTO trace_set(process_id, start_ns, end_ns, device, context, stream, "
                                 "correlation, bytes) VALUES(1, ?, ?, 0, 1, 7, ?, 1)", (i, i + 1, i))
        database.close()

    def stacks(self, rows):
        """{number: those that it lies in, the outermost first, and itself}"""
        parents = {}
        for number, start, end, thread, _ in rows:
            around = [(b - a, -a, -self.turn(n), n) for n, a, b, of, _ in rows
                      if of == thread and a <= start and b >= end and
                      (a, -b, self.turn(n)) < (start, -end, self.turn(number))]
            parents[number] = min(around)[3] if around else None
        stacks = {}
        for number in parents:
            stack = [number]
            while parents[stack[0]]:
                stack.insert(0, parents[stack[0]])
            stacks[number] = stack
        return stacks

    def turn(self, number):
        return number if number in self.open else -number

    def all(self):
        return self.rows + [(number, start, self.NEVER, 7, "PushPop") for number, start in self.open.items()]

    def pushed(self):
        rows = [row for row in self.all() if row[4] == "PushPop"]
        stacks = self.stacks(rows)
        times = {row[0]: row[2] - row[1] for row in rows}
        for number, start, end, thread, _ in rows:
            stack = stacks[number]
            own = [n for n, other in stacks.items() if other[:-1] == stack]
            inner = None if any(n in self.open for n in own) else sum(times[n] for n in own)
            times_of = [None, None, inner, None]
            if number not in self.open:
                times_of = [end, end - start, inner, end - start - inner]
            yield [start, *times_of, ":step", 4242, thread, len(stack) - 1, len(own), number,
                   stack[-2] if len(stack) > 1 else None, "".join(f":{n}" for n in stack),
                   "--" * (len(stack) - 1) + ":step"]

    def projected(self):
        rows = self.all()
        stacks = self.stacks(rows)
        ops = {row[0]: [i for i in range(120) if row[1] <= i < row[2] and 7 + i % 2 == row[3]] for row in rows}
        for number, start, end, thread, style in rows:
            stack, of, ns = stacks[number], ops[number], None if number in self.open else end - start
            if of:
                yield [":step", of[0], of[-1] + 1 - of[0], start, ns, style, 4242, thread, len(of),
                       len(stack) - 1, sum(other[:-1] == stack and bool(ops[n]) for n, other in stacks.items()), number,
                       stack[-2] if len(stack) > 1 else None, "".join(f":{n}" for n in stack)]


    def write_kernels(self, path):
        """In place of the sets. Of its name each has the number of its call modulo 4; two names are of one function."""
        self.kernels = [(i, 7 + i % 2, self.random.randrange(1, 9), i % 4) for i in range(120)]
        with sqlite3.connect(path) as database:
            [(push,)] = database.execute("SELECT id FROM trace_name WHERE text='PushPop'")
            ranges = [(number, start, end, thread, style) for number, start, end, thread, style in self.all()]
            names = [9000 + k for k in range(4)]
            database.executemany("INSERT OR REPLACE INTO trace_name VALUES(?, ?, ?, ?)", [
                (name, f"k{k}", f"k{k // 2}<{k}>", f"k{k // 2}") for k, name in enumerate(names)])
            database.executemany("UPDATE trace_range SET name_id=(SELECT id FROM trace_name WHERE text=?) WHERE id=?",
                                 [(self.name(number), number) for number, *_ in ranges])
            database.execute("DELETE FROM trace_set")
            database.executemany("INSERT INTO trace_kernel VALUES(NULL, 1, ?1, ?2, 0, 1, 7, ?1, NULL, NULL, ?3, 1, 1, "
                                 "1, 1, 1, 1, 1, 0, 0, 0)", [(i, i + ns, names[k]) for i, _, ns, k in self.kernels])
        database.close()

    @staticmethod
    def name(number):
        return ("step", "forward", "net")[number % 3]

    def kernel_sums(self, name_of):
        times, ranges = collections.defaultdict(list), collections.defaultdict(set)
        for number, start, end, of, style in self.all():
            for i, thread, ns, k in self.kernels:
                if of == thread and start <= i < end:
                    key = f":{self.name(number)}", style, 4242, thread, name_of(k)
                    times[key].append(ns)
                    ranges[key].add(number)
        return [[*key[:4], len(ranges[key]), len(values), sum(values), *spread(values), key[4]]
                for key, values in times.items()]

    def kernel_names(self):
        """Those that a kernel may have behind its innermost range: one of the deepest."""
        stacks = self.stacks(self.all())
        for i, of, _, k in self.kernels:
            around = [(len(stacks[number]), number) for number, start, end, thread, _ in self.all()
                      if of == thread and start <= i < end]
            yield {f":{self.name(number)}/k{k // 2}" for depth, number in around if depth == max(around)[0]} or {
                f"k{k // 2}"}


def check_kernels_in_ranges(kprof, report, ranges, seed):
    ranges.write_kernels(report)
    order = lambda row: (-row[6], row[0], row[12])
    tables = json.loads(printed(kprof, report, "--json", "-r", "nvtx_kern_sum:base,nvtx_kern_sum:mangled"))
    check({"nvtx_kern_sum", "nvtx_kern_sum:mangled"} <= set(tables), f"ranges {seed}: two tables are {set(tables)}")
    for base, name_of in (("base", lambda k: f"k{k // 2}"), ("mangled", lambda k: f"k{k}"),
                          ("demangled", lambda k: f"k{k // 2}<{k}>")):
        table = "nvtx_kern_sum" + f":{base}" * (base != "demangled")
        got = [list(row.values()) for row in json.loads(printed(kprof, report, "--json", "-r", table))]
        wanted = ranges.kernel_sums(name_of)
        check([order(row) for row in got] == sorted(order(row) for row in got), f"{table} is in no order")
        check(sorted(got) == sorted(wanted), f"ranges {seed}: {table} is {got}\n  and not {wanted}")
    got = [row["Name"] for row in json.loads(
        printed(kprof, report, "--json", "-r", "cuda_gpu_trace:nvtx-name:base"))]
    wanted = list(ranges.kernel_names())
    check(len(got) == len(wanted) and all(name in names for name, names in zip(got, wanted)),
          f"ranges {seed}: with the innermost ranges names are {got}\n  and not {wanted}")


def check_ranges(kprof, report, seed):
    ranges = Ranges(seed)
    ranges.write(report)
    tables = json.loads(printed(kprof, report, "--report", "nvtx_pushpop_trace,nvtx_gpu_proj_trace", "--json"))
    for name, wanted, key in (("nvtx_pushpop_trace", ranges.pushed(), 10),
                              ("nvtx_gpu_proj_trace", ranges.projected(), 11)):
        got = [list(row.values()) for row in tables[name]]
        order = (lambda row: (row[0], row[2] or 0)) if key == 10 else lambda row: (row[1], -row[2])
        check([order(row) for row in got] == sorted(order(row) for row in got), f"ranges {seed}: {name} is in no order")
        of = lambda row: row[key]
        check(sorted(got, key=of) == sorted(wanted, key=of), f"ranges {seed}: {name} is {got}")
    check(list(tables["nvtx_gpu_proj_trace"][0]) == [
        "Name", "Projected Start (ns)", "Projected Duration (ns)", "Orig Start (ns)", "Orig Duration (ns)", "Style",
        "PID", "TID", "NumGPUOps", "Lvl", "NumChild", "RangeId", "ParentId", "RangeStack"],
          "nvtx_gpu_proj_trace: other columns")
    check_kernels_in_ranges(kprof, report, ranges, seed)


def check_deep_ranges(kprof, report):
    """Texts of deep ranges would grow with the square of their number."""
    with sqlite3.connect(report) as database:
        names = dict(database.execute("SELECT text, id FROM trace_name"))
        database.execute("DELETE FROM trace_range")
        for i in range(1000, 1100):
            database.execute("INSERT INTO trace_range VALUES(?, 1, ?, ?, 7, 7, ?, NULL, ?)", (
                i, i, 5000 - i, names["step"], names["PushPop"]))
    database.close()
    rows = json.loads(printed(kprof, report, "--report", "nvtx_pushpop_trace", "--json"))
    check([row["Lvl"] for row in rows] == list(range(100)), "deep ranges: other levels")
    check(max(row["RangeStack"].count(":") for row in rows) == 64, "deep ranges: long stacks")
    check("      1,099" not in printed(kprof, report, "--report", "nvtx_pushpop_trace"), "deep ranges: ids as amounts")


def check_random(kprof, report, seed):
    trace = Random(seed)
    work = trace.write(report)
    tables = json.loads(printed(kprof, report, "--report", "gpu_busy,gpu_idle_sum", "--json"))
    busy = [list(row.values()) for row in tables["gpu_busy"]]
    wanted = [trace.busy(work, device) for device in (0, 1)]
    check(busy == wanted, f"random {seed}: busy is {busy}\n  and not {wanted}")
    idle = {(row["Device"], row["Cause"]): (row["Total Time (ns)"], row["Gaps"], row["Max (ns)"])
            for row in tables["gpu_idle_sum"]}
    check(idle == trace.idle(work), f"random {seed}: idle is {idle}\n  and not {trace.idle(work)}")


def printed(kprof, report, *options):
    return subprocess.run([kprof, "stats", report, *options], capture_output=True, text=True, check=True).stdout


def check_table(kprof, report, name, header, rows):
    got = json.loads(printed(kprof, report, "--report", name, "--json"))
    check([list(row.values()) for row in got] == rows, f"{name}: {got}\n  and not {rows}")
    check(all(list(row) == header for row in got), f"{name}: other columns than {header}")
    lines = list(csv.reader(io.StringIO(printed(kprof, report, "--report", name, "--csv"))))
    check(lines[0] == header, f"{name}: CSV has the columns {lines[0]}")
    check(len(lines) == len(rows) + 1 and all(
        str(value) == cell if isinstance(value, str) else float(cell) == value
        for row, line in zip(rows, lines[1:]) for value, cell in zip(row, line)), f"{name}: CSV has {lines[1:]}")
    text = printed(kprof, report, "--report", name, "--width", "400")
    check(len(text.splitlines()) >= len(rows), f"{name}: text is\n{text}")
    aligned = printed(kprof, report, "--report", name, "--markdown").splitlines()[1]
    wanted = "".join("| --- " if isinstance(value, str) else "| ---: " for value in rows[0]) + "|"
    check(aligned == wanted, f"{name}: Markdown has {aligned}, and not {wanted}")
    check(name != "cuda_gpu_kern_sum" or f" {rows[0][1]:,} " in text, f"{name}: no thousands in\n{text}")


def check_lost(kprof, report, name, header, rows):
    got = json.loads(printed(kprof, report, "--report", name, "--json"))
    advice = [row.pop("Advice", None) for row in got]
    check(name != "lost_sum" or all(advice), f"{name}: without advice")
    check([list(row.values()) for row in got] == rows, f"{name}: {got}\n  and not {rows}")
    check(all(list(row) == header for row in got), f"{name}: other columns than {header}")


def check_joined(kprof, joined):
    """The trace, and a report that has counted vectorAdd in the same shape; what limits it is as the summary has it."""
    of = next(row for row in json.loads(subprocess.run(
        [kprof, "report", COUNTED, "--page", "summary", "--json"], capture_output=True, text=True,
        check=True).stdout)["kernels"] if row["kernel"].startswith("vectorAdd"))
    (counted, other) = json.loads(printed(kprof, joined, "--report", "kern_counters", "--json"))
    check(counted == {
        "Time (%)": 64.5, "Total Time (ns)": 600000, "Instances": 3, "Med (ns)": 200000, "Counted": 1,
        "Counted Med (ns)": 62464, "Limited by": of["limit"], "At (%)": round(of["limit_pct"], 1),
        "Worth Most": "Warp slots stay empty", "Gain of All (%)": round(of["finding_gain_pct"] * 600 / 930, 1),
        "GridXYZ": "65536    1    1", "BlockXYZ": " 256    1    1", "Name": of["kernel"]}, f"{counted}\n  and not {of}")
    check((other["Name"], other["Counted"], other["Limited by"]) == ("void scale<float>(float*, float, int)", 0, None),
          f"joined, what was not counted is {other}")
    worth = json.loads(printed(kprof, joined, "--report", "kern_worth", "--json"))
    check([row["Counted (%)"] for row in worth] == [100, 0], f"joined, worth counting are {worth}")
    command = json.loads(printed(kprof, joined, "--report", "count_command", "--json"))[0]["Command"]
    check("'regex:^(scale)$'" in command, f"joined, the command is {command}")
    check("Kernels, Their Time and Limits" in printed(kprof, joined), "the usual tables lack kern_counters")


def check_document(kprof, report, joined):
    """docs/trace.md shows tables of this very trace."""
    document = pathlib.Path(__file__).parents[2] / "docs/trace.md"
    shown = [block for block in document.read_text(encoding="utf-8").split("```") if "  Command\n" in block or
             block.startswith(("\nGPU Use\n", "\nGPU Utilization over Time\n", "\nTime (%)"))]
    text = printed(kprof, report) + printed(kprof, joined, "--report", "kern_counters:base")
    check(len(shown) == 4 and all(block.lstrip("\n") in text for block in shown), f"docs/trace.md differs from\n{text}")


def check_lacking(kprof, report):
    """A table of what the trace lacks is told of once."""
    with sqlite3.connect(report) as database:
        database.execute("DELETE FROM trace_managed")
        database.execute("DELETE FROM trace_caller")
    database.close()
    for name in ("um_total_sum", "call_line_sum"):
        told = subprocess.run([kprof, "stats", report, "--report", name], capture_output=True, text=True,
                              check=False).stderr
        check(told.count("error") == 1 and "the trace has no" in told, f"{name}: told is {told}")


def check_graphs(kprof, report):
    """Graphs that were recorded as a whole: no table of kernels has what they do."""
    times = [(0, 300, 7), (400, 900, 7), (1000, 1100, 12), (2000, None, 12)]
    with sqlite3.connect(report) as database:
        database.executemany(
            "INSERT INTO trace_graph(process_id, start_ns, end_ns, device, context, stream, correlation, graph) VALUES "
            "(1, ?1+?4, ?2+?4, 0, 1, 1, 900, ?3)", [(*row, BEGIN) for row in times])
    database.close()
    check_table(kprof, report, "graph_sum", summary("Instances", "PID", "Graph"),
                [[88.9, 800, 2, *spread([300, 500]), 4242, 7], [11.1, 100, 1, *spread([100]), 4242, 12]])
    run = subprocess.run([kprof, "stats", report], capture_output=True, text=True, check=True)
    check("CUDA Graphs as a Whole" in run.stdout, f"the usual tables lack graph_sum:\n{run.stdout}")
    check("whole graphs: 4; tables of kernels are without theirs" in run.stderr, f"told of graphs is {run.stderr}")


def check_backwards(kprof, report):
    """What ends before it begins is told, and is in no time; a copy of it has its bytes."""
    names = [row["table"] for row in json.loads(subprocess.run([kprof, "list", "tables", "--json"], capture_output=True,
                                                              text=True, check=True).stdout)]
    exported = lambda form: subprocess.run([kprof, "export", report, "-q", "-f", "--to", form, "-o", "-"],
                                           capture_output=True, text=True, check=True).stdout
    all_tables = lambda: json.loads(printed(kprof, report, "--json", "-r", ",".join(
        name for name in names if name != "cuda_gpu_mem_size_sum")))
    with sqlite3.connect(report) as database:
        database.execute("INSERT INTO trace_overhead SELECT NULL, 1, start_ns, end_ns, thread, NULL, name_id FROM "
                         "trace_call ORDER BY id LIMIT 3")
    database.close()
    tables, events = all_tables(), exported("chrome")
    for kind in ("kernel", "copy", "set", "graph", "call", "range", "overhead"):
        with sqlite3.connect(report) as database:
            columns = [row[1] for row in database.execute(f"PRAGMA table_info(trace_{kind})")][1:]
            values = ["start_ns-1000" if column == "end_ns" else column for column in columns]
            database.execute(f"INSERT INTO trace_{kind}({','.join(columns)}) SELECT {','.join(values)} "
                             f"FROM trace_{kind} WHERE start_ns IS NOT NULL ORDER BY id LIMIT 3")
        database.close()
        now = all_tables()
        for name in tables:
            check(now[name] == tables[name], f"{name} has a {kind} that ends before it begins: {now[name]}")
        check(exported("chrome") == events, f"the export to chrome has a {kind} that ends before it begins")
    with sqlite3.connect(report) as database: # what it moved is in tables of bytes
        database.execute("INSERT INTO trace_managed(process_id, start_ns, end_ns, address) VALUES(1, 2, 1, 0)")
    database.close()
    told = subprocess.run([kprof, "stats", report], capture_output=True, text=True, check=True).stderr
    check("activities that end before they begin: 22; " in told, f"of what ends before it begins is told: {told}")


def check_without_name(kprof, report):
    """What has no name is in no table with names, and its number is told."""
    with sqlite3.connect(report) as database:
        for kind, columns in (("kernel", ["name"]), ("copy", ["operation", "target_memory"]), ("range", ["style"]),
                              ("call", ["layer", "name"]), ("memory", ["memory"]), ("managed", ["operation"]),
                              ("set", ["memory"])): # which is in all tables as it is
            for i, column in enumerate(columns):
                database.execute(f"UPDATE trace_{kind} SET {column}_id=NULL WHERE id=(SELECT id FROM trace_{kind} "
                                 f"LIMIT 1 OFFSET {i})")
    database.close()
    for words, text in ((("stats", report), "activities without a name: 8; tables with names are without them"),
                        (("export", report, "--to", "chrome"), "activities without a name: 8; the export is")):
        told = subprocess.run([kprof, *words], capture_output=True, text=True, check=True).stderr
        check(text in told, f"of what has no name is told: {told}")


def check_copies_at_once(kprof, report):
    """Copies in both directions, or of several streams, gain no more than the time in which there is one."""
    with sqlite3.connect(report) as database:
        database.execute("DELETE FROM trace_set")
        for stream in range(20):
            database.execute(f"INSERT INTO trace_copy SELECT NULL, process_id, start_ns, end_ns, device, context, "
                             f"{100 + stream}, correlation, graph, graph_node, operation_id, source_memory_id, "
                             "target_memory_id, source_device, target_device, bytes, is_async FROM trace_copy WHERE "
                             "stream<100")
    database.close()
    found = {row["Finding"]: row for row in json.loads(printed(kprof, report, "--report", "lost_sum", "--json"))}
    pageable = found["Pageable copies"]["Gain at Most (ns)"]
    check(pageable == 3 * 70000, f"pageable copies at once gain {pageable}")


def check_huge_numbers(kprof, report):
    """Sums of numbers that a report may have are no error of SQLite's."""
    most = (1 << 63) - 1
    with sqlite3.connect(report) as database:
        database.execute("DELETE FROM trace_range")
        for start, end in ((0, most), (0, most - 2), (1, most - 1)): # the last two lie in the first one
            database.execute("INSERT INTO trace_range SELECT NULL, 1, ?, ?, 7, 7, id, NULL, (SELECT id FROM trace_name "
                             "WHERE text='PushPop') FROM trace_name WHERE text='step'", (start, end))
        for table, column in (("memory", "bytes"), ("copy", "bytes"), ("set", "bytes")):
            database.execute(f"UPDATE trace_{table} SET {column}=?", (most,))
    database.close()
    rows = json.loads(printed(kprof, report, "--report", "nvtx_pushpop_trace", "--json"))
    whole = max(rows, key=lambda row: row["NumChild"])
    check(whole["NumChild"] == 2 and whole["DurChild (ns)"] > most / 2, f"huge ranges are {rows}")
    for form in ("chrome", "nsys-sqlite", "timeline"):
        run = subprocess.run([kprof, "export", report, "-q", "-f", "--to", form, "-o", f"{report}.{form}"],
                             capture_output=True, text=True, check=False)
        check(run.returncode == 0, f"--to {form} of huge numbers: {run.stderr}")


class Html(html.parser.HTMLParser):
    """The cells of the tables of a document, row after row, and its title."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.title, self.inside, self.links = [], "", None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.links += [value for name, value in attributes if name == "href"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside in ("th", "td"):
            self.rows[-1][-1] += data
        elif self.inside == "title":
            self.title += data


def boxes(text):
    """The cells of a table in boxes; its lines are as long as each other, and its borders meet."""
    lines = [line for line in text.splitlines() if line.startswith(("+", "|"))]
    check(len({len(line) for line in lines}) == 1, f"boxes are of several widths:\n{text}")
    corners = [i for i, c in enumerate(lines[0]) if c == "+"]
    check(all(line[i] == line[0] for line in lines for i in corners), f"borders do not meet:\n{text}")
    return [[line[a + 2:b - 1] for a, b in zip(corners, corners[1:])] for line in lines if line[0] == "|"]


def check_formats(kprof, report):
    """The formats of nsys stats have the same cells."""
    long, attack = "λ" * 150, "a\tb<img src=x>&\"c"
    with sqlite3.connect(report) as database:
        database.execute("UPDATE trace_name SET demangled=? WHERE function='scale'", (long,))
        database.execute("UPDATE trace_name SET demangled=? WHERE function='vectorAdd'", (attack,))
    database.close()
    of = lambda form: printed(kprof, report, "-r", "cuda_gpu_kern_sum", "-f", form)
    wanted = [[str(x).removesuffix(".0") for x in row.values()]
              for row in json.loads(printed(kprof, report, "-r", "cuda_gpu_kern_sum", "--json"))]
    header = summary("Instances", "Name")
    clean = [[cell.replace("\t", "\\t") for cell in row] for row in wanted]
    human = lambda cell: f"{int(cell):,}" if cell.isdigit() else f"{float(cell):.2f}" if cell[0].isdigit() else cell
    shown = [[human(cell) for cell in row] for row in clean]
    cut = lambda rows: [[cell if len(cell) <= 100 else cell[:99] + "…" for cell in row] for row in rows]
    stripped = lambda rows: [[cell.strip() for cell in row] for row in rows]
    check([line.split("\t") for line in of("tsv").splitlines()] == [header, *clean], f"tsv is {of('tsv')}")
    check([line.split("\t") for line in of("tsv:nohdr:esc").splitlines()] == clean, "tsv:nohdr:esc")
    check(list(csv.reader(io.StringIO(of("csv:nohdr")))) == clean, f"csv:nohdr is {of('csv:nohdr')}")
    check(of("table").startswith(" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n+"), f"table is {of('table')}")
    check(stripped(boxes(of("table"))) == [header, *cut(shown)], f"table is {of('table')}")
    check(stripped(boxes(of("table:nofmt:nolimit"))) == [header, *clean], "table:nofmt:nolimit")
    check(stripped(boxes(of("table:nohdr"))) == cut(shown), "table:nohdr")
    [heads, first, _] = boxes(of("table"))
    check(first[1] == first[1].rjust(15) and first[8].startswith("a") and heads[8] == "Name".center(100),
          f"cells are not aligned: {first}")
    for form, title, links in (("htable", "", []), ("hdoc", "CUDA GPU Kernel Summary", []),
                               ("hdoc:title=a<b:css=http://x/y.css", "a<b", ["http://x/y.css"]),
                               (r"hdoc:title=a\, b\: \\ \c:css=x,json", r"a, b: \ \c", ["x"])):
        page = Html(of(form))
        check((page.rows, page.title, page.links) == ([header, *shown], title, links), f"{form} is {of(form)}")
    columns = lambda form: [re.split(" {2,}", line.strip()) for line in of(form).splitlines()]
    [title, _, heads, dashes, *lines] = columns("column:nofmt")
    check(title == ["** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):"] and heads == header and
          {*"".join(dashes)} == {"-"} and lines == cut(clean), f"column:nofmt is {of('column:nofmt')}")
    check(columns("column:nohdr:nofmt:nolimit")[2:] == clean, "column:nohdr:nofmt:nolimit")
    narrow = [[row[0], row[2], row[8][:4] + "…"] for row in [header, *clean]]
    check(stripped(boxes(of("table:nofmt:.:0:.:0:0:0:0:0:5"))) == [[row[0], row[1], row[2] if i else "Name"]
                                                                  for i, row in enumerate(narrow)], "table's widths")
    check(columns("column:nofmt:nohdr:.:0:.:0:0:0:0:0:5")[2:] == narrow[1:], "column's widths")
    for form, why in (("json:nohdr", "leave it out"), ("table:noh", "give nohdr, nolimit, nofmt"),
                      (".:esc", '--format column: "esc" is not valid behind it, give nohdr, nolimit, nofmt, WIDTH'),
                      ("table:12345", '"12345" is not valid'), ("csv:5", '"5" is not valid'),
                      ("hdoc:title=a,b", r'"b" is not valid, give column, table, csv, tsv, json, hdoc, htable or '
                                         r'markdown; a comma in a title is "\,"'), ("xml", "give column")):
        run = subprocess.run([kprof, "stats", report, "-r", "nvtx_sum", "-f", form], capture_output=True, text=True,
                             check=False)
        check(run.returncode == 101 and why in run.stderr, f"{form}: {run.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        names = "cuda_gpu_kern_sum,cuda_api_sum,nvtx_sum,cuda_gpu_mem_time_sum"
        printed(kprof, report, "-r", names, "-f", "tsv,table,hdoc,htable", "-o", folder + "/")
        written = {path.suffix: path.read_text(encoding="utf-8") for path in pathlib.Path(folder).iterdir()}
        check(sorted(written) == [".html", ".tsv", ".txt"] and written[".txt"].startswith("+"), f"files: {written}")
        printed(kprof, report, "-r", "cuda_gpu_kern_sum", "-f", ".:nohdr", "-o", folder + r"/a\,b")
        file = pathlib.Path(folder) / "a,b_cuda_gpu_kern_sum.csv"
        check(list(csv.reader(io.StringIO(file.read_text(encoding="utf-8")))) == clean, "the usual format")


def check_long_table(kprof, report):
    """The first 100 rows tell how wide boxes are; all are printed."""
    with sqlite3.connect(report) as database:
        database.execute("DELETE FROM trace_range")
        [(push,)] = database.execute("SELECT id FROM trace_name WHERE text='PushPop'")
        for i in range(300):
            name = database.execute("INSERT INTO trace_name VALUES(NULL, ?1, ?1, ?1)",
                                    (f"{i:03}" + "x" * (i > 250),)).lastrowid
            database.execute("INSERT INTO trace_range VALUES(NULL, 1, ?, ?, 7, 7, ?, NULL, ?)", (
                BEGIN, BEGIN + 9000 - i, name, push))
    database.close()
    rows = boxes(printed(kprof, report, "-r", "nvtx_pushpop_sum", "-f", "table:nohdr"))
    check([row[-1] for row in rows] == [f":{i:03}" if i <= 250 else f":{i:03}"[:3] + "…" for i in range(300)],
          f"rows are {rows}")


def bytes_moved(*command):
    """How much a command has read from files, and written to them; None where the kernel does not tell."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        try:
            counts = pathlib.Path(f"/proc/{process.pid}/io").read_text(encoding="ascii")
        except OSError:
            return None
    return int(counts.split()[1]), int(counts.split()[3])


def check_apart(kprof, report):
    """What kprof makes for one table hides nothing of the report from the next one."""
    tables = ("pm_sampling_sum", "cuda_gpu_kern_sum")
    for order in (tables, tables[::-1]):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([kprof, "stats", report, "-q", "-r", ",".join(order), "-o", f"{folder}/of"],
                                 capture_output=True, text=True, check=False)
            files = sorted(path.name for path in pathlib.Path(folder).iterdir())
        check((run.returncode, files) == (0, sorted(f"of_{name}.csv" for name in tables)),
              f"{order} apart gives {files}, {run.stderr}")


def check_reading(kprof, report):
    """Tables that are printed apart read a large report no more often than tables that are printed together."""
    with sqlite3.connect(report) as database:
        for _ in range(16):
            database.execute("INSERT INTO trace_call SELECT NULL, process_id, start_ns, end_ns, thread, correlation, "
                             "name_id, layer_id, result FROM trace_call WHERE name_id="
                             "(SELECT id FROM trace_name WHERE text='cudaFree')")
    database.close()
    tables = "cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_gpu_mem_size_sum,nvtx_sum"
    together = bytes_moved(kprof, "stats", report, "-r", tables)
    apart = bytes_moved(kprof, "stats", report, "-r", tables, "-o", "-")
    check(together is None or apart[0] < 1.2 * together[0], f"tables apart read {apart} bytes, together {together}")


def check_open_ranges(kprof, report):
    """If kernels lie in hundreds of ranges that were never ended, no table has a row for each pair."""
    with sqlite3.connect(report) as database:
        for table in ("range", "kernel", "call", "copy", "set", "graph"):
            database.execute(f"DELETE FROM trace_{table}")
        names = dict(database.execute("SELECT text, id FROM trace_name"))
        database.executemany("INSERT INTO trace_range VALUES(NULL, 1, ?, NULL, 7, 7, ?, NULL, ?)", [
            (BEGIN + i, names["step"], names["PushPop"]) for i in range(400)])
        database.executemany("INSERT INTO trace_call VALUES(NULL, 1, ?1, ?1+5, 7, ?2, ?3, ?4, 0)", [
            (BEGIN + 1000 + 10 * i, i, names["cudaLaunchKernel"], names["runtime"]) for i in range(5000)])
        database.execute("INSERT INTO trace_kernel SELECT NULL, 1, start_ns+6, end_ns+7, 0, 1, 7, correlation, NULL, "
                         "NULL, ?, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0 FROM trace_call", (names["_Z9vectorAddPKfS0_Pfi"],))
    database.close()
    row = json.loads(printed(kprof, report, "-r", "nvtx_gpu_proj_sum", "--json"))[0]
    check((row["Range Instances"], row["Total GPU Ops"]) == (400, 400 * 5000), f"open ranges have {row}")
    [row] = json.loads(printed(kprof, report, "-r", "nvtx_kern_sum", "--json"))
    check((row["NVTX Inst"], row["Kern Inst"], row["Med (ns)"]) == (400, 400 * 5000, 6), f"open ranges have {row}")
    for words in (("stats", report, "-r", "nvtx_gpu_proj_sum"), ("stats", report, "-r", "nvtx_kern_sum"),
                  ("stats", report, "-r", "cuda_gpu_kern_sum:nvtx-name"),
                  ("export", report, "--to", "chrome", "-o", "/dev/null")):
        moved = bytes_moved(kprof, *words)
        check(moved is None or moved[1] < 10e6, f"{words[0]} of open ranges writes {moved} bytes")


def main():
    write_fixture, kprof = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        report = str(pathlib.Path(folder) / "trace.kprof")
        subprocess.run([write_fixture, report, "trace"], check=True)
        for name, header, rows in Trace(report).tables():
            check_table(kprof, report, name, header, rows)
        for name, header, rows in Trace(report).traces():
            check_lost(kprof, report, name, header, rows)
        for name, header, rows in lost():
            check_lost(kprof, report, name, header, rows)
        for name, header, rows in sampled():
            check_lost(kprof, report, name, header, rows)
        joined = str(pathlib.Path(folder) / "joined.kprof")
        subprocess.run([kprof, "merge", "-q", report, COUNTED, "-o", joined], check=True)
        check_joined(kprof, joined)
        check_document(kprof, report, joined)
        base = json.loads(printed(kprof, report, "--report", "cuda_gpu_kern_sum:base", "--json"))
        check([row["Name"] for row in base] == ["vectorAdd", "scale"], f":base has {base}")
        base = json.loads(printed(kprof, report, "--report", "cuda_gpu_kern_sum:mangled", "--json"))
        check(base[0]["Name"] == "_Z9vectorAddPKfS0_Pfi", f":mangled has {base}")
        check_formats(kprof, report)
        for seed in range(2):
            check_random(kprof, report, seed)
            check_ranges(kprof, report, seed)
            check_deep_ranges(kprof, report)
        subprocess.run([write_fixture, report, "trace"], check=True)
        check_lacking(kprof, report)
        check_graphs(kprof, report)
        check_backwards(kprof, report)
        subprocess.run([write_fixture, report, "trace"], check=True)
        check_copies_at_once(kprof, report)
        subprocess.run([write_fixture, report, "trace"], check=True)
        check_apart(kprof, report)
        check_reading(kprof, report)
        check_huge_numbers(kprof, report)
        check_long_table(kprof, report)
        check_open_ranges(kprof, report)
    print("\n".join(failures), end="")
    sys.exit(1 if failures else 0)


main()
