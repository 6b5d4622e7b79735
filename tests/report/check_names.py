#!/usr/bin/env python3
"""Lists are as wide as they may be.

Usage: check_names.py SOURCE KPROF"""
import csv
import io
import subprocess
import sys
import unittest

KPROF = sys.argv[2]

def run(*arguments):
    done = subprocess.run([KPROF, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Lists(unittest.TestCase):
    def test_lists_keep_to_the_width(self):
        for what in ("sections", "findings", "aliases"):
            text = run("list", what, "--chips", "gh100", "--width", 100)
            self.assertLessEqual(max(map(len, text.splitlines())), 100)
            self.assertGreater(max(map(len, text.splitlines())), 80)

    def test_lists_in_a_pipe_have_a_line_for_each_row(self):
        rows = list(csv.reader(io.StringIO(run("list", "findings", "--csv"))))
        self.assertEqual(len(run("list", "findings").splitlines()), len(rows))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
