#!/usr/bin/env python3
"""Names of thousands of characters: the summary page and diff shorten them in text and keep what tells them apart;
files for programs and the details page in a pipe have them whole. Lists are as wide as they may be, and pages break no
word that a line has room for.

Usage: check_names.py SOURCE KPROF"""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import html_reports

SOURCE, KPROF = pathlib.Path(sys.argv[1]), sys.argv[2]
KERNELS = ("l1_hits", "l1_misses")
NAMES = [f"void at::native::elementwise_kernel<{'at::native::Functor<float>, ' * 100}at::native::{kind}>(int, float*)"
         for kind in ("CUDAFunctor_add", "CUDAFunctor_mul")]


def run(*arguments):
    done = subprocess.run([KPROF, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.report = pathlib.Path(cls.folder.name) / "long.kprof"
        html_reports.change(SOURCE / "tests/report/findings/recorded-h200.kprof", cls.report,
                            *(("UPDATE kernel SET demangled=?1 WHERE function=?2", [name, kernel])
                              for name, kernel in zip(NAMES, KERNELS)))
        cls.chosen = ["-k", f"regex:^({'|'.join(KERNELS)})$"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def expect_narrow(self, text, width):
        for line in text.splitlines():
            self.assertLessEqual(len(line), width, line)

    def shown_names(self, *arguments):
        """The lines between a kernel's numbers and what limits it, joined."""
        lines = run("report", self.report, "--page", "summary", *self.chosen, *arguments).splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("    at::native::elementwise_kernel<")]
        self.assertEqual(len(starts), 2)
        ends = [next(i for i in range(start, len(lines)) if "Limited by" in lines[i]) for start in starts]
        return [[line.strip() for line in lines[start:end]] for start, end in zip(starts, ends)]

    def test_the_summary_page_has_three_lines_of_a_name_and_what_differs(self):
        """Below its row, which has a shorter one, and in a narrow window below the numbers."""
        for arguments in ([], ["--width", 80], ["--width", 120], ["--width", 70]):
            names = self.shown_names(*arguments)
            for lines in names:
                self.assertLessEqual(len(lines), 3)
                self.assertIn("...", "".join(lines))
            self.assertEqual(sorted("add" in "".join(lines) for lines in names), [False, True])

    def test_a_comparison_without_a_common_kernel_is_short(self):
        """People see the first kernels of each report, or all with --all; programs get all."""
        reports = [SOURCE / "samples/vectorAdd-h200.kprof", SOURCE / "tests/report/findings/recorded-h200.kprof"]
        def compare(*more):
            words = [KPROF, "diff", *map(str, reports), *more]
            return subprocess.run(words, capture_output=True, text=True, check=False)
        short = compare()
        self.assertEqual(short.returncode, 106)
        self.assertIn("no kernel of one name and shape is in both reports", short.stderr)
        self.assertLess(len(short.stdout.splitlines()), 26)
        self.assertIn("In one report only (the first 10 of each; --all shows all)", short.stdout)
        self.assertEqual(len(re.findall("^  new ", compare("--all").stdout, re.MULTILINE)), 73)
        self.assertEqual(len(json.loads(compare("--json").stdout)["unmatched"]), 74)

    def test_wide_lines_have_whole_names(self):
        text = run("report", self.report, "--page", "summary", *self.chosen, "--width", 5000)
        for name in NAMES:
            self.assertIn(name, text)

    def test_programs_get_whole_names(self):
        rows = csv.DictReader(io.StringIO(run("report", self.report, "--page", "summary", "--csv", *self.chosen)))
        self.assertEqual(sorted(row["kernel"] for row in rows), NAMES)
        document = json.loads(run("report", self.report, "--page", "summary", "--json", *self.chosen))
        self.assertEqual(sorted(row["kernel"] for row in document["kernels"]), NAMES)

    def test_the_details_page_in_a_pipe_has_whole_names(self):
        text = run("report", self.report, *self.chosen)
        for name in NAMES:
            self.assertIn(name, text)

    def test_headings_and_lists_have_three_lines_of_a_name(self):
        """Of pages that have a name by itself; in a pipe it is whole."""
        coded = pathlib.Path(self.folder.name) / "coded.kprof"
        html_reports.change(SOURCE / "tests/fixtures/source/source.kprof", coded,
                            ("UPDATE kernel SET demangled=?1", [NAMES[0]]))
        for report, page in ((self.report, "session"), (self.report, "statistics"), (coded, "source")):
            lines = run("report", report, "--page", page, "--width", 80).splitlines()
            starts = [i for i, line in enumerate(lines) if "at::native::elementwise_kernel<" in line]
            self.assertTrue(starts, page)
            for start in starts:
                end = next(i for i in range(start, len(lines)) if "(int, float*)" in " ".join(lines[start:i + 1]))
                self.assertLess(end - start, 4, page)
                self.assertIn("...", "".join(lines[start:end + 1]))
            self.assertIn(NAMES[0], run("report", report, "--page", page))

    def test_diff_keeps_to_the_width(self):
        text = run("diff", self.report, self.report, "--all", "--width", 100)
        self.expect_narrow(text, 100)
        joined = "".join(text.split())
        self.assertIn("unctor_add>(int,float*)", joined)
        self.assertIn("unctor_mul>(int,float*)", joined)
        self.assertIn(NAMES[0], run("diff", self.report, self.report, "--all", "--csv"))


class Brief(unittest.TestCase):
    def test_a_long_row_loses_words_before_what_they_tell(self):
        with tempfile.TemporaryDirectory() as folder:
            report = html_reports.change(
                SOURCE / "tests/report/findings/low-clock-h200.kprof", pathlib.Path(folder) / "low.kprof",
                "INSERT INTO metric SELECT max(id)+1, 'sm__warps_active.avg.pct_of_peak_sustained_active', '%', '', "
                "'ratio' FROM metric", "INSERT INTO value SELECT id, (SELECT max(id) FROM metric), 14.78 FROM launch")
            self.assertIn("\n  Occupancy   14.78 % of 18.75 %; limited by registers and shared memory\n",
                          run("report", report, "--brief"))


class Words(unittest.TestCase):
    """Narrow pages of a report that has every table."""
    REPORT = SOURCE / "samples/vectorAdd-h200.kprof"
    DRAWN = re.compile(r"^ .{14}[|+]|^ +FLOP/s|<-|->")  # no words: plots
    ASIDE = 24  # columns: an indent, and names before a text that never have a line of their own

    def test_narrow_pages_have_whole_words(self):
        for page in ("details", "raw", "summary", "statistics", "session"):
            shown = ["report", self.REPORT, "--page", page, "--all", "--print-kernel-base", "function"]
            wide = set(run(*shown, "--width", 5000).split())
            for width in (40, 46, 54, 60, 80):
                lines = run(*shown, "--width", width).splitlines()
                self.assertLessEqual(max(map(len, lines)), width)
                if page == "summary":  # folds columns that have no value
                    continue
                words = {word for line in lines if not self.DRAWN.search(line) for word in line.split()}
                whole = {word for word in wide if len(word) <= width - self.ASIDE and word.isalpha()}
                self.assertEqual(whole - words, set(), f"{page} at {width} columns")

    def test_many_kernels_keep_to_the_width(self):
        recorded = SOURCE / "tests/report/findings/recorded-h200.kprof"
        for page in ("details", "raw", "summary", "statistics", "session", "brief"):
            for width in (40, 60):
                Names.expect_narrow(self, run("report", recorded, "--page", page, "--width", width), width)


class Lists(unittest.TestCase):
    def test_kernels_that_were_seen_have_a_row_for_each_name(self):
        """Instances of a template have one name, by which --kernel-name takes them all."""
        report = SOURCE / "tests/report/findings/libraries-h200.kprof"
        done = subprocess.run([KPROF, "report", report, "-k", "nosuch"], capture_output=True, text=True, check=False)
        rows = re.findall(r"^kprof: error: +(\d+) x (.*)$", done.stderr, re.MULTILINE)
        self.assertEqual(len({name for _, name in rows}), len(rows))
        self.assertEqual([int(count) for count, _ in rows], sorted((int(count) for count, _ in rows), reverse=True))
        self.assertIn(("5", "setup_floats"), rows)

    def test_lists_keep_to_the_width(self):
        for what in ("sections", "findings", "aliases"):
            text = run("list", what, "--chips", "gh100", "--width", 100)
            Names.expect_narrow(self, text, 100)
            self.assertGreater(max(map(len, text.splitlines())), 70)

    def test_lists_break_no_name_at_80_columns(self):
        for what in ("sections", "findings", "sets"):
            rows = csv.reader(io.StringIO(run("list", what, "--chips", "gh100", "--csv")))
            words = set(run("list", what, "--chips", "gh100", "--width", 80).split())
            next(rows)  # keys, which people do not see
            for row in rows:
                self.assertLessEqual({word for cell in row if "_" in cell for word in cell.split()}, words)

    def test_lists_in_a_pipe_have_a_line_for_each_row(self):
        rows = list(csv.reader(io.StringIO(run("list", "findings", "--csv"))))
        self.assertEqual(len(run("list", "findings").splitlines()), len(rows))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
