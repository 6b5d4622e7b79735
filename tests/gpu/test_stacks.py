#!/usr/bin/env python3
"""Tests of how stacks.py judges launches; they need no GPU."""
import pathlib
import sqlite3
import unittest

from stacks import QUERY, find_wrong

REPORT = pathlib.Path(__file__).parents[2] / "samples/source-h200.kprof"

NODE = "autograd::engine::evaluate_function: MmBackward0, seq = 1, op_id = 7/"
GOOD = [("stacks_torch.py:22 in forward", "launch", "aten::mm, seq = 1, op_id = 2/"),
        ("stacks_torch.py:22 in forward", "forward", NODE),
        ("libtorch.so+0x12 (the thread runs no Python)", "launch",
         "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 9/"),
        ("stacks_torch.py:26 in captured", "capture", "")]


class Judgement(unittest.TestCase):
    def test_what_is_right(self):
        self.assertEqual(find_wrong(GOOD), [])

    def test_what_is_wrong(self):
        self.assertEqual(find_wrong(GOOD[:3]), ["no launch has the stack of capture"])
        for launch in (("", "none", ""), ("stacks_torch.py:22 in forward", "launch", NODE),
                       ("stacks_torch.py:39 in <module>", "graph", ""),
                       ("stacks_torch.py:39 in <module>", "capture", "")):
            self.assertEqual(len(find_wrong([*GOOD, launch])), 1, launch)

    def test_that_reports_answer(self):
        with sqlite3.connect(f"file:{REPORT}?mode=ro&immutable=1", uri=True) as report:
            launches = report.execute("SELECT count(*) FROM launch").fetchone()[0]
            self.assertEqual(len(report.execute(QUERY).fetchall()), launches)


if __name__ == "__main__":
    unittest.main()
