#!/usr/bin/env python3
"""The list of command lines fits its program, and what they collect is read from both tools."""
import re
import unittest

import harness
import ncu_lines

LINES = ncu_lines.read_lines(ncu_lines.LINES.read_text(encoding="utf-8"))
PROGRAM = (harness.ROOT / "tests/gpu/programs/profiler_calls.cu").read_text(encoding="utf-8")
RAW = """==PROF== Connected
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"device__attribute_x","a__b.sum"
"","","","","","","","","","","","","ns"
"0","9","p","h","add(unsigned int *)","1","7","(64, 1, 1)","(3, 1, 1)","0","9.0","5","1,024"
"1","9","p","h","add(unsigned int *)","1","7","(64, 1, 1)","(12, 1, 1)","0","9.0","5","7"
"""


class List(unittest.TestCase):
    def test_lines(self):
        self.assertGreaterEqual(len(LINES), 20)
        launches = {int(number) for number in re.findall(r"<<<(\d+),", PROGRAM)}
        usage = re.search(r"Usage: profiler_calls (\S+)", PROGRAM).group(1).split("|")
        for options, argument, numbers in LINES:
            self.assertIn(argument, usage)
            self.assertLessEqual(set(numbers), launches)
            self.assertFalse({"-o", "--csv", "--page", "--log-file", "--clock-control"} & set(options))

    def test_between_the_calls(self):
        """The launches that the list says are between cudaProfilerStart and cudaProfilerStop are so in the program."""
        inside, is_inside = [], False
        for call, launch in re.findall(r"profile\((true|false)\)|<<<(\d+),", PROGRAM[PROGRAM.index("int main"):]):
            is_inside = call == "true" if call else is_inside
            inside += [int(launch)] if launch and is_inside else []
        for options, argument, numbers in LINES:
            if options[:2] == ["--profile-from-start", "off"] and len(options) == 4:
                self.assertEqual(numbers, inside, argument)


class Reading(unittest.TestCase):
    def test_raw_page(self):
        self.assertEqual(ncu_lines.of_ncu(RAW), ([3, 12], {"a__b.sum"}))
        self.assertEqual(ncu_lines.of_ncu("==WARNING== No kernels were profiled."), ([], set()))

    def test_names_that_are_missing(self):
        options = ["-k", "add", "--metrics", "a__b.sum,c__d.avg.pct,e__f,group:x", "--metrics", "g__h.sum"]
        self.assertEqual(ncu_lines.missing_names(options, {"a__b.sum", "g__h.sum"}), ["c__d.avg.pct"])


if __name__ == "__main__":
    unittest.main()
