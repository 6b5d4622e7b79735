"""Jobs of several ranks: a report for each, and what a merged report tells of them."""

import csv
import io
import os
import shutil
import sqlite3
import subprocess
import unittest

from harness import *

MPIRUN = shutil.which("mpirun")
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


class Ranks(Case):
    def ranks(self):
        return sorted(name for name in os.listdir(self.dir) if name.startswith("run_"))

    def parts(self, throughput):
        listed = self.kprof("list", "collected", "--chips", "GH100", "--metrics", f"breakdown:{throughput}", "--csv")
        return ",".join(f"'{row['metric']}'" for row in csv.DictReader(io.StringIO(listed.out)))

    def summary(self, *options):
        text = self.kprof("report", "all.kprof", "--page", "summary", *options).out
        return text if not options else {row["function"]: row for row in csv.DictReader(io.StringIO(text))}

    @unittest.skipUnless(MPIRUN, "there is no mpirun")
    def test_open_mpi(self):
        """Eight ranks on one machine wait in line for the GPU, and each has a report of its own."""
        command = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "8", KPROF, "-q", "--injection-path",
                   INJECTION, "--metrics", METRIC, "-o", "run_%h_%p_%q{OMPI_COMM_WORLD_RANK}", APP,
                   f"launch={SCALE}*3", f"launch={VECTOR_ADD}"]
        run = subprocess.run(command, env=self.environment({}, command), cwd=self.dir, text=True, timeout=900,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(sorted(name.rsplit("_", 1)[1] for name in self.ranks()), [f"{i}.kprof" for i in range(8)])
        for name in self.ranks():
            self.assertEqual(self.launches(name), ["scale", "scale", "scale", "vectorAdd"])
        self.assert_run(self.kprof("merge", *self.ranks(), "-o", "all"), 0)
        rows = self.summary("--csv")
        self.assertEqual((rows["scale"]["sources"], rows["scale"]["launches"]), ("8", "24"))

    def test_ranks_that_die(self):
        """One before it had measured anything, one before it came to CUDA: merge names them, report tells why."""
        self.assert_run(self.profile(["-o", "run_0"], [f"launch={SCALE}"]), 0)
        self.assertEqual(self.profile(["-o", "run_1"], [f"launch={SCALE}*3", "raise=9"], env=BUSY).code, 137)
        self.assertEqual(self.profile(["-o", "run_2"], ["say=early"]).code, 106)
        run = self.kprof("merge", *self.ranks(), "-o", "all")
        self.assert_run(run, 0)
        self.assertNotIn("run_0.kprof:", run.err)
        self.assertIn("warning: run_1.kprof: processes cut short: 1; what they did last is missing\n", run.err)
        self.assertIn("warning: run_2.kprof: no process of its run has called CUDA\n", run.err)
        run = self.kprof("report", "run_1.kprof")
        self.assert_run(run, 106)
        self.assertRegex(run.err, r"the report has no launch, as its process was cut short .*; the application "
                         r"launched:\nkprof: error:   \d x scale\n$")
        run = self.kprof("report", "run_2.kprof")
        self.assert_run(run, 106)
        self.assertEqual(run.err, "kprof: error: the report is empty: no process of its run has called CUDA\n")
        self.assertEqual(self.profile(["-o", "run_4"], [f"launch={SCALE}", "settle", "raise=9"]).code, 137)
        told = "warning: run_4.kprof: processes cut short: 1; what they did last is missing"
        for command in ("report", "report -c 1", "report -o part -f", "diff run_0", "export --to long -o x -f"):
            run = self.kprof(*command.split(), "run_4")
            self.assert_run(run, 0)
            self.assertEqual(run.err.count(told), 1, run.err)
            self.assertNotIn("run_0", run.err)
        self.assertEqual(self.profile(["-o", "run_3", "-k", "other"], [f"launch={SCALE}"]).code, 106)
        run = self.kprof("report", "run_3.kprof")
        self.assert_run(run, 106)
        self.assertIn("the report has no launch, as its run chose none; the application launched:", run.err)

    def test_spread(self):
        """The summary tells how evenly ranks load a kernel, and which one takes longest."""
        for rank, launches in enumerate([3, 5, 4]):
            steps = [f"launch={SCALE}*{launches}"] + [f"launch={VECTOR_ADD}"] * (rank == 2)
            self.assert_run(self.profile(["-o", f"run_{rank}"], steps), 0)
        self.assertNotIn("Reports ", self.kprof("report", "run_0.kprof", "--page", "summary").out)
        self.assert_run(self.kprof("merge", *self.ranks(), "-o", "all"), 0)
        rows = self.summary("--csv")
        row = rows["scale"]
        each = float(row["source_minimum"]) / 3
        self.assertEqual([row["sources"], row["slowest_source"]], ["3", "run_1.kprof"])
        self.assertEqual([float(row[name]) for name in ("source_median", "source_maximum")], [4 * each, 5 * each])
        self.assertEqual(rows["vectorAdd"]["sources"], "1")
        self.assertRegex(self.summary(), r"Reports +3.00 us to 5.00 us, median 4.00 us, over 3; slowest run_1.kprof")

    def test_spread_over_processes_of_one_run(self):
        """As torchrun's, where kprof stands before it."""
        self.assert_run(self.collect([], [f"processes=3:{SCALE}", f"launch={VECTOR_ADD}"]), 0)
        text = self.kprof("report", "run.kprof", "--page", "summary").out
        self.assertRegex(text, r"Processes +1.00 us to 1.00 us, median 1.00 us, over 3; slowest sim-app [0-9]+ on ")
        self.assertEqual(text.count("slowest"), 1)

    def test_rank_passes(self):
        """Each rank collects a share of the metrics; joined they have what one run collects."""
        steps = [f"launch={SCALE}*2", "place=grid:4", f"launch={SCALE}", f"launch={VECTOR_ADD}"]
        line = ("--injection-path", INJECTION, "--set", "default", "-q")
        for rank in range(3):
            run = self.kprof(*line, "--rank-passes", "-o", f"run_{rank}", APP, *steps,
                             env={"RANK": str(rank), "WORLD_SIZE": "3"})
            self.assert_run(run, 0)
        self.assert_run(self.kprof(*line, "-o", "whole", APP, *steps), 0)
        self.assert_run(self.kprof("merge", *self.ranks(), "-o", "all"), 0)
        passes = [self.query(name, "SELECT count(*) FROM pass")[0][0] for name in self.ranks()]
        self.assertLessEqual(max(passes), self.query("whole.kprof", "SELECT count(*) FROM pass")[0][0] / 2)
        for sql in ("SELECT position, grid_x, measured > 90 FROM launch ORDER BY position",
                    "SELECT launch_id, name, value FROM value JOIN metric ON metric.id = metric_id "
                    "WHERE kind = 'launch' ORDER BY 1, 2"):
            self.assertEqual(self.query("all.kprof", sql), self.query("whole.kprof", sql))
        have = "SELECT launch_id, name FROM value JOIN metric ON metric.id = metric_id WHERE kind {} AND value NOT NULL"
        self.assertEqual(*[sorted(self.query(name, have.format("IN ('hardware', 'derived')")))
                           for name in ("all.kprof", "whole.kprof")])
        # A throughput is the greatest of its parts, which several ranks have
        self.assertEqual(*[self.query("all.kprof", "SELECT launch_id, max(value) FROM value JOIN metric ON "
                                      f"metric.id=metric_id WHERE name IN ({names}) GROUP BY 1")
                           for names in (f"'{SM}'", self.parts(SM))])
        self.assertEqual(self.query("all.kprof", "SELECT sets FROM run"), [('["default"]',)])
        reasons = self.query("all.kprof", "SELECT DISTINCT reason FROM launch")
        self.assertEqual(reasons, [("its passes are of 3 launches, one of each rank, of this kernel and shape at the "
                                    "same place in their order",)])

    def test_rank_passes_of_single_metrics(self):
        """A throughput that --metrics names is computed, too."""
        for rank in range(2):
            run = self.kprof("--injection-path", INJECTION, "--metrics", f"{SM},{METRIC}", "-q", "--rank-passes", "-o",
                             f"run_{rank}", APP, f"launch={SCALE}", env={"RANK": str(rank), "WORLD_SIZE": "2"})
            self.assert_run(run, 0)
        self.assert_run(self.kprof("merge", *self.ranks(), "-o", "all"), 0)
        self.assertRegex(self.kprof("report", "all.kprof").out, rf"\n    {SM} +[\d,.]+ %")

    def test_ranks_that_differ(self):
        for rank in range(2):
            run = self.kprof("--injection-path", INJECTION, "--set", "default", "--rank-passes", "-q",
                             "-o", f"run_{rank}", APP, f"launch={SCALE}*{rank + 1}",
                             env={"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"})
            self.assert_run(run, 0)
        run = self.kprof("merge", *self.ranks(), "-o", "all")
        self.assert_run(run, 0)
        self.assertIn("1 launch was not measured by all ranks, and lacks the passes of the others", run.err)
        self.assertEqual(self.query("all.kprof", "SELECT count(*) FROM launch"), [(2,)])
        self.assertNotIn("ranks of the job", run.err)
        for runs, said in (("run_0", "are not joined"), ("run_0 run_1", "these are 2 of 3 ranks of the job")):
            for name in runs.split():
                with sqlite3.connect(self.path(f"{name}.kprof")) as database:
                    database.execute("UPDATE run SET sets=replace(sets, ' of 2', ' of 3')")
            run = self.kprof("merge", *self.ranks(), "-f", "-o", "all")
            self.assert_run(run, 0)
            self.assertIn(said, run.err)
        run = self.profile(["--rank-passes"], [f"launch={SCALE}"])
        self.assert_run(run, 101)
        self.assertIn("nothing tells this process' rank", run.err)
        for rank, ranks in (("x", "2"), ("2", "2"), ("0", "4000000000")):
            run = self.profile(["--rank-passes"], [f"launch={SCALE}"], env={"RANK": rank, "WORLD_SIZE": ranks})
            self.assert_run(run, 101)
            self.assertIn(f'RANK is "{rank}" and WORLD_SIZE is "{ranks}", which is no rank of a job', run.err)
        run = self.profile(["--rank-passes"], [f"launch={SCALE}"], env={"RANK": "3", "WORLD_SIZE": "3"})
        self.assert_run(run, 101)
        self.assertIn("which is no rank of a job", run.err)
