#!/usr/bin/env python3
"""Tests of how frameworks.py counts, computes and reports; they need no GPU."""
import pathlib
import sqlite3
import sys
import tempfile
import time
import unittest

import frameworks
import harness

# The columns that frameworks.py reads, of docs/report-schema.md. Chip A has two planned metrics that need counters; a
# derived one and one of another chip are no part of them.
REPORT = """
CREATE TABLE process(id, launches);
CREATE TABLE device(id, chip);
CREATE TABLE metric(id, name, kind);
CREATE TABLE schedule(chip, metric_id, pass);
CREATE TABLE launch(id, device_id, replay_mode, reason);
CREATE TABLE value(launch_id, metric_id, value);
CREATE TABLE message(id, level, text);
INSERT INTO process VALUES(1, 900), (2, NULL), (3, 5);
INSERT INTO device VALUES(1, 'A');
INSERT INTO metric VALUES(1, 'cycles', 'hardware'), (2, 'bytes', 'hardware'), (3, 'rate', 'derived'),
                         (4, 'block', 'launch'), (5, 'other', 'hardware');
INSERT INTO schedule VALUES('A', 1, 1), ('A', 2, 1), ('A', 2, 2), ('A', 3, 1), ('B', 5, 1);
INSERT INTO launch VALUES(0, 1, 'batch', ''), (1, 1, 'batch', 'caches were not flushed'), (2, 1, 'one-pass', 'shared'),
                         (3, 1, 'none', 'waits'), (4, 1, 'one-pass', 'shared'), (5, 1, 'batch', '');
INSERT INTO value VALUES(0, 1, 0.0), (0, 2, 3.0), (0, 3, NULL), (0, 4, 1.0), (1, 1, 1.0), (1, 2, 1.0),
                        (2, 1, 5.0), (2, 2, NULL), (3, 4, 1.0), (4, 2, 5.0), (5, 1, 5.0), (5, 2, NULL);
INSERT INTO message VALUES(1, 'warning', 'first'), (2, 'debug', 'no'), (3, 'warning', 'first'), (4, 'error', 'second');
"""


def result(seconds, stdout="same", stderr="", status=0):
    return harness.Result(status, stdout, stderr, seconds)


class FixedPlain:
    """In place of two runs of a program."""

    def __init__(self, seconds=2.0, stdout="same", deterministic=True):
        self.seconds, self.stdout, self.deterministic = seconds, stdout, deterministic
        self.fastest = result(seconds, stderr="program seconds 0.25\n")
        self.skipped, self.problem = False, ""


def measurement(complete=100, kprof=None, ncu=None, plain=None):
    row = frameworks.Row("jax", ["jax_train.py"], 10, 100, percent=95, ncu_launches={"default": 4})
    made = frameworks.Measurement(row, "default", None)
    made.plain, made.kprof = plain or FixedPlain(), kprof or result(4.0)
    made.completeness = frameworks.Completeness(100, complete, {"none: a|b": 100 - complete})
    made.ncu, made.ncu_profiled = ncu, 4
    return made


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.base = pathlib.Path(folder.name) / "r"

    def test_a_launch_is_complete_with_all_planned_metrics(self):
        with sqlite3.connect(f"{self.base}.kprof") as database:
            database.executescript(REPORT)
        found = frameworks.read_completeness(self.base, 8)
        self.assertEqual((found.chosen, found.complete, found.seen, found.percent()), (8, 2, 905, 25.0))
        self.assertEqual(found.modes, {"batch": 2})
        self.assertEqual(found.reasons, {"one-pass: shared": 2, "none: waits": 1, "not in the report": 2,
                                         "batch: no reason given, 1 metrics without a value (bytes)": 1})
        self.assertEqual(found.warnings, ["first", "second"])
        self.assertTrue(found.reasons_text().startswith("2 x "))
        self.assertEqual(frameworks.read_completeness(self.base, 3).chosen, 6)

    def test_a_chip_without_planned_metrics_has_no_complete_launch(self):
        with sqlite3.connect(f"{self.base}.kprof") as database:
            database.executescript(REPORT + "UPDATE device SET chip='C';")
        found = frameworks.read_completeness(self.base, 6)
        self.assertEqual((found.complete, sum(found.reasons.values())), (0, 6))

    def test_no_report(self):
        found = frameworks.read_completeness(self.base, 5)
        self.assertEqual((found.complete, list(found.reasons.values())), (0, [5]))

    def test_rare_reasons_are_counted_together(self):
        found = frameworks.Completeness(10, 0, {f"reason {number}": 1 for number in range(8)})
        self.assertTrue(found.reasons_text().endswith("; 3 for other reasons"))

    def test_a_recorded_report(self):
        found = frameworks.read_completeness(harness.ROOT / "samples/vectorAdd-h200", 1)
        self.assertEqual((found.complete, found.reasons), (1, {}))

    def test_instructions_are_wanted_of_each_launch(self):
        with sqlite3.connect(f"{self.base}.kprof") as database:
            database.executescript(REPORT + """
                CREATE TABLE code_profile(id, counted, sampled, reason);
                CREATE TABLE launch_code_profile(launch_id, profile_id);
                INSERT INTO code_profile VALUES(1, 1, 1, ''), (2, 1, 0, 'not sampled');
                INSERT INTO launch_code_profile VALUES(0, 1), (1, 2);
                CREATE TABLE timeline_pass(launch_id, samples, reason);
                INSERT INTO timeline_pass VALUES(0, 50, ''), (0, 0, 'lost'), (1, 50, ''), (1, 3, 'too short');""")
        found = frameworks.read_completeness(self.base, 6, "source")
        self.assertEqual((found.complete, found.counted, found.sampled, found.over_time), (1, 2, 1, 0))
        self.assertEqual(found.reasons["instructions: not sampled"], 1)
        found = frameworks.read_completeness(self.base, 6, "full")
        self.assertEqual((found.complete, found.over_time, found.reasons["over time: lost"]), (1, 1, 1))


