#!/usr/bin/env python3
"""Opens the HTML pages that kprof writes in a headless Chromium, and uses them as a reader does. Exits with 77 where
there is none. Usage: check_html_browser.py SOURCE_FOLDER KPROF WRITE_FIXTURE"""
import csv
import functools
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from browser import Browser, NoBrowser, find
from html_reports import GENERATED, HOSTILE, KERNELS, OTHER_MEMORY, SHARED, change, data_of, make_hostile, \
    make_kernels, make_deep_stacks, make_long_source, make_many, make_memory, make_stacks, write_page
from tries import TRIES_SOME, some

SOURCE, KPROF, WRITE_FIXTURE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SAMPLE = SOURCE / "samples/vectorAdd-h200.kprof"
RECORDED = SOURCE / "tests/report/findings/recorded-h200.kprof"
MEASURED = SOURCE / "tests/fixtures/source"  # instructions, and the sources of some
MANY, RANKS = 2000, 5
FORMULA = "=1+1"
COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
LONG_KERNEL = "void at::" + "native<int, " * 250 + "float>" # 3,000 letters
LONG = 5000
TABLE = ":is(main > section:first-of-type .table, main > .table)"  # of kernels or launches
SIZES = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "%": 1}
WARPS = "sm__warps_active.avg.pct_of_peak_sustained_active"
# A page takes a browser a second of processor time, so for each change tests/run.sh tries what most readers use, and a
# part of what others do.
seldom = unittest.skipIf(TRIES_SOME, "tests/run.sh all")
ROWS = f"[...document.querySelectorAll('{TABLE} tbody tr')].map(row => row.innerText)"
LAST_KERNEL = "SELECT id FROM launch WHERE kernel_id = (SELECT max(kernel_id) FROM launch)"
IN_TURN = []  # names of tests


def in_turn(test):
    """Each change runs some of these tests."""
    IN_TURN.append(test.__name__)

    @functools.wraps(test)
    def run(self):
        if test.__name__ not in chosen():
            self.skipTest("another commit's")
        test(self)
    return run


@functools.lru_cache(maxsize=None)
def chosen():
    return some(IN_TURN, 2)


