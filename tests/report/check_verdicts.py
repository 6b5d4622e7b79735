#!/usr/bin/env python3
"""Whatever is shown of a kernel, and in whatever format, kprof says the same of it: on the recorded reports, the
verdict does not depend on the sections that are shown, findings are those of these sections and the one that the
verdict names, and text, Markdown, CSV, JSON, HTML, summary and brief agree.

Usage: check_verdicts.py SOURCE KPROF"""
import csv
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from html_reports import data_of

SOURCE, KPROF = pathlib.Path(sys.argv[1]), sys.argv[2]
RECORDED = [SOURCE / name for name in ("tests/report/findings/recorded-h200.kprof",
                                       "tests/report/findings/host-memory-h200.kprof",
                                       "samples/repeats-h200.kprof", "samples/vectorAdd-h200.kprof")]
# {id of a finding: ids of its sections}
PLACES = {path.stem: set(json.loads(path.read_text())["sections"])
          for path in SOURCE.glob("metricsets/findings/*.json")}


# {id of a finding: id of the section that it stands in}
FIRST_PLACE = {path.stem: json.loads(path.read_text())["sections"][0]
               for path in SOURCE.glob("metricsets/findings/*.json")}


def run(*words):
    done = subprocess.run([KPROF, "report", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


def launches_of(report, *options):
    """{id: launch} of the details page."""
    return {launch["id"]: launch for launch in json.loads(run(report, "--json", *options))["launches"]}


def told(launch, sections):
    """The verdict of a launch, and those of its findings that have one of these sections or that the verdict names."""
    ids = {section["id"] for section in sections}
    named = launch["verdict"]["finding"] and launch["verdict"]["finding"]["id"]
    return {"verdict": launch["verdict"],
            **{key: [one for one in launch[key] if PLACES[one["id"]] & ids or one["id"] == named]
               for key in ("findings", "not_evaluated")}}


def lines_below(text, label, indent=2):
    """The text of a line of the verdict, whose further lines stand below it."""
    lines, column = text.splitlines(), indent + 12
    [start] = [i for i, line in enumerate(lines) if line.startswith(" " * indent + f"{label}  ")]
    words = [lines[start][column:]]
    for line in lines[start + 1:]:
        if not line.startswith(" " * column):
            break
        words.append(line[column:])
    return " ".join(words)


class Parts(unittest.TestCase):
    def assert_told(self, launch, whole, message=None):
        for key, expected in told(whole, launch["sections"]).items():
            self.assertEqual(launch[key], expected, message)

    def test_the_verdict_does_not_depend_on_the_sections_shown_and_findings_are_theirs(self):
        for report in RECORDED:
            # What differs between launches shows with the first ones; those that are repeated are all alike.
            some = ("-c", "3" if report.name.startswith("repeats") else "10")
            whole = launches_of(report, *some)
            sections = next(iter(whole.values()))["sections"]
            for section in sections:
                for launch_id, launch in launches_of(report, *some, "--section", section["id"]).items():
                    self.assert_told(launch, whole[launch_id], f"{report.name}, {section['id']}")
                    self.assertEqual([one["id"] for one in launch["sections"]], [section["id"]])

    def test_people_see_the_findings_of_the_sections_shown(self):
        report, words = RECORDED[3], ("--section", "Occupancy", "--width", "200")
        text, markdown = run(report, *words), run(report, "--markdown", *words)
        for page in text, markdown:
            self.assertIn("Warp slots stay empty", page)
            self.assertNotIn("Issue slots are idle", page)
            self.assertRegex(page, r"Accesses are narrow\W+up to .*medium confidence")
        found = [row["metric"] for row in rows_of_csv(report, *words) if "finding__" in row["metric"]]
        self.assertEqual(found, ["finding__AchievedOccupancy", "finding__NarrowAccesses"])
        part, _, _ = page_data(report, *words[:2])
        [launch] = part["launches"]
        self.assertEqual([part["rules"][one["rule"]]["id"] for one in launch["findings"]],
                         ["NarrowAccesses", "AchievedOccupancy"])

    def test_findings_that_are_named_are_told_whatever_is_shown(self):
        for rule in "WarpStall", "IssueSlots":
            [whole], [part] = (launches_of(RECORDED[3], "--rule", rule, *words).values()
                               for words in ((), ("--section", "Occupancy")))
            self.assertEqual([one["id"] for one in part["findings"]], [rule])
            self.assertEqual(part["findings"], whole["findings"])

    def test_findings_that_are_not_evaluated_are_those_of_the_sections_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder, "part.kprof")
            run(RECORDED[3], "--section", "Occupancy,MemoryWorkloadAnalysis_Tables", "-o", str(part))
            for section, is_told in ("regex:.", True), ("MemoryWorkloadAnalysis_Tables", True), ("Occupancy", False):
                text = run(part, "--section", section)
                told = re.search(r"^ +Not evaluated: [^!]*\bPartialSectors \(needs", text, re.MULTILINE)
                self.assertEqual(told is not None, is_told, section)

    def test_sets_and_other_pages_say_the_same(self):
        for report in RECORDED[0], RECORDED[2]:
            whole = launches_of(report)
            for launch_id, launch in launches_of(report, "--set", "default").items():
                self.assert_told(launch, whole[launch_id])
            for page in "summary", "brief":
                self.assertEqual(run(report, "--page", page, "--json", "--section", "Occupancy"),
                                 run(report, "--page", page, "--json"))

    def test_a_section_to_look_at_that_is_not_shown_is_named(self):
        text = run(RECORDED[0], "-k", "dram_bound_sum", "--section", "Occupancy")
        self.assertEqual(lines_below(text, "Look next"), "show --section MemoryWorkloadAnalysis_Tables")

    def test_little_to_gain_is_unsure_where_work_was_not_looked_at(self):
        """A small set does not know what makes less work of the same kernel, which may be worth more than the rest."""
        whole = {launch["kernel"]["function"]: launch["verdict"] for launch in launches_of(RECORDED[0]).values()}
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder, "part.kprof")
            run(RECORDED[0], "--set", "default", "-o", str(part))
            for launch in launches_of(part).values():
                verdict, of_whole = launch["verdict"], whole[launch["kernel"]["function"]]
                self.assertNotEqual(verdict["little_to_gain"], "yes")
                if verdict["little_to_gain"] == "as measured":
                    self.assertIn("; what was not measured may be worth more", verdict["finding"]["text"])
                self.assertTrue(of_whole["little_to_gain"] != "yes" or verdict["little_to_gain"] == "as measured")
        self.assertEqual({verdict["little_to_gain"] for verdict in whole.values()}, {"yes", "no"})

    def test_metrics_alone_are_shown_without_findings(self):
        [launch] = launches_of(RECORDED[0], "-k", "dram_bound_sum", "--metrics", "gpu__time_duration.sum").values()
        self.assertNotIn("findings", launch)

    def test_conditions_need_not_be_on_what_is_shown(self):
        launches = launches_of(RECORDED[0], "--section", "Occupancy", "--filter", "duration>240us")
        self.assertIn(0, launches)
        self.assertLess(len(launches), 30)


