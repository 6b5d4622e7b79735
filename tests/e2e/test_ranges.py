"""Ranges of the application that are measured as one, with --replay-mode range."""

import json
import os
import sys

from harness import APP, INJECTION, METRIC, SCALE, VECTOR_ADD, Case

STEP = ["push=step", f"launch={VECTOR_ADD}*3", f"launch={SCALE}*2", "pop", f"launch={SCALE}"]
RANGE = ("--replay-mode", "range")
STEPS = (*RANGE, "--nvtx-include", "step/")
# It reaches memory of the host, which no replay may change.
PINNED, UNREPEATED = "_Z6pinnedPf", {"KPROF_SIM_PINNED": "1"}


ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SCHEMA = os.path.join(ROOT, "docs/report.schema.json")
sys.path.append(os.path.join(ROOT, "tests/report"))
from check_outputs import fits  # as a reader of the schema would


class Measured(Case):
    def rows(self):
        """Of each range that has values: its name, position and the metric's value, which counts its launches."""
        return self.query("run.kprof", "SELECT kernel.mangled, position, value FROM launch JOIN kernel ON "
                          "kernel.id=kernel_id JOIN value ON launch_id=launch.id JOIN metric ON metric.id=metric_id "
                          f"WHERE metric.name='{METRIC}' ORDER BY position")

    def modes(self):
        return [row[0] for row in self.query("run.kprof", "SELECT replay_mode FROM launch ORDER BY position")]

    def reasons(self):
        return [row[0] for row in self.query("run.kprof", "SELECT reason FROM launch ORDER BY position")]

    def test_each_range_is_one(self):
        self.assert_run(self.collect([*STEPS], STEP * 3), 0)
        rows = self.rows()
        self.assertEqual([row[:2] for row in rows], [("step", 0), ("step", 6), ("step", 12)])
        alone = self.collect([], [f"launch={SCALE}"])
        self.assert_run(alone, 0)
        [(_, _, value)] = self.rows()
        self.assertEqual([row[2] for row in rows], [5 * value] * 3)

    def test_its_launches_are_counted(self):
        """Also those of other threads; JSON tells ranges from launches."""
        self.assert_run(self.collect([*STEPS], STEP), 0)
        page = json.loads(self.kprof("report", "run.kprof", "--json").out)
        self.assertEqual([(row["kind"], row["launches"], row["grid"]) for row in page["launches"]],
                         [("range", 5, None)])
        self.assertRegex(self.kprof("report", "run.kprof").out, r"launch__range_launches +5\n")
        self.assertEqual(self.query("run.kprof", "SELECT sets FROM run"), [("[]",)])
        run = self.kprof("--injection-path", INJECTION, *STEPS, "-f", "-o", "run", APP, "push=step", f"thread={SCALE}",
                         f"launch={SCALE}", "pop")
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT sets FROM run"), [('["default"]',)])
        [(count,)] = self.query("run.kprof", "SELECT value FROM launch_metrics WHERE metric='launch__range_launches'")
        self.assertEqual(count, 2)
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        page = json.loads(self.kprof("report", "run.kprof", "--json").out)
        self.assertNotIn("kind", page["launches"][0])

    def test_passes_come_from_one_range_after_the_other(self):
        steps = ["push=step", f"launch={PINNED}*2", "pop"] * 16
        run = self.collect(["--set", "default", *STEPS], steps, env=UNREPEATED)
        self.assert_run(run, 0)
        self.assertEqual(self.modes(), ["multiplex"] * 16)
        self.assertIn("multiplexed: ", run.err)
        self.assertIn("the passes of several ranges of one name", run.err)
        whole = self.query("run.kprof", "SELECT count(*) FROM launch WHERE passes>1 AND measured=(SELECT max(measured) "
                           "FROM launch)")
        self.assertGreaterEqual(whole[0][0], 1)
        out = self.kprof("report", "run.kprof").out
        self.assertIn("step, Context 1", out)
        self.assertNotIn("(0, 0, 0)", out)
        self.assertIn("a range, measured as it runs: the kernel takes memory of the host", out)

    def test_ranges_of_one_pass(self):
        """Each has its value, however often it comes, in a run of the program for each pass, too."""
        for mode, said in (("range", "(9 ranges profiled, 54 launches seen)"), ("app-range", "(9 ranges")):
            run = self.collect(["--replay-mode", mode, "--nvtx-include", "step/"], STEP * 9)
            self.assert_run(run, 0)
            self.assertIn(said, run.err)
            self.assertNotIn("multiplexed", run.err)
            self.assertEqual([row[1] for row in self.rows()], list(range(0, 54, 6)))
            self.assertEqual(len({row[2] for row in self.rows()}), 1)
            self.assertRegex(self.kprof("report", "run.kprof", "--page", "session").out, r"\n +9  step\n")
        run = self.collect(["--replay-mode", "app-range", "--nvtx-include", "step/", "--multiplex-samples", "200"],
                           STEP * 100)
        self.assert_run(run, 0)
        self.assertIn("(100 ranges profiled", run.err)
        run = self.kprof("--injection-path", INJECTION, "--section", "SpeedOfLight", "--replay-mode", "app-range",
                         "--nvtx-include", "step/", "-f", "-o", "run", APP, *STEP * 9)
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*), min(measured) > 1 FROM launch"), [(9, 1)])
        # the last run has metrics of several passes, so that it measures more ranges than -c says
        for options, kept in ((["-c", "1"], 1), (["-c", "2", "-s", "1"], 2), (["-c", "20"], 9)):
            run = self.kprof("--injection-path", INJECTION, "--section", "SpeedOfLight", "--replay-mode", "app-range",
                             "--nvtx-include", "step/", *options, "-f", "-o", "run", APP, *STEP * 9)
            self.assert_run(run, 0)
            self.assertNotIn("left out", run.err)
            self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch"), [(kept,)])

    def test_ranges_that_do_not_come(self):
        """What is told leads to the option that is wrong."""
        steps = ["push=outer", *STEP * 5, "pop", "push=empty", "pop"]
        for options, texts in ((["--nvtx-include", "stp/"], ['launches were in: "outer/step/", "outer/"']),
                               (["--nvtx-include", "step/", "--range-filter", ":1:"], [":   5 x the range step\n"]),
                               (["--nvtx-include", "empty/"], ["had 1 NVTX range of --nvtx-include, and no launch in"]),
                               (["--schedule", "1,1,1,1,1", "--step", "step/"],
                                ['add --nvtx-include "step/" to measure', "measuring ranges without --nvtx-include"]),
                               (["-k", "scale"], ["--replay-mode app-range measures all"])):
            run = self.collect(["--replay-mode", "app-range", *options], steps)
            self.assertIn(run.code, (101, 106))
            for text in texts:
                self.assertIn(text, run.err)
            self.assertNotIn("let the program go on for longer", run.err)

    def test_a_range_that_comes_once(self):
        """Where it is not repeated, it has one of three passes in one run of the program, and all in three runs."""
        step = ["push=step", f"launch={PINNED}*5", "pop", f"launch={SCALE}"]
        three = "regex:smsp__average_warps_issue_stalled_(b|d|m).*_per_issue_active.ratio"
        for mode, metrics, code, said in (
                ("range", three, 110, "measured in 1 of 3 passes, as no more equal ranges came: a range, measured as "
                 "it runs: the kernel takes memory of the host, which no replay may change\nkprof: error: a range that "
                 "is not repeated is measured in one pass each time that it comes; --replay-mode app-range runs the "
                 "program once for each pass"),
                ("range", f"{three},{METRIC}", 0, "1 sample lacks passes, since no more equal ranges came, and what is "
                 "missing is n/a; --replay-mode app-range runs"),
                ("app-range", three, 0, "run 3 of 3 of the application")):
            run = self.kprof("--injection-path", INJECTION, "--metrics", metrics, "--replay-mode", mode,
                             "--nvtx-include", "step/", "-f", "-o", "run", APP, *step, env=UNREPEATED)
            self.assert_run(run, code)
            self.assertIn(said, run.err)
            have = self.query("run.kprof", "SELECT value IS NOT NULL FROM value JOIN metric ON metric.id=metric_id "
                              "WHERE kind='hardware' AND name LIKE '%stalled%'")
            self.assertEqual(set(have), {(mode == "app-range",)})
            self.assertEqual(self.query("run.kprof", "SELECT value FROM launch_metrics WHERE "
                                        "metric='launch__range_launches'"), [(5,)])
        self.assert_run(self.collect(["--replay-mode", "app-range", "--census"], STEP), 101)

    def test_a_range_is_repeated(self):
        """Its values are those of all its launches, in each pass, of each time that it comes."""
        options = ["--set", "default", *STEPS]
        self.assert_run(self.collect(options, STEP), 0)
        self.assertEqual(self.modes(), ["range"])
        self.assertIn("the time is that of the repeated work", self.reasons()[0])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM value JOIN metric ON metric.id=metric_id WHERE "
                                    "value IS NULL AND kind='hardware'"), [(0,)])
        five = self.rows()
        self.assertIn("(range replay)", self.kprof("report", "run.kprof").out)
        with open(SCHEMA) as file:
            schema = json.load(file)
        for page in "details", "raw":
            data = json.loads(self.kprof("report", "run.kprof", "--page", page, "--json").out)
            self.assertIsNone(fits(data, schema, schema))
        self.assert_run(self.collect(options, ["push=step", f"launch={SCALE}", "pop"]), 0)
        self.assertEqual([row[2] for row in five], [5 * row[2] for row in self.rows()])
        self.assert_run(self.collect([*options, "-c", "3"], STEP * 5), 0)
        self.assertEqual((self.modes(), self.rows()[0][2]), (["range"] * 3, five[0][2]))
        self.assert_run(self.collect([*options, "--multiplex-samples", "1"], STEP * 2), 0)
        self.assertEqual(self.modes(), ["range"])

    def test_instructions_and_timelines_are_of_launches(self):
        options = ["--section", "SourceCounters", "--section", "PmSampling", *STEPS]
        self.assert_run(self.collect(options, STEP), 0)
        for table in "code_profile", "timeline_pass":
            told = self.query("run.kprof", f"SELECT DISTINCT reason FROM {table}")
            self.assertEqual([reason.rpartition(", and ")[2] for (reason,) in told], ["not of a range"])

    def test_what_cannot_be_repeated(self):
        """A range is cut short by what replays must not do; where that comes again, it is measured as it runs."""
        step = ["push=step", f"launch={SCALE}", f"launch={PINNED}", "pop"]
        run = self.collect(["--set", "default", *STEPS], step * 14, env=UNREPEATED)
        self.assert_run(run, 0)
        self.assertIn("2 of 14 selected ranges could not be measured", run.err)
        self.assertEqual(self.modes()[:3], ["none", "none", "multiplex"])
        self.assertIn("its batch closed before its end", self.reasons()[0])
        self.assertIn(": the kernel takes memory of the host, which no replay may change", self.reasons()[0])
        self.assertIn("measured as it runs: earlier ranges of the name could not be repeated", self.reasons()[2])
        self.assert_run(self.collect(["--set", "default", *STEPS, "-c", "1"], step * 14, env=UNREPEATED), 0)
        self.assertIn("multiplex", self.modes())

    def test_throughput_of_a_range_that_comes_once(self):
        """It is the greatest of those parts that take one pass, and says so."""
        name = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
        run = self.kprof("--injection-path", INJECTION, "--metrics", name, "--replay-mode", "app-range",
                         "--nvtx-include", "step/", "-f", "-o", "run", APP, *STEP,
                         env={"KPROF_SIM_VALUES_BY_NAME": "1"})
        self.assert_run(run, 0)
        parts = "SELECT max(part.value) FROM value AS part JOIN metric AS m ON m.id=part.metric_id WHERE " \
            "part.launch_id=launch.id AND m.name!=metric.name AND m.name LIKE '%.pct_of_peak_sustained_elapsed'"
        told = self.query("run.kprof", f"SELECT value=({parts}), reason LIKE '%greatest of those of its parts%' FROM "
                          "launch JOIN value ON launch_id=launch.id JOIN metric ON metric.id=metric_id "
                          f"WHERE name='{name}'")
        self.assertEqual(told, [(1, 1)])

    def test_between_calls_of_the_profiler(self):
        steps = [f"launch={SCALE}", "profiler=start", f"launch={SCALE}*2", "profiler=stop", f"launch={SCALE}",
                 "profiler=start", f"launch={SCALE}", "profiler=stop"]
        self.assert_run(self.collect(["--replay-mode", "app-range"], steps), 0)
        name = "cudaProfilerStart to cudaProfilerStop"
        self.assertEqual([row[:2] for row in self.rows()], [(name, 1), (name, 4)])
        self.assert_run(self.collect([*RANGE, "--range-filter", ":2:"], steps), 0)
        self.assertEqual([row[:2] for row in self.rows()], [(name, 4)])

    def test_launches_on_another_gpu(self):
        """Counters are of one GPU, that of the first launch, and so is the number of launches."""
        steps = ["push=step", f"launch={SCALE}*3", "place=device:1", f"launch={SCALE}*2", "place=device:0",
                 f"launch={SCALE}", "pop", "place=device:1", f"launch={SCALE}", "place=device:0"]
        two = {"KPROF_SIM_PROBE": "two-gpus"}
        self.assert_run(self.collect(["--replay-mode", "app-range", *STEPS[2:]], [*steps, *STEP], env=two), 0)
        self.assertEqual(self.query("run.kprof", "SELECT value FROM launch_metrics WHERE "
                                                 "metric='launch__range_launches' ORDER BY launch"), [(4,), (5,)])
        told = ["without 2 launches of the range, on other GPUs" in reason for reason in self.reasons()]
        self.assertEqual(told, [True, False])
        run = self.collect(["--set", "default", *STEPS], steps, env=two)
        self.assert_run(run, 110)
        self.assertIn("its batch closed before its end", self.reasons()[0])

    def test_behind_the_profilers_stop(self):
        steps = [*STEP, "profiler=start", "profiler=stop", *STEP]
        told = "has called cudaProfilerStop: launches are not measured before it calls cudaProfilerStart"
        run = self.collect([*STEPS], steps)
        self.assert_run(run, 0)
        self.assertEqual((len(self.rows()), run.err.count(told)), (1, 1))
        run = self.collect([*STEPS], ["profiler=start", "profiler=stop", *STEP])
        self.assert_run(run, 106)
        self.assertIn(told, run.err)
        self.assertIn("had 1 NVTX range of --nvtx-include, and no launch in those that were to be measured", run.err)

    def test_chosen_ranges(self):
        self.assert_run(self.collect([*STEPS, "-s", "1", "-c", "1"], STEP * 3), 0)
        self.assertEqual([row[1] for row in self.rows()], [6])
        self.assert_run(self.collect([*STEPS, "--range-filter", "::[13]"], STEP * 3), 0)
        self.assertEqual([row[1] for row in self.rows()], [0, 12])
        steps = ["push=a", f"launch={SCALE}", "push=b", f"launch={SCALE}", "pop", "pop", "push=b", f"launch={SCALE}",
                 "pop", "push=net@c", f"launch={SCALE}", "pop=net",
                 "start=e", f"launch={SCALE}", "end", "push=d", "pop"]
        chosen = ("--nvtx-include", "regex:^[abd]/", "--nvtx-include", "net@c/", "--nvtx-include", "e")
        run = self.collect([*RANGE, *chosen], steps)
        self.assert_run(run, 0)
        self.assertEqual([row[:2] for row in self.rows()], [("a", 0), ("b", 2), ("net@c", 3), ("e", 4)])
        self.assertIn('the range "b" begins while another one is measured', run.err)
        self.assert_run(self.collect([*RANGE, "--nvtx-include", "regex:^[ab]/", "--filter-mode", "per-launch-config",
                                      "-c", "1"], [*steps, "push=a", f"launch={SCALE}", "pop"]), 0)
        self.assertEqual([row[:2] for row in self.rows()], [("a", 0), ("b", 2)])

    def test_what_a_range_is_called_and_in(self):
        """It has its whole name, and the ranges that were open as it began, not those of its first launch."""
        steps = ["push=outer", "push=step (fp16) 1", f"thread={SCALE}", "push=inner", f"launch={SCALE}", "pop", "pop"]
        for set_options in [], ["--set", "default"]:
            self.assert_run(self.collect([*set_options, *RANGE, "--nvtx-include", "regex:step/"], steps), 0)
            self.assertEqual(self.query("run.kprof", "SELECT launches.kernel, nvtx, value FROM launches JOIN "
                                        "launch_metrics USING (launch) WHERE metric='launch__range_launches'"),
                             [("step (fp16) 1", "outer/step (fp16) 1/", 2)])
        self.assert_run(self.kprof("report", "run.kprof", "-k", "regex:^step .fp16. 1$"), 0)
        run = self.kprof("report", "run.kprof", "-k", "step")
        self.assert_run(run, 106)
        self.assertIn("1 x step (fp16) 1\n", run.err)
        steps = ["push=a", "profiler=start", "push=b", f"launch={SCALE}", "pop", "profiler=stop"]
        self.assert_run(self.collect([*RANGE, "--nvtx"], steps), 0)
        self.assertEqual(self.query("run.kprof", "SELECT kernel, nvtx FROM launches"),
                         [("cudaProfilerStart to cudaProfilerStop", "a/")])

    def test_what_ends_no_range(self):
        """Work of another thread is part of it; one that has not ended when the process does ends with that."""
        self.assert_run(self.collect([*STEPS], ["push=step", f"thread={SCALE}", f"launch={SCALE}", "pop"]), 0)
        self.assertEqual(len(self.rows()), 1)
        for ends, code in ([], 0), (["_exit=0"], 0), (["raise=15"], 143):
            self.assert_run(self.collect([*STEPS], ["push=step", f"launch={SCALE}", *ends]), code)
            self.assertEqual((len(self.rows()), self.modes()), (1, ["multiplex"]))
            self.assert_run(self.collect(["--set", "default", *STEPS], ["push=step", f"launch={SCALE}", *ends]), code)
            self.assertEqual(self.modes(), ["range"])
        for options in [], ["--set", "default"]:
            run = self.collect([*options, *STEPS, "--kill", "yes", "-c", "1"], [*STEP, "sleep=20000", *STEP])
            self.assert_run(run, 0)
            self.assertIn("--kill yes has ended process", run.err)
            self.assertEqual(len(self.rows()), 1)

    def test_refused(self):
        for options, hint in ((["-k", "scale"], "leave out --kernel-name"), (["--kernel-id", "1:::"], "--kernel-id"),
                              (["--nvtx-exclude", "a/"], "leave out --nvtx-exclude"),
                              (["--disable-profiler-start-stop"], "give --nvtx-include")):
            run = self.collect([*RANGE, *options], STEP)
            self.assert_run(run, 101)
            self.assertIn(hint, run.err)
        run = self.collect([*RANGE], STEP)
        self.assert_run(run, 106)
        self.assertIn("which measuring ranges without --nvtx-include waits for", run.err)
        self.assertIn("no launch matched --replay-mode range without --nvtx-include;", run.err)
        run = self.collect([*RANGE, "--nvtx-include", "other/"], STEP)
        self.assert_run(run, 106)
