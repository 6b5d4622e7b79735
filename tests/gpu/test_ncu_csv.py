#!/usr/bin/env python3
"""What ncu_csv.py tells of two tables."""
import unittest

import ncu_csv

FACTS = '"ID","Kernel Name","CC"'
DETAILS = '"ID","Kernel Name","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
RAW = (f'==PROF== Connected\nhello\n{FACTS},"launch__grid_size","a__b.sum"\n"","","","","ns"\n'
       '"0","f(int)","9.0","64","3.5"\n')


def row(name, unit, value):
    return f'"0","f(int)","9.0","Launch","{name}","{unit}","{value}"\n'


class Tables(unittest.TestCase):
    def compare(self, theirs, ours):
        return ncu_csv.compare(ncu_csv.rows_of(theirs), ncu_csv.rows_of(ours))

    def test_same(self):
        self.assertEqual(self.compare(RAW, RAW.replace("3.5", "4.5")), ([], [], [], 2))
        self.assertEqual(ncu_csv.rows_of("==WARNING== No kernels were profiled."), [])

    def test_what_is_of_the_launch_is_the_same(self):
        self.assertEqual(self.compare(RAW, RAW.replace('"64"', '"64.0"'))[2], ["launch__grid_size: 64 , kprof 64.0 "])

    def test_decimals(self):
        self.assertEqual(self.compare(RAW, RAW.replace("3.5", "4"))[2], []) # whole by chance
        self.assertEqual(self.compare(RAW, RAW.replace("3.5", "3.500001"))[2], ["a__b.sum: 3.5, kprof 3.500001"])

    def test_what_is_ncus_own(self):
        theirs = RAW.replace('"CC"', '"CC","derived_tempMetric0"').replace('"","ns"', '"","","ns"').replace(
            '"9.0"', '"9.0","1"')
        self.assertEqual(self.compare(theirs, RAW)[0], [])

    def test_names_units_and_separators(self):
        theirs = DETAILS + row("Duration", "us", "1024.5") + row("Threads", "thread", "64") + row("Other", "", "1")
        ours = DETAILS.replace('"CC"', '"Capability"') + row("Duration", "us", "1,024.5") + row("Threads", "", "64")
        lacking, names, differing, both = self.compare(theirs, ours)
        self.assertEqual((lacking, names, both), (["CC"], ["Other"], 2))
        self.assertEqual(differing, ["Duration: 1024.5, kprof 1,024.5", "Threads: 64 thread, kprof 64 "])


if __name__ == "__main__":
    unittest.main()
