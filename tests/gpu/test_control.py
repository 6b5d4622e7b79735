#!/usr/bin/env python3
"""Tests of how control.py judges runs; they need no GPU."""
import unittest

from control import PLAIN, UNARMED, UNSELECTED, cost, judge, judge_guest, row


def result(us, launches=0, checksum="1"):
    return {"us": [us, us * 2], "after_us": [us + 1, us + 1], "launches": launches, "checksum": checksum}


def good():
    return {PLAIN: [result(100), result(200)], UNARMED: [result(100.5, 9), result(201, 9)],
            UNSELECTED: [result(110), result(220)]}


class Judgement(unittest.TestCase):
    def test_what_is_right(self):
        self.assertEqual(judge(good()), [])
        self.assertAlmostEqual(cost(good(), UNARMED), 0.005)
        self.assertEqual(row(good(), UNARMED), (UNARMED, "201.0", "+0.50%", "+0.50% to +0.50%", "151.8", "+0.50%",
                                                "+0.50% to +0.50%", "9"))

    def test_what_is_wrong(self):
        for name, results, text in ((UNARMED, [result(101, 9)], f"{UNARMED}: costs 1.0%"),
                                    (UNSELECTED, [result(100, checksum="2")], "-k (no kernel): other weights"),
                                    (UNARMED, [result(100, 9), result(100)], f"{UNARMED}: [9, 0] launches measured"),
                                    (UNSELECTED, [result(100, 1)], "-k (no kernel): [1] launches measured")):
            self.assertEqual(judge({**good(), name: results}), [text])

    def test_torch_profiler(self):
        alone = {"before": 15, "beside": 15, "after": 15, "launches": 0, "launches_beside": 0, "said": "",
                 "checksum": "1"}
        good = {**alone, "launches": 15, "said": "another tool, such as torch.profiler, records"}
        self.assertEqual(judge_guest(alone, good), [])
        for key, value, part in (("before", 0, "before: 0 kernels, alone 15"), ("after", 14, "after: 14"),
                                 ("checksum", "2", "another result"), ("launches", 0, "no launch"),
                                 ("said", "", "measured 0: ''"), ("launches_beside", 3, "measured 3")):
            with self.subTest(key):
                faults = judge_guest(alone, {**good, key: value})
                self.assertEqual(len(faults), 1)
                self.assertIn(part, faults[0])


if __name__ == "__main__":
    unittest.main()