class Arithmetic(unittest.TestCase):
    def test_added_time_and_ratio(self):
        made = measurement(ncu=result(6.0))
        self.assertAlmostEqual(made.kprof_added_ms(), 20)
        self.assertAlmostEqual(made.ncu_added_ms(), 1000)
        cells = made.cells()
        self.assertEqual(cells[-3:], ("50", "15", "met"))
        self.assertEqual((len(cells), len(made.detail_cells(pathlib.Path("x.log")))),
                         (len(frameworks.HEADER), len(frameworks.DETAIL_HEADER)))

    def test_only_complete_launches_count_for_kprof(self):
        self.assertAlmostEqual(measurement(complete=50).kprof_added_ms(), 40)
        self.assertIsNone(measurement(complete=0).kprof_added_ms())

    def test_the_limit_of_ncu_gives_a_lower_bound(self):
        limited = measurement(ncu=result(102.0, status=None))
        limited.ncu_profiled = 0
        self.assertEqual(limited.cells()[9:], ("over 102", 0, "20", "over 2.5e+04", "over 1.25e+03", "15", "met"))
        low = measurement(ncu=result(2.4, status=None))
        self.assertEqual(low.cells()[-3:], ("over 5", "15", "n/a"))

    def test_without_ncu_or_with_one_that_failed(self):
        for ncu in (None, result(6.0, status=1)):
            self.assertEqual(measurement(ncu=ncu).cells()[-4:], (None, None, "15", "n/a"))

    def test_a_ratio_needs_added_time(self):
        self.assertEqual(frameworks.ratio(8.0, 2.0), 4.0)
        for slow, fast in ((None, 1.0), (1.0, None), (1.0, 0.0), (1.0, -2.0), (-1.0, 1.0)):
            self.assertIsNone(frameworks.ratio(slow, fast))
        self.assertEqual(frameworks.ratio_verdict(9.0, 10.0, False), "missed")
        self.assertIsNone(frameworks.added_ms(3.0, 2.0, 0))

    def test_launches_in_the_log_of_ncu(self):
        log = ('==PROF== Connected to process 7 (/usr/bin/python3)\n'
               '==PROF== Profiling "gemm" - 0: 0%....50%....100% - 8 passes\n'
               '==PROF== Profiling "copy - 1 passes" - 1 (2/3): 0%....50%....100% - 1 pass\n'
               '==PROF== Profiling "last" - 2: 0%....50%')
        self.assertEqual(frameworks.profiled_by_ncu(log), 2)


class Judgement(unittest.TestCase):
    def test_a_row_passes_with_enough_launches_and_the_same_output(self):
        self.assertTrue(measurement(complete=95).passed())
        self.assertFalse(measurement(complete=94).passed())
        self.assertFalse(measurement(kprof=result(4.0, stdout="other")).passed())
        self.assertFalse(measurement(kprof=result(4.0, status=1)).passed())

    def test_a_program_that_differs_from_itself_does_not_pass(self):
        made = measurement(plain=FixedPlain(deterministic=False))
        self.assertEqual((made.identical(), made.passed()), ("plain runs differ", False))


