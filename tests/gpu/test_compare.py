"""Tests of what the GPU checks decide with, without a GPU."""
import math
import pathlib
import sqlite3
import tempfile
import unittest

import compare
import harness

NCU_LOG = '''==PROF== Connected to process 77
==PROF== Profiling "copy" - 0: 0%....50%....100% - 3 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Context",\
"Stream","Block Size","Grid Size","Device","CC","a__b.sum","c__d.pct"
"","","","","","","","","","","","byte","%"
"0","77","app","host","copy","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","1,234.50","n/a"
"1","77","app","host","copy(int *, int)","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","1,300","12.5"
==PROF== Disconnected from process 77
'''


class Verdicts(unittest.TestCase):
    def verdict(self, name, kprof, ncu, **more):
        return compare.Comparison(name, kprof, ncu, **more).verdict

    def test_instruction_counts_are_exact(self):
        self.assertEqual(self.verdict("smsp__inst_executed.sum", [1000000], [1000000]), "equal")
        self.assertEqual(self.verdict("smsp__inst_executed.sum", [1000001], [1000000]), "outside")
        self.assertEqual(self.verdict("smsp__inst_executed.sum", [1000001, 999999], [1000000, 1000003]), "outside")
        self.assertEqual(self.verdict("smsp__inst_executed.avg", [2.004], [2.0], digit=0.005), "equal")

    def test_rates_have_five_percent(self):
        self.assertEqual(self.verdict("dram__bytes.sum", [1.04e9], [1e9]), "within")
        self.assertEqual(self.verdict("dram__bytes.sum", [1.06e9], [1e9]), "outside")
        self.assertEqual(self.verdict("gpu__time_duration.sum", [1060.0], [1000.0]), "outside")

    def test_digits_that_ncu_leaves_out_are_no_difference(self):
        apart = compare.Comparison("sm__throughput.avg.pct", [50.006], [50.0], digit=0.005).apart_pct()
        self.assertAlmostEqual(apart, 0.002, places=4)
        self.assertEqual(compare.Comparison("sm__throughput.avg.pct", [50.004], [50.0], digit=0.005).apart_pct(), 0)
        self.assertGreater(compare.Comparison("dram__bytes.sum", [1.0], [0.0]).apart_pct(), 1000)

    def test_small_counts(self):
        self.assertTrue(compare.Comparison("lts__t_sectors.sum", [2000], [999]).is_small_count())
        self.assertFalse(compare.Comparison("lts__t_sectors.sum", [10], [1000]).is_small_count())
        self.assertFalse(compare.Comparison("sm__throughput.avg.pct_of_peak", [1], [1]).is_small_count())

    def test_floors(self):
        self.assertEqual(self.verdict("l1tex__t_sector_hit_rate.pct", [0.9], [0.0]), "within")
        self.assertEqual(self.verdict("l1tex__t_sector_hit_rate.pct", [2.1], [1.0]), "outside")
        self.assertEqual(self.verdict("lts__t_sectors.sum", [900], [10]), "within")
        self.assertEqual(self.verdict("lts__t_sectors.sum", [9000], [10]), "outside")
        self.assertEqual(self.verdict("dram__bytes.sum.per_second", [1e6], [0.0], duration_ns=1e6), "within")
        self.assertEqual(self.verdict("dram__bytes.sum.per_second", [1e6], [0.0]), "outside")

    def test_noise_is_judged_by_ranges(self):
        self.assertEqual(self.verdict("lts__cycles_active.max", [100e3, 130e3, 131e3], [99e3, 100e3, 101e3]), "noisy")
        self.assertEqual(self.verdict("lts__cycles_active.max", [130e3, 150e3, 160e3], [99e3, 100e3, 101e3]), "outside")

    def test_absence_is_never_agreement(self):
        self.assertEqual(self.verdict("a__b.sum", [], [1.0]), "missing")
        self.assertEqual(self.verdict("a__b.sum", [1.0], []), "not in ncu")


