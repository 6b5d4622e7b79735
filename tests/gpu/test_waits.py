#!/usr/bin/env python3
"""Tests of how waits.py judges runs; they need no GPU."""
import unittest

import harness
from waits import Finding, Row, judge


def result(status=0, stdout="checksum 1", seconds=1.0):
    return harness.Result(status, stdout, "the last line", seconds)


def launches(complete, unmeasured=0, partial=0):
    return [*[harness.Launch("k", {}) for _ in range(complete)],
            *[harness.Launch("k", {}, False, "it waits") for _ in range(unmeasured)],
            *[harness.Launch("k", {}, True, "measured in 1 of 2 passes") for _ in range(partial)]]


class Judgement(unittest.TestCase):
    row = Row("held", 4, 3, 2)

    def judged(self, under=None, found=None, plain=None, row=None):
        return judge(row or self.row, Finding(plain or result(), under or result(), found or launches(3, 1)))

    def test_what_is_right(self):
        self.assertEqual(self.judged(), ([], []))
        self.assertEqual(self.judged(under=result(110), found=launches(0, 4)), ([], ["launches"]))
        killed = Row("killed", 4, 1, 2, status=137, lost=2)
        self.assertEqual(self.judged(result(137), launches(2), result(137), killed), ([], []))

    def test_what_is_wrong(self):
        self.assertEqual(self.judged(under=result(stdout="checksum 2"))[0], ["prints 'checksum 2'"])
        self.assertEqual(self.judged(under=result(1))[0], ["ends with 1: the last line"])
        self.assertEqual(self.judged(plain=result(1))[0], ["alone it ends with 1: the last line"])
        self.assertEqual(self.judged(found=launches(3))[0], ["3 launches told of"])

    def test_what_is_missed(self):
        self.assertEqual(self.judged(under=result(seconds=2.5), found=launches(2, 1, partial=1)),
                         ([], ["launches", "time"]))

    def test_cells(self):
        cells = Finding(result(), result(), launches(3, 1)).cells(self.row)
        self.assertEqual(cells[1:4] + cells[-1:], ("same", "3 of 4", "3", "it waits (1)"))


if __name__ == "__main__":
    unittest.main()
