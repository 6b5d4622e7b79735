#!/usr/bin/env python3
"""Tests of how waits.py judges runs; they need no GPU."""
import unittest

import harness
from waits import SHARED, Finding, Row, judge


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

    def test_program_that_takes_longer_alone(self):
        slow = Row("jax", 4, 3, 10, alone=7.4)
        for alone, seconds, missed in ((5, 10, []), (5, 10.1, ["time"]), (12.4, 14.9, []), (12.4, 15.1, ["time"])):
            finding = Finding(result(seconds=alone), result(seconds=seconds), launches(3, 1))
            self.assertEqual(judge(slow, finding), ([], missed))

    def test_cells(self):
        cells = Finding(result(), result(), launches(3, 1)).cells(self.row)
        self.assertEqual(cells[1:4] + cells[-1:], ("same", "3 of 4", "3", ""))

    def test_launches_in_values_of_another(self):
        shared = [harness.Launch("k", {}, False, SHARED + " the process's launch at position 2") for _ in range(2)]
        whole = harness.Launch("k", {}, True, "it waits", position=2)
        partial = harness.Launch("k", {}, True, "measured in 2 of 9 passes", position=2)
        finding = Finding(result(), result(), [whole, *shared, *launches(0, 1)])
        self.assertEqual(finding.cells(self.row)[2], "1 and 2 in their values of 4")
        self.assertEqual(judge(self.row, finding), ([], []))
        self.assertEqual(Finding(result(), result(), [partial, *shared]).shared, 0)

    def test_details(self):
        messages = ["profiler ready: CUPTI 60.5 ms, context 100.0 ms",
                    "batch of 9 launches, 8 of them chosen, closed by its age, 9 passes, ms: saving 7.0, measuring "
                    "instructions and timelines 0.2, waiting for values 3.0",
                    "batch of 3 launches, 1 of them chosen, closed by cuMemFree, 9 passes, ms: saving 1.0, measuring "
                    "instructions and timelines 0.0, waiting for values 30.5", "something else"]
        self.assertEqual(Finding(result(), result(), launches(1, 2, partial=1), messages).details(), [
            "2 of k: it waits", "1 of k: measured in 1 of 2 passes",
            "2 batches with 9 launches, closed by its age (1), cuMemFree (1)", "ms: waiting for values 34, saving 8",
            "1 times a profiler got ready, in 160 ms"])
        self.assertEqual(Finding(result(), result(), []).details(), ["kprof told of no batch"])


if __name__ == "__main__":
    unittest.main()
