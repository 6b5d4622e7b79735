#!/usr/bin/env python3
"""Tests of how control.py judges runs; they need no GPU."""
import unittest

from control import MEASURED, PLAIN, UNARMED, UNSELECTED, cost, judge


def result(us, launches=0, checksum="1"):
    return {"us": us, "after_us": us + 1, "launches": launches, "checksum": checksum}


def good():
    return {PLAIN: [result(100), result(120)], UNARMED: [result(130), result(100.5)], UNSELECTED: [result(110)],
            MEASURED: [result(100, 9)]}


class Judgement(unittest.TestCase):
    def test_what_is_right(self):
        self.assertEqual(judge(good()), [])
        self.assertAlmostEqual(cost(good(), UNARMED), 0.005)
        self.assertAlmostEqual(cost(good(), MEASURED, "after_us"), 0)

    def test_what_is_wrong(self):
        for name, results, text in ((UNARMED, [result(101)], "--armed no: costs 1.0%"),
                                    (UNSELECTED, [result(100, checksum="2")], "-k (no kernel): other weights"),
                                    (MEASURED, [result(100, 9), result(100)], f"{MEASURED}: [9, 0] launches measured"),
                                    (UNARMED, [result(100, 1)], "--armed no: [1] launches measured")):
            self.assertEqual(judge({**good(), name: results}), [text])


if __name__ == "__main__":
    unittest.main()
