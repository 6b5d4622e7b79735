"""What applications do: fail, crash, fork, exec, close files, leave their directory. kprof keeps what it has, passes
the exit status on and leaves nothing behind."""

import pathlib
import shutil
import time

from harness import *


class ExitStatus(Case):
    def test_success(self):
        self.assert_run(self.profile([], [f"launch={VECTOR_ADD}"]), 0)

    def test_own_failure_is_passed_on(self):
        for code in (1, 3, 99, 120, 255):
            run = self.profile(["--csv"], [f"launch={VECTOR_ADD}", f"exit={code}"])
            self.assert_run(run, code)
            self.assertIn("vectorAdd", run.out)
            self.assertIn(f"exited with status {code}", run.err)

    def test_status_in_kprofs_range(self):
        run = self.profile([], [f"launch={VECTOR_ADD}", "exit=106"])
        self.assert_run(run, 119)
        self.assertIn("exited with status 106", run.err)

    def test_signals(self):
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM):
            run = self.profile(["--csv"], [f"launch={VECTOR_ADD}*2", "settle", f"raise={int(number)}"])
            self.assert_run(run, 128 + number)
            self.assertEqual(sum("vectorAdd" in line for line in run.out.splitlines()), 2)
            self.assertIn("2 launches", run.err)

    def test_killed_where_launches_are_sparse(self):
        """Batches are closed soon, so that half a second of launches is lost."""
        run = self.collect([], [*[f"launch={VECTOR_ADD}", "pass=100"] * 40, f"raise={int(signal.SIGKILL)}"], env=BUSY)
        self.assert_run(run, 128 + signal.SIGKILL)
        self.assertGreaterEqual(len(self.launches()), 33)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch WHERE measured = 0"), [(0,)])

    def test_signals_keep_what_is_open(self):
        """The program has left their default action, which ends it; the same signal does."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE,
                       signal.SIGALRM, signal.SIGXCPU):
            with self.subTest(number):
                run = self.collect([], [f"launch={VECTOR_ADD}*3", f"raise={int(number)}"], env=BUSY)
                self.assert_run(run, 128 + number)
                self.assertEqual(self.launches(), ["vectorAdd"] * 3)
                self.assertNotIn("lost", run.err)

    def test_workers_that_a_signal_ends(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                run = self.collect([], [f"workers={int(number)}:{VECTOR_ADD}"], env=BUSY)
                self.assert_run(run, 0)
                self.assertEqual(run.out, f"worker ended by signal {int(number)}\n" * 2)
                self.assertEqual(self.launches(), ["vectorAdd"] * 12)

    def test_failure_without_any_launch(self):
        self.assert_run(self.profile([], ["exit=5"]), 5)

    def test_application_that_does_not_exist(self):
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, APP[:-1] + "q")
        self.assert_run(run, 109)
        self.assertIn("No such file", run.err)

    def test_what_is_wrong_is_said_before_a_gpu_is_missed(self):
        for name in ("train.py", "data"):
            pathlib.Path(self.path(name)).touch(0o600)
        for program, err in (("./nothing", "cannot start ./nothing: No such file"),
                             (self.dir, "denied; it is a folder"),
                             ("no-such-program-in-path", "No such file or directory; no folder of PATH has it"),
                             ("train.py", "did you mean kprof python train.py?"),
                             ("./train.py", "did you mean kprof python ./train.py?"),
                             ("./data", "denied; it is not executable: see chmod +x")):
            with self.subTest(program=program):
                run = self.kprof(program, env={"KPROF_SIM_PROBE": "no-gpu"})
                self.assert_run(run, 109)
                self.assertIn(err, run.err)
        shutil.copy("/bin/true", f"{self.dir}/here")
        run = self.kprof("here", env={"KPROF_SIM_PROBE": "no-gpu"})
        self.assert_run(run, 109)
        self.assertIn("cannot start here: it is not in PATH; did you mean ./here?", run.err)
        for words in ((METRIC + ",", "dram__bytes.sum"), (METRIC, "dram__bytes.sum"), (METRIC, ",dram__bytes.sum,")):
            run = self.kprof("--metrics", *words, APP, env={"KPROF_SIM_PROBE": "no-gpu"})
            self.assert_run(run, 109)
            self.assertIn(f"there is no program {words[1]}; lists have no blanks: --metrics A,B", run.err)
        for name, meant in (("full", "--set full"), ("SpeedOfLight", "--section SpeedOfLight"),
                            ("dram__bytes.sum", "--metrics A,B"), ("reprot", "kprof report")):
            for words in ([name], ["plan", name]):
                run = self.kprof(*words, env={"KPROF_SIM_PROBE": "no-gpu"})
                self.assert_run(run, 109)
                self.assertRegex(run.err, f"there is no program {name}; .*{meant}")
        self.assert_run(self.kprof("plan", "--metrics", METRIC, "--chips", "GH100", "--", "full"), 0)
        for options in (["--set", "ful"], ["--rule", "Bottlenek"]):
            with self.subTest(options=options):
                run = self.kprof(*options, APP, env={"KPROF_SIM_PROBE": "no-gpu"})
                self.assert_run(run, 102)
                self.assertIn("did you mean", run.err)

    def test_application_that_is_no_program(self):
        with open(self.path("text"), "w") as file:
            file.write("text")
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, self.path("text"))
        self.assert_run(run, 109)
        self.assertIn("Permission denied", run.err)

    def test_nvdisasm_that_is_no_program(self):
        with open(self.path("text"), "w") as file:
            file.write("text")
        for name, reason in (("nothing", "No such file or directory"), ("text", "Permission denied"),
                             ("", "it is no program")):
            run = self.kprof("--nvdisasm", self.path(name), "--metrics", METRIC, "touch", self.path("started"))
            self.assert_run(run, 101)
            self.assertIn(f"--nvdisasm {self.path(name)}: {reason}", run.err)
            run = self.kprof("recover", "--nvdisasm", self.path(name))
            self.assert_run(run, 101)
            self.assertIn(f"--nvdisasm {self.path(name)}: {reason}", run.err)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_report_is_not_left_when_the_application_cannot_start(self):
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "./nothing")
        self.assert_run(run, 109)
        self.assertFalse(os.path.exists(self.path("run.kprof")))

    def test_exit_status_is_in_the_report(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}", "exit=3"]), 3)
        self.assertEqual(self.query("run.kprof", "SELECT wait_status FROM process"), [(3 << 8,)])


class Behaviour(Case):
    def test_streams_and_arguments(self):
        run = self.profile(["-o", "run"], ["say=out", "err=err", "cat", f"launch={VECTOR_ADD}"], stdin="input")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "out\ninput")
        self.assertTrue(run.err.startswith("err\n"))

    def test_environment(self):
        run = self.profile(["-o", "run"], ["env=CUDA_INJECTION64_PATH", "env=TEARDOWN_CUPTI", "env=HOME",
                                           f"launch={VECTOR_ADD}"], env={"TEARDOWN_CUPTI": "1", "HOME": "/h"})
        self.assert_run(run, 0)
        self.assertEqual(run.out, f"CUDA_INJECTION64_PATH={INJECTION}\nTEARDOWN_CUPTI=(unset)\nHOME=/h\n")

    def test_another_profiler(self):
        run = self.profile(["-o", "run"], ["env=CUDA_INJECTION64_PATH", f"launch={VECTOR_ADD}"],
                           env={"CUDA_INJECTION64_PATH": "/other.so"})
        self.assert_run(run, 0)
        self.assertEqual(run.out, f"CUDA_INJECTION64_PATH={INJECTION}\n")
        self.assertIn("/other.so", run.err)

    def test_exit_at_once_keeps_launches_of_a_closed_batch(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}*3", "settle", "_exit=0"]), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)

    def test_exit_at_once_keeps_what_is_open(self):
        for step, code in (("_exit=3", 3), ("leave=_Exit:4", 4), ("leave=quick_exit:5", 5), ("exithandler", 10)):
            with self.subTest(step):
                run = self.collect(["--verbose"], [f"launch={VECTOR_ADD}*3", step])
                self.assert_run(run, code)
                self.assertEqual(self.launches(), ["vectorAdd"] * 3)
                self.assertEqual(self.query("run.kprof", "SELECT launches FROM process"), [(3,)]) # all are counted
                for loss in ("lost", "orderly"):
                    self.assertNotIn(loss, run.err)

    def test_exit_at_once_of_a_child_closes_nothing(self):
        """Not even where the child shares the memory of its parent."""
        for child in ("vfork", f"fork={SCALE}"):
            with self.subTest(child):
                run = self.collect(["--verbose"], [f"launch={VECTOR_ADD}*2", child, f"launch={VECTOR_ADD}"])
                self.assert_run(run, 0)
                self.assertEqual(self.launches(), ["vectorAdd"] * 3)
                self.assertNotIn("closed by _exit", run.err)
                self.assertIn("closed by the end of the process", run.err)

    def test_exit_at_once_where_nothing_was_launched(self):
        self.assert_run(self.profile([], ["init", "_exit=3"]), 3)

    def test_exit_at_once_without_the_preloaded_library(self):
        """A program may take it out of its environment: then kprof says what is lost."""
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "env", "-u", "LD_PRELOAD",
                         APP, f"launch={VECTOR_ADD}*3", "_exit=0")
        self.assert_run(run, 110)
        self.assertIn("at least 2 launches were still being measured", run.err)
        self.assertNotIn("no launch matched", run.err)

    def test_batches_of_one_lose_nothing(self):
        self.assert_run(self.collect(["--replay-batch", "1"], [f"launch={VECTOR_ADD}*3", "_exit=0"]), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)

    def test_fork(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}", f"fork={SCALE}", f"launch={VECTOR_ADD}"]), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 2)

    def test_exec_goes_on(self):
        run = self.collect([], [f"launch={VECTOR_ADD}", "settle", "exec", f"launch={SCALE}", "exit=4"])
        self.assert_run(run, 4)
        self.assertEqual(self.launches(), ["vectorAdd", "scale"])
        self.assertNotIn("orderly", run.err)
        run = self.kprof("report", "run", "--page", "session")
        self.assert_run(run, 0)
        self.assertNotIn("cut short", run.out + run.err)
        self.assertIn("yes, until it called exec", run.out)
        os.link(self.path("run.kprof"), self.path("other.kprof"))
        self.collect([], [f"launch={SCALE}"])
        run = self.kprof("merge", "run", "other", "-o", "two")
        self.assert_run(run, 0)
        self.assertNotIn("cut short", run.err)

    def test_exec_keeps_what_is_open(self):
        """Each process of the chain replaces itself with a batch open."""
        part = [f"launch={VECTOR_ADD}*3", "exec"]
        run = self.collect(["--verbose"], [*part, *part, *part, f"launch={SCALE}*2"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 9 + ["scale"] * 2)
        self.assertEqual(self.query("run.kprof", "SELECT count(DISTINCT launch_id) FROM value"), [(11,)])
        self.assertEqual(self.query("run.kprof", "SELECT min(measured) FROM launch"), [(1,)])
        self.assertIn("closed by an exec", run.err) # not three times: lines that are the same are told once
        self.assertNotIn("lost", run.err)

    def test_each_function_of_exec(self):
        for function in ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat"):
            with self.subTest(function):
                run = self.collect([], [f"launch={VECTOR_ADD}*2", f"exec={function}", f"launch={SCALE}", "say=done"])
                self.assert_run(run, 0)
                self.assertEqual(run.out, "done\n")
                self.assertEqual(self.launches(), ["vectorAdd"] * 2 + ["scale"])

    def test_exec_in_a_signal_handler(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}*2", "exechandler", f"launch={SCALE}"]), 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 2 + ["scale"])

    def test_exec_that_fails(self):
        run = self.collect([], [f"launch={VECTOR_ADD}*2", "execnothing", f"launch={SCALE}"])
        self.assert_run(run, 0)
        self.assertIn("exec: No such file or directory", run.err)
        self.assertEqual(self.launches(), ["vectorAdd"] * 2 + ["scale"])

    def test_exec_of_a_child_closes_nothing(self):
        run = self.collect(["--verbose"], [f"launch={VECTOR_ADD}*2", f"vfork={SCALE}", f"launch={VECTOR_ADD}"])
        self.assert_run(run, 0)
        self.assertEqual(sorted(self.launches()), ["scale"] + ["vectorAdd"] * 3)
        self.assertNotIn("closed by an exec", run.err)

    def test_exec_without_the_preloaded_library(self):
        """A program may take it out of its environment: then kprof says what is lost."""
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "env", "-u", "LD_PRELOAD",
                         APP, f"launch={VECTOR_ADD}*3", "exec", f"launch={SCALE}")
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"])
        self.assertIn("called exec while at least 2 launches were still being measured", run.err)

    def test_preloaded_library_of_the_user(self):
        own = os.path.join(BUILD, "tests/sim/libkprof-exec.so")
        users = os.path.join(self.dir, "users.so")
        shutil.copy(own, users) # any library will do
        run = self.profile(["-o", "run"], ["env=LD_PRELOAD", f"launch={VECTOR_ADD}"], env={"LD_PRELOAD": users})
        self.assert_run(run, 0)
        self.assertEqual(run.out, f"LD_PRELOAD={users}:{own}\n")

    def test_address_sanitizer_of_the_application(self):
        """Its own library would have to be the first, which the user's options may say already."""
        run = self.profile(["-o", "run"], ["env=ASAN_OPTIONS", f"launch={VECTOR_ADD}"])
        self.assert_run(run, 0)
        given = self.environment({})["ASAN_OPTIONS"]
        self.assertEqual(run.out, f"ASAN_OPTIONS={given}:verify_asan_link_order=0\n")

    def test_child_process(self):
        steps = [f"launch={VECTOR_ADD}", "spawn", f"launch={SCALE}"]
        self.assert_run(self.collect([], steps), 0)
        self.assertEqual(self.launches(), ["vectorAdd", "scale"])
        self.assertEqual(self.query("run.kprof", "SELECT count(DISTINCT pid) FROM process"), [(2,)])

    def test_child_process_left_out(self):
        steps = [f"launch={VECTOR_ADD}", "spawn", f"launch={SCALE}"]
        self.assert_run(self.collect(["--target-processes", "application-only"], steps), 0)
        self.assertEqual(self.launches(), ["vectorAdd"])

    def test_processes_by_name(self):
        """By the names of their programs, as ncu chooses them: the first expression that matches decides."""
        for name in ("first", "second", "third"):
            shutil.copy(APP, self.path(name))
        run = [f"launch={VECTOR_ADD}", f"run=./second launch={SCALE} 'run=./third launch=_Z4lastPf'"]
        everything = ["last", "scale", "vectorAdd"]
        others = ["last", "vectorAdd"]
        for words, launches in (("all", everything), ("first", ["vectorAdd"]), ("regex:^(first|th)", others),
                                ("exclude:second", others), ("exclude-tree:second", ["vectorAdd"]),
                                ("exclude:third,regex:i", ["vectorAdd"]), ("regex:i,exclude:third", others),
                                ("exclude:nothing", everything), ("second,third", ["last", "scale"])):
            with self.subTest(words):
                self.assert_run(self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run",
                                           "--target-processes-filter", words, "./first", *run), 0)
                self.assertEqual(sorted(self.launches()), launches)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--target-processes-filter", "nothing",
                         "./first", *run)
        self.assertIn("--target-processes-filter leaves processes out", run.err)
        self.assertNotEqual(run.code, 0)
        for words, told in (("regex:(", "--target-processes-filter"),
                            ("first,exclud:b", 'begins with none of regex:, exclude: and exclude-tree:; did you mean '
                             'exclude:b?'),
                            ("exclude_tree:b", "did you mean exclude-tree:b?"),
                            ("include:b", "did you mean b?"), ("regexp:b", "did you mean regex:b?")):
            run = self.kprof("--target-processes-filter", words, "./first")
            self.assert_run(run, 101)
            self.assertIn(told, run.err)

    def test_tree_whose_processes_have_gone(self):
        """A process is left out with the tree that it comes from, also if those between them have ended."""
        for name in ("first", "second", "third"):
            shutil.copy(APP, self.path(name))
        until = "until [ -e {} ]; do sleep 0.01; done"
        orphan = f"({until.format('gone')}; ./third launch=_Z4lastPf; touch done) &"
        steps = [f"launch={VECTOR_ADD}", f"run=./second 'run={orphan}'; touch gone; {until.format('done')}"]
        for words, launches in (("all", ["last", "vectorAdd"]), ("exclude-tree:second", ["vectorAdd"]),
                                ("third,exclude-tree:second", ["last"]),
                                ("exclude-tree:other,exclude-tree:second", ["vectorAdd"]),
                                ("exclude-tree:secon,exclude-tree:econd", ["last", "vectorAdd"])):
            with self.subTest(words):
                for name in ("gone", "done"):
                    if os.path.exists(self.path(name)):
                        os.remove(self.path(name))
                self.assert_run(self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run",
                                           "--target-processes-filter", words, "./first", *steps), 0)
                self.assertEqual(sorted(self.launches()), launches)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run",
                         "--target-processes-filter", "exclude-tree:sh,exclude-tree:a/b,exclude-tree:sh",
                         "./first", "env=KPROF_EXCLUDED_TREES", f"launch={VECTOR_ADD}",
                         "run=env -u LD_PRELOAD ./second env=KPROF_EXCLUDED_TREES launch=_Z4lastPf; true",
                         env={"KPROF_EXCLUDED_TREES": "+first"})
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"]) # whose parent still runs
        self.assertEqual(run.out, "KPROF_EXCLUDED_TREES=-sh\nKPROF_EXCLUDED_TREES=+sh\n")
        run = self.profile([], ["env=KPROF_EXCLUDED_TREES"], env={"KPROF_EXCLUDED_TREES": "+first"})
        self.assertEqual(run.out, "KPROF_EXCLUDED_TREES=(unset)\n")

    def test_child_that_outlives_the_application(self):
        steps = [f"launch={VECTOR_ADD}", "daemon", "sleep=300"]
        run = self.collect([], [*steps[:2], "init", f"launch={SCALE}", "sleep=400"])
        self.assert_run(run, 0) # and the other process has ended, too, which had kprof's streams
        self.assertIn("vectorAdd", self.launches())

    def test_closes_all_files(self):
        run = self.collect([], [f"launch={VECTOR_ADD}", f"closefiles={self.dir}", f"launch={VECTOR_ADD}*2"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"] * 3)
        for number in range(3, 32):
            with open(self.path(f"own-{number}")) as file:
                self.assertEqual(file.read(), "mine")

    def test_leaves_and_removes_its_directory(self):
        os.mkdir(self.path("gone"))
        self.assert_run(self.collect([], [f"leavedir={self.path('gone')}", f"launch={VECTOR_ADD}"]), 0)
        self.assertEqual(self.launches(), ["vectorAdd"])

    def test_many_launches(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}*10000"]), 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch"), [(10000,)])

    def test_floating_point_is_the_programs_own(self):
        """kprof computes within the program's calls, and with numbers that are none; a program may trap these."""
        if not can_profile():
            self.skipTest("no host library")
        for mode in ("kernel", "multiplex"):
            steps = ("trapfloats", f"launch={VECTOR_ADD}*20", "settle", "floats", f"launch={SCALE}*3", "floats")
            run = self.kprof("--injection-path", INJECTION, "--set", "default", "--replay-mode", mode, "-f", "-o",
                             "run", APP, *steps)
            self.assert_run(run, 0)
            self.assertEqual(run.out, 2 * "rounds up: 1, traps: 1, flags: 0\n")


