#!/usr/bin/env python3
"""Tests of how trace_torch.py judges runs; they need no GPU."""
import unittest

from trace_torch import (ALONE, KPROF, PROFILER, compare, cost, costs_of, differences, judge, of_kprof, of_profiler,
                         shown, shown_calls)


def stats(*rows):
    return of_kprof([{"Name": name, "Instances": count, "Total Time (ns)": ns} for name, count, ns in rows])


def chrome(*kernels):
    return of_profiler({"traceEvents": [{"name": "no kernel", "cat": "cuda_runtime", "dur": 1}, {"ph": "M"}] +
                        [{"name": name, "cat": "kernel", "dur": us} for name, us in kernels]})


class Judgement(unittest.TestCase):
    def test_the_same_kernels(self):
        ours = stats(("void a<int >(int)", 2, 3000), ("b", 1, 20))
        theirs = chrome(("void a<int>(int)", 1.5), ("void a<int>(int)", 1.51), ("b", 0.01))
        self.assertEqual(theirs["voida<int>(int)"], (2, 3010))
        rows = list(compare([ours], [theirs]))
        self.assertEqual(list(differences(rows)), []) # b takes too little of the time
        self.assertEqual([row[0] for row in shown(rows)], ["all kernels", "voida<int>(int)"])

    def test_other_times(self):
        theirs = chrome(("a", 1.0))
        self.assertEqual(list(differences(compare([stats(("a", 1, 1020))], [theirs]))),
                         ["all: time differs by +2.00%", "a: time differs by +2.00%"])
        spread = [theirs, chrome(("a", 1.03))]
        self.assertEqual(list(differences(compare([stats(("a", 1, 1030))], spread))), []) # its own runs differ more

    def test_other_launches(self):
        theirs = [chrome(("a", 1.0))]
        self.assertEqual(list(differences(compare([stats(("a", 2, 1000))], theirs))),
                         ["all: launches [2], of torch.profiler [1]", "a: launches [2], of torch.profiler [1]"])
        self.assertIn("c: launches [1], of torch.profiler [0]",
                      list(differences(compare([stats(("a", 1, 1000), ("c", 1, 9))], theirs))))
        self.assertIn("all: launches [0], of torch.profiler [1]", list(differences(compare([{}], theirs))))

    def test_cost_and_results(self):
        def result(us, checksum="1"):
            return {"us": [us, us * 3], "checksum": checksum}

        results = {ALONE: [result(100), result(200)], KPROF: [result(104), result(208)],
                   PROFILER: [result(110), result(220)]}
        self.assertAlmostEqual(cost(results, KPROF), 0.04)
        self.assertEqual(costs_of("train20", results), ("train20", 4, 250, 260, 275, "+4.0%", "+4.0% to +4.0%",
                                                        "+10.0%", "+10.0% to +10.0%", "5%"))
        self.assertEqual(list(judge(results, 0.05)), [])
        self.assertEqual(list(judge(results, 0.03)), ["costs 4.0%"])
        self.assertEqual(list(judge({**results, PROFILER: [result(1, "2")]}, None)), [f"{PROFILER}: other results"])

    def test_calls(self):
        calls = [{"Name": name, "Num Calls": count, "Med (ns)": 9} for name, count in (("a", 1), ("b", 3))]
        self.assertEqual(shown_calls(calls), [("b", 3, 9), ("a", 1, 9)])


if __name__ == "__main__":
    unittest.main()
