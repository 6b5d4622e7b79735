#!/usr/bin/env python3
"""Findings name the planted faults in a report of an H200 with counters and samples of instructions alone, and the
judgement sees what is wrong."""
import json
import unittest

import harness
import planted

RECORDED = harness.ROOT / "tests/report/findings/planted-h200.kprof"
# Their findings tell waits alone, or cost less than the conflicts beside them: other findings lead.
LED_BY_OTHERS = {"late_load": "WarpStall", "chase_neighbours": "UncoalescedGlobal",
                 "table_in_shared": "SharedBankConflicts"}
LATER = {"few_threads_left", "one_of_seven", "two_warps_work"}  # than the report


def place(name, called_from=None, waits_for=None):
    return {"place": name, "called_from": called_from, "waits_for": waits_for}


def launch(*places):
    return {"findings": [{"id": "WaitedFor", "places": list(places)}]}


class Judgement(unittest.TestCase):
    mark = planted.Mark({"WaitedFor"}, {"control.cu:216"}, {"control.cu:211"})

    def fault(self, *places, twin=()):
        return planted.fault_of(self.mark, launch(*places), launch(*twin))

    def test_marks_are_read(self):
        marks = planted.read_marks(planted.sources())
        self.assertEqual(marks["late_load"], self.mark)
        self.assertEqual(marks["eight_arrays"].findings, {"PartialSectors", "UncoalescedGlobal"})
        self.assertEqual(marks["dot_by_swap"].lines, {"memory.cu:271", "memory.cu:284"})

    def test_lines_and_sources(self):
        self.assertIsNone(self.fault(place("control.cu:216", None, place("intrinsics.hpp:180", "control.cu:211"))))
        self.assertEqual(self.fault(place("control.cu:216")), "does not say what it waits for")
        self.assertEqual(self.fault(place("control.cu:215")), "names control.cu:215")
        self.assertEqual(self.fault(), "names no line")

    def test_the_same_line_of_the_twin(self):
        right = place("memory.cu:38")
        mark = planted.Mark({"WaitedFor"}, {"memory.cu:38"}, set())
        self.assertIsNone(planted.fault_of(mark, launch(right), launch(place("memory.cu:47"))))
        self.assertEqual(planted.fault_of(mark, launch(right), launch(right)), "names memory.cu:38 of the twin")


class Recorded(unittest.TestCase):
    def test_findings_name_the_faults(self):
        marks = planted.read_marks([path for path in planted.sources() if path.suffix != ".py"])
        rows = planted.judge(RECORDED, marks)
        self.assertEqual([row for row in rows if row[-1] != "right" and row[0] not in LATER], [])
        self.assertEqual(len(rows) - len(LATER), 24)

    def test_the_verdict_names_the_fault(self):
        marks = planted.read_marks(planted.sources())
        told = {one["kernel"]["function"]: one["verdict"]["finding"]["id"] for one in planted.launches_of(RECORDED)
                if one["kernel"]["function"] in marks}
        self.assertEqual(len(told), 24)
        for kernel, finding in told.items():
            self.assertIn(finding, {LED_BY_OTHERS.get(kernel)} if kernel in LED_BY_OTHERS else marks[kernel].findings,
                          kernel)

    def test_what_is_worth_most_leads_each_page(self):
        text = harness.run([harness.kprof(), "report", RECORDED, "-k", "softmax_rows"]).stdout
        self.assertIn("Worth most  Accesses are not coalesced (no estimate)", text)
        self.assertIn("Look next   collect --section MemoryWorkloadAnalysis_Tables", text)
        [line] = harness.run([harness.kprof(), "report", RECORDED, "--brief", "--json", "-k",
                              "softmax_rows"]).stdout.splitlines()
        self.assertEqual([found["id"] for found in json.loads(line)["findings"]],
                         ["UncoalescedGlobal", "WarpStall", "SmallGrid"])

    def test_reasons_of_samples_are_about_the_kind_of_what_is_waited_for(self):
        self.assertEqual(planted.samples_by_reason(RECORDED), (307437, 0))
        self.assertEqual(planted.judge_reasons(RECORDED)[-1], "right")

    def test_busy_kernels_wait_for_nothing(self):
        launches = {one["kernel"]["function"]: one for one in planted.launches_of(RECORDED)}
        for kernel in ("barrier_imbalance_ok", "nbody_records_ok", "reduce_interleaved"):
            self.assertNotIn("WarpStall", [found["id"] for found in launches[kernel]["findings"]])

    def test_the_brief_page_tells_them_too(self):
        words = ["report", RECORDED, "--brief", "--json", "-k", "regex:^(aos_energy|barrier_imbalance)$"]
        told = {}
        for line in harness.run([harness.kprof(), *words]).stdout.splitlines():
            brief = json.loads(line)
            told[brief["function"]] = [found["id"] for found in brief["findings"]], brief["stalls"][0]["name"]
        self.assertEqual(told, {"aos_energy": (["UncoalescedGlobal", "WarpStall", "WaitedFor"], "Long Scoreboard"),
                                "barrier_imbalance": (["WarpStall"], "Barrier")})


if __name__ == "__main__":
    unittest.main()