class Processes(Case):
    """More of them, one after the other, than kprof may open files."""
    COUNT, DESCRIPTORS = 200, 64

    def test_more_than_descriptors(self):
        import resource

        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (self.DESCRIPTORS, self.DESCRIPTORS))
        run = self.collect([], [f"processes={self.COUNT}:{VECTOR_ADD}"], preexec_fn=limit)
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*), count(DISTINCT process_id) FROM launch"),
                         [(self.COUNT, self.COUNT)])


    def test_at_once(self):
        """They stand in line for the counters, and each gets its turn, however many wait."""
        run = self.collect([], [f"forks=120:{VECTOR_ADD}"], env={"KPROF_SIM_SAVE_MS": "10"})
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*), sum(measured) FROM launch"), [(120, 120)])


class Thousands(Processes):
    COUNT, DESCRIPTORS = 5000, 1024


class Signals(Case):
    def test_actions_are_what_the_program_has_set(self):
        steps = [f"launch={VECTOR_ADD}", "actions", f"launch={VECTOR_ADD}", "actions"]
        alone = subprocess.run([APP, *steps], text=True, stdout=subprocess.PIPE, cwd=self.dir)
        run = self.collect([], steps, env=BUSY)
        self.assert_run(run, 0)
        self.assertEqual(run.out, alone.stdout)
        self.assertIn("after it is held: default", run.out)
        self.assertEqual(self.launches(), ["vectorAdd"] * 2)

    def start(self, steps, options=(), env=BUSY, **keywords):
        """With BUSY the launches before it is ready stay in their batch until a signal arrives."""
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", *options, APP, *steps],
            cwd=self.dir, text=True, env=self.environment(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            **keywords)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_a_parent_that_ignores_the_ends_of_its_children(self):
        """kprof waits for the application all the same, which ignores them as it would without kprof."""
        ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        words = ["sh", "-c", 'grep SigIgn /proc/$$/status; exec "$@"', "sh", APP, f"launch={VECTOR_ADD}"]
        alone = subprocess.run(words, text=True, stdout=subprocess.PIPE, cwd=self.dir, preexec_fn=ignore)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", *words, preexec_fn=ignore)
        self.assert_run(run, 0)
        self.assertEqual(run.out, alone.stdout)
        self.assertEqual(self.launches(), ["vectorAdd"])

    def test_term_is_passed_on_and_results_are_kept(self):
        process = self.start([f"launch={VECTOR_ADD}", "trap", "exit=0"])
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (0, "got signal 15\n"), err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_signals_of_batch_systems_are_passed_on(self):
        process = self.start([f"launch={VECTOR_ADD}", "trap=4", "exit=0"])
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGALRM):
            process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(sorted(out.splitlines()), [f"got signal {number}" for number in (10, 12, 14, 24)])
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_signal_that_ends_it_waits_for_what_is_open(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number):
                process = self.start([f"launch={VECTOR_ADD}*3", "say=ready", "sleep=900000"])
                process.send_signal(number)
                _, err = process.communicate(timeout=PATIENCE_S)
                self.assertEqual(process.returncode, 128 + number, err)
                self.assertEqual(self.launches(), ["vectorAdd"] * 3, err)
                self.assertNotIn("lost", err)
                os.remove(self.path("run.kprof"))
                self.assert_clean()

    def test_signal_while_launches_go_on(self):
        process = self.start([f"launch={VECTOR_ADD}*2", "say=ready", f"until={VECTOR_ADD}"])
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        self.assertGreaterEqual(len(self.launches()), 2)
        self.assertRegex(err, r"at least \d+ launches are still being measured")

    def start_group(self, *before):
        """Launches go on."""
        return self.start([*before, f"launch={VECTOR_ADD}*2", "say=ready", f"until={VECTOR_ADD}", "_exit=0"],
                          ["--verbose"], start_new_session=True)

    def test_signal_of_the_group_leaves_a_handler_its_time(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = self.start_group("handle")
                os.killpg(process.pid, number)
                out, err = process.communicate(timeout=PATIENCE_S)
                self.assertEqual(out, f"got signal {number:02}\n") # and not once more through kprof
                self.assertIn("launches are still being measured; the application's processes measure them", err)
                self.assertIn("closed by a signal", err)
                self.assertGreaterEqual(len(self.launches()), 2, err) # those before the signal
                self.assertIn(process.returncode, (0, 110), err)
                os.remove(self.path("run.kprof"))
                self.assert_clean()

    def test_signal_of_the_group_that_the_application_has_left(self):
        process = self.start(["owngroup", "trap", "exit=0"], start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (106, "got signal 15\n"), err)

    def await_taken(self, process, number):
        """Until kprof has taken the signal, with which a second one would else become one."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with open(f"/proc/{process.pid}/status") as file:
                pending = [int(line.split()[1], 16) for line in file if line.startswith(("SigPnd", "ShdPnd"))]
            if not any(mask >> (number - 1) & 1 for mask in pending):
                return
            time.sleep(0.01)
        self.fail(f"kprof does not take signal {number}")

    def test_signals_of_the_group_and_of_kprof_alone(self):
        """The second and third are forwarded, also where the sender is the same."""
        process = self.start([f"launch={VECTOR_ADD}", "trap=3", "exit=0"], start_new_session=True)
        os.killpg(process.pid, signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "got signal 15\n")
        self.await_taken(process, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "got signal 15\n")
        process.send_signal(signal.SIGUSR1)
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (0, "got signal 10\n"), err)

    def test_signal_of_the_group_without_a_handler(self):
        """The application ends by it once its batch is measured."""
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                process = self.start_group()
                os.killpg(process.pid, number)
                _, err = process.communicate(timeout=PATIENCE_S)
                self.assertEqual(process.returncode, 128 + number, err)
                self.assertIn("closed by a signal", err)
                self.assertGreaterEqual(len(self.launches()), 2, err)
                self.assertNotIn("lost", err)
                os.remove(self.path("run.kprof"))
                self.assert_clean()

    def test_signal_within_a_launch(self):
        """The launch goes on to its end, and no other one follows."""
        process = self.start(["say=ready", f"launch={VECTOR_ADD}*4", "say=not reached"],
                             env={**BUSY, "KPROF_SIM_HOLD": self.path("go on")})
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            children = [int(child) for child in file.read().split()]
        application = next(child for child in children if os.readlink(f"/proc/{child}/exe") == os.path.realpath(APP))
        while len(os.listdir(f"/proc/{application}/task")) < 2: # the thread that watches has begun with the first one
            time.sleep(0.01)
        time.sleep(0.1) # nearly always the third launch has begun then
        os.kill(application, signal.SIGTERM)
        time.sleep(0.1)
        open(self.path("go on"), "w").close()
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (128 + signal.SIGTERM, ""), err)
        seen, measured = self.query("run.kprof", "SELECT launches, (SELECT count(*) FROM launch WHERE measured) "
                                                 "FROM process")[0]
        self.assertEqual(seen, measured, err)
        self.assertLessEqual(seen, 3)
        self.assert_clean()

    def test_second_signal_is_not_held_back(self):
        process = self.start([f"launch={VECTOR_ADD}*3", "say=ready", "sleep=900000"])
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)
        self.assert_clean()

    def test_interrupt_kills_a_plain_application(self):
        process = self.start([f"launch={VECTOR_ADD}", "settle", "say=ready", "sleep=900000"], env={})
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 130, err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_terminal_that_goes_away(self):
        """It tells kprof alone, as the leader of the session, and ends the program as it would without kprof."""
        import pty

        controller, terminal = pty.openpty()
        process = self.start([f"launch={VECTOR_ADD}", "say=ready", "sleep=900000"], stdin=terminal, preexec_fn=lambda: (
            signal.signal(signal.SIGHUP, signal.SIG_DFL),
            os.setsid(), __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0)))
        os.close(terminal)
        os.close(controller)
        _, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 128 + signal.SIGHUP, err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assert_clean()

    def test_terminal_interrupt_arrives_once(self):
        import pty

        controller, terminal = pty.openpty()
        process = self.start([f"launch={VECTOR_ADD}", "trap", "exit=0"], stdin=terminal, preexec_fn=lambda: (
            os.setsid(), __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0)))
        os.write(controller, b"\x03")
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual((process.returncode, out), (0, "got signal 02\n"), err)
        os.close(controller)
        os.close(terminal)
