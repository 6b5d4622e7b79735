"""What is sampled over time, from the option to the page."""

import csv
import io
import json
import sys

from harness import APP, INJECTION, METRIC, SCALE, VECTOR_ADD, Case, os

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path.append(os.path.join(ROOT, "tests/report"))
from check_outputs import fits  # as a reader of the schema would

SAMPLES = 10 # of a launch on the simulated machine


class Timeline(Case):
    def measure(self, *options):
        steps = ["init", *(f"launch={name}" for name in (VECTOR_ADD, SCALE))]
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *options, APP, *steps)
        self.assert_run(run, 0)
        return run

    def show(self, *options):
        run = self.kprof("report", "run.kprof", "--page", "timeline", *options)
        self.assertEqual(run.code, 0, run.err)
        return run.out

    def test_samples_are_stored_and_shown(self):
        self.measure("--set", "pmsampling", "--pm-sampling-interval", "2000")
        passes = self.query("run.kprof", "SELECT launch_id, interval_ns, samples, reason FROM timeline_pass")
        self.assertGreater(len(passes), 2)
        self.assertEqual({row[1:] for row in passes}, {(2000, SAMPLES, "")})
        # The activity is in each pass, and the other metrics in one.
        (rows, metrics), = self.query("run.kprof", "SELECT count(*), count(DISTINCT metric_id) FROM timeline")
        self.assertEqual(rows, 2 * metrics * SAMPLES)
        for shown in csv.DictReader(io.StringIO(self.show("--csv"))):
            rows -= 1
            self.assertEqual(int(shown["start_ns"]) % 2000, 0)
            self.assertTrue(shown["unit"])
        self.assertEqual(rows, 0)
        data = json.loads(self.show("--json"))
        with open(os.path.join(ROOT, "docs/report.schema.json")) as file:
            schema = json.load(file)
        self.assertIsNone(fits(data, schema, schema))
        first, second = data["timelines"]
        self.assertEqual((first["launch"], second["launch"]), (0, 1))
        self.assertEqual((first["sampled_ns"], first["interval_ns"]), (2000 * SAMPLES, 2000))
        self.assertEqual(len(first["samples"]), metrics * SAMPLES)
        text = self.show()
        self.assertIn("Sampled 20 us, Every 2 us", text)
        self.assertRegex(text, r"SMs Busy +50 % +50 % +50 % +\|@{60}\|")
        self.assertRegex(text, r"Active Warps .* warp .*\|")
        details = " ".join(self.kprof("report", "run", "--launch", "0").out.split())
        self.assertIn("TailSeen (needs 20 samples over time); RampUp (needs 20 samples over time);", details)
        self.assertNotIn("timeline__", details)
        self.assertIn("SMs Busy: least 50 %, mean 50 %, most 50 % |@@@", details)
        self.assertEqual(self.kprof("report", "run", "--html", "run.html").code, 0)
        with open(self.path("run.html"), encoding="utf-8") as file:
            self.assertIn('[\\"20 samples over time\\"]', file.read())

    def test_options_that_a_plan_leaves_without_effect(self):
        options = ("--pm-sampling-interval", "--warp-sampling-max-passes", "--import-source")
        words = [word for option, value in zip(options, ("2000", "2", "yes")) for word in (option, value)]
        for wanted, idle in ((("--metrics", METRIC), options), (("--set", "pmsampling"), options[1:]),
                             (("--set", "source"), options[:1]), (("--metrics", METRIC, "--armed", "no"), ())):
            run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *wanted, *words, APP, f"launch={SCALE}")
            self.assertEqual([option for option in options if f"{option} has no effect: " in run.err], list(idle))

    def test_parts_and_merged_reports_have_them(self):
        self.measure("--set", "pmsampling")
        all_of_them = self.query("run.kprof", "SELECT count(*) FROM timeline")[0][0]
        for options, share in ((("--launch", "1"), 0.5), (("--section", "PmSampling,PmSampling_WarpStates"), 1)):
            self.assertEqual(self.kprof("report", "run.kprof", *options, "-f", "-o", "part").code, 0)
            self.assertEqual(self.query("part.kprof", "SELECT count(*) FROM timeline")[0][0], share * all_of_them)
        part = self.kprof("report", "run.kprof", "--section", "PmSampling_WarpStates", "-f", "-o", "part")
        self.assertEqual(part.code, 0, part.err)
        labels = {row["label"] for one in json.loads(self.kprof(
            "report", "part.kprof", "--page", "timeline", "--json").out)["timelines"] for row in one["samples"]}
        self.assertIn("Active Warps", labels)
        self.assertNotIn("DRAM", labels)
        os.rename(self.path("run.kprof"), self.path("first.kprof"))
        self.measure("--set", "pmsampling")
        merged = self.kprof("merge", "first.kprof", "run.kprof", "-o", "all")
        self.assertEqual(merged.code, 0, merged.err)
        self.assertEqual(self.query("all.kprof", "SELECT count(*) FROM timeline")[0][0], 2 * all_of_them)

    def test_short_launches_are_laid_over_one_another(self):
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--section", "PmSampling", APP, "init",
                         f"launch={VECTOR_ADD}*3", f"launch={SCALE}", "place=grid:9", f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        busy = "metric_id=(SELECT id FROM metric WHERE name LIKE 'sm__cycles_active.%')"
        for launch, value in enumerate((10, 30, 80, 50, 60)):
            self.query("run.kprof", f"UPDATE timeline SET value={value} WHERE launch_id={launch} AND {busy}")
        told = lambda: [(one["laid_over"], {row["value"] for row in one["samples"] if row["label"] == "SMs Busy"},
                         len([row for row in one["samples"] if row["label"] == "SMs Busy"]))
                        for one in json.loads(self.show("--json"))["timelines"]]
        alone = [(1, {50}, SAMPLES), (1, {60}, SAMPLES)] # another kernel, and another grid
        self.assertEqual(told(), [(3, {40}, SAMPLES)] * 3 + alone)
        self.assertIn("Mean of launches 3", self.show())
        self.assertIn("mean of 3 launches laid over one another", self.kprof("report", "run", "--launch", "0-2").out)
        # A long one stands for itself, and the others lack its samples where they have none.
        self.query("run.kprof", "UPDATE timeline SET start_ns=start_ns*10 WHERE launch_id=0")
        self.assertEqual(told()[0], (1, {10}, SAMPLES))
        self.assertEqual([count for count, *_ in told()], [1, 3, 3, 1, 1])

    def test_fewer_passes_leave_metrics_out(self):
        run = self.measure("--set", "pmsampling", "--pm-sampling-max-passes", "1")
        self.assertIn("not sampled over time, to keep within --pm-sampling-max-passes:", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT DISTINCT pass FROM timeline_pass"), [(0,)])
        self.assertNotIn("L1 Hit Rate", self.show())

    def test_launches_that_are_not_repeated_tell_why(self):
        self.measure("--set", "pmsampling", "--replay-mode", "multiplex")
        rows = self.query("run.kprof", "SELECT samples, reason FROM timeline_pass")
        self.assertEqual(len(rows), 2)
        for samples, reason in rows:
            self.assertEqual(samples, 0)
            self.assertRegex(reason, "sampled over time in replays alone|is only watched")
        self.assertIn("replays alone", self.show())

    def test_nothing_of_it_happens_unless_it_is_asked_for(self):
        run = self.measure("--set", "detailed", "--page", "timeline")
        self.assertIn("nothing was sampled over time; --set pmsampling", run.err)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM timeline_pass"), [(0,)])
        run = self.kprof("report", "run.kprof", "--page", "timeline")
        self.assertNotEqual(run.code, 0)
        self.assertIn("has nothing over time", run.err)

    def test_nothing_of_what_is_chosen(self):
        self.measure("--set", "pmsampling", "--section", "SpeedOfLight")
        self.assertIn("SMs Busy", self.show("--section", "PmSampling"))
        run = self.kprof("report", "run.kprof", "--page", "timeline", "--metrics", METRIC)
        self.assertEqual(run.code, 106)
        self.assertIn("nothing of what is chosen was sampled over time", run.err)
