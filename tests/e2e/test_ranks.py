"""Jobs of several ranks: a report for each, and what a merged report tells of them."""

import csv
import io
import os
import shutil
import subprocess
import unittest

from harness import *

MPIRUN = shutil.which("mpirun")


class Ranks(Case):
    def ranks(self):
        return sorted(name for name in os.listdir(self.dir) if name.startswith("run_"))

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
