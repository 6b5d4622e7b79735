#!/usr/bin/env python3
"""Tests of how exact.py judges a run; they need no GPU."""
import os
import pathlib
import stat
import tempfile
import types
import unittest

import exact
import harness

MODE = exact.Mode("default-auto-all", 400)

# A stand-in for kprof: runs the application, and writes a report of the launches that FAKE_LAUNCHES lists as
# measured,reason pairs.
FAKE = """#!/usr/bin/env python3
import os, sqlite3, subprocess, sys
base = sys.argv[sys.argv.index("-o") + 1]
database = sqlite3.connect(base + ".kprof")
database.execute("CREATE TABLE launches(launch, kernel, measured, reason, position, replay_mode, pid)")
database.execute("CREATE TABLE launch_metrics(launch, metric, value, unit)")
for number, text in enumerate(os.environ["FAKE_LAUNCHES"].split(";")):
    measured, reason = text.split(",")
    mode = os.environ.get("FAKE_MODE", "batch")
    database.execute("INSERT INTO launches VALUES(?, 'k', ?, ?, ?, ?, 7)",
                     (number, int(measured), reason, number, mode))
    if int(measured):
        database.execute("INSERT INTO launch_metrics VALUES(?, 'dram__bytes.sum', 1, 'byte')", (number,))
database.execute("CREATE TABLE message(text)")
database.execute("INSERT INTO message VALUES('batch of ' || ? || ' launches: open 1.0 ms')",
                 (os.environ.get("FAKE_BATCH", "7"),))
database.commit()
status = subprocess.call(sys.argv[sys.argv.index("--") + 1:], env={**os.environ, "UNDER": "1"})
sys.exit(status or int(os.environ.get("FAKE_STATUS", 0)))
"""


def result(status, stdout="", stderr=""):
    return harness.Result(status, stdout, stderr, 1.0)


class Comparing(unittest.TestCase):
    def verdict(self, under):
        finding = exact.compare(result(0, "mode a\nx 1\nx 2\n"), under, 0)
        return finding and (finding.verdict, finding.detail)

    def test_same(self):
        self.assertIsNone(self.verdict(result(0, "mode a\nx 1\nx 2\n", "anything")))

    def test_first_differing_line(self):
        verdict, detail = self.verdict(result(0, "mode a\nx 1\nx 3\n"))
        self.assertEqual(verdict, "DIFFERENT")
        self.assertIn("line 3 is 'x 3', plain 'x 2' in mode a", detail)

    def test_missing_and_additional_lines(self):
        self.assertIn("missing", self.verdict(result(0, "mode a\nx 1\n"))[1])
        self.assertIn("'more', is more than plain", self.verdict(result(0, "mode a\nx 1\nx 2\nmore\n"))[1])

    def test_endings(self):
        self.assertEqual(self.verdict(result(None))[0], "hang")
        self.assertEqual(self.verdict(result(139))[0], "crash")
        self.assertEqual(self.verdict(result(1))[0], "DIFFERENT")

    def test_assertions_count(self):
        plain = result(4, "", "a.cu:1: f: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.\n")
        self.assertIsNone(exact.compare(plain, plain, 4))
        self.assertEqual(exact.compare(plain, result(4), 4).verdict, "DIFFERENT")

    def test_messages_of_the_program_and_errors_of_kprof(self):
        text = "launches 1 1\nx[3] is 1\nkprof: batch of 3 launches: open\nkprof: warning: odd\n"
        self.assertEqual(exact.own_messages(text), "x[3] is 1 / kprof: warning: odd")


class Launches(unittest.TestCase):
    def test_all_processes_count(self):
        text = "launches 3 4\nnoise\nlaunches 10 10\n"
        self.assertEqual(exact.expected_launches(text), (13, 14))
        self.assertEqual(exact.expected_launches(text, 4), (7, 8))

    def test_time_of_children(self):
        runner = exact.Runner(types.SimpleNamespace(limit=20, budget=None), "")
        self.assertEqual(runner.limit_of(exact.Case("endings", "return kill", exact.FIRST)), 20)
        self.assertEqual(runner.limit_of(exact.Case("endings", "a b c d e f", exact.FIRST, command=["children"])), 40)

    def test_limits(self):
        case = exact.Case("memory", "a b", most=8)
        self.assertEqual(case.launch_limit(MODE), 8)
        self.assertEqual(case.launch_limit(exact.Mode("one-1-all", 40)), 40)
        self.assertIsNone(case.launch_limit(exact.Mode("one-auto-none")))


