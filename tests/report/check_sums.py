#!/usr/bin/env python3
"""Makes traces of several processes, threads and GPUs, whose times are random, and some of them not known or backwards.
Compares tables of `kprof stats` with what a slow look at all records finds. Usage: check_sums.py WRITE_FIXTURE KPROF"""
import collections
import json
import math
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

BASE = 1751371200000000000
ON_ITS_WAY = 10000 # ns from the end of a call until its work reaches the GPU
OWN = ("kprof: measuring launches", "kprof: left out, as the trace is limited")
CALLS = {"cudaLaunchKernel": "launching", "cudaMemcpyAsync": "calls that copy", "cudaMemsetAsync": "other calls",
         "cudaMalloc": "allocation", "cudaFree": "allocation", "cudaDeviceSynchronize": "synchronization",
         "cudaEventQuery": "other calls"}
KERNELS = ("_Z9vectorAddPKfS0_Pfi", "_Z5scaleIfEvPT_S0_i")
THREADS = (7, 8)
Record = collections.namedtuple("Record", "process start end device thread number name more", defaults=(None,) * 4)


class Maker:
    """Fills the tables of a trace."""

    def __init__(self, database, seed):
        self.db, self.random = database, random.Random(seed)
        for text in ("Marker", "BUFFER_FLUSH", "Peer-to-Peer", "cudaEventQuery", *OWN):
            database.execute("INSERT OR IGNORE INTO trace_name VALUES(NULL, ?1, ?1, ?1)", (text,))
        self.names = dict(database.execute("SELECT text, id FROM trace_name"))
        for kind in ("kernel", "copy", "set", "graph", "call", "memory", "range", "overhead"):
            database.execute(f"DELETE FROM trace_{kind}")
        self.devices = 1 + seed % 2
        for process in range(1, 2 + seed % 3):
            self.add_process(process)

    def add(self, kind, *values):
        self.db.execute(f"INSERT INTO trace_{kind} VALUES(NULL,{','.join('?' * len(values))})", values)

    def add_process(self, process):
        if process > 1:
            columns = [row[1] for row in self.db.execute("PRAGMA table_info(process)")]
            values = ", ".join({"id": "?1", "pid": "pid+?1"}.get(column, column) for column in columns)
            self.db.execute(f"INSERT INTO process SELECT {values} FROM process WHERE id=1", (process,))
            self.db.execute("INSERT INTO trace SELECT ?, start_unix_ns, end_unix_ns, activities, 0, 0, '' FROM trace "
                            "WHERE process_id=1", (process,))
            self.db.execute("INSERT INTO process_device SELECT ?, device_id FROM process_device WHERE process_id=1",
                            (process,)) # it sees the same GPU
        edges = {thread: [0] for thread in THREADS}
        for number in range(1, self.random.choice((5, 40, 120))):
            thread = self.random.choice(THREADS)
            start = edges[thread][-1] + self.random.choice((0, self.random.randrange(60), self.random.randrange(500)))
            end = start + self.random.randrange(40)
            edges[thread] += [start, end]
            self.add_call(process, thread, number, start, end)
        for _ in range(self.random.choice((0, 4, 20))):
            self.add_range(process, self.random.choice(THREADS), edges)
        for start in range(0, edges[7][-1], 600) if self.random.randrange(2) else ():
            self.add("overhead", process, BASE + start, BASE + start + self.random.randrange(300),
                     self.random.choice(THREADS), None, self.names[self.random.choice(("BUFFER_FLUSH", *OWN))])

    def add_call(self, process, thread, number, start, end):
        name = self.random.choice(tuple(CALLS))
        if self.random.random() < 0.1:
            number = self.random.randrange(1, number + 1) # as calls within a call have
        if self.random.random() < 0.95:
            self.add("call", process, BASE + start, BASE + (end if self.random.random() < 0.98 else start - 5), thread,
                     number, self.names[name], self.names["runtime"], 0)
        begin = BASE + start + self.random.choice((3, 20, self.random.randrange(600)))
        times = begin, begin + self.random.choice((0, 5, self.random.randrange(80)))
        if self.random.random() < 0.05:
            times = self.random.choice(((None, None), (begin, begin - 3)))
        work = process, *times, self.random.randrange(self.devices), 1, self.random.choice((7, 8)), number
        if name in ("cudaMalloc", "cudaFree"):
            self.add("memory", process, BASE + end, work[3], 1, None, number,
                     self.names["allocation" if name == "cudaMalloc" else "release"],
                     self.names[self.random.choice(("Device", "Pinned"))], self.random.randrange(5),
                     self.random.randrange(10 ** 7))
        elif name == "cudaMemsetAsync":
            self.add("set", *work, None, None, self.names["Device"], 5)
        elif name == "cudaMemcpyAsync":
            how = self.random.choice(("Host-to-Device", "Peer-to-Peer"))
            source = self.names[self.random.choice(("Pageable", "Pinned"))]
            of_graph = self.random.choice(((None, None), (None, None), (None, None), (5, 1)))
            self.add("copy", *work, *of_graph, self.names[how], source, self.names["Device"], None, None,
                     self.random.choice((0, 100, 65535, 65536, 10 ** 6)), 1)
        elif name == "cudaLaunchKernel" and self.random.random() < 0.1:
            self.add("graph", *work, self.random.randrange(3))
        elif name == "cudaLaunchKernel":
            count = self.random.choice((1, 1, 3))
            for node in range(count):
                of_graph = (5, node) if count > 1 else (None, None)
                self.add("kernel", *work, *of_graph, self.names[self.random.choice(KERNELS)], 1, 1, 1, 32, 1, 1, 32, 0,
                         0, 0)

    def add_range(self, process, thread, edges):
        start, end = sorted(self.random.choices(edges[thread], k=2))
        style = self.random.choice(("PushPop", "StartEnd", "Marker"))
        has_end = style != "Marker" and self.random.random() < 0.9
        self.add("range", process, BASE + start, BASE + end if has_end else None, thread,
                 thread if self.random.random() < 0.9 else 15 - thread,
                 self.names[self.random.choice(("step", "forward"))], self.random.choice((None, self.names["net"])),
                 self.names[style])


