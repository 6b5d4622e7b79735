#!/usr/bin/env python3
"""The comparison of source pages sees what differs, and takes what ncu printed for what kprof prints of the same."""
import unittest

import harness
import source_ncu

FOLDER = harness.ROOT / "tests/fixtures/source"
PAGE = ('"Kernel Name","{5}",\n"Address","Source","Warp Stall Sampling (All Samples)","Instructions Executed",'
        '"stall_wait"\n'
        '"0x{0:x}","NOP","{1}","{2}","{1}"\n"0x{3:x}","EXIT","{4}","7","0"\n')


def text(base=0, first=500, count=7, second=500, kernel="k"):
    return PAGE.format(base, first, count, base + 16, second, kernel)


def page(**differences):
    return source_ncu.read_pages(text(**differences))[0]


def launches(*firsts):
    """Of a thousand samples each, so many of them at the first instruction."""
    return source_ncu.read_pages("".join(text(first=first, second=1000 - first) for first in firsts))


class Comparison(unittest.TestCase):
    def test_addresses_begin_at_0(self):
        self.assertEqual(list(page(base=0x7f00)), [0, 16])
        self.assertEqual(source_ncu.count_faults(page(), page(base=0x7f00)), [])
        self.assertEqual(source_ncu.differing_rows(page(), page(base=0x7f00)), [])

    def test_reasons_are_added_up_where_their_sum_is_not_there(self):
        row = {"stall_wait": "1,000", "stall_misc": "2", "stall_wait (Not Issued)": "5"}
        self.assertEqual(source_ncu.samples_of({0: row}), {0: 1002})

    def test_pages_are_launches_of_the_first_kernel(self):
        pages = source_ncu.read_pages("==PROF== noise\n" + text() + text(kernel="other") + text(base=32, count=8))
        self.assertEqual([page[0]["Instructions Executed"] for page in pages], ["7", "8"])

    def test_other_counts_are_faults(self):
        self.assertEqual(source_ncu.count_faults(page(), page(count=8)),
                         ["0x0 Instructions Executed: kprof has 7, ncu 8"])
        self.assertEqual(source_ncu.count_faults(page(), {}), ["kprof has 2 instructions, ncu 0"])

    def test_a_column_that_kprof_lacks_is_a_fault(self):
        ours, theirs = page(), page()
        del ours[0]["Instructions Executed"]
        self.assertEqual(source_ncu.count_faults(ours, theirs), ["kprof has no column Instructions Executed"])

    def test_rows_that_differ_are_shown_whole(self):
        ours, theirs = source_ncu.differing_rows(page(), page(count=8))
        self.assertEqual(theirs, "    0x0 ncu: Address 0x0, Source NOP, Warp Stall Sampling (All Samples) 500, "
                                 "Instructions Executed 8, stall_wait 500")
        self.assertIn("kprof: Address 0x0", ours)

    def test_shares_may_differ_by_the_error_of_independent_samples(self):
        self.assertEqual(source_ncu.share_faults(launches(500, 500), launches(520, 520))[0], [])
        faults, largest = source_ncu.share_faults(launches(500, 500), launches(750, 750))
        self.assertEqual(len(faults), 2)
        self.assertAlmostEqual(largest, 25)
        self.assertEqual(source_ncu.share_faults([page()], [page(first=0, second=0)])[0],
                         ["one of them has no samples"])

    def test_shares_may_differ_by_what_they_vary_from_launch_to_launch(self):
        varied = launches(500, 560, 440, 530, 470)
        self.assertEqual(source_ncu.share_faults(varied, launches(600, 660, 540, 630, 570))[0], [])
        self.assertEqual(len(source_ncu.share_faults(launches(*[500] * 5), launches(*[600] * 5))[0]), 2)

    def test_a_report_with_ncus_values_is_the_same(self):
        printed = harness.run([harness.kprof(), "report", FOLDER / "source.kprof", "--page", "source", "-k",
                               "vectorAdd", "--csv", "--csv-layout", "ncu"]).stdout
        ours = source_ncu.read_pages(printed)
        theirs = source_ncu.read_pages((FOLDER / "ncu-source.csv").read_text(encoding="utf-8"))
        self.assertEqual((len(ours), len(theirs)), (1, 1))
        self.assertGreater(len(ours[0]), 20)
        self.assertEqual(source_ncu.count_faults(ours[0], theirs[0]), [])
        self.assertEqual(source_ncu.share_faults(ours, theirs), ([], 0.0))

    def test_commands_end_when_the_time_is_over(self):
        for seconds, told in ((0, "0 s had passed before sleep$"), (0.2, "0.2 s had passed before sleep ended")):
            with self.assertRaisesRegex(harness.Failure, told):
                source_ncu.Clock(seconds).run(["sleep", "100"])
        self.assertEqual(source_ncu.Clock(100).run(["echo", "done"]).stdout, "done\n")


if __name__ == "__main__":
    unittest.main()
