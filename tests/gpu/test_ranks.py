#!/usr/bin/env python3
"""Tests of how ranks.py judges runs; they need no GPU."""
import unittest

from harness import Launch, Result
from ranks import count, judge


class Judgement(unittest.TestCase):
    def test_kernels_that_ran_often_enough(self):
        partial = "measured in 3 of 8 passes"
        launches = [Launch("a", {}, number == 0) for number in range(8)]
        launches += [Launch("b", {}, True, partial) for _ in range(9)] + [Launch("c", {})] * 7
        launches += [Launch("d", {}, True, partial, process=number % 2) for number in range(14)] # passes of two
        self.assertEqual(count(launches), (2, 1, "b (9)"))

    def test_what_is_wrong(self):
        good = Result(0, "sums are right", "", 1)
        self.assertEqual(judge(good, good), "")
        self.assertIn("alone", judge(Result(1, "", "no GPU", 1), good))
        self.assertIn("ends with 139", judge(good, Result(139, "", "", 1)))
        self.assertIn("other", judge(good, Result(0, "other", "", 1)))


if __name__ == "__main__":
    unittest.main()
