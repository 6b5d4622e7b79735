#!/usr/bin/env python3
"""The table of pairs names every pair of the sources, and its judgement tells a right advice and a near estimate."""
import json
import re
import unittest

import harness
import pairs

SOURCES = harness.ROOT / "tests/gpu/pairs"
FINDINGS = harness.ROOT / "metricsets/findings"
KERNEL = re.compile(r"^__global__ void (?:__\w+__\(\w+\) )?(\w+)\(", re.MULTILINE)


def launch(kernel, finding=None, pct=None, advice=None):
    told = [] if finding is None else [
        {"id": finding, "advice": advice, "estimated_speedup": None if pct is None else {"pct": pct}}]
    chosen = {"id": finding} if finding else None
    return {"kernel": {"function": kernel}, "verdict": {"finding": chosen}, "findings": told}


class Sources(unittest.TestCase):
    def test_each_pair_has_two_kernels_and_no_kernel_is_without_a_pair(self):
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cu")))
        expected = sorted(f"{pair.name}_{which}" for pair in pairs.PAIRS for which in ("slow", "mended"))
        self.assertEqual(sorted(KERNEL.findall(text)), expected)
        self.assertEqual(len(pairs.PAIRS), 15)

    def test_the_findings_exist(self):
        for pair in pairs.PAIRS:
            for finding in pair.findings:
                self.assertEqual(json.loads((FINDINGS / f"{finding}.json").read_text())["id"], finding)


class Judgement(unittest.TestCase):
    def rows(self, times, launches, default=()):
        tops = pairs.tops_of({"launches": launches})
        return {row.pair: row for row in pairs.make_rows(times, tops, pairs.tops_of({"launches": list(default)}))}

    def test_times_are_read_from_what_the_program_prints(self):
        self.assertEqual(pairs.read_times("time tail slow 20.50\ntail: the same\ntime tail mended 10.25\n"),
                         {"tail": {"slow": 20.5, "mended": 10.25}})

    def test_a_right_finding_with_a_near_estimate(self):
        row = self.rows({"tail": {"slow": 20, "mended": 10}}, [launch("tail_slow", "TailEffect", 30)])["tail"]
        self.assertEqual((row.gain, row.named, row.ratio, pairs.is_near(row)), (50, True, 0.6, True))

    def test_an_estimate_of_more_than_twice_the_gain_is_not_near(self):
        row = self.rows({"tail": {"slow": 20, "mended": 16}}, [launch("tail_slow", "TailEffect", 41)])["tail"]
        self.assertTrue(row.named)
        self.assertFalse(pairs.is_near(row))

    def test_another_finding_does_not_count_however_near_its_estimate(self):
        row = self.rows({"tail": {"slow": 20, "mended": 10}}, [launch("tail_slow", "WarpStall", 50)])["tail"]
        self.assertFalse(row.named or pairs.is_near(row))

    def test_the_last_launch_with_a_verdict_counts(self):
        rows = self.rows({}, [launch("host_slow", "WarpStall", 1), launch("host_slow", "SystemMemory", 2),
                              launch("host_slow")])
        self.assertEqual(rows["host"].top.id, "SystemMemory")

    def test_what_kprof_prints_is_read(self):
        report = harness.ROOT / "tests/report/findings/recorded-h200.kprof"
        done = harness.run([harness.kprof(), "report", report, "--json"])
        self.assertEqual(done.status, 0, done.stderr)
        tops = pairs.tops_of(json.loads(done.stdout))
        self.assertEqual(tops["atomic_one_address"].id, "Atomics")
        self.assertGreater(tops["atomic_one_address"].estimate, 50)
        self.assertIn("atomic", tops["atomic_one_address"].advice)

    def test_the_totals_and_what_is_missing_are_told(self):
        times = {pair.name: {"slow": 20, "mended": 10} for pair in pairs.PAIRS}
        launches = [launch(f"{pair.name}_slow", min(pair.findings), 50) for pair in pairs.PAIRS]
        text, faults = pairs.judge(list(self.rows(times, launches, launches).values()))
        self.assertEqual(faults, [])
        self.assertIn("in 15 of 15 pairs", text)
        self.assertIn("measured gain in 15. The default set has the same finding in 15", text)
        del times["clock"]
        times["tail"]["mended"] = 30
        faults = pairs.judge(list(self.rows(times, launches[:9]).values()))[1]
        self.assertEqual(faults, ["clock was not timed", "the mended kernel of tail is not faster",
                                  "the change is named in 9 pairs, fewer than 14",
                                  "the estimate is near in 8 pairs, fewer than 10"])


if __name__ == "__main__":
    unittest.main()
