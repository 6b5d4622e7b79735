#!/usr/bin/env python3
"""Tests of how control.py judges runs; they need no GPU."""
import unittest

from control import PLAIN, UNARMED, UNSELECTED, cost, judge, row


def result(us, launches=0, checksum="1"):
    return {"us": us, "after_us": us + 1, "launches": launches, "checksum": checksum}


def good():
    return {PLAIN: [result(100), result(120)], UNARMED: [result(130, 9), result(100.5, 9)], UNSELECTED: [result(110)]}


class Judgement(unittest.TestCase):
    def test_what_is_right(self):
        self.assertEqual(judge(good()), [])
        self.assertAlmostEqual(cost(good(), UNARMED), 0.005)
        self.assertEqual(row(good(), UNARMED), (UNARMED, "100.5", "+0.50%", "101.5", "+0.50%", "9"))

    def test_what_is_wrong(self):
        for name, results, text in ((UNARMED, [result(101, 9)], f"{UNARMED}: costs 1.0%"),
                                    (UNSELECTED, [result(100, checksum="2")], "-k (no kernel): other weights"),
                                    (UNARMED, [result(100, 9), result(100)], f"{UNARMED}: [9, 0] launches measured"),
                                    (UNSELECTED, [result(100, 1)], "-k (no kernel): [1] launches measured")):
            self.assertEqual(judge({**good(), name: results}), [text])


if __name__ == "__main__":
    unittest.main()
