"""What becomes of a run that is cut short: kprof is killed, or has no space for its report."""

import contextlib
import random
import sqlite3
import struct
import time

from harness import *

RECORD_HEADER, LAUNCH = 12, 5


class CutShort(Case):
    """A run whose kprof can be killed while the application goes on."""

    def start(self, options, steps, **keywords):
        measured = [] if "--census" in options else ["--metrics", METRIC]
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, *measured, *options, APP, *steps], cwd=self.dir, text=True,
            env=self.environment({}), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def start_and_kill(self, options, before=(f"launch={VECTOR_ADD}*3", "settle"), after=(), stored=0):
        """Kill kprof in the middle, once it has stored as many launches in run.kprof; the steps `after` follow when it
        is gone. Gives what the application wrote to stderr."""
        process = self.start(options, [*before, "say=ready", "wait", *after, "say=done"])
        self.assertEqual(process.stdout.readline(), "ready\n")
        deadline = time.monotonic() + PATIENCE_S
        while stored and len(self.launches()) < stored:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.kill()
        process.wait()
        process.stdin.close() # and the application goes on
        out, err = process.stdout.read(), process.stderr.read()
        self.assertEqual(out, "done\n", err)
        return err

    def session(self):
        name, = os.listdir(self.tmp)
        return os.path.join(self.tmp, name)

    def recover(self, *words, **keywords):
        return self.kprof("recover", *words, **keywords)

    def files(self):
        return sorted(name for name in os.listdir(self.dir) if name not in ("tmp", "cache"))


