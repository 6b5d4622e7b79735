#!/usr/bin/env python3
"""Tests of programs that take turns; they need no GPU."""
import pathlib
import sys
import tempfile
import unittest

import harness
from turns import Skipped, Turns, cost, spread

PRELUDE = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent / 'programs')!r}); import in_turn; "


def program(text):
    return [sys.executable, "-B", "-c", PRELUDE + text], None


class TakingTurns(unittest.TestCase):
    def turns(self, **programs):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return Turns(programs, folder.name)

    def test_answers(self):
        counts = program("n = iter(range(9)); in_turn.serve({'steps': lambda: next(n)}); print('last')")
        with self.turns(a=counts, b=counts) as programs:
            self.assertEqual(programs.ask_all("steps", 3), {"a": [0, 1, 2], "b": [0, 1, 2]})
            self.assertEqual(programs.ask("b", "steps"), "3")
            self.assertEqual([programs.end(name) for name in "ab"], ["last"] * 2)

    def test_programs_that_fail(self):
        with self.assertRaises(Skipped), self.turns(a=program("sys.exit(77)")):
            pass
        failing = program("sys.exit('mine')")
        with self.assertRaisesRegex(harness.Failure, "did not begin: .*mine"), self.turns(a=failing):
            pass
        for text in ("in_turn.serve({'steps': lambda: sys.exit('mine')})", "print('ready'); sys.exit('mine')"):
            with self.assertRaisesRegex(harness.Failure, "a ended: .*mine"), self.turns(a=program(text)) as programs:
                programs.ask("a", "steps")
        with self.assertRaisesRegex(harness.Failure, "status 3"), \
                self.turns(a=program("in_turn.serve({}); print('last'); sys.exit(3)")) as programs:
            programs.end("a")
        with self.turns(a=program("in_turn.serve({}); print('last'); sys.exit(3)")) as programs:
            self.assertEqual(programs.end("a", 3), "last")

    def test_costs(self):
        self.assertAlmostEqual(cost([11, 21, 90], [10, 20, 30]), 0.1)
        low, high = spread([11, 22, 33], [10, 20, 30])
        self.assertAlmostEqual(low, 0.1)
        self.assertAlmostEqual(high, 0.1)


if __name__ == "__main__":
    unittest.main()
