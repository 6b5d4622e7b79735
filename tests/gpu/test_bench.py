#!/usr/bin/env python3
"""Tests of how bench.py computes and merges; they need no GPU."""
import os
import pathlib
import sqlite3
import tempfile
import unittest

import bench


def samples(*values, problem=None, least=None):
    found = bench.Samples()
    found.values, found.problem, found.least = list(values), problem, least
    return found


class Rows(unittest.TestCase):
    def row(self, ncu_loop, ncu_wall):
        """One of 10 launches of kprof and 4 of ncu: kprof adds 10 ms in the loop."""
        os.environ["BENCH_COUNTS"] = "full=10:4"
        row = bench.TableRow("full", bench.Tools("/nowhere"), [])
        row.loop = {"plain": samples(0.0, 0.0), "kprof": samples(0.010, 0.008, 0.0125), "ncu": ncu_loop}
        row.wall = {"plain": samples(0.5), "kprof": samples(1.6), "ncu": ncu_wall}
        return row

    def test_added_and_ratio_with_their_range(self):
        row = self.row(samples(0.4, 0.5, 0.6), samples(3.0))
        self.assertAlmostEqual(row.added_loop_ms("ncu"), 500)
        self.assertAlmostEqual(row.added_wall_ms("ncu"), 500)
        self.assertAlmostEqual(row.added_wall_ms("kprof"), 100)
        self.assertEqual(row.ratio(), "50 times (32 to 75)")

    def test_a_limit_is_a_lower_bound(self):
        limited = samples(problem="over 150 s (stopped at this limit)", least=150)
        row = self.row(limited, limited)
        self.assertEqual(row.ratio(), "over 299 times (process)")
        cells = row.cells()
        self.assertEqual(cells[7:10], (None, "over 150 s (stopped at this limit)", "over 29,900"))
        self.assertEqual(len(cells), len(bench.HEADER))

    def test_without_ncu(self):
        row = self.row(samples(), samples())
        del row.wall["ncu"]
        self.assertEqual(row.ratio(), "n/a")

    def test_a_run_that_meets_the_limit_is_not_repeated(self):
        calls = []

        def slow():
            calls.append(1)
            bench.checked(["sleep", "5"], limit=0.1)

        found = bench.repeat({"ncu": slow, "plain": lambda: 1.0}, 3, bench.Clock(3600))
        self.assertEqual((len(calls), found["ncu"].least, found["plain"].values), (1, 0.1, [1.0, 1.0, 1.0]))

    def test_every_launch_has_to_be_measured(self):
        with tempfile.TemporaryDirectory() as folder:
            base = pathlib.Path(folder) / "r"
            with sqlite3.connect(f"{base}.kprof") as database:
                database.executescript(
                    "CREATE TABLE launches(launch, kernel, measured, reason, position, replay_mode, pid);"
                    "CREATE TABLE launch_metrics(launch, metric, value, unit);"
                    "INSERT INTO launches VALUES(1,'k',1,'',0,'batch',7),(2,'k',1,'no room',5,'cupti-kernel',7);")
            self.assertEqual(bench.measured_launches(base, 2), "2 of 2: batch and cupti-kernel (no room)")
            with self.assertRaises(RuntimeError):
                bench.measured_launches(base, 3)
            with sqlite3.connect(f"{base}.kprof") as database:
                database.execute("UPDATE launches SET measured=0 WHERE launch=2")
            with self.assertRaises(RuntimeError):
                bench.measured_launches(base, 2)


class Merging(unittest.TestCase):
    def document(self, command, *sections):
        head = f"# Benchmarks\n\n|  |  |\n|---|---|\n| GPU | H200 |\n| command | `{command}` |\n"
        return "\n".join([head, *(f"## {title}\n\n{text}\n" for title, text in sections)])

    def test_each_section_from_the_last_that_has_it(self):
        merged = bench.merge([self.document("one", ("Added", "old"), ("Reporter", "r")),
                              self.document("two", ("Memory", "m"), ("Added", "new"))])
        self.assertEqual(merged, self.document("one`; `two", ("Added", "new"), ("Reporter", "r"), ("Memory", "m")))

    def test_merging_once_more_changes_nothing(self):
        once = bench.merge([self.document("one", ("Added", "| a |\n|---|"))])
        self.assertEqual(bench.merge([once]), once)


if __name__ == "__main__":
    unittest.main()
