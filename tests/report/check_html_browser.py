#!/usr/bin/env python3
"""Opens the HTML pages that kprof writes in a headless Chromium, and uses them as a reader does. Exits with 77 where
there is none. Usage: check_html_browser.py SOURCE_FOLDER KPROF WRITE_FIXTURE"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from browser import Browser, NoBrowser, find
from html_reports import HOSTILE, make_hostile, make_many, write_page

SOURCE, KPROF, WRITE_FIXTURE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SAMPLE = SOURCE / "samples/vectorAdd-h200.kprof"
MANY = 2000
TABLE = "main > section:last-of-type .table"  # of kernels or launches
ROWS = f"[...document.querySelectorAll('{TABLE} tbody tr')].map(row => row.innerText)"


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.place.name)
        fixtures = [folder / "fixture.kprof", folder / "before.kprof", folder / "after.kprof"]
        for path, words in zip(fixtures, ([], ["before"], ["after"])):
            subprocess.run([WRITE_FIXTURE, path, *words], check=True)
        reports = {"sample": SAMPLE, "fixture": fixtures[0], "hostile": make_hostile(SAMPLE, folder / "hostile.kprof"),
                   "many": make_many(SAMPLE, folder / "many.kprof", MANY)}
        cls.pages = {name: str(folder / f"{name}.html") for name in [*reports, "diff"]}
        for name, report in reports.items():
            assert write_page(KPROF, "report", report, "--html", cls.pages[name]).returncode == 0
        assert write_page(KPROF, "diff", *fixtures[1:], "--html", cls.pages["diff"]).returncode == 0
        cls.fixture_report = fixtures[0]

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.place.cleanup()

    def open(self, name, fragment="", **view):
        self.browser.open(self.pages[name] + fragment, **view)
        self.browser.settle()

    def tearDown(self):
        self.browser.settle()
        self.assertEqual(self.browser.requests(), [])
        self.assertEqual(self.browser.complaints(), [])

    def evaluate(self, expression):
        return self.browser.evaluate(expression)

    def click(self, expression):
        """A click of the mouse in the middle of an element."""
        box = self.evaluate(f"(() => {{ const e = {expression}; e.scrollIntoView({{block: 'center'}}); "
                            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.browser.mouse(kind, *box, button="none" if kind == "mouseMoved" else "left", clickCount=1)
        self.browser.settle()

    def button(self, text):
        return f"[...document.querySelectorAll('button, a')].find(b => b.textContent.trim() === {json.dumps(text)})"

    def test_a_table_sorts_and_filters(self):
        self.open("many")
        self.click(self.button("By launch"))
        rows = self.evaluate(ROWS)
        self.assertEqual(len(rows), 50)
        self.assertTrue(rows[0].startswith("0\t"), rows[0])
        self.click(self.button("Time"))
        self.assertTrue(self.evaluate(ROWS)[0].startswith(f"{MANY - 1}\t"))
        self.click(self.button("Time"))
        self.assertTrue(self.evaluate(ROWS)[0].startswith("0\t"))
        self.assertEqual(self.evaluate("document.querySelector('th[aria-sort=ascending]').innerText.trim()"), "Time")
        self.click(self.button("Next"))
        self.assertTrue(self.evaluate(ROWS)[0].startswith("50\t"))
        self.click(f"document.querySelector('{TABLE} input[type=search]')")
        self.browser.call("Input.insertText", text="1234 vectoradd")
        self.browser.settle()
        rows = self.evaluate(ROWS)
        self.assertEqual(len(rows), 1)
        self.assertTrue(rows[0].startswith("1234\t"))
        state = self.evaluate(f"document.querySelector('{TABLE} [role=status]').textContent")
        self.assertEqual(state, f"1 of {MANY} rows")

    def test_occupancy_curves_are_those_of_the_json(self):
        self.open("sample", "#launch-0/Occupancy")
        done = subprocess.run([KPROF, "report", SAMPLE, "--json"], capture_output=True, text=True, check=True)
        sections = json.loads(done.stdout)["launches"][0]["sections"]
        [curves] = [section["what_if"] for section in sections if "what_if" in section]
        self.assertEqual([curve["id"] for curve in curves],
                         ["block_size", "registers_per_thread", "shared_memory_per_block"])
        shown = self.evaluate("[...document.querySelectorAll('.what-if figure')].map(figure => "
                              "[...figure.querySelectorAll('tbody tr')].map(row => "
                              "[...row.children].map(cell => cell.textContent)))")
        def name(step):
            return f"{step['from']:,}" + (f" to {step['to']:,}" if step["from"] != step["to"] else "")
        self.assertEqual([[row[0] for row in rows] for rows in shown],
                         [[name(step) for step in curve["steps"]] for curve in curves])
        for rows, curve in zip(shown, curves):
            for row, step in zip(rows, curve["steps"]):
                self.assertAlmostEqual(float(row[1].split()[0]), step["occupancy_pct"], delta=0.0051)
        self.assertEqual(self.evaluate("document.querySelectorAll('.what-if svg .now').length"), 3)

    def test_the_roofline_shows_points_zooms_and_hides(self):
        self.open("sample")
        points = "document.querySelectorAll('.chart svg path[fill^=\"#\"]:not([fill=\"none\"])')"
        box = self.evaluate("(() => { const b = document.querySelector('.chart').getBoundingClientRect(); "
                            "return [b.x, b.y, b.width, b.height]; })()")
        marks = self.evaluate(f"[...{points}].map(p => p.getBoundingClientRect())"
                              ".filter(b => b.width > 4 && b.width < 16)"
                              ".map(b => [b.x + b.width / 2, b.y + b.height / 2])")
        self.assertEqual(len(marks), 3)
        self.browser.mouse("mouseMoved", marks[-1][0], marks[-1][1])
        self.browser.settle()
        tip = self.evaluate("document.querySelector('.tip')?.innerText ?? ''")
        self.assertIn("vectorAdd(float const*, float const*, float*)", tip)
        self.assertIn("of the roof, limited by memory", tip)
        labels = "[...document.querySelectorAll('.chart svg text')].map(t => t.textContent).join('|')"
        before = self.evaluate(labels)
        self.browser.mouse("mouseWheel", box[0] + box[2] / 2, box[1] + box[3] / 2, deltaX=0, deltaY=-240)
        self.browser.settle()
        zoomed = self.evaluate(labels)
        self.assertNotEqual(zoomed, before)
        self.click(self.button("Reset"))
        self.assertEqual(self.evaluate(labels), before)
        self.click("document.querySelector('.toggle input')")
        self.assertEqual(self.evaluate("document.querySelectorAll('.toggle input:checked').length"), 2)
        self.assertEqual(len(self.evaluate(f"[...{points}].map(p => p.getBoundingClientRect().width)"
                                           ".filter(w => w > 4 && w < 16)")), 2)

    def test_numbers_are_those_of_the_summary(self):
        text = subprocess.run([KPROF, "report", self.fixture_report, "--page", "statistics", "--csv"],
                              capture_output=True, text=True, check=True).stdout
        expected = {(row["kernel"], row["metric"]): float(row["average"]) for row in csv.DictReader(io.StringIO(text))
                    if row["average"]}
        self.open("fixture")
        rows = self.evaluate(f"[...document.querySelectorAll('{TABLE} tbody tr')]"
                             ".map(row => [...row.cells].map(cell => cell.innerText.trim()))")
        metrics = self.evaluate(f"[...document.querySelectorAll('{TABLE} thead button')].map(button => button.title)")
        checked = 0
        for row in rows:
            for metric, shown in zip(metrics, row):
                value = expected.get((row[0], metric))
                if value is not None and shown.endswith("%"):
                    self.assertAlmostEqual(float(shown.split()[0]), value, delta=0.00501)
                    checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_links_lead_to_kernels_launches_and_sections(self):
        self.open("sample", "#kernel-0")
        self.assertIn("vectorAdd(", self.evaluate("document.querySelector('h1').textContent"))
        self.assertIn("Limited by", self.evaluate("document.querySelector('.verdict').innerText"))
        self.open("sample", "#launch-0/WarpStateStats")
        self.assertEqual(self.evaluate("document.activeElement.id"), "section-WarpStateStats")
        self.assertIn("Long Scoreboard", self.evaluate("document.activeElement.innerText"))
        self.open("sample", "#launch-99999999")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), "Not in this report")

    def test_one_can_go_without_a_mouse(self):
        self.open("sample")
        self.browser.press("Tab", 9)
        self.assertEqual(self.evaluate("document.activeElement.className"), "skip")
        self.evaluate(f"{self.button('Launches')}.focus()")
        self.browser.press("Enter", 13)
        self.browser.settle()
        sorted_by = self.evaluate("document.querySelector('th[aria-sort=descending]').innerText.trim()")
        self.assertEqual(sorted_by, "Launches")
        self.assertEqual(self.evaluate("document.activeElement.textContent"), "Launches")

    def test_readers_of_screens_find_names(self):
        for fragment in ("", "#launch-0", "#run"):
            self.open("sample", fragment)
            self.assertEqual(self.evaluate("document.querySelectorAll('h1').length"), 1)
            unnamed = ("[...document.querySelectorAll('table')].filter(t => !t.caption?.textContent).length + "
                       "[...document.querySelectorAll('[role=img]')].filter(i => !i.ariaLabel).length + "
                       "[...document.querySelectorAll('input, select')].filter(i => !i.labels.length).length + "
                       "[...document.querySelectorAll('button')].filter(b => !b.textContent && !b.ariaLabel).length")
            self.assertEqual(self.evaluate(unnamed), 0)

    def test_narrow_windows_need_no_sideways_scrolling(self):
        for fragment in ("", "#launch-0", "#run"):
            self.open("sample", fragment, width=400)
            self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), 400)

    def test_it_is_dark_where_the_reader_wants_that(self):
        paper = "getComputedStyle(document.body).backgroundColor"
        self.open("sample", prefers_color_scheme="dark")
        dark = self.evaluate(paper)
        self.open("sample", prefers_color_scheme="light")
        self.assertNotEqual(self.evaluate(paper), dark)
        self.open("sample", prefers_color_scheme="dark", media="print")
        self.assertEqual(self.evaluate(paper), "rgb(255, 255, 255)")

    def test_hostile_names_are_text(self):
        for fragment in ("", "#launch-0", "#kernel-0", "#run"):
            self.open("hostile", fragment)
            self.assertEqual(self.evaluate("document.querySelectorAll('main img, main script').length"), 0)
            self.assertIn("<img src=x", self.evaluate("document.querySelector('main').textContent"))
        self.assertNotEqual(self.evaluate("document.title"), "broken")
        self.assertIn("onerror", HOSTILE)

    def test_a_comparison(self):
        self.open("diff")
        text = self.evaluate("document.querySelector('main').innerText")
        self.assertIn("Verdicts", text)
        self.assertEqual(self.evaluate("document.querySelector('.word.bad').textContent"), "worse")
        self.click("document.querySelector('details.group summary')")
        self.assertIn("Duration rose", self.evaluate("document.querySelector('details[open]').innerText"))

    def test_a_page_that_was_cut_short_says_so(self):
        whole = pathlib.Path(self.pages["sample"])
        text = whole.read_text()
        cut = whole.with_name("cut.html")
        place = text.index('"launches"')
        cut.write_text(text[:place] + text[text.index("</script>", place):])
        self.browser.open(str(cut))
        self.browser.settle()
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), "This report is damaged")


if __name__ == "__main__":
    if not find():
        print("skipped: there is no Chromium")
        sys.exit(77)
    try:
        Pages.browser = Browser()
    except NoBrowser as reason:
        print(f"skipped: Chromium does not start on this machine: {reason}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