def length(parts):
    """The time that parts of it cover."""
    total, until = 0, -math.inf
    for start, end in sorted(parts):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total


def spread(values):
    return [statistics.mean(values), statistics.median(values), min(values), max(values),
            statistics.stdev(values) if len(values) > 1 else 0]


class Trace:
    def __init__(self, database):
        self.db = database
        self.names = dict(database.execute("SELECT id, text FROM trace_name"))
        self.shown = dict(database.execute("SELECT id, demangled FROM trace_name"))
        self.pids = dict(database.execute("SELECT id, pid FROM process"))
        on_gpu = "process_id, start_ns, end_ns, device, NULL, correlation"
        self.kernels = self.read("kernel", on_gpu, "name_id", "graph")
        self.graphs = self.read("graph", on_gpu, "NULL")
        self.copies = self.read("copy", on_gpu, "operation_id", "bytes", "source_memory_id", "target_memory_id",
                                "stream", "graph")
        self.sets = self.read("set", on_gpu, "NULL")
        self.calls = self.read("call", "process_id, start_ns, end_ns, NULL, thread, correlation", "name_id")
        self.own = [row for row in self.read("overhead", "process_id, start_ns, end_ns, NULL, thread, NULL", "name_id")
                    if self.names[row.name] in OWN]
        self.first = {}
        for call in self.calls:
            known = self.first.setdefault((call.process, call.number), call)
            if call.start < known.start:
                self.first[call.process, call.number] = call
        self.work = [(row, True) for row in self.kernels + self.graphs] + [
            (row, False) for row in self.copies + self.sets]

    def read(self, kind, columns, *more):
        rows = self.db.execute(f"SELECT {columns}, {', '.join(more)} FROM trace_{kind} WHERE end_ns>=start_ns "
                               "ORDER BY id")
        return [Record(*row[:7], row[7:]) for row in rows]

    def call_of(self, row):
        return self.first.get((row.process, row.number))

    def of_device(self, device):
        """The work of a GPU, and the parts of kprof's times in which it may have had some."""
        rows = [(row, is_kernel) for row, is_kernel in self.work if row.device == device]
        own = []
        for process in {row.process for row, _ in rows}:
            first = min(row.start for row, _ in rows if row.process == process)
            last = max(row.end for row, _ in rows if row.process == process)
            own += [row._replace(start=max(row.start, first), end=min(row.end, last)) for row in self.own
                    if row.process == process and row.start < last and row.end > first]
        return rows, own

    def busy(self, device):
        rows, own = self.of_device(device)
        kernels = [(row.start, row.end) for row, is_kernel in rows if is_kernel]
        memory = [(row.start, row.end) for row, is_kernel in rows if not is_kernel]
        both = length(kernels + memory)
        span = max(end for _, end in kernels + memory) - min(kernels + memory)[0] - (
            length([*kernels, *memory, *((row.start, row.end) for row in own)]) - both)
        asked = [(self.call_of(row), row.start) for row, is_kernel in rows if is_kernel and self.call_of(row)]
        asked.sort(key=lambda pair: (pair[0].start, pair[1]))
        waiting = [(call.start, begin) for call, begin in asked if begin > call.start]
        depths = [1 + sum(begin > start for _, begin in waiting[:i]) for i, (start, _) in enumerate(waiting)]
        latencies, firsts = [], {} # of a graph's kernels the first counts
        for row in (row for row, is_kernel in rows if is_kernel and self.call_of(row)):
            if row.more and row.more[0] is not None:
                firsts[row.process, row.number] = min(row.start, firsts.get((row.process, row.number), math.inf))
            else:
                latencies.append(row.start - self.call_of(row).end)
        latencies += [start - self.first[key].end for key, start in firsts.items()]
        share = lambda ns: 100 * ns / span
        return span > 0 and [
            device, span, share(both), share(length(kernels)), share(both - length(kernels)), share(span - both),
            100 * (length(kernels) + length(memory) - both) / length(memory) if length(memory) else None, len(kernels),
            statistics.median(latencies) if latencies else None,
            statistics.mean(depths) if depths else None, max(depths, default=None)]

    def explain(self, begin, end, row, is_own):
        """The time of a gap by its causes."""
        call = row if is_own else self.call_of(row)
        if not call:
            return {"not known": end - begin}
        host = max(begin, min(end if is_own else call.start, end))
        if host == begin:
            on_its_way = min(end - begin, max(0, ON_ITS_WAY - (begin - call.end)))
            return {"launching": on_its_way, "queued work": end - begin - on_its_way}
        causes = collections.Counter({"launching": end - host, "host code": host - begin})
        for other in self.calls:
            if (other.process, other.thread) == (row.process, call.thread):
                ns = max(0, min(other.end, host) - max(other.start, begin))
                causes[CALLS[self.names[other.name]]] += ns
                causes["host code"] -= ns
        return causes

    def idle(self, device):
        rows, own = self.of_device(device)
        events = sorted([(row.start, row.end, row, False) for row, _ in rows] +
                        [(row.start, row.end, row, True) for row in own], key=lambda event: event[:2])
        until, causes = events[0][0], collections.defaultdict(list)
        for start, end, row, is_own in events:
            for cause, ns in self.explain(until, start, row, is_own).items() if start > until else ():
                causes[cause] += [ns] if ns > 0 else []
            until = max(until, end)
        return [[device, sum(times), len(times), max(times), cause] for cause, times in causes.items() if times]

    def transfers(self):
        sums, before = collections.defaultdict(lambda: [0] * 5), {}
        for row in sorted(self.copies, key=lambda row: row.start):
            size, source, target, stream, graph = row.more
            key, call = (row.process, row.device, stream, row.name), self.call_of(row)
            last, before[key] = before.get(key), row
            follows = size < 65536 and last and last.more[0] < 65536 and graph is last.more[4] is None and not any(
                self.names[other.name] == "cudaLaunchKernel" and other.thread == (call and call.thread)
                for (process, number), other in self.first.items()
                if process == row.process and last.number < number < row.number)
            own = sums[self.names[source], self.names[target], self.names[row.name]]
            for i, amount in enumerate((row.end - row.start, 1, size / 1e6, size < 65536, bool(follows))):
                own[i] += amount
        return [[ns, count, megabytes, 1e6 * megabytes / ns if ns else None, small, follow, *key]
                for key, (ns, count, megabytes, small, follow) in sums.items()]

    def memory(self):
        begins = collections.defaultdict(list)
        for row in self.kernels + self.graphs:
            begins[row.process].append(row.start)
        levels, sums = collections.Counter(), collections.defaultdict(lambda: [None, 0, 0, 0, 0])
        there = {}
        for process, time, device, number, operation, memory, address, size in self.db.execute(
                "SELECT process_id, time_ns, device, correlation, operation_id, memory_id, address, bytes FROM "
                "trace_memory ORDER BY time_ns, id"):
            is_new, call = self.names[operation] == "allocation", self.first.get((process, number))
            before, before_size = there.pop((process, address), (None, 0)) # also of a release that was lost
            levels[before] -= before_size
            place = (process, memory, device) if is_new or not before else before
            own = sums[self.names[place[1]], place[2]]
            if is_new:
                there[process, address] = place, size
                levels[place] += size
                own[0] = max(own[0] or 0, levels[place] / 1e6)
            own[1] += is_new
            own[2] += is_new and process in begins and min(begins[process]) <= time <= max(begins[process])
            own[3] += not is_new
            own[4] += call.end - call.start if call else 0
        return [[*key, *values] for key, values in sums.items()]

    def ranges(self, where):
        return [(process, start, end, thread, f"{self.names.get(domain, '')}:{self.names[name]}", self.names[style])
                for process, start, end, thread, name, domain, style in self.db.execute(
                    "SELECT process_id, start_ns, end_ns, thread, name_id, domain_id, style_id FROM trace_range "
                    f"WHERE {where}")]

    def steps(self):
        sums = collections.defaultdict(list)
        for process, start, end, _, name, _ in self.ranges("end_ns>=start_ns"):
            within = lambda rows: [(max(row.start, start), min(row.end, end)) for row in rows
                                   if row.process == process and row.start < end and row.end > start]
            busy = length(within([row for row, _ in self.work]))
            unknown = length(within([row for row, _ in self.work] + self.own)) - busy
            sums[name].append((end - start, busy, end - start - unknown))
        for name, rows in sums.items():
            times, busy, known = zip(*rows)
            yield [len(times), statistics.median(times), min(times), max(times),
                   100 * spread(times)[4] / statistics.mean(times) if sum(times) else None,
                   100 * sum(busy) / sum(known) if sum(known) else None, name]

    def in_ranges(self, rows):
        """Each range and the rows whose calls are in it."""
        for process, start, end, thread, name, style in self.ranges(
                "thread=end_thread AND coalesce(end_ns>=start_ns, 1)"):
            if style != "Marker":
                yield (name, style, self.pids[process], thread), start, end, [
                    row for row in rows if row.process == process and self.call_of(row) and
                    self.call_of(row).thread == thread and start <= self.call_of(row).start < (end or math.inf)]

    def kernels_in_ranges(self):
        times, ranges = collections.defaultdict(list), collections.Counter()
        for key, _, _, rows in self.in_ranges(self.kernels):
            for row in rows:
                times[(*key, self.shown[row.name])].append(row.end - row.start)
            ranges.update({(*key, self.shown[row.name]) for row in rows})
        return [[*key[:4], ranges[key], len(values), sum(values), *spread(values), key[4]]
                for key, values in times.items()]

    def projected(self):
        sums = collections.defaultdict(list)
        for (name, style, *_), start, end, rows in self.in_ranges([row for row, _ in self.work]):
            if rows:
                sums[name, style].append((max(row.end for row in rows) - min(row.start for row in rows),
                                          end - start if end else 0, len(rows)))
        for key, rows in sums.items():
            spans, times, counts = zip(*rows)
            yield [*key, sum(spans), sum(times), len(rows), *spread(spans), sum(counts), statistics.mean(counts)]

    def executed(self):
        groups = collections.defaultdict(list)
        for row in self.kernels:
            call = self.call_of(row)
            if call:
                names = self.names[call.name], self.shown[row.name]
                groups[(self.pids[row.process], call.thread, row.device, *names)].append((
                    max(row.end, call.end) - call.start, call.end - call.start, row.start - call.end,
                    row.end - row.start))
        for key, rows in groups.items():
            whole, calls, queues, kernels = zip(*rows)
            queues = [ns for ns in queues if ns > 0]
            yield [*key[:3], len(rows), len(queues), *spread(whole), *spread(calls),
                   *(spread(queues) if queues else [None] * 5), *spread(kernels), *key[3:]]

    def tables(self):
        devices = sorted({row.device for row, _ in self.work})
        yield "gpu_busy", [row for row in map(self.busy, devices) if row]
        yield "gpu_idle_sum", [row for device in devices for row in self.idle(device)]
        yield "transfer_sum", self.transfers()
        yield "memory_sum", self.memory()
        yield "step_sum", list(self.steps())
        yield "nvtx_kern_sum", self.kernels_in_ranges()
        yield "nvtx_gpu_proj_sum", list(self.projected())
        yield "cuda_kern_exec_sum", list(self.executed())


