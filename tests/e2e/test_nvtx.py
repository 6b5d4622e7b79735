"""NVTX ranges: collected where they are asked for, and launches chosen and grouped by them."""

import csv
import io
import json
import shutil

from harness import INJECTION, SCALE, VECTOR_ADD, Case, os

STEPS = [
    f"launch={SCALE}",
    "push=train", "push=step 1", f"launch={VECTOR_ADD}",
    "push=net@conv", f"launch={SCALE}", "pop=net",
    "pop", "push=step 2", f"launch={VECTOR_ADD}*2", "pop",
    "start=epoch", f"launch={SCALE}", "end", "pop",
    f"thread={SCALE}", f"launch={VECTOR_ADD}",
]
RANGES = [None, "train/step 1/", "net@conv/; train/step 1/", "train/step 2/", "train/step 2/", "train/; epoch",
          "in thread/", None]


class Ranges(Case):
    def ranges(self, name="run.kprof"):
        return [row[0] for row in self.query(
            name, "SELECT ranges FROM launch LEFT JOIN nvtx ON launch_id=id ORDER BY position")]

    def test_collected_only_where_asked_for(self):
        self.assert_run(self.collect([], [*STEPS, "env=NVTX_INJECTION64_PATH"]), 0)
        self.assertEqual(self.ranges(), [None] * len(RANGES))
        run = self.collect(["--nvtx"], [*STEPS, "env=NVTX_INJECTION64_PATH"])
        self.assert_run(run, 0)
        self.assertIn(f"NVTX_INJECTION64_PATH={INJECTION}", run.out + run.err)
        self.assertEqual(self.ranges(), RANGES)

    def test_before_the_first_launch_and_after_it(self):
        self.assert_run(self.collect(["--nvtx"], [f"launch={SCALE}", "push=late", f"launch={SCALE}"]), 0)
        self.assertEqual(self.ranges(), [None, "late/"])

    def test_launches_are_chosen(self):
        for options, positions in (
                (["--nvtx-include", "train/"], [1, 2, 3, 4, 5]),
                (["--nvtx-include", "train/step 1"], [1, 2]),
                (["--nvtx-include", "net@conv/"], [2]),
                (["--nvtx-include", "epoch"], [5]),
                (["--nvtx-include", "step 2]", "--nvtx-include", "in thread/"], [3, 4, 6]),
                (["--nvtx-include", "regex:^tr/", "--nvtx-exclude", "regex:step [0-9]/"], [5]),
                (["--nvtx-exclude", "[train"], [0, 6, 7]),
                (["--nvtx-include", "train/", "-k", "vectorAdd", "-s", "1", "-c", "1"], [3])):
            with self.subTest(options):
                self.assert_run(self.collect(options, STEPS), 0)
                stored = [row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY 1")]
                self.assertEqual(stored, positions)
                self.assertEqual(self.ranges(), [RANGES[i] for i in positions])
        self.assert_run(self.collect(["--nvtx"], STEPS), 0)
        for command in ("report", "export"):
            run = self.kprof(command, "run.kprof", "--nvtx-include", "train/+/*/step 2]",
                             *(["--page", "raw", "--json"] if command == "report" else ["--to", "jsonl"]))
            self.assert_run(run, 106)
            run = self.kprof(command, "run.kprof", "--nvtx-include", "train/*/step 2]",
                             *(["--page", "raw", "--json"] if command == "report" else ["--to", "jsonl"]))
            self.assert_run(run, 0)
            found = json.loads(run.out)["launches"] if command == "report" else [
                json.loads(line) for line in run.out.splitlines() if '"id":' in line]
            self.assertEqual([launch["nvtx"] for launch in found], ["train/step 2/"] * 2)

    def test_ranges_that_are_all_left_out(self):
        run = self.collect(["--nvtx-exclude", "step/"], ["push=step", f"launch={SCALE}", "pop"])
        self.assert_run(run, 106)
        self.assertIn("no launch in an NVTX range that --nvtx-exclude does not leave out; its launches were in: "
                      '"step/"', run.err)

    def test_steps_of_a_schedule(self):
        steps = []
        for i in range(8):
            steps += [f"push=step {i}", f"launch={VECTOR_ADD}", f"thread={SCALE}", "pop", f"launch={VECTOR_ADD}"]
        chosen = ["--schedule", "1,1,0,2,2", "--step", "regex:^step/"]
        for options, positions in ((chosen, [6, 7, 9, 10, 15, 16, 18, 19]),
                                   ([*chosen, "-k", "scale"], [7, 10, 16, 19]),
                                   ([*chosen, "-c", "3"], [6, 7, 9]),
                                   (["--schedule", "3,2,0,1,2"], [5, 8]),
                                   (["--schedule", "3,0,0,1,0", "-k", "scale"], [10, 13, 16, 19, 22])):
            with self.subTest(options):
                self.assert_run(self.collect(options, steps), 0)
                stored = [row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY 1")]
                self.assertEqual(stored, positions)
        calls = []
        for _ in range(4):
            calls += ["profiler=start", f"launch={SCALE}", "profiler=stop", f"launch={SCALE}"]
        self.assert_run(self.collect(["--schedule", "1,0,1,1,1", "--profile-from-start", "off"], calls), 0)
        self.assertEqual(self.query("run.kprof", "SELECT position FROM launch"), [(4,)])
        run = self.collect(["--schedule", "20,1,0,2,2", "--step", "regex:^step/"], steps)
        self.assert_run(run, 106)
        self.assertIn("had 24 launches, and 8 steps; --schedule measures from step 22 on: let the program go on for "
                      "longer", run.err)
        self.assertIn('no launch matched --schedule 20,1,0,2,2 --step "regex:^step/"; the application launched',
                      run.err)
        run = self.collect(["--schedule", "0,0,0,1,1", "--step", "Step"], steps)
        self.assert_run(run, 106)
        self.assertIn('had no launch in an NVTX range that was a step of --step; its launches were in: "step 0/", "',
                      run.err)
        self.assertIn('--step Step is about ranges of nvtxRangeStart; those of nvtxRangePush are "Step/"', run.err)
        self.assertNotIn("--schedule measures from", run.err)
        run = self.collect([*chosen, "--kill", "yes"], [*steps, "sleep=60000", "exit=3"])
        self.assert_run(run, 0)
        self.assertEqual(len(self.query("run.kprof", "SELECT * FROM launch")), 8)

    def test_scope_of_the_process(self):
        self.assert_run(self.collect(["--nvtx-push-pop-scope", "process", "-k", "scale"], [
            "push=train", f"thread={SCALE}", f"launch={SCALE}"]), 0)
        self.assertEqual(self.ranges(), ["train/in thread/", "train/"])

    def test_rows_of_the_summary(self):
        self.assert_run(self.collect(["--nvtx"], STEPS), 0)
        run = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", "line")
        self.assertIn("no launch here has a call stack to group by; a run keeps stacks with --call-stack", run.err)
        run = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", "nvtx", "--json")
        self.assert_run(run, 0)
        self.assertEqual(run.err, "")
        rows = {(row["function"], row["group"]): row["launches"] for row in json.loads(run.out)["kernels"]}
        self.assertEqual(rows, {
            ("scale", "no range"): 1, ("scale", "net@conv/"): 1, ("scale", "train/"): 1, ("scale", "in thread/"): 1,
            ("vectorAdd", "no range"): 1, ("vectorAdd", "train/step 1/"): 1, ("vectorAdd", "train/step 2/"): 2})
        run = self.kprof("report", "run.kprof")
        self.assertIn("\n  NVTX ranges: net@conv/; train/step 1/\n", run.out)

    def test_formulas(self):
        """With --csv-safe no cell of ranges is a formula for a spreadsheet."""
        names = ["=1+1", "+x", "-x"]
        self.assert_run(self.collect(["--nvtx"], [step for name in names for step in (
            f"push={name}", f"start={name}", f"launch={SCALE}", "end", "pop")]), 0)
        for arguments in (["--page", "raw", "--csv-layout", "long"], ["--page", "raw", "--csv-layout", "wide"],
                          ["--page", "raw", "--csv-layout", "ncu"],
                          ["--page", "summary", "--group-by", "nvtx", "--csv"]):
            with self.subTest(arguments):
                cells = []
                for safety in ([], ["--csv-safe"]):
                    run = self.kprof("report", "run.kprof", *arguments, *safety)
                    self.assert_run(run, 0)
                    cells.append([cell for row in csv.reader(io.StringIO(run.out)) for cell in row
                                  if any(name in cell for name in names)])
                begins_with_domain = "ncu" in arguments
                self.assertEqual(len({cell[:2] for cell in cells[0]}), 1 if begins_with_domain else 3, cells)
                self.assertEqual(cells[1], ["'" + cell if cell[0] in "=+-@" else cell for cell in cells[0]])

    def test_merged_and_cut_reports_keep_them(self):
        self.assert_run(self.collect(["--nvtx"], STEPS), 0)
        shutil.move(self.path("run.kprof"), self.path("copy.kprof"))
        self.assert_run(self.collect(["--nvtx"], STEPS), 0)
        self.assert_run(self.kprof("merge", "run.kprof", "copy.kprof", "-o", "both"), 0)
        self.assertEqual(len([text for text in self.ranges("both.kprof") if text]), 12)
        self.assert_run(self.kprof("report", "run.kprof", "--nvtx-include", "train/step 1", "-o", "part"), 0)
        self.assertEqual(self.ranges("part.kprof"), RANGES[1:3])

    def test_reports_without_ranges(self):
        shutil.copy(os.path.join(os.path.dirname(__file__), "../fixtures/report-v5.kprof"), self.path("old.kprof"))
        run = self.kprof("report", "old.kprof", "--nvtx-include", "train/")
        self.assert_run(run, 106)
        self.assertIn("no launch of the report has NVTX ranges; a run with --nvtx keeps them", run.err)
        self.assert_run(self.kprof("report", "old.kprof", "--nvtx-exclude", "train/", "-o", "new"), 0)
        self.assertEqual(self.ranges("new.kprof"), [None] * 4)

    def test_nothing_matched(self):
        run = self.collect(["--nvtx-include", "train"], STEPS)
        self.assert_run(run, 106)
        self.assertIn('no launch matched --nvtx-include "train"', run.err)
        self.assertIn('those of nvtxRangePush are "train/"', run.err)
        [said] = [line for line in run.err.splitlines() if "no launch in an NVTX range" in line]
        for text in filter(None, RANGES):
            self.assertIn(f'"{text}"', said)
        self.assertEqual(said.count('"'), 2 * len(set(filter(None, RANGES))))
        run = self.collect(["--nvtx-include", "train/"], STEPS)
        self.assertNotIn("no launch in an NVTX range", run.err)
        self.assert_run(self.collect(["--nvtx"], STEPS), 0)
        run = self.kprof("report", "run.kprof", "--nvtx-include", "Train/")
        self.assert_run(run, 106)
        lines = run.err.splitlines()
        first = lines.index("kprof: error: launches of the report are in these ranges:")
        self.assertEqual(lines[first + 1:], [f"kprof: error:   {text}" for text in dict.fromkeys(RANGES) if text])

    def test_wrong_expressions_start_nothing(self):
        for text in ("a//b", "*/a", "a[0]/", "x@y@z", "regex:(/"):
            run = self.profile(["--nvtx-include", text], ["say=ran"])
            self.assert_run(run, 101)
            self.assertNotIn("ran", run.out)
            self.assertIn("--nvtx-include", run.err)

    def test_another_tool_keeps_nvtx(self):
        theirs = {"NVTX_INJECTION64_PATH": "/nowhere/tool.so"}
        run = self.collect(["--nvtx"], [*STEPS, "env=NVTX_INJECTION64_PATH"], env=theirs)
        self.assert_run(run, 0)
        self.assertIn("another tool gets the NVTX ranges, and kprof collects none", run.err)
        self.assertIn("NVTX_INJECTION64_PATH=/nowhere/tool.so", run.out + run.err)
        self.assertEqual(self.ranges(), [None] * len(RANGES))
        run = self.profile(["--nvtx-exclude", "a/"], ["say=ran"], env=theirs)
        self.assert_run(run, 101)
        self.assertIn("no launch can be chosen", run.err)

    def test_processes(self):
        self.assert_run(self.collect(["--nvtx"], ["push=parent", f"launch={SCALE}", f"fork={SCALE}", "spawn",
                                                  "push=child", f"launch={SCALE}"]), 0)
        self.assertEqual(sorted(self.ranges()), ["child/", "parent/"])
