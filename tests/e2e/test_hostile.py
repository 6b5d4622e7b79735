"""What other users and other programs do at the same time: put something in the place of kprof's files, read a report
that is being written, write to one name at once."""

import contextlib
import glob
import json
import random
import re
import resource
import shutil
import sqlite3
import stat
import struct
import threading
import unittest

from harness import *


def cuda_root():
    """Of the toolkit that kprof was built with; None when it was built without."""
    with open(os.path.join(BUILD, "CMakeCache.txt")) as cache:
        for line in cache:
            if line.startswith("CUDA_INCLUDE:PATH=/"):
                return os.path.dirname(line.strip().split("=")[1])


SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


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
        _, err = process.communicate("", timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(os.listdir(other), ["config"])
        self.assertEqual(os.listdir(session + "-moved"), [])
        self.assertIn("left alone", err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        os.unlink(session)
        os.rmdir(session + "-moved")

    def test_a_report_that_the_program_overwrites(self):
        """kprof calls no report good that it cannot read, and makes a good one of what it has kept."""
        noise, app = "head -c 50000 /dev/urandom", f"{APP} launch={VECTOR_ADD}"
        for what, writes in (("log", f"{noise} > run.kprof-wal"), ("emptied log", ": > run.kprof-wal"),
                             ("report", f"{noise} > run.kprof"), ("start", f"{noise} | dd of=run.kprof conv=notrunc"),
                             ("middle", f"{noise} | dd of=run.kprof bs=8192 seek=1 conv=notrunc"),
                             ("emptied report", ": > run.kprof")):
            with self.subTest(what=what):
                steps = f"{app}*3; ({writes}) 2>/dev/null; {app}*200"
                run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "sh", "-c", steps)
                if run.code != 0:
                    self.assertEqual(run.code, 108, run.err)
                    self.assertIn("kprof recover ", run.err)
                    recovered = self.kprof("recover", "-f")
                    self.assertEqual(recovered.code, 0, recovered.err)
                self.assert_clean()
                self.assertEqual(self.query("run.kprof", "PRAGMA quick_check"), [("ok",)])
                self.assertEqual(len(self.launches()), 203)
                os.unlink(self.path("run.kprof"))

    def test_results_without_a_place(self):
        """What cannot be told on a stream that is closed is told by the exit code."""
        run = ["--injection-path", INJECTION, "--metrics", METRIC]
        command = '"$@" 2>&-; exit $?'
        for words, code in (([*run, APP, f"launch={VECTOR_ADD}"], 108),
                            ([*run, "--log-file", "stderr", APP, f"launch={VECTOR_ADD}"], 108),
                            ([*run, "--log-file", "stdout", APP, f"launch={VECTOR_ADD}"], 0),
                            ([*run, "-o", "run", APP, f"launch={VECTOR_ADD}"], 0), (["list"], 0)):
            process = subprocess.run(["sh", "-c", command, "sh", KPROF, *words], cwd=self.dir, capture_output=True,
                                     env=self.environment({}))
            self.assertEqual(process.returncode, code, words)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_a_message_that_nobody_takes(self):
        """kprof's message about the session does not end a program that writes nothing there itself."""
        session = self.path("session")
        os.mkdir(session, 0o755)
        environment = self.environment({"CUDA_INJECTION64_PATH": INJECTION, "KPROF_SESSION_DIR": session})
        command = [APP, f"launch={VECTOR_ADD}", "say=ran"]
        reader, nobody = os.pipe()
        os.close(reader)
        full = os.open(self.path("full"), os.O_CREAT | os.O_WRONLY)
        for stream, limit in ((nobody, None), (full, limit_file_size(9))):
            run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=stream, text=True,
                                 preexec_fn=limit, timeout=PATIENCE_S)
            os.close(stream)
            self.assertEqual((run.returncode, run.stdout), (0, "ran\n"))

    def test_long_names(self):
        """A name for which SQLite has none beside it is refused before the application starts, and others do."""
        for name, fits in (("x" * 230, True), ("x" * 231, False), ("x" * 249, False), ("x" * 300, False),
                           ("x" * 5000, False), ("/".join(["d" * 200] * 3), False)):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            for options in ([], ["-f"]):
                run = self.profile([*options, "-o", name], [f"launch={VECTOR_ADD}", "say=ran"])
                self.assertEqual((run.code, run.out), (0, "ran\n") if fits else (108, ""), run.err)
                if not fits:
                    self.assertRegex(run.err, "more than [0-9]+ characters")
            self.assert_clean()

    def test_umask(self):
        """It takes nothing from the user of kprof, and is the application's own."""
        steps = f"umask; {APP} launch={VECTOR_ADD}; stat -c '%a %n' {self.tmp}/kprof-*/*"
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "sh", "-c", steps,
                         preexec_fn=lambda: os.umask(0o777))
        self.assert_run(run, 0)
        first, *files = run.out.splitlines()
        self.assertEqual(first, "0777")
        self.assertGreater(len(files), 3)
        self.assertEqual([line for line in files if not line.startswith("600 ")], [])
        self.assertEqual(stat.S_IMODE(os.stat(self.path("run.kprof")).st_mode), 0o600)

    def test_a_missing_interpreter(self):
        for first, words in (("#!/no/such/shell -x", '"/no/such/shell": No such'), ("#!/bin/sh\r", "carriage return"),
                             ("#! /tmp", '"/tmp": Permission denied')):
            with open(self.path("program"), "w", newline="") as file:
                file.write(first + "\necho ran\n")
            os.chmod(self.path("program"), 0o755)
            run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "./program")
            self.assertEqual(run.code, 109, run.err)
            self.assertIn(words, run.err)
            self.assertNotIn("did you mean", run.err)
            self.assert_clean()

    def test_a_journal_of_others(self):
        """Another program that changed a report was killed: kprof tells what to do with what it left."""
        shutil.copy(SAMPLE, self.path("whole.kprof"))
        os.chmod(self.path("whole.kprof"), 0o600)
        database = sqlite3.connect(self.path("whole.kprof"), isolation_level=None)
        for statement in ("PRAGMA cache_size=2", "BEGIN IMMEDIATE", "UPDATE value SET value=value+1"):
            database.execute(statement)
        for ending in ("", "-journal"):
            shutil.copy(self.path("whole.kprof" + ending), self.path("cut.kprof" + ending))
        database.close()
        run = self.kprof("report", "cut.kprof")
        self.assertEqual(run.code, BAD_REPORT, run.err)
        self.assertIn("cut.kprof-journal has what it wrote over", run.err)
        self.query("cut.kprof", "SELECT count(*) FROM sqlite_schema") # as the message says
        self.assertEqual(self.kprof("report", "cut.kprof").code, 0)

    def test_a_session_of_others_is_not_obeyed(self):
        """A process that outlived kprof finds a folder that other users may write to under the old name."""
        session = self.path("session")
        os.mkdir(session, 0o700)
        process = self.start([f"launch={VECTOR_ADD}", "say=ready", "cat", "exit=0"], stdin=subprocess.PIPE)
        real = os.path.join(self.tmp, os.listdir(self.tmp)[0])
        with open(os.path.join(real, "config"), "rb") as file, open(os.path.join(session, "config"), "wb") as copy:
            copy.write(file.read())
        process.communicate("", timeout=PATIENCE_S)

        def run_inside():
            environment = self.environment({"CUDA_INJECTION64_PATH": INJECTION, "KPROF_SESSION_DIR": session})
            run = subprocess.run([APP, f"launch={VECTOR_ADD}", "say=ran"], env=environment, text=True, cwd=self.dir,
                                 capture_output=True, timeout=PATIENCE_S)
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