class Spread(unittest.TestCase):
    def test_counts_have_to_be_equal(self):
        count = "smsp__inst_executed.sum"
        self.assertEqual(compare.judge_spread(count, [100, 100], [100, 100, 100]), "equal")
        self.assertEqual(compare.judge_spread(count, [100, 101], [100, 100, 100]), "outside")
        self.assertEqual(compare.judge_spread(count, [103], [100, 102]), "within")
        self.assertEqual(compare.judge_spread(count, [105], [100, 102]), "outside")

    def test_others_have_their_range_widened_by_their_spread(self):
        name = "gpu__time_duration.sum"
        self.assertEqual(compare.judge_spread(name, [1090, 1180, 5000], [1000, 1100]), "within")
        self.assertEqual(compare.judge_spread(name, [1000], [1000, 1000]), "equal")
        self.assertEqual(compare.judge_spread(name, [1030], [1000, 1010]), "near")
        self.assertEqual(compare.judge_spread(name, [1100], [1000, 1010]), "outside")

    def test_floors(self):
        self.assertEqual(compare.judge_spread("lts__t_sectors.sum", [1000], [0, 0]), "near")
        self.assertEqual(compare.judge_spread("lts__t_sectors.sum", [2000], [0, 0]), "outside")
        self.assertEqual(compare.judge_spread("dram__bytes.sum.per_second", [1e6], [0], 1e6), "near")

    def test_absence_is_never_agreement(self):
        self.assertEqual(compare.judge_spread("a__b.sum", [], [1]), "missing")
        self.assertEqual(compare.judge_spread("a__b.sum", [1], []), "missing")


class Expressions(unittest.TestCase):
    def test_values_and_names(self):
        text = "2*a__b.sum+c__d.avg.per_second/x"
        self.assertEqual(sorted(compare.expression_names(text)), ["a__b.sum", "c__d.avg.per_second", "x"])
        self.assertEqual(compare.evaluate(text, {"a__b.sum": 3, "c__d.avg.per_second": 8, "x": 4}), 8)
        self.assertTrue(math.isnan(compare.evaluate(text, {"a__b.sum": 3, "x": 4})))

    def test_only_arithmetic(self):
        for text in ("f(1)", "a[0]", "-a", "'x'.join"):
            with self.assertRaises((ValueError, KeyError)):
                compare.evaluate(text, {})

    def test_expect_lines(self):
        self.assertEqual(compare.parse_expect("hello\nexpect k a__b.sum 16 0.001\n"), [("k", "a__b.sum", 16.0, 0.001)])

    def test_tolerances(self):
        self.assertTrue(compare.meets(1000.9, 1000, 0.001))
        self.assertFalse(compare.meets(1001.1, 1000, 0.001))
        self.assertFalse(compare.meets(1, 0, 0))
        self.assertFalse(compare.meets(math.nan, 0, 1))
        self.assertFalse(compare.meets(None, 0, 1))


class Readers(unittest.TestCase):
    def test_ncu_csv(self):
        launches, units = harness.parse_ncu_raw(NCU_LOG)
        self.assertEqual([launch.kernel for launch in launches], ["copy", "copy"])
        self.assertEqual(launches[0].metrics, {"a__b.sum": (1234.5, 0.005)})
        self.assertEqual(launches[1].metrics, {"a__b.sum": (1300.0, 0.0), "c__d.pct": (12.5, 0.05)})
        self.assertEqual(units["a__b.sum"], "byte")
        self.assertEqual(harness.parse_ncu_raw("==ERROR== no\n"), ([], {}))

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.kprof"
            database = sqlite3.connect(path)
            database.executescript(
                "CREATE TABLE launches(launch, kernel, measured, reason, position, replay_mode, pid);"
                "CREATE TABLE launch_metrics(launch, metric, value, unit);"
                "INSERT INTO launches VALUES(1,'k',1,'',0,'batch',7),(2,'k',0,'graph',5,'none',7);"
                "INSERT INTO launch_metrics VALUES(1,'a__b.sum',2.5,'byte'),(1,'c',NULL,'');")
            database.close()
            launches, units = harness.read_report(path)
        self.assertEqual(launches[0].metrics, {"a__b.sum": 2.5, "c": None})
        self.assertEqual((launches[1].measured, launches[1].reason), (False, "graph"))
        self.assertEqual(units["a__b.sum"], "byte")

    def test_run(self):
        self.assertEqual(harness.run(["sh", "-c", "echo out; echo err >&2; exit 3"]).status, 3)
        self.assertEqual(harness.run(["sh", "-c", "kill -9 $$"]).status, 137)
        self.assertIsNone(harness.run(["sleep", "900"], limit=0.2).status)

    def test_known_differences(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# comment\ncopy/a__b\\..*\tbecause\n")
            file.flush()
            known = compare.load_known(file.name)
        self.assertEqual(compare.known_reason(known, "copy", "a__b.sum"), "because")
        self.assertIsNone(compare.known_reason(known, "copy", "x"))


if __name__ == "__main__":
    unittest.main()