class Killed(CutShort):
    def test_the_application_runs_on_and_says_so_once(self):
        rest = ["pass=1000", f"launch={SCALE}", "settle"] * 3
        err = self.start_and_kill(["-o", "run"], after=rest, stored=3)
        session = self.session()
        self.assertEqual(err.count("kprof has ended before"), 1, err)
        self.assertIn(f"kprof recover {session} ", err)
        run = self.recover()
        self.assert_run(run, 0)
        # The batch that noticed is whole.
        self.assertEqual(self.launches(), ["vectorAdd"] * 3 + ["scale"])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch WHERE measured = 0"), [(0,)])
        self.assertEqual(self.query("run.kprof", "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(self.files(), ["run.kprof"])

    def test_values_are_those_of_a_whole_run(self):
        self.assert_run(self.profile(["-o", "whole"], [f"launch={VECTOR_ADD}*3"]), 0)
        self.start_and_kill(["-o", "run"])
        self.assert_run(self.recover("-q"), 0)
        for table in ("launch, metric, value, unit FROM launch_metrics", "* FROM schedule", "* FROM section",
                      "* FROM pass", "* FROM metric"):
            whole, recovered = (self.query(f"{name}.kprof", f"SELECT {table}") for name in ("whole", "run"))
            self.assertTrue(whole)
            self.assertEqual(recovered, whole)

    def test_kprof_killed_as_it_made_one_file_of_the_report(self):
        self.start_and_kill(["-o", "run"])
        with contextlib.closing(sqlite3.connect(self.path("run.kprof"))) as database:
            database.execute("PRAGMA journal_mode=DELETE")
        with open(self.path("run.kprof-journal"), "wb") as journal:
            journal.write(bytes([1]) * 512)
        self.assert_run(self.recover(), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)
        self.assertEqual(self.files(), ["run.kprof"])

    def test_without_a_name(self):
        self.start_and_kill([])
        session = self.session()
        self.assert_run(self.recover(session), 0)
        self.assertEqual(self.files(), [os.path.basename(session) + ".kprof"])

    def test_another_name_and_printed(self):
        self.start_and_kill(["-o", "run"])
        run = self.recover("--csv", "-o", "other%i")
        self.assert_run(run, 0)
        self.assertIn('"gpu__time_duration.sum"', run.out)
        self.assertEqual(self.launches("other1.kprof"), ["vectorAdd"] * 3)

    def test_one_file_for_report_and_output(self):
        self.start_and_kill([])
        run = self.recover("--csv", "-o", "other", "--log-file", "other.kprof")
        self.assertEqual(run.code, 101, run.err)
        self.assertIn("are one file", run.err)
        self.assertEqual(self.files(), [])

    def test_a_report_that_was_to_be_replaced(self):
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        self.start_and_kill(["-f", "-o", "run"])
        self.assertEqual(self.launches(), ["scale"])
        self.assert_run(self.recover(), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)
        self.assertEqual(self.files(), ["run.kprof"])

    def test_another_report_of_that_name_is_kept(self):
        self.start_and_kill(["-o", "run"])
        os.remove(self.path("run.kprof"))
        other = self.profile(["-o", "run"], [f"launch={SCALE}"])
        self.assertEqual(other.code, 0, other.err)
        run = self.recover()
        self.assertEqual(run.code, 108, run.err)
        self.assertIn("exists already", run.err)
        self.assertEqual(self.launches(), ["scale"])
        self.assert_run(self.recover("-f", "-q"), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)

    def test_a_run_that_had_collected_nothing(self):
        """Nothing is left of the report that it had begun."""
        for options in ([], ["-o", "run"], ["-f", "-o", "run"]):
            self.start_and_kill(options, before=())
            run = self.recover()
            self.assert_run(run, 0)
            self.assertIn("before it collected anything", run.err)
            self.assertEqual(self.files(), [])

    def test_a_census(self):
        self.start_and_kill(["--census", "-o", "run"])
        self.assert_run(self.recover(), 0)
        self.assertEqual(self.query("run.kprof", "SELECT sum(launches) FROM census"), [(3,)])
        self.assertEqual(self.files(), ["run.kprof"])

    def test_the_next_run_mentions_it(self):
        for count in (1, 2):
            self.start_and_kill([])
            run = self.profile([], [f"launch={SCALE}"])
            self.assertEqual(run.code, 0, run.err)
            self.assertEqual(sum("cut short" in line for line in run.err.splitlines()), 1, run.err)
            self.assertIn(self.session() if count == 1 else "2 earlier runs", run.err)
        run = self.recover()
        self.assertEqual(run.code, 101)
        for name in os.listdir(self.tmp):
            self.assertIn(os.path.join(self.tmp, name), run.err)
            self.assertEqual(self.recover(os.path.join(self.tmp, name)).code, 0)
        self.assert_clean()
        self.assertIn("nothing to recover", self.recover().err)
        self.assertNotIn("cut short", self.profile([], [f"launch={SCALE}"]).err)

    def test_a_kprof_that_lives(self):
        process = self.start(["-o", "run"], [f"launch={VECTOR_ADD}", "say=ready", "wait"])
        self.assertEqual(process.stdout.readline(), "ready\n")
        run = self.recover(self.session())
        self.assertEqual(run.code, 101, run.err)
        self.assertIn("still runs", run.err)
        self.assertIn("nothing to recover", self.recover().err)
        other = self.profile([], [f"launch={SCALE}"])
        self.assertNotIn("cut short", other.err)
        process.communicate("", timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_a_process_that_still_runs(self):
        steps = [f"launch={VECTOR_ADD}", "settle", "say=ready", "wait", "pass=1000", f"launch={SCALE}", "settle",
                 "say=done"]
        process = self.start(["-o", "run"], steps)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.kill()
        process.wait()
        run = self.recover()
        self.assert_run(run, 0)
        self.assertIn("still runs", run.err)
        process.stdin.close()
        self.assertEqual(process.stdout.read(), "done\n")
        self.assertEqual(process.stderr.read(), "")
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()


class Large(CutShort):
    def records(self, content, kind):
        """Those of a type, as they are in the file."""
        at = struct.unpack_from("<I", content, len("KPROFSPL") + 4)[0]
        while at < len(content):
            length, found = struct.unpack_from("<II", content, at)
            if found == kind:
                yield content[at:at + RECORD_HEADER + length]
            at += RECORD_HEADER + length

    def test_spools_of_ten_megabytes(self):
        """Of records that repeat, and of bytes that mean nothing."""
        for records in (True, False):
            with self.subTest(records=records):
                self.start_and_kill(["-o", "run"], stored=3)
                spool, = [name for name in os.listdir(self.session()) if name.endswith(".spool")]
                path = os.path.join(self.session(), spool)
                with open(path, "rb") as file:
                    content = file.read()
                launches = b"".join(self.records(content, LAUNCH))
                self.assertGreater(len(launches), 0)
                part = launches if records else random.Random(1).randbytes(len(content))
                with open(path, "ab") as file:
                    while file.tell() < MEGABYTES << 20:
                        file.write(part)
                run = self.recover(preexec_fn=limit_time_and_memory)
                self.assertEqual(run.code, 0, run.err)
                self.assertEqual(len(self.launches()) > 3, records)
                self.assert_clean()
                os.remove(self.path("run.kprof"))


class Refused(CutShort):
    def refuse(self, folder, text):
        run = self.recover(folder)
        self.assertEqual(run.code, 101, run.err)
        self.assertIn(text, run.err)

    def test_folders_of_others(self):
        self.start_and_kill([])
        session = self.session()
        os.chmod(session, 0o750)
        self.refuse(session, "other users have access")
        self.assertIn("nothing to recover", self.recover().err)
        os.chmod(session, 0o700)
        if os.geteuid() == 0:
            os.chown(session, 65534, 65534)
            self.refuse(session, "belongs to another user")
            self.assertIn("nothing to recover", self.recover().err)
            os.chown(session, 0, 0)
        self.assert_run(self.recover(session), 0)

    def test_folders_that_are_none(self):
        precious = self.path("precious")
        os.mkdir(precious, 0o700)
        with open(os.path.join(precious, "config"), "w") as file:
            file.write("mine")
        self.refuse(precious, "no directory of a run; a run that was cut short has named its folder")
        self.refuse("/tmp", "a run that was cut short has named its folder")
        self.refuse("/", "no directory of a run")
        self.refuse(self.path("none"), f"No such file or directory; a run that was cut short has named its folder, and "
                                       f"kprof recover without a name looks for it in {self.tmp}\n")
        self.assertEqual(os.listdir(precious), ["config"])

    def test_files_that_are_not_kprofs(self):
        self.start_and_kill([])
        session = self.session()
        with open(os.path.join(session, "precious"), "w") as file:
            file.write("mine")
        run = self.recover(session)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(os.listdir(session), ["precious"])
        self.assertIn("cannot remove", run.err)

    def test_a_seed_that_is_none(self):
        self.start_and_kill([])
        session = self.session()
        with open(os.path.join(session, "seed.kprof"), "w") as file:
            file.write("no report")
        run = self.recover(session)
        self.assertIn(run.code, (107, 108), run.err)
        self.assertEqual(self.files(), [])
        self.assertEqual(self.session(), session)

    def test_runs_of_other_versions(self):
        """What this version cannot read stays as it is, for the one that can."""
        self.start_and_kill(["-o", "run"], stored=3)
        session, files = self.session(), self.files()
        seed, spool = os.path.join(session, "seed.kprof"), os.path.join(
            session, [name for name in os.listdir(session) if name.endswith(".spool")][0])
        for path, at, step, code, told in (
                (seed, 60 + 3, -1, 111, "makes report version {}, and this one makes version {};"), # user_version
                (seed, 60 + 3, 1, 107, "has report version {}, made by a newer kprof; this one reads up to {}: "),
                (spool, len("KPROFSPL"), -1, 111, "has format version {}, this kprof reads {};"),
                (spool, len("KPROFSPL"), 1, 111, "has format version {}, this kprof reads {};"),
                (spool, 0, -1, 107, "is not a kprof spool")):
            with self.subTest(told), open(path, "r+b") as file:
                file.seek(at)
                number = file.read(1)[0]
                file.seek(at)
                file.write(bytes([number + step]))
                file.flush()
                before = set(os.listdir(session)) | {"recover.lock"}
                run = self.recover()
                self.assertEqual(run.code, code, run.err)
                self.assertIn(told.format(number + step, number), run.err)
                self.assertIn(f"{session} is left as it is", run.err)
                self.assertNotIn("damaged", run.err)
                self.assertEqual(set(os.listdir(session)), before)
                self.assertEqual(self.files(), files)
                file.seek(at)
                file.write(bytes([number]))
        self.assert_run(self.recover(), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)

    def test_two_at_once(self):
        self.start_and_kill(["-o", "run"])
        session = self.session() # the first of them removes it
        processes = [subprocess.Popen([KPROF, "recover", session], env=self.environment({}), cwd=self.dir,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
        codes = [process.wait(timeout=PATIENCE_S) for process in processes]
        self.assertEqual(codes.count(0), 1, codes)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)
        self.assert_clean()


class Logs(CutShort):
    """A report whose kprof was killed has a log beside it."""

    def setUp(self):
        super().setUp()
        self.start_and_kill(["-o", "run"], stored=3)
        self.folder = self.path("copy")
        os.mkdir(self.folder)

    def copy(self, *endings):
        for ending in endings:
            with open(self.path("run.kprof" + ending), "rb") as file, \
                    open(os.path.join(self.folder, "run.kprof" + ending), "wb") as copy:
                copy.write(file.read())

    def report(self, **keywords):
        return self.kprof("report", os.path.join(self.folder, "run.kprof"), **keywords)

    def test_beside_it(self):
        self.copy("", "-wal")
        run = self.report()
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("vectorAdd", run.out)
        self.assertIn("run.kprof: its run goes on, or was cut short: this is what it has stored so far", run.err)
        self.assert_run(self.recover(), 0)
        self.assertEqual(self.kprof("report", "run.kprof").err, "")

    def test_missing(self):
        self.copy("")
        run = self.report()
        self.assertEqual(run.code, 107)
        self.assertEqual(len(run.err.splitlines()), 1, run.err)
        self.assertIn("run.kprof-wal, which is not here", run.err)

    def test_missing_since_another_client_has_merged_it(self):
        self.copy("", "-wal")
        path = os.path.join(self.folder, "run.kprof")
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("SELECT count(*) FROM launch").fetchall()
        self.assertEqual(os.listdir(self.folder), ["run.kprof"])
        os.rename(path, os.path.join(self.folder, "50%#?.kprof"))
        run = self.kprof("report", os.path.join(self.folder, "50%#?.kprof"))
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("vectorAdd", run.out)
        self.assertIn("launches may be missing", run.err)

    def test_of_another_database(self):
        with contextlib.closing(sqlite3.connect(os.path.join(self.folder, "run.kprof"))) as database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("CREATE TABLE other(a)")
        run = self.report()
        self.assertEqual(run.code, 107)
        self.assertIn("not a kprof report", run.err)
        self.assertNotIn("cut short", run.err)

    def test_in_a_folder_that_may_not_be_written(self):
        self.copy("", "-wal")
        os.chmod(self.dir, 0o755)
        for name in os.listdir(self.folder):
            os.chmod(os.path.join(self.folder, name), 0o644)
        os.chmod(self.folder, 0o555)
        as_nobody = (lambda: os.setuid(65534)) if os.geteuid() == 0 else None
        run = self.report(preexec_fn=as_nobody)
        os.chmod(self.folder, 0o755)
        self.assertEqual(run.code, 107, run.err)
        self.assertIn("copy both files to another folder", run.err)


class Gone(CutShort):
    """The folder of a trace's report is removed while the application runs."""

    def test_a_trace_is_recovered_elsewhere(self):
        os.mkdir(self.path("out"))
        run = self.kprof("trace", "--injection-path", INJECTION, "-o", "out/run", APP, f"launch={VECTOR_ADD}*3",
                         "run=rm -r out", f"launch={SCALE}*2")
        self.assertEqual(run.code, 108, run.err)
        self.assertNotIn("what was stored before", run.err)
        self.assertIn(f"kprof recover {self.session()} makes a report of it, and with -o FILE in another", run.err)
        run = self.recover()
        self.assertEqual(run.code, 108, run.err)
        self.assertIn("-o FILE in another place", run.err)
        run = self.recover("-o", "run", "--csv")
        self.assert_run(run, 0)
        self.assertIn("report: run.kprof (10 activities)", run.err)
        self.assertIn('"cuda_gpu_kern_sum",1,"Instances","",3\n', run.out)


class Full(CutShort):
    """The disk of the report or of the session is full, or files may not grow."""

    def limited(self, kilobytes, options=("-o", "run"), steps=()):
        return self.profile(list(options), ["liftlimit", f"launch={VECTOR_ADD}*5000", *steps, "say=ran to the end"],
                            preexec_fn=limit_file_size(kilobytes << 10))

    def test_the_report(self):
        run = self.limited(400)
        self.assertEqual((run.code, run.out), (108, "ran to the end\n"), run.err)
        # SQLite does not always keep what the system said.
        self.assertRegex(run.err, r"run\.kprof: cannot write the report(: File too large| \(is the disk full\?\)): ")
        self.assertIn("what was stored before is in run.kprof", run.err)
        self.assertIn(f"kprof recover {self.session()} ", run.err)
        for claim in ("lost", "orderly", "killed"): # the application has ended well, and all of it is kept
            self.assertNotIn(claim, run.err)
        self.assertLess(len(self.launches()), 5000)
        self.assert_run(self.recover(), 0)
        self.assertEqual(len(self.launches()), 5000)
        self.assertEqual(self.files(), ["run.kprof"])

    def test_a_report_that_replaces_another(self):
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        run = self.limited(400, ["-f", "-o", "run"])
        self.assertEqual(run.code, 108, run.err)
        self.assertEqual(self.launches(), ["scale"])
        self.assert_run(self.recover(), 0)
        self.assertEqual(len(self.launches()), 5000)
        self.assertEqual(self.files(), ["run.kprof"])

    def limited_application(self, blocks, *steps):
        """The application alone may write no larger files, in blocks of 512 bytes."""
        with open(self.path("limited"), "w") as file:
            file.write(f'ulimit -S -f {blocks}\nexec "$@"\n')
        return self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "sh", self.path("limited"),
                          APP, *steps, "say=ran to the end")

    def test_the_spool(self):
        run = self.limited_application(100, f"launch={VECTOR_ADD}*5000")
        self.assert_run(run, 108)
        self.assertEqual(run.out, "ran to the end\n")
        kept = len(self.launches())
        self.assertIn(f"the {kept} launch", run.err)
        for claim in ("lost", "orderly", "killed"):
            self.assertNotIn(claim, run.err)

    def test_the_spool_from_the_beginning(self):
        run = self.limited_application(0, f"launch={VECTOR_ADD}")
        self.assert_run(run, 108)
        self.assertEqual(run.out, "ran to the end\n")
        self.assertIn("the 0 launches that it had measured before are kept", run.err)
        self.assertNotIn("did not initialise CUDA", run.err)

    def test_files_that_may_not_grow_any_more(self):
        """No write of kprof's raises the signal by which the program would end."""
        limit = "run=prlimit --fsize=0 --pid $PPID"
        for options in ([], ["--armed", "no"]):
            for before in (["init", f"launch={VECTOR_ADD}"], []):
                run = self.profile(["-f", "-o", "run", *options],
                                   [*before, limit, "init", f"launch={VECTOR_ADD}*2", "say=ran to the end"])
                self.assert_run(run, 108)
                self.assertEqual(run.out, "ran to the end\n")

    def on_disk_of(self, size):
        """The words before a command for which the temporary folder is on a disk of that size."""
        mounted = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size={size} none "$0" && exec "$@"', self.tmp]
        if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets no user mount a small file system")
        return mounted

    def test_the_disk_of_the_session_at_the_start(self):
        """It is the one that is told to be full, and not that of the report."""
        for size in ("8k", "40k"):
            process = subprocess.run(
                [*self.on_disk_of(size), KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o",
                 self.path("run"), APP, f"launch={VECTOR_ADD}", "say=ran"],
                env=self.environment({}), capture_output=True, text=True)
            self.assertEqual((process.returncode, process.stdout), (108, ""), process.stderr)
            self.assertIn(self.tmp, process.stderr)
            self.assertIn("set TMPDIR to another folder", process.stderr)
            self.assertNotIn("run.kprof", process.stderr)
            self.assertEqual(self.files(), [])

    def test_the_disk_of_a_report_that_is_made_of_others(self):
        """Nothing stays of it: it can be made again, and the disk is full."""
        for name in ("a", "b"):
            self.assert_run(self.profile(["-o", name], [f"launch={VECTOR_ADD}*300"]), 0)
        inside = [KPROF, *"merge a b -o".split(), os.path.join(self.tmp, "m")]
        told = ""
        for size in range(200, 1000, 50):
            process = subprocess.run(
                [*self.on_disk_of(f"{size}k"), "sh", "-c", '"$@"; echo $?; ls -A "$TMPDIR"', "sh", *inside],
                env=self.environment({}), capture_output=True, text=True, cwd=self.dir)
            self.assertIn(process.stdout, ("108\n", "0\nm.kprof\n"), (size, process.stderr))
            told += process.stderr
            if process.stdout == "0\nm.kprof\n":
                break
        self.assertIn("database or disk is full: completing the file", told)

    def test_a_disk_that_is_nearly_full(self):
        """Nothing was lost when a process just ended there without a word."""
        mounted = self.on_disk_of("260k")
        fill = 'head -c 1000000 /dev/zero >"$TMPDIR/fill" 2>/dev/null'
        process = subprocess.run(
            [*mounted, KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", self.path("run"), APP,
             f"launch={VECTOR_ADD}*3", "settle", f"run={fill}", "_exit=0"],
            env=self.environment({}), capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)
        self.assertNotIn("full", process.stderr)
