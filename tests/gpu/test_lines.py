#!/usr/bin/env python3
"""The check of lines sees pages that lack them, and knows which line is marked."""
import json
import unittest

import harness
import lines


def page(**row):
    return {"kernels": [{"rows": [{"file": "a.cu", "line": 7, "instruction": "NOP", "instructions": 5, **row}]}]}


class Judgement(unittest.TestCase):
    def test_marked_lines(self):
        found = {name: lines.marked_line(case.source) for name, case in lines.CASES.items()}
        self.assertEqual({name: line for name, line in found.items() if line is None},
                         {"JAX": None, "torch.compile": None})
        for name, line in found.items():
            text = lines.CASES[name].source.split("r'''")[-1].splitlines()
            self.assertTrue(line is None or lines.MARK in text[line - 1])

    def test_what_is_missing(self):
        self.assertEqual(lines.judge(page(), 7), (1, 1, 1, ["a.cu"], []))
        self.assertEqual(lines.judge(page(), None)[4], [])
        self.assertEqual(lines.judge(page(), 8)[4], ["no instruction is of line 8"])
        self.assertEqual(lines.judge(page(instructions=0), 7)[4], ["no instruction is of line 7"])
        self.assertEqual(lines.judge(page(file=None, line=None), 7)[4], ["no instruction has a line"])
        self.assertEqual(lines.judge(page(instruction=None), 7)[4], ["no instruction has a text"])
        self.assertEqual(lines.judge({"kernels": []}, 7)[4], ["no instruction was measured"])

    def test_a_recorded_page(self):
        report = harness.ROOT / "samples/source-h200.kprof"
        printed = harness.run([harness.kprof(), "report", report, "--page", "source", "-k", "uncoalesced_read",
                               "--print-source", "sass", "--all", "--json"]).stdout
        count, with_lines, texts, files, faults = lines.judge(json.loads(printed), 14)
        self.assertGreater(count, 20)
        self.assertEqual((with_lines > 0, texts, faults), (True, count, []))
        self.assertTrue(any(file.endswith("memory.cu") for file in files))


if __name__ == "__main__":
    unittest.main()