class Matrix(unittest.TestCase):
    def test_parts_by_the_beginning_of_their_name(self):
        case = exact.Case("memory", "mapped managed vmm", exact.SOME, most=3)
        self.assertEqual(case.narrowed(["memory/ma"]).parts, ["mapped", "managed"])
        self.assertEqual((case.narrowed(["memory/v"]).modes, case.narrowed(["memory/v"]).most), (exact.SOME, 3))
        self.assertFalse(case.chosen(["streams"]))

    def test_a_case_that_fails_is_told_apart_from_its_parts(self):
        parts = exact.Case("p", "a b", command=["children"]).split()
        self.assertEqual([part.name for part in parts], ["p/children/a", "p/children/b"])
        self.assertEqual(parts[1].argv[1:], ["children", "b"])
        whole = exact.Case("p", "a b", batched="b")
        self.assertEqual([case.must_batch for case in (whole.narrowed([]), *whole.split())], [True, False, True])

    def test_each_part_is_measured_where_a_mode_measures_the_first_launches_of_a_process(self):
        def names(case, mode):
            return [process.name for process in case.processes(mode)]

        every, some = exact.Mode("one-auto-all"), exact.Mode("full-1-all", 3)
        self.assertEqual(names(exact.Case("p", "a b"), every), ["p/a+b"])
        self.assertEqual(names(exact.Case("p", "a b"), some), ["p/a", "p/b"])
        self.assertEqual(names(exact.Case("p", "a b", command=["children"]), some), ["p/children/a+b"])
        self.assertEqual(names(exact.Case("p", "a b", most=5), exact.Mode("full-1-all")), ["p/a", "p/b"])

    def test_modes(self):
        self.assertEqual(len({mode.name for mode in exact.MODES}), 24)
        self.assertEqual(exact.Mode("one-3-none").options[-4:], ["--replay-batch", "3", "--cache-control", "none"])
        whole = exact.Mode("default-graphs-all")
        self.assertEqual(whole.options[2:], ["--graph-profiling", "graph", "--cache-control", "all"])
        self.assertTrue(whole.joins_launches and not exact.Mode("one-3-none").joins_launches)
        runs = [mode.name for mode in exact.MODES if exact.Case("p", "a", exact.SOME).runs_in(mode)]
        self.assertEqual(runs, ["default-auto-all", "one-auto-all", "default-multiplex-all", "source-auto-all",
                                "default-auto-none"])

    def test_every_mode(self):
        def modes(name):
            options = types.SimpleNamespace(cases=[name], separate=True, every_mode=True)
            return [case.modes for case in exact.chosen_cases(options)]

        self.assertEqual(modes("memory/managed-advice"), [exact.EVERY])
        self.assertEqual(modes("endings/kill-idle"), [exact.FIRST, exact.EVERY])

    def test_each_pattern_names_a_mode_and_each_case_stands_alone(self):
        for case in exact.CASES:
            for pattern in case.modes:
                only = exact.Case("p", "a", (pattern,))
                self.assertTrue(any(only.runs_in(mode) for mode in exact.MODES), pattern)
        names = [case.name for case in exact.CASES]
        self.assertEqual(len(names), len(set(names)))