class Sessions(unittest.TestCase):
    def session(self, *words):
        return frameworks.Session(frameworks.parse_arguments(words), "/nowhere", pathlib.Path("/nowhere"))

    def report(self, session):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "f.md"
            document = harness.Document(path)
            document.add = document.file.write
            session.report(document)
            document.file.close()
            return path.read_text(encoding="utf-8")

    def test_nothing_starts_after_the_limit(self):
        session = self.session("--seconds", "-1", "--only", "jax,decode", "--sets", "full")
        session.measurements.append(measurement())
        session.run()
        self.assertEqual(session.not_run, ["decode, full", "jax, full", "jax, default: ncu"])
        text = self.report(session)
        self.assertIn("## Not run within -1 s\n\n- decode, full\n", text)
        self.assertIn("| jax | default | 100 | 100 | 100.0 (of 95) |", text)
        self.assertEqual(session.status(), 0)

    def test_status(self):
        session = self.session()
        self.assertEqual(session.status(), harness.SKIPPED)
        session.measurements.append(measurement(complete=1))
        self.assertEqual((session.status(), session.failed()), (1, ["jax, default"]))
        self.assertIn("none: a\\|b", self.report(session))

    def test_plain_runs_happen_once_for_a_program(self):
        session = self.session("--no-ncu")
        missing = FixedPlain()
        missing.skipped, missing.runs = True, [result(0.1, stderr="skipped: no JAX\n", status=77)]
        session.plain = {tuple(row.argv): missing for row in frameworks.ROWS}
        session.run()
        self.assertEqual(len(session.skipped), 2 * len(frameworks.ROWS))
        self.assertEqual((session.skipped[0], session.status()),
                         ("train-steady, default: skipped: no JAX", harness.SKIPPED))

    def test_rows_have_programs(self):
        for row in frameworks.ROWS:
            self.assertTrue(pathlib.Path(row.argv[1]).exists(), row.argv)


class Runs(unittest.TestCase):
    def test_the_log_keeps_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x.log"
            frameworks.write_log(path, ["kprof", "a b"], result(1.5, stderr="x" * frameworks.LOG_BYTES + "end"))
            text = path.read_text()
        self.assertTrue(text.startswith("kprof 'a b'\nstatus 0, 1.50 s\n"))
        self.assertTrue(text.endswith("xend"))
        self.assertLess(len(text), frameworks.LOG_BYTES + 100)

    def test_a_run_that_meets_its_limit_leaves_no_process(self):
        with tempfile.TemporaryDirectory() as folder:
            marker = pathlib.Path(folder) / "pid"
            program = ("import subprocess, sys, time; p = subprocess.Popen(['sleep', '900'], start_new_session=True); "
                       f"open({str(marker)!r}, 'w').write(str(p.pid)); time.sleep(900)")
            for limit in (1, 10, 100):
                ended = frameworks.run([sys.executable, "-c", program], limit)
                if marker.exists() and marker.read_text(): # else Python had not started yet
                    break
            pid = marker.read_text()
        self.assertIsNone(ended.status)
        state = pathlib.Path(f"/proc/{pid}/stat")
        is_gone = lambda: not state.exists() or state.read_text().split()[2] == "Z"
        deadline = time.monotonic() + 900  # a killed process takes a moment to end
        while not is_gone() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(is_gone())

    def test_a_plain_run_that_fails_or_lacks_its_framework(self):
        failed = frameworks.Plain([sys.executable, "-c", "import sys; sys.exit(3)"])
        self.assertEqual((failed.skipped, failed.problem), (False, "ended with 3: "))
        self.assertTrue(frameworks.Plain([sys.executable, "-c", "import sys; sys.exit(77)"]).skipped)
        good = frameworks.Plain([sys.executable, "-c", "import sys; print('program seconds 2.5', file=sys.stderr)"])
        self.assertEqual((good.problem, good.deterministic, frameworks.program_seconds(good.fastest)), ("", True, 2.5))

    def under_kprof(self, results):
        """What a measurement tells of when its runs end like this."""
        made = frameworks.Measurement(frameworks.Row("jax", ["jax_train.py"], 10, 100), "default", None)
        left = iter(results)

        def one(_base, _log):
            made.kprof, made.completeness = next(left), frameworks.Completeness(100, 100)
            return made.kprof, made.completeness

        made.run_kprof_once = one
        plain = FixedPlain()
        plain.runs = [result(2.0)] * 3
        made.run_kprof(plain, "/nowhere", None)
        return made.kprof, list(left)

    def test_the_fastest_run_or_one_that_failed_is_told_of(self):
        good = [result(4.0), result(3.0), result(5.0)]
        self.assertEqual(self.under_kprof(good), (good[1], []))
        bad = result(9.0, stdout="other")
        self.assertEqual(self.under_kprof([good[0], bad, good[1]]), (bad, [good[1]]))


if __name__ == "__main__":
    unittest.main()
