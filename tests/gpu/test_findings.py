#!/usr/bin/env python3
"""The table of findings names the kernels of the sources, and the judgement of a report sees what is missing."""
import contextlib
import json
import pathlib
import re
import shutil
import sqlite3
import tempfile
import unittest

import findings
import harness
import places

SOURCES = harness.ROOT / "tests/gpu/findings"
KERNEL = re.compile(r"^__global__ void (?:__\w+__\(\d+\) )?(\w+)\(", re.MULTILINE)
LAUNCH = re.compile(r"^\s+(\w+)<<<", re.MULTILINE)
TABLE = """| finding | kernels that show it | kernels that do not |
|---|---|---|
| slow | `a`, `b` | `c` |
"""


def launch(kernel, metrics=("m", "n"), measured=True, reason=""):
    return harness.Launch(kernel, dict.fromkeys(metrics, 1.0), measured, reason)


class Table(unittest.TestCase):
    def test_a_row_names_kernels_of_both_kinds(self):
        self.assertEqual(findings.read_findings(TABLE), [("slow", ["a", "b"], ["c"])])

    def test_the_table_names_every_kernel_and_the_program_launches_and_checks_each(self):
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cu")))
        kernels = set(KERNEL.findall(text))
        self.assertGreater(len(kernels), 50)
        named = findings.named_kernels(findings.read_findings(findings.README.read_text(encoding="utf-8")))
        self.assertEqual(named, kernels)
        self.assertEqual(sorted(LAUNCH.findall(text)), sorted(kernels))
        self.assertEqual(sorted(re.findall(r'check_launch\("(\w+)"', text)), sorted(kernels))

    def test_the_kernels_of_the_small_report_are_among_them(self):
        named = findings.named_kernels(findings.read_findings(findings.README.read_text(encoding="utf-8")))
        self.assertLessEqual(set(findings.AGENT_KERNELS), named)


class Judgement(unittest.TestCase):
    def setUp(self):
        self.rows = findings.read_findings(TABLE)

    def test_a_complete_report_has_no_faults(self):
        self.assertEqual(findings.faults_of([launch("a"), launch("b"), launch("c")], self.rows), [])

    def test_kernels_that_are_missing_or_unknown_are_faults(self):
        faults = findings.faults_of([launch("a"), launch("b"), launch("d")], self.rows)
        self.assertEqual(faults, ["c was not launched", "README.md does not name d"])

    def test_launches_that_lack_values_are_faults(self):
        faults = findings.faults_of([launch("a", ["m"]), launch("b", measured=False), launch("c")], self.rows)
        self.assertEqual(faults, ["a has 1 metrics, others have 2", "b is not complete: not measured"])

    def test_the_first_stall_reason_is_the_one_with_most_cycles(self):
        metrics = {f"{findings.STALLS}{reason}_per_issue_active.ratio": cycles
                   for reason, cycles in (("wait", 2.0), ("long_scoreboard", 41.25), ("drain", None))}
        self.assertEqual(findings.top_stall(metrics), "long_scoreboard 41.2")


def keep_source_set(report):
    """Take out of a report of the full set what the set source has not."""
    section = json.loads((harness.ROOT / "metricsets/sections/SourceCounters.json").read_text(encoding="utf-8"))
    kept = {item.get("metric") for item in section["items"]} | {"smsp__inst_executed.sum"}
    with contextlib.closing(sqlite3.connect(report)) as database, database:
        database.execute("DELETE FROM section WHERE identifier <> 'SourceCounters'")
        for number, name in database.execute("SELECT id, name FROM metric").fetchall():
            if name not in kept and not name.startswith(("launch__", "device__")):
                database.execute("DELETE FROM value WHERE metric_id = ?", (number,))


class Places(unittest.TestCase):
    def setUp(self):
        self.functions = places.read_functions()
        self.expected = places.read_places(places.README.read_text(encoding="utf-8"))
        self.launches = places.read_launches(harness.ROOT / "tests/report/findings/places-h200.kprof")

    def of_waits(self, kernel):
        return [row for row in self.expected if (row.finding, row.kernel) == ("WaitedFor", kernel)]

    def test_each_row_names_lines_that_are_there(self):
        self.assertGreaterEqual(len(self.expected), 12)
        for row in self.expected:
            self.assertTrue(places.lines_with(self.functions, row.kernel, row.lines), row)
            self.assertEqual(bool(row.waits), bool(places.lines_with(self.functions, row.kernel, row.waits)), row)
            self.assertIn(row.twin, self.functions)
            self.assertTrue((findings.harness.ROOT / "metricsets/findings" / f"{row.finding}.json").exists(), row)

    def test_recorded_kernels_name_their_lines(self):
        self.assertEqual(places.faults_of(self.launches, self.expected, self.functions), [])

    def test_counters_and_samples_of_instructions_alone_name_them_too(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "source.kprof"
            shutil.copy(harness.ROOT / "tests/report/findings/places-h200.kprof", report)
            keep_source_set(report)
            launches = places.read_launches(report)
        # Nothing else tells which bytes of a sector are used.
        others = [row for row in self.expected if row.finding != "PartialSectors"]
        self.assertEqual(len(others), len(self.expected) - 1)
        self.assertEqual(places.faults_of(launches, others, self.functions), [])

    def test_a_wait_is_named_where_warps_wait_and_where_it_was_sampled(self):
        place, = places.named_places(self.launches, "WarpStall", "barrier_waits")
        self.assertEqual((place["place"], place["sampled_at"]["place"]), ("stalls.cu:63", "stalls.cu:60"))
        place, = places.named_places(self.launches, "WarpStall", "sleeping_wait")
        self.assertEqual((place["place"], place["called_from"], place["share_pct"]), ("stalls.cu:298", None, 100))
        self.assertTrue(place["in_library"].startswith("sm_70_rt.hpp:"))
        self.assertNotIn("sampled_at", place)
        hot = next(launch["hot_line"] for launch in self.launches if launch["kernel"]["function"] == "barrier_waits")
        self.assertEqual((hot["at"], hot["stall"], hot["caused_at"]), ("stalls.cu:60", "Barrier", "stalls.cu:63"))

    def test_other_lines_are_faults(self):
        row, = self.of_waits("uncoalesced_read")
        wrong = row._replace(lines=["size_t i = thread_index()"])
        self.assertEqual(places.faults_of(self.launches, [wrong], self.functions),
                         ["WaitedFor names memory.cu:14 of uncoalesced_read, and not memory.cu:13"])
        wrong = row._replace(waits=["size_t i = thread_index()"])
        self.assertEqual(places.faults_of(self.launches, [wrong], self.functions),
                         ["WaitedFor does not say that uncoalesced_read waits for memory.cu:13"])
        wrong = row._replace(twin="uncoalesced_read")
        self.assertEqual(places.faults_of(self.launches, [wrong], self.functions),
                         ["WaitedFor names memory.cu:14 of uncoalesced_read, which has no fault there"])


if __name__ == "__main__":
    unittest.main()
