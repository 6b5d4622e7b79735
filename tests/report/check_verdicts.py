#!/usr/bin/env python3
"""Whatever is shown of a kernel, and in whatever format, kprof says the same of it: on the recorded reports, the verdict
and findings do not depend on the sections that are shown.

Usage: check_verdicts.py SOURCE KPROF"""
import json
import pathlib
import subprocess
import sys
import unittest

SOURCE, KPROF = pathlib.Path(sys.argv[1]), sys.argv[2]
RECORDED = [SOURCE / name for name in ("tests/report/findings/recorded-h200.kprof",
                                       "tests/report/findings/host-memory-h200.kprof",
                                       "tests/report/repeats-h200.kprof", "samples/vectorAdd-h200.kprof")]


def run(*words):
    done = subprocess.run([KPROF, "report", *words], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return done.stdout


def launches_of(report, *options):
    """{id: launch} of the details page."""
    return {launch["id"]: launch for launch in json.loads(run(report, "--json", *options))["launches"]}


def told(launch):
    return {key: launch[key] for key in ("verdict", "findings", "not_evaluated")}


def lines_below(launch_text, label):
    """The text of a line of the verdict, whose further lines stand below it."""
    lines = launch_text.splitlines()
    [start] = [i for i, line in enumerate(lines) if line.startswith(f"  {label}  ")]
    words = [lines[start][14:]]
    for line in lines[start + 1:]:
        if not line.startswith(" " * 14):
            break
        words.append(line[14:])
    return " ".join(words)


class Parts(unittest.TestCase):
    def test_verdict_and_findings_do_not_depend_on_the_sections_shown(self):
        for report in RECORDED:
            whole = launches_of(report)
            sections = next(iter(whole.values()))["sections"]
            for section in sections:
                for launch_id, launch in launches_of(report, "--section", section["id"]).items():
                    self.assertEqual(told(launch), told(whole[launch_id]), f"{report.name}, {section['id']}")
                    self.assertEqual([one["id"] for one in launch["sections"]], [section["id"]])

    def test_sets_and_other_pages_say_the_same(self):
        for report in RECORDED[0], RECORDED[2]:
            whole = launches_of(report)
            for launch_id, launch in launches_of(report, "--set", "default").items():
                self.assertEqual(told(launch), told(whole[launch_id]))
            for page in "summary", "brief":
                self.assertEqual(run(report, "--page", page, "--json", "--section", "Occupancy"),
                                 run(report, "--page", page, "--json"))

    def test_a_section_to_look_at_that_is_not_shown_is_named(self):
        text = run(RECORDED[0], "-k", "dram_bound_sum", "--section", "Occupancy")
        self.assertEqual(lines_below(text, "Look next"), "show --section MemoryWorkloadAnalysis_Tables")

    def test_metrics_alone_are_shown_without_findings(self):
        [launch] = launches_of(RECORDED[0], "-k", "dram_bound_sum", "--metrics", "gpu__time_duration.sum").values()
        self.assertNotIn("findings", launch)

    def test_conditions_need_not_be_on_what_is_shown(self):
        launches = launches_of(RECORDED[0], "--section", "Occupancy", "--filter", "duration>240us")
        self.assertIn(0, launches)
        self.assertLess(len(launches), 30)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