class Unfinished(Case):
    COMMANDS = ("export run --to chrome -o new", "export run --to nsys-sqlite -o new", "report run --html new.html",
                "merge run sample -o new", "merge run sample -f -o old", "report run sample --launch 0",
                "report run --launch 0-9 -o new", "stats run -o new")
    # Each is tried with one of the commands, and the usual two with all.
    SIGNALS = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM,
               signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX)

    def interrupt(self, words, known, number):
        """End kprof once it has begun a file. Was that before it had ended?"""
        process = subprocess.Popen([KPROF, *words.split()], cwd=self.dir, env=self.environment({}), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        while process.poll() is None and not os.listdir(self.tmp) and set(os.listdir(self.dir)) <= known:
            pass
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertIn(process.returncode, (-number, 0), err)
        return process.returncode != 0

    def test_a_signal_leaves_nothing_of_a_file(self):
        """Nobody takes part of a file for a whole one."""
        self.assert_run(self.collect(["--trace"], [f"launch={VECTOR_ADD}*3"]), 0)
        shutil.copy(SAMPLE, self.path("sample.kprof"))
        with sqlite3.connect(self.path("run.kprof")) as database:
            columns = [row[1] for row in database.execute("PRAGMA table_info(trace_kernel)")][1:]
            database.execute(f"INSERT INTO trace_kernel SELECT NULL, {','.join(columns)} FROM trace_kernel, (WITH "
                             "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n LIMIT 20000) SELECT * FROM n)")
        database.close()
        interrupted = set()
        for i, words in enumerate(self.COMMANDS):
            for number in (signal.SIGINT, signal.SIGTERM, *self.SIGNALS[i::len(self.COMMANDS)]):
                shutil.copy(SAMPLE, self.path("old.kprof"))
                known = set(os.listdir(self.dir))
                if self.interrupt(words, known, number):
                    interrupted.add(words)
                    tables = {name for name in os.listdir(self.dir) if name.startswith("new_")}
                    self.assertEqual(set(os.listdir(self.dir)) - tables, known, words)
                    for table in tables: # those before the one that was begun
                        with open(self.path(table), encoding="utf-8") as file:
                            self.assertTrue(file.read().endswith("\n"), table)
                self.assert_clean()
                for name in set(os.listdir(self.dir)) - known:
                    os.unlink(self.path(name))
        self.assertGreater(len(interrupted), len(self.COMMANDS) // 2)


@unittest.skipUnless(os.geteuid() == 0, "only root can make programs that have more rights than their user")
class Privileged(Case):
    """A program with more rights than its user: no variable of that user's chooses its files or libraries."""

    def setUp(self):
        super().setUp()
        if is_sanitized():
            self.skipTest("LeakSanitizer traces its own process, which the kernel does not allow such programs")
        for folder in ("bin", "share/kprof"):
            os.makedirs(self.path(folder))
        os.symlink(os.path.join(SOURCE, "metricsets"), self.path("share/kprof/metricsets"))
        os.chmod(self.dir, 0o755)
        for folder in ("tmp", "cache", "home"):
            os.makedirs(self.path(folder), exist_ok=True)
            os.chmod(self.path(folder), 0o777)

    def privileged(self, program):
        """A copy that runs with the rights of nobody."""
        copy = self.path(f"bin/{os.path.basename(program)}")
        shutil.copy(program, copy)
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        if os.statvfs(copy).f_flag & os.ST_NOSUID:
            self.skipTest("this file system gives no program other rights")
        return copy

    def test_folders_of_kprof(self):
        kprof = self.privileged(KPROF)
        environment = {**self.environment({}), "XDG_CACHE_HOME": self.path("cache"), "HOME": self.path("home")}
        environment.pop("KPROF_TEST_CACHE", None)
        plan = [kprof, "plan", "--chips", "GH100", "--metrics", METRIC]
        run = subprocess.run(plan, env=environment, capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual((os.listdir(self.path("cache")), os.listdir(self.path("home"))), ([], []))
        # Where the session was made is in no message; a run that has left one there would mention it.
        os.mkdir(self.path("tmp/kprof-aaaaaa"), 0o700)
        open(self.path("tmp/kprof-aaaaaa/kprof.lock"), "w").close()
        os.chown(self.path("tmp/kprof-aaaaaa"), 65534, 65534)
        os.chown(self.path("tmp/kprof-aaaaaa/kprof.lock"), 65534, 65534)
        run = subprocess.run([kprof, "recover"], env=environment, capture_output=True, text=True, cwd=self.path("home"))
        self.assertNotIn("kprof-aaaaaa", run.stderr)
        self.assertEqual(os.listdir(self.tmp), ["kprof-aaaaaa"])

    def with_capabilities(self, program):
        """A copy that may change priorities."""
        copy = self.path("bin/capable")
        shutil.copy(program, copy)
        os.chmod(copy, 0o755)
        effective, cap_sys_nice = 0x02000001, 1 << 23
        try:
            os.setxattr(copy, "security.capability", struct.pack("<5I", effective, cap_sys_nice, 0, 0, 0))
        except OSError as error:
            self.skipTest(f"this file system gives no program capabilities: {error}")
        return copy

    def plan_without_toolkits(self, program, variable, value):
        """Plan where no toolkit is in the usual places, with one more variable."""
        hide = ('for folder in $0; do mount -t tmpfs none "$folder" || exit 9; done; '
                'exec setpriv --reuid 65533 --clear-groups "$@"')
        toolkits = {os.path.realpath(folder) for folder in (*glob.glob("/usr/local/cuda*"), "/opt/cuda", cuda_root())
                    if folder and os.path.isdir(folder)}
        environment = {**self.environment({}), "XDG_CACHE_HOME": self.path("cache"),
                       "KPROF_TEST_CANARY": self.path("tmp/canary")}
        environment.pop("KPROF_TEST_CACHE", None)
        run = subprocess.run(["unshare", "-m", "sh", "-c", hide, " ".join(toolkits), "env", f"{variable}={value}",
                              program, "plan", "--chips", "GH100", "--metrics", METRIC],
                             env=environment, capture_output=True, text=True, cwd=self.dir)
        if not run.stderr.startswith("kprof") and run.returncode in (1, 9):
            self.skipTest(f"this machine does not let the test hide the toolkit: {run.stderr}")
        return run

    def loads_canary(self, program, variable, value):
        """Does the program load it where the variable names its folder?"""
        self.plan_without_toolkits(program, variable, value)
        canary = self.path("tmp/canary")
        loaded = os.path.exists(canary)
        if loaded:
            os.unlink(canary)
        return loaded

    def test_toolkit_that_the_loader_does_not_know(self):
        """Both of its libraries are found beside each other, and what they answer is kept."""
        toolkit = self.path("toolkit")
        os.makedirs(os.path.join(toolkit, "lib64"))
        for name in ("libcupti.so.13", "libnvperf_host.so"):
            found = [path for folder in ("lib64", "extras/CUPTI/lib64")
                     for path in glob.glob(os.path.join(cuda_root() or "/nowhere", folder, name))]
            if not found:
                self.skipTest(f"there is no {name}")
            shutil.copy(found[0], os.path.join(toolkit, "lib64", name))
        plain = shutil.copy(os.path.join(BUILD, "src/cli/kprof"), self.path("bin/plain"))
        for _ in range(2):
            run = self.plan_without_toolkits(plain, "CUDA_HOME", toolkit)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertRegex(run.stdout, r"Passes +1\n")
        shutil.rmtree(toolkit)
        run = self.plan_without_toolkits(plain, "CUDA_HOME", toolkit)
        self.assertEqual(run.returncode, 111, run.stderr) # what is kept is of a library that is gone

    def test_libraries_of_the_user(self):
        toolkit = self.path("toolkit")
        os.makedirs(os.path.join(toolkit, "lib64"))
        library = os.path.join(toolkit, "lib64/libcupti.so.13")
        shutil.copy(os.path.join(BUILD, "tests/sim/libsim-canary.so"), library)
        plain = shutil.copy(KPROF, self.path("bin/plain"))
        set_user, capable = self.privileged(KPROF), self.with_capabilities(KPROF)
        for variable, value in (("CUDA_HOME", toolkit), ("CUDA_PATH", toolkit),
                                ("LD_LIBRARY_PATH", os.path.dirname(library)), ("LD_PRELOAD", library)):
            with self.subTest(variable):
                self.assertTrue(self.loads_canary(plain, variable, value)) # the test can tell
                self.assertFalse(self.loads_canary(set_user, variable, value))
                self.assertFalse(self.loads_canary(capable, variable, value))

    def test_session_of_an_application(self):
        app = self.privileged(APP)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, app, f"launch={VECTOR_ADD}",
                         "env=LD_PRELOAD", "say=ran")
        self.assertEqual((run.code, run.out), (106, "LD_PRELOAD=(unset)\nran\n"), run.err)
        self.assertNotIn("session directory", run.err) # it has not been looked at
        self.assert_clean()


class OtherProfiler(Case):
    """The driver would load it into kprof itself when that looks for GPUs."""

    def test_is_not_loaded(self):
        driver = os.path.join(BUILD, "tests/sim/driver")
        if not os.path.isdir(driver):
            self.skipTest("built without CUDA")
        environment = self.environment({"LD_LIBRARY_PATH": driver, "CUDA_INJECTION64_PATH": "/other.so"})
        for words in (["plan"], ["list", "metrics"], [APP]):
            with self.subTest(words):
                run = subprocess.run([os.path.join(BUILD, "src/cli/kprof"), *words], env=environment, cwd=self.dir,
                                     capture_output=True, text=True)
                self.assertRegex(run.stderr, "no GPU found|the NVIDIA driver finds no GPU .CUDA_ERROR_NO_DEVICE.: is "
                                             "CUDA_VISIBLE_DEVICES empty, or /dev/nvidia0 missing")
                self.assertNotIn("loads /other.so", run.stderr)


class RunsAtOnce(Case):
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

    def check_numbered_reports(self, count):
        runs = self.run_many(["-o", "run%i"], count)
        self.assertEqual([run.code for run in runs], [0] * count, [run.err for run in runs])
        found = sorted(self.launches_of(f"run{i}.kprof") for i in range(1, count + 1))
        self.assertEqual(found, list(range(1, count + 1)))
        self.assertEqual(sum("cut short" in run.err for run in runs), 0)
        self.assert_clean()


class AtOnce(RunsAtOnce):
    COUNT = 4 if is_sanitized() else 8 # AddressSanitizer takes a second of processor time for each

    def test_numbered_reports(self):
        self.check_numbered_reports(self.COUNT)

    def test_one_name(self):
        runs = self.run_many(["-o", "run"], self.COUNT)
        self.assertEqual(sorted(run.code for run in runs), [0] + [108] * (self.COUNT - 1))
        winner = [i for i in range(self.COUNT) if runs[i].code == 0][0]
        self.assertEqual(self.launches_of("run.kprof"), winner + 1)

    def test_one_name_replaced(self):
        runs = self.run_many(["-f", "-o", "run"], self.COUNT)
        self.assertEqual([run.code for run in runs], [0] * self.COUNT, [run.err for run in runs])
        self.assertIn(self.launches_of("run.kprof"), range(1, self.COUNT + 1))
        self.assertEqual(self.query("run.kprof", "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run")], ["run.kprof"])

    def test_a_reader_that_holds_the_report(self):
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", APP, f"launch={VECTOR_ADD}",
             "settle", "say=ready", "cat"], cwd=self.dir, text=True, env=self.environment({}),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "ready\n")
        with sqlite3.connect(self.path("run.kprof")) as database:
            rows = database.execute("SELECT name FROM metric")
            self.assertIsNotNone(rows.fetchone()) # and the rest stays to be read
            _, err = process.communicate("", timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
            rows.fetchall()
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assertEqual(stat.S_IMODE(os.stat(self.path("run.kprof")).st_mode), 0o600)
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run")], ["run.kprof"])


class Crowd(RunsAtOnce):
    def test_numbered_reports(self):
        self.check_numbered_reports(64)


SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/vectorAdd-h200.kprof")
BAD_REPORT, BAD_METRICSET, USAGE, NO_MATCH = 107, 102, 101, 106


def limit_time():
    """Where it takes seconds at most: no machine is as slow as this."""
    resource.setrlimit(resource.RLIMIT_CPU, (900, 900))


def varint(data, at):
    """A number as SQLite stores it, and the place behind it."""
    value = 0
    for i in range(9):
        byte = data[at + i]
        value = value << 7 | byte & 127
        if byte < 128:
            break
    return value, at + i + 1


class Bounds(Case):
    """Files of others are read or refused soon: a refusal names the file, what it has too much of, and what to do."""

    def sample(self, *statements):
        shutil.copy(SAMPLE, self.path("r.kprof"))
        os.chmod(self.path("r.kprof"), 0o600)
        database = sqlite3.connect(self.path("r.kprof"))
        for statement in statements:
            database.execute(*statement) if isinstance(statement, tuple) else database.execute(statement)
        database.commit()
        database.execute("VACUUM")
        database.close()

    def report(self, *options):
        return self.kprof("report", "r.kprof", *options, preexec_fn=limit_time)

    def refused(self, run, code, *words):
        self.assertEqual(run.code, code, run.err)
        for word in words:
            self.assertIn(word, run.err)

    def sections(self, name, text):
        os.makedirs(self.path("mine/sections"), exist_ok=True)
        with open(self.path(f"mine/sections/{name}.json"), "wb") as file:
            file.write(text)

    def list_sections(self, *options):
        return self.kprof("list", "sections", "--section-folder", "mine", *options, preexec_fn=limit_time)

    def test_pipes_beside_a_report(self):
        self.sample()
        os.symlink("r.kprof", self.path("link.kprof"))
        for ending in ("-wal", "-journal", "-shm"):
            os.mkfifo(self.path("r.kprof" + ending))
            self.refused(self.report(), BAD_REPORT, "r.kprof" + ending, "not a regular file", "remove it")
            self.refused(self.kprof("report", "link.kprof", preexec_fn=limit_time), BAD_REPORT, "not a regular file")
            os.unlink(self.path("r.kprof" + ending))
        self.assertEqual(self.report().code, 0)

    def test_a_pipe_among_sections(self):
        self.sections("a", b'{"id":"a","name":"A"}')
        os.mkfifo(self.path("mine/sections/b.json"))
        self.refused(self.list_sections(), BAD_METRICSET, "mine/sections/b.json", "not a regular file")

    def test_rows_that_share_their_text(self):
        """All kernels' names lie in the pages of the first one's: a small file would stand for gigabytes."""
        count, length = 300, 150000
        self.sample("DELETE FROM launch", "DELETE FROM value", "DELETE FROM seen")
        database = sqlite3.connect(self.path("r.kprof"))
        columns = len(database.execute("SELECT * FROM kernel").description)
        database.execute("DELETE FROM kernel")
        page = database.execute("PRAGMA page_size").fetchone()[0]
        local = (page - 12) * 32 // 255 - 23 # of a payload, where the rest is in other pages
        payload = 0
        while True: # a length of which just that much stays in the leaf, so that no leaf is split
            length += 1
            header = 1 + 1 + 3 + (columns - 2)
            payload = header + length + (columns - 2 - 2)
            if (payload - local) % (page - 4) == 0:
                break
        names = [[i, "x" * (local - 20), "", ""] + [2] * (columns - 4) for i in range(1, count + 1)]
        database.executemany(f"INSERT INTO kernel VALUES({','.join('?' * columns)})", names)
        database.commit()
        database.execute("VACUUM")
        before = os.path.getsize(self.path("r.kprof"))
        database.execute("UPDATE kernel SET mangled=?", ("y" * length,))
        database.commit()
        database.close()
        self.join_chains(page, length)
        with open(self.path("r.kprof"), "rb") as file:
            size = len(file.read())
        self.assertLess(size, before + 4 * length)
        self.refused(self.report("--page", "session"), BAD_REPORT, "r.kprof", "more text than the file has bytes")

    def join_chains(self, page, length):
        """Lead every row of long text to the pages of the first such row, and cut off those of the others."""
        with open(self.path("r.kprof"), "rb") as file:
            data = bytearray(file.read())
        pointers = []
        for leaf in range(0, len(data), page):
            start = leaf + (100 if leaf == 0 else 0)
            if data[start] != 13:
                continue
            for i in range(struct.unpack_from(">H", data, start + 3)[0]):
                at = leaf + struct.unpack_from(">H", data, start + 8 + 2 * i)[0]
                size, at = varint(data, at)
                _, at = varint(data, at)
                if length < size < length + 100:
                    least = (page - 12) * 32 // 255 - 23
                    kept = least + (size - least) % (page - 4)
                    pointers.append(at + (kept if kept <= page - 35 else least))
        first = min(struct.unpack_from(">I", data, at)[0] for at in pointers)
        last, following = first, first
        while following:
            last = max(last, following)
            following = struct.unpack_from(">I", data, (following - 1) * page)[0]
        for at in pointers:
            struct.pack_into(">I", data, at, first)
        keep = max(last, max(pointers) // page + 1)
        struct.pack_into(">I", data, 28, keep)
        with open(self.path("r.kprof"), "wb") as file:
            file.write(data[:keep * page])

    def test_patterns_that_take_long(self):
        self.sample(("UPDATE kernel SET mangled=?", ("a" * 400000,)))
        run = self.report("-k", "regex:a*[bc]", "--print-kernel-base", "mangled")
        self.refused(run, NO_MATCH, "-k: the pattern took too long", "simplify")
        self.assertEqual(self.report("-k", "regex:^a+$").code, 0)

    def test_comparisons(self):
        """A few bytes stand for a kernel and shape, a metric of all of these, or a long name in all their rows."""
        count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<{}) "
        launches = count + ("INSERT INTO launch SELECT i+(SELECT max(id) FROM launch),1,1,1,1,1,1,1,{},1,1,1,1,1,"
                            "0,0,0,0,0,0,0,0,0,0,'batch',1,'',1 FROM n")
        stalls = count.format(30000) + ("INSERT INTO metric SELECT i+(SELECT max(id) FROM metric), 'smsp__average_"
                                        "warps_issue_stalled_'||i||'_per_issue_active.ratio', 'inst', '', 'hardware' "
                                        "FROM n")
        for what, statements in some({
                "launches": [launches.format(90000, 1)],
                "shapes": [launches.format(90000, "i")],
                "metrics": [stalls, launches.format(3000, "i")],
                "names": ["UPDATE kernel SET demangled=replace(hex(zeroblob(2000000)), '00', 'x')",
                          launches.format(3000, "i")]}.items(), 2):
            self.sample(*statements)
            with self.subTest(what=what):
                run = self.kprof("diff", "r.kprof", "r.kprof", preexec_fn=limit_time)
                self.refused(run, BAD_REPORT, "r.kprof", "more than", "with -k, -s and -c")
                self.assertEqual(run.out, "")
        self.sample(launches.format(500, "i"))
        self.assertEqual(self.kprof("diff", "r.kprof", "r.kprof", preexec_fn=limit_time).code, 0)

    def test_too_many_metrics_at_once(self):
        if not can_profile():
            self.skipTest("no host library")
        if is_sanitized():
            self.skipTest("AddressSanitizer takes ten times as long to list them")
        run = self.kprof("plan", "--chips", "GH100", "--metrics", "regex:.", preexec_fn=limit_time)
        self.refused(run, USAGE, "--metrics regex:.", "2048", "several runs")
        run = self.kprof("plan", "--chips", "GH100", "--metrics", "regex:^lts.*sum$", "--metrics", "regex:^smsp.*sum$",
                         preexec_fn=limit_time)
        self.refused(run, USAGE, "--metrics", "2048", "several runs")
        names = ",".join(f"sm__x{i}.sum" for i in range(2049))
        self.refused(self.kprof("plan", "--chips", "GH100", "--metrics", names, preexec_fn=limit_time), USAGE, "2048")

    @unittest.skipIf(TRIES_SOME, "tests/run.sh all")
    def test_many_metrics(self):
        """What to keep of many of them is chosen in seconds: test_planner_questions counts what that asks."""
        if not can_profile():
            self.skipTest("no host library")
        if is_sanitized():
            self.skipTest("AddressSanitizer takes ten times as long")
        pattern = "regex:^(smsp|sm__|l1tex__[a-m]).*[.]sum$"
        run = self.kprof("plan", "--chips", "GH100", "--metrics", pattern, "--max-passes", "10",
                         env={"KPROF_CACHE": "off"}, preexec_fn=limit_time)
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("metrics are left out", run.err)

    def test_sets_that_are_no_list_of_names(self):
        self.sample(("UPDATE run SET sets=?", ("[" + "0," * 4000000 + "0]",)))
        run = self.report("--page", "session")
        self.assertEqual(run.code, 0, run.err)
        self.assertLess(len(run.out), 100000)

    def test_section_files(self):
        name = b'{"id":"a","name":"%s"}'
        for text, words in ((name % b"a\\u0000b", "line 1, column 20: \\u0000 cannot stand in a text"),
                            (name % (b"x" * 600), "longer than 512 characters"),
                            (b'{"id":"a","name":"a","items":[' + b"0," * 70000 + b"0]}", "more than 65536 values"),
                            (name % (b"x" * 2000000), "longer than 1024 KB"),
                            (b"[" * 500000, "not valid JSON")):
            self.sections("a", text)
            self.refused(self.list_sections(), BAD_METRICSET, "mine/sections/a.json: ", words)
        self.sections("a", name % b"a\\\\u0000b")
        self.assertIn("a\\u0000b", self.list_sections().out)


    def test_sections_of_many_names(self):
        if not can_profile():
            self.skipTest("no host library")
        items = [{"name": f"a{i}", "label": "a", "expression": "+".join(f"b{i}_{k}.sum" for k in range(600))}
                 for i in range(40)]
        self.sections("a", json.dumps({"id": "a", "name": "a", "items": items}).encode())
        for words in (("plan", "--section", "a"), ("explain", "sm__cycles_elapsed")):
            run = self.kprof(*words, "--section-folder", "mine", "--chips", "GH100", preexec_fn=limit_time)
            self.refused(run, BAD_METRICSET, "more than the 16384 metrics", "split them")

    def ten_megabytes(self):
        """Names and texts that ask a lot of a reader of JSON, and bytes that mean nothing."""
        size = MEGABYTES << 20
        return some({
            "spaces": b" " * size, "brackets": b"[" * size, "objects": b'{"a":' * (size // 5),
            "values": b"[" + b"0," * (size // 2 - 1) + b"0]", "text": b'"' + b"x" * size + b'"',
            "escapes": b'"' + b"\\u00e9" * (size // 6) + b'"', "zeros": bytes(size),
            "noise": random.Random(1).randbytes(size)}.items(), 2)

    def test_set_files_of_ten_megabytes(self):
        for kind in ("sections", "sets", "findings", "aliases"):
            os.makedirs(self.path("mine/" + kind))
            for name, content in self.ten_megabytes():
                with self.subTest(kind=kind, content=name):
                    with open(self.path(f"mine/{kind}/a.json"), "wb") as file:
                        file.write(content)
                    run = self.kprof("list", "aliases" if kind == "aliases" else "sections", "--section-folder", "mine",
                                     preexec_fn=limit_time_and_memory)
                    self.refused(run, BAD_METRICSET, f"mine/{kind}/a.json", "longer than 1024 KB")
            os.remove(self.path(f"mine/{kind}/a.json"))

    def test_reports_of_ten_megabytes(self):
        with open(SAMPLE, "rb") as file:
            sample = file.read()
        for name, content in self.ten_megabytes():
            for start in (b"", sample[:100], sample[:len(sample) // 2], sample):
                with self.subTest(content=name, start=len(start)):
                    with open(self.path("r.kprof"), "wb") as file:
                        file.write((start + content)[:10 << 20])
                    for options in ((), ("--page", "raw", "--json")):
                        run = self.kprof("report", "r.kprof", *options, preexec_fn=limit_time_and_memory)
                        self.assertIn(run.code, (0, BAD_REPORT), run.err)
                        self.assertEqual(run.code == 0, start == sample and not run.err, run.err)

    def test_cache_entries_of_ten_megabytes(self):
        if not can_profile():
            self.skipTest("no host library")
        cache = self.path("cache")
        plan = ["plan", "--chips", "GH100", "--metrics", METRIC, "--csv"]
        first = self.kprof(*plan, env={"XDG_CACHE_HOME": cache})
        entries = os.listdir(os.path.join(cache, "kprof"))
        self.assertNotEqual(entries, [])
        for name, content in self.ten_megabytes():
            for entry in entries:
                path = os.path.join(cache, "kprof", entry)
                with open(path, "rb") as file:
                    start = file.read()
                with open(path, "wb") as file:
                    file.write(start + content)
            with self.subTest(content=name):
                run = self.kprof(*plan, env={"XDG_CACHE_HOME": cache}, preexec_fn=limit_time_and_memory)
                self.assertEqual((run.code, run.out), (0, first.out), run.err)

    def test_configurations_of_ten_megabytes(self):
        session = self.path("session")
        os.mkdir(session, 0o700)
        for name, content in self.ten_megabytes():
            with self.subTest(content=name):
                with open(os.path.join(session, "config"), "wb") as file:
                    file.write(b"KPROFCFG" + content)
                os.chmod(os.path.join(session, "config"), 0o600)
                environment = self.environment({"CUDA_INJECTION64_PATH": INJECTION, "KPROF_SESSION_DIR": session})
                run = subprocess.run([APP, f"launch={VECTOR_ADD}", "say=ran"], env=environment, text=True, cwd=self.dir,
                                     capture_output=True, timeout=PATIENCE_S, preexec_fn=limit_time_and_memory)
                self.assertEqual((run.returncode, run.stdout), (0, "ran\n"))
                self.assertIn("profiling cannot start", run.stderr)
                self.assertEqual(os.listdir(session), ["config"])


class Memory(Case):
    """An allocation that fails ends a command with a message, or changes nothing; CUPTI's own do not fail here."""

    TRIED = int(os.environ.get("KPROF_TEST_ALLOCATIONS_TRIED", 1)) # of the call stacks of each command; one in one way
    SHIM = os.path.join(BUILD, "tests/sim/libsim-allocations.so")

    def setUp(self):
        super().setUp()
        if is_sanitized():
            self.skipTest("AddressSanitizer has its own malloc")

    def fail_some(self, *words, tried=TRIED, **env):
        """Fail allocations of a command: each alone, and each with all after it."""
        env = {"LD_PRELOAD": self.SHIM, **env}
        plain = self.kprof(*words, env=env) # which fills the cache of plans
        numbers = self.path("numbers")
        listed = self.kprof(*words, env={**env, "KPROF_TEST_ALLOCATIONS": numbers})
        self.assertEqual((listed.code, listed.out, listed.err), (plain.code, plain.out, plain.err))
        with open(numbers) as file:
            stacks = file.read().split()
        self.assertNotEqual(stacks, [])
        chance = random.Random(" ".join(words))
        known = set(os.listdir(self.dir))
        ways = ({}, {"KPROF_TEST_FAILS_ALL": "1"})
        for number in chance.sample(stacks, min(tried, len(stacks))):
            for other in ways if self.TRIED > 1 else (chance.choice(ways),):
                run = self.kprof(*words, env={**env, "KPROF_TEST_FAILING": number, **other})
                told = (words, number, other, run.code, run.err)
                if run.code == 100:
                    self.assertRegex(run.err, "out of memory|Cannot allocate memory", told)
                    self.assert_clean()
                    for name in set(os.listdir(self.dir)) - known: # if it is to be kept, kprof tells of it
                        kept = name.removesuffix("-wal").removesuffix("-shm") # SQLite's own stand beside it
                        self.assertIn(f"is in {kept}", run.err, told)
                        os.unlink(self.path(name))
                else:
                    self.assertTrue(run.code == plain.code and run.out == plain.out, told)

    def test_each_of_a_list(self):
        self.fail_some("list", "chips", tried=1000)

    def test_lists_and_plans(self):
        for words in some(("help", "--version", "--complete commands", "--complete line -- --set f", "list chips",
                           "list sets --chips GH100", "list sections --verbose", "list findings",
                           "list aliases --chips GH100", "plan --chips GH100 --set full --csv",
                           "plan --chips GH100 --metrics dram__bytes.sum --max-passes 1", "recover",
                           "list metrics --chips GH100 --metrics regex:dram__bytes",
                           "explain --chips GH100 dram__bytes.sum SpeedOfLight WarpStall flop_count_dp"), 5):
            with self.subTest(words):
                self.fail_some(*words.split())

    def test_plans_that_are_made(self):
        """A plan that the cache has is not made again."""
        self.fail_some("plan", "--chips", "GH100", "--metrics", "dram__bytes.sum", KPROF_CACHE="off")

    def test_reports(self):
        for page in some(("details", "raw", "summary", "statistics", "brief", "sources", "session"), 2):
            self.fail_some("report", SAMPLE, "--page", page)
        for words in some(("--csv", "--csv --csv-layout ncu", "--csv --csv-layout wide --page raw", "--json",
                           "--markdown", "--html -", "--filter duration>0us -k vectorAdd --details-help"), 2):
            with self.subTest(words):
                self.fail_some("report", SAMPLE, *words.split())

    def test_other_commands(self):
        for form in some(("jsonl", "prometheus", "perfetto"), 1):
            self.fail_some("export", SAMPLE, "--to", form)
        for form in ([], ["--json"]):
            self.fail_some("diff", SAMPLE, SAMPLE, "--anyway", *form)
        self.collect(["--trace"], ["push=a", f"launch={VECTOR_ADD}*3", "pop", f"launch={SCALE}"])
        self.fail_some("merge", "run", SAMPLE, "-f", "-o", "both")
        for words in some(("stats run --report kern_counters,count_command,gpu_busy", "stats run --csv",
                           "export run --to chrome", "export run --to timeline", "report run --html -",
                           "report run --page census", "report run --kernel-id ::scale:", f"report run {SAMPLE}",
                           "export run --to nsys-sqlite -f -o new", "export run --to timeline -f -o new",
                           "report run --html new -f"), 2):
            self.fail_some(*words.split())
        self.fail_some("report", SAMPLE, "--launch", "1", "-f", "-o", "part", tried=100)


class RawText(Case):
    """Names cannot steer a terminal or break JSON."""

    def test_lists(self):
        os.makedirs(self.path("mine/sections"))
        with open(self.path("mine/sections/a.json"), "wb") as file:
            file.write('{"id":"a","name":"\u009b31m\u202e'.encode() + b'\xff"}')
        shown = self.list_sections()
        self.assertIn(r"\xc2\x9b31m\xe2\x80\xae\xff", shown.out)
        for form in ("--csv", "--markdown"):
            text = self.list_sections(form).out
            self.assertEqual([c for c in text if c in "\u009b\u202e\x1b"], [])
        text = self.list_sections("--json").out
        self.assertNotIn("\u009b", text)
        names = [section["name"] for section in json.loads(text) if section["section"] == "a"]
        self.assertEqual(names, ["\u009b31m\u202e\ufffd"])

    def test_findings(self):
        os.makedirs(self.path("mine/findings"))
        with open(self.path("mine/findings/a.json"), "w") as file:
            file.write('{"id":"a","name":"a","message":["\\u009b31m"]}')
        run = self.kprof("list", "sections", "--section-folder", "mine")
        self.assertEqual(run.code, 102, run.err)
        self.assertIn("a.json: message[0]: holds a control character", run.err)

    def list_sections(self, *options):
        run = self.kprof("list", "sections", "--section-folder", "mine", *options)
        self.assertEqual(run.code, 0, run.err)
        return run

    STEERING = "\x1b]0;t\x07\x1b[2J\u009b31m\u202e\u2066\x7f\r"

    def assert_harmless(self, *words):
        """Neither output of kprof steers a terminal, and both are valid UTF-8. Gives the exit code."""
        process = subprocess.run([KPROF, *words], env=self.environment({}), cwd=self.dir, capture_output=True)
        text = (process.stdout + process.stderr).decode() # fails where it is not valid
        steering = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]"
        self.assertIsNone(re.search(steering, text), f"{words}: {re.findall('.{30}' + steering, text)[:3]}")
        return process.returncode

    def test_every_page_and_command(self):
        """Of a report in which every text steers a terminal, under a name that does, too."""
        name = "r" + self.STEERING + ".kprof"
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}*2", f"launch={SCALE}"]), 0)
        os.rename(self.path("run.kprof"), self.path(name))
        with contextlib.closing(sqlite3.connect(self.path(name))) as database:
            for table, column in (
                    ("run", "command_line"), ("run", "working_directory"), ("process", "host"), ("process", "name"),
                    ("process", "command_line"), ("process", "executable"), ("device", "name"), ("device", "uuid"),
                    ("kernel", "mangled"), ("kernel", "demangled"), ("kernel", "function"), ("metric", "unit"),
                    ("metric", "description"), ("launch", "reason"), ("message", "text"), ("section", "name")):
                database.execute(f"UPDATE {table} SET {column}={column}||CAST(? AS TEXT)",
                                 (self.STEERING.encode() + b"\xff",))
            database.execute("INSERT INTO nvtx SELECT id, CAST(? AS TEXT) FROM launch",
                             (b"a" + self.STEERING.encode() + b"\xff/",))
            database.commit()
        for page in ("details", "raw", "summary", "statistics", "brief", "sources", "session"):
            for form in ((), ("--json",), ("--csv-layout", "ncu"), ("--markdown",), ("--verbose", "--details-help")):
                self.assertIn(self.assert_harmless("report", name, "--page", page, *form), (0, USAGE))
        for part in ("config", "device", "process", "graph", "nvtx"):
            for page in ("summary", "statistics", "brief"):
                self.assertEqual(self.assert_harmless("report", name, "--page", page, "--group-by", part), 0)
        for form in ((), ("--json",), ("--csv",), ("--markdown",)):
            self.assertEqual(self.assert_harmless("diff", name, name, "--anyway", *form), 0)
        for form in ("long", "wide", "jsonl", "prometheus", "perfetto"):
            self.assertEqual(self.assert_harmless("export", name, "--to", form), 0)
        self.assert_harmless("merge", name, name, "-o", "both" + self.STEERING)
        self.assert_harmless("report", name, "-k", self.STEERING)

    def test_links(self):
        """GitHub makes links of addresses, persons and issues; a report has none, and would call people."""
        shutil.copy(SAMPLE, self.path("r.kprof"))
        os.chmod(self.path("r.kprof"), 0o600)
        name = "x @octocat #12 o/r#3 GH-4 a@b.org https://e.org HTTP://e.org www.e.org &#64;octocat"
        with contextlib.closing(sqlite3.connect(self.path("r.kprof"))) as database:
            for table, column in (("kernel", "mangled"), ("kernel", "demangled"), ("kernel", "function"),
                                  ("device", "name"), ("process", "name"), ("run", "command_line")):
                database.execute(f"UPDATE {table} SET {column}=?", (name,))
            database.commit()
        for page in ("details", "raw", "summary", "statistics", "brief", "session"):
            run = self.kprof("report", "r.kprof", "--page", page, "--markdown")
            self.assertIn(run.code, (0, USAGE))
            link = r"[@#][\w-]|://|(?i:www)\.\w|(?i:gh)-[0-9]|[^\\]&"
            self.assertIsNone(re.search(link, run.out), re.findall(".{30}(?:" + link + ")", run.out)[:3])

    def test_long_texts(self):
        """A text of a report may be long; one that people read is cut, and a unit is none."""
        shutil.copy(SAMPLE, self.path("r.kprof"))
        os.chmod(self.path("r.kprof"), 0o600)
        with contextlib.closing(sqlite3.connect(self.path("r.kprof"))) as database:
            database.execute("UPDATE metric SET unit=? WHERE id % 8 = 1", ("\u00e9" * 70000,))
            for table, column in (("launch", "reason"), ("run", "command_line")):
                database.execute(f"UPDATE {table} SET {column}=?", ("y" * 70000,))
            for table, column in (("device", "name"), ("process", "name"), ("process", "host")):
                database.execute(f"UPDATE {table} SET {column}=?", ("z" * 70000,))
            database.commit()
        forms = some(((), ("--markdown",), ("--csv",), ("--json",)), 2)
        for page in ("details", "raw", "summary", "statistics", "brief", "session"):
            for form in forms:
                run = self.kprof("report", "r.kprof", "--page", page, *form)
                self.assertIn(run.code, (0, USAGE))
                self.assertNotIn("\u00e9" * 40, run.out)
                self.assertNotIn("z" * 300, run.out)
                if form == ("--markdown",) or (form == () and page not in ("details", "raw")): # these have headings
                    self.assertNotIn("y" * 20000, run.out, (page, form))

    def test_words(self):
        """What is wrong with a word is told with it."""
        for words in ((), ("help",), ("explain",), ("recover",), ("list",), ("list", "metrics", "--chips"),
                      ("list", "metrics", "--chips", "GH100", "--metrics"), ("plan", "--metrics"), ("plan", "--set"),
                      ("plan", "--section"), ("report", "--filter"), ("list", "sections", "--section-folder"),
                      ("--injection-path",), ("export", "none.kprof", "--to"), ("diff", "a.kprof"), ("merge",)):
            with self.subTest(words):
                self.assertNotEqual(self.assert_harmless(*words, self.STEERING), 0)

    def test_messages(self):
        run = self.kprof("report", "\x1b]0;title\x07\u009b\u202e")
        self.assertIn(r"\x1b]0;title\x07\xc2\x9b\xe2\x80\xae", run.err)
        self.assertNotIn("\x1b", run.err)
