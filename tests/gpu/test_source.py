#!/usr/bin/env python3
"""The comparison of sums over instructions sees what differs and what is missing, but for kernels that run seldom."""
import collections
import unittest

import source

WHOLE = [*source.PAIRS.values(), source.HARDWARE[1]]


def judge(count, counted, sampled, over=7.0, alone=7.0, reason="", multiplexes=True):
    """What is told of a kernel beside one that has all."""
    sums, launches = collections.defaultdict(dict), collections.defaultdict(dict)
    for kernel, ours, theirs in (("good", 5.0, 5.0), ("k", over, alone)):
        sums[kernel] = {name: ours * (counted if kernel == "k" else 2) for name in source.PAIRS}
        launches[kernel] = {} if theirs is None else dict.fromkeys(WHOLE, theirs)
    profiles = [("good", 2, 2, "", 0, 60 if multiplexes else 2), ("k", counted, sampled, reason, 0, count)]
    return source.judge("program", sums, launches, profiles, multiplexes)[1]


class Judgement(unittest.TestCase):
    def test_what_is_equal_is_no_failure(self):
        self.assertEqual(judge(60, 2, 2), [])
        self.assertEqual(judge(5, 5, 5, multiplexes=False), [])

    def test_what_differs_is_a_failure_however_seldom(self):
        self.assertTrue(judge(60, 2, 2, over=8.0))
        self.assertTrue(judge(3, 1, 1, over=8.0))

    def test_what_is_missing_is_a_failure_where_a_kernel_runs_often(self):
        self.assertEqual(judge(1, 0, 0, alone=None, reason="only watched"), [])
        self.assertTrue(judge(60, 0, 0, alone=None, reason="only watched"))
        self.assertTrue(judge(60, 2, 0))
        self.assertTrue(judge(1, 0, 0, alone=None, multiplexes=False))

    def test_a_program_that_nothing_is_known_of_fails(self):
        profiles = [("k", 0, 0, "only watched", 0, 1)]
        empty = collections.defaultdict(dict)
        self.assertEqual(source.judge("program", empty, empty, profiles, True)[1],
                         ["program: no sum could be compared"])
        self.assertTrue(source.judge("program", empty, empty, [], False)[1])


if __name__ == "__main__":
    unittest.main()
