#!/usr/bin/env python3
"""Tests of how census.py judges runs; they need no GPU."""
import unittest

from census import judge, judge_step

RUN = {"us": 100, "checksum": "1"}


class Judgement(unittest.TestCase):
    def test_what_is_right(self):
        self.assertEqual(judge(([RUN], [RUN]), (1000, 1000), 999, [("gemm", 2000, 2500)]), [])

    def test_what_is_wrong(self):
        self.assertEqual(judge(([RUN], [RUN, {"checksum": "2"}]), (1000, 1001), 900, []),
                         ["the program ran 2 times", "other weights",
                          "1000 launches were counted alone, and 1001 beside counters",
                          "101 of 1001 launches were not timed", "no launch was measured"])
        self.assertEqual(judge(([RUN], [RUN]), (10, 10), 10, [("gemm", 2000, 6001)]),
                         ["gemm: 6001 ns where it was measured, 2000 on average"])

    def test_a_step(self):
        self.assertEqual(judge_step({"steps": 10}, 763, 76), [])
        self.assertEqual(judge_step({"steps": 10}, 763, 75), ["75 launches are in the census of a step of 76"])


if __name__ == "__main__":
    unittest.main()
