#!/usr/bin/env python3
"""The comparison of source pages sees what differs, and takes what ncu printed for what kprof prints of the same."""
import unittest

import harness
import source_ncu

FOLDER = harness.ROOT / "tests/fixtures/source"
PAGE = ('"Kernel Name","k",\n"Address","Source","# Samples","Instructions Executed","stall_wait"\n'
        '"0x{0:x}","NOP","{1}","{2}","{1}"\n"0x{3:x}","EXIT","{4}","7","0"\n')


def page(base=0, first=500, count=7, second=500):
    return source_ncu.read_page(PAGE.format(base, first, count, base + 16, second))


class Comparison(unittest.TestCase):
    def test_addresses_begin_at_0(self):
        self.assertEqual(list(page(0x7f00)), [0, 16])
        self.assertEqual(source_ncu.count_faults(page(), page(0x7f00)), [])

    def test_other_counts_are_faults(self):
        self.assertEqual(source_ncu.count_faults(page(), page(count=8)),
                         ["0x0 Instructions Executed: kprof has 7, ncu 8"])
        self.assertEqual(source_ncu.count_faults(page(), {}), ["kprof has 2 instructions, ncu 0"])

    def test_shares_may_differ_by_their_error(self):
        self.assertEqual(source_ncu.share_faults(page(), page(first=520))[0], [])
        faults, largest = source_ncu.share_faults(page(), page(first=1500))
        self.assertEqual(len(faults), 2)
        self.assertAlmostEqual(largest, 25)
        self.assertEqual(source_ncu.share_faults(page(), page(first=0, second=0))[0], ["one of them has no samples"])

    def test_a_report_with_ncus_values_is_the_same(self):
        text = harness.run([harness.kprof(), "report", FOLDER / "source.kprof", "--page", "source", "-k", "vectorAdd",
                            "--csv", "--csv-layout", "ncu"]).stdout
        ours = source_ncu.read_page(text)
        theirs = source_ncu.read_page((FOLDER / "ncu-source.csv").read_text(encoding="utf-8"))
        self.assertGreater(len(ours), 20)
        self.assertEqual(source_ncu.count_faults(ours, theirs), [])
        self.assertEqual(source_ncu.share_faults(ours, theirs), ([], 0.0))


if __name__ == "__main__":
    unittest.main()