# Words of rows' headings that take more than one line.
BROKEN_WORDS = r"""[...document.querySelectorAll('details[open] tbody th')].flatMap(cell => {
    const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
    return [...text.textContent.matchAll(/\S+/g)].filter(word => {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map(word => word[0]);
})"""


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.place.name)
        fixtures = [folder / "fixture.kprof", folder / "before.kprof", folder / "after.kprof",
                    folder / "multiplexed.kprof", folder / "census.kprof"]
        for path, words in zip(fixtures, ([], ["before"], ["after"], ["multiplexed"], ["census"])):
            subprocess.run([WRITE_FIXTURE, path, *words], check=True)
        reports = {"sample": SAMPLE, "recorded": RECORDED, "fixture": fixtures[0],
                   "multiplexed": fixtures[3],
                  "census": change(fixtures[4], folder / "alone.kprof", "DELETE FROM value", "DELETE FROM launch"),
                   "hostile": make_hostile(SAMPLE, folder / "hostile.kprof"),
                   "many": make_many(SAMPLE, folder / "many.kprof", MANY),
                   "kernels": make_kernels(SAMPLE, folder / "kernels.kprof"),
                   "instructions": SAMPLE.parent / "source-h200.kprof",
                   "unmeasured": change(make_kernels(SAMPLE, folder / "measured.kprof"), folder / "unmeasured.kprof",
                                        f"DELETE FROM value WHERE launch_id IN ({LAST_KERNEL})",
                                        f"UPDATE launch SET measured = 0, reason = 'full' WHERE id IN ({LAST_KERNEL})"),
                   "names": change(SAMPLE, folder / "names.kprof", ("UPDATE kernel SET demangled = ?1, function = ?1",
                                                                    [LONG_KERNEL])),
                   "memory": make_memory(SAMPLE, folder / "memory.kprof"),
                   "deep": make_deep_stacks(KPROF, SAMPLE.parent / "repeats-h200.kprof", folder / "deep.kprof"),
                   "stacks": make_stacks(KPROF, SAMPLE.parent / "repeats-h200.kprof", folder / "stacks.kprof"),
                   "parts": make_stacks(KPROF, fixtures[3], folder / "parts.kprof"),
                   "source": MEASURED / "source.kprof",
                   "both": make_stacks(KPROF, MEASURED / "source.kprof", folder / "both.kprof"),
                   "ptx": SAMPLE.parent / "transpose-before-h200.kprof",
                   "ptx-alone": change(SAMPLE.parent / "transpose-before-h200.kprof", folder / "ptx-alone.kprof",
                                       "DELETE FROM code_line"),
                   "long": make_long_source(MEASURED / "source.kprof", folder / "long.kprof", LONG),
                   "ranges": change(SAMPLE, folder / "ranges.kprof",
                                    "UPDATE launch SET grid_x = 0, grid_y = 0, grid_z = 0, block_x = 0, block_y = 0, "
                                    "block_z = 0, replay_mode = 'range'",
                                    "INSERT INTO metric SELECT max(id) + 1, 'launch__range_launches', '', '', 'launch' "
                                    "FROM metric",
                                    "INSERT INTO value SELECT id, (SELECT max(id) FROM metric), 6 FROM launch",
                                    "UPDATE kernel SET demangled = 'step', function = 'step'"),
                   "huge": change(SAMPLE, folder / "huge.kprof", f"UPDATE kernel SET demangled = '{FORMULA}'",
                                  ("UPDATE value SET value = 123456789e15 WHERE metric_id = (SELECT id FROM metric "
                                   "WHERE name = ?)", [COMPUTE])),
                   "less": change(SAMPLE, folder / "less.kprof", ("DELETE FROM value WHERE metric_id = (SELECT id FROM "
                                                                  "metric WHERE name = ?)", [WARPS]))}
        other = change(SAMPLE, folder / "other.kprof", "UPDATE device SET name = 'NVIDIA H100', uuid = 'other'",
                       "UPDATE process SET pid = pid + 1", "UPDATE run SET start_unix_ns = start_unix_ns + 1")
        reports["merged"] = folder / "merged.kprof"
        ranks = [change(other, folder / f"rank{i}.kprof", ("UPDATE process SET host = ?", [f"node{i}"]),
                        f"UPDATE run SET start_unix_ns = start_unix_ns + {i}") for i in range(1, RANKS)]
        subprocess.run([KPROF, "merge", "-q", "-o", reports["merged"], reports["kernels"], *ranks], check=True)
        cls.pages = {name: str(folder / f"{name}.html") for name in [*reports, "diff", "same", "moves", "alone"]}
        for name, report in reports.items():
            assert write_page(KPROF, "report", report, "--html", cls.pages[name]).returncode == 0
        assert write_page(KPROF, "diff", *fixtures[1:3], "--html", cls.pages["diff"]).returncode == 0
        assert write_page(KPROF, "diff", *fixtures[1:2] * 2, "--html", cls.pages["same"]).returncode == 0
        moved = change(MEASURED / "source.kprof", folder / "moved.kprof",
                       "UPDATE instruction_value SET value = 3 * value WHERE offset > 128 AND metric_id IN "
                       "(SELECT id FROM metric WHERE name LIKE '%pcsamp%')")
        assert write_page(KPROF, "diff", MEASURED / "source.kprof", moved, "--html",
                          cls.pages["moves"]).returncode == 0
        transposed = [SAMPLE.parent / f"transpose-{name}-h200.kprof" for name in ("before", "after")]
        assert write_page(KPROF, "diff", *transposed, "--html", cls.pages["alone"]).returncode == 0
        cls.reports = reports

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
        self.assertEqual(self.evaluate("document.activeElement.textContent"), "Next")
        state = f"document.querySelector('{TABLE} [role=status]').textContent" # paper has it, too
        self.assertEqual(self.evaluate(state), f"{MANY:,} rows; here are rows 51 to 100")
        self.click(f"document.querySelector('{TABLE} input[type=search]')")
        self.browser.call("Input.insertText", text="1234 dram")
        self.browser.settle()
        rows = self.evaluate(ROWS)
        self.assertEqual(len(rows), 1)
        self.assertTrue(rows[0].startswith("1234\t"))
        self.assertEqual(self.evaluate(state), f"1 of {MANY:,} rows")

    @seldom
    def test_what_is_worth_most_is_called_as_in_the_json(self):
        done = subprocess.run([KPROF, "report", RECORDED, "--json"], capture_output=True, text=True, check=True)
        expected = {}
        for launch in json.loads(done.stdout)["launches"]:
            names = {finding["id"]: finding["name"] for finding in launch["findings"]}
            best = launch["verdict"]["finding"]
            if launch["verdict"]["little_to_gain"] == "yes":
                told = "no large gain"
            else:
                told = names[best["id"]] if best else "nothing"
            expected[launch["kernel"]["function"]] = told
        self.open("recorded")
        for view in "By kernel", "By launch":
            self.click(self.button(view))
            column = self.evaluate(f"[...document.querySelectorAll('{TABLE} thead th')]"
                                   ".findIndex(cell => cell.innerText.trim() === 'Worth most')")
            shown = []
            for _ in range(2):
                shown += self.evaluate(f"[...document.querySelectorAll('{TABLE} tbody tr')].map(row => "
                                       "[row.querySelector('a.name[title*=\"(\"]').title, "
                                       f"row.children[{column}].innerText])")
                self.click(self.button("Next"))
            self.assertEqual(len(shown), len(expected))
            for kernel, worth in shown:
                name = expected[kernel.split("(")[0]]
                self.assertEqual(worth[:len(name)], name, kernel)
                self.assertRegex(worth[len(name):], "^$" if name == "no large gain" else "^(\n*up to [\\d.]+\u00a0%)?$")

    @seldom
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
        self.evaluate("document.querySelector('.chart').scrollIntoView()")
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
        self.assertEqual(self.evaluate(labels), before) # it scrolls the page
        self.browser.mouse("mouseWheel", box[0] + box[2] / 2, box[1] + box[3] / 2, deltaX=0, deltaY=-240, modifiers=2)
        self.browser.settle()
        zoomed = self.evaluate(labels)
        self.assertNotEqual(zoomed, before)
        self.click(self.button("Reset"))
        self.assertEqual(self.evaluate(labels), before)
        self.click("document.querySelector('.toggle input')")
        self.assertEqual(self.evaluate("document.querySelectorAll('.toggle input:checked').length"), 2)
        self.assertEqual(len(self.evaluate(f"[...{points}].map(p => p.getBoundingClientRect().width)"
                                           ".filter(w => w > 4 && w < 16)")), 2)

    def assert_labels_apart(self, texts, width):
        labels = [text for text in texts if re.fullmatch(r"[a-z_0-9]{4,}\u2026?", text[0])]
        self.assertGreater(len({label[0] for label in labels}), 3)
        for i, (name, left, top, right, bottom) in enumerate(labels):
            for other, *box in labels[i + 1:]:
                self.assertFalse(left < box[2] - 1 and box[0] < right - 1 and top < box[3] - 2 and box[1] < bottom - 2,
                                 f"{name} and {other} at {width}")

    @seldom
    def test_points_beyond_the_roofline_stand_at_its_edge(self):
        """Its view ends at 1,000 FLOP/byte, its roofs begin at its bottom, and no label covers another."""
        for width in 1280, 400:
            labels = ("[...document.querySelectorAll('.chart svg text')].map(t => { const b = "
                      "t.getBoundingClientRect(); return [t.textContent, b.x, b.y, b.right, b.bottom]; })")
            self.open("kernels", width=width)
            self.assert_labels_apart(self.evaluate(labels), width)
            self.open("recorded", width=width)
            texts = self.evaluate(labels)
            self.assertIn("1k", [text[0] for text in texts])
            self.assertFalse([text for text, *_ in texts if text.endswith("M") or text in ("10k", "100k")])
            self.assert_labels_apart(texts, width)
            box = self.evaluate("(() => { const b = document.querySelector('.chart').getBoundingClientRect(); "
                                "return [b.left, b.right]; })()")
            arrows = self.evaluate("[...document.querySelectorAll('.chart svg path[fill^=\"#\"]')]"
                                   ".map(p => p.getBoundingClientRect()).filter(b => b.width > 9 && b.width < 20)"
                                   ".map(b => [b.left, b.right])")
            self.assertGreater(len(arrows), 5)
            for left, right in arrows:
                self.assertGreater(left, box[1] - 60)
                self.assertLess(right, box[1])
        self.open("sample", "#launch-0")
        self.assertLessEqual({"DRAM", "L2", "L1"}, set(self.evaluate(
            "[...document.querySelectorAll('.chart svg text')].map(t => t.textContent)")))

    @in_turn
    def test_a_census_alone_has_its_table_on_the_overview(self):
        self.open("census")
        text = self.evaluate("document.body.innerText")
        self.assertIn("No launch was measured", text)
        self.assertIn("vectorAdd(float const*", text)
        self.assertNotIn("0 kernels", text)

    @in_turn
    def test_launches_lead_to_their_neighbours(self):
        self.open("recorded", "#launch-3")
        steps = "[...document.querySelectorAll('.steps a')].map(a => [a.textContent, a.getAttribute('href')])"
        (back, all_of_it, forth) = self.evaluate(steps)
        self.assertEqual([back[1], all_of_it[0], forth[1]], ["#launch-2", "All launches of this kernel", "#launch-4"])
        self.assertLess(self.evaluate("document.querySelector('.steps').getBoundingClientRect().bottom"), 200)
        self.click("document.querySelector('.steps a')")
        self.assertEqual(self.evaluate("location.hash"), "#launch-2")
        self.open("recorded", "#launch-0")
        self.assertEqual([step[1] for step in self.evaluate(steps)][1:], ["#launch-1"])
        self.open("sample", "#launch-0")
        self.assertEqual(len(self.evaluate(steps)), 1)

    @seldom
    def test_sections_without_work_are_one_line_at_the_end(self):
        self.open("sample", "#launch-0/SpeedOfLight_HierarchicalTensorRooflineChart")
        [line] = self.evaluate("[...document.querySelectorAll('.idle')].map(line => line.textContent)")
        self.assertTrue(line.startswith("No work: GPU Speed Of Light Hierarchical Roofline (Double Precision), "))
        self.assertEqual(self.evaluate("document.activeElement.textContent"),
                         "GPU Speed Of Light Hierarchical Roofline (Tensor Core)")
        headings = self.evaluate("[...document.querySelectorAll('main h3')].map(h => h.textContent)")
        self.assertFalse([name for name in headings if "Double" in name])
        self.assertIn("GPU Speed Of Light Hierarchical Roofline (Single Precision)", headings)

    @seldom
    def test_the_width_is_used_and_bars_align(self):
        self.open("sample", "#launch-0")
        tops = self.evaluate("[...document.querySelectorAll('.finding')].map(f => f.getBoundingClientRect().top)")
        self.assertEqual(tops[0], tops[1])
        starts = self.evaluate("[...document.querySelectorAll('.tables table')].map(table => "
                               "[...new Set([...table.querySelectorAll('.fill')].map(fill => "
                               "fill.closest('td').cellIndex + ' ' + fill.getBoundingClientRect().left))])")
        self.assertTrue(any(starts))
        for places in starts:
            self.assertEqual(len({place.split()[0] for place in places}), len(places), places)
        self.open("sample", "#launch-0", width=400)
        self.assertEqual(len(set(self.evaluate("[...document.querySelectorAll('.finding')].map(f => "
                                               "f.getBoundingClientRect().left)"))), 1)

    def assert_fits(self, what):
        """The page is as wide as the window, where nothing hides below its scroll bar."""
        widths = self.evaluate("(page => [page.scrollWidth, page.clientWidth])(document.documentElement)")
        self.assertEqual(*widths, what)

    def summary(self, name):
        text = subprocess.run([KPROF, "report", self.reports[name], "--page", "summary", "--csv"], capture_output=True,
                              text=True, check=True).stdout
        return list(csv.DictReader(io.StringIO(text)))

    def cells(self):
        """The rows of the table that is shown, by the labels of its columns."""
        labels = self.evaluate(f"[...document.querySelectorAll('{TABLE} thead button')].map(b => b.textContent)")
        rows = self.evaluate(f"[...document.querySelectorAll('{TABLE} tbody tr')]"
                             ".map(row => [...row.cells].map(cell => cell.innerText.trim()))")
        return [dict(zip(labels, row)) for row in rows]

    @in_turn
    def test_numbers_are_those_of_the_summary(self):
        keys = {"Gain up to": "gain_pct", "Of time": "time_share_pct", "Time": "time", "Launches": "launches",
                "Minimum": "minimum", "Median": "median", "Maximum": "maximum", "Compute": "compute_pct",
                "Memory": "memory_pct"}
        for name in ("kernels", "fixture"):
            self.open(name)
            shown, expected = self.cells(), self.summary(name)
            self.assertEqual([row["Kernel"].split("\n")[0] for row in shown], [row["kernel"] for row in expected])
            for cells, row in zip(shown, expected):
                for label, key in keys.items():
                    number, unit = (cells[label].split() + ["%"])[:2]
                    self.assertAlmostEqual(float(number) * SIZES[unit], float(row[key]), delta=0.00501 * SIZES[unit])
                for label, key, told in (("Limited by", "limit", "busiest unit {}"),
                                         ("Top stall", "stall", "{} of time"),
                                         ("Occupancy limit", "occupancy", "{} of warps fit")):
                    if not row[key]:
                        self.assertEqual(cells.get(label, "n/a"), "n/a")
                        continue
                    name, note = cells[label].split("\n")
                    self.assertEqual(name, row[key])
                    share = re.fullmatch(told.format("([\\d.]+)\u00a0%"), note) # in one line
                    self.assertAlmostEqual(float(share[1]), float(row[f"{key}_pct"]), delta=0.00501)
                self.assertAlmostEqual(float(cells["Worth most"].split()[-2]), float(row["finding_gain_pct"]),
                                       delta=0.00501)

    @seldom
    def test_numbers_are_written_as_in_text(self):
        """Also those that are small, and those that are not known: these have no bar, which would be one of 0."""
        text = subprocess.run([KPROF, "report", self.reports["sample"], "--all"], capture_output=True, text=True,
                              check=True).stdout
        text = " ".join(text.split())
        self.open("sample", "#launch-0")
        shown = self.evaluate("[...document.querySelectorAll('main section section td.number')]"
                              ".filter(cell => !cell.closest('.memory')).map(cell => cell.textContent.trim())"
                              ".filter(Boolean)")
        self.assertGreater(len(shown), 100)
        self.assertEqual([number for number in shown if number not in text], [])
        self.assertTrue([number for number in shown if "e-0" in number])
        self.assertIn("n/a", shown)
        self.assertEqual(self.evaluate("[...document.querySelectorAll('.bar')].filter(bar => "
                                       "bar.textContent === 'n/a' && bar.querySelector('.fill')).length"), 0)

    @seldom
    def test_long_names_break_where_they_have_parts(self):
        self.open("fixture", width=400)
        name = "[...document.querySelectorAll('a.name')].find(a => a.textContent.startsWith('void at::native::'))"
        self.assertIn("void at::<wbr>native::<wbr>", self.evaluate(f"{name}.innerHTML"))
        self.assertIn("multiplexed, 1 sample; 197 more launches of the kernel not counted here; 1 of 2 launches not "
                      "measured",
                      self.evaluate(f"{name}.closest('th').innerText").replace("\n", " "))

    @in_turn
    def test_multiplexed_launches_tell_what_their_values_are_of(self):
        self.open("multiplexed")
        self.assertIn("12 launches of 2 kernels", self.evaluate("document.querySelector('main').innerText"))
        self.click(self.button("By launch"))
        self.assertEqual([" ".join(cells["Launch"].split()) for cells in self.cells()],
                         ["0", "1 to 8 8 multiplexed, 3 samples", "9 to 10 2 multiplexed, 1 sample",
                          "11 1 multiplexed, no whole sample"])
        self.open("multiplexed", "#launch-1")
        shown = " ".join(self.evaluate("document.querySelector('main').innerText").split())
        for text in ("Launches 1 to 8", "8 multiplexed: medians of 3 samples of 9 passes",
                     "1 of 4 samples is set apart: the passes disagree", "62.46 us ± 12.50 %",
                     "± is the median distance of the samples from the median"):
            self.assertIn(text, shown)
        self.open("fixture")
        self.click(self.button("By launch"))
        missing = [cells for cells in self.cells() if "not measured" in cells["Launch"]]
        self.assertEqual([cells["Worth most"] for cells in missing], ["n/a"])
        self.assertIn("\n1 launch not measured: a graph sets or copies memory",
                      self.evaluate("document.body.innerText"))
        self.assertIn("; 197 more launches not counted.", self.evaluate("document.querySelector('main').innerText"))

    @in_turn
    def test_nobody_knows_what_is_worth_most_of_a_kernel_that_was_not_measured(self):
        self.open("unmeasured")
        missing = [cells for cells in self.cells() if "not measured" in cells["Kernel"]]
        self.assertEqual([cells["Worth most"] for cells in missing], ["n/a"])
        self.click(self.button("By launch"))
        missing = [cells for cells in self.cells() if "not measured" in cells["Launch"]]
        self.assertEqual({cells["Worth most"] for cells in missing}, {"n/a"})
        self.open("unmeasured", f"#launch-{missing[0]['Launch'].split()[0]}")
        self.assertNotIn("Verdict", self.evaluate("document.querySelector('main').innerText"))

    @in_turn
    def test_a_launch_with_instructions_alone_has_its_verdict(self):
        self.open("instructions")
        self.click(self.button("By launch"))
        missing = [cells for cells in self.cells() if "not measured" in cells["Launch"]]
        self.assertEqual([cells["Worth most"] for cells in missing], ["Accesses are not coalesced"])
        self.open("instructions", f"#launch-{missing[0]['Launch'].split()[0]}")
        shown = self.evaluate("document.querySelector('main').innerText")
        for text in ("Long Scoreboard: 98.15", "Findings (3)", "memory.cu:14"):
            self.assertIn(text, shown)

    @seldom
    def test_kernels_sort_by_each_column(self):
        self.open("kernels")
        first = self.evaluate("document.querySelector('th[aria-sort=descending]').innerText.trim()")
        self.assertEqual(first, "Gain up to")
        rows = self.summary("kernels")
        for label, key in {"Median": "median", "Memory": "memory_pct", "Launches": "launches",
                           "Top stall": "stall_pct", "Occupancy limit": "occupancy_pct",
                           "Worth most": "finding_gain_pct"}.items():
            self.click(self.button(label))
            best = max(rows, key=lambda row, key=key: float(row[key]))
            self.assertTrue(self.cells()[0]["Kernel"].startswith(best["kernel"][:20]), label)
        self.click(self.button("Limited by"))
        limits = [cells["Limited by"].split("\n")[0] for cells in self.cells()]
        self.assertEqual(limits, sorted(limits, key=str.lower))
        self.assertGreater(len(set(limits)), 2)
        self.click(f"document.querySelector('{TABLE} input[type=search]')")
        self.browser.call("Input.insertText", text="LATENCY narrow")
        self.browser.settle()
        self.assertEqual({cells["Limited by"].split("\n")[0] for cells in self.cells()}, {"latency"})

    @in_turn
    def test_a_kernel_shows_its_median_launch(self):
        self.open("kernels")
        name = KERNELS[5]
        self.click(self.button(name))
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), name)
        data = data_of(pathlib.Path(self.pages["kernels"]))[1]["parts"][-1]
        [time] = [i for i, metric in enumerate(data["metrics"]) if metric["name"] == "gpu__time_duration.sum"]
        own = sorted((launch["values"][time], launch["id"]) for launch in data["launches"]
                     if data["kernels"][launch["kernel"]]["name"] == name)
        self.assertEqual(len(own), 6)
        self.assertEqual(len(self.evaluate(ROWS)), 6)
        heads = self.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
        self.assertEqual(heads, ["6 launches", f"Launch {own[2][1]}, the median by duration"])
        view = self.evaluate("location.hash")
        self.click("[...document.querySelectorAll('.contents a')].find(a => a.textContent === 'Occupancy')")
        self.assertEqual(self.evaluate("location.hash"), f"{view}/Occupancy")
        self.assertEqual(self.evaluate("document.activeElement.id"), "section-Occupancy")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), name)

    @seldom
    def test_odd_shares_are_explained_as_in_text(self):
        for kernel in ("atomic_one_address", "tiny_kernel", "dram_bound_sum"):
            done = subprocess.run([KPROF, "report", RECORDED, "-k", kernel, "--width", "1000"], capture_output=True,
                                  text=True, check=True)
            expected = re.findall(r"^ *(.* above each part .*|Shares of more .*)$", done.stdout, re.MULTILINE)
            launch = re.search(r"^  Launch (\d+),", done.stdout, re.MULTILINE)[1]
            self.open("recorded", f"#launch-{launch}")
            told = self.evaluate("[...document.querySelectorAll('p.zeros')].map(line => line.textContent)"
                                 ".filter(text => /above each part|^Shares of more/.test(text))")
            self.assertEqual(told, expected, kernel)
        self.open("recorded", "#launch-48")
        self.assertIn("gr__cycles_active.sum 26.02 %", self.evaluate("document.querySelector('.facts').innerText"))

    @seldom
    def test_a_verdict_stands_once_on_the_page_of_a_kernel(self):
        """That on all its launches above that on the median one, or that on its only launch."""
        for name, kernel, count in ("kernels", 5, 2), ("recorded", 0, 1):
            self.open(name, f"#kernel-{kernel}")
            self.assertEqual(self.evaluate("[...document.querySelectorAll('main dt')].map(label => label.textContent)"
                                           ".filter(text => text === 'Top stall').length"), count)

    @seldom
    def test_a_kernel_has_a_row_for_each_kind_of_device(self):
        self.open("merged")
        rows = [cells for cells in self.cells() if cells["Kernel"].startswith("vectorAdd")]
        self.assertEqual({cells["Device"] for cells in rows}, {"NVIDIA H200", "NVIDIA H100"})
        for device in ("NVIDIA H200", "NVIDIA H100"):
            self.open("merged")
            row = f"[...document.querySelectorAll('{TABLE} tbody tr')].find(row => " \
                  f"row.innerText.includes('vectorAdd') && row.innerText.includes('{device}'))"
            self.click(f"{row}.querySelector('a')")
            self.assertIn(device, self.evaluate("document.querySelector('.facts').innerText"))

    @in_turn
    def test_merged_reports_show_how_even_their_ranks_are(self):
        """A row for each kernel, which leads to it; its launches tell their process. Many processes are a table."""
        done = subprocess.run([KPROF, "report", self.reports["merged"], "--page", "sources", "--json"],
                              capture_output=True, text=True, check=True)
        rows = json.loads(done.stdout)["kernels"]
        self.open("merged")
        table = ("[...document.querySelectorAll('table')].find(t => t.caption.textContent === "
                 "'Kernels over the reports')")
        shown = self.evaluate(f"[...{table}.tBodies[0].rows].map(row => [0, 2, 7].map(i => row.cells[i].innerText))")
        self.assertEqual(shown, [[row["kernel"], str(row["sources"]), row["slowest"]] for row in rows])
        self.click(f"{table}.tBodies[0].rows[1].querySelector('a')")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), shown[1][0])
        self.open("merged")
        self.click(self.button("By launch"))
        self.assertIn(f"on node{RANKS - 1}", [cells["Process"][-8:] for cells in self.cells()])
        self.open("merged", "#run")
        self.assertEqual(self.evaluate("[...document.querySelectorAll('table')].find(t => t.caption.textContent === "
                                       "'Processes').tBodies[0].rows.length"), RANKS)

    def test_the_memory_chart(self):
        self.open("memory", "#launch-0/MemoryWorkloadAnalysis")
        rows = self.evaluate("[...document.querySelectorAll('.memory tbody tr')]"
                             ".map(row => [...row.cells].map(cell => cell.textContent))")
        shown = {(between, kind): amount for between, kind, amount in rows}
        [loads, stores, atomics] = [f"{value:,} wavefront" for value in SHARED.values()]
        self.assertEqual([shown["SM and Shared memory", kind] for kind in ("Loads", "Stores", "Atomics")],
                         [loads, stores, atomics])
        values = [32 * value for value in OTHER_MEMORY.values()]
        system = [float(shown["L2 and System memory", kind].split()[0]) for kind in ("Loads", "Stores", "Atomics")]
        self.assertEqual(system, [round(value / 1e6, 2) for value in values[:3]])
        self.assertEqual(shown["L2 and System memory", "L2 misses"], "32 B")
        self.assertEqual(shown["L2 and Peer memory", "Loads"], "0 B")
        self.assertNotIn(("L2 and Peer memory", "Stores"), shown)
        self.assertEqual(shown["L1/TEX and L2", "Loads"], "134.22 MB")
        texts = self.evaluate("[...document.querySelectorAll('.memory svg text')].map(t => t.textContent)")
        for kind in ("Loads 12.35 M", "Stores 4,321", "Loads 96 MB", "System memory", "Peer memory", "Shared memory"):
            self.assertIn(kind, texts)
        outside = ("(() => { const all = document.querySelector('.memory svg').getBoundingClientRect(); "
                   "return [...document.querySelectorAll('.memory svg *')].map(e => e.getBoundingClientRect())"
                   ".filter(b => b.left < all.left - 1 || b.right > all.right + 1 || b.bottom > all.bottom + 1)"
                   ".length; })()")
        self.assertEqual(self.evaluate(outside), 0)

    @seldom
    def test_findings_that_lack_metrics_are_named(self):
        self.open("less", "#launch-0")
        self.click("document.querySelector('.not-evaluated summary')")
        self.assertIn(f"Warp slots stay empty needs {WARPS}",
                      self.evaluate("document.querySelector('.not-evaluated').innerText").split("\n"))
        self.open("sample", "#launch-0")
        self.assertIsNone(self.evaluate("document.querySelector('.not-evaluated')"))

    @seldom
    def test_charts_have_tables(self):
        for name, fragment in (("kernels", ""), ("memory", "#launch-0")):
            self.open(name, fragment)
            charts = "[...document.querySelectorAll('main svg, .chart')].filter(c => !c.closest('.chart svg'))"
            self.assertGreaterEqual(self.evaluate(f"{charts}.length"), 1)
            alone = f"{charts}.filter(c => !c.closest('figure')?.querySelector('table'))"
            self.assertEqual(self.evaluate(f"{alone}.length"), 0)

    @seldom
    def test_paper_shows_what_a_click_opens(self):
        self.open("memory", "#launch-0")
        shown = "document.querySelector('.memory table').checkVisibility()"
        self.assertFalse(self.evaluate(shown))
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.browser.settle()
        self.assertTrue(self.evaluate(shown))
        self.browser.call("Emulation.setEmulatedMedia", media="")
        self.browser.settle()
        self.assertFalse(self.evaluate(shown))

    @seldom
    def test_paper_is_wide_enough(self):
        for fragment in ("", "#kernel-3", "#run"):
            self.open("kernels", fragment, width=720, media="print")  # A4
            self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), 720, fragment)
        self.open("source", "#source-2", width=720, media="print")
        self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), 720)

    @seldom
    def test_the_tab_key_goes_from_top_to_bottom(self):
        self.open("kernels")
        places = []
        while len(places) < 60:
            self.browser.press("Tab", 9)
            places.append(self.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
            if places[-1] <= max(places[:-1], default=0):
                break
        self.assertGreater(len(places), 40)
        self.assertEqual(places[:-1], sorted(places[:-1]))

    @seldom
    def test_how_long_it_takes(self):
        """Prints times: of opening a page of many launches, and of sorting and filtering them."""
        self.open("many")
        timing = "performance.getEntriesByType('navigation')[0]"
        opened = self.evaluate(f"{timing}.loadEventEnd - {timing}.responseStart")
        self.click(self.button("By launch"))
        took = ("new Promise(done => {{ const start = performance.now(); {}; "
                "requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start))); }})")
        times = [self.evaluate(took.format(f"{self.button(label)}.click()"))
                 for label in ("Time", "Limited by", "Grid")]
        field = f"document.querySelector('{TABLE} input')"
        self.evaluate(f"{field}.value = 'dram 19'")
        filtered = self.evaluate(took.format(f"{field}.dispatchEvent(new Event('input'))"))
        print(f"{MANY} launches: opened in {opened:.0f} ms, sorted in {max(times):.0f} ms, "
              f"filtered in {filtered:.0f} ms")
        self.assertLess(len(self.evaluate(ROWS)), MANY)

    @in_turn
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

    @in_turn
    def test_what_numbers_mean_needs_no_mouse(self):
        """It stands in the titles of labels, which only a pointer shows, and in what a key or a finger opens."""
        for name, fragment, place in (("kernels", "", "main"), ("kernels", "#kernel-3", "main"),
                                      ("sample", "#launch-0", "main")):
            self.open(name, fragment)
            self.evaluate(f"[...document.querySelectorAll('{place} details.help')].forEach(d => d.open = true)")
            self.browser.settle()
            told = self.evaluate("[...document.querySelectorAll('.meanings dd')].map(e => e.textContent)")
            titles = self.evaluate("[...document.querySelectorAll('main :is(.scroll th span, thead button)[title]')]"
                                   ".filter(e => !e.closest('.chart, .points, .name')).map(e => e.title)")
            self.assertGreater(len(told), 5)
            self.assertEqual([title for title in titles if title not in told], [])

    def reload(self):
        self.evaluate("window.isOld = true")
        self.browser.call("Page.reload")
        while self.evaluate("window.isOld || document.readyState !== 'complete'"):
            pass
        self.browser.settle()
        self.assertEqual(self.browser.complaints(), [])
        self.browser.events.clear() # a reload asks for the page

    def test_a_reload_shows_what_the_reader_chose(self):
        self.open("many")
        state = ("[document.querySelector('[aria-pressed=true]').textContent, "
                 "document.querySelector('th[aria-sort=descending]').innerText.trim(), "
                 "document.querySelector('.pager').textContent, document.querySelector('.search input').value]")
        for label in "By launch", "Time", "Next":
            self.click(self.button(label))
        chosen = self.evaluate(state)
        self.assertEqual(chosen, ["By launch", "Time", f"PreviousPage 2 of {MANY // 50}Next", ""])
        self.reload()
        self.assertEqual(self.evaluate(state), chosen)
        self.click("document.querySelector('.search input')")
        self.browser.call("Input.insertText", text="19 DRAM")
        self.reload()
        self.assertEqual(self.evaluate(state)[3], "19 DRAM")
        self.click(f"document.querySelector('{TABLE} tbody a')")
        self.click(self.button("Overview"))  # a link begins anew
        self.assertEqual(self.evaluate(state)[0], "By kernel")
        self.open("source", "#source-2")
        state = ("[[...document.querySelectorAll('.source select')].map(s => s.selectedIndex), "
                 "document.querySelectorAll('.source [aria-expanded=true]').length]")
        for i in 0, 1:
            self.evaluate(f"(s => {{ s.selectedIndex = 1; s.dispatchEvent(new Event('change')); }})"
                          f"(document.querySelectorAll('.source select')[{i}])")
        self.click("document.querySelector('.source tbody button')")
        self.reload()
        self.assertEqual(self.evaluate(state), [[1, 1, 0], 1])
        of_an_earlier_kprof = "{ source: { byHeat: false, ofLines: true } }"
        self.evaluate(f"history.replaceState({{ ...history.state, chosen: {of_an_earlier_kprof} }}, '')")
        self.reload()
        self.assertEqual(self.evaluate(state), [[0, 1, 0], 0])

    @seldom
    def test_readers_of_screens_find_names(self):
        for fragment in ("", "#launch-0", "#run"):
            self.open("sample", fragment)
            self.assertEqual(self.evaluate("document.querySelectorAll('h1').length"), 1)
            unnamed = ("[...document.querySelectorAll('table')].filter(t => !t.caption?.textContent).length + "
                       "[...document.querySelectorAll('[role=img]')].filter(i => !i.ariaLabel).length + "
                       "[...document.querySelectorAll('input, select')].filter(i => !i.labels.length).length + "
                       "[...document.querySelectorAll('button')].filter(b => !b.textContent && !b.ariaLabel).length")
            self.assertEqual(self.evaluate(unnamed), 0)

    @in_turn
    def test_narrow_windows_need_no_sideways_scrolling(self):
        for fragment in ("", "#launch-0", "#run", "#kernel-3"):
            self.open("kernels", fragment, width=320)
            self.assert_fits(fragment)
        self.open("both", width=320) # with more views to go to
        self.assert_fits("both")

    @seldom
    def test_a_kernel_is_a_card_in_a_narrow_window(self):
        """Each of its facts is in sight, with its name, and the table is one still, with headers that sort it."""
        self.open("kernels", width=400)
        place = f"document.querySelector('{TABLE} .scroll')"
        self.assertLessEqual(*self.evaluate(f"[{place}.scrollWidth, {place}.clientWidth]"))
        labels = self.evaluate(f"[...document.querySelectorAll('{TABLE} thead button')].map(b => b.textContent)")
        cells = f"[...document.querySelector('{TABLE} tbody tr').cells]"
        self.assertEqual(self.evaluate(f"{cells}.slice(1).map(cell => getComputedStyle(cell, '::before').content)"),
                         [json.dumps(label) for label in labels[1:]])
        self.assertEqual(self.evaluate(f"{cells}.map(cell => cell.getAttribute('role'))"),
                         ["rowheader"] + ["cell"] * (len(labels) - 1))
        self.click(self.button("Launches"))
        best = max(self.summary("kernels"), key=lambda row: int(row["launches"]))
        self.assertTrue(self.cells()[0]["Kernel"].startswith(best["kernel"][:20]))

    @seldom
    def test_all_columns_of_the_kernels_fit_a_common_window(self):
        self.open("kernels", width=1260)
        place = f"document.querySelector('{TABLE} .scroll')"
        self.assertLessEqual(*self.evaluate(f"[{place}.scrollWidth, {place}.clientWidth]"))

    @seldom
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

    def code_rows(self, notes=False):
        """The texts of the headers of the rows, and what stands beside; or the notes in each row."""
        rows = "[...document.querySelectorAll('.source tbody tr')]"
        if notes:
            return self.evaluate(f"{rows}.map(row => [...row.querySelectorAll('.note')].map(n => n.textContent))")
        return self.evaluate(f"{rows}.map(row => [...row.cells].map(cell => {{ const own = cell.cloneNode(true); "
                             "own.querySelectorAll('.note').forEach(n => n.remove()); return own.textContent; }))")

    def source_page(self, *options):
        run = write_page(KPROF, "report", MEASURED / "source.kprof", "--page", "source", "--csv", *options)
        return list(csv.DictReader(io.StringIO(run.stdout)))

    def test_the_source_of_a_kernel(self):
        """Its lines, the hottest first; a click opens the instructions of one, keys lead on."""
        expected = [row for row in self.source_page("--all", "--sort", "samples", "--print-source", "cuda")
                    if row["kernel"] == "softmax_kernel"]
        self.open("source", "#source-2")
        self.assertIn("softmax.py, standard.py: no text: not found; --source-folders DIR tells where it is",
                      self.evaluate("[...document.querySelectorAll('main .zeros')].map(e => e.textContent)"))
        rows = self.code_rows()
        self.assertEqual([row[0] for row in rows], [row["location"] for row in expected])
        self.assertEqual([row[1] for row in rows], [f"{float(row['samples_pct']):.2f} %" for row in expected])
        self.assertEqual(rows[0][2], "Long Scoreboard 99 %")
        self.assertEqual(self.code_rows(notes=True)[:3],
                         [["called from softmax.py:15", "waits for 0x0040 LDG.E R4, desc[UR4][R2.64], softmax.py:14"],
                          ["called from softmax.py:16"], []])
        self.click("document.querySelector('.source tbody tr:nth-child(2) button')")
        self.assertEqual([row[0] for row in self.code_rows()][1:4],
                         ["standard.py:170", "0x0070  SHFL.BFLY PT, R5, R4, 0x10, 0x1f", "0x0090  STS [R3], R5"])
        focus = "document.activeElement.textContent"
        self.assertEqual(self.evaluate(focus), "standard.py:170")
        self.evaluate("document.activeElement.blur()") # keys need no click into the table before
        for key, code, place in ("n", 78, "softmax.py:14"), ("n", 78, "standard.py:118"), ("p", 80, "softmax.py:14"):
            self.browser.press(key, code)
            self.browser.settle()
            self.assertEqual(self.evaluate(focus), place)
        self.evaluate("(() => { const s = document.querySelector('.source select'); s.value = [...s.options].find(o => "
                      "o.textContent === 'Bank conflicts').value; s.dispatchEvent(new Event('change')); })()")
        self.assertEqual(self.code_rows()[0][:2], ["standard.py:170", "7,168"])
        self.assertIn("Bank conflicts: Turns beyond those that the accesses need without bank conflicts",
                      self.evaluate("[...document.querySelectorAll('.source .zeros')].map(e => e.textContent)"))

    @in_turn
    def test_a_warp_that_has_ended_waits_for_its_stores(self):
        self.open("source", "#source-1")
        notes = [note for row in self.code_rows(notes=True) for note in row]
        self.assertIn("waits for stores before 0x0130 EXIT, vectorAdd.cu:9", notes)

    @in_turn
    def test_the_source_as_instructions(self):
        """Rows may be instructions, too, each of which leads to its line; a spreadsheet takes them all."""
        expected = [row for row in self.source_page("--all", "--print-source", "sass")
                    if row["kernel"] == "softmax_kernel"]
        self.open("source", "#source-2")
        choose = "(([i, text]) => {{ const s = document.querySelectorAll('.source select')[i]; s.selectedIndex = " \
                 "[...s.options].findIndex(o => o.text === text); s.dispatchEvent(new Event('change')); }})({})"
        for choice in ([2, "instructions"], [1, "of the source"]):
            self.evaluate(choose.format(json.dumps(choice)))
        rows = self.copied()
        self.assertEqual([(row["Address"], row["Text"].lstrip("'"), row["Line"]) for row in rows],
                         [(row["address"], row["instruction"], row["location"]) for row in expected])
        for label, key in (("Instructions", "instructions"), ("Excess sectors", "excess_sectors")):
            self.assertEqual([row[label] for row in rows], [row[key] for row in expected])
        self.assertEqual([row[0] for row in self.code_rows()],
                         [f"{row['address']}  {row['instruction']}" for row in expected])
        self.click("document.querySelector('.source tbody tr:nth-child(8) .note a')")
        self.assertEqual(self.evaluate("document.querySelector('.source .current button').textContent"),
                         expected[7]["location"])
        self.assertEqual(self.evaluate("document.querySelectorAll('.source select')[2].value"), "lines")

    @in_turn
    def test_the_source_as_lines_of_ptx(self):
        """Rows may be lines of the PTX, which lead to the lines that they were compiled of, and these to them."""
        run = write_page(KPROF, "report", self.reports["ptx"], "--page", "source", "--csv", "--all", "--sort",
                         "samples", "--print-source", "ptx")
        expected = list(csv.DictReader(io.StringIO(run.stdout)))
        self.open("ptx", "#source-1")
        chooser = "document.querySelectorAll('.source select')[2]"
        self.evaluate(f"(s => {{ s.selectedIndex = [...s.options].findIndex(o => o.text === 'PTX lines'); "
                      f"s.dispatchEvent(new Event('change')); }})({chooser})")
        rows = self.copied()
        self.assertEqual([(row["Line"] or "", row["Text"]) for row in rows],
                         [(row["location"], " ".join(row["source"].split())) for row in expected])
        for label, key in (("Samples", "samples"), ("Instructions", "instructions")):
            self.assertEqual([row[label] for row in rows], [row[key] for row in expected])
        current = "document.querySelector('.source .current button').textContent"
        self.evaluate("document.activeElement.blur()")
        self.browser.press("n", 78)
        self.browser.settle()
        self.assertEqual(self.evaluate(current), expected[0]["location"])
        self.evaluate("new Promise(function wait(done) { location.hash.includes('/p') ? done() : "
                      "setTimeout(wait, 10, done); })")
        self.reload()
        self.assertEqual((self.evaluate(current), self.evaluate(f"{chooser}.value")),
                         (expected[0]["location"], "PTX lines"))
        self.assertEqual(self.code_rows(notes=True)[0], ["of transpose.cu:36"])
        self.click("document.querySelector('.source .current .note a')")
        self.assertEqual((self.evaluate(current), self.evaluate(f"{chooser}.value")), ("transpose.cu:36", "lines"))
        self.click("document.querySelector('.source .below .note a')")
        self.assertEqual((self.evaluate(f"{chooser}.value"), self.evaluate(current)[8:13]), ("PTX lines", ".ptx:"))

    @in_turn
    def test_verdicts_and_findings_lead_to_the_source(self):
        instruction = "0x00c0  FADD R5, R0, 1"
        for kernel, rows in (1, ("softmax.py:7", "standard.py:170")), (2, (instruction, instruction)):
            for place, row in zip((".verdict a[href^='#source']", ".finding a[href^='#source']"), rows):
                self.open("source", f"#kernel-{kernel}")
                self.click(f"document.querySelector(\"{place}\")")
                self.browser.settle()
                self.assertTrue(self.evaluate("document.querySelector('.source .current').cells[0].textContent")
                                .startswith(row), place)
                self.assertTrue(self.evaluate("document.querySelector('.current').contains(document.activeElement)"))

    @in_turn
    def test_kernels_with_source_lead_to_their_hottest_lines(self):
        self.open("source", "#source")
        rows = [row for row in self.cells() if row["Kernel"].startswith("softmax")]
        self.assertEqual([[row[label].split("\n") for label in ("Hottest", "Samples")] for row in rows],
                         [[["softmax.py:7", "57.75\u00a0% of the samples"], ["5,430"]]])
        self.click(self.button("softmax.py:7"))
        self.assertEqual(self.evaluate("document.querySelector('.source .current button').textContent"), "softmax.py:7")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), "Source of softmax_kernel")

    @seldom
    def test_a_long_source_stays_quick(self):
        self.open("long", "#source-2")
        self.assertEqual(len(self.code_rows()), 100)
        took = self.evaluate("(() => { const start = performance.now(); "
                             "[...document.querySelectorAll('.source button')].find(b => "
                             "b.textContent === 'Next hottest').click(); return performance.now() - start; })()")
        print(f"{LONG} instructions: to the next hottest line in {took:.0f} ms")
        self.search_source("<img")
        [line] = self.code_rows()
        self.assertEqual(line[0], f"{GENERATED}:1000")
        self.click("document.querySelector('.source tbody button')")
        self.assertEqual(len(self.code_rows()), 17)
        self.assertIn("<img src=x", self.code_rows()[6][0])
        self.assertEqual(self.evaluate("document.querySelectorAll('main img').length"), 0)
        self.search_source(f"{GENERATED}:2000")
        self.click("document.querySelector('.source tbody button')")
        self.assertEqual(len(self.code_rows()), 100)
        self.assertEqual(self.evaluate("document.querySelector('.pager').textContent"),
                         "Previous pagePage 1 of 11Next page")
        self.assertRegex(self.code_rows(notes=True)[0][-1], "^hottest at 0x[0-9a-f]+$")
        self.click(self.button("Next page"))
        self.assertEqual(self.evaluate("document.activeElement.textContent"), "Next page")
        self.assertRegex(self.evaluate("document.querySelector('.state').textContent"),
                         "^1 of [0-9]+ lines; here are rows 101 to 200$")
        text = f"MOV R1, {LONG - 700}"
        self.search_source(text)
        rows = self.code_rows()
        self.assertEqual((len(rows), rows[0][0]), (101, f"{GENERATED}:2000")) # which stands above its instructions
        self.assertTrue(any(row[0].endswith(f"  {text}") for row in rows))
        self.evaluate("document.querySelector('.source input').focus()")
        self.browser.press("Escape", 27)
        self.assertEqual(self.evaluate("document.activeElement.textContent"), f"{GENERATED}:2000")
        self.search_source(f"{GENERATED}:1005") # a closed line shows the start of a long text
        height = "document.querySelector('.source tbody tr').offsetHeight"
        closed = self.evaluate(height)
        self.click("document.querySelector('.source tbody button')")
        self.assertGreater(self.evaluate(height), 3 * closed)

    def search_source(self, text):
        search = "document.querySelector('.source input')"
        self.evaluate(f"{search}.value = '{text}'; {search}.dispatchEvent(new Event('input'))")

    @seldom
    def test_the_source_fits_narrow_windows(self):
        for report, fragment in (("source", "#source"), ("source", "#source-2/l1"), ("source", "#source-3"),
                                 ("long", "#source-2"), ("long", "#kernel-1"), ("ptx-alone", "#source-1/p2")):
            self.open(report, fragment, width=320)
            self.assert_fits(fragment)
        for report, fragment in ("source", "#source-2"), ("long", "#source-2"), ("ptx-alone", "#source-1"):
            self.open(report, fragment, width=1280)
            self.assertLessEqual(*self.evaluate("(p => [p.scrollWidth, p.clientWidth])"
                                                "(document.querySelector('.source .scroll'))"), report)

    def flame(self, what):
        """A value of each frame that is shown, by its text."""
        return dict(self.evaluate("[...document.querySelectorAll('.flame [role=treeitem]')].map(e => "
                                  f"[e.textContent, {what}])"))

    def folded_time(self, frame, report="stacks"):
        """The share of the time that is within a frame, by the folded stacks."""
        folded = write_page(KPROF, "export", self.reports[report], "--to", "folded").stdout
        times = {True: 0, False: 0}
        for line in folded.rstrip("\n").split("\n"):
            stack, _, time = line.rpartition(" ")
            times[frame in stack.split(";")] += int(time)
        return times[True] / sum(times.values())

    def test_time_by_call_stack(self):
        """Frames are as wide as their time; installed ones are folded until the reader wants them."""
        self.open("stacks", "#stacks")
        width = "e.getBoundingClientRect().width"
        shown = self.flame(width)
        self.assertIn("torch", shown)
        self.assertNotIn("relu (functional.py:1701)", shown)
        frame = "Net.forward (train.py:13)"
        self.assertAlmostEqual(shown[frame] / shown["all"], self.folded_time(frame), delta=0.003)
        self.click(f"[...document.querySelectorAll('.flame *')].find(e => e.textContent === '{frame}')")
        self.assertEqual(self.flame(width)[frame], shown["all"])
        self.assertNotIn("Net.forward (train.py:12)", self.flame(width))
        focus = "document.activeElement.textContent"
        for key, code, place in (("ArrowDown", 40, "torch"), ("ArrowUp", 38, frame),
                                 ("Escape", 27, "torch"), ("Home", 36, "all")):
            self.browser.press(key, code)
            self.browser.settle()
            self.assertEqual(self.evaluate(focus), place)
        self.click("document.querySelector('.controls input[type=checkbox]')")
        self.assertIn("relu (functional.py:1701)", self.flame(width))
        self.browser.press("/", 191)
        self.evaluate("document.querySelector('.controls input[type=search]').focus()")
        self.browser.call("Input.insertText", text="RELU")
        self.browser.press("Enter", 13)
        self.browser.settle()
        self.assertEqual(self.evaluate(focus), "relu (functional.py:1701)")
        self.assertEqual([text for text, found in self.flame("e.classList.contains('match')").items() if found],
                         ["relu (functional.py:1701)"])
        self.assertEqual(self.evaluate("document.querySelectorAll('main img').length"), 0)
        self.assertIn("<img src=x", self.evaluate("document.querySelector('.flame').textContent"))

    def test_multiplexed_launches_by_call_stack(self):
        """Launches that the page shows as one are where each of them was made."""
        self.open("parts", "#stacks")
        shown = self.flame("e.getBoundingClientRect().width")
        for frame in "Net.forward (train.py:12)", "Net.forward (train.py:13)", "step (train.py:33)":
            self.assertAlmostEqual(shown[frame] / shown["all"], self.folded_time(frame, "parts"), delta=0.003)
        lines = self.evaluate("[...document.querySelectorAll('main table tbody tr')].map(e => e.innerText)")
        launches = [int(re.search(r"\t(\d+)\t", line)[1]) for line in lines if "\t" in line]
        self.assertEqual(sum(launches), 11, lines) # and one has no time

    def test_deep_call_stacks(self):
        """What is told of a frame stays in sight above it, and so does what a search has found."""
        for width in 400, 1280:
            self.open("deep", "#stacks", width=width)
            self.evaluate("document.querySelector('.controls input[type=search]').focus()")
            self.browser.call("Input.insertText", text="leaf")
            place = self.evaluate("(e => { e.scrollIntoView({block: 'end'}); const r = e.getBoundingClientRect(); "
                                  "return [r.x + r.width / 2, r.y + r.height / 2]; })([...document.querySelectorAll("
                                  "'.flame [role=treeitem]')].find(e => e.ariaLabel.includes('(part0.py')))")
            self.browser.mouse("mouseMoved", *place)
            self.browser.settle()
            top, bottom, text = self.evaluate("(e => [e.getBoundingClientRect().top, e.getBoundingClientRect().bottom, "
                                              "e.innerText])(document.querySelector('.flame-told'))")
            self.assertGreaterEqual(top, 0)
            self.assertLess(bottom, place[1])
            self.assertIn("(part0.py:0)", text)
            self.assertRegex(text, r"\d+ frames match: .* 100 %")
            self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), width)

    @in_turn
    def test_a_launch_leads_to_its_call_stack(self):
        self.open("stacks", "#launch-1", width=400)
        frames = self.evaluate("[...document.querySelectorAll('.frames li')].map(e => [e.className, e.textContent])")
        self.assertEqual(frames[0], ["installed", "relu (functional.py:1701)/usr/lib/python3.12/site-packages/torch/nn/"
                                     "functional.py"])
        self.assertEqual(frames[1], ["own", "Net.forward (train.py:13)/home/me/train.py"])
        self.click("[...document.querySelectorAll('.facts a')].find(a => a.textContent.startsWith('train.py:13 in'))")
        self.browser.settle()
        self.assertEqual(self.evaluate("document.activeElement.previousSibling.previousSibling.textContent"),
                         "Net.forward (train.py:13)")
        self.assertLessEqual(self.evaluate("document.documentElement.scrollWidth"), 400)

    def test_a_comparison(self):
        self.open("diff")
        text = self.evaluate("document.querySelector('main').innerText")
        self.assertIn("Verdicts", text)
        self.assertNotIn("Conditions", text)  # none was asked for
        self.open("alone", width=400)
        self.assertEqual(self.evaluate(BROKEN_WORDS), [])
        right = "document.querySelector('details[open] tbody td:last-child').getBoundingClientRect().right"
        self.assertLessEqual(self.evaluate(right), 400)
        self.open("diff", width=400)
        table = "[...document.querySelectorAll('table')].find(t => t.caption?.textContent === 'Verdicts')"
        cells = self.evaluate(f"[...{table}.tBodies[0].rows[0].cells].map(c => [c.dataset.label, c.innerText, "
                              "c.getBoundingClientRect().right, c.getBoundingClientRect().height])")
        self.assertEqual([cell[0] for cell in cells][:2], ["Kernel", "Verdict"])
        self.assertEqual([cell[0] for cell in cells if cell[2] > 400], [])  # a card: all of it is in sight
        self.assertEqual([cell[0] for cell in cells if (cell[1] == "") != (cell[3] == 0)], [])
        self.assertEqual(self.evaluate("document.querySelector('.word.bad').textContent"), "worse")
        self.click("document.querySelector('details.group summary')")
        self.assertIn("Duration rose", self.evaluate("document.querySelector('details[open]').innerText"))

    @seldom
    def test_a_kernel_of_a_comparison_leads_to_what_changed(self):
        self.open("diff")
        link = "[...document.querySelectorAll('tbody a.name')].find(a => a.textContent.includes('scale'))"
        self.click(link)
        opened = self.evaluate("[...document.querySelectorAll('details[open]')].map(d => d.innerText)")
        self.assertEqual(len(opened), 1)
        self.assertTrue(opened[0].replace("\u200b", "").startswith("void scale<float>(float*, float, int) (4096, 1,"))
        self.assertIn("Duration", opened[0])
        self.assertTrue(self.evaluate("document.activeElement.textContent.includes('scale')"))
        # A kernel whose time is the same, without details, has no link.
        self.assertEqual(self.evaluate("[...document.querySelectorAll('tbody a.name')].filter(a => "
                                       "!document.getElementById('section-' + a.hash.slice(2))).length"), 0)

    @in_turn
    def test_a_comparison_of_one_kernel_needs_no_click(self):
        self.open("alone")
        self.assertEqual(self.evaluate("[...document.querySelectorAll('details.group')].map(d => d.open)"), [True])
        self.click("document.querySelector('details.help summary')")
        terms = self.evaluate("[...document.querySelectorAll('details.help[open] dt')].map(dt => dt.textContent)")
        self.assertEqual(terms, ["From", "To", "Repeats"])

    @seldom
    def test_words_stand_apart_from_the_numbers_before_them(self):
        self.open("alone")
        gaps = self.evaluate("[...document.querySelectorAll('.table .number + :not(.number)')].map(cell => "
                             "parseFloat(getComputedStyle(cell).paddingLeft))")
        self.assertGreater(min(gaps), 12)

    @in_turn
    def test_each_line_that_has_moved_has_its_kernel(self):
        self.open("moves")
        table = "[...document.querySelectorAll('table')].find(t => t.caption.textContent === 'Where the samples moved')"
        rows = self.evaluate(f"[...{table}.tBodies[0].rows].map(row => [0, 1].map(i => row.cells[i].innerText))")
        self.assertEqual([kernel.split(" ")[0] for kernel, line in rows if line.startswith("softmax.py")],
                         ["softmax_kernel"] * 2)
        self.assertEqual(self.evaluate(f"{table}.tHead.rows[0].cells[1].innerText"), "Line")

    @seldom
    def test_a_comparison_shows_nothing_empty(self):
        """What is for programs alone makes no empty row, and no heading with nothing below."""
        in_other = ["Differences between the runs", "Verdicts", "In one report only", "What changed"]
        in_same = ["Verdicts", "No verdict on time: 3 repeats of each kernel, 5 are needed; counts are equal"]
        for name, titles in (("diff", in_other), ("same", in_same)):
            self.open(name)
            self.assertEqual(self.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)"), titles)
            self.assertEqual(self.evaluate("[...document.querySelectorAll('tbody tr')].filter(row => "
                                           "!row.cells[0].textContent.trim()).length"), 0)

    def test_the_way_back_leads_to_what_the_reader_left(self):
        self.open("many")
        for label in "By launch", "Time", "Next":
            self.click(self.button(label))
        state = ("[document.querySelector('.pager').textContent, "
                 "document.querySelector('th[aria-sort=descending]').innerText.trim(), scrollY, "
                 "document.activeElement.textContent]")
        self.click(f"document.querySelector('{TABLE} tbody tr:nth-child(40) a')")
        left = [f"PreviousPage 2 of {MANY // 50}Next", "Time"]
        launch = self.evaluate("location.hash")
        self.assertEqual(self.evaluate("document.querySelector('.tabs')"), None)
        self.evaluate("new Promise(done => { addEventListener('hashchange', done, {once: true}); history.back(); })")
        self.browser.settle()
        pager, order, scrolled, focus = self.evaluate(state)
        self.assertEqual([pager, order, f"#launch-{focus}"], [*left, launch])
        self.assertGreater(scrolled, 300)
        self.assertGreater(self.evaluate("document.querySelectorAll('.chart svg path').length"), 10) # drawn anew
        self.click(self.button("Overview"))  # a link begins anew
        self.open("source", "#source-2")
        self.browser.press("n", 78)
        self.browser.settle()
        self.evaluate("new Promise(function wait(done) { location.hash.includes('/') ? done() : "
                      "setTimeout(wait, 10, done); })")
        self.assertRegex(self.evaluate("location.hash"), "^#source-2/l[0-9]+$") # what a reload shows
        self.open("sample", "#%E0%A4%A")
        self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), "Overview")

    def copied(self):
        """The rows that the button above a table gives to a spreadsheet."""
        self.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
        self.click(self.button("Copy table"))
        rows = [line.split("\t") for line in self.evaluate("copied").split("\n")]
        return [dict(zip(rows[0], row)) for row in rows[1:]]

    @in_turn
    def test_a_spreadsheet_takes_exact_numbers(self):
        self.open("kernels")
        expected = self.summary("kernels")
        rows = self.copied()
        self.assertEqual([row["Kernel"] for row in rows], [row["kernel"] for row in expected])
        for label, key in {"Time (ns)": "time", "Launches": "launches", "Memory (%)": "memory_pct"}.items():
            for row, other in zip(rows, expected):
                self.assertAlmostEqual(float(row[label]), float(other[key]), delta=1e-9 * float(other[key]))
        self.open("many")
        self.click(self.button("By launch"))
        self.assertEqual(len(self.copied()), MANY)
        self.open("huge")
        self.assertEqual(self.copied()[0]["Kernel"], "'" + FORMULA)

    @in_turn
    def test_large_numbers_stay_in_their_cells(self):
        for width in 1280, 400:
            self.open("huge", width=width)
            numbers = self.evaluate(f"[...document.querySelectorAll('{TABLE} .figure')].map(e => [e.textContent, "
                                    "e.getBoundingClientRect().right, e.closest('td').getBoundingClientRect().right])")
            self.assertIn("1.23456789e+23 %", [number[0] for number in numbers])
            self.assertEqual([text for text, right, edge in numbers if right > edge + 1], [])

    @in_turn
    def test_ranges_are_no_launches(self):
        self.open("ranges")
        text = self.evaluate("document.querySelector('main').innerText")
        self.assertIn("\n1 range of 1 name, with 6 launches, on NVIDIA H200", text)
        for word in "By kernel", "per kernel", "per launch":
            self.assertNotIn(word, text)
        self.click("document.querySelector('tbody a')")
        self.assertIn("Range\n0\nLaunches in it\n6\n", self.evaluate("document.querySelector('.facts').innerText"))
        self.assertEqual(self.evaluate("document.querySelector('h2').textContent"), "Range 0")

    @in_turn
    def test_keys_stop_where_there_is_something_to_do(self):
        """Not at each table, unless it is wider than the window."""
        for width in 1280, 400:
            self.open("sample", "#launch-0", width=width)
            self.browser.settle()
            places = self.evaluate(
                "[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility())"
                ".map(e => [e.tabIndex === 0, e.scrollWidth > e.clientWidth, e.getAttribute('role')])")
            self.assertEqual([stops for stops, _, _ in places], [wide for _, wide, _ in places])
            self.assertEqual({role for stops, _, role in places if stops}, {"region"} if width == 400 else set())

    @in_turn
    def test_a_page_without_its_script_says_so(self):
        """Where the browser runs none, and where a server forbids it, which noscript does not show."""
        blocked = pathlib.Path(self.pages["sample"]).with_name("blocked.html")
        policy = "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\">"
        blocked.write_text(pathlib.Path(self.pages["sample"]).read_text().replace("<head>", "<head>" + policy))
        self.browser.open(str(blocked))
        self.assertIn("forbids scripts", self.evaluate("document.body.innerText"))
        self.browser.events.clear() # it complains of what is forbidden

    @in_turn
    def test_long_names_leave_space_for_the_rest(self):
        for fragment in "#kernel-0", "#launch-0":
            self.open("names", fragment, width=400)
            height = "document.querySelector('h1').offsetHeight"
            folded = self.evaluate(height)
            self.assertLess(folded, 150)
            self.click(self.button("Whole name"))
            self.assertGreater(self.evaluate(height), 5 * folded)
            self.assertEqual(self.evaluate("document.querySelector('h1').textContent"), LONG_KERNEL)
        self.open("names", "#run")
        self.assertIn(LONG_KERNEL, self.evaluate("[...document.querySelectorAll('.name')].map(e => e.title)"))
        self.assertEqual(self.evaluate("[...document.querySelectorAll('thead th')].filter(e => !e.innerText).length"),
                         0)

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
