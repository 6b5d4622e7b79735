"""What kprof prints, where, and with which exit code when there is nothing to print."""

import contextlib
import csv
import fcntl
import io
import json
import pathlib
import pty
import re
import select
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys

from harness import *

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/report.schema.json")
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/vectorAdd-h200.kprof")
SECTOR_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_"
REPEATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/repeats-h200.kprof")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/source/source.kprof")
OWN_SETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/metricsets")


class Separation(Case):
    """The application's stdout and kprof's results never mix, byte for byte."""

    STEPS = ["say=from the application", f"launch={VECTOR_ADD}", "say=its last word"]
    APP_OUT = "from the application\nits last word\n"

    def test_text_into_a_pipe_goes_to_stderr(self):
        run = self.profile([], self.STEPS)
        self.assert_run(run, 0)
        self.assertEqual(run.out, self.APP_OUT)
        self.assertIn("vectorAdd", run.err)

    def test_csv_is_alone_on_stdout(self):
        run = self.profile(["--csv"], self.STEPS)
        self.assert_run(run, 0)
        self.assertIn(self.APP_OUT, run.err)
        rows = list(csv.reader(io.StringIO(run.out)))
        self.assertGreater(len(rows), 1)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})

    def test_json_is_alone_on_stdout(self):
        run = self.profile(["--json"], self.STEPS)
        self.assert_run(run, 0)
        self.assertIn(self.APP_OUT, run.err)
        json.loads(run.out)

    def test_log_file(self):
        for format_option in ([], ["--csv"], ["--json"]):
            run = self.profile(["--log-file", "results", *format_option], self.STEPS)
            self.assert_run(run, 0)
            self.assertEqual(run.out, self.APP_OUT)
            self.assertNotIn("vectorAdd", run.err)
            with open(self.path("results")) as file:
                self.assertIn("vectorAdd", file.read())

    def test_log_file_stderr(self):
        run = self.profile(["--csv", "--log-file", "stderr"], self.STEPS)
        self.assert_run(run, 0)
        self.assertEqual(run.out, self.APP_OUT)
        self.assertIn("vectorAdd", run.err)

    def test_export_prints_nothing(self):
        run = self.collect([], self.STEPS)
        self.assert_run(run, 0)
        self.assertEqual(run.out, self.APP_OUT)
        self.assertRegex(run.err, r"^kprof: report: run\.kprof \(1 launch profiled, 1 seen\)\n$")

    def test_export_and_page(self):
        run = self.collect(["--page", "raw", "--csv"], self.STEPS)
        self.assert_run(run, 0)
        self.assertIn("vectorAdd", run.out)

    def test_brief_is_filled(self):
        """A run for the brief page collects all that it tells, and prints that alone: a document for each kernel."""
        run = self.kprof("--injection-path", INJECTION, "--brief", "--json", APP, "say=from the application",
                         f"launch={VECTOR_ADD}*10", f"launch={SCALE}*10")
        self.assert_run(run, 0)
        documents = [json.loads(line) for line in run.out.splitlines()]
        self.assertEqual([document["launches"] for document in documents], [10, 10])
        may_be_missing = {"group", "gain_pct"}
        for document, line in zip(documents, run.out.splitlines()):
            self.assertLessEqual(len(line), 2048)
            missing = {key for key, value in document.items() if value in (None, [])} - may_be_missing - {"warnings"}
            self.assertEqual(missing, set())
            self.assertEqual(len(document["stalls"]), 3)

    def test_brief_text(self):
        run = self.kprof("--injection-path", INJECTION, "--brief", "--log-file", "stdout", APP, f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        self.assertLessEqual(len(run.out.splitlines()), 16)
        self.assertIn("  Limited by  ", run.out)

    def test_quiet(self):
        run = self.collect(["-q"], self.STEPS)
        self.assert_run(run, 0)
        self.assertEqual(run.err, "")

    def test_closed_streams(self):
        """The report is whole; kprof fails only where it was to print results too."""
        def close_all():
            for number in range(3):
                os.close(number)

        for name, words, code in (("silent.kprof", [], 0), ("printed.kprof", ["--page", "raw"], 108)):
            process = subprocess.Popen(
                [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", name, *words, APP, "say=x",
                 f"launch={VECTOR_ADD}"], cwd=self.dir, env=self.environment({}), preexec_fn=close_all)
            self.assertEqual(process.wait(timeout=PATIENCE_S), code, name)
            self.assertEqual(self.query(name, "PRAGMA integrity_check"), [("ok",)])
            self.assertEqual(self.launches(name), ["vectorAdd"])

    def test_no_stderr(self):
        """The application's stdout then has no place: it is dropped, and writing to it does not fail."""
        process = subprocess.run(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "--csv", "/bin/sh", "-c",
             f"{APP} launch={VECTOR_ADD} && echo said || exit 3"], env=self.environment({}), stdout=subprocess.PIPE,
            text=True, preexec_fn=lambda: os.close(2))
        self.assertEqual(process.returncode, 0)
        self.assertIn("vectorAdd", process.stdout)
        self.assertNotIn("said", process.stdout)

    def test_application_without_stdout(self):
        """Writing fails for it as it does without kprof."""
        process = subprocess.run(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", "run", "/bin/sh", "-c",
             f"{APP} launch={VECTOR_ADD} && echo said || exit 3"], cwd=self.dir, env=self.environment({}),
            stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
        self.assertEqual(process.returncode, 3, process.stderr)

    def test_closed_pipe(self):
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "--csv", APP, f"launch={VECTOR_ADD}*500"],
            env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=PATIENCE_S), 108, err)
        self.assertEqual(err, "")
        self.assert_clean()

    def test_closed_pipe_of_a_list(self):
        with subprocess.Popen(
                [KPROF, "--query-metrics", "--chip", "GH100"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=self.environment({})) as process:
            process.stdout.close()
            self.assertEqual(process.stderr.read(), "")
        self.assertEqual(process.returncode, 108)

    def test_no_stdout(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        for words in (["report", "run.kprof"], ["--plan", "--chip", "GH100"], ["--version"]):
            process = subprocess.run([KPROF, *words], cwd=self.dir, stderr=subprocess.PIPE, text=True,
                                     env=self.environment({}), preexec_fn=lambda: os.close(1))
            self.assertEqual(process.returncode, 108, f"{words}: {process.stderr}")

    def test_help_that_cannot_be_written(self):
        for words in (["help"], ["--help"], ["help", "report"], ["--version"], ["--complete", "commands"]):
            with open("/dev/full", "w") as full:
                process = subprocess.run([KPROF, *words], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.returncode, 108)
            self.assertRegex(process.stderr, "^kprof: error: .*stdout.*\n$")

    def test_full_device(self):
        with open("/dev/full", "w") as full:
            process = subprocess.run(
                [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "--csv", APP, f"launch={VECTOR_ADD}"],
                env=self.environment({}), stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(process.returncode, 108, process.stderr)
        self.assert_clean()


class Filters(Case):
    STEPS = [f"launch={VECTOR_ADD}*2", f"launch={SCALE}*3", f"launch={VECTOR_ADD}"]

    def assert_launches(self, options, expected):
        self.assert_run(self.collect(options, self.STEPS), 0)
        self.assertEqual(self.launches(), expected)

    def test_filters(self):
        add, scale = "vectorAdd", "scale"
        self.assert_launches([], [add, add, scale, scale, scale, add])
        self.assert_launches(["-k", "scale"], [scale] * 3)
        self.assert_launches(["-k", "regex:vec|nothing"], [add] * 3)
        self.assert_launches(["-k", "regex:<float>", "--kernel-name-base", "demangled"], [scale] * 3)
        self.assert_launches(["-k", VECTOR_ADD, "--kernel-name-base", "mangled"], [add] * 3)
        self.assert_launches(["-k", "vectorAdd", "-s", "1", "-c", "1"], [add])
        self.assert_launches(["-s", "1", "-c", "2"], [add, scale])
        self.assert_launches(["-k", "scale", "--launch-skip-before-match", "3"], [scale] * 2)
        self.assert_launches(["--devices", "0", "-c", "1"], [add])

    def test_filters_of_the_reporter(self):
        self.assert_run(self.collect([], self.STEPS), 0)
        run = self.kprof("report", "run.kprof", "--csv", "--csv-layout", "wide", "-k", "scale", "-s", "1")
        self.assert_run(run, 0)
        self.assertEqual(len(list(csv.reader(io.StringIO(run.out)))), 3)

    def test_no_match_in_a_report(self):
        self.assert_run(self.collect([], self.STEPS), 0)
        run = self.kprof("report", "run.kprof", "-k", "vectoradd")
        self.assert_run(run, 106)
        self.assertEqual(run.out, "")
        self.assertIn("did you mean -k vectorAdd?", run.err)
        self.assert_run(self.kprof("report", "run.kprof", "--csv", "-s", "100"), 106)
        run = self.kprof("report", "run.kprof", "--devices", "3,5")
        self.assert_run(run, 106)
        self.assertIn("no launch matched --devices 3,5;", run.err)
        self.assert_run(self.kprof("report", "run.kprof", "--page", "session", "-k", "x"), 0)

    def test_bad_pattern(self):
        run = self.profile(["-k", "regex:a("], self.STEPS)
        self.assert_run(run, 101)


class LongNames(Case):
    def test_a_kernel_of_400_kb(self):
        """A template's instance may have such a name. It is not demangled; it is whole in JSON and short in text."""
        name = f"_Z400000{400000 * 'k'}v"
        self.assert_run(self.collect([], [f"launch={SCALE}", "long=400000", f"launch={SCALE}"]), 0)
        self.assertEqual(self.launches(), ["scale", name, "scale"])
        run = self.kprof("report", "run.kprof", "--page", "raw", "--json")
        self.assert_run(run, 0)
        self.assertEqual({launch["kernel"]["function"] for launch in json.loads(run.out)["launches"]}, {"scale", name})
        for page in ("summary", "brief"):
            run = self.kprof("report", "run.kprof", "--page", page)
            self.assert_run(run, 0)
            self.assertIn("kkk...", run.out)
            self.assertLess(len(run.out), 10000)
        self.assert_run(self.kprof("report", "run.kprof", "-k", "regex:^_Z4", "-o", "part"), 0)
        self.assertEqual(self.launches("part.kprof"), [name])


class Nothing(Case):
    """Never 0 with nothing collected."""

    def test_no_match_names_what_was_seen(self):
        run = self.profile(["-k", "vectoradd"], [f"launch={VECTOR_ADD}*2", f"launch={SCALE}"])
        self.assert_run(run, 106)
        self.assertIn("2 x vectorAdd", run.err)
        self.assertIn("1 x scale", run.err)
        self.assertIn("did you mean -k vectorAdd?", run.err)

    def test_no_match_of_another_name_of_a_kernel(self):
        full = "vectorAdd(float const*, float const*, float*, int)"
        for name, base in ((full, "demangled"), (VECTOR_ADD, "mangled")):
            run = self.profile(["-k", name], [f"launch={VECTOR_ADD}"])
            self.assert_run(run, 106)
            self.assertIn(f"the {base} name of a kernel; add --kernel-name-base {base}\n", run.err)
            self.assert_run(self.profile(["-k", name, "--kernel-name-base", base], [f"launch={VECTOR_ADD}"]), 0)
        run = self.profile(["-k", "vectorAdd", "--kernel-name-base", "demangled"], [f"launch={VECTOR_ADD}"])
        self.assert_run(run, 106)
        self.assertIn("add --kernel-name-base function\n", run.err)

    def test_no_match_of_more_than_a_function_name(self):
        for name in "scale<float>", "sum<int, 4>", "ops::scale":
            run = self.profile(["-k", name], [f"launch={SCALE}"])
            self.assert_run(run, 106)
            self.assertIn("1 x scale\n", run.err)
            self.assertIn(f'give -k "regex:{name}" and add --kernel-name-base demangled\n', run.err)
        typed = "vectorAdd(float const*,float const*,float*)"
        run = self.kprof("report", SAMPLE, "-k", typed)
        self.assert_run(run, 106)
        pattern = re.search(r'give -k "(regex:.*)" and add', run.err).group(1)
        self.assert_run(self.kprof("report", SAMPLE, "-k", pattern, "--kernel-name-base", "demangled"), 0)
        self.assert_run(self.profile(["-k", "regex:scale<float>", "--kernel-name-base", "demangled"],
                                     [f"launch={SCALE}"]), 0)
        for name in "operator()", "{lambda(int, int)#1}", "scales":
            self.assertNotIn("name-base", self.profile(["-k", name], [f"launch={SCALE}"]).err)

    def test_no_match_by_count(self):
        run = self.profile(["-s", "10"], [f"launch={VECTOR_ADD}*2"])
        self.assert_run(run, 106)
        self.assertIn("no launch matched -s 10;", run.err)
        self.assertIn("2 x vectorAdd", run.err)

    def test_no_match_in_csv_too(self):
        self.assert_run(self.profile(["--csv", "-k", "x"], [f"launch={VECTOR_ADD}"]), 106)

    def test_no_cuda(self):
        run = self.profile([], ["say=hello"])
        self.assert_run(run, 106)
        self.assertIn("did not initialise CUDA", run.err)

    def test_a_program_with_rights_of_its_own(self):
        """It takes no session from its environment."""
        if os.geteuid() != 0:
            self.skipTest("needs another user")
        shutil.copy(APP, self.path("app"))
        os.chmod(self.dir, 0o755)
        os.chown(self.path("app"), 65534, -1)
        os.chmod(self.path("app"), 0o4755)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, self.path("app"), f"launch={VECTOR_ADD}")
        self.assert_run(run, 106)
        self.assertIn("a setuid program", run.err)

    def test_application_in_another_place(self):
        """It has another /tmp, as in a container, and so does not find the session."""
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "env", "KPROF_SESSION_DIR=/nowhere", APP,
                         f"launch={VECTOR_ADD}", "say=ran")
        self.assert_run(run, 106)
        self.assertIn("the session directory /nowhere is not used: No such file or directory; a container may have "
                      "another /tmp: set TMPDIR", run.err)
        self.assertIn("could not reach kprof's folder in TMPDIR", run.err)

    def test_cuda_without_kernels(self):
        run = self.profile([], ["init"])
        self.assert_run(run, 106)
        self.assertIn("launched no kernel", run.err)

    def test_kernels_of_graphs_that_are_not_profiled(self):
        graph = {"KPROF_SIM_FAULT": "graph"}
        run = self.profile(["-o", "run"], [f"launch={VECTOR_ADD}"], env=graph)
        self.assert_run(run, 110)
        self.assertIn("warning: a CUDA graph, or a launch on several devices, is not profiled kernel by kernel: it has "
                      "a conditional node (simulated)", run.err)
        self.assertIn("error: all kernels that the application launched were in CUDA graphs, or on several devices, "
                      "that are not profiled kernel by kernel; --graph-profiling graph", run.err)
        self.assertNotIn("no kernel\n", run.err)
        self.assertIn("error: all kernels that the application launched were", self.kprof("report", "run").err)
        self.assert_run(self.profile(["--graph-profiling", "graph"], [f"launch={VECTOR_ADD}"], env=graph), 0)

    def test_what_needs_no_counters(self):
        run = self.kprof("--injection-path", INJECTION, "--section", "LaunchStats", "-o", "run", "--page", "details",
                         APP, f"launch={VECTOR_ADD}*2")
        self.assert_run(run, 0)
        self.assertIn("2 launches profiled", run.err)
        self.assertIn("Grid Size", run.out + run.err)
        self.assertNotIn("Not measured", run.out + run.err)

    def test_nothing_measured(self):
        for fault, code, text in (("unmeasured", 110, "none could be measured"), ("busy", 105, "another tool holds"),
                                  ("permission", 104, "root alone")):
            run = self.profile([], [f"launch={VECTOR_ADD}"], env={"KPROF_SIM_FAULT": fault})
            self.assert_run(run, code)
            self.assertIn(text, run.err)
            self.assertNotIn("orderly", run.err) # it has ended as programs do

    def test_no_gpu(self):
        run = self.profile([], [f"launch={VECTOR_ADD}", "say=ran"], env={"KPROF_SIM_PROBE": "no-gpu"})
        self.assert_run(run, 103)
        self.assertEqual(run.out, "")

    def test_gpu_that_is_too_old(self):
        run = self.profile([], [f"launch={VECTOR_ADD}", "say=ran"], env={"KPROF_SIM_PROBE": "old-gpu"})
        self.assert_run(run, 111)
        self.assertEqual(run.out, "")
        self.assertIn("GV100, whose compute capability is less than kprof supports", run.err)

    def test_no_permission(self):
        self.assert_run(self.profile([], ["say=ran"], env={"KPROF_SIM_PROBE": "no-permission"}), 104)

    def test_messages_are_shown_once(self):
        run = self.profile([], [f"launch={VECTOR_ADD}"], env={"KPROF_SIM_FAULT": "talk"})
        self.assert_run(run, 0)
        self.assertEqual(run.err.count("said once"), 1)

    def test_damaged_spool_keeps_what_was_before(self):
        run = self.collect(["--replay-batch", "1"], [f"launch={VECTOR_ADD}*2"], env={"KPROF_SIM_FAULT": "damage"})
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assertIn("damage", run.err)


class DearSaves(Case):
    """Saving memory takes long."""

    SLOW = {"KPROF_SIM_SAVE_MS": "600"}

    def test_launches_share_it(self):
        run = self.collect(["--set", "default", "--verbose"], [f"launch={VECTOR_ADD}*5"], env=self.SLOW)
        self.assertEqual(re.findall(r"batch of (\d+) launches", run.err), ["5"])

    def test_a_process_that_saves_is_not_idle(self):
        run = self.collect(["--set", "default", "--verbose", "--replay-batch", "3"],
                           [f"launch={VECTOR_ADD}*4", "sleep=20", f"launch={VECTOR_ADD}*2"], env=self.SLOW)
        self.assertEqual(re.findall(r"batch of (\d+) launches", run.err), ["3", "3"])


class HostMemory(Case):
    """The process has pinned memory, which a replay must not change."""

    PINNED = {"KPROF_SIM_PINNED": "1"}
    REACHES, HIDDEN = "_Z6pinnedPf", "_Z13hidden_pinnedPf"

    def modes(self, steps, *options, env=PINNED):
        self.collect(["--set", "default", "--cache-control", "none", *options], steps, env=env)
        return self.query("run.kprof", "SELECT kernel.function, replay_mode, reason FROM launch "
                          "JOIN kernel ON kernel.id = launch.kernel_id ORDER BY launch.id")

    def values(self):
        return self.query("run.kprof", "SELECT launch_id, name, value FROM value JOIN metric ON metric.id = metric_id "
                          "ORDER BY launch_id, name")

    def test_kernels_that_stay_on_the_device(self):
        steps = [f"launch={VECTOR_ADD}*3"]
        expected = [("vectorAdd", "batch", "")] * 3
        self.assertEqual(self.modes(steps), expected)
        values = self.values()
        self.assertEqual(self.modes(steps, env={}), expected)
        self.assertEqual(values, self.values())

    def test_kernel_that_reaches_it_unseen(self):
        """A batch shows that one does, the next which; seen twice, it is watched twice, and measured in one pass."""
        rows = self.modes([f"launch={VECTOR_ADD}", f"launch={self.HIDDEN}"] * 7, "--replay-batch", "2")
        for _, mode, reason in rows[:8]:
            self.assertEqual(mode, "none")
            self.assertIn("reached memory of the host", reason)
        self.assertEqual(rows[8::2], [("vectorAdd", "batch", "")] * 3)
        self.check_measured_apart(rows[9::2], "launches of the kernel reach memory of the host")

    def test_kernel_whose_arguments_show_it(self):
        rows = self.modes([f"launch={VECTOR_ADD}", f"launch={self.REACHES}"] * 3, "--replay-batch", "2")
        self.assertEqual(rows[::2], [("vectorAdd", "batch", "")] * 3)
        self.assertIn("reached memory of the host", rows[1][2])  # a batch of its own told
        self.check_measured_apart(rows[1::2], "the kernel takes memory of the host", 1)

    def test_lost_launches_do_not_count(self):
        for kernel in (self.REACHES, self.HIDDEN):
            with self.subTest(kernel):
                rows = self.modes([f"launch={kernel}*40"], "-c", "1", "-f")
                self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch WHERE measured > 0"), [(1,)])
                self.assertIn("reached memory of the host", rows[0][2])

    def check_measured_apart(self, rows, why, tried=0):
        self.assertEqual([mode for _, mode, _ in rows[:2]], ["none"] * 2)
        for _, _, reason in rows[tried:2]:
            self.assertIn("a kernel's first launches are only watched", reason)
        _, mode, reason = rows[2]
        self.assertEqual(mode, "multiplex")
        self.assertIn(why, reason)


class Ranges(Case):
    """A range that the host pushes begins before its kernel. The report leaves that time out, or where it does not know
    it, says that the time is too long."""

    EARLY = "the range begins before the kernel"

    def expect_reasons(self, options, others, expected):
        steps = [f"launch={VECTOR_ADD}", f"launch=_Z5otherPf*{others}", f"launch={VECTOR_ADD}"]
        run = self.kprof("--injection-path", INJECTION, "-o", "run", "--cache-control", "none", "-k", "vectorAdd",
                         *options, APP, *steps)
        self.assert_run(run, 0)
        rows = self.query("run.kprof", "SELECT reason FROM launch ORDER BY id")
        self.assertEqual([reason[:len(self.EARLY)] for reason, in rows], [expected] * 2)

    def test_own_run(self):
        self.expect_reasons(["--metrics", METRIC], 1, "")

    def test_own_run_without_the_witness(self):
        """What is collected is no witness."""
        self.expect_reasons(["--metrics", METRIC, "--metrics",
                             "FE_A.TriageCompute.gr__compute_cycles_active_queue_async.sum"], 1, self.EARLY)

    def test_own_run_without_times(self):
        self.expect_reasons(["--metrics", "dram__bytes.sum"], 1, "")

    def test_replay(self):
        self.expect_reasons(["--set", "default"], 1, "")

    def test_replay_of_more_kernels_than_were_asked_for(self):
        self.expect_reasons(["--set", "default", "-c", "2"], 20, "")

    def test_replay_of_many_other_kernels(self):
        self.expect_reasons(["--set", "default"], 40, "")


class Multiplexing(Case):
    """Launches that are not repeated: each is measured in one pass, and several of them make up a sample."""

    def multiplexed(self, launches, *options, then=()):
        """[(passes, has values, reason)] of all launches."""
        run = self.collect(["--set", "default", "--cache-control", "none", "--replay-mode", "multiplex", *options],
                           [f"launch={VECTOR_ADD}*{launches}", *then])
        self.assert_run(run, 0)
        self.seen = run.err
        return self.query("run.kprof", "SELECT passes, measured > 0, reason FROM launch ORDER BY position")

    def test_single_launch(self):
        run = self.collect(["--set", "default", "--replay-mode", "multiplex"], [f"launch={VECTOR_ADD}"])
        self.assert_run(run, 110)
        self.assertIn("error:   a kernel's first launch is only watched", run.err)
        self.assertIn("error: kprof --census times such kernels, too; --replay-mode application runs", run.err)

    def planned_passes(self):
        return self.query("run.kprof", "SELECT count(*) FROM pass")[0][0]

    def test_sample(self):
        rows = self.multiplexed(40, "--multiplex-samples", "1")
        passes = self.planned_passes()
        self.assertGreater(passes, 1)
        self.assertIn("only watched", rows[0][2])
        self.assertEqual(rows[1], (passes, 1, ""))
        for count, has_values, reason in rows[2:1 + passes]:
            self.assertEqual((count, has_values), (1, 0))
            self.assertIn("its counters are part of the values of the process's launch at position 1", reason)
        self.assertEqual(self.query("run.kprof", "SELECT launches, matched, profiled FROM process"), [(40, 40, passes)])
        self.assertEqual(len(rows), 1 + passes)  # then its kernel and shape have what was asked for
        missing = self.query("run.kprof", "SELECT count(*) FROM value JOIN metric ON metric.id = metric_id "
                             "WHERE kind = 'hardware' AND launch_id = 1 AND value IS NULL")
        self.assertEqual(missing, [(0,)])
        self.assertIn(f"{passes} of the launches are multiplexed: 1 sample, ", self.seen)

    def test_samples_grow(self):
        rows = self.multiplexed(200)
        passes = self.planned_passes()
        complete = [row for row in rows if row[1] and row[0] == passes]
        self.assertGreater(len(complete), 4)
        self.assertEqual({row[2] for row in complete}, {""})
        text = self.kprof("report", "run.kprof").out
        self.assertIn("multiplexed: medians of", text)

    def test_count(self):
        """-c counts samples: each kernel that runs as often as there are passes, and once to be watched, is whole."""
        kernels = [f"_Z3k{i:02}v" for i in range(18)]
        run = self.collect(["--set", "default", "--replay-mode", "multiplex", "-c", "18"],
                           [f"launch={kernel}" for _ in range(12) for kernel in kernels])
        self.assert_run(run, 0)
        passes = self.planned_passes()
        whole = self.query("run.kprof",
                           f"SELECT kernel_id FROM launch WHERE passes = {passes} AND measured AND reason = ''")
        self.assertEqual((len(whole), len(set(whole))), (18, 18))
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch"), [(18 * (1 + passes),)])

    def test_kernels_that_take_turns(self):
        """All are whole that run twice as often as there are passes, in a loop or one after the other; and -c counts
        those that are whole, whatever else is open meanwhile."""
        names = [f"_Z2k{letter}v" for letter in "abcdefghijklmnopqr"]
        whole = "SELECT count(DISTINCT kernel_id) FROM launch WHERE passes>=8"
        for options, steps, count in (([], [f"launch={name}*2" for name in names] * 12, 18),
                                      (["-c", "5"], [f"launch={name}*2" for name in names] * 12, 5),
                                      ([], [f"launch={name}*16" for name in names[:6]], 6),
                                      ([], [f"launch={names[0]}*4", f"launch={names[1]}"] * 12, 2)):
            with self.subTest(options, steps=len(steps)):
                run = self.collect(["--set", "default", "--replay-mode", "multiplex", *options], steps)
                self.assert_run(run, 0)
                self.assertEqual(self.query("run.kprof", whole), [(count,)])

    def test_columns_of_ncu(self):
        """They do not tell what was multiplexed."""
        self.multiplexed(40)
        count = self.query("run.kprof", "SELECT count(*) FROM launch WHERE replay_mode = 'multiplex'")[0][0]
        run = self.kprof("report", "run.kprof", "--csv-layout", "ncu")
        self.assertIn(f"{count} launches are multiplexed", run.err)
        self.assertNotIn("multiplexed", self.kprof("report", "run.kprof", "--csv").err)
        for page, tells in (("raw", True), ("statistics", True), ("summary", False), ("session", False)):
            run = self.kprof("report", "run.kprof", "--csv-layout", "ncu", "--page", page)
            self.assertEqual("are multiplexed" in run.err, tells, page)
        self.assertNotIn("multiplexed", self.kprof("report", "run.kprof", "--csv-layout", "ncu", "-c", "1").err)

    def test_launches_that_are_not_counted(self):
        """Each page that adds up launches of a kernel tells how many more there were."""
        stored = len(self.multiplexed(40, "--multiplex-samples", "1"))
        more = f"{40 - stored} more launches of the kernel not counted here"
        for page in ("summary", "sources"):
            with self.subTest(page):
                self.assertIn(more, self.kprof("report", "run.kprof", "--page", page, "--csv").out)
        self.assertIn(f"More launches of the kernel not counted here {40 - stored}",
                      self.kprof("report", "run.kprof", "--page", "statistics").out)
        self.assertIn(f"{40 - stored} more are not counted", self.kprof("report", "run.kprof", "--brief").out)
        self.assertIn(f"{more}, {40 - stored} before",
                      self.kprof("diff", "run.kprof", "run.kprof", "--all").out.replace("\n   ", ""))
        written = self.kprof("report", "run.kprof", "--html", "run.html")
        self.assertEqual((written.code, written.out, written.err), (0, "", "kprof: page: run.html\n"))
        with open(self.path("run.html")) as page:
            self.assertIn(more, page.read())

    def test_parts_of_samples_alone(self):
        """The launches that are chosen have their counters in one that is not."""
        self.multiplexed(40, "--multiplex-samples", "1")
        part = ("report", "run.kprof", "-s", "3", "-c", "2")
        self.assertIn("2 multiplexed: no whole sample", self.kprof(*part).out)
        self.assertIn("multiplexed, no whole sample; 38 more launches",
                      self.kprof(*part, "--page", "summary", "--csv").out)
        self.assertIn("multiplexed: no whole sample; 38 more are not counted", self.kprof(*part, "--brief").out)

    def test_too_few_launches(self):
        for then in ((), ("_exit=0",), ("exec", "say=done")):
            with self.subTest(then):
                rows = self.multiplexed(3, then=then)
                self.assertEqual([row[:2] for row in rows[1:]], [(2, 1), (1, 0)])
                self.assertIn(f"measured in 2 of {self.planned_passes()} passes", rows[1][2])

    def test_what_must_not_be_repeated(self):
        env = {"KPROF_SIM_PINNED": "1"}
        steps = [f"launch={VECTOR_ADD}", "launch=_Z6pinnedPf"] * 16
        for mode, expected in (("auto", "multiplex"), ("kernel", "none")):
            self.collect(["--set", "default", "--cache-control", "none", "--replay-mode", mode], steps, env=env)
            modes = self.query("run.kprof", "SELECT DISTINCT kernel.function, replay_mode FROM launch "
                               "JOIN kernel ON kernel.id = launch.kernel_id WHERE position > 3 ORDER BY 1")
            self.assertEqual(modes, [("pinned", expected), ("vectorAdd", "batch")])
        self.collect(["--set", "default", "--cache-control", "none"], steps, env=env)
        whole = self.query("run.kprof", "SELECT count(*) FROM launch WHERE replay_mode = 'multiplex' AND passes = "
                           "(SELECT count(*) FROM pass) AND measured > 0")
        self.assertEqual(whole, [(1,)])  # batches in between do not end a sample


class Witnesses(Case):
    """What every pass counts, so that passes that differ are seen."""

    def spreads(self, *options):
        self.collect(["--set", "default", *options], [f"launch={VECTOR_ADD}*2"])
        rows = self.query("run.kprof", "SELECT metric.name, count(value.value) FROM metric LEFT JOIN value "
                          "ON value.metric_id = metric.id WHERE metric.kind = 'witness' GROUP BY metric.id")
        return {name.removesuffix(".pct_spread_over_passes"): count for name, count in rows}

    def test_all_in_every_batch(self):
        spreads = self.spreads()
        self.assertIn("TPC.TriageCompute.sm__inst_executed_realtime.sum", spreads)
        self.assertEqual(set(spreads.values()), {2})

    def test_small_batches_do_without_those_that_take_time(self):
        spreads = self.spreads("--witnesses", "auto")
        self.assertEqual((spreads["FE_A.TriageCompute.gr__compute_cycles_active_queue_async.sum"],
                          spreads["gpu__time_active.sum"]), (2, 2))
        self.assertEqual(spreads["TPC.TriageCompute.sm__inst_executed_realtime.sum"], 0)


class BadInput(Case):
    def assert_early(self, options, code, *texts):
        """Refused before the application starts."""
        run = self.kprof("--injection-path", INJECTION, *options, APP, "say=ran")
        self.assert_run(run, code)
        self.assertEqual(run.out, "")
        for text in texts:
            self.assertIn(text, run.err)

    def test_unknown_names(self):
        self.assert_early(["--set", "defaul"], 102, "default")
        self.assert_early(["--section", "SpeedOfLigt"], 102, "SpeedOfLight")
        self.assert_early(["--metrics", "gpu__time_duratio.sum"], 102, "gpu__time_duration")
        self.assert_early(["--devices", "3"], 101, "--devices")

    def test_unknown_options(self):
        self.assert_early(["--kernal-name", "x"], 101, "--kernel-name")
        self.assert_early(["--preload-library", "x"], 101, "ncu")

    def test_no_application(self):
        self.assert_run(self.kprof(), 101)
        self.assert_run(self.kprof("--csv"), 101)

    def test_the_manual_has_the_exit_status_of_each_failure(self):
        pages = pathlib.Path(__file__).resolve().parents[2] / "docs/man"
        for words, code in (("report none", 107), ("report run --set ful", 102), ("report run --sort x", 101),
                            ("report run -k none", 106), ("report run --log-file /none/x", 108),
                            ("report run --baseline none", 107), ("diff run none", 107),
                            ("diff run run --fail-on x", 101), ("diff run run --fail-on x>1%", 102),
                            ("diff run run -k none", 106), ("diff run run --html /none/x", 108),
                            ("export run --to x", 101), ("export none --to long", 107),
                            ("export run --to long -k none", 106),
                            ("export run --to chrome", 110), ("export run --to long -o /none/x", 108), ("stats", 101),
                            ("stats none", 107), ("stats run", 110), ("stats run --report x", 102),
                            ("merge run run -o x", 101), ("merge run none -o x", 107), ("recover run", 101),
                            ("ctl x", 101), ("ctl stop none", 109), ("plan --set ful", 102), ("plan --chips x", 102),
                            ("plan --budget x", 101), ("list x", 101), ("list metrics --chips x", 102),
                            ("explain", 101), ("explain nothing_like_it --chips GH100", 102),
                            ("doctor --csv --json", 101)):
            with self.subTest(words):
                shutil.copy(SOURCE, self.path("run"))
                run = self.kprof(*words.split())
                self.assertEqual((run.code, run.out), (code, ""), run.err)
                self.assertTrue(run.err.startswith("kprof: "), run.err)
                page = (pages / f"kprof-{words.split()[0]}.1").read_text()
                self.assertRegex(page.split(".SH EXIT STATUS\n")[1].split("\n.SH")[0], rf"\b{code}\b")

    def test_unwritable_places(self):
        self.assert_early(["-o", "/nonexistent/run"], 108, "/nonexistent/run.kprof")
        self.assert_early(["--log-file", "/nonexistent/log"], 108, "/nonexistent/log")
        for words in (["report", SAMPLE, "-o", "none/x"], ["report", SAMPLE, "--html", "none/x"],
                      ["report", SAMPLE, "--log-file", "none/x"], ["diff", SAMPLE, SAMPLE, "--html", "none/x"],
                      ["export", SAMPLE, "--to", "long", "-o", "none/x"], ["merge", SAMPLE, REPEATS, "-o", "none/x"]):
            with self.subTest(words):
                run = self.kprof(*words)
                self.assert_run(run, 108)
                self.assertIn(": there is no folder none; make it first, or name another\n", run.err)
        run = self.profile([], ["say=ran"], env={"TMPDIR": "/nonexistent"})
        self.assertEqual((run.code, run.out), (108, ""))

    def test_a_report_named_as_another_file(self):
        for name, what, words in (("x.csv", "CSV", "--csv --log-file x.csv"), ("x.html", "a page", "--html x.html"),
                                  ("x.json", "JSON", "--json --log-file x.json"),
                                  ("x.txt", "text", "--log-file x.txt")):
            for command, *reports in ("report", SAMPLE), ("merge", SAMPLE, REPEATS), ("trace", "true"), ("run", "true"):
                with self.subTest([name, command]):
                    takes = command == "report" or (command != "merge" and name != "x.html")
                    way = f"give {words}" if takes else f"run kprof report {name}.kprof {words}"
                    run = self.kprof(command, "-f", "-o", name, *reports)
                    self.assertIn(f"kprof: warning: --export {name} keeps a report, {name}.kprof; for {what} {way}\n",
                                  run.err)
                    if not takes and run.code == 0: # so it does
                        self.assertEqual(self.kprof("report", f"{name}.kprof", *words.split()).code, 0)
                        self.assertTrue(os.path.exists(self.path(name)))
        for name in ("csv", "x.csv.kprof", "x.csv.ncu-rep"):
            self.assertNotIn("keeps a report", self.kprof("report", SAMPLE, "-f", "-o", name).err)

    def test_folders_below_a_folder(self):
        sections = os.path.join(OWN_SETS, "sections", "Bandwidth.json")
        for folder in ("all/mine/sections", "all/yours/deep/sets", "all/.git/notes"):
            os.makedirs(self.path(folder))
        shutil.copy(sections, self.path("all/mine/sections"))
        os.symlink("..", self.path("all/yours/up"))
        with open(self.path("all/yours/deep/sets/deep.json"), "w") as file:
            file.write('{"id": "deep", "name": "Deep", "help": "Of two folders.", "order": 900, '
                       '"sections": ["Bandwidth"]}')
        listed = self.kprof("list", "sets", "--chips", "GH100", "--section-folder-recursive", "all")
        self.assert_run(listed, 0)
        self.assertIn("deep", listed.out)
        self.assert_early(["--section-folder", self.path("all")], 102, "/all: has no folder")
        self.assert_early(["--section-folder-recursive", self.path("all/.git")], 102, "/all/.git: has no folder")
        self.assert_early(["--section-folder-recursive", self.path("none")], 102, "/none: has no folder")

    def test_existing_report_is_kept(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        with open(self.path("run.kprof"), "rb") as file:
            before = file.read()
        self.assert_run(self.profile(["-o", "run"], [f"launch={SCALE}"]), 108)
        with open(self.path("run.kprof"), "rb") as file:
            self.assertEqual(file.read(), before)
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        self.assertEqual(self.launches(), ["scale"])

    def test_broken_set_folder(self):
        os.makedirs(self.path("sets/sets"))
        with open(self.path("sets/sets/mine.json"), "w") as file:
            file.write('{"id": "mine", ')
        self.assert_early(["--section-folder", self.path("sets")], 102, "mine.json")
        self.assert_early(["--section-folder", self.path("none")], 102)

    def test_missing_injection_library(self):
        for path, why in (("/nonexistent.so", "No such file"), (__file__, "it is no library"), ("/", "no library")):
            run = self.kprof("--injection-path", path, "--metrics", METRIC, APP)
            self.assert_run(run, 101)
            self.assertIn(why, run.err)

    def test_disk_full_lets_the_application_run_on(self):
        run = self.collect([], ["liftlimit", f"launch={VECTOR_ADD}*20000", "say=ran to the end"],
                           preexec_fn=limit_file_size(800 * 1024))
        self.assertEqual(run.code, 108, run.err)
        self.assertEqual(run.out, "ran to the end\n")
        self.assertIn("kept in", run.err)

    def test_full_temporary_directory(self):
        mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"', self.tmp]
        if subprocess.run([*mounted, "true"], capture_output=True).returncode != 0:
            self.skipTest("this machine lets no user mount a small file system")
        process = subprocess.run(
            [*mounted, KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "-o", self.path("run"), APP,
             f"launch={VECTOR_ADD}*20000", "say=ran to the end"],
            env=self.environment({}), capture_output=True, text=True)
        self.assertEqual(process.returncode, 108, process.stderr)
        self.assertEqual(process.stdout, "ran to the end\n")
        self.assertIn("full", process.stderr)
        self.assertGreater(len(self.launches()), 100)

    def test_reports_that_are_none(self):
        with open(self.path("text.kprof"), "w") as file:
            file.write("text")
        open(self.path("empty.kprof"), "w").close()
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        with open(self.path("run.kprof"), "rb") as whole, open(self.path("cut.kprof"), "wb") as cut:
            cut.write(whole.read()[:5000])
        for name in ("text.kprof", "empty.kprof", "cut.kprof", "missing.kprof", "."):
            run = self.kprof("report", name)
            self.assert_run(run, 107)
            self.assertEqual(run.out, "")
        self.assert_run(self.kprof("report"), 101)

    def test_outputs_that_are_inputs(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        with open(self.path("run.kprof"), "rb") as file:
            before = file.read()
        os.link(self.path("run.kprof"), self.path("other"))
        for line in (["report", "run.kprof", "--log-file", "run.kprof"], ["-i", "run", "--csv", "--log-file", "other"],
                     ["-f", "-o", "run", APP, "run.kprof"]):
            run = self.kprof(*line)
            self.assert_run(run, 101)
            self.assertIn("would overwrite", run.err)
            with open(self.path("run.kprof"), "rb") as file:
                self.assertEqual(file.read(), before)

    def test_a_report_without_its_extension(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        whole = self.kprof("report", "run.kprof", "--page", "session")
        self.assert_run(whole, 0)
        for line in (["report", "run"], ["-i", "run"]):
            run = self.kprof(*line, "--page", "session")
            self.assert_run(run, 0)
            self.assertEqual(run.out, whole.out)

    def test_commands_that_are_no_programs(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        for line, expected in ((["run.kprof"], "did you mean kprof report run.kprof?"),
                               (["missing.kprof"], "did you mean kprof report missing.kprof?"),
                               (["reprot", "run.kprof"], "did you mean kprof report?"),
                               (["lsit", "sets"], "did you mean kprof list?"),
                               (["profile", APP], "profile")):
            run = self.kprof(*line)
            self.assert_run(run, 109)
            self.assertIn(expected, run.err)
        self.assertNotIn("kprof report", self.kprof("--injection-path", INJECTION, "--", "reprot").err)
        with open(self.path("run.ncu-rep"), "w") as file:
            file.write("NVR")
        for words in (["report", "run.ncu-rep"], ["run.ncu-rep"]):
            run = self.kprof(*words)
            self.assert_run(run, 107)
            self.assertIn("is not a kprof report; ncu --import reads those of ncu", run.err)


class Pages(Case):
    def test_ncu_has_each_metric_once(self):
        """So a sum over the rows of a launch is right."""
        def rows(*words):
            out = self.kprof("report", SAMPLE, "--csv-layout", "ncu", *words).out
            return list(csv.DictReader(io.StringIO(out)))

        for name in ("Duration", "DRAM Frequency"):
            self.assertEqual(len([row for row in rows() if row["Metric Name"] == name]), 1, name)
        self.assertIn("Rule Name", rows()[0])
        [launch] = json.loads(self.kprof("report", SAMPLE, "--json").out)["launches"][:1]
        names = {"Bottleneck": "SOLBottleneck", "IssueSlots": "IssueSlotUtilization", "WarpStall": "CPIStall"}
        self.assertEqual(sorted(row["Rule Name"] for row in rows("-c", "1") if row["Rule Name"]),
                         sorted(names.get(found["id"], found["id"]) for found in launch["findings"]))
        self.assertIn('"finding__WarpStall"', self.kprof("report", SAMPLE, "--csv").out)
        self.assertNotIn("Rule Name", rows("--metrics", "dram__bytes.sum")[0])
        self.assertNotIn("Rule Name", rows("--apply-rules", "no")[0])
        self.assertFalse([name for name in rows("--page", "raw")[0] if "Triage" in name])
        self.assertEqual(rows("--page", "raw")[1]["device__attribute_display_name"], "NVIDIA H200")
        self.assertEqual(list(rows("--page", "raw", "--metrics", "dram__bytes.sum")[0])[10:], ["CC", "dram__bytes.sum"])

    def test_severity(self):
        """Where a finding's gain is not known, its severity ranks it."""
        source = os.path.join(os.path.dirname(SAMPLE), "source-h200.kprof")
        launch = json.loads(self.kprof("report", source, "--json").out)["launches"][0]
        [best] = [found for found in launch["findings"] if found["id"] == launch["verdict"]["finding"]["id"]]
        self.assertGreater(best["severity_pct"], 50)
        self.assertIsNone((best["estimated_speedup"] or {}).get("pct"))
        for launch in json.loads(self.kprof("report", SAMPLE, "--json").out)["launches"]:
            for found in launch["findings"]:
                self.assertIsNone(found["severity_pct"], found["id"])

    def test_source_page_without_instructions(self):
        """A page with nothing to show is an error in every format."""
        for words in ([], ["--json"], ["--csv"], ["--csv-layout", "ncu"], ["--markdown"], ["--top", "3"]):
            run = self.kprof("report", SAMPLE, "--page", "source", *words)
            self.assert_run(run, 106)
            self.assertEqual(run.out, "")
            self.assertIn("the instructions of these launches were not measured: kprof --set source -k KERNEL", run.err)

    def test_ncu_has_tables_on_request(self):
        read = {"Metric Name": "dram__bytes_read.sum", "Section Name": "Memory Workload Analysis Tables"}
        for page in (["--page", "details"], ["--print-summary", "per-kernel"]):
            for details, count in ([], 0), (["--print-details", "header"], 0), (["--print-details", "all"], 1), \
                                  (["--details-all"], 1):
                out = self.kprof("report", SAMPLE, "--csv-layout", "ncu", "--print-metric-name", "name", *page,
                                 *details).out
                rows = list(csv.DictReader(io.StringIO(out)))
                found = [row for row in rows if read.items() <= row.items()]
                self.assertEqual(len(found), count, details)
                if "details" in page:
                    self.assertEqual("Body Item Label" in rows[0], count > 0)
                    self.assertEqual([row.get("Body Item Label") for row in found], ["Traffic between units"] * count)
                    self.assertEqual({len(row) for row in csv.reader(io.StringIO(out))}, {len(rows[0])})
                self.assertEqual(len([row for row in rows if row["Metric Name"] == "gpu__time_duration.sum"]), 1)

    def test_ncu_has_rooflines_on_request(self):
        """Work and traffic are what their rows give, multiplied by the clocks beside them, as scripts do."""
        def rows(report, *words):
            out = self.kprof("report", report, "--csv-layout", "ncu", *words).out
            return [row for row in csv.DictReader(io.StringIO(out)) if "Roofline Chart" in row["Section Name"]]

        def product(item, labels, clock, of=""):
            values = {row["Metric Name"]: float(row["Metric Value"]) for row in found
                      if row["Body Item Label"] == item and of in row["Section Name"]}
            return sum(values[label] for label in labels) * values[clock]

        self.assertFalse([row for row in rows(SAMPLE) if "Body Item Label" in row])
        found = rows(SAMPLE, "--print-details", "all")
        single = "GPU Speed Of Light Hierarchical Roofline Chart (Single Precision)"
        known = dict(self.query(SAMPLE, "SELECT metric, value FROM launch_metrics"))
        added = [f"Predicated-On {kind} Thread Instructions Executed Per Cycle" for kind in ("FADD", "FMUL")]
        work = [*added, "Predicated-On FFMA Operations Per Cycle"]
        peak, bytes_of_l2 = "Theoretical Predicated-On FFMA Operations", "Theoretical L2 Cache Bytes Accessible"
        tensor = "DRAM Roofline (Tensor FP16/BF16)"
        for got, name in (
                (product("DRAM Roofline", [peak], "SM Frequency", single), "derived__peak_flops_fp32"),
                (product("L2 Roofline", [bytes_of_l2], "L2 Cache Frequency", single), "derived__l2_peak_bytes"),
                (product("DRAM Achieved Value", work, "SM Frequency", single), "derived__flops_fp32"),
                (product(tensor, ["Theoretical Tensor Operations"], "SM Frequency"),
                 "derived__peak_flops_tensor_fp16")):
            self.assertAlmostEqual(got / known[f"{name}.per_second"], 1, places=4, msg=name)
        self.assertEqual({len(row) for row in found}, {len(found[0])})
        named = rows(SAMPLE, "--print-details", "all", "--print-metric-name", "name")
        self.assertIn("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed",
                      [row["Metric Name"] for row in named])
        self.assert_run(self.collect(["--section", "SpeedOfLight_RooflineChart"], [f"launch={SCALE}"]), 0)
        found = rows("run", "--print-details", "body")
        self.assertEqual([row["Body Item Label"] for row in found if row["Metric Name"] == "DRAM Bandwidth"],
                         [f"{precision} Precision Achieved Value" for precision in ("Double", "Single", "Half")])
        self.assertGreater(product("Single Precision Roofline", ["Theoretical DRAM Bytes Accessible"],
                                   "DRAM Frequency"), 0)

    def test_ncu_has_instances_on_request(self):
        source = os.path.join(os.path.dirname(SAMPLE), "source-h200.kprof")

        def rows(*words):
            out = self.kprof("report", source, "--csv-layout", "ncu", "--page", "raw", *words).out
            return list(csv.DictReader(io.StringIO(out)))[1:]
        counted = self.query(source, "SELECT profile_id, offset, value FROM instruction_value JOIN metric ON "
                                     "metric.id=metric_id WHERE name='smsp__sass_inst_executed' ORDER BY 1, 2")
        plain, values, details = rows(), rows("--print-metric-instances", "values"), \
            rows("--print-metric-instances", "details")
        self.assertEqual(rows("--print-metric-instances", "none"), plain)
        for row, valued, detailed in zip(plain, values, details):
            self.assertEqual({name: value.partition(" (")[0] for name, value in valued.items()}, row)
            total, of_each = re.fullmatch(r"(\d+) \((.*)\)", valued["inst_executed"]).groups()
            self.assertEqual(int(total), sum(map(int, of_each.split("; "))))
            pairs = [pair.split(": ") for pair in detailed["inst_executed"][len(total) + 2:-1].split("; ")]
            self.assertEqual([number for _, number in pairs], of_each.split("; "))
            known = {(int(at, 16), float(number)) for at, number in pairs if number != "0"}
            self.assertIn(known, [{(at, value) for profile, at, value in counted if profile == wanted}
                                  for wanted in {profile for profile, _, _ in counted}])
        self.assertIn("smsp__pcsamp_warps_issue_stalled_long_scoreboard", values[0])

    def test_width_of_the_environment(self):
        def width(*words, columns):
            out = self.kprof("report", SAMPLE, *words, env={"COLUMNS": columns}).out
            return max(len(line) for line in out.splitlines())

        self.assertEqual(width(columns="60"), 60)
        self.assertEqual(width(columns="20"), 40)
        self.assertEqual(width("-w", "72", columns="60"), 72)
        for columns, widest in (("20", 64), ("80", 80), ("500", 100)):
            lines = self.kprof("--help", env={"COLUMNS": columns}).out.splitlines()
            self.assertEqual([line for line in lines if line.endswith(" ")], [])
            self.assertEqual(max(map(len, lines)), widest)
        self.assertGreater(width(columns="none"), 99)

    def test_every_page_and_format(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}*2", f"launch={SCALE}"]), 0)
        for page in ("details", "raw", "summary", "session"):
            for form in ([], ["--csv"], ["--json"], ["--csv-layout", "wide"], ["--csv-layout", "ncu"]):
                run = self.kprof("report", "run.kprof", "--page", page, *form)
                self.assert_run(run, 0)
                self.assertTrue(run.out.strip(), f"{page} {form}")
                if form == ["--json"]:
                    json.loads(run.out)
                elif form:
                    self.assertEqual(len({len(row) for row in csv.reader(io.StringIO(run.out))}), 1, f"{page} {form}")

    LAYOUTS = ([], ["--csv"], ["--json"], ["--markdown"], ["--csv-layout", "wide"], ["--csv-layout", "ncu"],
               ["--text-layout", "ncu"])

    def test_statistics_of_nothing(self):
        """Nobody takes an empty page for one of a program without kernels."""
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        with contextlib.closing(sqlite3.connect(self.path("run.kprof"))) as database, database:
            database.execute("DELETE FROM section")
        for layout in self.LAYOUTS:
            run = self.kprof("report", "run.kprof", "--page", "statistics", *layout)
            self.assert_run(run, 106)
            self.assertEqual(run.out, "")
            self.assertIn("run.kprof has no section with metrics of launches; kprof --section", run.err)
        run = self.kprof("export", "run.kprof", "--to", "prometheus")
        self.assert_run(run, 0)
        self.assertIn("kprof_kernel_launches", run.out)

    def test_statistics_of_tables_alone(self):
        self.assert_run(self.kprof("--injection-path", INJECTION, "--section", "InstructionCaches", "-f", "-o", "run",
                                   APP, f"launch={VECTOR_ADD}"), 0)
        for layout in self.LAYOUTS:
            of_ncu = "ncu" in layout
            words = ("report", "run.kprof", "--section", "InstructionCaches", "--page", "statistics", *layout)
            run = self.kprof(*words)
            self.assert_run(run, 106 if of_ncu else 0)
            self.assertIn("--print-details all shows them" if of_ncu else "", run.err)
            self.assertIn("Hit Rate", self.kprof(*words, "--print-details", "all").out if of_ncu else run.out)

    def test_a_launch_without_a_value_has_a_row(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"], env={"KPROF_SIM_FAULT": "busy"}), 105)
        for words in (("--page", "raw"), ("--page", "details")):
            out = self.kprof("report", "run.kprof", *words, "--metrics", METRIC, "--csv").out
            [row] = csv.DictReader(io.StringIO(out))
            self.assertEqual((row["measured"], row["value"]), ("0", ""))
            self.assertIn("another tool holds", row["reason"])

    def test_the_default_run_prints_what_the_report_prints(self):
        direct = self.profile(["--csv"], [f"launch={VECTOR_ADD}"])
        self.assert_run(direct, 0)
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        stored = self.kprof("-i", "run.kprof", "--csv")
        self.assert_run(stored, 0)

        def values(text):
            return [row[-1] for row in csv.reader(io.StringIO(text))]

        self.assertEqual(len(values(direct.out)), len(values(stored.out)))

    def test_width(self):
        self.assert_run(self.collect(["--set", "full"], [f"launch={VECTOR_ADD}"]), 0)
        texts = {}
        for page in ("details", "raw", "summary", "session"):
            for width in (1, 40, 120, 1000000000000):
                run = self.kprof("report", "run.kprof", "--page", page, "-w", str(width))
                self.assert_run(run, 0)
                texts[page, width] = run.out
        self.assertNotEqual(texts["details", 40], texts["details", 120])
        self.assertEqual(texts["details", 1], texts["details", 40])

    def test_values_tell_their_passes(self):
        self.assert_run(self.collect([], [f"launch={VECTOR_ADD}"]), 0)
        raw = json.loads(self.kprof("report", "run.kprof", "--page", "raw", "--json").out)
        self.assertEqual([schedule["metrics"][METRIC] for schedule in raw["schedules"]], [[1]])
        self.assertEqual(len(raw["schedules"][0]["passes"]), raw["launches"][0]["passes"])

    def test_default_set(self):
        run = self.kprof("--injection-path", INJECTION, "--log-file", "text", APP, f"launch={VECTOR_ADD}")
        self.assert_run(run, 0)
        with open(self.path("text")) as file:
            self.assertIn("Speed", file.read())


class Comparisons(Case):
    """kprof diff on made-up reports: exit codes and streams."""

    def write(self, name, when, *rest):
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), os.path.join(self.dir, name), when, *rest],
                       check=True)

    def setUp(self):
        super().setUp()
        self.write("before.kprof", "before")
        self.write("after.kprof", "after")

    def expect(self, code, *words, err="", out=None):
        run = self.kprof(*words)
        self.assertEqual(run.code, code, run.err)
        self.assertIn(err, run.err)
        if out is not None:
            self.assertEqual(run.out, out)
        return run

    def move_samples(self, name, factors):
        """The report of instructions, of whose softmax_kernel samples at some offsets are more or fewer."""
        shutil.copy(SOURCE, self.path(name))
        with contextlib.closing(sqlite3.connect(self.path(name))) as database, database:
            for offset, factor in factors.items():
                database.execute("UPDATE instruction_value SET value = value * ? WHERE offset = ? AND profile_id = 2 "
                                 "AND metric_id IN (SELECT id FROM metric WHERE name LIKE 'smsp__pcsamp_%')",
                                 (factor, offset))

    def test_samples_that_moved(self):
        # Line 7 has 3136 samples of 5430 and line 17 117, before; the others stay.
        self.move_samples("same.kprof", {})
        self.move_samples("moved.kprof", {80: 0.1, 192: 10})
        self.move_samples("few.kprof", {80: 1.1})
        told = "the samples moved from line softmax.py:7 to line softmax.py:17"
        run = self.expect(0, "diff", "same.kprof", "moved.kprof", "--json")
        rows = [row for row in json.loads(run.out)["moved_samples"] if row["function"] == "softmax_kernel"]
        self.assertEqual([(row["place"], row["moved"], row["note"]) for row in rows[:2]],
                         [("softmax.py:7", 1, told), ("softmax.py:17", 1, told)])
        after = 5430 - 0.9 * 3121 + 9 * 117
        for row, pair in zip(rows, ((3136 / 5430, (312.1 + 15) / after), (117 / 5430, 1170 / after))):
            for key, share in zip(("baseline_pct", "new_pct"), pair):
                self.assertAlmostEqual(row[key], 100 * share, delta=0.01)
        text = self.expect(0, "diff", "same.kprof", "moved.kprof").out
        self.assertEqual(text.count(told), 1)
        self.assertNotIn("vectorAdd.cu:8", text) # hot before and after
        self.assertIn("| softmax.py:7 |", self.expect(0, "diff", "same.kprof", "moved.kprof", "--markdown").out)
        # So few points more may be chance; programs have the hottest line all the same.
        for other in ("few.kprof", "same.kprof"):
            self.assertNotIn("samples moved", self.expect(0, "diff", "same.kprof", other).out)
            rows = json.loads(self.expect(0, "diff", "same.kprof", other, "--json").out)["moved_samples"]
            self.assertEqual([row["place"] for row in rows],
                             ["vectorAdd.cu:8", "softmax.py:7", "0x00c0", "0x00c0"])
            self.assertEqual({row["moved"] for row in rows}, {0})
        self.assertNotIn("moved_samples", self.expect(0, "diff", "before.kprof", "after.kprof", "--json").out)
        # Of lines and instructions nothing tells which belong together.
        with contextlib.closing(sqlite3.connect(self.path("moved.kprof"))) as database, database:
            database.execute("DELETE FROM code_line")
        rows = json.loads(self.expect(0, "diff", "same.kprof", "moved.kprof", "--json").out)["moved_samples"]
        self.assertEqual({row["function"] for row in rows}, {"incr", "stripped"})

    def test_samples_that_moved_in_a_file_that_was_edited(self):
        """Its lines stand 5 further down, so that numbers alone would tell of a move from each to another one."""
        old = [f"line {number}" for number in range(1, 31)]
        texts = {"same": old, "moved": ["// new"] * 5 + old, "other": ["// new"] * 5 + old[:16] + old[17:]}
        for name, lines in texts.items():
            self.move_samples(f"{name}.kprof", {} if name == "same" else {80: 0.1, 192: 10})
            with contextlib.closing(sqlite3.connect(self.path(f"{name}.kprof"))) as database, database:
                text = "\n".join(lines)
                database.execute("UPDATE code_file SET content = ?, bytes = ?, hash = ? WHERE id = 2",
                                 (text, len(text), f"{len(text):016x}"))
                if name != "same":
                    database.execute("UPDATE code_line SET line = line + 5 WHERE file_id = 2")
                if name == "other": # the code, too
                    database.execute("UPDATE code_instruction SET text = 'MUFU.SQRT R7, R6' WHERE text LIKE 'MUFU%'")
        moved = "the samples moved from line softmax.py:12 to line softmax.py:22"
        self.assertIn(moved, self.expect(0, "diff", "same.kprof", "moved.kprof").out)
        # Line 17 is no more: what stands at 22 is another one, of as many samples.
        rows = json.loads(self.expect(0, "diff", "same.kprof", "other.kprof", "--json").out)["moved_samples"]
        places = {row["place"]: row for row in rows if row["function"] == "softmax_kernel"}
        self.assertGreater(places["softmax.py:22"]["new_pct"], 10)
        self.assertEqual(places["softmax.py:22"]["baseline_pct"], 0)
        self.assertGreater(places["softmax.py:12"]["baseline_pct"], 50)
        self.assertEqual(places["softmax.py:12"]["moved"], 1)
        for name in texts:
            with contextlib.closing(sqlite3.connect(self.path(f"{name}.kprof"))) as database, database:
                database.execute("UPDATE code_file SET content = NULL")
        self.assertIn(moved, self.expect(0, "diff", "same.kprof", "moved.kprof").out) # the code is the same
        text = self.expect(0, "diff", "same.kprof", "other.kprof").out
        self.assertNotIn("samples moved", text.replace("Where the samples moved", ""))
        self.assertIn("softmax.py was edited between the runs", " ".join(text.split()))
        for name in texts:
            with contextlib.closing(sqlite3.connect(self.path(f"{name}.kprof"))) as database, database:
                database.execute("DELETE FROM code_line")
        self.assertIn("the samples moved from instruction 0x0050 to instruction 0x00c0",
                      self.expect(0, "diff", "same.kprof", "moved.kprof").out)
        self.assertIn("the code is another one", self.expect(0, "diff", "same.kprof", "other.kprof").out)

    def test_plain_comparison(self):
        run = self.expect(0, "diff", "before.kprof", "after.kprof", "--json")
        verdicts = {row["kernel"].split("(")[0]: row["verdict"] for row in json.loads(run.out)["verdicts"]}
        self.assertEqual((verdicts["vectorAdd"], verdicts["reduce"]), ("worse", "same"))
        self.assertEqual(run.err, "")
        other = self.expect(0, "report", "after", "--baseline", "before", "--json")
        strip = re.compile(r'"comparison":.*')
        self.assertEqual(strip.sub("", other.out, count=1).split("verdicts")[1], run.out.split("verdicts")[1])
        self.expect(0, "diff", "before.kprof", "before.kprof", "--fail-on", "duration>5%", "-k", "reduce")

    def test_too_few_repeats(self):
        """They are told once; what changed all the same is told of its kernel."""
        run = self.expect(0, "diff", "before.kprof", "before.kprof", "-c", "9")
        self.assertIn("No verdict on time: 1 to 2 repeats of each kernel, 5 are needed; counts are equal", run.out)
        self.assertEqual(run.out.count("are needed"), 1)
        self.assertNotIn("Verdicts", run.out)
        self.assertRegex(run.out, r"\n  Shapes  Kernel\n( +1  \w+ *\n){7}")
        run = self.expect(0, "diff", "before.kprof", "before.kprof", "-c", "9", "--json")
        self.assertEqual(len(json.loads(run.out)["verdicts"]), 7)
        self.assertEqual({row["shapes"] for row in json.loads(run.out)["unjudged"]}, {1})
        run = self.expect(0, "diff", "before.kprof", "before.kprof", "-c", "9", "--all")
        self.assertEqual(run.out.count("are needed"), 14)
        run = self.expect(0, "diff", "before.kprof", "after.kprof", "-c", "1", "-k", "vectorAdd")
        self.assertNotIn("No verdict on time", run.out)
        self.assertRegex(run.out, "Verdicts\n.*\n  inconclusive (.*\n){2,3}.*1 repeat, 5 are needed")

    def test_gates(self):
        words = ("diff", "before.kprof", "after.kprof", "--csv")
        self.expect(0, *words, "--fail-on", "dram__bytes_read.sum>+30%")
        run = self.expect(113, *words, "--fail-on", "dram__bytes_read.sum>+3%", "--fail-on", "duration<-90%",
                          err="1 failed")
        self.assertEqual(len({len(row) for row in csv.reader(run.out.splitlines())}), 1)
        self.expect(114, *words, "--fail-on", "duration>5%", "-k", "transpose", err="inconclusive")
        self.expect(0, "report", "after.kprof", "--metrics", "gpu__time_duration", "-o", "times")
        self.expect(102, "diff", "before.kprof", "times", "--fail-on", "dram__bytes_read.sum>+3%",
                    err="only before.kprof has the metric")
        self.expect(113, *words, "--fail-on", "smsp__inst_executed.sum>0", "-k", "vectorAdd")
        self.expect(0, *words, "--fail-on", "smsp__inst_executed.sum>0", "-k", "reduce")
        self.expect(113, *words, "--fail-on", "duration>5%", "-k", "vectorAdd")
        self.expect(113, *words, "--fail-on", "duration>5us", "-k", "vectorAdd")
        self.expect(0, *words, "--fail-on", "duration>.1ms", "-k", "vectorAdd")
        self.expect(114, *words, "--fail-on", "duration>5%", "-k", "vectorAdd", "-c", "4")
        self.expect(114, *words, "--fail-on", "duration>5%", "-k", "softmax", "--time-tolerance", "1")
        run = self.expect(113, *words, "--fail-on", "dram.bytes_read>+3%", "-k", "vectorAdd")
        self.assertIn("dram__bytes_read.sum", run.out)
        self.expect(102, *words, "--fail-on", "gld_efficiency<0", err="no metric that stands for gld_efficiency")
        self.expect(102, *words, "--fail-on", "fp32.flops<0", err="no value of fp32.flops")

    def test_what_cannot_be_compared(self):
        self.write("uncached.kprof", "after", "kprof --cache-control=none ./app --cache-control all")
        self.write("other.kprof", "after", "kprof ./app", "AD102")
        self.write("unread.kprof", "after", "kprof --of-a-later-version ./app")
        self.expect(112, "diff", "before.kprof", "uncached.kprof", err="Cache control is none, not all", out="")
        self.expect(112, "diff", "before.kprof", "other.kprof", err="Chip is AD102, not GH100", out="")
        run = self.expect(0, "diff", "before.kprof", "other.kprof", "--anyway", err="warning: Chip is AD102")
        self.assertIn("Chip    GH100      AD102", run.out)
        run = self.expect(0, "diff", "before.kprof", "unread.kprof")
        self.assertIn("Cache control  all        not known", run.out)
        self.assertEqual(run.err, "")

    def test_one_launch_of_each(self):
        run = self.kprof("diff", SAMPLE, SAMPLE)
        self.assert_run(run, 0)
        self.assertRegex(run.out, r"Confidence +99 %\n")

    def test_wrong_lines(self):
        for words, err in (
                (["diff"], "which reports?"), (["diff", "before.kprof"], "which reports?"),
                (["diff", "before.kprof", "after.kprof", "x"], "one word too many"),
                (["diff", "before.kprof", "after.kprof", "--csv-layout", "ncu"], "ncu has no comparison"),
                (["diff", "before.kprof", "after.kprof", "--fail-on", "duration>5x"], '"x" is no unit of'),
                (["diff", "before.kprof", "after.kprof", "--fail-on", "duration>5"], '"duration>5%" or "duration>+5%"'),
                (["diff", "before.kprof", "after.kprof", "--fail-on", "dram__bytes_read.sum>5us"], '"us" is no unit'),
                (["diff", "before.kprof", "after.kprof", "--time-tolerance", "2%"], "--time-tolerance"),
                (["diff", "before.kprof", "after.kprof", "--log-file", "before.kprof"], "overwrite"),
                (["diff", "before.kprof", "after.kprof", "--log-file", "after.kprof"], "overwrite"),
                (["report", "after.kprof", "--baseline", "before.kprof", "--log-file", "before.kprof"], "overwrite"),
                (["report", "after.kprof", "--baseline", "before.kprof", "--page", "raw"], "page of its own"),
                (["report", "after.kprof", "--baseline", "before.kprof", "--filter", "duration>1us"], "of one report"),
                (["report", "after.kprof", "--baseline", "before.kprof", "--rule", "Atomics"], "of one report"),
                (["report", "after.kprof", "--fail-on", "duration>5%"], "give --baseline"),
                (["diff", "before.kprof", "after.kprof", "-k", "regex:["], "missing terminating")):
            with self.subTest(words=words):
                self.expect(101, *words, err=err, out="")
        self.expect(102, "diff", "before.kprof", "after.kprof", "--fail-on", "dram.bandwith>5%",
                    err='did you mean "dram.bandwidth"?', out="")
        self.expect(102, "report", "after.kprof", "--filter", "dram.bandwith>1", err='did you mean "dram.bandwidth"?',
                    out="")
        self.expect(102, "diff", "before.kprof", "after.kprof", "--fail-on", "dram__bytes_reed.sum>5%",
                    err='did you mean "dram__bytes_read.sum" or "dram__bytes_write.sum"?', out="")
        self.expect(102, "diff", "before.kprof", "after.kprof", "--fail-on", "dram__bytes.sum>+3%",
                    err='did you mean "dram__bytes_read.sum" or "dram__bytes_write.sum"?', out="")
        self.expect(102, "diff", "before.kprof", "after.kprof", "--fail-on", "zzz>+3%",
                    err="kprof report after.kprof --page raw lists its metrics", out="")
        self.expect(106, "diff", "before.kprof", "after.kprof", "-k", "gather1", err="after.kprof has no launch")
        self.expect(0, "trace", "--injection-path", INJECTION, "-o", "run", APP, f"launch={VECTOR_ADD}")
        run = self.expect(106, "diff", "before.kprof", "run.kprof", err="run.kprof is a trace, which has no launch")
        self.assertEqual(run.err.count("error:"), 1)
        run = self.expect(106, "diff", "before.kprof", "after.kprof", "-k", "regex:gather", err="in both reports")
        self.assertRegex(run.out, r"In one report only\n.*\n  baseline +6  gather1.*\n  new +6  gather2")
        run = self.expect(106, "report", "before.kprof", "-k", "gather", err="did you mean -k gather1?")
        self.assertNotIn("0 x", run.err)  # the report does not count launches

    def test_damaged_reports(self):
        whole = pathlib.Path(self.dir, "after.kprof").read_bytes()
        for size in (0, 100, 4096, len(whole) // 2, len(whole) - 4096):
            pathlib.Path(self.dir, "cut.kprof").write_bytes(whole[:size])
            for words in (["before.kprof", "cut.kprof"], ["cut.kprof", "after.kprof"]):
                with self.subTest(size=size, words=words):
                    self.expect(107, "diff", *words, err="cut.kprof", out="")
        self.expect(107, "diff", "before.kprof", "nothing.kprof", err="nothing.kprof", out="")


class Exports(Case):
    """kprof export: every format, where it goes, and what it does not overwrite."""

    FORMATS = ("long", "wide", "jsonl", "prometheus", "perfetto")

    def setUp(self):
        super().setUp()
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), self.path("run.kprof")], check=True)

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def refuse(self, code, reason, *words, **keywords):
        run = self.kprof("export", "run.kprof", *words, **keywords)
        self.assertEqual(run.code, code, run.err)
        self.assertIn(reason, run.err)
        self.assertEqual(run.out, "")

    def test_files_are_private_but_for_the_log(self):
        open(self.path("shared.csv"), "w").close()
        os.chmod(self.path("shared.csv"), 0o644)
        for words, name, mode in (
                (("export", "run", "--to", "long", "-f", "-o", "shared.csv"), "shared.csv", 0o600),
                (("report", "run", "--html", "run.html"), "run.html", 0o600),
                (("report", "run", "--launch", "0", "-o", "part"), "part.kprof", 0o600),
                (("report", "run", "--csv", "--log-file", "run.csv"), "run.csv", 0o640)):
            self.assertEqual(self.kprof(*words, umask=0o027).code, 0)
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), mode, name)

    def test_instructions_are_lines_of_their_kernels(self):
        source = os.path.join(os.path.dirname(__file__), "../fixtures/source/source.kprof")
        run = self.kprof("export", source, "--to", "instructions")
        self.assert_run(run, 0)
        lines = [json.loads(line) for line in run.out.splitlines()]
        kernels = {line["kernel_function"]: line["rows"] for line in lines if "rows" in line}
        page = self.kprof("report", source, "--page", "source", "--json", "--all", "--print-source", "sass")
        for kernel in json.loads(page.out)["kernels"]:
            self.assertEqual(kernels.pop(kernel["kernel_function"]), kernel["rows"])
        self.assertEqual(kernels, {})
        self.assertTrue(all(line["note"] for line in lines if "rows" not in line))

    CUT_SHORT = "kprof: warning: run.kprof: processes cut short: 1; what they did last is missing\n"

    def test_a_file_has_what_stdout_gets(self):
        for form in self.FORMATS:
            printed = self.kprof("export", "run", "--to", form)
            self.assertEqual((printed.code, printed.err), (0, self.CUT_SHORT))
            self.assertEqual(self.kprof("export", "run", "--to", form, "-o", "-").out, printed.out)
            written = self.kprof("export", "run", "--to", form, "-o", "out." + form)
            self.assertEqual((written.code, written.out, written.err),
                             (0, "", f"kprof: export: out.{form}\n{self.CUT_SHORT}"))
            self.assertEqual(self.read("out." + form), printed.out)
        self.assertEqual(self.kprof("report", "run", "--page", "raw", "--csv").out, self.read("out.long"))
        wide = self.kprof("report", "run", "--page", "raw", "--csv-layout", "wide").out
        self.assertEqual(wide, self.read("out.wide"))
        self.assertEqual({name.split(".")[1] for name in os.listdir(self.dir) if name != "tmp"},
                         {"kprof", *self.FORMATS})

    def test_names_are_expanded(self):
        pages = {name: ("report", "run.kprof", "--html") for name in ("%q{A}_%i.html", "100%%.html")}
        for name, words in {**pages, "%q{A}.csv": ("export", "run.kprof", "--to", "wide", "-o"),
                            "%q{A}_part": ("report", "run.kprof", "-c", "1", "-o"),
                            "%q{A}_both.html": ("diff", "run.kprof", "run.kprof", "--html")}.items():
            self.assert_run(self.kprof(*words, name, env={"A": "a"}), 0)
            for wrong, why in (("%q{NONE}", "the environment has no NONE"), ("x%y", "%y is no placeholder")):
                run = self.kprof(*words, wrong)
                self.assert_run(run, 101)
                self.assertIn(why, run.err)
                self.assertIn("--html: " if "--html" in words else "--export: ", run.err)
        self.assert_run(self.kprof(*pages.popitem()[1], "a_%i.html"), 0)
        self.assertEqual(sorted(set(os.listdir(self.dir)) - {"run.kprof", "tmp"}),
                         ["100%.html", "a.csv", "a_1.html", "a_2.html", "a_both.html", "a_part.kprof"])
        run = self.kprof("export", "run.kprof", "--to", "wide", "-o", "%q{A}.kprof", env={"A": "run"})
        self.assert_run(run, 101) # what it would overwrite is told by that name
        self.assertIn("would overwrite run.kprof", run.err)

    def test_pipes(self):
        """A pipe is written when something reads it, and nobody waits for that unknowingly, or for nothing."""
        os.mkfifo(self.path("pipe"))
        for form in ("chrome", "timeline", "nsys-sqlite"):
            self.refuse(110, "run.kprof has no trace", "--to", form, "-o", "pipe")
        for words in (("export", "run", "--to", "long", "-o"), ("report", "run", "--page", "raw", "--log-file"),
                      ("report", "run", "-f", "--html")):
            with self.subTest(words), subprocess.Popen([KPROF, *words, "pipe"], cwd=self.dir, text=True,
                                                       env=self.environment({}), stderr=subprocess.PIPE) as run:
                self.assertEqual(run.stderr.readline(), "kprof: pipe is a pipe: kprof waits until something reads it\n")
                late = self.read("pipe")
                self.assertEqual(run.wait(), 0, run.stderr.read())
            reader = os.open(self.path("pipe"), os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 1 << 20)
            run = self.kprof(*words, "pipe")
            with open(reader) as file:
                self.assertEqual((run.code, "waits" in run.err, file.read()), (0, False, late), run.err)

    def test_chosen_launches(self):
        all_lines = self.kprof("export", "run", "--to", "jsonl").out.splitlines()
        self.assertGreater(len(all_lines), 2)
        self.assertEqual(self.kprof("export", "run", "--to", "jsonl", "-s", "1", "-c", "1").out.splitlines(),
                         all_lines[1:2])
        self.refuse(106, "vectorAdd", "--to", "long", "-k", "vectorAd", "-o", "none")
        self.assertFalse(os.path.exists(self.path("none")))

    def test_nothing_is_lost(self):
        before = open(self.path("run.kprof"), "rb").read()
        os.symlink("run.kprof", self.path("link"))
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), self.path("other.kprof")], check=True)
        for name in ("run.kprof", "./tmp/../run.kprof", "link"):
            self.refuse(101, "would overwrite", "--to", "long", "-f", "-o", name)
        self.refuse(101, "is a report", "--to", "long", "-f", "-o", "other.kprof")
        self.assertEqual(open(self.path("run.kprof"), "rb").read(), before)
        with open(self.path("mine"), "w") as file:
            file.write("mine")
        self.refuse(108, "exists already", "--to", "long", "-o", "mine")
        self.assertEqual(self.read("mine"), "mine")
        self.assertEqual(self.kprof("export", "run", "--to", "long", "-o", "mine", "-f").code, 0)
        self.assertIn("gpu__time_duration.sum", self.read("mine"))

    def test_a_full_disk_leaves_nothing(self):
        self.refuse(108, "", "--to", "long", "-o", "out", preexec_fn=limit_file_size(1000))
        self.assertEqual(sorted(os.listdir(self.dir)), ["run.kprof", "tmp"])
        if os.path.exists("/dev/full"):
            self.refuse(108, "", "--to", "long", "-o", "/dev/full")

    def test_lines_that_are_not_valid(self):
        self.refuse(101, "in which format", "-o", "out")
        self.refuse(101, "leave other formats out", "--to", "long", "--json")
        self.refuse(101, "leave one out", "--to", "long", "-o", "out", "--log-file", "other")
        self.refuse(101, "give long|wide", "--to", "xml")

    def make_duckdb(self, script):
        os.mkdir(self.path("bin"))
        with open(self.path("bin/duckdb"), "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(self.path("bin/duckdb"), 0o700)
        return {"PATH": self.path("bin") + ":" + os.environ["PATH"]}

    def test_parquet_by_duckdb(self):
        """What duckdb is given: words without any name, and the long layout, whose columns the words list."""
        found = self.make_duckdb(f'printf "%s\\n" "$@" >"{self.path("words")}"; exec cat\n')
        name = "out; touch $(evil) '\".parquet"
        run = self.kprof("export", "run", "--to", "parquet", "-o", name, env=found)
        self.assertEqual((run.code, run.err), (0, f"kprof: export: {name}\n{self.CUT_SHORT}"))
        self.assertEqual(self.read(name), self.kprof("export", "run", "--to", "long").out)
        words = self.read("words")
        self.assertNotIn("evil", words)
        self.assertIn("auto_detect=false", words)  # DuckDB 1.5.6 guesses wrong from a pipe, and gives up
        self.assertEqual(re.findall(r"'(\w+)':'", words), self.read(name).splitlines()[0].replace('"', "").split(","))

    def real_duckdb(self):
        """The environment of commands that call duckdb: the installed program, or the engine of npm's package."""
        if shutil.which("duckdb"):
            return {}
        place = os.environ.get("KPROF_DUCKDB", "")
        if not shutil.which("node") or not os.path.isdir(os.path.join(place, "node_modules/@duckdb/node-api")):
            self.skipTest("duckdb is not installed")
        script = str(pathlib.Path(__file__).resolve().parent / "duckdb.mjs")
        return self.make_duckdb(f"exec node {shlex.quote(script)} \"$@\"\n")

    def test_parquet_by_the_real_duckdb(self):
        found = self.real_duckdb()
        self.assertEqual(self.kprof("export", "run", "--to", "parquet", "-o", "out.parquet", env=found).code, 0)
        def ask(statement):
            return subprocess.run(["duckdb", "-csv", "-noheader", "-c", statement], cwd=self.dir, capture_output=True,
                                  text=True, check=True, env={**os.environ, **found}).stdout.replace('"', "")
        rows = list(csv.DictReader(io.StringIO(self.kprof("export", "run", "--to", "long").out)))
        self.assertEqual(int(ask("SELECT count(*) FROM 'out.parquet'")), len(rows))
        values = sum(float(row["value"]) for row in rows if row["metric"] == METRIC)
        self.assertGreater(values, 0)
        self.assertEqual(ask("SELECT count(*) FROM 'out.parquet' WHERE nvtx='none' OR reason='none'").strip(), "0")
        self.assertAlmostEqual(float(ask(f"SELECT sum(value) FROM 'out.parquet' WHERE metric='{METRIC}'")), values)

    def test_the_lines_for_duckdb_of_the_documents(self):
        """Without those that fetch an extension from the network."""
        found = self.real_duckdb()
        document = pathlib.Path(__file__).resolve().parents[2] / "docs/analysis.md"
        block = re.search(r"## DuckDB\n.*?```sh\n(.*?)```", document.read_text(), re.DOTALL)[1]
        lines = [line for line in re.findall(r'^(?:kprof .*|duckdb -c "[^"]*")$', block, re.MULTILINE)
                 if "INSTALL" not in line]
        self.assertEqual([line.split()[0] for line in lines], ["kprof", "duckdb"])
        os.rename(self.path("run.kprof"), self.path("all.kprof"))
        os.makedirs(self.path("bin"), exist_ok=True)
        os.symlink(KPROF, self.path("bin/kprof"))
        path = ":".join([self.path("bin"), os.environ["PATH"]])
        shown = subprocess.run("\n".join(["set -e", *lines]), shell=True, cwd=self.dir, capture_output=True, text=True,
                               env={**os.environ, **found, "PATH": path}, check=False)
        self.assertEqual((shown.returncode, shown.stderr.splitlines()),
                         (0, ["kprof: export: all.parquet", "kprof: warning: all.kprof: processes cut short: 1; what "
                              "they did last is missing"]))
        self.assertIn("vectorAdd", shown.stdout)

    TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE"}

    def tables_for_duckdb(self, report):
        """Statements that make the tables of a report, as DuckDB's extension sqlite attaches them."""
        yield "ATTACH ':memory:' AS run"
        with contextlib.closing(sqlite3.connect(report)) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall():
                columns = [(row[1], self.TYPES.get(row[2], "VARCHAR")) for row in
                           database.execute(f'PRAGMA table_info("{table}")')]
                listed = ",".join(f'"{name}" {kind}' for name, kind in columns)
                texts = ",".join(f'CAST("{name}" AS TEXT)' for name, _ in columns)
                with open(self.path(f"{table}.csv"), "w", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file)
                    writer.writerow(name for name, _ in columns)
                    writer.writerows(database.execute(f'SELECT {texts} FROM "{table}"'))
                yield f'CREATE TABLE run."{table}"({listed})'
                yield f"INSERT INTO run.\"{table}\" FROM read_csv('{table}.csv', all_varchar=true, header=true)"

    def test_the_statements_on_reports_of_the_documents(self):
        """Those that attach a report, with its tables in place of the extension, which the network has."""
        found = self.real_duckdb()
        document = pathlib.Path(__file__).resolve().parents[2] / "docs/analysis.md"
        lines = [line.replace('\\"', '"') for line in re.findall(r'^duckdb -c "((?:[^"\\]|\\.)*)"$',
                                                               document.read_text(), re.MULTILINE)]
        asked = [line.split("READ_ONLY);")[1] for line in lines if "ATTACH" in line]
        self.assertEqual(len(asked), 3)
        tables = list(self.tables_for_duckdb(pathlib.Path(__file__).resolve().parents[2] / "samples/source-h200.kprof"))
        for statement, expected in zip(asked, (r"^gpu__time_duration.sum,46144(\.0)?$", r"/stalls.cu,15,10431(\.0)?$",
                                               "^uncoalesced_read,384,LDG")):
            words = [word for text in [*tables, statement] for word in ("-c", text)]
            shown = subprocess.run(["duckdb", "-csv", "-noheader", *words], cwd=self.dir, capture_output=True,
                                   text=True, check=False, env={**os.environ, **found})
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertRegex(shown.stdout.replace('"', ""), re.compile(expected, re.MULTILINE))

    def test_parquet_without_duckdb(self):
        self.refuse(111, "needs duckdb", "--to", "parquet", "-o", "out", env={"PATH": self.tmp})
        found = self.make_duckdb("echo it is broken >&2; exit 3\n")
        self.refuse(108, "duckdb failed", "--to", "parquet", "-o", "out", env=found)
        self.assertFalse(os.path.exists(self.path("out")))


class Merges(Case):
    """kprof merge: what the new report holds, and what is refused."""

    def setUp(self):
        super().setUp()
        for rank in range(3):
            self.write(f"rank{rank}.kprof", rank)

    def write(self, name, rank, *rest):
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), self.path(name), *rest], check=True)
        with sqlite3.connect(self.path(name)) as database:
            database.execute("UPDATE process SET pid = pid + ?", (1000 * rank,))
            database.execute("UPDATE value SET value = value * ? "
                             "WHERE metric_id = (SELECT id FROM metric WHERE name = ?)",
                             (rank + 1, METRIC))
        database.close()

    def merge(self, code, *words, err=""):
        run = self.kprof("merge", *words)
        self.assertEqual(run.code, code, run.err)
        self.assertIn(err, run.err)
        return run

    VALUES = ("SELECT pid, position, kernel.mangled, device.uuid, metric.name, value FROM value "
              "JOIN launch ON launch.id = launch_id JOIN process ON process.id = process_id "
              "JOIN kernel ON kernel.id = kernel_id JOIN device ON device.id = device_id "
              "JOIN metric ON metric.id = metric_id ORDER BY 1, 2, 5")
    TABLES = ("launch", "value", "message", "graph_node", "seen", "process")

    def test_all_that_the_reports_hold(self):
        self.merge(0, "rank0.kprof", "rank1", "rank2.kprof", "-o", "all")
        expected = sorted(sum((self.query(f"rank{rank}.kprof", self.VALUES) for rank in range(3)), []), key=str)
        self.assertEqual(sorted(self.query("all.kprof", self.VALUES), key=str), expected)
        for table in self.TABLES:
            count = f"SELECT count(*) FROM {table}"
            self.assertEqual(self.query("all.kprof", count)[0][0],
                             sum(self.query(f"rank{rank}.kprof", count)[0][0] for rank in range(3)), table)
        for table in ("kernel", "device", "metric", "section", "pass", "schedule", "left_out"):
            count = f"SELECT count(*) FROM {table}"
            self.assertEqual(self.query("all.kprof", count), self.query("rank0.kprof", count), table)
        self.assertEqual(self.query("all.kprof", "SELECT name, count(*) FROM source "
                                                 "JOIN process_source ON source_id = id GROUP BY id"),
                         [(name, self.query("rank0.kprof", "SELECT count(*) FROM process")[0][0])
                          for name in ("rank0.kprof", "rank1", "rank2.kprof")])
        self.assertEqual(self.kprof("report", "all", "--page", "raw", "--json").code, 0)

    def test_imbalance(self):
        self.merge(0, "rank0", "rank1", "rank2", "-o", "all")
        page = json.loads(self.kprof("report", "all", "--page", "sources", "--json").out)
        times = [source["time"] for source in page["sources"]]
        self.assertEqual([round(time / times[0], 6) for time in times], [1, 2, 3])
        kernel = next(kernel for kernel in page["kernels"] if kernel["minimum"])
        self.assertEqual((kernel["sources"], kernel["slowest"]), (3, "rank2"))
        self.assertAlmostEqual(kernel["median"] / kernel["minimum"], 2)
        self.assertAlmostEqual(kernel["maximum"] / kernel["minimum"], 3)
        self.assertAlmostEqual(kernel["imbalance"], 50)

    def test_runs_of_two_days(self):
        """A process of the same number is another one, if it began at another time."""
        for name in "before", "after":
            self.write(name + ".kprof", 0, name)
        self.merge(0, "before", "after", "-o", "both")
        self.assertEqual(self.query("both.kprof", "SELECT count(*), count(DISTINCT pid) FROM process"), [(2, 1)])

    def test_a_merged_report_again(self):
        self.merge(0, "rank0", "rank1", "-o", "two")
        self.merge(0, "two", "rank2", "-o", "nested")
        self.merge(0, "rank0", "rank1", "rank2", "-o", "flat")
        for sql in (self.VALUES, "SELECT id, name FROM source", "SELECT * FROM process_source"):
            self.assertEqual(self.query("nested.kprof", sql), self.query("flat.kprof", sql))

    def test_other_sets(self):
        """A merged report has the sections and passes of all runs, and shows each launch with those of its own."""
        for name, options in (("warps", ("--section", "WarpStateStats")), ("time", ("--metrics", METRIC)),
                              ("bytes", ("--metrics", "dram__bytes.sum"))):
            self.assert_run(self.kprof("--injection-path", INJECTION, "-o", name, *options, APP, f"launch={SCALE}"), 0)
        self.merge(0, "warps", "time", "bytes", "-o", "sets")
        sets = [json.loads(self.query(f"{name}.kprof", "SELECT sets FROM run")[0][0]) for name in ("warps", "sets")]
        self.assertEqual(sets[1][:len(sets[0])], sets[0])
        self.assertEqual(self.query("sets.kprof", "SELECT identifier FROM section"),
                         [("WarpStateStats",), ("CommandLine",)])
        passes = [self.query(f"{name}.kprof", "SELECT count(*) FROM pass")[0][0] for name in ("warps", "time", "bytes")]
        self.assertEqual(self.query("sets.kprof", "SELECT count(*), max(pass) FROM pass"), [(sum(passes),) * 2])
        scheduled = self.query("sets.kprof", "SELECT name, pass FROM schedule JOIN metric ON metric.id = metric_id "
                               f"WHERE name IN ('dram__bytes.sum', '{METRIC}') ORDER BY pass")
        self.assertEqual(scheduled, [(METRIC, passes[0] + 1), ("dram__bytes.sum", sum(passes))])
        shown = [self.kprof("report", "sets.kprof", "--launch", str(launch)).out for launch in range(3)]
        self.assertEqual(["Warp State Statistics\n" in text for text in shown], [True, False, False])
        for launch, metric in ((1, METRIC), (2, "dram__bytes.sum")):
            self.assertRegex(shown[launch], metric + " +[0-9]")
        self.assertNotIn("Command line", shown[0])

    def change_section(self, name, change):
        """Let a report have another definition of the section SpeedOfLight, as another version of kprof would."""
        with sqlite3.connect(self.path(name)) as database:
            (text,), = database.execute("SELECT definition FROM section WHERE identifier = 'SpeedOfLight'")
            section = json.loads(text)
            change(section)
            database.execute("UPDATE section SET definition = ? WHERE identifier = 'SpeedOfLight'",
                             (json.dumps(section),))
        database.close()

    def test_sections_of_other_versions(self):
        """Each launch keeps all that its own report shows of it, whatever the order of the reports."""
        def be_older(section):
            section.update(help="Another text.", timeline=[{"metric": "lts__throughput.avg", "label": "L2"}])
            section["items"] = [item for item in section["items"] if item["label"] != "DRAM Bandwidth"]

        def be_other(section):
            section.update(tables=[], timeline=[{"metric": "sm__throughput.avg", "label": "SM"}])

        self.change_section("rank0.kprof", be_older)
        self.change_section("rank1.kprof", be_other)
        own = {}
        for rank in range(3):
            for launch in json.loads(self.kprof("report", f"rank{rank}", "--json").out)["launches"]:
                speed = [section for section in launch["sections"] if section["id"] == "SpeedOfLight"]
                cells = [cell for section in speed for table in section["tables"] for row in table["rows"]
                         for cell in row["cells"]]
                items = [item for section in speed for item in section["items"]]
                own.setdefault(rank, []).append({item["name"]: item["value"] for item in items + cells})
        for ranks in ((0, 1, 2), (1, 0), (2, 0, 1), (0, 2), (1, 2, 0)):
            self.merge(0, *(f"rank{rank}" for rank in ranks), "-f", "-o", "all")
            merged = json.loads(self.kprof("report", "all", "--json").out)
            expected = [values for rank in ranks for values in own[rank]]
            for launch, values in zip(merged["launches"], expected, strict=True):
                [section] = [section for section in launch["sections"] if section["id"] == "SpeedOfLight"][:1] or [{}]
                shown = {item["name"]: item["value"] for item in section.get("items", [])}
                shown |= {cell["name"]: cell["value"] for table in section.get("tables", []) for row in table["rows"]
                          for cell in row["cells"]}
                self.assertEqual({name: shown.get(name) for name in values}, values, ranks)
            (text,), = self.query("all.kprof", "SELECT definition FROM section WHERE identifier = 'SpeedOfLight'")
            section = json.loads(text)
            self.assertEqual({item["label"] for item in section.get("timeline", [])},
                             {"L2" if rank == 0 else "SM" for rank in ranks if rank < 2})
            self.assertEqual(len(section["tables"]), 0 if ranks[:2] == (1, 0) and 2 not in ranks else 1)

    def test_what_is_refused(self):
        os.symlink("rank0.kprof", self.path("link.kprof"))
        shutil.copy(self.path("rank0.kprof"), self.path("copy.kprof"))
        self.merge(0, "rank1.kprof", "rank2", "-o", "pair")
        self.write("other.kprof", 5)
        with sqlite3.connect(self.path("other.kprof")) as database:
            database.execute("UPDATE section SET definition = replace(definition, 'dfma_pred_on.sum.per_second * 2', "
                             "'dfma_pred_on.sum.per_second * 3')")
        database.close()
        for code, err, words in (
                (101, "which reports", ("rank0", "-o", "all")), (101, "into which report?", ("rank0", "rank1")),
                (101, "are one file", ("rank0", "rank1", "rank0.kprof", "-o", "all")),
                (101, "are one file", ("rank0", "link", "-o", "all")),
                (101, "is in rank0 already, so both have the same run", ("rank0", "copy", "-o", "all")),
                (101, "rank1.kprof: process", ("rank0", "pair", "rank1", "-o", "all")),
                (101, "is in pair (from rank1.kprof) already", ("rank0", "pair", "rank1", "-o", "all")),
                (101, "pair.kprof: process", ("rank1", "rank0", "pair", "-o", "all")),
                (101, "is in rank1 already", ("rank1", "rank0", "pair", "-o", "all")),
                (101, "would overwrite", ("rank0", "rank1", "-f", "-o", "rank1")),
                (101, "--csv is no option of kprof merge", ("rank0", "rank1", "-o", "all", "--csv")),
                (107, "other.kprof: its section Roofline computes derived__flops_fp64.per_second in another way",
                 ("rank0", "other", "-o", "all")),
                (107, "missing", ("rank0", "missing", "-o", "all"))):
            self.merge(code, *words, err=err)
            self.assertFalse([name for name in os.listdir(self.dir) if name.startswith("all")])
        self.merge(0, "rank0", "rank1", "-o", "all")
        self.merge(108, "rank0", "rank1", "-o", "all", err="exists already")
        self.merge(0, "rank0", "rank1", "-f", "-o", "all")