def rows_of_csv(report, *options):
    return list(csv.DictReader(io.StringIO(run(report, "--csv", *options))))


def page_data(report, *options):
    """The launches of the HTML page and its texts, and the rows of its kernels."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "page.html")
        run(report, "--html", str(path), *options)
        data = data_of(path)[1]
    [kernels] = [part["records"] for part in data["parts"] if part.get("key") == "summary"]
    rows = []
    for fields, values, _ in kernels:
        keys = [field["key"] for field in json.loads(data["texts"][fields])]
        rows.append(dict(zip(keys, (value[0] if isinstance(value, list) else value for value in values))))
    return data["parts"][-1], data["texts"], rows


def summary_of_text(report, width):
    """{function: lines of the verdict} of the summary page, and the columns that it takes."""
    text = run(report, "--page", "summary", "--print-kernel-base", "function", "--width", str(width), "--verbose")
    blocks = re.findall(r"^ {2,4}(\w+)(?:  .*)?\n((?:    (?:[A-Z]| {12}).*\n)+)", text, re.MULTILINE)
    return dict(blocks), max(map(len, text.splitlines()))


def summary_of_markdown(report):
    """{function: {heading: cell}} of the summary page."""
    lines = run(report, "--page", "summary", "--print-kernel-base", "function", "--markdown").split("\n\n")[1]
    heads, _, *rows = [[cell.strip() for cell in line.replace("\\", "")[1:-1].split("|")]
                       for line in lines.strip().splitlines()]
    return {row[0]: dict(zip(heads, row)) for row in rows}


ROWS = {"limit": "Limited by", "stall": "Top stall", "occupancy": "Occupancy", "finding": "Worth most"}


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.launches = {report: launches_of(report) for report in RECORDED}

    def expected(self, report):
        """(id, row, text) of each line of a verdict that is known."""
        for launch_id, launch in self.launches[report].items():
            for row in ROWS:
                if launch["verdict"][row]:
                    yield launch_id, row, launch["verdict"][row]["text"]

    def test_text_and_markdown(self):
        for report in RECORDED:
            texts = re.split(r"\n  Launch (?=\d)", run(report, "--width", "160"))[1:]
            lists = run(report, "--markdown").split("\n- **Limited by**")[1:]
            by_id = {int(text.split(",")[0]): text for text in texts}
            self.assertEqual(len(lists), len(by_id))
            by_order = dict(zip(sorted(by_id), lists))
            for launch_id, row, text in self.expected(report):
                self.assertEqual(lines_below(by_id[launch_id], ROWS[row]), text)
                shown = f"**{ROWS[row]}**: {text}" if row != "limit" else f": {text}"
                self.assertIn(shown, by_order[launch_id].replace("\\", ""))

    def test_csv(self):
        for report in RECORDED:
            found = {}
            for row in rows_of_csv(report):
                found.setdefault(int(row["launch"]), []).append((row["metric"], row["value"], row["message"]))
            for launch_id, launch in self.launches[report].items():
                ids = [name.removeprefix("finding__") for name, _, _ in found[launch_id]
                       if name.startswith("finding__")]
                self.assertEqual(sorted(ids), sorted(finding["id"] for finding in launch["findings"]))
                verdict = {name: message for name, _, message in found[launch_id] if name.startswith("verdict__")}
                for row, line in launch["verdict"].items():
                    if row in ("limit", "stall", "occupancy") and line:
                        self.assertEqual(verdict[f"verdict__{row}"], line["name"])

    def test_html(self):
        for report in RECORDED:
            part, texts, _ = page_data(report)
            keys = [line["key"] for line in part["verdict"]]
            for launch in part["launches"]:
                lines = dict(zip(keys, launch["verdict"]))
                whole = self.launches[report][launch["id"]]
                for row in ROWS:
                    if whole["verdict"][row]:
                        self.assertEqual(texts[lines[row][2]], whole["verdict"][row]["text"])
                little = whole["verdict"]["little_to_gain"]
                self.assertEqual(lines["finding"][3:], [little] if little != "no" else [])
                self.assertEqual([part["rules"][found["rule"]]["id"] for found in launch["findings"]],
                                 [found["id"] for found in whole["findings"]])

    def test_summary_and_brief(self):
        """Where a kernel has one launch, they are about that."""
        report = RECORDED[0]
        launches = {launch["kernel"]["function"]: launch for launch in self.launches[report].values()}
        rows = {row["function"]: row for row in rows_of_csv(report, "--page", "summary")}
        kernels = json.loads(run(report, "--page", "summary", "--json"))["kernels"]
        briefs = {brief["function"]: brief for brief in map(json.loads, run(report, "--brief", "--json").splitlines())}
        text = run(report, "--brief").split("\n\n")
        part, _, shown = page_data(report)
        of_page = {part["kernels"][row["kernel"]]["function"]: row for row in shown}
        self.assertEqual(len(rows), len(launches))
        for row in kernels:
            launch = launches[row["function"]]
            verdict, brief, best = launch["verdict"], briefs[row["function"]], launch["verdict"]["finding"]
            little = verdict["little_to_gain"]
            for told in row, rows[row["function"]], of_page[row["function"]]:
                self.assertEqual(told["limit_text"], verdict["limit"]["text"])
                self.assertEqual(told["finding_text"], best["text"])
                self.assertEqual(told["little_to_gain"], little)
                for line in "stall", "occupancy":
                    self.assertEqual((told[line], told[f"{line}_text"]), (verdict[line]["name"], verdict[line]["text"]))
            for told in row, rows[row["function"]]:
                self.assertEqual(told["next"], verdict["next"])
            self.assertEqual((brief["limit"], brief["next"], brief["little_to_gain"]),
                             (verdict["limit"]["name"], verdict["next"], little))
            self.assertEqual([one["id"] for one in brief["findings"]][:1], [best["id"]] if best["id"] else [])
            [lines] = [block for block in text if f"Kernel      {row['function']}(" in block]
            worth = [line[14:] for line in lines.splitlines() if line.startswith("  Worth most")]
            self.assertEqual([line[:63] for line in worth], [best["text"][:63]] if little != "no" else [])

    def test_the_limit_and_what_is_worth_most_are_one_story(self):
        """A grid is too small, or what warps wait for is the limit, for the verdict, its finding and the brief alike,
        whatever was collected. The section of what is worth most comes next. Without stall reasons a grid is all that
        is known. Less work, as without divergence, may be worth more."""
        of_waits = {"WarpStall", "IssueSlots"}
        classes = []
        with tempfile.TemporaryDirectory() as folder:
            parts = [pathlib.Path(folder, f"{sections}.kprof") for sections in (
                "SpeedOfLight,LaunchStats,Occupancy", "SpeedOfLight,LaunchStats,WarpStateStats")]
            for part in parts:
                run(RECORDED[0], "--section", part.stem, "-o", str(part))
            for report in [*RECORDED, *parts]:
                for brief in map(json.loads, run(report, "--brief", "--json").splitlines()):
                    best = [one["id"] for one in brief["findings"]][:1]
                    is_size = brief["class"] == "launch size"
                    classes.append(brief["class"])
                    self.assertFalse(is_size and of_waits & set(best), brief)
                    if best and brief["little_to_gain"] == "no":
                        self.assertEqual(brief["next"], FIRST_PLACE[best[0]], brief)
                for launch in launches_of(report).values():
                    limit, best = launch["verdict"]["limit"], launch["verdict"]["finding"]
                    self.assertFalse(limit and best and limit["name"] == "launch size" and best["id"] in of_waits)
        self.assertGreaterEqual(classes.count("launch size"), 8)

    def test_the_summary_has_a_row_for_each_kernel(self):
        """The verdict follows the first five; --verbose tells it of all."""
        report = RECORDED[0]
        count = len(self.launches[report])
        text = run(report, "--page", "summary", "--width", "100")
        rows = re.findall(r"^  \S.* (?:%|n/a) .*s$", text, re.MULTILINE)
        self.assertEqual(len(rows), count)
        self.assertEqual(text.count("    Limited by  "), 5)
        self.assertLess(len(text.splitlines()), count + 75)
        self.assertIn("--verbose", text.splitlines()[-1])
        text = run(report, "--page", "summary", "--verbose")
        self.assertEqual(text.count("    Limited by  "), count)
        self.assertNotIn("--verbose", text)

    def test_many_launches_begin_with_the_summary(self):
        report = RECORDED[0]
        summary, details = run(report, "--page", "summary"), run(report, "--page", "details")
        said = f"\nEach of the {len(self.launches[report])} launches follows; --page summary shows only the summary\n\n"
        self.assertEqual(run(report), summary + said + details)
        few = ["-c", "20"]
        self.assertEqual(run(report, *few), run(report, "--page", "details", *few))
        self.assertEqual(run(report, "--csv"), run(report, "--page", "details", "--csv"))

    def test_the_summary_shows_people_all_five_lines(self):
        report = RECORDED[0]
        of_markdown = summary_of_markdown(report)
        for width in 80, 100, 160:
            of_text, widest = summary_of_text(report, width)
            self.assertLessEqual(widest, width)
            self.assertEqual(len(of_text), len(self.launches[report]))
            for launch in self.launches[report].values():
                name, verdict = launch["kernel"]["function"], launch["verdict"]
                lines = {label: verdict[row]["text"] for row, label in ROWS.items()}
                lines["Look next"] = verdict["next"]
                for label, line in lines.items():
                    self.assertEqual(lines_below(of_text[name], label, 4), line)
                    self.assertEqual(of_markdown[name][label], line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