class Whole(unittest.TestCase):
    """A program and kprof played by scripts."""

    def prepare(self, folder, program, launches, status=0, **keywords):
        """(runner, case)"""
        fake = pathlib.Path(folder) / "kprof"
        fake.write_text(FAKE)
        fake.chmod(stat.S_IRWXU)
        os.environ.update(KPROF=str(fake), FAKE_LAUNCHES=launches, FAKE_STATUS=str(status))
        case = exact.Case("program", "a", **keywords)
        case.argv = ["--", "/bin/sh", "-c", program]
        runner = exact.Runner(types.SimpleNamespace(limit=900, budget=None), folder)
        runner.plain[case.name] = harness.run(case.argv[1:])
        return runner, case

    def run_case(self, *arguments, **keywords):
        with tempfile.TemporaryDirectory() as folder:
            runner, case = self.prepare(folder, *arguments, **keywords)
            return runner.check(case, MODE)

    def test_each_gpu_takes_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            seen = f"{folder}/seen"
            wait = f"while [ -e {folder}/both ] && [ $(sort -u {seen} | wc -l) -lt 2 ]; do sleep 0.05; done"
            program = f"echo gpu $CUDA_VISIBLE_DEVICES >>{seen}; {wait}; echo launches 1 1 >&2"
            runner, case = self.prepare(folder, program, "1,")
            pathlib.Path(seen).unlink()
            pathlib.Path(folder, "both").touch()
            results = exact.Results()
            exact.run_on_each(runner, [(mode, case) for mode in exact.MODES[:6]], ["3", "5"], results)
            self.assertEqual({line.split()[-1] for line in pathlib.Path(seen).read_text().splitlines()}, {"3", "5"})
        self.assertEqual([finding.verdict for finding in results.findings()], ["same"] * 6)

    def test_every_launch_is_reported(self):
        finding = self.run_case("echo x; echo launches 2 2 >&2", "1,;0,the reason")
        self.assertFalse(finding.bad)
        self.assertEqual(finding.cells(), ("same", "1 of 2", 7, "the reason (1)", ""))

    def test_a_limit_counts_samples(self):
        part = "0,multiplexed: its counters are part of the values of the process's launch at position {}"
        partial = "1,measured in 1 of 2 passes"
        program = "echo launches 4 4 >&2"
        os.environ["FAKE_MODE"] = "multiplex"
        self.addCleanup(os.environ.pop, "FAKE_MODE")
        for launches, verdict in ((["1,", part.format(0), partial, partial], "same"), (["1,"], "same"),
                                  (["1,", "1,"], "2 whole samples of 1"),
                                  (["1,", part.format(7)], "no sample at position 7"),
                                  (["1,", *[part.format(0)] * 4], "5 launches reported of 4")):
            finding = self.run_case(program, ";".join(launches), most=1)
            self.assertEqual((finding.verdict, finding.bad), (verdict, verdict != "same"))

    def test_a_limit_does_not_count_what_is_put_off(self):
        program, put_off = "echo launches 3 3 >&2", "0,the GPU's work did not end within 0.1 s"
        self.assertEqual(self.run_case(program, f"1,;{put_off}", most=1).verdict, "same")
        self.assertEqual(self.run_case(program, "1,;0,the reason", most=1).verdict, "2 launches reported")
        self.assertEqual(self.run_case(program, f"1,;{put_off};{put_off};{put_off}", most=1).verdict,
                         "4 launches reported")
        self.assertTrue(exact.UNCOUNTED.match("it may have waited; what is queued behind it is measured"))
        self.assertFalse(exact.UNCOUNTED.match("the launch came behind one that may have waited"))

    def test_nothing_measured(self):
        declined = "0,the reason;0,the reason"
        self.assertFalse(self.run_case("echo launches 2 2 >&2", declined, status=110).bad)
        self.assertTrue(self.run_case("echo launches 2 2 >&2", declined).bad)
        self.assertTrue(self.run_case("echo launches 2 2 >&2", "1,;0,the reason", status=110).bad)
        self.assertFalse(self.run_case("echo launches 2 2 >&2; exit 3", declined, status=110).bad)

    def test_a_launch_is_lacking(self):
        finding = self.run_case("echo launches 3 4 >&2", "1,;1,")
        self.assertTrue(finding.bad)
        self.assertEqual(finding.verdict, "2 launches reported")

    def test_a_launch_without_values_or_reason(self):
        self.assertTrue(self.run_case("echo launches 2 2 >&2", "1,;0,").bad)

    def test_a_reason_that_some_launch_must_have(self):
        program = "echo launches 2 2 >&2"
        finding = self.run_case(program, "1,given up: slow;1,", reason="given up")
        self.assertEqual((finding.verdict, finding.detail), ("same", "given up: slow (1)"))
        self.assertTrue(self.run_case(program, "1,;1,", reason="given up").bad)

    def test_batches_where_there_must_be_some(self):
        program = "echo launches 1 1 >&2"
        self.assertEqual(self.run_case(program, "1,", batched="a").verdict, "same")
        os.environ["FAKE_BATCH"] = "2"
        self.addCleanup(os.environ.pop, "FAKE_BATCH")
        self.assertEqual(self.run_case(program, "1,").verdict, "same")
        self.assertEqual(self.run_case(program, "1,", batched="a").verdict, "not batched")

    def test_output_differs(self):
        finding = self.run_case("echo $UNDER; echo launches 1 1 >&2", "1,")
        self.assertEqual(finding.verdict, "DIFFERENT")

    def test_skipped(self):
        finding = self.run_case("echo no second GPU >&2; exit 77", "1,")
        self.assertEqual((finding.verdict, finding.bad), ("skipped", False))

    def test_plain_run_fails(self):
        self.assertTrue(self.run_case("exit 2", "1,").bad)

    def test_table_joins_modes_that_found_the_same(self):
        results, case = exact.Results(), exact.Case("p", "a")
        for mode in exact.MODES[:3]:
            results.add(case, mode, self.run_case("echo launches 2 2 >&2", "1,;0,the reason"))
        results.add(case, exact.MODES[3], self.run_case("exit 2", "1,"))
        table = results.table().splitlines()
        self.assertEqual(len(table), 4)
        self.assertIn("default-auto-all, one-auto-all, default-multiplex-all", table[2])
        self.assertEqual(results.summary(),
                         "3 same, 1 failed; 3 launches measured, 3 declined with a reason")
        self.assertIn("| the reason | 3 |", results.reasons())
        self.assertEqual(results.status(), 1)

    def test_later_commands_go_on_where_earlier_ones_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            first, case = exact.Results(resume=f"{folder}/state"), exact.Case("p", "a")
            first.add(case, exact.MODES[0], self.run_case("echo launches 2 2 >&2", "1,;0,the reason"))
            first.add(case, exact.MODES[1], self.run_case("exit 2", "1,"))
            first.add(case, exact.MODES[2], exact.Finding("not run", "no time left"))
            later = exact.Results([case], f"{folder}/state")
            self.assertEqual([later.is_done(case, mode) for mode in exact.MODES[:4]], [True, False, False, False])
            self.assertEqual((later.table(), later.summary()), (first.table(), first.summary()))
            later.add(case, exact.MODES[1], exact.Finding("same"))
            again = exact.Results([case], f"{folder}/state")
            self.assertTrue(again.is_done(case, exact.MODES[1]))
            again.add(case, exact.MODES[1], exact.Finding("not run", "no time left"))
            self.assertTrue(again.is_done(case, exact.MODES[1]))
            self.assertIn("(2 runs)", again.commits())

    def test_a_whole_case_takes_the_place_of_its_parts(self):
        results, case = exact.Results(), exact.Case("p", "a b")
        results.add(case.split()[0], exact.MODES[0], exact.Finding("crash", bad=True))
        results.add(case, exact.MODES[0], exact.Finding("same"))
        self.assertEqual(results.status(), 0)

    def test_what_did_not_run_does_not_pass(self):
        results, case = exact.Results(), exact.Case("p", "a")
        self.assertEqual(results.status(), harness.SKIPPED)
        results.add(case, exact.MODES[0], exact.Finding("skipped"))
        self.assertEqual(results.status(), harness.SKIPPED)
        results.add(case, exact.MODES[1], exact.Finding("same"))
        self.assertEqual(results.status(), 0)
        results.add(case, exact.MODES[2], exact.Finding("not run", "no time left"))
        self.assertEqual(results.status(), harness.SKIPPED)


if __name__ == "__main__":
    unittest.main()
