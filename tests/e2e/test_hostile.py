"""What other users and other programs do at the same time: put something in the place of kprof's files, read a report
that is being written, write to one name at once."""

import sqlite3
import stat
import threading

from harness import *


class Places(Case):
    def start(self, steps, **keywords):
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", APP, *steps],
            cwd=self.dir, text=True, env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            **keywords)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_a_link_in_place_of_the_session(self):
        """Who may write where the session is can put a link to another folder there: nothing is removed through it."""
        other = self.path("other")
        os.mkdir(other)
        with open(os.path.join(other, "config"), "w") as file:
            file.write("precious")
        process = self.start([f"launch={VECTOR_ADD}", "say=ready", "cat", "exit=0"], stdin=subprocess.PIPE)
        session = os.path.join(self.tmp, os.listdir(self.tmp)[0])
        os.rename(session, session + "-moved")
        os.symlink(other, session)
        _, err = process.communicate("", timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(os.listdir(other), ["config"])
        self.assertEqual(os.listdir(session + "-moved"), [])
        self.assertIn("left alone", err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        os.unlink(session)
        os.rmdir(session + "-moved")

    def test_a_session_of_others_is_not_obeyed(self):
        """A process that outlived kprof finds a folder that other users may write to under the old name."""
        session = self.path("session")
        os.mkdir(session, 0o700)
        process = self.start([f"launch={VECTOR_ADD}", "say=ready", "cat", "exit=0"], stdin=subprocess.PIPE)
        real = os.path.join(self.tmp, os.listdir(self.tmp)[0])
        with open(os.path.join(real, "config"), "rb") as file, open(os.path.join(session, "config"), "wb") as copy:
            copy.write(file.read())
        process.communicate("", timeout=60)

        def run_inside():
            environment = self.environment({"CUDA_INJECTION64_PATH": INJECTION, "KPROF_SESSION_DIR": session})
            run = subprocess.run([APP, f"launch={VECTOR_ADD}", "say=ran"], env=environment, text=True, cwd=self.dir,
                                 capture_output=True, timeout=60)
            self.assertEqual((run.returncode, run.stdout), (0, "ran\n"))
            return run.stderr, [name for name in os.listdir(session) if name.endswith(".spool")]

        os.chmod(session, 0o770)
        err, spools = run_inside()
        self.assertIn("other users have access", err)
        self.assertEqual(spools, [])
        os.chmod(session, 0o700)
        if os.geteuid() == 0:
            os.chown(session, 65534, 65534)
            err, spools = run_inside()
            self.assertIn("belongs to another user", err)
            self.assertEqual(spools, [])
            os.chown(session, 0, 0)
        err, spools = run_inside()
        self.assertEqual((err, len(spools)), ("", 1)) # it is the folder that was refused, not its content

    def test_a_start_that_fails_leaves_nothing(self):
        """The next run with the same name is not told that the report exists."""
        for kilobytes in (1, 8, 32, 64):
            run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", APP, "say=ran",
                             preexec_fn=limit_file_size(kilobytes << 10))
            self.assertEqual(run.out == "ran\n", run.code not in (108, 113), run.err)
            if run.out == "":
                self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run")], [], kilobytes)
                self.assert_clean()


class AtOnce(Case):
    def run_many(self, options, count):
        runs = [None] * count

        def one(i):
            runs[i] = self.profile([*options], [f"launch={VECTOR_ADD}*{i + 1}"])

        threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return runs

    def launches_of(self, name):
        return self.query(name, "SELECT count(*) FROM launch")[0][0]

    def test_numbered_reports(self):
        runs = self.run_many(["-o", "run%i"], 8)
        self.assertEqual([run.code for run in runs], [0] * 8, [run.err for run in runs])
        found = sorted(self.launches_of(f"run{i}.kprof") for i in range(1, 9))
        self.assertEqual(found, list(range(1, 9)))

    def test_one_name(self):
        runs = self.run_many(["-o", "run"], 8)
        self.assertEqual(sorted(run.code for run in runs), [0] + [108] * 7)
        winner = [i for i in range(8) if runs[i].code == 0][0]
        self.assertEqual(self.launches_of("run.kprof"), winner + 1)

    def test_one_name_replaced(self):
        runs = self.run_many(["-f", "-o", "run"], 8)
        self.assertEqual([run.code for run in runs], [0] * 8, [run.err for run in runs])
        self.assertIn(self.launches_of("run.kprof"), range(1, 9))
        self.assertEqual(self.query("run.kprof", "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run")], ["run.kprof"])

    def test_a_reader_that_holds_the_report(self):
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", APP, f"launch={VECTOR_ADD}",
             "sleep=900", "say=ready", "cat"], cwd=self.dir, text=True, env=self.environment({}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "ready\n")
        with sqlite3.connect(self.path("run.kprof")) as database:
            rows = database.execute("SELECT name FROM metric")
            self.assertIsNotNone(rows.fetchone()) # and the rest stays to be read
            _, err = process.communicate("", timeout=60)
            self.assertEqual(process.returncode, 0, err)
            rows.fetchall()
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assertEqual(stat.S_IMODE(os.stat(self.path("run.kprof")).st_mode), 0o600)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run")], ["run.kprof"])