class Parts(Case):
    """kprof report of a part of a report, and of several: what is shown and kept is what the whole has of it."""

    def setUp(self):
        super().setUp()
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), self.path("run.kprof")], check=True)

    def show(self, *words, code=0, err=""):
        run = self.kprof("report", *words)
        self.assertEqual(run.code, code, run.err)
        self.assertIn(err, run.err)
        return run.out

    def json(self, *words):
        return json.loads(self.show(*words, "--json"))

    def test_sections(self):
        whole, part = self.json("run"), self.json("run", "--section", "Occupancy,regex:^Roof")
        for full, some in zip(whole["launches"], part["launches"], strict=True):
            self.assertEqual([section for section in full["sections"] if section["id"] in ("Occupancy", "Roofline")],
                             some["sections"])
            for key in ("id", "kernel", "grid", "stream", "reason", "graph_node", "passes"):
                self.assertEqual(full[key], some[key])
        [launch] = self.json(SAMPLE, "--section", "SpeedOfLight")["launches"]
        [values] = [launch["values"] for launch in
                    self.json(SAMPLE, "--section", "SpeedOfLight", "--page", "raw")["launches"]]
        [section] = launch["sections"]
        self.assertEqual(set(values), {item["name"] for item in [
            *section["items"],
            *(cell for table in section["tables"] for row in table["rows"] for cell in row["cells"] if cell)]})
        [launch] = self.json(SAMPLE, "--set", "basic")["launches"]
        self.assertEqual(len(launch["sections"]), 5)
        lacking = {name for finding in launch["not_evaluated"] for name in finding["missing"]}
        self.assertFalse([name for name in lacking if name.startswith(("launch__", "device__"))])
        self.show("run", "--section", "Occupency", code=102, err="did you mean Occupancy?")
        self.show(SAMPLE, "--section", "MemoryWorkloadAnalysis_Chart", "--section", ".*Stats")
        for name, why in (("NumaAffinity", "nvidia-smi"), ("Nvlink_Tables", "peer sectors")):
            self.show(SAMPLE, "--section", name, code=102, err="the report has no such section: ")
            self.show(SAMPLE, "--section", name, code=102, err=why)
        for words in (("SourceCounters",),
                      ("Bandwidth", "--section-folder", OWN_SETS)):
            self.show(SAMPLE, "--section", *words, code=102,
                      err=f"the report has no such section (a run with --section {words[0]} collects it); it has Sp")
        self.show("run", "--section", "regex:^Nothing", code=102, err="the report has no such section; it has ")
        self.show(SAMPLE, "--section-folder", OWN_SETS, "--set", "bandwidth", err="not in this report: Bandwidth\n")
        self.show(SAMPLE, "--set", "agent", code=102,
                  err="the report has no section of these sets (Essentials); it has SpeedOfLight, ")
        self.show("run", "--set", "basik", code=102, err="basic")
        self.show("run", "--section", "regex:(", code=101, err="--section")
        alone = self.show(SAMPLE, "--section", "SpeedOfLight")
        for words in (("--section", "SpeedOfLight,Nvlink"),
                      ("--section", "SourceCounters", "--section", "SpeedOfLight")):
            self.assertEqual(self.show(SAMPLE, *words, err="kprof: warning: "), alone)
        rooflines = ",".join(f"SpeedOfLight_Hierarchical{kind}RooflineChart" for kind in ("Double", "Single", "Half"))
        self.assertEqual(self.show(SAMPLE, "--section", "SpeedOfLight_RooflineChart", err=", which have its points"),
                         self.show(SAMPLE, "--section", rooflines))
        self.show(SAMPLE, "--section", "Nvlink", "--metrics", "dram__bytes.sum", err="warning: ")
        for group in "SpeedOfLight", "memory__dram_table":
            self.assertEqual(self.show(SAMPLE, "--metrics", f"group:{group}"), self.show(SAMPLE, "--section", group))
        self.show(SAMPLE, "--metrics", "group:Nothing", code=102, err="group: takes the id of a section")
        self.show(SAMPLE, "--section", "Nvlink", "--metrics", "dram__byts.sum", code=102, err="error: ")

    def test_metrics(self):
        whole = {launch["id"]: launch["values"] for launch in self.json("run", "--page", "raw")["launches"]}
        part = self.json("run", "--page", "raw", "--metrics", "gpu__time_duration,regex:^dram__bytes")["launches"]
        names = {name for launch in part for name in launch["values"]}
        self.assertIn(METRIC, names)
        for launch in part:
            self.assertEqual(launch["values"], {name: value for name, value in whole[launch["id"]].items()
                                                if name.startswith(("gpu__time_duration.", "dram__bytes"))})
        [section] = self.json("run", "--metrics", METRIC)["launches"][0]["sections"]
        self.assertEqual((section["id"], [item["name"] for item in section["items"]]), ("CommandLine", [METRIC]))
        for names, expected in (("dram__bytes_read.sum", ["dram__bytes_read.sum"]),
                                ("dram.bandwidth,dram__bytes.sum.per_second", ["dram__bytes.sum.per_second"]),
                                ("dram__bytes_read", ["dram__bytes_read.sum",
                                                      "dram__bytes_read.sum.pct_of_peak_sustained_elapsed",
                                                      "dram__bytes_read.sum.per_second"])):
            [section] = self.json(SAMPLE, "--metrics", names)["launches"][0]["sections"]
            self.assertEqual([item["name"] for item in section["items"]], expected)
        throughput = "dram_throughput.avg.pct_of_peak_sustained_elapsed"
        self.show(SAMPLE, "--metrics", throughput.replace("_", "__", 1), code=102,
                  err=f"did you mean gpu__{throughput}?")
        for wrong, right in (("gpu__cycles_elapsed.max", "gpc"), ("sm__warps_eligible.avg.per_cycle_active", "smsp"),
                             ("sm__time_duration.sum", "gpu"), ("gpc__time_duration.sum", "gpu")):
            self.show(SAMPLE, "--metrics", wrong, code=102, err=f"did you mean {right}__{wrong.split('__')[1]}?")
        self.show(SAMPLE, "--metrics", "idc__inst_executed.sum", code=102, err="--page raw shows those that it has")
        self.show(SAMPLE, "--metrics", "occupancy", code=102, err="did you mean occupancy.achieved?")
        for word, meant in (("dram", "dram.bandwidth"), ("warps", "launch__warps_per_block")):
            self.show(REPEATS, "--metrics", word, code=102, err=f"did you mean {meant}?")
        self.show(SAMPLE, "--metrics", "dram__bytes_read.sum.per", code=102,
                  err="no such metric; did you mean dram__bytes_read.sum")
        self.show("run", "--metrics", "dram__byte", code=102, err="no such metric; did you mean dram__bytes")
        self.show("run", "--metrics", "^dram__byte", code=102, err='no such metric; did you mean "regex:^dram__byte"?')
        self.show("run", "--metrics", "dram.bandwith", code=102, err="no such metric; did you mean dram.bandwidth?")
        self.show("run", "--metrics", "gld_eficiency", code=102, err="no such metric; did you mean gld_efficiency?")
        self.show("run", "--metrics", "breakdown:sm__throughput", code=102,
                  err="is for runs: give --section ID or regex:")

    def test_metrics_that_are_missing_beside_others(self):
        run = self.kprof("report", "run", "--metrics", f"{METRIC},dram__byte,idc__x.sum", "--page", "raw", "--csv",
                         "--csv-layout", "ncu")
        self.assertEqual(run.code, 0, run.err)
        self.assertIn(METRIC, run.out.splitlines()[0])
        for text in ("dram__byte: the report has no such metric; did you mean dram__bytes",
                     "idc__x.sum: the report has no such metric"):
            self.assertIn(f"warning: run.kprof: --metrics {text}", run.err)
        self.show("run", "--section", "SpeedOfLight", "--metrics", "idc__x.sum", err="warning: run.kprof: --metrics")
        run = self.kprof("report", "run", "--metrics", "dram__byte,idc__x.sum")
        self.assertEqual((run.code, "warning" in run.err), (102, False))
        self.assertEqual(run.err.count("error: run.kprof: --metrics"), 2)

    def test_launches(self):
        ids = [launch["id"] for launch in self.json("run")["launches"]]
        part = self.json("run", "--launch", f"{ids[0]},{ids[2]}-{ids[3]}")
        self.assertEqual([launch["id"] for launch in part["launches"]], [ids[0], *ids[2:4]])
        self.show("run", "--launch", f"{ids[0]},{ids[2]}-{ids[3]}", "-o", "some", err="report: ")
        self.assertEqual(self.json("some"), part)
        self.assertEqual(self.kprof("report", "run", "--launch", "99998,99999").err,
                         f"kprof: error: no launch matched --launch 99998,99999\n"
                         f"kprof: error: run.kprof has launches with numbers from {ids[0]} to {ids[-1]}\n")
        self.show("run", "--launch", "99999", "-k", "nothing", code=106,
                  err=f"run.kprof has launches with numbers from {ids[0]} to {ids[-1]}")
        self.show("run", "--launch", str(ids[0]), "--section", "none", code=102, err="error: run.kprof: --section none")
        for word in ("x", "3-", "-3", "5-2", "1.5", "99999999999999999999"):
            self.show("run", f"--launch={word}", code=101, err="--launch")

    def test_kept(self):
        self.show("run", "-k", "regex:vector", "--section", "Occupancy", "-o", "small", err="report: ")
        small, shown = self.json("small"), self.json("run", "-k", "regex:vector", "--section", "Occupancy")
        for kept, launch in zip(small["launches"], shown["launches"], strict=True):
            # What is only shown has the findings of the whole.
            self.assertEqual(kept["verdict"]["occupancy"], launch["verdict"]["occupancy"])
            self.assertIsNone(kept["verdict"]["limit"])
            for key in "verdict", "findings", "not_evaluated":
                del kept[key], launch[key]
        self.assertEqual(small, shown)
        for column in ("command_line", "working_directory", "kprof_version", "sets", "start_unix_ns"):
            self.assertEqual(*(self.query(name, f"SELECT {column} FROM run") for name in ("small.kprof", "run.kprof")))
        self.assertEqual(self.query("small.kprof", "SELECT count(*) FROM source"), [(0,)])
        self.assertLess(os.path.getsize(self.path("small.kprof")), os.path.getsize(self.path("run.kprof")))
        self.assertEqual(os.stat(self.path("small.kprof")).st_mode & 0o777, 0o600)
        self.show("run", "-o", "small", code=108, err="exists already")
        self.show("run", "-o", "run", "-f", code=101, err="would overwrite")
        self.show("run", "-o", "other", "--log-file", "log", err="prints nothing")
        self.assertEqual(self.show("run", "-f", "-o", "other", "--csv", err="other.kprof"),
                         self.show("run", "--csv"))
        self.show("run", "-k", "nothing", "-o", "none", code=106, err="no launch matched -k nothing")
        self.assertFalse(os.path.exists(self.path("none.kprof")))

    def test_several(self):
        subprocess.run([os.path.join(BUILD, "tests/report/write_fixture"), self.path("more.kprof")], check=True)
        with sqlite3.connect(self.path("more.kprof")) as database:
            database.execute("UPDATE process SET pid = pid + 1000")
        database.close()
        one = len(self.json("run")["launches"])
        self.assertEqual(len(self.json("run", "more")["launches"]), 2 * one)
        self.assertEqual({source["source"] for source in self.json("run", "more", "--page", "sources")["sources"]},
                         {"run", "more"})
        self.show("run", "run.kprof", code=101, err="are one file")

    def test_nothing_is_left_behind(self):
        for words in (["--section", "Occupancy"], ["--section", "Nothing"], ["--launch", "99999"]):
            self.kprof("report", "run", *words)
            self.assertEqual(os.listdir(self.tmp), [])
        pipe = subprocess.Popen([KPROF, "report", "run", "--section", "Occupancy", "--json"], cwd=self.dir,
                                env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pipe.stdout.close()
        pipe.wait()
        self.assertEqual(os.listdir(self.tmp), [])


class Details(Case):
    """What the details page folds, and the options that unfold it."""

    def test_all(self):
        short = self.kprof("report", SAMPLE)
        self.assert_run(short, 0)
        self.assertIn("Roofline (Half Precision): no work\n", short.out)
        self.assertRegex(short.out, r"Zero: FP64, Tensor \(all\), .*\n")
        self.assertEqual(short.out.count("  Duration "), 1)
        wide = [line for line in short.out.splitlines() if len(line) > 100]
        self.assertEqual([line for line in wide if not line.startswith("vectorAdd(float const*")], [])
        full = self.kprof("report", SAMPLE, "--all")
        self.assert_run(full, 0)
        self.assertNotIn("no work", full.out)
        self.assertRegex(full.out, r"\n    Tensor \(all\) +0 %")
        self.assertEqual(full.out.count("  Duration "), 5)

    def test_help(self):
        page = self.kprof("report", SAMPLE, "--details-help")
        self.assert_run(page, 0)
        self.assertIn("Warps resident on an SM against the most that it can hold.", page.out)
        self.assertNotIn("Warps resident on", self.kprof("report", SAMPLE).out)
        data = json.loads(self.kprof("report", SAMPLE, "--json").out)
        helps = {section["id"]: section["help"] for section in data["sections"]}
        self.assertIn("Warps resident on an SM", helps["Occupancy"])
        metrics = {metric["name"]: metric["help"] for metric in data["metrics"]}
        self.assertIn("Misses of the caches", metrics["lts__t_requests_srcunit_gcc.sum"])
        self.assertIsNone(metrics["sm__mio_inst_issued.avg.pct_of_peak_sustained_elapsed"])

    def test_each_metric_once(self):
        rows = list(csv.DictReader(io.StringIO(self.kprof("report", SAMPLE, "--csv").out)))
        names = [row["metric"] for row in rows]
        self.assertEqual(len(names), len(set(names)))


class Findings(Case):
    """The verdict and the findings of the details page, and the options that choose them."""

    def test_verdict_comes_first(self):
        page = self.kprof("report", SAMPLE).out
        self.assertLess(page.index("  Limited by  DRAM bandwidth"), page.index("GPU Speed Of Light"))
        self.assertIn("\n    ! Warps wait: up to 33.03 % of the time (all that is left to the peak), high confidence\n",
                      page)
        # A cause goes before the symptom that is worth as much.
        self.assertIn("\n  Worth most  Accesses are narrow: up to 20.47 % of the time (all that is left to the peak)\n"
                      "  Look next   section Memory Workload Analysis Tables below\n", page)
        self.assertNotIn("Estimate: ", page)
        self.assertIn("Estimate: Without the stall, its share", self.kprof("report", SAMPLE, "--details-help").out)

    def test_apply_rules(self):
        for words in ([], ["--csv"], ["--csv-layout", "ncu"], ["--json"], ["--markdown"]):
            found = self.kprof("report", SAMPLE, "--rule", "WarpStall", *words).out
            self.assertRegex(found, "WarpStall|Warps wait|CPIStall")
            plain = self.kprof("report", SAMPLE, "--apply-rules", "no", *words)
            self.assert_run(plain, 0)
            for word in ("Worth most", "Warps wait", "WarpStall\"", "verdict", "finding__", "Rule Name"):
                self.assertNotIn(word, plain.out)

    def test_places(self):
        """A finding tells its worst lines, and the loads that they wait for, if the report has instructions."""
        excess = {"metrics": ["derived__memory_l2_theoretical_sectors_global_excessive"]}
        waits = {"metrics": [f"smsp__pcsamp_warps_issue_stalled_{kind}_scoreboard" for kind in ("long", "short")]}
        chosen = {"of": "reason", "most": 1}
        self.write_findings(
            Excess={"places": excess}, Waits={"places": waits},
            None_={"when": "gpu__time_duration.sum < 0", "places": excess},
            Chosen={"places": chosen, "values": [{"name": "reason", "largest": [
                {"name": "a", "value": "1", "place": "smsp__pcsamp_warps_issue_stalled_barrier"},
                {"name": "b", "value": "2", "place": "smsp__pcsamp_warps_issue_stalled_long_scoreboard"}]}]})
        words = ("report", SOURCE, "--section-folder", self.path("places"), "--rule", "Excess,Waits,None_,Chosen")
        launches = json.loads(self.kprof(*words, "--json").out)["launches"]
        places = [{found["id"]: found.get("places") for found in launch["findings"]} for launch in launches]
        self.assertEqual(set(places[1]), {"Excess", "Waits", "Chosen"})
        [worst] = places[1]["Excess"]
        self.assertEqual((worst["file"], worst["line"], worst["share_pct"]), ("/home/user/project/softmax.py", 14, 100))
        self.assertNotIn("waits_for", worst)
        first, second = places[1]["Waits"]
        self.assertEqual((first["place"], first["waits_for"]["place"], first["waits_for"]["space"],
                          first["waits_for"]["operation"]), ("softmax.py:7", "softmax.py:14", "Global", "Load"))
        self.assertGreater(first["share_pct"], second["share_pct"])
        self.assertGreaterEqual(second["share_pct"], 10)
        [only] = places[1]["Chosen"]
        self.assertEqual(only["place"], "softmax.py:7")
        self.assertIsNone(places[0]["Excess"])  # vectorAdd has none
        self.assertEqual(places[2]["Waits"][0]["place"], "instruction 0xc0")  # incr has no lines
        self.assertIsNone(places[2]["Waits"][0]["line"])
        told = ("Most of it: softmax.py:7 (84.3 %) waits for softmax.py:14 (Global Load), "
                "standard.py:118, called from softmax.py:16 (11.2 %)")
        for layout in ((), ("--csv",), ("--csv-layout", "ncu"), ("--markdown",), ("--width", "200")):
            out = self.kprof(*words, *layout, "-k", "softmax_kernel").out
            self.assertIn(told, re.sub(r"\\(.)", r"\1", re.sub(r"\s+", " ", out)))
        self.assertIn("vectorAdd.cu:8 (96.8 %) waits for another instruction of the line (Global Load).",
                      self.kprof(*words, "--csv", "-k", "vectorAdd").out)
        self.assertNotIn("places", self.kprof("report", SAMPLE, "--json").out)

    def write_findings(self, **findings):
        os.makedirs(self.path("places/findings"))
        for name, finding in findings.items():
            with open(self.path(f"places/findings/{name}.json"), "w", encoding="utf-8") as file:
                json.dump({"id": name, "name": name, "help": "h", "sections": ["SpeedOfLight"], "confidence": "high",
                           "when": "gpu__time_duration.sum > 0", "message": "It is so.", **finding}, file)

    def sample_without_sector_bytes(self):
        """A copy of the sample in which PartialSectors finds nothing to evaluate."""
        path = self.path("without.kprof")
        shutil.copy(SAMPLE, path)
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(f"DELETE FROM value WHERE metric_id IN "
                             f"(SELECT id FROM metric WHERE name LIKE '{SECTOR_BYTES}%')")
        return path

    def test_rule(self):
        data = self.kprof("report", self.sample_without_sector_bytes(), "--rule", "WarpStall,PartialSectors",
                          "--json").out
        launch = json.loads(data)["launches"][0]
        self.assertEqual([found["id"] for found in launch["findings"]], ["WarpStall"])
        self.assertEqual([found["id"] for found in launch["not_evaluated"]], ["PartialSectors"])
        self.assertIsNone(launch["verdict"]["limit"])
        self.assertEqual(launch["verdict"]["stall"]["name"], "Long Scoreboard")
        of_ncu, own = (self.kprof("report", SAMPLE, "--rule", ids).out for ids in ("CPIStall,SOLFPRoofline",
                                                                                   "WarpStall,DoubleByAccident"))
        self.assertIn("! Warps wait", of_ncu)
        self.assertEqual(of_ncu, own)
        wrong = self.kprof("report", SAMPLE, "--rule", "WarpStal,CPIStal,other")
        self.assert_run(wrong, 102)
        for word, advice in (("WarpStal", 'did you mean "WarpStall"?'), ("CPIStal", 'did you mean "CPIStall"?'),
                             ("other", "kprof list findings shows them")):
            self.assertIn(f'there is no finding "{word}"; {advice}', wrong.err)
        self.assert_run(self.profile(["--rule", "WarpStal"], [f"launch={SCALE}"]), 102)

    def test_not_evaluated(self):
        needs, report = SECTOR_BYTES, self.sample_without_sector_bytes()
        self.assertNotIn("Not evaluated", self.kprof("report", SAMPLE).out)
        page = self.kprof("report", report).out
        self.assertIn(f"\n  Not evaluated: PartialSectors (needs\n  {needs}ld.ratio,\n  {needs}st.ratio)\n", page)
        markdown = self.kprof("report", report, "--markdown").out.replace("\\", "")
        self.assertIn(f"\n- **Not evaluated**: PartialSectors (needs {needs}ld.ratio, {needs}st.ratio)\n", markdown)
        rows = list(csv.DictReader(io.StringIO(self.kprof("report", report, "--csv").out)))
        row, = [row for row in rows if row["metric"].startswith("not_evaluated__")]
        self.assertEqual((row["metric"], row["value"], row["section"], row["message"]),
                         ("not_evaluated__PartialSectors", "", "MemoryWorkloadAnalysis_Tables",
                          f"{needs}ld.ratio {needs}st.ratio"))
        self.assertNotIn("Not evaluated", self.kprof("report", report, "--rule", "WarpStall").out)

    def test_own_findings(self):
        page = self.kprof("report", SAMPLE, "--section-folder", OWN_SETS, "--rule", "WideStore")
        self.assert_run(page, 0)
        self.assertNotIn("! Stores are narrow", page.out)
        os.makedirs(self.path("mine/findings"))
        with open(os.path.join(OWN_SETS, "findings/WideStore.json")) as file:
            text = file.read()
        with open(self.path("mine/findings/WideStore.json"), "w") as file:
            file.write(text.replace('"value": 4', '"value": 8'))
        page = self.kprof("report", SAMPLE, "--section-folder", self.path("mine"), "--rule", "WideStore")
        self.assertIn("A global store writes 4 sectors, and a full one 8 sectors.", page.out)
        with open(self.path("mine/findings/WideStore.json"), "w") as file:
            file.write(text.replace("sectors < least", "sectors < lost"))
        wrong = self.kprof("report", SAMPLE, "--section-folder", self.path("mine"))
        self.assert_run(wrong, 102)
        self.assertIn('when: "lost" is neither a threshold', wrong.err)

    def test_brief_has_whole_names_of_units(self):
        """However long they are, the line keeps the name, and leaves out what the rest tells."""
        os.makedirs(self.path("mine/findings"))
        with open(os.path.join(OWN_SETS, "../../../metricsets/findings/Bottleneck.json")) as file:
            text = file.read()
        units = {option["name"] for value in json.loads(text)["values"] for option in value.get("largest", [])}
        long = [name for name in units if len(name) > 32]
        self.assertIn("MIO queue (shared memory, special functions)", long)
        for name in long:
            with open(self.path("mine/findings/Bottleneck.json"), "w") as file:
                file.write(text.replace('"DRAM bandwidth"', json.dumps(name)))
            page = self.kprof("report", SAMPLE, "--section-folder", "mine", "--brief").out
            rest = "(; headroom 33.03 %| of the peak)"
            self.assertRegex(page, rf"\n  Limited by  (memory: )?{re.escape(name)}, 66.97 %{rest}\n")

    def test_kprof_alone(self):
        """An executable without its files prints reports, without findings."""
        shutil.copy(KPROF, self.path("kprof"))
        alone = subprocess.run([self.path("kprof"), "report", SAMPLE], capture_output=True, text=True)
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        self.assertIn("GPU Speed Of Light", alone.stdout)
        self.assertNotIn("Worth most", alone.stdout)
        asked = subprocess.run([self.path("kprof"), "report", SAMPLE, "--rule", "WarpStall"], capture_output=True,
                               text=True)
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn("the folder of metric sets was not found", asked.stderr)
        self.assertIn("a link to an installed kprof finds", asked.stderr)
        self.assertEqual(asked.stderr.count("/share/kprof/metricsets"), 1)

    def test_of_a_run(self):
        run = self.collect(["--section", "LaunchStats"], [f"launch={SCALE}"])
        self.assert_run(run, 0)
        self.assertIn("Worth most", self.kprof("report", self.path("run.kprof")).out)

    def test_of_metrics_alone(self):
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        self.assertNotIn("Worth most", self.kprof("report", self.path("run.kprof")).out)


class Aliases(Case):
    """Names for what each chip has under names of its own."""

    def measure(self, *names, options=()):
        run = self.kprof("--injection-path", INJECTION, "--metrics", ",".join(names), "--json", *options, APP,
                         f"launch={VECTOR_ADD}")
        self.assertEqual(run.code, 0, run.err)
        (launch,) = json.loads(run.out)["launches"]
        return {row["name"]: row for section in launch["sections"] for row in section["items"]}, run.err

    def test_of_kprof(self):
        values, errors = self.measure("duration", "fp32.flops", "registers")
        self.assertEqual(list(values), ["gpu__time_duration.sum", "launch__registers_per_thread",
                                        "derived__fp32_flops"])
        self.assertEqual(values["derived__fp32_flops"]["unit"], "flop/second")
        self.assertEqual(values["derived__fp32_flops"]["label"], "fp32.flops")
        self.assertGreater(values["derived__fp32_flops"]["value"], 0)
        self.assertNotIn("taking", errors)

    def test_of_nvprof(self):
        parts = [f"smsp__sass_thread_inst_executed_op_f{kind}_pred_on.sum" for kind in ("add", "mul", "fma")]
        values, errors = self.measure("flop_count_sp", "gld_efficiency", "flop_count_sp", *parts)
        add, mul, fma = (values[part]["value"] for part in parts)
        self.assertEqual(values["derived__flop_count_sp"]["value"], add + mul + 2 * fma)
        self.assertEqual(errors.count('"flop_count_sp" of nvprof: taking smsp__sass_thread_inst_executed_op_fadd'), 1)
        self.assertEqual(errors.count("taking smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"), 1)

    def test_limits(self):
        names = ["duration", "sm.throughput", "l1.throughput", "global_hit_rate", "flop_count_sp"]
        values, errors = self.measure(*names, options=["--max-passes", "1"])
        self.assertIn("gpu__time_duration.sum", values)
        self.assertNotIn("sm__throughput.avg.pct_of_peak_sustained_elapsed", values)
        self.assertNotIn("derived__global_hit_rate", values)
        self.assertIn("left out", errors)

    def test_without_counterpart(self):
        for name, message in (("cf_issued", "comes closest: smsp__inst_executed_pipe_cbu.sum"),
                              ("nvlink_receive_throughput", "only by itself"), ("nvlink", "peer sectors"),
                              ("NVLink", "for the whole GPU"), ("PCIe", "system sectors"),
                              ("pmsampling:dram__bytes.sum", "takes no names for that"),
                              ("SpeedOfLight", "it is a section: see --section SpeedOfLight"),
                              ("section:SpeedOfLight", "it is a section: see --section SpeedOfLight"),
                              ("set:full", "it is a set: --set full collects it"), ("regexp:dram", '"regex:dram"?'),
                              ("dram__bytes.sum;sm__cycles_active.avg", "commas part the names of a list"),
                              ("full", "it is a set: --set full collects it"), ("WarpStall", "see kprof list findings"),
                              ("gld_eficiency", '"gld_efficiency"?'),
                              ("dram.bandwith", '"dram.bandwidth"?')):
            run = self.kprof("--plan", "--chips", "GH100", "--metrics", name)
            self.assertEqual(run.code, 102, run.err)
            self.assertIn(message, run.err)
        self.assertIn("it is a set: --set full", self.kprof("explain", "full", "--chips", "GH100").err)
        for option, name in (("--section", "Nvlink_Tables"), ("--section", "C2CLink"), ("--set", "nvlink")):
            run = self.kprof("--plan", "--chips", "GH100", option, name)
            self.assertEqual(run.code, 102, run.err)
            self.assertIn("MemoryWorkloadAnalysis_Tables", run.err)
        run = self.kprof("--plan", "--chips", "GB10B", "--metrics", "dram.bandwidth")
        self.assertEqual(run.code, 102, run.err)
        self.assertIn("not available on chip GB10B", run.err)

    def test_of_a_report(self):
        def show(*names):
            run = self.kprof("report", SAMPLE, "--json", "--metrics", ",".join(names))
            return run, [item["name"] for item in json.loads(run.out or "null")["launches"][0]["sections"][-1]["items"]
                         ] if run.code == 0 else []

        _, items = show("dram.bandwidth", "achieved_occupancy")
        self.assertEqual(items, ["dram__bytes.sum.per_second", "sm__warps_active.avg.pct_of_peak_sustained_active"])
        _, items = show("flop_count_sp")
        self.assertEqual(len(items), 3)
        for condition, code, message in (("dram.bandwidth>1TB/s", 0, ""), ("dram.bandwidth>9TB/s", 106, "no launch"),
                                         ("launch__stream_id==7", 0, ""), ("launch__stream_id==8", 106, "has 7"),
                                         ("launch__stream_id=7", 101, "with >=, <, <= or =="),
                                         ("gld_efficiency>1", 102, "no metric that stands for gld_efficiency")):
            run = self.kprof("report", SAMPLE, "--page", "raw", "--filter", condition)
            self.assertEqual(run.code, code, run.err)
            self.assertIn(message, run.err)
        for name in ("gld_efficiency", "cf_issued"):
            run, _ = show(name)
            self.assertEqual(run.code, 102, run.err)
            self.assertIn(f"--metrics {name}: the report has nothing that stands for it", run.err)

    def test_a_metric_of_the_report_is_no_misspelt_alias(self):
        shutil.copy(SAMPLE, self.path("own.kprof"))
        lines = ((0, "report", "own", "--page", "raw", "--filter", "dram.bandwith>1TB/s"),
                 (114, "diff", "own", "own", "--fail-on", "dram.bandwith>1%"))  # one launch tells too little
        for _, *line in lines:
            run = self.kprof(*line)
            self.assertEqual(run.code, 102, run.err)
            self.assertIn('did you mean "dram.bandwidth"?', run.err)
        with sqlite3.connect(self.path("own.kprof")) as database:
            database.execute("UPDATE metric SET name='dram.bandwith' WHERE name='dram__bytes.sum.per_second'")
        database.close()
        for code, *line in lines:
            run = self.kprof(*line)
            self.assertEqual(run.code, code, run.err)

    def test_list(self):
        run = self.kprof("list", "aliases", "--chips", "GH100,GB10B", "--json")
        self.assertEqual(run.code, 0, run.err)
        rows = {(row["alias"], row["chip"]): row for row in json.loads(run.out)}
        self.assertEqual(rows["dram.bandwidth", "GH100"]["metric"], "dram__bytes.sum.per_second")
        self.assertIsNone(rows["dram.bandwidth", "GB10B"]["metric"])
        self.assertEqual(rows["gld_efficiency", "GH100"]["of"], "nvprof")
        self.assertIsNone(rows["cf_issued", "GH100"]["metric"])
        # As NVIDIA's table for nvprof has them, per SM: L2 reads and writes what atomics change.
        atomics = "lts__t_sectors_op_atom.sum + lts__t_sectors_op_red.sum"
        self.assertEqual(rows["l2_read_transactions", "GH100"]["metric"], f"lts__t_sectors_op_read.sum + {atomics}")
        self.assertEqual(rows["l2_write_transactions", "GH100"]["metric"], f"lts__t_sectors_op_write.sum + {atomics}")
        self.assertEqual(rows["l2_atomic_transactions", "GH100"]["metric"], f"2 * ({atomics})")
        self.assertEqual(rows["eligible_warps_per_cycle", "GH100"]["metric"],
                         "4 * smsp__warps_eligible.avg.per_cycle_active")
        for name in ("ipc", "issued_ipc"):
            self.assertTrue(rows[name, "GH100"]["metric"].startswith("sm__inst_"))
        run = self.kprof("list", "metrics", "--chips", "GH100", "--metrics", "flop_count_sp", "--csv")
        self.assertEqual(run.out.count("smsp__sass_thread_inst_executed_op_f"), 3, run.err)
        run = self.kprof("list", "metrics", "--chips", "GH100", "--metrics", "dram_bites,regexp:dram")
        self.assert_run(run, 102)
        self.assertIn('metric "dram_bites" is not known', run.err)
        self.assertIn('metric "regexp:dram" is not known on chip GH100; did you mean "regex:dram"?', run.err)

    def test_of_a_user(self):
        run = self.kprof("--plan", "--chips", "GH100", "--section-folder", OWN_SETS, "--metrics", "dram.read",
                         "--json")
        self.assertEqual(json.loads(run.out)["plans"][0]["metrics"], 1, run.err)


class OwnSections(Case):
    def plan(self, metric):
        os.makedirs(self.path("mine/sections"), exist_ok=True)
        with open(self.path("mine/sections/Mine.json"), "w", encoding="utf-8") as file:
            json.dump({"id": "Mine", "name": "Mine", "items": [{"metric": metric, "label": "Bytes"}]}, file)
        return self.kprof("plan", "--chips", "GA100", "--section-folder", "mine", "--section", "Mine")

    def test_a_metric_that_the_chip_lacks(self):
        for metric, reason in (
                ("dram__bytes.sum", ""),
                ("dram__byts.sum", 'it has no metric "dram__byts.sum"; did you mean "dram__bytes.sum"?'),
                ("dram__bytes.smu", 'did you mean "dram__bytes.sum"?'),
                ("launch__grid_sise", 'did you mean "launch__grid_size"?'),
                ("pcie__read_bytes.sum", 'it cannot collect metric "pcie__read_bytes.sum" per kernel')):
            run = self.plan(metric)
            self.assertEqual(run.code, 102 if reason else 0, run.err)
            self.assertIn(reason, run.err)
            if reason:
                self.assertIn('mine/sections/Mine.json: chip GA100 can collect none of the choices of "Bytes": ',
                              run.err)


class Explanations(Case):
    """kprof explain."""

    def explain(self, *words):
        run = self.kprof("explain", "--chips", "GH100", *words, "--json")
        self.assertEqual(run.code, 0, run.err)
        data = json.loads(run.out)
        schema = json.loads(pathlib.Path(SCHEMA).read_text(encoding="utf-8"))
        (page,) = [one["properties"] for one in schema["oneOf"] if one["properties"]["page"]["const"] == data["page"]]
        for key, rows in data.items():
            kind = page[key]["items"]["$ref"].split("/")[-1] if isinstance(rows, list) else None
            for row in rows if kind else []:
                self.assertEqual(sorted(row), sorted(schema["$defs"][kind]["properties"]), key)
        return data

    def test_instructions(self):
        for name, metric in (("memory_l1_wavefronts_shared", "source:smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared"),
                             ("source:inst_executed", "source:smsp__sass_inst_executed"),
                             ("smsp__pcsamp_sample_count", "smsp__pcsamp_sample_count")):
            (found,) = self.explain(name)["metrics"]
            self.assertEqual((found["metric"], found["kind"], found["passes"], found["sections"], found["sets"]),
                             (metric, "instruction", 1, "SourceCounters", "detailed full source"))
        data = self.explain("derived__memory_l2_theoretical_sectors_global_excessive")
        self.assertEqual([row["metric"] for row in data["members"]],
                         ["smsp__sass_sectors_mem_global", "smsp__sass_sectors_mem_global_ideal"])
        (value,) = self.explain("inst_executed")["metrics"]
        self.assertEqual(value["metric"], "smsp__inst_executed.sum")
        (section,) = self.explain("SourceCounters")["metrics"]
        self.assertEqual((section["passes"], section["sets"]), (4, "detailed full source"))
        (finding,) = self.explain("LocalSpills")["metrics"]
        self.assertEqual(finding["places"], "smsp__sass_sectors_mem_local")

    def test_throughput(self):
        data = self.explain("sm__throughput.avg.pct_of_peak_sustained_elapsed")
        (metric,) = data["metrics"]
        self.assertEqual((metric["kind"], metric["unit"], metric["chip"]), ("throughput", "%", "GH100"))
        self.assertGreater(metric["passes"], 1)
        self.assertIn("SpeedOfLight", metric["sections"].split())
        self.assertLessEqual({"default", "detailed", "full"}, set(metric["sets"].split()))
        self.assertNotIn("roofline", metric["sets"].split())
        members = [row["metric"] for row in data["members"]]
        self.assertIn("sm__inst_executed.avg.pct_of_peak_sustained_elapsed", members)
        self.assertEqual([row["part"] for row in data["parts"]], ["sm", "avg", "pct_of_peak_sustained_elapsed"])
        self.assertEqual([row["alias"] for row in data["aliases"]], ["sm.throughput"])
        plan = json.loads(self.kprof("--plan", "--chips", "GH100", "--metrics", metric["metric"], "--json").out)
        self.assertEqual(metric["passes"], plan["plans"][0]["passes"])

    def test_base_name(self):
        """What the counter itself counts, and the names to type."""
        data = self.explain("dram__bytes")
        [metric] = data["metrics"]
        self.assertEqual((metric["description"], metric["help"]), ("# of bytes accessed in DRAM", None))
        units = {row["metric"]: row["unit"] for row in data["full_names"]}
        self.assertEqual((units["dram__bytes.sum"], units["dram__bytes.sum.per_second"]), ("byte", "byte/second"))
        run = self.kprof("list", "metrics", "--chips", "GH100", "--query-metrics-mode", "suffix", "--metrics",
                         "dram__bytes", "--json")
        self.assertEqual(units, {row["metric"]: row["unit"] for row in json.loads(run.out)})
        meanings = {row["part"]: row["meaning"] for row in data["parts"]}
        self.assertEqual(len(meanings), len(data["parts"]))
        self.assertTrue(all(meanings.values()), meanings)
        self.assertEqual(meanings["per_second"], "for each second of the launch")
        self.assertEqual(self.explain("dram__bytes.sum")["full_names"], [])
        self.assertIsNone(self.explain("sm__throughput")["metrics"][0]["help"])

    def test_unit_of_a_stall(self):
        """The list, the explanation and the details page say "cycle", of which the description tells why."""
        [metric] = self.explain("stall.barrier")["metrics"]
        self.assertEqual(metric["unit"], "cycle")
        self.assertIn("the cycles that a warp waits", metric["description"])
        base = metric["metric"].partition(".")[0]
        listed = json.loads(self.kprof("list", "metrics", "--chips", "GH100", "--query-metrics-mode", "suffix",
                                       "--metrics", base, "--json").out)
        units = {row["metric"]: row["unit"] for row in listed}
        self.assertEqual(units[metric["metric"]], "cycle")

    def test_each_spelling(self):
        data = self.explain("gld_efficiency", "dram.bandwidth,flop_count_sp", "dram__bytes", "cf_issued", "registers",
                            "nvlrx__bytes.sum")
        metrics = {metric["name"]: metric for metric in data["metrics"]}
        self.assertEqual(len(metrics), 7)
        self.assertEqual(metrics["gld_efficiency"]["metric"],
                         "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct")
        self.assertEqual(metrics["dram.bandwidth"]["unit"], "byte/second")
        self.assertEqual(metrics["flop_count_sp"]["formula"].count("smsp__"), 3)
        self.assertEqual(metrics["flop_count_sp"]["passes"], 1)
        self.assertEqual(metrics["dram__bytes"]["kind"], "counter")
        self.assertEqual(metrics["cf_issued"]["closest"], "smsp__inst_executed_pipe_cbu.sum")
        self.assertIsNone(metrics["cf_issued"]["metric"])
        self.assertEqual(metrics["registers"]["passes"], 0)
        self.assertIsNone(metrics["nvlrx__bytes.sum"]["passes"])
        self.assertIn("only by itself", metrics["nvlrx__bytes.sum"]["help"])
        self.assertIn("for the whole GPU", self.explain("nvlink")["metrics"][0]["help"])
        shown = {row["label"] for row in data["shown"] if row["name"] == "dram.bandwidth"}
        self.assertLessEqual({"Memory Throughput", "DRAM, traffic"}, shown)

    def test_aliases_of_all_chips(self):
        """Each alias is explained on each chip, also where the chip counts nothing that it stands for. CUPTI takes
        seconds for a chip, so for each change two chips are asked."""
        folder = self.path("own")
        os.makedirs(os.path.join(folder, "aliases"))
        pathlib.Path(folder, "aliases/own.json").write_text(json.dumps({"id": "own", "name": "mine", "aliases": [
            {"name": "typo", "metric": "dram__byte.sum", "help": "Bytes."},
            {"name": "typo.sum", "expression": "dram__byte.sum + 1", "unit": "byte", "help": "Bytes."}]}),
            encoding="utf-8")
        own = ["--section-folder", folder]
        chips = [row["chip"] for row in json.loads(self.kprof("list", "chips", "--json").out)]
        if "KPROF_TEST_CHIPS" in os.environ:
            chips = ["GH100", "TU102"]
        listed = json.loads(self.kprof("list", "aliases", "--chips", ",".join(chips), "--json", *own).out)
        whole = set(os.environ.get("KPROF_TEST_CHIPS", "TU102,GA100,GH100,GB100,GB202").split(","))
        has = {(row["chip"], row["alias"]): row["metric"] for row in listed}
        self.assertIsNone(has["GH100", "typo"])
        self.assertIsNone(has["GH100", "typo.sum"])
        for chip in chips:
            names = [row["alias"] for row in listed if row["chip"] == chip and (chip in whole or not row["metric"])]
            run = self.kprof("explain", "--chips", chip, "--json", *names, *own)
            self.assertEqual((run.code, run.err), (0, ""), chip)
            explained = json.loads(run.out)["metrics"]
            self.assertEqual([row["name"] for row in explained], names)
            for row in explained:
                self.assertEqual(row["metric"] is None, has[chip, row["name"]] is None, (chip, row))
        (row,) = self.explain("typo", *own)["metrics"]
        self.assertEqual((row["description"], row["help"], row["passes"]),
                         ("not available on chip GH100, which cannot count dram__byte.sum", "Bytes.", None))

    def test_sections_and_findings(self):
        data = self.explain("SpeedOfLight", "LaunchStats", "WarpStall", "TooShort")
        metrics = {metric["name"]: metric for metric in data["metrics"]}
        self.assertEqual([metric["kind"] for metric in data["metrics"]], ["section"] * 2 + ["finding"] * 2)
        plan = json.loads(self.kprof("plan", "--chips", "GH100", "--section", "SpeedOfLight", "--json").out)
        self.assertEqual(metrics["SpeedOfLight"]["passes"], plan["plans"][0]["passes"])
        self.assertEqual((metrics["LaunchStats"]["passes"], metrics["TooShort"]["passes"]), (0, 1))
        self.assertEqual({row["name"] for row in data["shown"]}, {"SpeedOfLight", "LaunchStats"})
        self.assertEqual([(row["value"], row["unit"]) for row in data["thresholds"] if row["name"] == "TooShort"],
                         [(5000, "ns")])
        self.assertEqual([row["metric"] for row in data["members"] if row["name"] == "TooShort"],
                         ["gpu__time_duration.sum"])
        text = self.kprof("explain", "--chips", "GH100", "TooShort").out
        self.assertRegex(text, r"\n  Sections +SpeedOfLight ")
        self.assertRegex(text, r"\n  least +5 us  starting")
        self.assertNotRegex(text, r"\n  Metric +n/a")

    def test_members_that_the_chip_has(self):
        """The finding's formula names other counters on other chips."""
        members = {row["metric"] for row in self.explain("PipeUtilization")["members"]}
        self.assertIn("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active", members)
        self.assert_run(self.kprof("plan", "--chips", "GH100", "--metrics", ",".join(sorted(members))), 0)
        self.assertIn("launch__waves_per_multiprocessor",
                      {row["metric"] for row in self.explain("TailEffect")["members"]})

    def test_words_of_pages(self):
        """One with a comma, one that no section of kernels has, a heading, and a line of the verdict."""
        data = self.explain("DRAM, of its peak", "PCIe Read", "Hit Rate", "Limited by", "Worth most")
        self.assertEqual([metric["kind"] for metric in data["metrics"]],
                         ["finding", "counter", "column", "finding", "word"])
        self.assertGreater(len([row for row in data["shown"] if row["label"].endswith(", Hit Rate")]), 10)
        text = self.kprof("explain", "--chips", "GH100", "Hit Rate").out
        self.assertNotIn("n/a", text.split("Shown in")[0])
        data = self.explain("dram__bytes.sum, gld_efficiency")
        self.assertEqual([metric["name"] for metric in data["metrics"]], ["dram__bytes.sum", "gld_efficiency"])
        self.assertEqual(self.explain("atomics")["metrics"][0]["description"], "What limits the kernel")
        (pipe,) = self.explain("FMA pipe")["metrics"] # not that of samples over time
        self.assertEqual(pipe["metric"], "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed")
        for words in ("batch", "multiplex", "range", "application"): # of the head of a launch
            (mode,) = self.explain(f"{words} replay")["metrics"]
            self.assertEqual(mode["kind"], "word")
        for word in ("no work", "headroom"):
            self.assertEqual(self.explain(word)["metrics"][0]["kind"], "word")
        row = self.explain("Loads") # one metric of such a row says nothing of the others
        self.assertEqual((row["metrics"][0]["kind"], row["metrics"][0]["metric"]), ("row", None))
        self.assertIn("Loads, Sectors", [place["label"] for place in row["shown"]])

    def test_label_in_several_words(self):
        """A shell parts a label that nobody quotes."""
        for label in "Long Scoreboard", "DRAM, of its peak", "Hit Rate", "Warps wait":
            self.assertEqual(self.explain(*label.split()), self.explain(label), label)
        names = [metric["name"] for metric in self.explain("registers", "duration")["metrics"]]
        self.assertEqual(names, ["registers", "duration"])

    def test_numbers_that_findings_read(self):
        """What the report makes of samples and instructions is known, with the sections that collect it."""
        for name, section in (("timeline__tail_pct", "PmSampling"), ("timeline__phase2_unit", "PmSampling"),
                              ("derived__source_samples_not_issued", "SourceCounters")):
            (found,) = self.explain(name)["metrics"]
            self.assertEqual((found["kind"], found["sections"]), ("derived", section), name)
            self.assertIn(f"Sections     {section}", self.kprof("explain", "--chips", "GH100", name).out)
        findings = [row["finding"] for row in json.loads(self.kprof("list", "findings", "--json").out)]
        made = {row["metric"] for row in self.explain(*findings)["members"]}
        own = sorted(name for name in made if name.split("__")[0] in ("timeline", "derived") or name.endswith("_ideal"))
        self.assertGreater(len(own), 20)
        self.assertEqual([metric["name"] for metric in self.explain(*own)["metrics"]], own)

    def test_text(self):
        run = self.kprof("explain", "--chips", "GH100,GB202", "l2.hit_rate")
        self.assertEqual(run.code, 0, run.err)
        for text in ("Metric       lts__t_sector_hit_rate.pct", "GB202", "Unit         %", "L2 Hit Rate", "nvprof",
                     "a slice of the L2 cache"):
            self.assertIn(text, run.out)

    def test_unknown(self):
        for word, code, message in (("dram__byte.sum", 102, '"dram__bytes.sum"?'),
                                    ("l2.hitrate", 102, '"l2.hit_rate"?'), ("regex:dram", 101, "several metrics"),
                                    ("SpedOfLight", 102, 'finding; did you mean "SpeedOfLight"?'),
                                    ("warpstal", 102, 'finding; did you mean "WarpStall"?'),
                                    ("foobar", 102, '"foobar" is no metric, section, finding or stall reason')):
            run = self.kprof("explain", "--chips", "GH100", word)
            self.assertEqual((run.code, run.out), (code, ""), run.err)
            self.assertIn(message, run.err)
        self.assertEqual(self.kprof("explain").code, 101)
        some = self.kprof("explain", "--chips", "GH100", "dram__byte.sum", "l2.hit_rate", "nosuch", "--json")
        self.assertEqual(some.code, 102)
        self.assertEqual([metric["name"] for metric in json.loads(some.out)["metrics"]], ["l2.hit_rate"])
        self.assertEqual(len(some.err.splitlines()), 2)
        for name in "dram__byte.sum", "nosuch":
            self.assertIn(f'"{name}"', some.err)
        self.assertEqual(self.kprof("explain", "duration", "--metrics", "x").code, 101)


class Lists(Case):
    def assert_listed(self, words, *texts):
        run = self.kprof(*words)
        self.assert_run(run, 0)
        for text in texts:
            self.assertIn(text, run.out)

    def test_what_can_be_listed(self):
        run = self.kprof("list", "--csv")
        self.assert_run(run, 0)
        words = [row[0] for row in csv.reader(io.StringIO(run.out))][1:]
        self.assertIn("findings", words)
        usage = self.kprof("list", "--help").out
        self.assertIn("|".join(words), usage)

    def test_lists(self):
        self.assert_listed(["--list-sets"], "default", "basic", "GH100")
        if not TRIES_SOME: # CUPTI takes seconds for the sets of a chip
            self.assert_listed(["--list-sets", "--chip", "GH100,GA100"], "GH100", "GA100")
        self.assert_listed(["--list-metrics", "--chips", "ga100", "--section", "LaunchStats"], "launch__grid_size")
        self.assert_listed(["--list-sections"], "SpeedOfLight", "default")
        self.assert_listed(["--list-sections", "--verbose"], "How close the kernel comes", "Branch Efficiency",
                           "derived__branch_efficiency.pct", "n/a where no branch was counted")
        self.assertNotIn("How close", self.kprof("--list-sections").out)
        listed = csv.DictReader(io.StringIO(self.kprof("list", "tables", "--csv").out))
        tables = {row["table"]: (row["title"], row["old_name"]) for row in listed}
        self.assertEqual(tables["cuda_gpu_kern_sum"], ("CUDA GPU Kernel Summary", "gpukernsum"))
        self.assertIn("gpu_busy", tables)
        self.assertNotIn("osrt_sum", tables)
        self.assert_listed(["--list-rules"], "WarpStall", "WarpStateStats", "high")
        self.assert_listed(["list", "findings", "--section-folder", OWN_SETS, "--rule", "WideStore"],
                           "Stores are narrow")
        self.assert_listed(["--list-chips"], "GH100", "AD102", "H100, H200", " 10.0 ", "RTX 5090")
        self.assert_listed(["--query-metrics", "--chip", "GA100"], "\ndram__bytes ", "GA100")
        self.assert_listed(["--query-metrics", "--query-metrics-mode", "suffix", "--metrics", "dram__bytes"],
                           "dram__bytes.sum.per_second")
        self.assert_listed(["--query-metrics", "--metrics", "breakdown:gpu__dram_throughput"], "dram__cycles_active")
        self.assert_listed(["list", "metrics", "--metrics", "regex:^source:.*_mem_global"], "instruction",
                           "ncu: memory_l2_theoretical_sectors_global", "source:smsp__sass_sectors_mem_global_ideal")
        self.assert_listed(["list", "metrics", "--metrics", "group:smsp__pcsamp_warp_stall_reasons"],
                           "smsp__pcsamp_warps_issue_stalled_long_scoreboard")
        self.assert_listed(["list", "collected", "--set", "source"], "gpu__time_duration.sum",
                           "source:smsp__sass_inst_executed ", "smsp__pcsamp_warps_issue_stalled_wait_not_issued")
        self.assertNotIn("source:", self.kprof("list", "metrics", "--metrics", "regex:smsp__sass_inst_executed$").out)
        self.assert_listed(["list", "metrics", "--metrics", "group:LaunchStats"], "launch__grid_size")
        self.assert_listed(["--list-metrics", "--section", "Occupancy", "--chips", "GH100"],
                           "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__occupancy_limit_blocks")
        self.assertNotIn("dram__", self.kprof("--list-metrics", "--section", "Occupancy", "--chips", "GH100").out)
        self.assert_listed(["list", "collected", "--metrics", "dram__bytes", "--chips", "GH100"], "dram__bytes.sum")
        for pattern, has_group in (("sm__cycles_active$", False), (".*sm__cycles_active.avg$", False),
                                   ("TriageCompute.sm__cycles_active$", True)):
            run = self.kprof("list", "collected", "--metrics", f"regex:{pattern}", "--chips", "GH100")
            self.assertIn("sm__cycles_active.avg ", run.out)
            self.assertEqual("Triage" in run.out, has_group, pattern)
        nothing = self.kprof("--query-metrics", "--metrics", "regex:no_such_metric")
        self.assert_run(nothing, 102)
        self.assertEqual(nothing.out, "")
        for word, option in (("sets", "--list-sets"), ("sections", "--list-sections"), ("chips", "--list-chips"),
                             ("findings", "--list-rules"), ("metrics", "--query-metrics"),
                             ("collected", "--list-metrics")):
            chip = [] if word in ("sections", "findings", "chips") else ["--chips", "GH100"]
            self.assertEqual(self.kprof("list", word, *chip).out, self.kprof(option, *chip).out)

    def test_lists_for_programs(self):
        chips = ["GH100"] if TRIES_SOME else ["GH100", "GA100"]
        rows = list(csv.DictReader(self.kprof("--list-sets", "--chip", ",".join(chips), "--csv").out.splitlines()))
        self.assertEqual({row["chip"] for row in rows}, set(chips))
        self.assertTrue(all(int(row["passes"]) > 0 for row in rows))
        metrics = json.loads(self.kprof("--query-metrics", "--chip", "GH100", "--json").out)
        units = {metric["metric"]: metric["unit"] for metric in metrics}
        self.assertEqual(units["dram__bytes"], "byte")
        self.assertIsNone(units["LTS.TriageCompute.lts__average_t_sector_aperture_device"])
        self.assertEqual(json.loads(self.kprof("--list-chips", "--json").out)[0],
                         {"chip": "TU102", "compute_capability": "7.5", "gpus": "Quadro RTX 6000, RTX 2080 Ti"})
        wide = self.kprof("--list-chips", "--csv-layout", "wide").out.splitlines()
        self.assertEqual(wide[:2], ["chip,compute_capability,gpus", 'TU102,7.5,"Quadro RTX 6000, RTX 2080 Ti"'])

    def test_lists_in_markdown(self):
        chips = self.kprof("--list-chips", "--markdown").out.splitlines()
        self.assertEqual(chips[:3], ["| Chip | CC | GPUs such as |", "| --- | --- | --- |",
                                     "| TU102 | 7.5 | Quadro RTX 6000, RTX 2080 Ti |"])
        metrics = self.kprof("--query-metrics", "--chip", "GH100", "--markdown").out.splitlines()
        self.assertEqual(metrics[0], "| Metric | Kind | Unit | Chip | Description |")
        self.assertIn("| dram__bytes | counter | byte | GH100 | # of bytes accessed in DRAM |", metrics)
        plan = self.kprof("--plan", "--chips", "GH100", "--markdown").out.splitlines()
        self.assertEqual(plan[:4], ["## Plan", "", "| Chip | GH100 |", "| --- | --- |"])

    def test_readers_that_have_seen_enough(self):
        """A closed pipe ends what prints to it without a word, with the status that the manual has for it."""
        for words in (["list", "metrics", "--chips", "GH100"], ["list", "chips", "--json"],
                      ["plan", "--chips", "GH100"], ["explain", "dram__bytes", "--chips", "GH100"],
                      ["report", SAMPLE], ["report", SAMPLE, "--csv"], ["report", SAMPLE, "--html", "-"],
                      ["diff", SAMPLE, SAMPLE], ["export", SAMPLE, "--to", "long"], ["help"], ["report", "--help"],
                      ["version"]):
            reader, writer = os.pipe()
            os.close(reader)
            run = subprocess.run([KPROF, *words], env=self.environment({}), cwd=self.dir, stdout=writer,
                                 stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
            os.close(writer)
            self.assertEqual((run.returncode, run.stderr), (108, ""), words)

    def test_unknown_chip(self):
        self.assert_run(self.kprof("--list-sets", "--chip", "GH10"), 102)
        self.assert_run(self.kprof("--query-metrics", "--chip", "nonsense"), 102)
        for typed, answer in (("all", "is not known; kprof list chips has the names to give, such as GH100,GB202"),
                              ("gh10", 'is not known; did you mean "GH100"? kprof list chips has'),
                              ("B200", 'did you mean "GB100"?'), ("t4", 'did you mean "TU104"?'),
                              ("sm_80", 'did you mean "GA100"?'), ("Hopper", 'did you mean "GH100"?')):
            for words in (["plan"], ["list", "metrics"], ["list", "sets"], ["explain", "dram__bytes.sum"]):
                run = self.kprof(*words, "--chips", typed)
                self.assert_run(run, 102)
                self.assertIn(f'chip "{typed}" ', run.err)
                self.assertIn(answer, run.err)

    def test_chip_that_is_too_old(self):
        """CUPTI knows metrics of Volta, which kprof does not support."""
        self.assertNotIn("GV1", self.kprof("list", "chips").out)
        for words in (["plan"], ["list", "metrics"], ["list", "sets"], ["list", "aliases"],
                      ["explain", "dram__bytes.sum"]):
            run = self.kprof(*words, "--chips", "GH100,gv100")
            self.assert_run(run, 111)
            self.assertEqual((run.out, len(run.err.splitlines())), ("", 1))
            self.assertIn("chip GV100 has compute capability 7.0, and kprof supports 7.5 and higher", run.err)
            run = self.kprof(*words, "--chips", "V100")
            self.assert_run(run, 111)
            self.assertIn('"V100" is too old: chip GV100 has compute capability 7.0', run.err)

    def test_each_wrong_chip_is_told(self):
        for words in (["plan"], ["list"], ["list", "sets"], ["list", "chips"], ["list", "sections"],
                      ["list", "findings"], ["list", "aliases"], ["list", "metrics"], ["explain", "dram__bytes.sum"]):
            run = self.kprof(*words, "--chips", "foo,GH100,gv100,GA1000")
            self.assert_run(run, 102)
            lines = [line for line in run.err.splitlines() if "has no effect" not in line]
            self.assertEqual((run.out, len(lines)), ("", 3), run.err)
            for line, text in zip(lines, ('chip "foo" is not known', "chip GV100 has", 'did you mean "GA100"?')):
                self.assertIn(text, line)
        self.assert_listed(["list", "sections", "--chips", "gh100"], "SpeedOfLight")

    def test_help_and_version(self):
        self.assert_listed(["--help"], "usage: kprof", "--kernel-name", "the chips that kprof supports")
        self.assert_listed(["help", "report"], "usage: kprof report")
        wrong = self.kprof("help", "repot")
        self.assert_run(wrong, 101)
        self.assertIn("did you mean report?", wrong.err)
        self.assert_listed(["report", "-h"], "usage: kprof report")
        self.assertRegex(self.kprof("--version").out, r"^kprof \d+\.\d+\.\d+\n$")
        self.assertRegex(self.kprof("version").out, r"^kprof \d+\.\d+\.\d+\n$")

    def test_completion(self):
        self.assert_listed(["--complete", "--set"], "default\n", "basic\n")
        self.assert_listed(["--complete", "--section"], "SpeedOfLight\n")
        self.assert_listed(["--complete", "--chips"], "GH100\n")
        self.assert_listed(["--complete", "line", "--", "plan", "--chips", "GH"], "GH100\tH100, H200, GH200\n")
        self.assert_listed(["report", "--complete", "options"], "--page\n", "-k\n")


class Plans(Case):
    """--plan says what a run would cost and starts nothing."""

    def test_nothing_is_started(self):
        run = self.kprof("--injection-path", INJECTION, "--plan", "-o", "run", APP, "say=started", f"launch={SCALE}")
        self.assert_run(run, 0)
        self.assertNotIn("started", run.out + run.err)
        self.assertFalse(os.path.exists(self.path("run.kprof")))
        self.assertRegex(run.out, r"Chip +GH100\n")
        self.assertNotIn("Measured on", run.out)

    def test_nine_rows_and_all_of_them(self):
        options = ["--plan", "--chips", "GH100", "--max-passes", "9"]
        rows = self.kprof(*options).out.splitlines()
        self.assertEqual((rows[0], len(rows)), ("Plan", 10))
        for format in [], ["--markdown"]:
            every = self.kprof(*options, *format, "--verbose").out
            for word in "Passes with counters of the SMs", "Time to save a GiB", "Measured on":
                self.assertIn(word, every)
                self.assertNotIn(word, self.kprof(*options, *format).out)
        plan = json.loads(self.kprof(*options, "--json").out)
        self.assertIn("sm_passes", plan["plans"][0])
        self.assertEqual(plan["prices"][0]["measured_on"], "NVIDIA H200")

    def test_nothing_is_saved_for_multiplexing(self):
        options = ["plan", "--chips", "GH100", "-c", "100", "--allocated", "16GB"]
        self.assertRegex(self.kprof(*options).out, r"Time in all, about +\d")
        run = self.kprof(*options, "--replay-mode", "multiplex")
        self.assertRegex(run.out, r"Time in all, if launches were repeated +\d")
        self.assertRegex(run.out, r"Memory to save, if launches were repeated +\d")

    def test_wrong_names_are_said(self):
        self.assert_run(self.kprof("--plan", "--chips", "GH10"), 102)
        self.assert_run(self.kprof("--plan", "--chips", "GH100", "--set", "ful"), 102)
        self.assert_run(self.kprof("--plan", "--chips", "GH100", "--metrics", "dram__byte.sum"), 102)
        run = self.kprof("list", "metrics", "--chips", "GH100", "--metrics", "dram__bytes.summ")
        self.assert_run(run, 102)
        self.assertIn('did you mean "dram__bytes.sum"?', run.err)
        for word, meant in (("breakdown:sm__throughpt", "sm__throughput"), ("group:SpeedOfLigt", "group:SpeedOfLight")):
            run = self.kprof("plan", "--chips", "GH100", "--metrics", word)
            self.assert_run(run, 102)
            self.assertIn("did you mean", run.err)
            self.assertIn(meant, run.err)

    def test_options_from_a_file(self):
        """A plan takes what the run would take."""
        with open(self.path("mine.cfg"), "w") as file:
            file.write("[Launch-and-attach]\n--metrics=dram__bytes.sum\n[List]\n--set=full\n")
        for words in (["plan"], ["--plan"]):
            run = self.kprof(*words, "--chips", "GH100", "--config-file-path", "mine.cfg", "--csv")
            self.assert_run(run, 0)
            self.assertIn('"metrics","",1\n', run.out)

    def test_wrong_choices_of_launches_are_said(self):
        """A plan is a line of a run: what the run would refuse is refused before it."""
        for words in (["-k", "regex:("], ["--nvtx-include", "regex:("], ["--schedule", "1;2"],
                      ["--range-filter", "2"], ["--python-include", "@@f"], ["--step", "a/"]):
            run = self.kprof("plan", "--chips", "GH100", "--metrics", METRIC, *words)
            self.assert_run(run, 101)
            self.assertIn(words[0], run.err)

    def test_nothing_to_count_beyond_the_budget(self):
        run = self.kprof("plan", "--chips", "GH100", "--metrics", "launch__grid_size", "--budget", "0.1")
        self.assert_run(run, 0)
        self.assertRegex(run.out, r"Passes +0\n")

    def test_a_plan_for_each_chip(self):
        run = self.kprof("--plan", "--chips", "GH100,TU102", "--csv", "-c", "7")
        self.assert_run(run, 0)
        rows = list(csv.DictReader(io.StringIO(run.out)))
        plans = [row for row in rows if row["list"] == "plans"]
        self.assertEqual([row["value"] for row in plans if row["field"] == "chip"], ["GH100", "TU102"])
        self.assertEqual({row["value"] for row in plans if row["field"] == "launches"}, {"7"})

    def test_slow_passes(self):
        slow, fast = [self.plan(*options) for options in ([], ["--metrics", "dram__bytes.sum"])]
        self.assertEqual([(plan["passes"], plan["slow_passes"]) for plan in (slow, fast)], [(8, 8), (1, 0)])
        self.assertLess(8 * fast["launch_time"], slow["launch_time"])

    def test_cache_control_has_a_price(self):
        times = [self.plan("--cache-control", caches)["launch_time"] for caches in ("none", "l2", "all")]
        prices = json.loads(self.kprof("--plan", "--chips", "GH100", "--json").out)["prices"][0]
        self.assertAlmostEqual(times[1] - times[0], 8 * prices["flush_time"], -1)
        self.assertAlmostEqual(times[2] - times[0], 8 * prices["empty_time"], -1)

    def plan(self, *options):
        run = self.kprof("--plan", "--chips", "GH100", "--json", "-c", "10", "--replay-batch", "5", *options)
        self.assert_run(run, 0)
        return json.loads(run.out)["plans"][0]

    def test_bytes_to_save(self):
        unknown, given = self.plan(), self.plan("--allocated", "60G")
        size = 60 << 30
        sizes = ("allocated", "saved_per_batch", "saved", "restored")
        self.assertEqual([unknown[key] for key in sizes], [None] * 4)
        self.assertEqual([given[key] for key in sizes], [size, size, 2 * size, 9 * 2 * size])
        self.assertEqual((unknown["saved_fits"], given["saved_fits"]), ("not known", "enough"))
        self.assertEqual(given["allocated_from"], "given")
        self.assertIn("more than the GPU has", self.plan("--allocated", "200G")["allocated_from"])
        self.assertAlmostEqual(given["total_time"], unknown["total_time"] + 60 * unknown["memory_time_per_gib"], -3)
        for plan in unknown, given:
            self.assertEqual(plan["batch_counter_data"], 5 * plan["counter_data"])

    def test_one_pass_saves_nothing(self):
        for size in [], ["--allocated", "60G"]:
            plan = self.plan("--metrics", "dram__bytes.sum", *size)
            self.assertEqual([plan[key] for key in ("saved_per_batch", "saved", "restored")], [0, 0, 0])
            self.assertEqual(plan["allocated"], 60 << 30 if size else None)
            self.assertEqual((plan["memory_time_per_gib"], plan["saved_fits"]), (0, "enough"))

    def test_what_does_not_fit_twice(self):
        given = self.plan("--allocated", "110GB")
        self.assertEqual(given["device_memory"], 139 << 30)
        self.assertIn("prices", given["device_memory_from"])
        self.assertIn("multiplexed", given["saved_fits"])
        run = self.kprof("--plan", "--chips", "GH100", "-c", "20", "--allocated", "110GB", "--budget", "1.2")
        self.assert_run(run, 0)
        self.assertIn("are left out to keep within --budget", run.err)

    def test_memory_of_the_gpu_that_is_here(self):
        run = self.kprof("--plan", "--json", "--allocated", "50G")
        self.assert_run(run, 0)
        plan = json.loads(run.out)["plans"][0]
        self.assertEqual(plan["device_memory"], 80 << 30)
        self.assertIn("here", plan["device_memory_from"])
        self.assertRegex(self.kprof("--plan").out, r"\n  Prices +of an NVIDIA H200\n")
        self.assertIn("multiplexed", plan["saved_fits"])

    def test_bytes_that_are_not_known(self):
        text = self.kprof("--plan", "--chips", "GH100").out
        self.assertRegex(text, r"Prices and memory +of an NVIDIA H200, 149 GB\n")
        self.assertRegex(text, r"Memory to save \(depends on --allocated\) +n/a\n")
        self.assertRegex(text, r"Time in all, without memory, about +\d")
        rows = csv.DictReader(io.StringIO(self.kprof("--plan", "--chips", "GH100", "--csv").out))
        fields = {row["field"]: row["value"] for row in rows if row["list"] == "plans"}
        self.assertEqual((fields["allocated"], fields["saved_per_batch"], fields["saved"]), ("", "", ""))
        self.assertIn("--allocated", fields["allocated_from"])

    def test_bytes_that_are_given(self):
        options = ["--plan", "--chips", "GH100", "-c", "10", "--allocated", "1.5GB"]
        text = self.kprof(*options, "--verbose").out
        self.assertRegex(text, r"Saved for a batch +1\.50 GB\n")
        self.assertRegex(text, r"Time in all, about +\d")
        self.assertRegex(text, r"Space for copies +enough\n")
        self.assertNotIn("Left out", text)
        rows = csv.DictReader(io.StringIO(self.kprof(*options, "--csv").out))
        fields = {row["field"]: (row["value"], row["unit"]) for row in rows if row["list"] == "plans"}
        self.assertEqual(fields["saved"], ("1500000000", "byte"))

    def test_wrong_sizes_are_said(self):
        for size in ("0", "-1G", "much", "99999999T"):
            run = self.kprof("--plan", "--chips", "GH100", f"--allocated={size}")
            self.assert_run(run, 101)
            self.assertIn(f'--allocated: "{size}" is not valid', run.err)

    def test_json_is_as_documented(self):
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../report"))
        from check_outputs import fits
        with open(os.path.join(os.path.dirname(__file__), "../../docs/report.schema.json")) as file:
            schema = json.load(file)
        for size in ["--allocated", "1T"], []:
            run = self.kprof("--plan", "--chips", "GH100", "--json", "--max-passes", "3", "--replay-batch", "2", "-c",
                             "5", *size)
            self.assert_run(run, 0)
            data = json.loads(run.out)
            self.assertIsNone(fits(data, schema, schema))
        plan = data["plans"][0]
        self.assertLessEqual(plan["passes"], 3)
        self.assertEqual((plan["launches"], plan["launches_from"], plan["batches"]), (5, "given", 3))
        self.assertEqual(plan["left_out"], len(data["left_out"]))
        self.assertGreater(plan["left_out"], 0)


class Limits(Case):
    """What is left out is said, and the run keeps within the limits."""

    def run_limited(self, *options):
        return self.kprof("--injection-path", INJECTION, "-o", "run", *options, APP, f"launch={VECTOR_ADD}")

    def test_passes(self):
        run = self.run_limited("--max-passes", "2")
        self.assert_run(run, 0)
        self.assertRegex(run.err, r"of 110 metrics are left out to keep within --max-passes: "
                                  r"sm__throughput\S+, .* more")
        passes = self.query("run.kprof", "SELECT max(passes) FROM launch")[0][0]
        self.assertTrue(1 <= passes <= 2)
        page = self.kprof("report", "run.kprof")
        self.assert_run(page, 0)
        self.assertIn("Duration", page.out)
        self.assertNotIn("Compute (SM) Throughput", page.out)
        session = json.loads(self.kprof("report", "run.kprof", "--page", "session", "--json").out)
        self.assertEqual(session["left_out"][0]["metric"], "sm__throughput.avg.pct_of_peak_sustained_elapsed")
        self.assertIn(f"GH100: {len(session['left_out'])} of 110 metrics are left out", run.err)

    def test_each_headline_has_its_estimate(self):
        run = self.kprof("--plan", "--chips", "GH100", "--set", "full", "--max-passes", "3", "--json")
        self.assert_run(run, 0)
        left_out = [row["metric"] for row in json.loads(run.out)["left_out"]]
        for headline in ("sm__throughput.avg.pct_of_peak_sustained_elapsed",
                         "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"):
            self.assertIn(headline, left_out)
            self.assertRegex(run.err, rf"GH100: {headline} is left out, and the greatest of these parts stands in for "
                                      r"it: \S+__\S+")

    def test_every_name_is_told_when_asked_for(self):
        run = self.run_limited("--max-passes", "2", "--verbose")
        self.assert_run(run, 0)
        left_out = re.search(r"GH100: (\d+) of 110 metrics are left out[^:]*: (.*)", run.err)
        self.assertEqual(len(left_out[2].split(", ")), int(left_out[1]))

    def test_budget(self):
        run = self.run_limited("--budget", "0.6", "-c", "10")
        self.assert_run(run, 0)
        self.assertRegex(run.err, r"GH100: about 0\.\d s for 10 launches, of a budget of 0\.6 s")
        self.assertIn("keep within --budget", run.err)
        assumed = self.kprof("--plan", "--chips", "GH100", "--budget", "100")
        self.assertIn("1000 launches (assumed; --launch-count tells how many)", assumed.err)

    def test_memory_counts_for_the_budget(self):
        def kept(*size):
            run = self.kprof("--plan", "--chips", "GH100", "--json", "--budget", "1.5", "-c", "10", *size)
            self.assert_run(run, 0)
            plan = json.loads(run.out)["plans"][0]
            self.assertLessEqual(plan["total_time"], 1.5e9)
            return plan["metrics"]
        everything = kept()
        self.assertEqual(kept("--allocated", "1G"), everything)
        self.assertLess(kept("--allocated", "200G"), everything)

    def test_nothing_fits(self):
        metric = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
        run = self.run_limited("--max-passes", "3", "--metrics", metric)
        self.assert_run(run, 101)
        self.assertIn("fits into --max-passes 3", run.err)
        self.assertFalse(os.path.exists(self.path("run.kprof")))


class Progress(Case):
    def on_terminal(self, *options, expected):
        """All that a terminal as stderr and stdout shows. The third launch goes on once it shows what is expected."""
        controller, terminal = pty.openpty()
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, *options, APP, "say=hello",
             f"launch={VECTOR_ADD}*4"], stdout=terminal, stderr=terminal,
            env=self.environment({"KPROF_SIM_SLOWNESS": "1", "KPROF_SIM_HOLD": self.path("go on"), "TERM": "xterm"}))
        os.close(terminal)
        shown = b""
        while select.select([controller], [], [], PATIENCE_S)[0]:
            try:
                shown += os.read(controller, 65536)
            except OSError:
                break
            if re.search(expected, shown.decode()):
                open(self.path("go on"), "w").close()
        os.close(controller)
        self.assertEqual(process.wait(timeout=PATIENCE_S), 0, shown)
        self.assert_clean()
        return shown.decode()

    def test_status_line_of_a_batch(self):
        self.on_terminal("-c", "4", expected="0 of 4 launches and 2 or more not stored yet, vectorAdd, pass 1 of")

    def test_status_line(self):
        shown = self.on_terminal("-c", "4", "--replay-batch", "1",
                                 expected=r"\rkprof: \d of 4 launches, vectorAdd, pass 1 of \d+, .*left")
        # Cleared for good before the results.
        last = shown.rindex("\rkprof:")
        cleared = shown.index("\r\033[K", last + 1)
        self.assertGreater(shown.rindex("vectorAdd"), cleared)
        self.assertTrue(re.search(r"\033\[[0-9;]*m", shown[cleared:]), "results on a terminal are coloured")

    def test_quiet(self):
        shown = self.on_terminal("-q", "--log-file", self.path("text"), expected="hello")
        self.assertNotIn("\rkprof:", shown)

    def test_no_terminal_no_line(self):
        run = self.profile(["-o", "run"], [f"launch={VECTOR_ADD}*2"],
                           env={"KPROF_SIM_MS": "200", "KPROF_SIM_SLOWNESS": "1"})
        self.assert_run(run, 0)
        self.assertNotIn("\r", run.err)
