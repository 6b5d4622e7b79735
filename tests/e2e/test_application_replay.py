"""--replay-mode application: the program runs once for each pass, and the launches of the runs are joined."""

import csv
import io
import json
import re
import shutil
import time
import unittest

from harness import *

DEFAULT = ["--injection-path", INJECTION, "--set", "default"]
BY_NAME = {"KPROF_SIM_VALUES_BY_NAME": "1"} # the same in every plan
# Three runs.
FEW = ["--metrics", "regex:smsp__average_warps_issue_stalled_(b|d|m).*_per_issue_active.ratio"]
VALUES = """SELECT launch_id, name, value FROM value JOIN metric ON metric.id=metric_id WHERE kind='hardware' AND
            value NOT NULL AND name NOT LIKE '%throughput.%' ORDER BY 1, 2"""
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"


class Runs(Case):
    def replay(self, *words, options=DEFAULT, code=0, env=None, **keywords):
        run = self.kprof(*options, "--replay-mode", "application", "-f", "-o", "run", *words,
                         env={**BY_NAME, **(env or {})}, **keywords)
        self.assert_run(run, code)
        return run

    def few(self, *words, **keywords):
        return self.replay(*words, options=["--injection-path", INJECTION, *FEW], **keywords)

    def changing(self, first, later):
        """A program that launches something else from its second run on."""
        with open(self.path("changing.sh"), "w") as file:
            file.write(f'if [ -e again ]; then exec "{APP}" {later}; fi; touch again; exec "{APP}" {first}\n')
        if os.path.exists(self.path("again")):
            os.remove(self.path("again"))
        return ["sh", self.path("changing.sh")]

    def test_equals_kernel_replay(self):
        """Every value of a program that does the same each time is that of a replay."""
        steps = [f"launch={SCALE}*2", "place=grid:4", f"launch={SCALE}", f"launch={VECTOR_ADD}"]
        run = self.replay(APP, *steps)
        self.assertIn("run 9 of 9 of the application", run.err)
        self.assert_run(self.kprof(*DEFAULT, "-o", "whole", APP, *steps, env=BY_NAME), 0)
        self.assertEqual(self.query("run.kprof", VALUES), self.query("whole.kprof", VALUES))
        for sql in ("SELECT position, grid_x, block_x, context, stream FROM launch ORDER BY position",
                    "SELECT launch_id, name, value FROM value JOIN metric ON metric.id = metric_id "
                    "WHERE kind='launch' ORDER BY 1, 2", "SELECT kernel, launches FROM seen_kernels",
                    "SELECT DISTINCT sets FROM run", "SELECT launches, matched, wait_status FROM process",
                    "SELECT chip, identifier, definition FROM section ORDER BY 1, 2"):
            self.assertEqual(self.query("run.kprof", sql), self.query("whole.kprof", sql))
        self.assertEqual(self.query("run.kprof", "SELECT DISTINCT replay_mode, measured > 90 FROM launch"),
                         [("application", 1)])

    def test_throughputs(self):
        """A throughput is the greatest of its parts. Some of these take several passes at once, in which a launch is
        repeated."""
        self.replay(APP, f"launch={SCALE}")
        self.assertEqual(self.query("run.kprof", "SELECT id, measured, reason FROM launch"), [(0, 110, "")])
        names = [row[0] for row in self.query(
            "run.kprof", "SELECT name FROM value JOIN metric ON metric.id=metric_id WHERE name LIKE '%throughput.%' "
            "AND metric_id NOT IN (SELECT metric_id FROM schedule) AND "
            "value NOT NULL")]
        self.assertIn(SM, names)
        for name in names:
            listed = self.kprof("list", "collected", "--chips", "GH100", "--metrics", f"breakdown:{name}", "--csv").out
            parts = ",".join(f"'{row['metric']}'" for row in csv.DictReader(io.StringIO(listed)))
            self.assertEqual(*[self.query("run.kprof", "SELECT max(value) FROM value JOIN metric ON metric.id=metric_id"
                                          f" WHERE name IN ({wanted})")
                               for wanted in (f"'{name}'", parts)], name)

    def test_what_cannot_be_repeated(self):
        """Where a launch cannot be repeated, several of its kernel and shape have these passes."""
        self.replay(APP, "launch=_Z6pinnedPf*8", options=["--injection-path", INJECTION, "--metrics", SM],
                    env={"KPROF_SIM_PINNED": "1"})
        reasons = self.query("run.kprof", f"""SELECT count(*), reason FROM launch WHERE measured>0 AND (id IN (SELECT
                             launch_id FROM value JOIN metric ON metric.id=metric_id WHERE name='{SM}' AND value NOT
                             NULL))=(reason='') GROUP BY reason""")
        self.assertEqual(reasons, [(1, ""), (5, "metrics that take several passes at once are measured where a launch "
                                             "can be repeated, or others of its kernel and shape, or ranges of its "
                                             "name, follow")])

    def test_numbers_of_launches_that_cannot_be_repeated(self):
        """-c counts samples in the last run, and launches in the others."""
        for options, kept in (["-c", "1"], 3), (["-c", "5"], 7), (["-c", "20"], 12):
            self.replay(*options, APP, "launch=_Z6pinnedPf*12", options=["--injection-path", INJECTION, "--metrics",
                                                                         f"{SM},{METRIC}"],
                        env={"KPROF_SIM_PINNED": "1"})
            self.assertEqual(self.query("run.kprof", "SELECT count(*), max(position) FROM launch"), [(kept, kept - 1)])

    def test_output_input_and_files(self):
        """Each run prints, and reads a file from its beginning; the exit status is that of the first."""
        with open(self.path("in"), "w") as file:
            file.write("a line\n")
        script = f'read line; echo "got $line"; echo x >>written; exec "{APP}" launch={SCALE}'
        with open(self.path("in")) as file:
            run = subprocess.run([KPROF, "--injection-path", INJECTION, *FEW, "--replay-mode", "application", "-o",
                                  "run", "sh", "-c", script], stdin=file, env=self.environment({}, ("--set",)),
                                 cwd=self.dir, text=True, capture_output=True, timeout=PATIENCE_S)
        self.assertEqual(run.returncode, 0, run.stderr)
        runs = int(run.stderr.split("run 1 of ")[1].split()[0])
        self.assertGreater(runs, 1)
        self.assertEqual(run.stdout, "got a line\n" * runs)
        with open(self.path("written")) as file:
            self.assertEqual(file.read(), "x\n" * runs)

    def test_plan(self):
        for limit, runs in ([], 9), (["--max-passes", "3"], 3):
            plan = json.loads(self.kprof("plan", "--chips", "GH100", "--set", "default", "--replay-mode", "application",
                                         *limit, "--json").out)["plans"][0]
            self.assertEqual((plan["runs"], plan["left_out"] > 0), (runs, bool(limit)))
        run = self.replay("--max-passes", "3", APP, f"launch={SCALE}")
        self.assertIn("run 3 of 3", run.err)
        self.assertIn("metrics are left out to keep within --max-passes", run.err)

    @unittest.skipUnless(os.path.isdir("/dev/shm"), "there is no /dev/shm")
    def test_memory(self):
        before = set(os.listdir("/dev/shm"))
        self.few("--app-replay-buffer", "memory", APP, f"launch={SCALE}*2")
        self.assertEqual(self.launches(), ["scale", "scale"])
        left = {name for name in set(os.listdir("/dev/shm")) - before if re.fullmatch(r"kprof-\w{6}", name)}
        deadline = time.monotonic() + PATIENCE_S
        while left: # another run's goes when that ends
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.01)
            left &= set(os.listdir("/dev/shm"))

    def test_no_space(self):
        """Where the runs keep what they measure is told, and another place."""
        for buffer, way_out in (("memory", "in /dev/shm until the last one has ended: --app-replay-buffer file keeps"),
                                ("file", f"in {self.tmp} until the last one has ended: set TMPDIR to a folder with")):
            run = self.kprof("--injection-path", INJECTION, *FEW, "--replay-mode", "application", "--app-replay-buffer",
                             buffer, APP, "liftlimit", f"launch={SCALE}*3000", preexec_fn=limit_file_size(500 << 10))
            self.assertEqual(run.code, 108, run.err)
            self.assertIn(f"what the runs measure is kept {way_out}", run.err)
            for folder in re.findall(r"kprof recover (/dev/shm/kprof-\w+) makes", run.err):
                shutil.rmtree(folder)

    def test_fewer_launches_later(self):
        for mode, code in ("strict", 110), ("balanced", 110), ("relaxed", 0):
            with self.subTest(mode):
                run = self.few("--app-replay-mode", mode, *self.changing(
                    f"launch={SCALE}*3 launch={VECTOR_ADD}", f"launch={SCALE}*2 launch={VECTOR_ADD}"), code=code)
                kept = ["scale"] * 2 + ["vectorAdd"] * (mode != "strict")
                self.assertEqual(self.launches(), kept)
                self.assertRegex(run.err, r"of \d+ launches of the \d+ runs (is|are) left out, since not every run "
                                          r"has (it|them)")
                self.assertIn("scale: one run has it 2 times, another one 3 times", run.err)
                self.assertEqual("the runs differ" in run.err, code != 0)
                self.assertIn("a pipe, which the first run may have read to its end", run.err)

    def test_fewer_ranges_later(self):
        ranges = lambda count: f"push=step launch={SCALE} pop " * count
        self.changing(ranges(3), ranges(2))
        run = self.kprof("--injection-path", INJECTION, *FEW, "--replay-mode", "app-range", "--nvtx", "--nvtx-include",
                         "step/", "-f", "-o", "run", "sh", self.path("changing.sh"), stdin=None)
        self.assert_run(run, 110)
        self.assertRegex(run.err, "1 of 7 ranges of the 3 runs is left out, since not every run .*; 2 ranges match")
        self.assertIn("step: one run has it 2 times, another one 3 times", run.err)

    def test_nothing_in_common(self):
        """The exit code tells it, and no filter is blamed."""
        steps = f"place=grid:4 launch={SCALE}", f"place=grid:8 launch={SCALE}"
        for mode, way_out in (("strict", "balanced takes any order, --app-replay-match name takes any shape,"),
                              ("relaxed", "in all runs; --app-replay-match name takes any shape,")):
            run = self.few("--app-replay-mode", mode, *self.changing(*steps), code=110)
            self.assertIn("no launch is the same in all runs; ", run.err)
            self.assertIn(way_out, run.err)
            self.assertNotIn("no launch matched", run.err)
        run = self.few("--app-replay-mode", "strict", *self.changing(f"launch={SCALE}", f"launch={VECTOR_ADD}"),
                       code=110)
        self.assertIn("no launch is the same in all runs; let the program launch the same kernels in each of them, or "
                      "measure it in one run with --replay-mode auto", run.err)
        self.assertNotIn("--app-replay-", run.err) # no other order or shape helps
        steps = f"place=context:1 launch={SCALE}", f"place=context:2 launch={SCALE}"
        run = self.few("--app-replay-match", "all", *self.changing(*steps), code=110)
        self.assertIn("; --app-replay-match grid takes any context and stream, and name any shape, too,", run.err)

    def test_another_order(self):
        steps = f"launch={SCALE} launch={VECTOR_ADD}", f"launch={VECTOR_ADD} launch={SCALE}"
        run = self.few("--app-replay-mode", "strict", *self.changing(*steps), code=110)
        self.assertEqual(self.launches(), [])
        self.assertIn("scale: all runs have it as often (1), but at other places or with other shapes", run.err)
        self.few(*self.changing(*steps))
        self.assertEqual(self.launches(), ["scale", "vectorAdd"])

    def test_another_shape(self):
        steps = f"launch={SCALE}", f"place=grid:4 launch={SCALE}"
        for match, code in ("grid", 110), ("all", 110), ("name", 0):
            with self.subTest(match):
                self.few("--app-replay-match", match, *self.changing(*steps), code=code)
                self.assertEqual(self.launches(), ["scale"] * (code == 0))
        steps = f"launch={SCALE}", f"place=stream:9 launch={SCALE}"
        for match, code in ("grid", 0), ("all", 110):
            self.few("--app-replay-match", match, *self.changing(*steps), code=code)

    def test_processes(self):
        script = f'"{APP}" launch={SCALE}*2; "{APP}" launch={SCALE}*3 launch={VECTOR_ADD}'
        self.few("sh", "-c", script)
        self.assertEqual(self.query("run.kprof", "SELECT process_id, count(*), min(passes) FROM launch GROUP BY 1"),
                         [(1, 2, 3), (2, 4, 3)])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM process"), [(2,)])

    def test_ends(self):
        run = self.few(APP, f"launch={SCALE}", "exit=3", code=3)
        self.assertIn("the application failed or was interrupted, so kprof does not run it once more", run.err)
        self.assertNotIn("run 2 of", run.err)
        self.assertEqual(self.launches(), ["scale"])
        run = self.few(*self.changing(f"launch={SCALE}", f"launch={SCALE} exit=4"))
        self.assertIn("run 2 of the application ended in another way than the first one: with status 4", run.err)
        run = self.few(*self.changing(f"launch={SCALE}", f"launch={SCALE} raise=9"), code=110)
        self.assertIn("ended in another way than the first one: with signal 9", run.err)
        self.assertNotIn("run 3 of", run.err)
        run = self.few("sh", "-c", f'trap : INT; kill -INT $PPID; "{APP}" launch={SCALE}; exit 0')
        self.assertIn("was interrupted, so kprof does not run it once more; what 2 further runs", run.err)
        self.assertEqual(self.launches(), ["scale"])
        run = self.few(APP, "say=hello", code=106)
        self.assertEqual(run.out.count("hello"), 1)