def are_same(a, b):
    """One of them is rounded."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=0.051)
    return a == b


def order(row):
    return [str(value) for value in row if isinstance(value, str)], [value for value in row if isinstance(value, int)]


def check_trace(kprof, report, seed):
    with sqlite3.connect(report) as database:
        Maker(database, seed)
        wanted = dict(Trace(database).tables())
    database.close()
    got = json.loads(subprocess.run([kprof, "stats", report, "-q", "--json", "-r", ",".join(wanted)],
                                    capture_output=True, text=True, check=True).stdout)
    for name, rows in wanted.items():
        left_out = {"gpu_idle_sum": ["Time (%)"], "nvtx_gpu_proj_sum": ["Avg Range Lvl", "Avg Num Child"]}.get(name, ())
        found = sorted(([value for key, value in row.items() if key not in left_out] for row in got[name]), key=order)
        rows = sorted(rows, key=order)
        if len(found) != len(rows) or not all(are_same(a, b) for pair in zip(found, rows) for a, b in zip(*pair)):
            yield f"trace {seed}: {name} is {found}\n  and not {rows}"


def main():
    write_fixture, kprof = sys.argv[1:]
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        report = str(pathlib.Path(folder) / "trace.kprof")
        for seed in range(12):
            subprocess.run([write_fixture, report, "trace"], check=True)
            failures += check_trace(kprof, report, seed)
    print("\n".join(failures), end="")
    sys.exit(1 if failures else 0)


main()
