#!/usr/bin/env python3
"""Checks the HTML pages that kprof writes without a browser: their data is that of the CSV, nothing in it can end its
block, they name no other file, and the output is treated as others are.
Usage: check_html.py SOURCE_FOLDER KPROF WRITE_FIXTURE"""
import base64
import csv
import hashlib
import html.parser
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

from html_reports import HOSTILE, change, data_of, make_hostile, make_kernels, make_many, make_stacks, write_page

SOURCE, KPROF, WRITE_FIXTURE = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SAMPLE = SOURCE / "samples/vectorAdd-h200.kprof"
PAGE = SOURCE / "src/report/html/report.html"
DIGITS = 1e-8  # what 9 significant digits leave out


class Elements(html.parser.HTMLParser):
    """Counts elements and collects the attributes that could make a browser fetch something."""

    def __init__(self, text):
        super().__init__()
        self.count, self.addresses = {}, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.addresses += [value for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]


class Html(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "page.html"

    def write(self, report, *more, status=0):
        result = write_page(KPROF, "report", report, "--html", self.page, *more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def fixture(self, *words):
        path = self.folder / f"{'-'.join(words) or 'fixture'}.kprof"
        subprocess.run([WRITE_FIXTURE, path, *words], check=True)
        return path

    def test_values_are_those_of_the_csv(self):
        for report in (SAMPLE, self.fixture()):
            self.write(report, "-f")
            launches = data_of(self.page)[1]["parts"][-1]
            columns = {metric["name"]: i for i, metric in enumerate(launches["metrics"])}
            values = {launch["id"]: launch["values"] for launch in launches["launches"]}
            text = subprocess.run([KPROF, "report", report, "--csv"], capture_output=True, text=True, check=True).stdout
            checked = 0
            for row in csv.DictReader(io.StringIO(text)):
                if row["metric"] not in columns:
                    continue
                value = values[int(row["launch"])][columns[row["metric"]]]
                checked += 1
                if row["value"] == "":
                    self.assertIsNone(value, row["metric"])
                else:
                    self.assertAlmostEqual(value, float(row["value"]), delta=DIGITS * abs(value), msg=row["metric"])
            self.assertGreater(checked, 40)

    def test_frames_may_be_anything(self):
        whole = make_stacks(KPROF, SAMPLE, self.folder / "stacks.kprof")
        for number, (frames, told) in enumerate((("nonsense", []), ('{"a": 1}', []), ('"x"', []),
                                                 ("[" * 2000, []),
                                                 ('[1, "x", {"function": 5, "line": -1}]', ["? (?:0)"]),
                                                 (json.dumps([{"module": "/a/b", "offset": 1e300}] * 600), ["b+0x0"]))):
            report = change(whole, self.folder / f"frames-{number}.kprof",
                            ("UPDATE stack SET frames = ? WHERE id = 1", [frames]),
                            "DELETE FROM stack WHERE id > 1", "UPDATE launch_stack SET stack_id = 1")
            self.write(report, "-f")
            [part] = [part for part in data_of(self.page)[1]["parts"] if part["part"] == "stacks"]
            self.assertEqual([frame[0] for frame in part["frames"]], told)
            self.assertLessEqual(len(part["stacks"][0]), 513)
            folded = write_page(KPROF, "export", report, "--to", "folded")
            self.assertEqual(folded.returncode, 0, folded.stderr)

    def test_kernels_are_those_of_the_summary(self):
        for report in (make_kernels(SAMPLE, self.folder / "kernels.kprof"), self.fixture()):
            self.write(report, "-f")
            data = data_of(self.page)[1]
            [rows] = [part["records"] for part in data["parts"] if part.get("key") == "summary"]
            kernels = data["parts"][-1]["kernels"]
            summary = subprocess.run([KPROF, "report", report, "--page", "summary", "--csv"], capture_output=True,
                                     text=True, check=True)
            expected = list(csv.DictReader(io.StringIO(summary.stdout)))
            self.assertEqual(len(rows), len(expected))
            for (fields, values, _), row in zip(rows, expected):
                keys = [field["key"] for field in json.loads(data["texts"][fields])]
                shown = dict(zip(keys, (value[0] if isinstance(value, list) else value for value in values)))
                self.assertEqual(kernels[shown.pop("kernel")]["name"], row["kernel"])
                self.assertIn("note", shown)
                for key in set(shown) & set(row) - {"finding"}:
                    if row[key] == "":
                        self.assertIsNone(shown[key], key)
                    elif isinstance(shown[key], str):
                        self.assertEqual(shown[key], row[key])
                    else:
                        self.assertAlmostEqual(shown[key], float(row[key]), delta=DIGITS * abs(shown[key]), msg=key)
                self.assertGreaterEqual(len(set(shown) & set(row)), 16)

    def test_findings_that_lack_metrics_are_those_of_the_json(self):
        report = change(SAMPLE, self.folder / "less.kprof", "DELETE FROM value WHERE metric_id = (SELECT id FROM "
                        "metric WHERE name = 'sm__warps_active.avg.pct_of_peak_sustained_active')")
        self.write(report)
        _, data = data_of(self.page)
        launches = data["parts"][-1]
        shown = {launches["rules"][rule]["id"]: needs for rule, needs in
                 json.loads(data["texts"][launches["launches"][0]["not_evaluated"]])}
        text = subprocess.run([KPROF, "report", report, "--json"], capture_output=True, text=True, check=True).stdout
        expected = {one["id"]: one["missing"] for one in json.loads(text)["launches"][0]["not_evaluated"]}
        self.assertIn("AchievedOccupancy", shown)
        self.assertEqual(shown, {name: expected[name] for name in shown})

    def test_findings_are_those_of_the_json(self):
        self.write(SAMPLE)
        _, data = data_of(self.page)
        launches = data["parts"][-1]
        text = subprocess.run([KPROF, "report", SAMPLE, "--json"], capture_output=True, text=True, check=True).stdout
        expected = json.loads(text)["launches"][0]
        found = launches["launches"][0]["findings"]
        self.assertEqual([launches["rules"][one["rule"]]["id"] for one in found],
                         [one["id"] for one in expected["findings"]])
        self.assertEqual([one["message"] for one in found], [one["message"] for one in expected["findings"]])
        lines = {row["key"]: data["texts"][line[2]] if line[2] is not None else None
                 for row, line in zip(launches["verdict"], launches["launches"][0]["verdict"])}
        self.assertEqual(lines["limit"], expected["verdict"]["limit"]["text"])

    def test_names_cannot_end_the_data(self):
        self.write(make_hostile(SAMPLE, self.folder / "hostile.kprof"))
        text, data = data_of(self.page)
        self.assertNotIn("<", text)
        self.assertIn("<img", data["parts"][-1]["kernels"][0]["name"])
        self.assertEqual(Elements(self.page.read_text()).count, Elements(PAGE.read_text()).count)
        self.assertIn("script", HOSTILE)

    def test_the_page_is_alone(self):
        page = PAGE.read_text()
        elements = Elements(page)
        self.assertTrue(all(address.startswith("#") for address in elements.addresses), elements.addresses)
        style = re.search(r"<style>(.*)</style>", page, re.DOTALL)[1]
        self.assertNotRegex(style, r"@import|url\(")
        script = re.search(r"<script>(.*)</script>", page, re.DOTALL)[1]
        allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        self.assertIn(f"default-src 'none'; script-src 'sha256-{allowed}'", policy)
        self.assertEqual(page.count("@KPROF_DATA@"), 1)

    def test_the_page_is_built_of_its_sources(self):
        web = SOURCE / "web"
        names = ["build.mjs", "package.json", "page.html", "style.css", *sorted(f"src/{path.name}" for path in
                                                                                 (web / "src").iterdir())]
        built = hashlib.sha256(b"".join((web / name).read_bytes() for name in names)).hexdigest()
        self.assertEqual(re.search(r"sources (\w+)", PAGE.read_text())[1], built,
                         "run npm install --no-package-lock && npm run build in web/")

    def test_many_launches_fit(self):
        self.write(SAMPLE)
        alone = self.page.stat().st_size
        many = make_many(SAMPLE, self.folder / "many.kprof", 201)
        self.write(many, "-f")
        self.assertLess((self.page.stat().st_size - alone) / 200, 1500)  # what launches share is there once
        factor = "(1 + (launch_id * 7919 + metric_id * 104729) % 1000 / 2000.0)"
        change(many, self.folder / "other.kprof", "UPDATE value SET value = CASE WHEN value = round(value) "
               f"THEN round(value * {factor}) ELSE value * {factor} END WHERE metric_id IN "
               "(SELECT id FROM metric WHERE name NOT LIKE 'launch!_!_%' ESCAPE '!' AND name NOT LIKE 'device%')")
        self.write(self.folder / "other.kprof", "-f")
        self.assertLess((self.page.stat().st_size - alone) / 200, 4700)  # 2,000 launches take 10 MB at most

    def test_a_comparison(self):
        reports = [self.fixture("before"), self.fixture("after")]
        result = write_page(KPROF, "diff", *reports, "--html", self.page)
        self.assertEqual(result.returncode, 0, result.stderr)
        parts = {part["key"]: part for part in data_of(self.page)[1]["parts"]}
        self.assertEqual(parts["verdicts"]["records"][0][1][0], "worse")
        self.assertGreater(len(parts["kernels"]["records"][0][2]), 3)

    def test_the_output(self):
        self.write(SAMPLE)
        self.assertEqual(stat.S_IMODE(self.page.stat().st_mode), 0o600)
        written = self.page.read_bytes()
        self.assertIn("give -f", self.write(SAMPLE, status=108))
        self.assertEqual(self.page.read_bytes(), written)
        self.write(SAMPLE, "-f", "-k", "vectorAdd")
        self.write(SAMPLE, "-f", "-k", "nonesuch", status=106)
        self.assertEqual(self.page.read_bytes(), written)
        for line in (["--csv"], ["--page", "raw"], ["--print-summary", "per-kernel"], ["--log-file", "x"]):
            self.assertIn("--html", self.write(SAMPLE, *line, status=101))

    def test_the_code_of_kernels(self):
        """Lines with the texts of files that are still the same; numbers that nothing measured are left out."""
        folder = SOURCE / "tests/fixtures/source"
        run = write_page(KPROF, "report", folder / "source.kprof", "--html", self.page, "--source-folder", folder)
        self.assertEqual(run.returncode, 0, run.stderr)
        data = data_of(self.page)[1]
        codes = [part for part in data["parts"] if part["part"] == "code"]
        self.assertEqual([launch["code"] for launch in data["parts"][-1]["launches"]], [code["id"] for code in codes])
        [files] = [part["files"] for part in data["parts"] if part["part"] == "files"]  # once, for all kernels
        self.assertNotIn("files", [name for code in codes for name in code])
        [code] = [code for code in codes if code["kernel"] == "softmax_kernel"]
        texts = {line[1]: line[3] for line in code["lines"] if files[line[0]]["name"] == "softmax.py"}
        lines = (folder / "softmax.py").read_text().splitlines()
        self.assertEqual(texts, {number: lines[number - 1] for number in texts})
        self.assertEqual(sorted(member for line in code["lines"] for member in line[4]),
                         list(range(len(code["instructions"]))))

    def test_lines_wait_for_what_text_tells(self):
        """Of each line what its hottest instruction waits for, where in a library it is and who called it, whatever a
        reader sorts by; and the last two of each instruction."""
        reports = [SOURCE / "tests/fixtures/source/source.kprof", SOURCE / "samples/transpose-before-h200.kprof",
                   SOURCE / "samples/source-h200.kprof"]
        for report in reports:
            self.page.unlink(missing_ok=True)
            self.write(report)
            parts = data_of(self.page)[1]["parts"]
            codes = [part for part in parts if part["part"] == "code"]
            [files] = [part["files"] for part in parts if part["part"] == "files"]
            found, of_instructions = {}, {}

            def frames_of(row):
                names = [f"{files[file]['name']}:{line}" if line is not None else "" for file, line in
                         zip(row[8::2], row[9::2])]
                return [*names, "", ""][:2]
            for code in codes:
                for line in code["lines"] if code["lines"] else code["instructions"]:
                    is_line = bool(code["lines"])
                    place = (line[0], line[1]) if is_line else (code["functions"][line[0]], line[1])
                    waits = [code["instructions"][number][1] for number in line[5]]
                    path = files[place[0]]["path"] if is_line and place[0] is not None else None
                    found[code["kernel"], path if is_line else place[0], place[1]] = waits, frames_of(line)
                for row in code["instructions"]:
                    of_instructions.setdefault((code["kernel"], row[1]), []).append(frames_of(row))

            def rows_of(*view):
                return list(csv.DictReader(io.StringIO(write_page(KPROF, "report", report, "--page", "source", "--all",
                                                                  "--csv", *view).stdout)))
            for row in rows_of("--print-source", "sass"):
                self.assertIn([row["called_from"], row["in_library"]],  # of one of the functions
                              of_instructions[row["kernel"], int(row["offset"])], row)
            rows = rows_of()
            told = 0
            for row in rows:
                offset = re.search(r" at 0x([0-9a-f]+)", row["waits_for"])
                expected = [int(offset[1], 16)] if offset else []
                key = (row["kernel"], *((row["file"] or None, int(row["line"]) if row["line"] else None)
                                        if row["location"] else (row["function"], int(row["offset"]))))
                self.assertEqual(found[key][0], expected, row)
                if float(row["samples_pct"] or 0) > 0:
                    self.assertEqual(found[key][1], [row["called_from"], row["in_library"]], row)
                told += bool(expected)
            self.assertGreater(told, 0)

    def test_kernels_have_the_findings_of_their_instructions(self):
        """The summary and the page rank kernels by what was counted of these, too, as the brief does."""
        report = SOURCE / "tests/report/findings/planted-h200.kprof"
        told = write_page(KPROF, "report", report, "--brief", "--json").stdout.splitlines()
        brief = [json.loads(line) for line in told]
        best = {line["function"]: [found["id"] for found in line["findings"]] for line in brief}
        rows = list(csv.DictReader(io.StringIO(write_page(KPROF, "report", report, "--page", "summary",
                                                          "--csv").stdout)))
        self.assertEqual([row["function"] for row in rows], [line["function"] for line in brief])
        found = {row["function"]: row["finding"] for row in rows if row["finding"]}
        self.assertEqual({name: best[name][0] for name in found}, found)
        self.assertEqual(found["aos_energy"], "UncoalescedGlobal")
        self.assertEqual(found["tight_bounds"], "LocalSpills")
        self.write(report)
        [summary] = [part for part in data_of(self.page)[1]["parts"] if part.get("key") == "summary"]
        self.assertEqual(len(summary["records"]), len(rows))
        self.assertGreater(sum(value == "Accesses are not coalesced" for record in summary["records"]
                               for value in record[1]), 0)

    def test_a_failure_leaves_no_part_of_a_page(self):
        damaged = make_many(SAMPLE, self.folder / "damaged.kprof", 20)
        data = bytearray(damaged.read_bytes())
        middle = len(data) // 2 // 4096 * 4096
        data[middle:] = bytes(len(data) - middle)
        damaged.write_bytes(data)
        self.write(damaged, status=107)
        self.assertFalse(self.page.exists())
        if pathlib.Path("/dev/full").exists():
            full = write_page(KPROF, "report", SAMPLE, "-f", "--html", "/dev/full")
            self.assertEqual(full.returncode, 108, full.stderr)
            self.assertTrue(os.path.exists("/dev/full"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
