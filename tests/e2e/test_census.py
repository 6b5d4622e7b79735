"""--census: every launch is counted and timed, and the kernels with most time are measured, in the same run where the
program launches them again, else in a second one."""

import csv
import io
import json

from harness import *

MATMUL = "_Z6matmulPf"
# 900 + 1,500 us, 200 us, 3,500 us
STEPS = ["do=kernel:90", f"launch={VECTOR_ADD}*10", "do=kernel:500", "place=grid:4", f"launch={VECTOR_ADD}*3",
         "do=kernel:2", f"launch={SCALE}*100", "place=smem:1024", "do=kernel:700", f"launch={MATMUL}*5"]
AGAIN = ["place=grid:65536", "place=smem:0", *STEPS]
SHAPES = """SELECT kernel.function, grid_x, block_x, dynamic_smem_bytes, launches, total_ns, shortest_ns, longest_ns
            FROM census JOIN kernel ON kernel.id=kernel_id ORDER BY census.id"""


class Census(Case):
    def census(self, *options, steps=None, code=0, **keywords):
        run = self.kprof("--injection-path", INJECTION, "--census", *options, APP, *(steps or STEPS), **keywords)
        self.assert_run(run, code)
        return run

    def test_options_without_effect(self):
        """A census alone counts all launches, whatever options choose."""
        for options in (["-k", "scale"], ["--call-stack"], ["--kernel-id", "::scale:1"], ["--nvtx-include", "step/"]):
            run = self.kprof("--injection-path", INJECTION, "--census", *options, APP, f"launch={SCALE}*2",
                             f"launch={VECTOR_ADD}")
            self.assert_run(run, 0)
            self.assertEqual(run.err.count("has no effect: --census alone counts all launches"), 1, run.err)
            self.assertIn("census: 3 launches of 2 kernels", run.err)
        run = self.kprof("--injection-path", INJECTION, "--census", "--top", "1", "-k", "scale", APP, f"launch={SCALE}")
        self.assertNotIn("no effect", run.err)

    def test_alone(self):
        run = self.census("-o", "run")
        self.assertIn("census: 118 launches of 3 kernels took 6.10 ms of the GPU's time", run.err)
        self.assertEqual(self.query("run.kprof", SHAPES),
                         [("vectorAdd", 65536, 256, 0, 10, 900000, 90000, 90000),
                          ("vectorAdd", 4, 256, 0, 3, 1500000, 500000, 500000),
                          ("scale", 4, 256, 0, 100, 200000, 2000, 2000),
                          ("matmul", 4, 256, 1024, 5, 3500000, 700000, 700000)])
        self.assertEqual(self.query("run.kprof", "SELECT launches FROM process"), [(118,)])
        self.assertEqual(self.launches(), [])
        shown = self.kprof("report", "run.kprof")
        self.assert_run(shown, 0)
        self.assertRegex(shown.out, r"matmul\(float\*\) +5 +0 +3.50 ms +57.38 %")
        as_ncu = self.kprof("report", "run.kprof", "--text-layout", "ncu")
        self.assertEqual(as_ncu.out, shown.out)
        self.assertIn("--text-layout has no effect: ncu has no census", as_ncu.err)
        self.assert_run(self.kprof("report", "run.kprof", "--page", "details"), 106)
        self.assert_run(self.kprof("report", "run.kprof", "--page", "summary"), 0)
        table = self.kprof("report", "run.kprof", "--page", "summary", "--csv") # of launches that were measured
        self.assert_run(table, 106)
        self.assertIn("with --page census", table.err)
        self.assertIn("--kernel-name has no effect", self.kprof("report", "run.kprof", "-k", "scale").err)

    def test_needs_no_counters(self):
        self.census("-o", "run", env={"KPROF_SIM_PROBE": "no-permission", "KPROF_SIM_FAULT": "permission"})
        self.assertEqual(len(self.query("run.kprof", SHAPES)), 4)

    def test_top(self):
        run = self.census("--top", "2", "--metrics", METRIC, "-o", "run")
        self.assertIn("2 kernels took 96.7 % of that time: the application runs once more, since launches of 2 kernels "
                      "were not measured in the same run", run.err)
        # When CUPTI first told of times, scale was one of the two. Then one of each shape, in the second run
        self.assertEqual(self.launches(), ["scale", "vectorAdd", "vectorAdd", "matmul"])
        rows = csv.DictReader(io.StringIO(self.kprof("report", "run.kprof", "--page", "summary", "--csv").out))
        self.assertEqual([(row["function"], row["launches"], row["measured"], row["time"]) for row in rows],
                         [("matmul", "5", "1", "3500000"), ("vectorAdd", "13", "2", "2400000"),
                          ("scale", "100", "1", "200000")])
        page = json.loads(self.kprof("report", "run.kprof", "--page", "census", "--json").out)
        self.assertEqual([(row["function"], row["measured"]) for row in page["census"]],
                         [("matmul", 1), ("vectorAdd", 2), ("scale", 1)])
        self.assertEqual(page["census_total"][0]["measured_rows"], 3)

    def test_same_run(self):
        run = self.census("--top", "2", "--metrics", METRIC, "-o", "run", steps=["say=hello", *STEPS, *AGAIN])
        self.assertIn("2 kernels took 96.7 % of that time, and kprof has measured launches of them in the same run",
                      run.err)
        self.assertEqual(run.out.count("hello"), 1)
        self.assertEqual(self.launches(), ["scale", "vectorAdd", "vectorAdd", "matmul"])
        # The times of all launches, those that were measured among them
        self.assertEqual(self.query("run.kprof", SHAPES)[0], ("vectorAdd", 65536, 256, 0, 20, 1800000, 90000, 90000))
        self.assertEqual(self.query("run.kprof", "SELECT count(*), sum(launches) FROM process"), [(1, 236)])
        self.assertIn("(4 launches profiled, 236 seen)", run.err)

    def test_little_is_missing(self):
        """A shape that came once, before its kernel was one of those with most time."""
        run = self.census("--top", "1", "--metrics", METRIC, "-o", "run",
                          steps=["do=kernel:90", "place=grid:8", f"launch={VECTOR_ADD}", "do=kernel:500",
                                 "place=grid:4", f"launch={VECTOR_ADD}*90"])
        self.assertRegex(run.err, "launches with grids, blocks or shared memory that took 0.2 % of its time did not "
                                  "come again, and were not measured")
        self.assertEqual(self.query("run.kprof", "SELECT grid_x FROM launch"), [(4,)])

    def test_what_cannot_be_repeated(self):
        """Its passes would keep times out of the census: the second run measures it."""
        run = self.census("--top", "1", "--metrics", METRIC, "-o", "run",
                          steps=["do=kernel:90", "launch=_Z6pinnedPf*90"], env={"KPROF_SIM_PINNED": "1"})
        self.assertIn("runs once more, since launches of 1 kernel were not measured in the same run", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT DISTINCT process_id FROM launch WHERE measured > 0"), [(2,)])

    def test_other_conditions(self):
        """Only a run of its own counts what they leave out."""
        for options in (["--replay-mode", "multiplex"], ["--devices", "0"], ["--trace"],
                        ["--kernel-id", ":::1"], ["--section", "SourceCounters"]):
            with self.subTest(options):
                run = self.census("-f", "--top", "1", "--metrics", METRIC, "-o", "run", *options,
                                  steps=["do=kernel:90", f"launch={SCALE}*90"])
                self.assertIn("1 kernel took 100 % of that time: the application runs once more", run.err)

    def test_conditions_that_no_launch_meets(self):
        run = self.kprof("--injection-path", INJECTION, "--census", "--top", "1", "--metrics", METRIC, "-o", "run",
                         "--native-include", "nowhere", APP, f"launch={SCALE}*3")
        self.assert_run(run, 106)
        self.assertIn('no launch matched --native-include "nowhere"; all runs of the application launched:', run.err)

    def test_conditions_in_the_same_run(self):
        """Launches that a filter chooses are measured there, and kernels that have none in a second run."""
        steps = ["do=kernel:90", f"launch={SCALE}*90", "push=step", f"launch={SCALE}*9", "pop", f"launch={SCALE}*9"]
        for options, first in ((["--nvtx-include", "step/"], 90), (["--nvtx-exclude", "step/"], 0), (["-s", "3"], 0),
                               (["--native-include", "main"], 0)):
            with self.subTest(options):
                run = self.census("-f", "--top", "1", "--metrics", METRIC, "-o", "run", *options, steps=steps)
                self.assertIn("and kprof has measured launches of it in the same run", run.err)
                self.assertEqual(self.launches(), ["scale"])
                [(position,)] = self.query("run.kprof", "SELECT position FROM launch")
                self.assertGreaterEqual(position, first)
                self.assertEqual(self.query("run.kprof", "SELECT launches FROM census"), [(108,)])
        run = self.census("-f", "--top", "1", "--metrics", METRIC, "-o", "run", "--nvtx-include", "no/", steps=steps,
                          code=106)
        self.assertIn("runs once more, since launches of 1 kernel were not measured in the same run", run.err)

    def test_what_is_measured(self):
        for options, launches in ((["--top", "1", "-k", "regex:a"], ["scale", "matmul"]),
                                  (["--top", "2", "-k", "regex:[ad]e?$|scale"], ["scale", "vectorAdd", "vectorAdd"]),
                                  (["--top", "1", "-c", "3"], ["matmul"] * 3),
                                  (["-k", "vectorAdd", "-c", "1"], ["vectorAdd"]),
                                  (["--filter-mode", "per-launch-config", "-c", "1"],
                                   ["vectorAdd", "vectorAdd", "scale", "matmul"])):
            with self.subTest(options):
                self.census("-f", "-o", "run", "--metrics", METRIC, *options)
                self.assertEqual(self.launches(), launches)

    def test_second_run_that_differs(self):
        """What it lacks is told, with the share of the time."""
        for again, lacks in ((f"launch={SCALE}", True), ("", False)):
            script = (f"if [ -e seen-{lacks} ]; then exec {APP} {again or STEPS[1]} launch={SCALE}; fi; "
                      f": >seen-{lacks}; exec {APP} do=kernel:80 launch={VECTOR_ADD} do=kernel:20 launch={SCALE}")
            run = self.kprof("--injection-path", INJECTION, "--census", "--top", "2", "--metrics", METRIC, "-f", "-o",
                             "run", "sh", "-c", script)
            self.assert_run(run, 0)
            self.assertIn("2 kernels took 100 % of that time: the application runs once more", run.err)
            self.assertEqual("that took 80 % of the chosen kernels' time have no value from the second run either: "
                             "they did not come, or could not be measured: vectorAdd\n" in run.err, lacks, run.err)
            self.assertEqual("have no value" in run.err, lacks, run.err)

    def test_both_runs_print(self):
        run = self.census("--top", "1", "--metrics", METRIC, steps=["say=hello", f"launch={SCALE}"])
        self.assertEqual(run.out.count("hello"), 2)
        self.assertIn("Census", run.err)

    def test_processes(self):
        self.census("-o", "run", steps=[f"launch={SCALE}*2", "exec", f"launch={SCALE}*3", "fork", f"launch={SCALE}"])
        self.assertEqual(self.query("run.kprof", "SELECT process_id, launches FROM census ORDER BY 1"),
                         [(1, 2), (2, 4)])

    def test_ends(self):
        for steps, code in (([f"launch={SCALE}*2", "exit=3"], 3), ([f"launch={SCALE}*2", "_exit=3"], 3)):
            with self.subTest(steps):
                run = self.census("-f", "-o", "run", "--top", "1", "--metrics", METRIC, steps=steps, code=code)
                self.assertIn("the application failed, so kprof does not run it once more", run.err)
                self.assertEqual(self.query("run.kprof", "SELECT launches FROM census"), [(2,)])

    def test_signals(self):
        run = self.census("-o", "run", steps=[f"launch={SCALE}*7", "raise=15"], code=143)
        self.assertEqual(self.query("run.kprof", "SELECT launches FROM census"), [(7,)])
        self.assertNotIn("without an orderly exit", run.err)
        run = self.census(steps=[f"launch={SCALE}*7", "raise=9"], code=137)
        self.assertIn("the census has no launch: CUPTI hands records over twice a second, and none had come", run.err)

    def test_counts(self):
        run = self.census("-o", "run", "--top", "1", "--metrics", METRIC, steps=[f"launch={SCALE}*7"])
        self.assertIn("report: run.kprof (1 launch profiled, 7 seen)", run.err)
        session = self.kprof("report", "run.kprof", "--page", "session")
        self.assertEqual(session.out.count("void scale<float>"), 1)

    def test_nothing_to_count(self):
        run = self.census("-o", "run", steps=["say=hello"], code=106)
        self.assertIn("nothing was collected", run.err)
        run = self.census("-f", "-o", "run", steps=["do=lost:7", f"launch={SCALE}*7"], code=106)
        self.assertIn("the census lacks the time of 7 launches, which CUPTI could not keep", run.err)
        self.assertIn("the census has no launch", run.err)
        run = self.census("-f", "-o", "run", steps=[f"launch={SCALE}*7", "do=failed"], code=106)
        self.assertIn("the census lacks the time of 7 launches, which CUPTI could not keep", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT launches FROM process"), [(7,)])
        run = self.census("-f", "-o", "run", "--top", "1", "-k", "other", "--metrics", METRIC, code=106)
        for text in ("no launch matched -k other", "x scale"):
            self.assertIn(text, run.err)
        self.assertEqual(len(self.query("run.kprof", SHAPES)), 4)

    def test_some_are_lost(self):
        run = self.census(steps=["do=lost:2", "do=drop:3", f"launch={SCALE}*7"])
        self.assertRegex(run.err, r"Launches not timed +5\n")
        self.assertIn("the census lacks the time of 5 launches", run.err)
        run = self.census(env={"KPROF_SIM_NO_TRACE": "1"}, code=111)
        self.assertIn("another tool traces this process", run.err)

    def test_refusals(self):
        run = self.census("--graph-profiling", "graph", code=101)
        self.assertIn("--census counts each kernel of a CUDA graph", run.err)
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        run = self.kprof("report", "run.kprof", "--page", "census")
        self.assert_run(run, 106)
        self.assertIn("has no census; kprof --census counts", run.err)
        self.census("-o", "alone")
        for words in (["report", "alone", "--page", "brief"], ["diff", "alone", "run"]):
            run = self.kprof(*words)
            self.assert_run(run, 106)
            self.assertIn("is a census, which has no launch that was measured", run.err)

    def test_merged(self):
        self.census("-o", "a")
        self.census("-o", "b", "--top", "1", "--metrics", METRIC)
        self.assert_run(self.kprof("merge", "a.kprof", "b.kprof", "-o", "both"), 0)
        page = json.loads(self.kprof("report", "both.kprof", "--page", "census", "--json").out)
        self.assertEqual([(row["function"], row["launches"], row["time"], row["measured"]) for row in page["census"]],
                         [("matmul", 10, 7000000, 1), ("vectorAdd", 26, 4800000, 0), ("scale", 200, 400000, 0)])
        self.assertNotIn("Processes", self.kprof("report", "b.kprof", "--page", "summary").out) # it ran twice
        self.assert_run(self.kprof("export", "b.kprof", "--to", "long", "-o", "b.csv"), 0)
        self.assert_run(self.kprof("report", "b.kprof", "-k", "matmul", "-o", "part"), 0)
        self.assertEqual(len(self.query("part.kprof", SHAPES)), 4)

    def test_spread(self):
        """Over reports, of the time of all launches, which the census has."""
        for rank, launches in enumerate([6, 3, 9]):
            line = ("--injection-path", INJECTION, "--census", "--top", "1", "--metrics", METRIC, "-q", "-o")
            self.assert_run(self.kprof(*line, f"run_{rank}", APP, f"launch={SCALE}*{launches}"), 0)
        self.assert_run(self.kprof("merge", *(f"run_{rank}.kprof" for rank in range(3)), "-o", "all"), 0)
        (row,) = json.loads(self.kprof("report", "all", "--page", "summary", "--json").out)["kernels"]
        each = row["time"] / 18
        self.assertEqual([row[f"source_{name}"] / each for name in ("minimum", "median", "maximum")], [3, 6, 9])
        self.assertEqual((row["sources"], row["slowest_source"]), (3, "run_2.kprof"))

    def test_spread_of_a_census_alone(self):
        for rank, launches in enumerate([6, 3]):
            steps = [f"launch={SCALE}*{launches}"] + [f"launch={VECTOR_ADD}"] * rank
            self.census("-q", "-o", f"run_{rank}", steps=steps)
        self.assert_run(self.kprof("merge", "run_0.kprof", "run_1.kprof", "-o", "all"), 0)
        page = json.loads(self.kprof("report", "all", "--page", "sources", "--json").out)
        scale, add = page["kernels"]
        self.assertEqual((scale["launches"], scale["sources"], scale["slowest"]), (9, 2, "run_0.kprof"))
        self.assertEqual(scale["maximum"], 2 * scale["minimum"])
        self.assertEqual((add["launches"], add["sources"]), (1, 1))
        self.assertEqual([row["launches"] for row in page["sources"]], [6, 4])
