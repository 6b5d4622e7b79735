"""Traces of the simulated machine, whose clock only moves with what is done: all times are known by arithmetic."""

import csv
import json
import re
import resource
import shlex
import shutil
import sqlite3
import unittest

from test_ncu import read_lines
from harness import (APP, INJECTION, KPROF, METRIC, SCALE, VECTOR_ADD, Case, is_sanitized, limit_file_size, os,
                     subprocess)

START = 1700000000000000000
CALL, ALLOCATE, LATENCY = 4000, 100000, 6000


class Tracing(Case):
    def trace(self, *steps, options=(), **keywords):
        return self.kprof("trace", "--injection-path", INJECTION, "-f", "-o", "run", *options, APP, *steps, **keywords)

    def rows(self, table, columns, **keywords):
        return self.query("run.kprof", f"SELECT {columns} FROM trace_{table} ORDER BY trace_{table}.id")

    def named(self, table, columns, name="name_id"):
        return self.query("run.kprof", f"SELECT n.text, {columns} FROM trace_{table} t JOIN trace_name n "
                          f"ON n.id=t.{name} ORDER BY t.id")


class Nsys(Tracing):
    """Lines as people write them for nsys."""
    STEPS = [f"launch={VECTOR_ADD}", "do=sync", "push=step", f"launch={SCALE}", "do=sync", "pop", "push=step",
             f"launch={SCALE}*2", "do=sync", "pop", "profiler=start", f"launch={VECTOR_ADD}*3", "do=sync",
             "profiler=stop", "profiler=start", f"launch={VECTOR_ADD}*4", "do=sync", "profiler=stop"]

    def test_lines(self):
        for line, outcome, beginnings in read_lines("nsys_lines.txt"):
            command, *words = shlex.split(line)
            own = ["--injection-path", INJECTION] if command == "trace" else []
            run = self.kprof(command, *own, *words, env={"SLURM_PROCID": "0"})
            with self.subTest(line):
                told = [text.removeprefix("kprof: ") for text in run.err.splitlines()]
                has_run = any("the application did not initialise CUDA" in text for text in told)
                self.assertEqual("starts" if has_run else f"refused {run.code}", outcome, run.err)
                told = [text for text in told
                        if "nothing was collected" not in text and not text.startswith("report: ")]
                self.assertEqual(len(told), len(beginnings), run.err)
                for text, beginning in zip(told, beginnings):
                    self.assertTrue(text.startswith(beginning), f"{text}\nis not\n{beginning}")

    def test_capture(self):
        calls = ["-c", "cudaProfilerApi"]
        for words, kernels in ((calls, 3), ([*calls, "--capture-range-end=repeat"], 7),
                               ([*calls, "--capture-range-end=repeat:1"], 3), (["-c", "nvtx", "-p", "step"], 1),
                               (["-p", "step", "--capture-range-end", "repeat[:2]"], 3),
                               (["-c", "nvtx", "-p", "step@*", "--capture-range-end=repeat"], 3),
                               (["-c", "nvtx", "-p", "step@net"], 0), (["-t", "cuda", "-w", "true"], 11)):
            with self.subTest(words):
                run = self.trace(*self.STEPS, options=words)
                self.assertEqual(len(self.rows("kernel", "id")), kernels, run.err)

    def test_parts_of_a_trace(self):
        self.assert_run(self.trace(*self.STEPS), 0)
        [first, second] = [row[0] for row in self.rows("range", "end_ns")]
        of = lambda *words: sum(row["Instances"] for row in json.loads(
            self.kprof("stats", "run", "-r", "gpukernsum", "--json", *words).out))
        self.assertEqual(of("--filter-nvtx", "step"), 1)
        self.assertEqual(of("--filter-nvtx=step@*/1"), 2)
        ms = (first - START) / 1e6
        self.assertEqual(of("--filter-time", f"0/{ms}ms"), 2)
        self.assertEqual(of("--filter-time", f"{first - START}/{(second - START) / 1e3}us"), 2)
        self.assertEqual(of("--filter-time", f"{second - START}/"), 7)
        self.assertEqual(of("--filter-time", "/1h"), 11)
        self.assertEqual(of("--filter-time", f"{ms}ms/", "--filter-nvtx", "step"), 0)
        self.assertNotIn("no work of the GPU", self.kprof("stats", "run", "--filter-nvtx", "step").err)
        run = self.kprof("stats", "run", "--filter-time", "1h/")
        self.assert_run(run, 0)
        self.assertRegex(run.err, r"no work of the GPU and no call is in the time that is asked for; the trace ends "
                                  r"after 0\.\d+ ms")
        for words, code, text in ((("--filter-nvtx", "step/2"), 106, "has no such range"),
                                  (("--filter-nvtx", "step@net"), 106, "has no such range"),
                                  (("--filter-time", "5"), 101, "write START/END"),
                                  (("--filter-time", "5us/1us"), 101, "it ends before it begins")):
            run = self.kprof("stats", "run", *words)
            self.assertEqual(run.code, code, run.err)
            self.assertIn(text, run.err)

    def test_nothing_but_marks(self):
        """A trace whose tables are empty is told of, with the way to see it."""
        run = self.kprof("trace", "--injection-path", INJECTION, APP, "init", "mark=x", "push=step", "start=epoch")
        self.assert_run(run, 0)
        self.assertIn("nothing but NVTX marks and ranges that did not end", run.err)
        self.assert_run(self.trace("init", "mark=x", "push=step"), 0)
        run = self.kprof("stats", "run")
        self.assertEqual((run.code, run.out), (0, ""))
        self.assertIn("kprof export --to chrome has them", run.err)
        run = self.kprof("stats", "run", "--filter-time", "1h/2h")
        self.assertIn("no call is in the time that is asked for", run.err)
        self.assertNotIn("ends after -", run.err)

    def test_times_in_a_part_of_a_trace(self):
        self.assert_run(self.trace(*self.STEPS), 0)
        starts = lambda time: [row["Start (ns)"] for row in json.loads(
            self.kprof("stats", "run", "-r", "cuda_gpu_trace", "--json", "--filter-time", time).out)]
        [*_, before, last] = starts("/") # from the beginning of the whole trace
        self.assertEqual(starts(f"{last}/"), [last])
        self.assertEqual(starts(f"{last - 1}/"), [before, last])
        self.assert_run(self.trace("init", "push=a", "do=gap:39", f"launch={VECTOR_ADD}"), 0)
        self.assertEqual(starts("0.000065s/"), []) # which as a number is a little less
        self.assertEqual(starts("64.999us/"), [45000])

    def test_ranges_whose_names_have_marks(self):
        """What looks like a number or a domain may be a part of the name."""
        self.assert_run(self.trace("init", "start=epoch 1/10", f"launch={VECTOR_ADD}", "do=sync", "end",
                                   "start=to a@b/2", f"launch={VECTOR_ADD}*2", "do=sync", "end",
                                   f"launch={VECTOR_ADD}*3", "do=sync"), 0)
        for text, kernels in (("epoch 1/10", 1), ("epoch 1/10/0", 1), ("epoch 1/10@*", 1), ("to a@b/2", 2)):
            run = self.kprof("stats", "run", "-r", "cuda_gpu_kern_sum", "--json", "--filter-nvtx", text)
            self.assert_run(run, 0)
            self.assertEqual(json.loads(run.out)[0]["Instances"], kernels, text)

    def test_steps_that_a_part_of_a_trace_cuts(self):
        """How busy the GPU was in a step does not depend on the part that is asked for."""
        step = ("push=step", f"launch={SCALE}", "do=sync", "pop")
        self.assert_run(self.trace("init", "push=train", *step, *step, "pop"), 0)
        busy = lambda *words: {row["Range"]: row["GPU Busy (%)"] for row in json.loads(
            self.kprof("stats", "run", "-r", "step_sum", "--json", *words).out)}
        whole = {":step": 76.9, ":train": 76.9}
        self.assertEqual(busy(), whole)
        self.assertEqual(busy("--filter-nvtx", "step/1"), whole)
        self.assertEqual(busy("--filter-time", "1us/2us"), whole)

    def test_calls_before_a_part_of_a_trace(self):
        """Work that was asked for before this part keeps its call."""
        self.assert_run(self.trace(f"launch={VECTOR_ADD}*8", "do=sync"), 0)
        stats = lambda table: json.loads(
            self.kprof("stats", "run", "-r", table, "--json", "--filter-time", "100us/130us").out)
        [row] = stats("cuda_kern_exec_sum")
        self.assertEqual((row["Count"], row["QMed (ns)"]), (3, 106000 - 6 * CALL))
        [row] = stats("gpu_busy")
        self.assertEqual((row["Kernels"], row["Launch Latency Med (ns)"]), (3, 106000 - 6 * CALL))
        self.assertEqual([row["Name"] for row in stats("cuda_api_sum")], ["cudaDeviceSynchronize"])

    def test_stats_beside_a_report(self):
        run = self.kprof("trace", "--injection-path", INJECTION, "--stats=true", "-f", "true", "-o", "run", APP,
                         f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        self.assertIn("CUDA GPU Kernel Summary", run.out + run.err)

    def test_files(self):
        self.assert_run(self.trace(*self.STEPS), 0)
        os.mkdir(self.path("out"))
        run = self.kprof("stats", "-r", "gputrace,gpukernsum:base,osrtsum", "-r", "cudaapisum", "-f", "csv,csv,column",
                         "-o", ".,out,-", "--force-export=true", "run.kprof")
        self.assert_run(run, 0)
        self.assertIn("osrtsum is left out: kprof does not trace calls of the operating system", run.err)
        self.assertIn("CUDA API Summary", run.out)
        with open(self.path("run_gputrace.csv"), newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(int(rows[0]["Start (ns)"]), 6000)
        with open(self.path("out/run_gpukernsum_base.csv"), newline="") as file:
            self.assertEqual([row["Name"] for row in csv.DictReader(file)], ["vectorAdd", "scale"])
        run = self.kprof("stats", "-r", "cudaapisum,gpukernsum", "-f", "column,csv", "-o", "-,other", "run.kprof")
        self.assert_run(run, 0)
        self.assertTrue(os.path.exists(self.path("other_gpukernsum.csv")))
        self.assert_run(self.kprof("stats", "-r", "nvtx_sum", "-o", ".", "run.nsys-rep"), 0)
        self.assertTrue(os.path.exists(self.path("run_nvtx_sum.csv")))
        again = ("stats", "-r", "gputrace", "--format", "csv", "--output", ".", "run")
        run = self.kprof(*again)
        self.assertEqual(run.code, 108, run.err)
        self.assertIn("run_gputrace.csv exists; give --force-overwrite", run.err)
        self.assert_run(self.kprof(*again, "--force-overwrite", "true"), 0)
        self.assert_run(self.kprof("stats", "-r", "nvtxsum", "-o", "sum", "--timeunit=ms", "run.nsys-rep"), 0)
        with open(self.path("sum_nvtxsum.csv"), newline="") as file:
            self.assertIn("Total Time (ms)", next(csv.reader(file)))
        for _ in range(2):
            os.makedirs(self.path("sums/2_nvtx_sum.csv"), exist_ok=True) # all tables take another number
            self.assert_run(self.kprof("stats", "-r", "cuda_api_sum,nvtx_sum", "-o", "%q{A}/%i", "run",
                                       env={"A": "sums"}), 0)
        self.assertEqual(sorted(os.listdir(self.path("sums"))),
                         [f"{i}_{name}_sum.csv" for i in (1, 2, 3) for name in ("cuda_api", "nvtx")
                          if (i, name) != (2, "cuda_api")])
        self.assertIn("%x is no placeholder", self.kprof("stats", "run", "-o", "%x").err)
        run = self.kprof("stats", "-r", "um_sum", "-f", "csv", "-o", "um", "run")
        self.assertEqual(run.code, 110, run.err)
        self.assertFalse(os.path.exists(self.path("um_um_sum.csv")))
        two = self.kprof("stats", "-r", "nvtxsum,gpumemtimesum,cudaapisum", "-f", "csv", "run")
        self.assert_run(two, 0)
        # scripts look for the line that begins so
        heads = [line for line in two.out.splitlines() if line.startswith("Time (%),Total Time (ns),")]
        self.assertEqual([head.split(",")[2] for head in heads], ["Instances", "Count", "Num Calls"])
        run = self.kprof("stats", "-r", "gputrace", "-f", "csv", "--timeunit", "usec", "run")
        self.assertEqual(run.out.splitlines()[0].split(",")[:3], ["Start (us)", "Duration (us)", "CorrId"])
        self.assertEqual(run.out.splitlines()[1].split(",")[:3], ["6", "20", "1"])
        run = self.kprof("stats", "-r", "gputrace", "-f", "csv", "-o", "none/t", "run")
        self.assertIn("cannot write the results to none/t_gputrace.csv: there is no folder none", run.err)
        for words, effect in ((("-f", "csv", "--csv-safe"), None), (("-o", "safe", "--csv-safe"), None),
                              (("-o", "-", "--csv-safe"), "--csv-safe has no effect"),
                              (("-f", "json", "--csv-safe"), "--csv-safe has no effect"),
                              (("-o", "logged", "--log-file", "log"), "--log-file has no effect beside --export")):
            run = self.kprof("stats", "run", "-r", "nvtx_sum", *words)
            self.assertIn(effect or "", run.err)
            self.assertEqual("has no effect" in run.err, effect is not None, words)
        for words, text in ((("-f", "csv,xml"), '"xml" is not valid'), (("-f", "csv", "--json"), "exclude each other"),
                            (("-f", "csv", "-o", "@cat"), "kprof starts no command")):
            run = self.kprof("stats", "run", "-r", "nvtx_sum,cuda_api_sum", *words)
            self.assertEqual((run.code, run.out), (101, ""), run.err)
            self.assertIn(text, run.err)


class Records(Tracing):
    def test_each_kind(self):
        run = self.trace("place=grid:4", f"launch={VECTOR_ADD}", "do=stream:1",
                         "do=copy:Host-to-Device:Pageable:1000000", "do=copy:Device-to-Host:Pinned:250", "do=set:5000",
                         "do=alloc:4096", "do=free:4096", "do=sync")
        self.assert_run(run, 0)
        self.assertIn("report: ", run.err)
        self.assertIn("(13 activities)", run.err)
        t = START
        self.assertEqual(self.named("kernel", "start_ns, end_ns, grid_x, block_x, stream, correlation, graph"),
                         [(VECTOR_ADD, t + LATENCY, t + LATENCY + 20000, 4, 256, 0, 1, None)])
        copied = t + CALL + LATENCY + 40000 # the host waits for memory that is pageable
        sent = copied + LATENCY
        self.assertEqual(self.named("copy", "start_ns, end_ns, bytes, is_async, stream", "operation_id"),
                         [("Host-to-Device", copied - 40000, copied, 1000000, 0, 1),
                          ("Device-to-Host", sent, sent + 10, 250, 1, 1)])
        self.assertEqual(self.named("copy", "t.id", "source_memory_id"), [("Pageable", 1), ("Device", 2)])
        self.assertEqual(self.named("copy", "t.id", "target_memory_id"), [("Device", 1), ("Pinned", 2)])
        was_set = copied + CALL + LATENCY
        self.assertEqual(self.rows("set", "start_ns, end_ns, bytes"), [(was_set, was_set + 5, 5000)])
        allocated = copied + 2 * CALL + ALLOCATE
        self.assertEqual(self.named("memory", "time_ns, bytes, stream", "operation_id"),
                         [("allocation", allocated, 4096, None), ("release", allocated + ALLOCATE, 4096, None)])
        self.assertEqual(self.named("call", "end_ns-start_ns, correlation, result"), [
            ("cudaLaunchKernel", CALL, 1, 0), ("cudaMemcpy", copied - t - CALL, 2, 0), ("cudaMemcpyAsync", CALL, 3, 0),
            ("cudaMemsetAsync", CALL, 4, 0), ("cudaMalloc", ALLOCATE, 5, 0), ("cudaFree", ALLOCATE, 6, 0),
            ("cudaDeviceSynchronize", CALL, 7, 0)])
        [(start, end, activities, dropped, unknown, reason)] = self.query(
            "run.kprof", "SELECT start_unix_ns, end_unix_ns, activities, dropped, unknown, reason FROM trace")
        self.assertLess(start, end)
        self.assertEqual((activities, dropped, unknown, reason), (13, 0, 0, ""))
        rows = json.loads(self.kprof("stats", "run", "-r", "cuda_gpu_trace", "--json").out)
        self.assertEqual([(row["SrcMemKd"], row["DstMemKd"]) for row in rows],
                         [(None, None), ("Pageable", "Device"), ("Device", "Pinned"), ("Device", None)])
        self.assertEqual(self.query("run.kprof", "SELECT launches, matched, profiled, ended FROM process"),
                         [(1, 0, 0, 1)])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch"), [(0,)])
        self.assertEqual(self.query("run.kprof", "SELECT ordinal, name FROM device ORDER BY id"),
                         [(0, "Simulated H200"), (1, "Simulated H200")])

    def test_many_activities_stream(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}*3000", f"launch={SCALE}*2000"), 0)
        self.assertEqual(self.query("run.kprof", "SELECT function, count(*), total(end_ns-start_ns) FROM trace_kernel "
                                    "JOIN trace_name n ON n.id=name_id GROUP BY function ORDER BY 1"),
                         [("scale", 2000, 2000 * 20000.0), ("vectorAdd", 3000, 3000 * 20000.0)])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_call"), [(5000,)])

    def test_ranges(self):
        self.assert_run(self.trace("push=early", f"launch={VECTOR_ADD}", "push=step", "do=gap:10", "push=net@conv",
                                   "do=sync", "pop=net", "pop", "start=epoch", "do=gap:5", "end"), 0)
        t = START + CALL
        synced = START + LATENCY + 20000
        self.assertEqual(self.query(
            "run.kprof", "SELECT s.text, d.text, n.text, start_ns, end_ns, thread=end_thread FROM trace_range JOIN "
            "trace_name n ON n.id=name_id JOIN trace_name s ON s.id=style_id LEFT JOIN trace_name d ON d.id=domain_id "
            "WHERE n.text!='early' ORDER BY start_ns, n.text"),
                         [("PushPop", None, "step", t, synced, 1), ("PushPop", "net", "conv", t + 10000, synced, 1),
                          ("StartEnd", None, "epoch", synced, synced + 5000, 1)])
        self.assertEqual(self.query("run.kprof", "SELECT end_ns, start_ns>0 FROM trace_range JOIN trace_name n ON "
                                    "n.id=name_id WHERE n.text='early'"), [(None, 1)])

    def test_ranges_before_cuda(self):
        self.assert_run(self.trace("push=load", "push=net@parse", "pop=net", "pop", f"launch={VECTOR_ADD}", "push=step",
                                   "do=sync", "pop"), 0)
        self.assertEqual(self.named("range", "end_ns>=start_ns, thread=end_thread"),
                         [("parse", 1, 1), ("load", 1, 1), ("step", 1, 1)])
        # of its parent's a child has none
        self.trace("push=load", "pop", f"fork={VECTOR_ADD}")
        self.assertEqual((self.rows("range", "id"), self.rows("kernel", "id")), ([], [(1,)]))
        self.trace(*["push=early", "pop"] * 4100, f"launch={VECTOR_ADD}")
        self.assertEqual(self.query("run.kprof", "SELECT (SELECT count(*) FROM trace_range), dropped FROM trace"),
                         [(4096, 4)])

    def test_ranges_that_are_never_popped(self):
        run = self.trace(*["push=left"] * 128, *["push=inner", f"launch={VECTOR_ADD}", "pop"] * 3)
        self.assert_run(run, 0)
        self.assertIn("warning: 128 NVTX ranges are open in a thread", run.err)
        self.assertIn("warning: 3 activities were lost", run.err)
        self.assertIn("warning: activities lost: 3; ", self.kprof("stats", "run").err)

    def test_names_with_ranges(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", "push=step", "push=net@conv", f"launch={SCALE}*2", "pop=net",
                                   f"launch={VECTOR_ADD}", "pop"), 0)
        for table, column in (("cuda_gpu_kern_sum", "Name"), ("cuda_gpu_sum", "Operation"), ("cuda_gpu_trace", "Name"),
                              ("cuda_gpu_kern_gb_sum", "Name"), ("cuda_kern_exec_sum", "Kernel Name")):
            rows = json.loads(self.kprof("stats", "run", "--report", f"{table}:nvtx-name:base", "--json").out)
            self.assertEqual(sorted({row[column] for row in rows}),
                             [":step/vectorAdd", "net:conv/scale", "vectorAdd"], table)

    def test_marks(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", "push=step", "do=gap:10", "mark=epoch", "pop"), 0)
        t = START + CALL + 10000
        self.assertEqual(self.query("run.kprof", "SELECT n.text, start_ns, end_ns FROM trace_range JOIN trace_name n "
                                    "ON n.id=name_id JOIN trace_name s ON s.id=style_id WHERE s.text='Marker'"),
                         [("epoch", t, None)])
        self.assertEqual(self.kprof("stats", "run", "--report", "nvtx_sum", "--csv").out.count("\n"), 2)
        self.assert_run(self.kprof("export", "run", "--to", "chrome", "-o", "run.json"), 0)
        with open(self.path("run.json")) as file:
            [event] = [event for event in json.load(file)["traceEvents"] if event["ph"] == "i"]
        self.assertEqual((event["name"], event["s"]), ("epoch", "t"))
        self.collect([], ["mark=ignored", f"launch={VECTOR_ADD}"]) # nothing to a run that is measured

    def test_tables(self):
        run = self.kprof("trace", "--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}*2", "say=ran")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "ran\n")
        self.assertIn("CUDA GPU Kernel Summary", run.err)
        run = self.kprof("trace", "--injection-path", INJECTION, "--report", "cuda_gpu_kern_sum:base,cuda_api_sum",
                         "--json", APP, f"launch={VECTOR_ADD}*2", "say=ran")
        self.assert_run(run, 0)
        tables = json.loads(run.out)
        self.assertEqual(tables["cuda_gpu_kern_sum"], [{
            "Time (%)": 100, "Total Time (ns)": 40000, "Instances": 2, "Avg (ns)": 20000, "Med (ns)": 20000,
            "Min (ns)": 20000, "Max (ns)": 20000, "StdDev (ns)": 0, "Name": "vectorAdd"}])
        self.assertEqual([row["Num Calls"] for row in tables["cuda_api_sum"]], [2])
        run = self.kprof("trace", "--injection-path", INJECTION, "--report", "goal_sum", "--json", APP,
                         f"launch={VECTOR_ADD}*2")
        self.assertEqual([(row["Value (%)"], row["Met"]) for row in json.loads(run.out)],
                         [(100, "yes"), (None, None), (0, "yes")]) # nothing is copied
        run = self.kprof("trace", "--injection-path", INJECTION, "--report", "goal_sum", "--json", APP, "do=gap:1",
                         "do=alloc:1")
        self.assertEqual(json.loads(run.out), []) # nothing runs
        self.assert_run(self.trace(f"launch={VECTOR_ADD}"), 0)
        run = self.kprof("stats", "run", "--report", "nvtx_sum", "--csv")
        self.assertEqual(run.out.count("\n"), 1) # the columns alone
        for words, code, text in ((("run", "--report", "kern_sum"), 102, "did you mean cuda_gpu_kern_sum?"),
                                  (("run", "--report", "mem_tim:base"), 102, "did you mean cuda_gpu_mem_time_sum?"),
                                  (("run", "--report", "gpukernsu"), 102, "did you mean gpukernsum?"),
                                  (("run", "--report", "osr_sum"), 102, "did you mean lost_sum?"),
                                  (("run", "--report", "other,kern_sum"), 102, "did you mean cuda_gpu_kern_sum?"),
                                  (("run", "--report", "foobarbaz"), 102, "kprof list tables lists all"),
                                  (("run", "--report", "um_sum"), 110, "kprof trace --unified-memory records it"),
                                  (("run", "--report", "osrt_sum"), 110, "does not trace calls of the operating"),
                                  (("run", "--report", "mpi_event_sum"), 110, "does not trace MPI"),
                                  (("run", "--report", "wddm_queue_sum"), 110, "does not trace Windows"),
                                  (("run", "--report", "nvtx_sum:x"), 102, "base, mangled or nvtx-name"),
                                  (("run", "--report", "um_sum:rows="), 102, "of kernels, or rows=NUMBER"),
                                  (("run", "--report", "um_sum:rows=1x"), 102, "of kernels, or rows=NUMBER"),
                                  (("run", "--report", "cudaapisum:base"), 102, "cuda_api_sum has no names of kernels"),
                                  (("run", "--report", "nvtx_kern_sum:nvtx-name"), 102, "no names of single kernels"),
                                  ((), 101, "which report?")):
            with self.subTest(words):
                run = self.kprof("stats", *words)
                self.assertEqual(run.code, code, run.err)
                self.assertIn(text, run.err)
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        self.assertIn("has no trace; kprof trace makes one", self.kprof("stats", "run").err)

    def test_one_reason_why_there_is_no_trace(self):
        for options in ([], ["--json"], ["--csv", "--report", "cuda_gpu_kern_sum"]):
            run = self.kprof("trace", "--injection-path", INJECTION, *options, "true")
            self.assert_run(run, 106)
            self.assertEqual((run.out, run.err.count("error: ")), ("", 1), run.err)
            self.assertIn("nothing was collected: ", run.err)

    def test_tables_that_a_run_cannot_have(self):
        for table, code, text in (("um_sum", 101, "add --unified-memory"),
                                  ("pm_sampling_sum", 101, "add --pm-sampling"),
                                  ("kern_line_sum", 101, "add --call-stack"),
                                  ("osrt_sum", 110, "does not trace calls of the operating system")):
            with self.subTest(table):
                run = self.kprof("trace", "--injection-path", INJECTION, "--report", f"nvtx_sum,{table}", APP,
                                 "say=ran")
                self.assertEqual((run.code, run.out), (code, ""))
                self.assertIn(text, run.err)
        run = self.kprof("trace", "--injection-path", INJECTION, "--unified-memory", "--report", "um_sum", "--csv", APP,
                         "do=move:Host-to-Device:1000000")
        self.assert_run(run, 0)
        self.assertEqual(run.out.count("\n"), 2)

    def test_small_copies_in_a_row(self):
        small, row = "do=copy:Host-to-Device:Pinned:1000", lambda: json.loads(
            self.kprof("stats", "run", "--report", "transfer_sum", "--json").out)[0]
        for steps, follow in (((small,) * 4, 3), ((small, "do=sync", small), 1), ((small, f"launch={SCALE}") * 4, 0),
                              ((small, "do=stream:1", f"launch={SCALE}", "do=stream:0", small, small), 1),
                              ((small, "do=copy:Host-to-Device:Pinned:65536", small), 0)):
            with self.subTest(steps):
                self.assert_run(self.trace(*steps), 0)
                self.assertEqual((row()["Small"], row()["Small in a Row"]), (steps.count(small), follow))

    def test_call_stacks(self):
        steps = (f"launch={VECTOR_ADD}*3", "do=copy:Host-to-Device:Pageable:1000", "do=sync")
        self.assert_run(self.trace(*steps, options=("--call-stack-type", "native")), 0)
        table = lambda name, report="run": [(row["Line"], row["Name"], row["Total Time (ns)"]) for row in json.loads(
            self.kprof("stats", report, "--report", name, "--json").out)]
        [(line, name, ns)] = table("kern_line_sum")
        self.assertIn("launch", line)
        self.assertEqual((name[:9], ns), ("vectorAdd", 60000))
        calls = table("call_line_sum")
        self.assertEqual(sum(ns for _, _, ns in calls), self.query("run.kprof", "SELECT total(end_ns-start_ns) FROM "
                                                                   "trace_call")[0][0])
        self.assertEqual({line for line, name, _ in calls if name == "cudaLaunchKernel"}, {line})
        self.assertEqual({name: "do_something" in line for line, name, _ in calls},
                         {"cudaDeviceSynchronize": True, "cudaMemcpy": True, "cudaLaunchKernel": False})
        self.assertIn("Kernels by Line", self.kprof("stats", "run").out)
        self.assert_run(self.kprof("export", "run", "--to", "chrome", "-o", "run.json"), 0)
        with open(self.path("run.json")) as file:
            events = json.load(file)["traceEvents"]
        self.assertEqual([event["args"]["called from"] for event in events if event["name"] == "cudaLaunchKernel"],
                         [line] * 3)
        run = self.kprof("export", "run", "--to", "folded")
        self.assert_run(run, 0)
        self.assertRegex(run.out, r"main.*;launch .*;vectorAdd 60000\n$")
        self.assertEqual(run.out.count("\n"), 1)
        run = self.kprof("export", "run", "--to", "folded", "-k", "scale")
        self.assert_run(run, 101)
        self.assertIn("leave out what chooses launches", run.err)
        os.rename(self.path("run.kprof"), self.path("a.kprof"))
        self.assert_run(self.trace("do=sync", *steps, options=("--call-stack-type", "native")), 0)
        self.assert_run(self.kprof("merge", "a.kprof", "run.kprof", "-o", "all"), 0)
        self.assertEqual(table("kern_line_sum", "all"), [(line, name, 120000)])
        # stacks of which there are too many are not kept, and their kernels count all the same
        with sqlite3.connect(self.path("all.kprof")) as database:
            database.execute("DELETE FROM trace_caller WHERE correlation=(SELECT min(correlation) FROM trace_kernel)")
        database.close()
        self.assertEqual(table("kern_line_sum", "all"), [(line, name, 100000), (None, name, 20000)])
        self.assertRegex(self.kprof("export", "all", "--to", "folded").out,
                         r"main.*;launch .*;vectorAdd 100000\n\(no call stack\);vectorAdd 20000\n$")
        # lines are texts, also where the first row has none
        with sqlite3.connect(self.path("all.kprof")) as database:
            database.execute("DELETE FROM trace_caller WHERE correlation<>(SELECT max(correlation) FROM trace_kernel)")
        database.close()
        self.assertIsNone(table("kern_line_sum", "all")[0][0])
        aligned = self.kprof("stats", "all", "--report", "kern_line_sum", "--markdown").out.splitlines()[1]
        self.assertTrue(aligned.endswith("| ---: | --- | --- |"), aligned)
        self.assert_run(self.trace(*steps), 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_caller"), [(0,)])
        self.assertNotIn("by Line", self.kprof("stats", "run").out)
        self.assertIn("this is a trace", self.kprof("export", "run", "--to", "folded").err)
        run = self.kprof("stats", "run", "--report", "call_line_sum")
        self.assertEqual(run.code, 110)
        self.assertIn("kprof trace --call-stack records", run.err)

    def test_managed_memory(self):
        steps = ("do=move:Host-to-Device:1000000", "do=fault:CPU", "do=fault:GPU", "do=move:Device-to-Host:500000",
                 f"launch={VECTOR_ADD}")
        self.assert_run(self.trace(*steps, options=("--unified-memory",)), 0)
        self.assertEqual(self.named("managed", "end_ns-start_ns, bytes, faults, source_device, target_device",
                                    "operation_id"),
                         [("Host-to-Device", 40000, 1000000, None, None, 0),
                          ("CPU page fault", None, None, None, None, None),
                          ("GPU page fault", 10, None, 3, 0, None), ("Device-to-Host", 20000, 500000, None, 0, None)])
        run = self.kprof("stats", "run", "--report", "um_total_sum", "--csv")
        self.assertEqual(run.out.splitlines()[1], '1,0.5,1,3,0x100000,0x400000')
        self.assertIn("Unified Memory Totals Summary", self.kprof("stats", "run").out)
        rows = lambda name: self.kprof("stats", "run", "--report", name, "--csv").out.splitlines()[1:]
        self.assertEqual((rows("um_sum:rows=2"), rows("um_sum:rows=0")), (rows("um_sum")[:2], rows("um_sum")))
        self.assert_run(self.kprof("export", "run", "--to", "nsys-sqlite"), 0)
        self.assertEqual(self.query("run.sqlite", "SELECT label, c.start-k.start<0, bytes, virtualAddress FROM "
                                    "CUPTI_ACTIVITY_KIND_MEMCPY c JOIN ENUM_CUDA_MEMCPY_OPER e ON e.id=copyKind JOIN "
                                    "CUPTI_ACTIVITY_KIND_KERNEL k ORDER BY c.start"),
                         [("Unified Host-to-Device", 1, 1000000, 0x100000),
                          ("Unified Device-to-Host", 1, 500000, 0x400000)])
        self.assertEqual(self.query("run.sqlite", "SELECT deviceId, numberOfPageFaults, end-start FROM "
                                    "CUDA_UM_GPU_PAGE_FAULT_EVENTS"), [(0, 3, 10)])
        self.assertEqual(self.query("run.sqlite", "SELECT address, value=coalesce(printf('0x%x', originalFaultPc), "
                                    "'[Unknown]') FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS JOIN StringIds ON "
                                    "id=CpuInstruction"), [(0x200000, 1)])
        self.assert_run(self.kprof("export", "run", "--to", "chrome", "-o", "run.json"), 0)
        with open(self.path("run.json")) as file:
            events = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "managed"]
        self.assertEqual(sorted((event["ph"], event["name"]) for event in events),
                         [("X", "Device-to-Host"), ("X", "GPU page fault"), ("X", "Host-to-Device"),
                          ("i", "CPU page fault")])
        self.assert_run(self.trace(*steps), 0) # nobody asked
        self.assertNotIn("Unified Memory", self.kprof("stats", "run").out)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_managed"), [(0,)])
        run = self.trace(*steps, options=("--unified-memory",), env={"KPROF_SIM_NO_MANAGED": "1"})
        self.assert_run(run, 0)
        self.assertIn("the trace goes on without records of how unified memory moves", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_kernel"), [(1,)])

    def test_graphs(self):
        steps = (f"launch={VECTOR_ADD}", "do=overhead:7", "push=step", "do=graph:3", "do=sync", "pop", "do=graph:2",
                 "do=sync")
        self.assert_run(self.trace(*steps), 0)
        table = lambda name: json.loads(self.kprof("stats", "run", "-r", name, "--json").out)
        launched = START + CALL + 7000
        first = START + LATENCY + 20000 # the stream is free then
        self.assertEqual(self.named("kernel", "graph, graph_node, correlation, start_ns, end_ns")[1:4],
                         [("_Z4nodePf", 3, i + 1, 2, first + 20000 * i, first + 20000 * (i + 1)) for i in range(3)])
        self.assertEqual(self.named("overhead", "start_ns, end_ns"),
                         [("Module loading", START + CALL, launched)])
        self.assertEqual([(row["NVTX Inst"], row["Kern Inst"]) for row in table("nvtx_kern_sum")], [(1, 3)])
        self.assertEqual([(row["API Name"], row["Count"]) for row in table("cuda_kern_exec_sum:base")],
                         [("cudaGraphLaunch", 5), ("cudaLaunchKernel", 1)])
        self.assertEqual(table("graph_sum"), [])
        self.assert_run(self.kprof("export", "run", "--to", "chrome", "-o", "run.json"), 0)
        with open(self.path("run.json")) as file:
            flows = [(event["ph"], event["id"] % 2 ** 32, event["ts"]) for event in json.load(file)["traceEvents"]
                     if event.get("cat") == "ac2g" and event["id"] % 2 ** 32 == 2]
        us = lambda ns: (ns - START) / 1000
        base = flows[0][2] - us(launched)
        self.assertEqual([(phase, number, round(ts - base, 3)) for phase, number, ts in flows],
                         [("s", 2, us(launched)), *(("f", 2, us(first + 20000 * i)) for i in range(3))])
        self.assert_run(self.trace(*steps, options=("--graph-profiling", "graph")), 0)
        self.assertEqual(self.rows("graph", "graph, correlation, end_ns-start_ns"), [(3, 2, 60000), (3, 4, 40000)])
        [row] = table("graph_sum")
        self.assertEqual((row["Graph"], row["Instances"], row["Total Time (ns)"]), (3, 2, 100000))
        self.assertEqual([(row["Range"], row["Total GPU Ops"]) for row in table("nvtx_gpu_proj_sum")], [(":step", 1)])
        self.assertEqual(table("gpu_busy")[0]["Kernels"], 3)
        self.assertIn("launches of whole graphs: 2; tables of kernels", self.kprof("stats", "run").err)

    def test_nothing_to_show(self):
        """A page is not recommended to who asks for one."""
        self.trace("init")
        run = self.kprof("report", "run", "--html", "run.html")
        self.assertEqual(run.code, 106, run.err)
        self.assertIn("this is a trace in which nothing happened", run.err)
        self.assertNotIn("--html", run.err)

    def test_from_trace_to_counters(self):
        self.assert_run(self.trace("do=kernel:100", f"launch={VECTOR_ADD}*2", "do=kernel:1", f"launch={SCALE}*9"), 0)
        [(command,)] = csv.reader(self.kprof("stats", "run", "--report", "count_command", "--csv").out.splitlines()[1:])
        text = self.kprof("stats", "run", "--report", "count_command", "--width", "60").out
        self.assertEqual(text.splitlines()[1:], [command]) # a shell would take each line for a command
        words = shlex.split(command)
        self.assertEqual(words[:5], ["kprof", "--set", "full", "-k", "regex:^(vectorAdd)$"])
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "counted", "--metrics", METRIC, *words[3:])
        self.assert_run(run, 0)
        self.assertEqual(self.launches("counted.kprof"), ["vectorAdd"] * 2)

    def test_more_than_is_printed(self):
        """A file has a long name once, a table in each row."""
        self.assert_run(self.trace(f"launch={VECTOR_ADD}*2"), 0)
        with sqlite3.connect(self.path("run.kprof")) as database:
            columns = ",".join(row[1] for row in database.execute("PRAGMA table_info(trace_kernel)") if row[1] != "id")
            for _ in range(13):
                database.execute(f"INSERT INTO trace_kernel({columns}) SELECT {columns} FROM trace_kernel")
            database.execute("UPDATE trace_name SET demangled = demangled || hex(zeroblob(50000)) WHERE id IN "
                             "(SELECT name_id FROM trace_kernel)")
        run = self.kprof("stats", "run", "--report", "cuda_gpu_trace", "--csv", "--log-file", "/dev/null")
        self.assertEqual(run.code, 107, run.err)
        self.assertIn("print fewer tables with --report, or less of the time with --filter-time", run.err)
        self.assertNotIn("-k", run.err)

    def test_words_of_the_program(self):
        """As a shell takes them."""
        steps = ["say=it's two", "say=", f"launch={VECTOR_ADD}"]
        self.assert_run(self.trace(*steps), 0)
        [row] = json.loads(self.kprof("stats", "run", "--report", "count_command", "--json").out)
        words = shlex.split(row["Command"])
        self.assertEqual(words[words.index("--") + 1:], [APP, *steps])
        self.assertEqual(self.query("run.kprof", "SELECT command_line FROM process"),
                         [(shlex.join([APP, *steps]).replace("'\"'\"'", "'\\''"),)])

    def test_what_is_lost(self):
        """Of pairs of programs one has what a finding is about, and the gain follows from its times."""
        launch, small = f"launch={VECTOR_ADD}", "do=copy:Host-to-Device:Pinned:{}"
        loop = lambda count, *steps: [*steps] * count
        step = ["push=step", launch, "do=sync"]
        until_free = CALL + ALLOCATE - (LATENCY + 20000) # the kernel runs until then
        for finding, gain, steps, twin in (
                ("Launch-bound", 40 * (CALL - 1000), ["do=kernel:1", *loop(40, launch)], loop(40, launch)),
                ("Launch-bound", 20 * LATENCY, loop(20, launch, "do=sync"), loop(20, launch)),
                ("Small copies", 49 * CALL, loop(50, small.format(1000)), loop(50, small.format(70000))),
                ("Host code", 5 * 300000, loop(5, launch, "do=sync", "do=gap:300"), loop(5, launch, "do=gap:10")),
                ("Pageable copies", 5 * 160000, loop(5, "do=copy:Host-to-Device:Pageable:4000000", launch),
                 loop(5, small.format(4000000), launch)),
                ("Copies alone", 5 * 160000, loop(5, small.format(4000000), launch),
                 loop(5, "do=stream:1", small.format(400), "do=stream:0", launch)),
                ("Uneven steps", 300000, [*loop(9, *step, "pop"), *step, "do=gap:300", "pop"], loop(10, *step, "pop")),
                ("Allocation", 10 * until_free + 9 * ALLOCATE,
                 loop(10, "do=alloc:1000", launch, "do=free:1000"), ["do=alloc:1000", *loop(10, launch)])):
            found = []
            for these in (steps, twin):
                self.assert_run(self.trace(*these, launch), 0)
                rows = json.loads(self.kprof("stats", "run", "--report", "lost_sum", "--json").out)
                found.append({row["Finding"]: row["Gain at Most (ns)"] for row in rows})
            with self.subTest(finding):
                self.assertEqual(found[0].get(finding), gain, found)
                self.assertNotIn(finding, found[1])

    def test_a_graph_is_launched_once(self):
        """Its later kernels have waited for those before them, and not for the launch."""
        self.assert_run(self.trace("init", "do=kernel:50", *["do=graph:12", "do=sync"] * 3), 0)
        [row] = json.loads(self.kprof("stats", "run", "--report", "gpu_busy", "--json").out)
        self.assertEqual((row["Kernels"], row["Launch Latency Med (ns)"]), (36, LATENCY - CALL))

    def test_memory_whose_records_lack_something(self):
        """What is released belongs to its allocation; what was not recorded makes no level negative or too high."""
        def most(*steps, sql=""):
            self.assert_run(self.trace("do=alloc:1", f"launch={VECTOR_ADD}", *steps), 0)
            with sqlite3.connect(self.path("run.kprof")) as database:
                database.executescript(sql)
            rows = json.loads(self.kprof("stats", "run", "--report", "memory_sum", "--json").out)
            trace = json.loads(self.kprof("export", "run", "--to", "chrome").out)
            for row in rows: # the track has the same
                pid = 1001 + row["Device"] if len(rows) > 1 else None
                self.assertEqual(row["High Water (MB)"], max(
                    event["args"]["MB"] for event in trace["traceEvents"] if event["ph"] == "C" and
                    event["name"] == "allocated Device memory" and pid in (None, event["pid"])))
            return [(row["Device"], row["High Water (MB)"], row["Allocations"], row["Releases"]) for row in rows]

        four = ("do=alloc:2000000", "do=free:2000000", "do=alloc:4000000", "do=free:4000000")
        self.assertEqual(most(*four), [(0, 4, 3, 2)])
        self.assertEqual(most("do=free:9000000", *four), [(0, 4, 3, 3)]) # nobody knows when that was allocated
        # The GPU that is the current one may be another one as memory is released.
        of = lambda operation: f"(SELECT id FROM trace_name WHERE text='{operation}')"
        self.assertEqual(most(*four, sql=f"UPDATE trace_memory SET device=1 WHERE operation_id={of('release')}"),
                         [(0, 4, 3, 2)])
        second = f"UPDATE trace_memory SET device=bytes>1 WHERE operation_id={of('allocation')}"
        self.assertEqual(most(*four, sql=second), [(0, 0, 1, 0), (1, 4, 2, 2)])
        # Of releases that were lost the addresses are used again.
        again = ("do=alloc:3000000", "do=free:3000000") * 5
        self.assertEqual(most(*again), [(0, 3, 6, 5)])
        self.assertEqual(most(*again, sql="UPDATE trace_memory SET address=1048576*7 WHERE bytes>1"), [(0, 3, 6, 5)])
        lost = f"DELETE FROM trace_memory WHERE operation_id={of('release')} AND id%4=3; UPDATE trace_memory SET " \
               "address=7 WHERE bytes>1"
        self.assertEqual(most(*again, sql=lost), [(0, 3, 6, 2)])

    def test_what_to_count_of_a_script(self):
        """A process of it lacks what the script gives the others."""
        script = f"cd /; {APP} 'say=it'\\''s -- two' launch={SCALE}*3; {APP} launch={VECTOR_ADD}"
        line = ["sh", "-c", script, "--", "x"]
        command = lambda name: shlex.split(json.loads(
            self.kprof("stats", name, "--report", "count_command", "--json").out)[0]["Command"])
        for name, *words in (("run",), ("it's -- run",), ("c", "--")):
            with self.subTest(words):
                self.assert_run(self.kprof("trace", "--injection-path", INJECTION, "-f", "-o", name, *words, *line), 0)
                self.assertEqual(command(name)[-len(line) - 1:], ["--", *line])
        self.assert_run(self.kprof("merge", "run.kprof", "c.kprof", "-o", "merged"), 0)
        self.assertEqual(command("merged")[-len(line) - 1:], ["--", *line])
        with sqlite3.connect(self.path("run.kprof")) as database: # as before it had that mark
            database.execute("UPDATE run SET command_line='kprof trace sh'")
        self.assertIn(APP, command("run"))

    def test_pages_of_launches(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}"), 0)
        for words in (("report", "run"), ("report", "run", "--page", "summary"), ("export", "run", "--to", "long")):
            with self.subTest(words):
                run = self.kprof(*words)
                self.assertEqual(run.code, 106)
                self.assertIn("this is a trace", run.err)
                self.assertIn("kprof export --to chrome one for Perfetto", run.err)
        self.assert_run(self.kprof("report", "run", "--page", "session"), 0)
        self.assert_run(self.kprof("report", "run", "--html", self.path("run.html")), 0)
        run = self.kprof("export", "run", "--to", "timeline", "-k", "scale")
        self.assert_run(run, 101)
        self.assertIn("--to timeline writes all of a trace", run.err)
        run = self.kprof("export", "run", "--to", "chrome", "-o", "run.json")
        self.assert_run(run, 0)
        with open(self.path("run.json")) as file:
            self.assertEqual({event["ph"] for event in json.load(file)["traceEvents"]}, set("MXsfC"))

    def test_ends_by_a_signal(self):
        self.assert_run(self.trace("push=step", f"launch={VECTOR_ADD}*5", "raise=15"), 143)
        self.assertEqual(self.query("run.kprof", "SELECT activities, end_unix_ns IS NULL FROM trace"), [(11, 0)])
        self.assertEqual(self.query("run.kprof", "SELECT end_ns FROM trace_range"), [(None,)])

    def test_threads(self):
        self.assert_run(self.trace(*[f"thread={name}" for name in (VECTOR_ADD, SCALE) * 20]), 0)
        self.assertEqual(self.query("run.kprof", "SELECT activities FROM trace"), [(40 * 3,)])
        self.assertEqual(self.query("run.kprof", "SELECT count(DISTINCT thread) FROM trace_call"), [(40,)])

    def test_what_is_lost_is_counted(self):
        run = self.trace(f"launch={VECTOR_ADD}", "do=drop:7", "do=junk:3", "do=lost:1", f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        self.assertIn("warning: 7 activities were lost", run.err)
        self.assertIn("warning: kprof cannot read 3 of CUPTI's records, and leaves them out", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT activities, dropped, unknown FROM trace"), [(4, 7, 3)])
        self.assertEqual(self.rows("kernel", "start_ns IS NULL, end_ns IS NULL"), [(0, 0), (1, 1)])
        run = self.kprof("stats", "run", "--report", "cuda_gpu_kern_sum", "--csv")
        self.assertIn("warning: activities lost: 7; ", run.err)
        self.assertIn("warning: kernels, copies, sets and graphs whose times CUPTI does not know: 1; ", run.err)
        self.assertIn("warning: records of CUPTI's that kprof cannot read: 3; the tables are without them", run.err)
        for place, *words in (("export", "export", "--to", "chrome"), ("export", "export", "--to", "nsys-sqlite"),
                              ("page", "export", "--to", "timeline"), ("page", "report", "--html", "run.html")):
            told = self.kprof(*words, "run.kprof", "-f", *(("-o", "out") if words[0] == "export" else ())).err
            for what in ("activities lost: 7", "records of CUPTI's that kprof cannot read: 3",
                         "kernels, copies, sets and graphs whose times CUPTI does not know: 1"):
                self.assertIn(f"warning: {what}; the {place} is without them", told, words)
        self.assertIn("100,20000,1,", run.out)
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", "do=kept:2"), 0)
        [(reason,)] = self.query("run.kprof", "SELECT reason FROM trace")
        self.assertIn("had not ended", reason)
        self.assertIn("warning: processes that ended before their work on the GPU: 1;", self.kprof("stats", "run").err)

    def test_context_in_error(self):
        """CUPTI tells no times of kernels any more. Their records, and the calls, are there."""
        self.assert_run(self.trace("do=set:64", f"launch={SCALE}*8", "do=failed"), 0)
        self.assertEqual(self.rows("kernel", "start_ns IS NULL"), [(1,)] * 8)
        self.assertEqual(len(self.rows("call", "name_id")), 9)
        self.assertEqual(self.query("run.kprof", "SELECT reason FROM trace"), [("",)])
        self.assertIn("warning: kernels, copies, sets and graphs whose times CUPTI does not know: 8;",
                      self.kprof("stats", "run").err)

    def test_each_process_has_its_own(self):
        self.assert_run(self.trace(f"processes=2:{SCALE}", f"launch={VECTOR_ADD}"), 0)
        self.assertEqual(self.query("run.kprof", "SELECT activities FROM trace ORDER BY process_id"),
                         [(2,), (2,), (2,)])
        self.assertEqual(self.query("run.kprof", "SELECT text, count(DISTINCT process_id) FROM trace_kernel JOIN "
                                    "trace_name n ON n.id=name_id GROUP BY text ORDER BY text"),
                         [(SCALE, 2), (VECTOR_ADD, 1)])
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", f"fork={VECTOR_ADD}", f"launch={SCALE}"), 0)
        self.assertEqual(self.query("run.kprof", "SELECT activities FROM trace"), [(4,)])

    def test_ends_without_exit_handlers(self):
        for step, code in (("_exit=0", 0), ("leave=quick_exit:3", 3), ("leave=_Exit:0", 0)):
            with self.subTest(step):
                self.assert_run(self.trace(f"launch={VECTOR_ADD}*3", step), code)
                self.assertEqual(self.query("run.kprof", "SELECT activities, end_unix_ns IS NULL FROM trace"), [(6, 0)])

    def test_what_a_killed_process_lacks_is_told(self):
        for steps, kernels in (((f"launch={VECTOR_ADD}*40", "raise=9"), 32), ((f"launch={VECTOR_ADD}", "raise=6"), 0)):
            with self.subTest(steps):
                run = self.trace(*steps)
                self.assertEqual(run.code, 128 + int(steps[-1][-1]), run.err)
                self.assertEqual(len(self.rows("kernel", "id")), kernels)
                self.assertRegex(run.err, r"warning: process \d+ ended without an orderly exit \(killed, crashed or by "
                                          r"_exit\); its trace lacks what it did in its last second, and NVTX "
                                          r"ranges that had not ended")
                self.assertNotIn("launches", run.err)
        self.assertIn("error: the trace is empty: CUPTI hands records over twice a second, and none had come", run.err)
        run = self.trace(f"launch={VECTOR_ADD}", env={"KPROF_SIM_FAULT": "damage"})
        self.assertRegex(run.err, r"what it wrote is damaged; what came before that is kept")

    def test_another_process_has_its_number(self):
        """In a namespace of its own the program is process 1, which outside of it is somebody else."""
        apart = ["unshare", "-rpf"]
        if subprocess.run([*apart, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("there are no namespaces")
        run = self.kprof("trace", "--injection-path", INJECTION, "-o", "run", *apart, APP, f"launch={VECTOR_ADD}",
                         "leave=abort:1")
        self.assertIn("process 1 ended without an orderly exit", run.err)

    def test_exec_keeps_both(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", "exec", f"launch={SCALE}"), 0)
        self.assertEqual(self.query("run.kprof", "SELECT activities FROM trace ORDER BY process_id"), [(2,), (2,)])

    def test_tables_of_nsys(self):
        """Scripts that read what nsys exports read this file: queries as they have them."""
        self.assert_run(self.trace(
            "init", "push=step", f"launch={VECTOR_ADD}*2", "do=copy:Host-to-Device:Pageable:4096", "do=set:100",
            "do=sync", "pop", f"launch={SCALE}", "do=sync", "start=long", "end"), 0)
        self.assert_run(self.kprof("export", "run", "--type", "sqlite"), 0)
        ask = lambda sql: self.query("run.sqlite", sql)
        stats = lambda table: json.loads(self.kprof("stats", "run", "-r", table, "--json").out)
        self.assertEqual( # the kernels that take most of the time
            ask("SELECT names.value, count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds AS "
                "names ON names.id = k.demangledName GROUP BY k.demangledName ORDER BY 3 DESC"),
            [(row["Name"], row["Instances"], row["Total Time (ns)"]) for row in stats("cuda_gpu_kern_sum")])
        self.assertEqual( # calls, with the process and the thread in one number
            ask("SELECT globalTid / 0x1000000 % 0x1000000 AS PID, globalTid % 0x1000000 AS TID, s.value, start, end - "
                "start FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds s ON s.id = nameId ORDER BY start"),
            [(row["Pid"], row["Tid"], row["Name"], row["Start (ns)"], row["Duration (ns)"])
             for row in stats("cuda_api_trace")])
        self.assertEqual( # from a launch to its kernel
            ask("SELECT s.value, k.start - r.end FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
                "ON k.correlationId = r.correlationId AND k.globalPid = (r.globalTid & 0xFFFFFFFFFF000000) JOIN "
                "StringIds s ON s.id = k.mangledName WHERE r.eventClass = 0 ORDER BY k.start"),
            [(row["Kernel Name"], row["Kernel Start (ns)"] - row["API Start (ns)"] - row["API Dur (ns)"])
             for row in stats("cuda_kern_exec_trace:mangled")])
        self.assertEqual( # copies by kind
            ask("SELECT e.label, sum(bytes), m.label FROM CUPTI_ACTIVITY_KIND_MEMCPY c JOIN ENUM_CUDA_MEMCPY_OPER e "
                "ON e.id = c.copyKind JOIN ENUM_CUDA_MEM_KIND m ON m.id = srcKind GROUP BY 1"),
            [("Host-to-Device", 4096, "Pageable")])
        self.assertEqual(ask("SELECT bytes, label FROM CUPTI_ACTIVITY_KIND_MEMSET JOIN ENUM_CUDA_MEM_KIND e ON "
                             "e.id = memKind"), [(100, "Device")])
        self.assertEqual( # ranges, and kernels that were launched in them
            ask("SELECT coalesce(n.text, s.value), n.end - n.start, count(k.start) FROM NVTX_EVENTS n LEFT JOIN "
                "StringIds s ON s.id = n.textId JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = n.globalTid AND "
                "r.start >= n.start AND r.end <= n.end JOIN CUPTI_ACTIVITY_KIND_KERNEL k USING (correlationId) WHERE "
                "n.eventType = 59 GROUP BY n.rowid"),
            [("step", stats("nvtx_pushpop_sum")[0]["Total Time (ns)"], 2)])
        self.assertEqual(ask("SELECT text, e.name FROM NVTX_EVENTS n JOIN ENUM_NSYS_EVENT_TYPE e ON e.id = "
                             "n.eventType ORDER BY n.start"),
                         [("step", "NvtxPushPopRange"), ("long", "NvtxStartEndRange")])
        self.assertEqual(ask("SELECT label, count(*) FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION JOIN "
                             "ENUM_CUPTI_SYNC_TYPE e ON e.id = syncType GROUP BY 1"), [("Context sync", 2)])
        self.assertEqual(ask("SELECT g.name, smCount, chipName FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN "
                             "TARGET_INFO_CUDA_DEVICE d ON d.cudaId = k.deviceId AND d.pid = (k.globalPid >> 24) & "
                             "0xFFFFFF JOIN TARGET_INFO_GPU g ON g.id = d.gpuId GROUP BY 1"),
                         [("Simulated H200", 132, "GH100")])
        self.assertEqual(ask("SELECT utcEpochNs, utcTime FROM TARGET_INFO_SESSION_START_TIME"),
                         [(START, "2023-11-14T22:13:20")])
        [name] = ask("SELECT name FROM PROCESSES JOIN CUPTI_ACTIVITY_KIND_KERNEL USING (globalPid) GROUP BY 1")
        self.assertEqual(name, ("sim-app",))
        run = self.kprof("export", "run", "--to", "nsys-sqlite")
        self.assertEqual((run.code, "run.sqlite: exists already" in run.err), (108, True), run.err)
        for _ in range(2): # SQLite made the file that is there then, too
            self.assert_run(self.kprof("export", "run", "--to", "nsys-sqlite", "-f", "-o", "other.db"), 0)
        shutil.copy(self.path("run.kprof"), self.path("copy.kprof"))
        run = self.kprof("export", "run", "--to", "nsys-sqlite", "-f", "-o", "copy.kprof")
        self.assertEqual((run.code, "copy.kprof is a report" in run.err), (101, True), run.err)
        os.mkfifo(self.path("pipe"))
        for name in ("/dev/stdout", "pipe"):
            run = self.kprof("export", "run", "--to", "nsys-sqlite", "-o", name)
            self.assertEqual((run.code, "writes a regular file" in run.err), (101, True), run.err)
        run = self.kprof("export", "run", "--to", "nsys-sqlite", "-o", "full.sqlite", preexec_fn=limit_file_size(8192))
        self.assertEqual((run.code, os.path.exists(self.path("full.sqlite"))), (108, False), run.err)
        self.assertEqual([name for name in os.listdir(self.dir) if "new-" in name], [])

    def test_merged_traces(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", "do=sync"), 0)
        os.rename(self.path("run.kprof"), self.path("a.kprof"))
        self.assert_run(self.trace(f"launch={SCALE}*2", f"launch={VECTOR_ADD}"), 0)
        self.assert_run(self.kprof("merge", "a.kprof", "run.kprof", "-o", "all"), 0)
        self.assertEqual(self.query("all.kprof", "SELECT process_id, text, start_ns FROM trace_kernel JOIN "
                                    "trace_name n ON n.id=name_id"),
                         [(1, VECTOR_ADD, START + LATENCY), (2, SCALE, START + LATENCY),
                          (2, SCALE, START + LATENCY + 20000), (2, VECTOR_ADD, START + LATENCY + 40000)])
        self.assertEqual(self.query("all.kprof", "SELECT process_id, activities FROM trace"), [(1, 3), (2, 6)])

    def merge_ranks(self, changes):
        """A trace of each rank, changed by SQL, in all.kprof; the rows of gpu_busy by GPU."""
        ranks = []
        for rank, change in enumerate(changes):
            self.assert_run(self.trace("init", f"launch={VECTOR_ADD}*{rank + 1}", "do=sync"), 0)
            with sqlite3.connect(self.path("run.kprof")) as database:
                database.executescript(change)
            database.close()
            ranks.append(f"rank{rank}.kprof")
            os.rename(self.path("run.kprof"), self.path(ranks[-1]))
        self.assert_run(self.kprof("merge", *ranks, "-f", "-o", "all"), 0)
        return {row["Device"]: row for row in json.loads(
            self.kprof("stats", "all", "-r", "gpu_busy", "--json").out)}

    def test_ranks_have_their_own_gpus(self):
        """Each calls its GPU 0. Those of one host and UUID are one GPU, and an older report does not tell which of two
        GPUs with one number a process used."""
        uuid = "UPDATE device SET uuid='{}' WHERE ordinal=0;"
        host = "UPDATE process SET host='{}';"
        old = "DROP TABLE process_device; PRAGMA user_version=12;"
        two = ("CREATE TEMP TABLE other AS SELECT * FROM device WHERE ordinal=0; UPDATE other SET uuid='eeee', "
               "id=(SELECT count(*)+1 FROM device); INSERT INTO device SELECT * FROM other;" + old)
        one = host.format("a")
        self.assertEqual({gpu: row["Kernels"] for gpu, row in self.merge_ranks((one, one)).items()}, {0: 3})
        for changes, kernels in (((one, host.format("b")), {"a:0": 1, "b:0": 2}),
                                 ((one, one + uuid.format("ffeeddccbb")), {"a:0, 00112233": 1, "a:0, ffeeddcc": 2}),
                                 ((one, one + uuid.format("ffeeddccbb"), one + uuid.format("ffeeddccbb"),
                                   host.format("b")), {"a:0, 00112233": 1, "a:0, ffeeddcc": 5, "b:0": 4}),
                                 ((one, one + uuid.format("00000000")), {"a:0, 00112233": 1, "a:0, 2 0": 2}),
                                 ((one, host.format("b") + old), {"a:0": 1, "b:0": 2}),
                                 ((one + old, one + two), {"a:0, 00112233": 1, "a:0, 2 0": 2}),
                                 ((one, one + uuid.format("ffeeddccbb"), one + two),
                                  {"a:0, 00112233": 1, "a:0, ffeeddcc": 2, "a:0, 3 0": 3})):
            with self.subTest(kernels):
                self.assertEqual({gpu: row["Kernels"] for gpu, row in self.merge_ranks(changes).items()}, kernels)
                idle = json.loads(self.kprof("stats", "all", "-r", "gpu_idle_sum", "--json").out or "[]")
                self.assertLessEqual({row["Device"] for row in idle}, set(kernels))
                devices = [row["Device"] for row in
                           json.loads(self.kprof("stats", "all", "-r", "cuda_gpu_trace", "--json").out)]
                self.assertEqual({gpu: devices.count(gpu) for gpu in devices}, kernels)
                self.assert_run(self.kprof("export", "all", "--to", "chrome", "-f", "-o", "all.json"), 0)
                with open(self.path("all.json")) as file:
                    names = [event["args"]["name"] for event in json.load(file)["traceEvents"]
                             if event["name"] == "process_name" and event["args"]["name"].startswith("GPU")]
                self.assertEqual({re.split(r" \(|, of process", name)[0].removeprefix("GPU ") for name in names},
                                 set(kernels))
                self.assert_run(self.kprof("export", "all", "--to", "nsys-sqlite", "-f"), 0)
                counts = self.query("all.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN "
                                    "TARGET_INFO_CUDA_DEVICE d ON cudaId=deviceId AND pid=(globalPid>>24)%16777216 "
                                    "JOIN TARGET_INFO_GPU ON id=gpuId GROUP BY gpuId")
                self.assertEqual(sorted(count for count, in counts), sorted(kernels.values()))

    def test_steps_of_a_rank_have_its_own_gpu(self):
        """While one rank's GPU works, the other one's is idle."""
        ranges = "INSERT INTO trace_name VALUES(NULL, 'step', 'step', 'step'), (NULL, 'PushPop', 'PushPop', 'PushPop');"
        step = ("INSERT INTO trace_range SELECT NULL, 1, start_ns+{0}, start_ns+{0}+20000, 1, 1, (SELECT id FROM "
                "trace_name WHERE text='step'), NULL, (SELECT id FROM trace_name WHERE text='PushPop') FROM "
                "trace_kernel LIMIT 1; UPDATE process SET host='{1}'")
        self.merge_ranks((ranges + step.format(20000, "a"), ranges + step.format(0, "b")))
        self.assert_run(self.kprof("stats", "all", "-r", "step_sum", "--json"), 0)
        [row] = json.loads(self.kprof("stats", "all", "-r", "step_sum", "--json").out)
        self.assertEqual((row["Instances"], row["GPU Busy (%)"]), (2, 50))

    def test_where_cupti_refuses(self):
        run = self.trace(f"launch={VECTOR_ADD}", "say=ran", env={"KPROF_SIM_NO_TRACE": "1"})
        self.assertEqual(run.code, 111)
        self.assertIn("ran\n", run.out)
        self.assertIn("another tool traces this process (simulated); process", run.err)

    def test_no_cuda(self):
        run = self.trace("say=ran")
        self.assertEqual((run.code, run.out), (106, "ran\n"))
        self.assertIn("did not initialise CUDA", run.err)
        for options in (["stats", "run"], ["export", "run", "--to", "chrome", "-o", "-"]):
            run = self.kprof(*options)
            self.assert_run(run, 110)
            self.assertEqual(run.err, "kprof: error: run.kprof is empty: no process of its run has called CUDA\n")
        self.assertNotIn("--target-processes", run.err)
        run = self.trace(f"processes=1:{SCALE}", options=("--target-processes", "application-only"))
        self.assertEqual(run.code, 106)
        self.assertIn("child processes are left out by --target-processes application-only", run.err)

    def test_command_line(self):
        self.assertIn("usage: kprof trace [options]", self.kprof("trace").err)
        for words in ((), ("--metrics", "x", APP), ("nonesuch",)):
            with self.subTest(words):
                self.assertEqual(self.kprof("trace", *words).code, 109 if words == ("nonesuch",) else 101)
        self.assert_run(self.kprof("trace", "--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}"), 0)
        self.assertEqual(os.listdir(self.dir), ["tmp"])


class Long(Tracing):
    """Memory does not grow with a table."""

    @unittest.skipIf(is_sanitized(), "AddressSanitizer reserves much memory")
    def test_tables(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}*40000"), 0)
        limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (64 << 20, 64 << 20))
        show = lambda *words: self.kprof("stats", "run", "-r", "cuda_gpu_trace", *words, preexec_fn=limit)
        self.assertEqual(len(json.loads(show("--json").out)), 40000)
        self.assertEqual(len(show("--csv").out.splitlines()), 40001)
        heads = [line for line in show().out.splitlines() if line.lstrip().startswith("Start (ns)")]
        self.assertEqual(len(heads), 4) # of 13,108 rows each
        run = self.kprof("stats", "run", "-r", "gpu_busy", preexec_fn=limit_file_size(50 << 10))
        self.assertEqual(run.code, 108, run.err)
        self.assertIn("temporary files cannot be written (disk I/O error): name another folder in TMPDIR", run.err)


class Limited(Tracing):
    """Traces of some of the program's time: kernels of one name are left out, and the others are not."""
    OUT, IN = (f"launch={VECTOR_ADD}", "do=sync", "do=gap:100"), (f"launch={SCALE}", "do=sync")
    LEFT_OUT = "kprof: left out, as the trace is limited"

    def limited(self, *steps, options):
        run = self.trace(*steps, options=options)
        self.assert_run(run, 0)
        self.assertEqual({name for name, _ in self.named("kernel", "t.id")}, {SCALE})
        return run

    def figures(self, table):
        return json.loads(self.kprof("stats", "run", "--report", table, "--json").out)

    def test_profiler_calls(self):
        turn = ("profiler=start", *self.IN, "profiler=stop", *self.OUT)
        self.limited(*self.OUT, *turn, *turn, "do=alloc:4096", options=("--profile-from-start", "off"))
        self.assertEqual([name for name, _ in self.named("call", "t.id")],
                         ["cudaLaunchKernel", "cudaDeviceSynchronize"] * 2)
        self.assertEqual(len(self.rows("memory", "id")), 1) # levels of memory need all changes
        (first, end), (again, last) = self.rows("kernel", "start_ns, end_ns")
        [(name, start, stop)] = self.named("overhead", "start_ns, end_ns")
        self.assertEqual((name, start, stop), (self.LEFT_OUT, end, again - LATENCY))
        # what is left out is no time of the GPU's, and not idle
        [row] = self.figures("gpu_busy")
        self.assertEqual(row["Span (ns)"], last - first - (stop - start))
        self.assertEqual(sum(row["Total Time (ns)"] for row in self.figures("gpu_idle_sum")), LATENCY)
        # with a start call the trace is whole up to the first stop call
        self.limited(*self.IN, "profiler=stop", *self.OUT, options=("--profile-from-start", "on"))
        run = self.trace(*self.OUT, "profiler=stop", *self.IN)
        self.assertEqual(len(self.rows("kernel", "id")), 2) # nobody asked

    def test_work_that_goes_on(self):
        self.assert_run(self.trace(f"launch={VECTOR_ADD}", f"launch={SCALE}", "profiler=start", "do=gap:1",
                                   "profiler=stop", "do=sync", options=("--profile-from-start", "off")), 0)
        self.assertEqual([name for name, _ in self.named("kernel", "t.id")], [VECTOR_ADD])

    def test_ranges(self):
        step = ("push=epoch", *self.OUT, "push=step", *self.IN, "pop", "push=test", *self.OUT, "pop", "pop")
        self.limited(*self.OUT, *step, *step, options=("--nvtx-include", "epoch/step"))
        self.assertEqual([row[:2] for row in self.named("range", "end_ns IS NULL")],
                         [("step", 0), ("epoch", 0)] * 2) # that of which a part is in the trace
        self.assertEqual({row["Range"]: row["GPU Busy (%)"] for row in self.figures("step_sum")}[":step"],
                         round(100 * 20000 / (20000 + LATENCY), 1))
        self.limited(*self.OUT, "start=step", *self.IN, "end", *self.OUT, options=("--nvtx-include", "step"))
        # what goes on as the program ends is in the trace, and a mark where it stands
        self.limited(*self.OUT, "push=open", "mark=out", "push=step", *self.IN, "mark=in", "pop",
                     options=("--nvtx-include", "step/"))
        self.assertEqual([name for name, _ in self.named("range", "t.id")], ["in", "step", "open"])
        # one range in another is one time
        self.limited(*self.OUT, "push=a", "push=b", *self.IN, "pop", *self.IN, "pop", *self.OUT,
                     options=("--nvtx-include", "a/", "--nvtx-include", "b/"))
        self.assertEqual(self.named("overhead", "t.id"), [])

    def test_ranges_with_time_that_is_left_out(self):
        """How busy the GPU was then is not known."""
        turn = ("profiler=start", *self.IN, "profiler=stop")
        self.limited("init", "push=outer", *turn, *self.OUT, *turn, "pop", *self.OUT,
                     options=("--profile-from-start", "off"))
        [row] = self.figures("step_sum")
        self.assertEqual(row["GPU Busy (%)"], round(100 * 20000 / (20000 + LATENCY), 1))
        self.assertGreater(row["Med (ns)"], 100000)

    def test_steps(self):
        out, chosen = ("push=step", *self.OUT, "pop"), ("push=step", *self.IN, "pop")
        self.limited(*out, *out, *chosen, *self.OUT, *chosen, *out,
                     options=("--schedule", "1,1,0,2,1", "--step", "step/"))
        turn = lambda steps: ("profiler=start", *steps, "profiler=stop")
        self.limited(*turn(self.OUT), *turn(self.IN), *turn(self.OUT),
                     options=("--schedule", "1,0,0,1,1", "--profile-from-start", "off"))

    def test_both(self):
        self.limited("push=step", *self.OUT, "profiler=start", *self.IN, "pop", *self.OUT, "profiler=stop",
                     options=("--nvtx-include", "step/", "--profile-from-start", "off"))

    def test_what_kprof_ctl_says(self):
        ctl = lambda *words: "run=" + " ".join((KPROF, "ctl", *words))
        turn = (ctl("start"), *self.IN, ctl("stop"), *self.OUT)
        run = self.limited(*self.OUT, *turn, *turn, options=("--armed", "no"))
        self.assertEqual(len(self.rows("kernel", "id")), 2)
        self.assertEqual([name for name, _ in self.named("overhead", "t.id")], [self.LEFT_OUT])
        self.assertIn("1 of 1 process is armed", run.out + run.err)
        self.limited(ctl("start"), *self.IN, "profiler=start", ctl("stop"), *self.OUT, options=("--wait",))
        self.limited(*self.OUT, ctl("start"), *self.OUT, "profiler=start", *self.IN, ctl("stop"), *self.OUT,
                     options=("--armed", "no", "--profile-from-start", "off"))
        for words, text in ((("start", "--metrics", METRIC), "this run takes a trace, and measures no sets"),
                            (("stop", "-o", "part"), "a trace has one report, that of kprof trace -o")):
            with self.subTest(words):
                run = self.trace(*self.OUT, ctl(*words), options=("--armed", "no"))
                self.assertIn(text, run.out + run.err)
                self.assertIn("has an empty trace: it was not armed by kprof ctl start", run.err)
        run = self.trace(*self.OUT, ctl("start"), ctl("stop"), *self.OUT, options=("--armed", "no"))
        self.assertEqual(run.code, 106, run.err)
        self.assertIn("the application did nothing between kprof ctl start and kprof ctl stop", run.err)

    def test_by_the_clock(self):
        """The program waits until kprof has told it, however long that takes."""
        ctl = os.path.join(self.dir, "until.sh")
        with open(ctl, "w") as file:
            file.write(f"#!/bin/sh\nuntil '{KPROF}' ctl status | grep -q \" $1 \"; do :; done\n")
        os.chmod(ctl, 0o700)
        until = lambda state: f"run={ctl} {state}"
        self.limited("do=alloc:4096", until("armed"), *self.IN, options=("--delay", "0.01"))
        self.trace(*self.IN, until("unarmed"), *self.OUT, options=("-d", "0.01"))
        self.assertNotIn(VECTOR_ADD, {name for name, _ in self.named("kernel", "t.id")})
        run = self.trace(*self.OUT, options=("--delay", "3600", "-d", "1"))
        self.assertEqual(run.code, 106)
        self.assertIn("has an empty trace: it was not armed by kprof ctl start, or by --delay", run.err)
        self.limited(*self.IN, options=("--duration", "3600"))

    def test_children_and_threads(self):
        self.limited("profiler=start", f"launch={SCALE}", f"fork={VECTOR_ADD}", f"thread={SCALE}", "do=sync",
                     "profiler=stop", *self.OUT, options=("--profile-from-start", "off"))

    def test_what_nothing_is_in_is_told(self):
        for options, text in ((("--profile-from-start", "off"), "it never called cudaProfilerStart"),
                              (("--nvtx-include", "step/"), "it was in no NVTX range that --nvtx-include asks for"),
                              (("--capture-range cudaProfilerApi",), "it never called cudaProfilerStart"),
                              (("--schedule", "9,0,0,1,1", "--step", "a/"), "it had no active step of --schedule")):
            with self.subTest(text):
                run = self.trace("push=a", *self.OUT, "pop", options=[word for o in options for word in o.split()])
                self.assertIn(f"has an empty trace: {text}", run.err)
                self.assertIn(f"the application did is in what {options[0]}", run.err)
                self.assertEqual(run.code, 106)
        run = self.trace("push=a", *self.OUT, "pop", options=("--nvtx-include", "a"))
        self.assertIn('--nvtx-include a is about ranges of nvtxRangeStart; those of nvtxRangePush are "a/"', run.err)
        run = self.trace("init")
        self.assertIn("error: the trace is empty: the application called CUDA for nothing", run.err)
        run = self.kprof("stats", "run.kprof")
        self.assertEqual((run.code, run.out), (0, ""))
        self.assertIn("warning: the trace is empty", run.err)
        for options, text in ((("--schedule", "1,1,1,1,1"), "--schedule 1,1,1,1,1 counts no launches for a trace"),
                              (("--schedule", "1", "--step", "a/"), "it takes five numbers"),
                              (("--nvtx-include", "a["), "--nvtx-include")):
            with self.subTest(text):
                run = self.trace("say=ran", options=options)
                self.assertEqual((run.code, run.out), (101, ""))
                self.assertIn(text, run.err)


class Sampled(Tracing):
    """The machine's first counter is the share of a sample in which kernels ran, counter k the k-th part of that."""
    MS = 1000000
    NAMES = ("SMs Busy", "Instructions", "Tensor Pipe", "DRAM Read", "DRAM Write", "PCIe Read", "PCIe Write")
    STEPS = ("do=sampled", "do=kernel:50000", "push=busy", f"launch={VECTOR_ADD}", "do=sync", "pop", "push=half",
             "do=gap:25000", f"launch={VECTOR_ADD}", "do=sync", "pop", "do=gap:25000")

    def sample(self, *steps, options=(), **keywords):
        return self.trace(*steps, options=("--pm-sampling", *options), **keywords)

    def busy(self):
        """Start, end and the first counter of each sample."""
        return self.query("run.kprof", "SELECT start_ns, end_ns, value_millionths/1e6 FROM trace_sample WHERE name_id="
                          "(SELECT id FROM trace_name WHERE text LIKE 'sm__cycles_active%') ORDER BY start_ns")

    def kernels_share(self, start, end):
        return 100 * sum(max(0, min(b, end) - max(a, start)) for a, b in self.rows("kernel", "start_ns, end_ns")) / (
            end - start)

    def table(self, name):
        return json.loads(self.kprof("stats", "run", "--report", name, "--json").out)

    def test_samples_are_what_kernels_did(self):
        run = self.sample(*self.STEPS)
        self.assert_run(run, 0)
        self.assertNotIn("nothing was sampled", run.err)
        samples = self.busy()
        self.assertEqual([sample[:2] for sample in samples],
                         [(START + i * self.MS, START + (i + 1) * self.MS) for i in range(150)])
        for start, end, value in samples:
            self.assertAlmostEqual(value, self.kernels_share(start, end), 5)
        rows = self.table("pm_sampling_sum")
        self.assertEqual([row["Metric"] for row in rows], list(self.NAMES))
        mean = self.kernels_share(START, START + 150 * self.MS)
        for k, row in enumerate(rows, 1):
            self.assertAlmostEqual(row["Mean"], mean / k, 2)
            self.assertAlmostEqual(row["Max"], 100 / k, 2)
            self.assertEqual([row[key] for key in ("Min", "Samples", "Interval Max (ns)", "Gaps", "Unit")],
                             [0, 150, self.MS, 0, "GB/s" if row["Metric"].startswith("PCIe") else "%"])
        self.assertRegex(rows[0]["Over Time"], r"^\|@{13}. {5}.@{13}. {5}.?\|$")
        self.assertEqual(len(self.table("pm_sampling_trace")), 150 * len(self.NAMES))
        self.assert_run(self.kprof("export", "run", "--to", "nsys-sqlite"), 0)
        self.assertEqual(
            self.query("run.sqlite", "SELECT timestamp, value, typeId & 255 FROM GPU_METRICS JOIN "
                       "TARGET_INFO_GPU_METRICS USING(typeId, metricId) WHERE metricName='SMs Busy [%]' ORDER BY 1"),
            [(start - START, value, 0) for start, _, value in samples])
        self.assertEqual([name for name, in self.query("run.sqlite", "SELECT metricName FROM TARGET_INFO_GPU_METRICS "
                                                       "WHERE metricName LIKE 'PCIe%' ORDER BY 1")],
                         ["PCIe Read [GB/s]", "PCIe Write [GB/s]"])

    def test_steps(self):
        self.assert_run(self.sample(*self.STEPS), 0)
        rows = self.table("pm_sampling_steps")
        self.assertEqual(list(rows[0])[4:], [f"{name} ({'GB/s' if name.startswith('PCIe') else '%'})"
                                             for name in self.NAMES])
        ranges = dict(self.query("run.kprof", "SELECT ':' || text, start_ns || ' ' || end_ns FROM trace_range JOIN "
                                 "trace_name n ON n.id=name_id"))
        self.assertEqual({row["Range"] for row in rows}, {":busy", ":half"})
        self.assertEqual(len(self.table("pm_sampling_step_spread")), 2 * len(self.NAMES))
        for row in rows:
            start, end = map(int, ranges[row["Range"]].split())
            parts = [(min(b, end) - max(a, start), value) for a, b, value in self.busy() if a < end and b > start]
            self.assertEqual(sum(ns for ns, _ in parts), end - start)
            self.assertAlmostEqual(row["SMs Busy (%)"], sum(ns * value for ns, value in parts) / (end - start), 2)
            self.assertEqual(row["Instances"], 1)
        run = self.kprof("trace", "--injection-path", INJECTION, "--pm-sampling", APP, *self.STEPS)
        self.assertIn("GPU Utilization over Time", run.err)
        self.assertIn("GPU Utilization of Steps (NVTX)", run.err)

    def test_samples_are_limited_as_the_trace_is(self):
        self.assert_run(self.sample(*self.STEPS, options=("--nvtx-include", "half/")), 0)
        [(start, end)] = self.query("run.kprof", "SELECT start_ns, end_ns FROM trace_range")
        samples = self.busy()
        self.assertEqual(len(samples), round((end - start) / self.MS))
        self.assertTrue(all(start <= (a + b) / 2 <= end for a, b, _ in samples))
        [row] = [row for row in self.table("pm_sampling_sum") if row["Metric"] == "SMs Busy"]
        [step] = self.table("pm_sampling_steps")
        share = self.kernels_share(samples[0][0], samples[-1][1]) # but for the kernel before, in the first sample
        self.assertAlmostEqual(row["Mean"], share, delta=0.1)
        self.assertAlmostEqual(row["Mean"], step["SMs Busy (%)"], delta=0.1)
        self.assertEqual((row["Samples"], row["Gaps"]), (len(samples), 0))
        turn = ("push=half", "do=gap:20000", "pop", "do=gap:20000")
        self.assert_run(self.sample("do=sampled", *turn, *turn, *turn, "push=half", "do=gap:10000", "do=lose:4",
                                    "do=gap:10000", "pop", options=("--nvtx-include", "half/")), 0)
        self.assertEqual({row["Gaps"] for row in self.table("pm_sampling_sum")}, {1}) # what is left out is no gap

    def test_interval_and_gaps(self):
        self.assert_run(self.sample("do=sampled", "do=gap:10000", "do=lose:4", "do=gap:10000",
                                    options=("--pm-sampling-interval", "500000")), 0)
        starts = [start for start, _, _ in self.busy()]
        self.assertEqual(starts, [START + i * self.MS // 2 for i in range(40) if not 20 <= i < 24])
        self.assertEqual({row["Gaps"] for row in self.table("pm_sampling_sum")}, {1})

    def test_links(self):
        for idle, names in (({}, (*self.NAMES, "NVLink Read", "NVLink Write")),
                            ({"KPROF_SIM_IDLE_LINKS": "1"}, self.NAMES)):
            with self.subTest(idle):
                run = self.sample("do=sampled", "do=gap:3000000", "do=unlinked", f"launch={VECTOR_ADD}",
                                  "do=gap:500000", env={"KPROF_SIM_PROBE": "linked-gpus", **idle},
                                  options=("--pm-sampling-interval", "100000000"))
                self.assert_run(run, 0)
                rows = self.table("pm_sampling_sum")
                self.assertEqual([row["Metric"] for row in rows], list(names))
                self.assertEqual({row["Unit"] for row in rows if row["Metric"].startswith("NVLink")},
                                 set() if idle else {"GB/s"})
                self.assertEqual("no sample over time for 2 s with counters of its links" in run.err, bool(idle))
                self.assertGreaterEqual(len(self.busy()), 5)

    def test_without_counters(self):
        for place, env in (("program", {"KPROF_SIM_NO_SAMPLES": "1"}), ("kprof", {"KPROF_SIM_PROBE": "no-permission"}),
                           ("kprof", {"KPROF_SIM_PROBE": "no-gpu"})):
            with self.subTest(env):
                steps = ("do=sampled",) if place == "program" else ()
                run = self.sample(*steps, f"launch={VECTOR_ADD}", "say=ran", env=env)
                self.assert_run(run, 0)
                self.assertEqual(run.err.count("trace goes on without: "), 1, run.err)
                self.assertEqual((len(self.busy()), len(self.rows("kernel", "id")), run.out), (0, 1, "ran\n"))
                self.assertNotIn("GPU Utilization", self.kprof("stats", "run").out)

    def test_a_program_that_ends_at_once_has_none(self):
        for end, code in (("_exit=0", 0), ("raise=15", 143), ("leave=quick_exit:3", 3)):
            with self.subTest(end):
                self.assert_run(self.sample("do=sampled", f"launch={VECTOR_ADD}", "do=gap:3000", end), code)
                self.assertEqual(len(self.busy()), 3)
        run = self.sample("say=ran", f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        self.assertIn("nothing was sampled over time: ", run.err)

    def test_forked_children(self):
        self.assert_run(self.sample("do=sampled", f"launch={VECTOR_ADD}", f"fork={VECTOR_ADD}", "do=gap:2000"), 0)
        self.assertEqual(len(self.busy()), 2)

    def test_without_the_option_nothing_is_sampled(self):
        run = self.trace(f"launch={VECTOR_ADD}", "do=gap:5000", options=("--pm-sampling-interval", "1000"))
        self.assert_run(run, 0)
        self.assertIn("--pm-sampling-interval has no effect without --pm-sampling", run.err)
        self.assertEqual(self.rows("sample", "id"), [])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM section"), [(0,)])

    def test_beside_counters(self):
        for words in (("--trace", "--pm-sampling", APP), ("--pm-sampling", APP)):
            run = self.kprof(*words)
            self.assertEqual(run.code, 101, run.err)
            self.assertIn("passes have the counters", run.err)

    def test_merged(self):
        self.assert_run(self.sample(*self.STEPS), 0)
        samples = self.busy()
        os.rename(self.path("run.kprof"), self.path("a.kprof"))
        self.assert_run(self.sample(*self.STEPS), 0)
        self.assert_run(self.kprof("merge", "a.kprof", "run.kprof", "-o", "all"), 0)
        os.rename(self.path("all.kprof"), self.path("run.kprof"))
        self.assertEqual(self.busy(), sorted(samples * 2))
        self.assertEqual(len(self.table("pm_sampling_sum")), 2 * len(self.NAMES))


class BesideCounters(Case):
    """Launches are measured in the same run. kprof takes MEASURE ns of the clock each time."""
    MEASURE = 300000
    OWN = "kprof: measuring launches"
    STEPS = (f"launch={VECTOR_ADD}*3", "settle", "do=gap:500", f"launch={SCALE}*2", "do=sync")

    def collect_both(self, *steps, options=("--metrics", METRIC)):
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *options, "--trace", APP, *steps)
        self.assert_run(run, 0)
        return run

    def test_no_launch_is_chosen(self):
        run = self.kprof("--injection-path", INJECTION, "-o", "run", "--metrics", METRIC, "-k", "add", "--trace", APP,
                         *self.STEPS)
        self.assert_run(run, 106)
        self.assertIn("no launch matched -k add; the application launched:", run.err)
        self.assertIn("it has a trace of 11 activities, too", run.err)

    def values(self):
        return self.query("run.kprof", "SELECT l.kernel, m.value FROM launch_metrics m JOIN launches l USING(launch) "
                          f"WHERE m.metric='{METRIC}' ORDER BY launch")

    def test_both(self):
        self.assert_run(self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--metrics", METRIC, APP,
                                   *self.STEPS), 0)
        alone = self.values()
        self.assertEqual(len(alone), 5)
        run = self.collect_both(*self.STEPS)
        self.assertIn("has a trace of 15 activities, too; kprof stats ", run.err)
        self.assertEqual(self.values(), alone)
        first, second = START + self.MEASURE + LATENCY, START + 3 * self.MEASURE + 3 * CALL + 500000 + LATENCY
        self.assertEqual(self.query("run.kprof", "SELECT start_ns FROM trace_kernel ORDER BY 1"),
                         [(first,), (first + 20000,), (first + 40000,), (second,), (second + 20000,)])
        starts = START, first - LATENCY + 3 * CALL, second - LATENCY - self.MEASURE, second + 40000
        self.assertEqual(self.query("run.kprof", "SELECT start_ns, end_ns FROM trace_overhead JOIN trace_name n ON "
                                    f"n.id=name_id WHERE text='{self.OWN}' ORDER BY 1"),
                         [(start, start + self.MEASURE) for start in starts])
        self.assertIn("while kprof measures launches", self.kprof("report", "run", "--page", "session").out)

    def test_idle_time(self):
        self.collect_both(*self.STEPS)
        tables = json.loads(self.kprof("stats", "run", "--report", "gpu_busy,gpu_idle_sum", "--json").out)
        self.assertEqual([row["Span (ns)"] for row in tables["gpu_busy"]], [5 * 20000 + 500000 + LATENCY])
        self.assertEqual({row["Cause"]: row["Total Time (ns)"] for row in tables["gpu_idle_sum"]},
                         {"host code": 500000, "launching": LATENCY}) # kprof's time is in none of them

    def test_timelines(self):
        self.collect_both(f"launch={VECTOR_ADD}", "settle", f"launch={SCALE}", "do=sync")
        self.assert_run(self.kprof("export", "run", "--to", "chrome", "-o", self.path("chrome.json")), 0)
        with open(self.path("chrome.json"), encoding="utf-8") as file:
            self.assertIn(self.OWN, [event.get("name") for event in json.load(file)["traceEvents"]])
        self.assert_run(self.kprof("export", "run", "--to", "timeline", "-o", self.path("timeline.html")), 0)
        self.assertIn("vectorAdd", self.kprof("report", "run").out)

    def test_call_stacks(self):
        self.collect_both(*self.STEPS, options=("--metrics", METRIC, "--call-stack-type", "native", "-k", "scale"))
        self.assertEqual(self.query("run.kprof", "SELECT correlation FROM trace_caller JOIN trace_kernel "
                                    "USING(process_id, correlation)"), [(number,) for number in range(1, 6)])
        rows = json.loads(self.kprof("stats", "run", "--report", "kern_line_sum:base", "--json").out)
        self.assertEqual([(row["Name"], row["Total Time (ns)"], "launch" in row["Line"]) for row in rows],
                         [("vectorAdd", 60000, True), ("scale", 40000, True)])

    def test_launches_that_are_not_chosen(self):
        self.collect_both(f"launch={VECTOR_ADD}*20", f"launch={SCALE}*2", "do=sync",
                          options=("--metrics", METRIC, "-k", "scale", "-c", "1"))
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_kernel"), [(22,)])
        self.assertEqual(self.query("run.kprof", "SELECT launches, profiled FROM process"), [(22, 1)])

    def test_merging_two_runs(self):
        for words, name in ((("trace",), "trace"), (("--metrics", METRIC), "counters")):
            self.assert_run(self.kprof(*words, "--injection-path", INJECTION, "-f", "-o", name, APP,
                                       f"launch={VECTOR_ADD}*3"), 0)
        self.assert_run(self.kprof("merge", "trace.kprof", "counters.kprof", "-o", "run"), 0)
        self.assertEqual(len(self.values()), 3)
        [row] = json.loads(self.kprof("stats", "run", "--report", "kern_counters:base", "--json").out)
        self.assertEqual([row[key] for key in ("Instances", "Counted", "Name")], [3, 3, "vectorAdd"])

    def test_kernels_that_are_counted_and_not(self):
        self.collect_both("place=grid:4", f"launch={VECTOR_ADD}*3", "place=grid:8", f"launch={VECTOR_ADD}",
                          f"launch={SCALE}*2", options=("--metrics", METRIC, "-k", "vectorAdd", "-c", "3"))
        rows = json.loads(self.kprof("stats", "run", "--report", "kern_counters:base", "--json").out)
        self.assertEqual([(row["Name"], row["GridXYZ"].split()[0], row["Instances"], row["Counted"]) for row in rows],
                         [("vectorAdd", "4", 3, 3), ("scale", "8", 2, 0), ("vectorAdd", "8", 1, 0)])
        worth = json.loads(self.kprof("stats", "run", "--report", "kern_worth", "--json").out)
        self.assertEqual([(row["Name"], row["Counted (%)"]) for row in worth], [("vectorAdd", 75), ("scale", 0)])
        self.assert_run(self.kprof("report", "run", "--html", self.path("run.html")), 0)
        with open(self.path("run.html"), encoding="utf-8") as file:
            self.assertIn('"key":"kern_counters"', file.read())

    def test_samples_of_instructions(self):
        """CUPTI has no records of kernels while they are enabled."""
        run = self.collect_both(f"launch={VECTOR_ADD}*3", options=("--set", "source"))
        self.assertIn("samples of instructions are left out beside --trace", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM trace_kernel"), [(3,)])
        self.assertEqual(self.query("run.kprof", "SELECT sum(counted), sum(sampled) FROM code_profile"), [(3, 0)])

    def test_refusal(self):
        for words, text in ((("--armed", "no"), "--trace records from the start"),
                            (("--replay-mode", "application"), "does not go with --trace"),
                            (("--metrics", "smsp__pcsamp_sample_count"), "leave --trace out")):
            run = self.kprof("--trace", *words, APP)
            self.assertEqual(run.code, 101, run.err)
            self.assertIn(text, run.err)
