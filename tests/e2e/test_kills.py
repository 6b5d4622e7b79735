"""SIGKILL at random moments to either side, and no space at any write: what was measured is in the report, or in one
that kprof recover makes, and the application runs as it would alone. KPROF_TEST_KILLS: how often."""

import contextlib
import random
import shutil
import time

from harness import *

KILLS = int(os.environ.get("KPROF_TEST_KILLS", "6"))
LAUNCHES, PAUSES = 20, 12 # a batch or so between pauses
LONGEST_S = 0.6


class KillCase(Case):
    steps = [*[f"launch={VECTOR_ADD}*{LAUNCHES}", "sleep=25"] * PAUSES, "say=done"]

    def start(self, options=("-o", "run")):
        return subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, *options, APP, *self.steps], cwd=self.dir,
            text=True, env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def each_kill(self, check):
        """Call check with a random moment, in seconds, for each kill: with the same ones in each run of the tests."""
        for number in range(KILLS):
            with self.subTest(number):
                check(random.Random(number).uniform(0, LONGEST_S))
            for name in os.listdir(self.dir):
                if name.startswith("run"):
                    os.remove(self.path(name))
            for name in os.listdir(self.tmp): # of a check that has failed
                shutil.rmtree(os.path.join(self.tmp, name))

    def assert_sound(self, name="run.kprof"):
        """A valid report of the first launches, each with its value. Gives their number."""
        self.assertEqual(self.query(name, "PRAGMA integrity_check"), [("ok",)])
        positions = self.query(name, "SELECT position FROM launch ORDER BY id")
        self.assertEqual(positions, [(i,) for i in range(len(positions))])
        self.assertEqual(self.query(name, "SELECT count(*) FROM launch WHERE measured = 0"), [(0,)])
        self.assertEqual(self.query(name, "SELECT count(*) FROM value WHERE launch_id NOT IN (SELECT id FROM launch)"),
                         [(0,)])
        return len(positions)

    def recover(self, *options):
        """From whatever session is left. What stays is an empty folder, just made or about to be removed."""
        run = self.kprof("recover", *options)
        self.assertEqual(run.code, 0, run.err)
        for name in os.listdir(self.tmp):
            self.assertLessEqual(set(os.listdir(os.path.join(self.tmp, name))), {"kprof.lock.new"})
            for file in os.listdir(os.path.join(self.tmp, name)):
                os.remove(os.path.join(self.tmp, name, file))
            os.rmdir(os.path.join(self.tmp, name))


class Kprof(KillCase):
    def kill_kprof(self, moment):
        process = self.start()
        time.sleep(moment)
        process.kill()
        process.wait()
        out, err = process.stdout.read(), process.stderr.read() # to their ends: that of the application
        process.stdout.close()
        process.stderr.close()
        self.assertIn(out, ("done\n", ""), err)
        self.assertLessEqual(err.count("kprof has ended"), 1)
        self.recover()
        if os.path.exists(self.path("run.kprof")) and os.path.getsize(self.path("run.kprof")):
            measured = self.assert_sound() if out else 0
            self.assertLessEqual(measured, LAUNCHES * PAUSES)

    def test_at_random_moments(self):
        self.each_kill(self.kill_kprof)

    def kill_recovery(self, moment):
        process = self.start([])
        time.sleep(0.25 + moment / 4)
        process.kill()
        process.communicate()
        recovering = subprocess.Popen([KPROF, "recover", "-o", "run"], cwd=self.dir, env=self.environment({}),
                                      stderr=subprocess.DEVNULL)
        time.sleep(moment / 20)
        recovering.kill()
        recovering.wait()
        self.recover("-f", "-o", "run")
        if os.path.exists(self.path("run.kprof")):
            self.assert_sound()

    def test_recover_at_random_moments(self):
        self.each_kill(self.kill_recovery)


class Application(KillCase):
    def application(self, process):
        """Its process id, once it has started; None when kprof has ended before."""
        while process.poll() is None:
            with contextlib.suppress(OSError):
                with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
                    for child in map(int, file.read().split()):
                        if os.readlink(f"/proc/{child}/exe") == os.path.realpath(APP):
                            return child
            time.sleep(0.002)

    def kill_application(self, moment):
        process = self.start()
        child = self.application(process)
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertIn(process.returncode, (128 + signal.SIGKILL, 0), err)
        self.assertLessEqual(self.assert_sound(), LAUNCHES * PAUSES)
        self.assert_clean()

    def test_at_random_moments(self):
        self.each_kill(self.kill_application)


    def end_application(self, moment):
        """By a signal that it does not handle: nothing is lost then, wherever it is."""
        process = self.start()
        child = self.application(process)
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        if process.returncode:
            self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        self.assertNotIn("lost", err)
        self.assertIn(self.query("run.kprof", "SELECT launches FROM process"),
                      ([], [(None,)], [(self.assert_sound(),)]), err) # None: no batch was open
        self.assert_clean()

    def test_signals_at_random_moments(self):
        self.each_kill(self.end_application)


class Full(KillCase):
    steps = ["liftlimit", f"launch={VECTOR_ADD}*600", "say=done"]
    LARGEST = 220 << 10 # bytes of the report of so many launches

    def sizes(self, largest):
        return [largest * i // KILLS for i in range(KILLS)]

    def test_the_report(self):
        for size in self.sizes(self.LARGEST):
            with self.subTest(size):
                run = self.profile(["-f", "-o", "run"], self.steps, preexec_fn=limit_file_size(size))
                self.assertIn((run.code, run.out), ((108, "done\n"), (0, "done\n"), (108, ""), (113, "")), run.err)
                if run.code == 108 and run.out: # the application ran: all of it is kept
                    self.assertNotIn("lost", run.err)
                    self.assertEqual(self.kprof("recover").code, 0)
                self.assert_clean()
                if run.out:
                    self.assertEqual(self.assert_sound(), 600)

    def test_the_spool(self):
        with open(self.path("limited"), "w") as file:
            file.write('ulimit -S -f $1\nshift\nexec "$@"\n') # in blocks of 512 bytes
        for size in [2 << 9, *self.sizes(60 << 10)]: # the first leaves room for launches, and not for their device
            with self.subTest(size):
                run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run", "sh",
                                 self.path("limited"), str(size >> 9), APP, *self.steps[1:])
                self.assert_run(run, 108)
                self.assertEqual(run.out, "done\n")
                kept = self.assert_sound()
                self.assertIn(f"the {kept} launch", run.err)
                self.assertLess(kept, 600)
