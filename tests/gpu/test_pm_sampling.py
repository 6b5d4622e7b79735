#!/usr/bin/env python3
"""The judgement of pm_sampling.py."""
import unittest

import pm_sampling


def row(metric, differs, verdict="equal", kernel="add"):
    return ("app", kernel, 0, metric, 50, "1", "1", f"{differs:.2f}", verdict)


class Judgement(unittest.TestCase):
    def test_the_median_of_three_launches_counts(self):
        rows = [row("dram", value) for value in (0.1, 2.9, 60)] + [row("sm", value) for value in (0, 3.5, 4)]
        judged, failures = pm_sampling.judge(rows, 3)
        self.assertEqual(judged, {("app", "add")})
        self.assertEqual(failures, ["app, add: sm: the median of the launches differs by 3.50 %"])

    def test_few_launches_and_small_rates_are_not_judged(self):
        rows = [row("dram", 60)] * 2 + [row("sm", 60, "not compared")] * 3
        self.assertEqual(pm_sampling.judge(rows, 3), (set(), []))


    def test_phases(self):
        self.assertEqual(list(pm_sampling.judge_phases([(2, 1, 47, 7, 100)] * 3)), [])
        self.assertEqual(list(pm_sampling.judge_phases([(1, 1, 100, None, None)])),
                         ["phases: 1 phases, unit 1 until 100 %, then None until None %"])
        self.assertEqual(list(pm_sampling.judge_phases([])), ["phases: no launch was measured"])


if __name__ == "__main__":
    unittest.main()
