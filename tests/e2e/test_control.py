"""kprof ctl tells a run what to measure while its application runs. The application calls it, so that nothing here
depends on time."""

import json
import re
import shutil
import socket
import sys
import time

from harness import *

CTL = f"{KPROF} ctl"


class Control(Case):
    def collect(self, options, steps, **keywords):
        return super().collect(["--armed", "no", *options], steps, **keywords)

    def test_preloaded_libraries(self):
        """Another tool of the process needs one more while kprof is not armed."""
        os.mkdir(self.path("lib"))
        for name in ("libkprof-exec.so", "libkprof-guests.so"): # any library will do
            shutil.copy(os.path.join(BUILD, "tests/sim/libkprof-exec.so"), self.path(f"lib/{name}"))
        injection = self.path("lib/libkprof-inject.so")
        shutil.copy(INJECTION, injection)
        for armed, names in (("no", ("libkprof-exec.so", "libkprof-guests.so")), ("yes", ("libkprof-exec.so",))):
            run = self.kprof("--injection-path", injection, "--metrics", METRIC, "--armed", armed, "-f", "-o", "run",
                             APP, "env=LD_PRELOAD", f"launch={VECTOR_ADD}")
            paths = ":".join(self.path(f"lib/{name}") for name in names)
            self.assertEqual(run.out.splitlines()[0], f"LD_PRELOAD={paths}", run.err)

    def start(self, *steps, name="run", env=None):
        """A run whose application then waits until its standard input ends."""
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "--armed", "no", "-o", name, APP, *steps,
             "say=ready", "wait"], cwd=self.dir, text=True, env=self.environment(env or {}), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.stdout.readline() not in ("ready\n", ""):
            continue
        self.addCleanup(process.kill)
        return process

    def end(self, process, code=0):
        out, err = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, code, err)
        self.assert_clean()
        return err

    def connect(self):
        session, = os.listdir(self.tmp)
        client = socket.socket(socket.AF_UNIX)
        folder = os.open(os.path.join(self.tmp, session), os.O_RDONLY)
        client.connect(f"/proc/self/fd/{folder}/gpu.socket")
        os.close(folder)
        return client

    def answer(self, client):
        client.settimeout(PATIENCE_S)
        text = b""
        while block := client.recv(4096):
            text += block
        client.close()
        return text.decode()

    def ask(self, data):
        """What is answered to a command of these bytes."""
        client = self.connect()
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return self.answer(client)

    def test_only_what_is_launched_between_start_and_stop_is_measured(self):
        run = self.collect([], [f"launch={VECTOR_ADD}*2", f"run={CTL} start", f"launch={SCALE}*3", f"run={CTL} stop",
                                f"launch={VECTOR_ADD}*4", f"run={CTL} start $PPID", f"launch={VECTOR_ADD}"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"] * 3 + ["vectorAdd"])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM launch WHERE measured = 0"), [(0,)])
        # those before it was armed were not seen, and nothing counts them
        self.assertEqual(self.query("run.kprof", "SELECT launches, ended FROM process"), [(4, 1)])
        self.assertIn("is not measured before kprof ctl start", run.err)

    def test_other_spelling(self):
        run = self.kprof("run", "--injection-path", INJECTION, "--metrics", METRIC, "--wait", "-f", "-o", "run", APP,
                         f"launch={VECTOR_ADD}", f"run={CTL} start", f"launch={SCALE}", f"run={CTL} stop")
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"])

    def test_nothing_is_launched_between_start_and_stop(self):
        run = self.collect([], [f"launch={SCALE}", f"run={CTL} start", f"run={CTL} stop", f"launch={SCALE}"])
        self.assert_run(run, 106)
        self.assertIn("the application launched no kernel between kprof ctl start and kprof ctl stop", run.err)

    def test_nothing_is_measured_without_it(self):
        run = self.collect([], [f"launch={VECTOR_ADD}*2"])
        self.assert_run(run, 106)
        self.assertIn("kprof ctl start has armed no process", run.err)

    def test_status(self):
        run = self.collect([], ["init", f"run={CTL} status --json", f"run={CTL} start; {CTL} status --json",
                                f"launch={VECTOR_ADD}*3", f"run={CTL} stop; {CTL} status --json"])
        self.assert_run(run, 0)
        found, at = [], 0
        while at < len(run.out):
            document, end = json.JSONDecoder().raw_decode(run.out[at:])
            found.append([(row["state"], row["measured"]) for row in document])
            at += end + 1
        self.assertEqual(found, [[("unarmed", 0)], [("armed", 0)], [("unarmed", 3)]])

    def test_process_that_stops_measuring_by_itself(self):
        """kprof ctl tells why, and tries again."""
        for fault, code, reason in (("permission", 104, "for root alone"), ("busy", 105, "another tool holds")):
            tell = f"run={CTL} status --csv; {CTL} stop $PPID; echo $?; {CTL} status --csv"
            run = self.collect(["-q"], ["init", f"run={CTL} start", f"launch={SCALE}", tell, f"run={CTL} start -o part",
                                        f"launch={SCALE}", tell], env={"KPROF_SIM_FAULT": fault})
            self.assertEqual(run.code, code, run.err)
            self.assertEqual([line.split(",")[1] if "," in line else line for line in run.out.splitlines()
                              if "process" not in line], ["failed", str(code), "unarmed"] * 2)
            self.assertEqual(run.err.count("a chosen launch could not be measured: "), 3, run.err) # 2: kprof ctl stop
            self.assertIn(reason, run.err)
            os.remove(self.path("part.kprof"))

    def test_full_disks(self):
        """A process is stopped all the same, and none is armed that could not write what it measures."""
        run = self.collect([], ["liftlimit", f"run={CTL} start", f"launch={VECTOR_ADD}*5000", "settle",
                                f"run={CTL} status --csv; {CTL} stop; echo $?; {CTL} status --csv",
                                f"run={CTL} start; echo $?"],
                           preexec_fn=limit_file_size(400 << 10))
        self.assertEqual(run.code, 108, run.err)
        states = [line.split(",")[1] for line in run.out.splitlines() if line[0].isdigit() and "," in line]
        self.assertEqual((states, run.out.count("108\n")), (["armed", "unarmed"], 2), run.out)
        self.assertIn("kprof ctl stop ends their measuring", run.err)
        self.assertEqual(self.kprof("recover", "-f").code, 0)
        with open(self.path("limited"), "w") as file: # the application alone may write no larger files
            file.write('ulimit -S -f 100\nexec "$@"\n')
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--armed", "no", "-f", "-o", "run", "sh",
                         self.path("limited"), APP, f"run={CTL} start", f"launch={VECTOR_ADD}*5000",
                         f"run={CTL} stop; echo $?", # then until what a start writes does not fit either
                         f"run=while {CTL} start; do :; done; {CTL} status --csv")
        self.assert_run(run, 108)
        self.assertEqual(run.out.splitlines()[0], "108")
        self.assertIn(",failed,", run.out)
        self.assertEqual(run.err.count("the process could not write what it measured"), 2)

    def test_launch_count_holds_for_each_start(self):
        run = self.collect(["-c", "2"], [f"run={CTL} start", f"launch={SCALE}*3", f"run={CTL} stop", f"run={CTL} start",
                                         f"launch={VECTOR_ADD}*3"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"] * 2 + ["vectorAdd"] * 2)

    def test_starting_and_stopping_twice_changes_nothing(self):
        run = self.collect([], [f"run={CTL} stop", f"run={CTL} start; {CTL} start", f"launch={SCALE}*2",
                                f"run={CTL} stop; {CTL} stop --quiet", f"launch={SCALE}"])
        self.assert_run(run, 0)
        none = "kprof: no process has called CUDA yet"
        self.assertEqual([line for line in run.err.splitlines() if " process " in line and "is not" not in line],
                         [none, *[none + "; each is armed when it does"] * 2, "kprof: 0 of 1 process is armed"])
        self.assertEqual(self.launches(), ["scale"] * 2)

    def test_processes_that_begin_later_are_what_all_are(self):
        run = self.collect([], [f"run={CTL} start", f"processes=2:{SCALE}", f"run={CTL} stop", f"processes=2:{SCALE}"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"] * 2)

    def test_one_process_of_several(self):
        run = self.collect([], ["init", f"run={CTL} start $PPID", f"processes=2:{SCALE}", f"launch={VECTOR_ADD}"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"])

    def test_process_without_cuda_is_told_of(self):
        for word, told in ("start", 1), ("stop", 0):
            run = self.collect([], ["init", f"run={CTL} {word} $$"])
            pattern = r"(?m)^kprof: process \d+ has not called CUDA yet; it is armed when it does$"
            self.assertEqual(len(re.findall(pattern, run.err)), told, run.err)
            self.assertIn("kprof: 0 of 1 process is armed", run.err)

    def test_program_that_calls_exec(self):
        run = self.collect([], [f"run={CTL} start", f"launch={VECTOR_ADD}", "exec", f"launch={SCALE}",
                                f"run={CTL} stop", f"launch={SCALE}"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd", "scale"])

    def test_child_of_fork_is_not_armed(self):
        run = self.collect([], ["init", f"run={CTL} start", f"fork={SCALE}", f"launch={VECTOR_ADD}"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["vectorAdd"])

    def test_exit_at_once(self):
        for step, code in (("_exit=3", 3), ("leave=quick_exit:5", 5)):
            run = self.collect([], [f"run={CTL} start", f"launch={SCALE}*2", f"run={CTL} stop", f"launch={SCALE}",
                                    step])
            self.assert_run(run, code)
            self.assertEqual(self.launches(), ["scale"] * 2)
            self.assertEqual(self.query("run.kprof", "SELECT ended FROM process"), [(1,)])

    def test_busy_counters_are_told_and_can_be_tried_again(self):
        run = self.collect([], [f"run={CTL} start", f"launch={SCALE}", f"run={CTL} stop && {CTL} start"],
                           env={"KPROF_SIM_FAULT": "busy"})
        self.assert_run(run, 105)
        self.assertIn("another tool holds the counters", run.err)

    def test_part_is_a_report_while_the_program_goes_on(self):
        run = self.collect([], [f"run={CTL} start", f"launch={SCALE}*3", f"run={CTL} stop -o part",
                                f"run={KPROF} report part --page raw --csv-layout wide", f"run={CTL} start",
                                f"launch={VECTOR_ADD}*2"])
        self.assert_run(run, 0)
        self.assertEqual([line.split(",")[0] for line in run.out.splitlines()], ['"launch"', "0", "1", "2"])
        self.assertIn("report: " + self.path("part.kprof"), run.err)
        self.assertEqual(self.launches("part.kprof"), ["scale"] * 3)
        self.assertEqual(self.query("part.kprof", "SELECT launches FROM seen"), [(3,)])
        self.assertEqual(self.launches(), ["scale"] * 3 + ["vectorAdd"] * 2)
        self.assertEqual(self.kprof("report", "part").err, "") # it has all of its time

    def test_part_of_a_process_that_dies(self):
        run = self.collect([], [f"run={CTL} start -o part", f"launch={SCALE}", "settle", "raise=9"])
        self.assert_run(run, 137)
        self.assertIn("processes cut short: 1", self.kprof("report", "part").err)

    def test_parts_of_other_sets(self):
        other = "--metrics sm__cycles_active.avg"
        run = self.collect([], [f"run={CTL} start", f"launch={SCALE}", f"run={CTL} start {other} -o one",
                                f"launch={VECTOR_ADD}*2", f"run={CTL} start -o two", f"launch={SCALE}*3",
                                f"run={CTL} start {other} -o three", f"launch={VECTOR_ADD}*4"])
        self.assert_run(run, 0)
        cycles = "sm__cycles_active.avg"
        for name, launches, metric in (("run", ["scale"] * 4, METRIC), ("one", ["vectorAdd"] * 2, cycles),
                                       ("two", ["scale"] * 3, METRIC), ("three", ["vectorAdd"] * 4, cycles)):
            name += ".kprof"
            self.assertEqual(self.launches(name), launches)
            self.assertEqual(self.query(name, "SELECT name FROM metric WHERE kind = 'hardware'"), [(metric,)])
            self.assertEqual(self.query(name, "SELECT count(*) FROM launch WHERE measured = 0"), [(0,)])

    def test_part_with_samples_over_time(self):
        """Its launches are in no other report, and nor is what follows them."""
        steps = [f"run={CTL} start --set pmsampling -o part", f"launch={SCALE}*2", f"run={CTL} stop",
                 f"run={CTL} start", f"launch={VECTOR_ADD}", f"run={CTL} stop"]
        self.assert_run(self.collect([], steps), 0)
        self.assertEqual(self.launches("part.kprof"), ["scale", "scale"])
        self.assertEqual(self.query("part.kprof", "SELECT count(DISTINCT launch_id) FROM timeline_pass"), [(2,)])
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM timeline_pass"), [(0,)])

    def test_instructions_that_the_run_was_not_started_for(self):
        """They are left out of a set, which is said, and all else of it is measured."""
        steps = [f"run={CTL} start --set detailed -o part", f"launch={SCALE}", f"run={CTL} stop"]
        run = self.collect([], steps)
        self.assert_run(run, 0)
        self.assertIn("so that they are left out here", run.err)
        self.assertEqual(self.launches("part.kprof"), ["scale"])
        [(measured, profiled)] = self.query("part.kprof", "SELECT measured, (SELECT count(*) FROM code_profile WHERE "
                                            "counted+sampled>0) FROM launch")
        self.assertGreater(measured, 100)
        self.assertEqual(profiled, 0)

    def test_processes_that_begin_with_another_set(self):
        run = self.collect([], [f"run={CTL} start --metrics sm__cycles_active.avg -o part", f"processes=2:{SCALE}",
                                f"run={CTL} stop"])
        self.assert_run(run, 0)
        self.assertIn("2 launches were measured with sets of kprof ctl start, and are in", run.err)
        self.assertEqual(self.launches("part.kprof"), ["scale"] * 2)

    def test_a_set_without_counters(self):
        """Launches are measured then, too, as they are where kprof is armed from the start."""
        for asked in ("launch__grid_size", "launch__registers_per_thread,device__attribute_multiprocessor_count"):
            run = self.collect(["-f"], [f"run={CTL} start --metrics {asked} -f -o part", f"launch={SCALE}*2",
                                  f"run={CTL} stop"])
            self.assert_run(run, 0)
            self.assertIn("2 launches were measured with sets of kprof ctl start, and are in", run.err)
            self.assertEqual(self.launches("part.kprof"), ["scale"] * 2)

    def test_what_cannot_be_started(self):
        for words, code, err in (("start --set fulll -o x", 102, "did you mean"),
                                 ("start --metrics sm__cycles_active.avg", 101, "a report of their own: -o FILE"),
                                 ("start --metrics source:smsp__sass_inst_executed -o x", 101, "give such a set"),
                                 ("start -o there", 108, "exists already"),
                                 ("start -o y; " + CTL + " start -o y", 108, "is to be the report of an earlier"),
                                 ("stop -o x", 101, "nothing was started"),
                                 ("stop --set full", 101, "are chosen by kprof ctl start"),
                                 ("start -o /nowhere/x", 108, "/nowhere/x.kprof: cannot create")):
            open(self.path("there.kprof"), "w").close()
            run = self.collect([], ["init", f"run={CTL} {words}; echo $?", f"launch={SCALE}"])
            self.assertIn(err, run.err)
            self.assertEqual(run.out.splitlines()[-1], str(code), words)
            self.assertFalse(os.path.exists(self.path("x.kprof")))

    def test_what_does_not_go_with_it(self):
        for options in (["--replay-mode", "app-range"], ["--census"]): # with metrics
            run = self.collect(options, ["init"])
            self.assert_run(run, 101)
            self.assertIn("--armed no", run.err)

    def test_census(self):
        """It counts what is launched between start and stop; a part has what was launched since its start."""
        line = ("--injection-path", INJECTION, "--armed", "no", "--census", "-f", "-o", "run", APP)
        run = self.kprof(*line, f"launch={SCALE}*3", f"run={CTL} start", f"launch={VECTOR_ADD}*10", f"run={CTL} stop",
                         f"launch={SCALE}*4", f"run={CTL} start -o part", f"launch={VECTOR_ADD}*2", f"launch={SCALE}",
                         f"run={CTL} stop", f"launch={SCALE}*9", f"run={CTL} start --set full; echo $?",
                         f"run={CTL} start", f"processes=2:{SCALE}", f"launch={SCALE}")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "101\n")
        self.assertIn("this run takes a census", run.err)
        self.assertIn("census: 16 launches of 2 kernels took", run.err)
        rows = "SELECT function, census.launches FROM census JOIN kernel ON kernel.id=kernel_id ORDER BY census.id"
        self.assertEqual(self.query("part.kprof", rows), [("vectorAdd", 2), ("scale", 1)])
        self.assertEqual(sorted(self.query("run.kprof", rows)),
                         sorted([("vectorAdd", 10), ("vectorAdd", 2)] + [("scale", 1)] * 4))
        run = self.kprof(*line, f"launch={SCALE}*3")
        self.assert_run(run, 106)
        self.assertIn("kprof ctl start has armed no process", run.err)

    def test_ranges_as_one(self):
        """Those that begin while the process is armed; one that is open as that ends has a reason."""
        step = ["push=step", f"launch={SCALE}*3", "pop"]
        run = self.collect(["--replay-mode", "range", "--nvtx-include", "step/"], [
            *step, "push=step", f"launch={SCALE}", f"run={CTL} start", f"launch={SCALE}", "pop", *step,
            "push=step", f"launch={SCALE}", f"run={CTL} stop", f"launch={SCALE}", "pop", *step,
            f"run={CTL} start --metrics sm__cycles_active.avg -o part", *step, f"run={CTL} stop", *step])
        self.assert_run(run, 0)
        counted = "SELECT measured, reason LIKE '%closed by kprof ctl stop', value FROM launches JOIN launch_metrics " \
            "USING (launch) WHERE metric='launch__range_launches' ORDER BY measured DESC"
        self.assertEqual(self.query("run.kprof", counted), [(1, 0, 3), (0, 1, None)])
        self.assertEqual(self.query("part.kprof", counted), [(1, 0, 3)])

    def test_part_of_a_program_that_ends_is_made_all_the_same(self):
        run = self.collect([], [f"run={CTL} start -o part", f"launch={SCALE}*2", "_exit=3"])
        self.assert_run(run, 3)
        self.assertEqual(self.launches("part.kprof"), ["scale"] * 2)

    def test_several_runs(self):
        """Each is told with its processes, any of which names it."""
        runs = [self.start("init", name=name) for name in ("one", "other")]
        run = self.kprof("ctl", "start")
        self.assertEqual(run.code, 101)
        found = re.findall(r"(/\S+), processes ([0-9]+)\n", run.err)
        shown = self.kprof("ctl", "status", "--csv")
        self.assertEqual((shown.code, shown.out.count(",unarmed,")), (0, 2), shown.err)
        runs[0].send_signal(signal.SIGSTOP) # it gives no answer, which the list does not wait for
        stopped = self.kprof("ctl", "start")
        shown = self.kprof("ctl", "status", "--csv")
        runs[0].send_signal(signal.SIGCONT)
        self.assertEqual((shown.code, shown.out.count(",unarmed,"), "is stopped" in shown.err), (109, 1, True))
        self.assertEqual(stopped.code, 101)
        self.assertEqual(sorted(re.findall(r"  (/[^\s,]+)", stopped.err)), sorted(folder for folder, _ in found))
        self.assertEqual(sorted(folder for folder, _ in found),
                         sorted(os.path.join(self.tmp, name) for name in os.listdir(self.tmp)))
        for _, pid in found:
            self.assertEqual(self.kprof("ctl", "status", pid).code, 0)
        folders, pids = zip(*found)
        for words, armed in (("start", *folders), 2), (("stop", pids[0]), 1), (("stop", *pids), 0):
            run = self.kprof("ctl", *words)
            self.assertEqual(run.code, 0, run.err)
            self.assertEqual(self.kprof("ctl", "status", *pids, "--csv").out.count(",armed,"), armed)
        run = self.kprof("ctl", "start", *pids, "-o", "part")
        self.assertEqual((run.code, "each of 2 runs needs a report of its own" in run.err), (101, True))
        self.assertIn("2 of 2 processes are armed", self.kprof("ctl", "start", *pids, "-o", "part_%p").err)
        run = self.kprof("ctl", "stop", *pids)
        self.assertEqual((run.code, run.err.count("kprof: report: ")), (0, 2))
        gone = self.kprof("ctl", "stop", pids[0], "99999999")
        self.assertEqual(gone.code, 109)
        runs[1].communicate(timeout=PATIENCE_S) # the status of those that go on is shown all the same
        for words in (pids, reversed(pids), folders):
            gone = self.kprof("ctl", "status", *words, "--csv")
            self.assertEqual((gone.code, gone.out.count(",unarmed,")), (109, 1), gone.err)
        for process in runs:
            process.communicate(timeout=PATIENCE_S)

    def test_folder_that_is_gone(self):
        """A report of a name alone would go to the root of all folders."""
        process = self.start("init")
        os.mkdir(self.path("gone"))
        run = subprocess.run(["sh", "-c", f"rmdir $PWD && {CTL} start -o part"], cwd=self.path("gone"), text=True,
                             env=self.environment({}), capture_output=True)
        self.assertEqual((run.returncode, "there is no current folder" in run.stderr), (108, True), run.stderr)
        self.end(process, 106) # nothing was armed

    def test_from_outside_by_process_directory_or_kprof(self):
        process = self.start("init")
        session, = os.listdir(self.tmp)
        for word in (str(process.pid), os.path.join(self.tmp, session)):
            run = self.kprof("ctl", "status", word, "--csv")
            self.assertEqual(run.code, 0, run.err)
            self.assertIn(",unarmed,", run.out)
        pid = run.out.splitlines()[1].split(",")[0]
        self.assertEqual(self.kprof("ctl", "start", pid).code, 0)
        self.assertIn(f"{pid},armed,0", self.kprof("ctl", "status", "--csv").out)
        self.end(process, 106)

    def test_whom_nobody_can_tell(self):
        os.chmod(self.tmp, 0o755)
        gone = subprocess.Popen(["true"])
        gone.wait()
        for words, code, text in ((["start"], 109, "no application runs under kprof --armed no"),
                                  (["start", str(os.getpid())], 109, "was not started under kprof"),
                                  (["start", str(gone.pid)], 109, "does not exist, or has ended"),
                                  (["start", "nowhere"], 109, "nor the directory of a run; kprof ctl status lists"),
                                  (["start", self.tmp], 109, "other users have access to it"),
                                  (["strat"], 101, "did you mean start"),
                                  ([], 101, "start|stop|status")):
            run = self.kprof("ctl", *words)
            self.assertEqual(run.code, code, run.err)
            self.assertIn(text, run.err)

    def test_process_that_nobody_waits_for(self):
        """It has been killed, and its parent has not noticed: it is not listed, and nobody waits for it to follow."""
        with open(self.path("parent.py"), "w") as file:
            file.write("import os, subprocess, sys\nchild = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, "
                       "stdout=subprocess.PIPE)\nchild.stdout.readline()\nchild.kill()\n"
                       "os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\n"
                       f"os.system(f'{CTL} status --csv; {CTL} start; {CTL} stop {{child.pid}}; echo $?')\n")
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--armed", "no", "-f", "-o", "run",
                         sys.executable, "parent.py", APP, "init", "say=ready", "wait")
        self.assertEqual(run.out, "process,state,measured\n109\n", run.err)
        self.assertIn("no process has called CUDA yet", run.err)
        self.assertIn("does not exist, or has ended", run.err)

    def wait_until_stopped(self, pid):
        while open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "T":
            time.sleep(0.01)

    def test_process_that_is_stopped(self):
        """It cannot follow, which is told. When it goes on it follows."""
        process = self.start("init", env={"KPROF_SIM_SLOWNESS": "1"})
        pid = int(self.kprof("ctl", "status", "--csv").out.splitlines()[1].split(",")[0])
        os.kill(pid, signal.SIGSTOP)
        self.wait_until_stopped(pid)
        run = self.kprof("ctl", "start")
        self.assertEqual(run.code, 110, run.err)
        self.assertIn(f"process {pid} is stopped (by Ctrl-Z, SIGSTOP or a debugger); it follows when it goes on, as by "
                      f"kill -CONT {pid}", run.err)
        os.kill(pid, signal.SIGCONT)
        while f"{pid},armed,0" not in self.kprof("ctl", "status", "--csv").out:
            time.sleep(0.05)
        self.assertEqual(self.kprof("ctl", "stop").code, 0)
        self.end(process, 106)

    def test_kprof_that_is_stopped(self):
        """As by Ctrl-Z, which stops all of a job."""
        process = self.start("init")
        os.kill(process.pid, signal.SIGSTOP)
        self.wait_until_stopped(process.pid)
        for word in ("status", "start"):
            run = self.kprof("ctl", word)
            self.assertEqual(run.code, 109, run.err)
            self.assertIn(f"process {process.pid}, is stopped", run.err)
        os.kill(process.pid, signal.SIGCONT)
        while ",armed,0" not in self.kprof("ctl", "status", "--csv").out:
            time.sleep(0.05)
        self.end(process, 106)

    def test_run_that_measures_from_the_start(self):
        run = super().collect([], ["init", f"run={CTL} start $PPID"])
        self.assertIn("it measures from the start", run.err)

    def test_names_of_reports_are_checked_first(self):
        """A report that cannot be made is told before anything is measured, and so are long lists of metrics taken."""
        process = self.start("init")
        os.mkdir(self.path("folder.kprof"))
        for options, why in ((["-o", "n" * 240], "the name has more than"), (["-f", "-o", "none/x"], "cannot create"),
                             (["-f", "-o", "folder"], "not a regular file"), (["-o", "none/%i"], "cannot create"),
                             (["-o", "folder"], "exists already"), (["-o", "run"], "report of the whole run"),
                             (["-f", "-o", "folder.kprof/../run"], "report of the whole run")):
            run = self.kprof("ctl", "start", *options)
            self.assertEqual(run.code, 108, run.err)
            self.assertIn(why, run.err)
        names = [word for i in range(1500) for word in ("--metrics", METRIC if i % 2 else "gpu__time_duration.max")]
        self.assertEqual(self.kprof("ctl", "start", "-o", "part", *names).code, 0)
        self.assertEqual(self.kprof("ctl", "status", "--set", "full").err.count("--set has no effect"), 1)
        run = self.kprof("ctl", "stop", "")
        self.assertIn('error: "" is neither a process id', run.err)
        self.end(process, 106)

    def test_names_of_reports_with_other_characters(self):
        """An answer is lines, of which such a name is a part of one."""
        process = self.start(f"launch={VECTOR_ADD}")
        self.assertEqual(self.kprof("ctl", "start", "-o", "a\nb\x1b").code, 0)
        self.assertIn(r"/a\nb\x1b.kprof", self.kprof("ctl", "stop").err)
        self.assertTrue(os.path.exists(self.path("a\nb\x1b.kprof")))
        self.end(process, 106)

    def test_process_that_is_none_of_the_run(self):
        process = self.start("init")
        self.assertIn("takes no commands", self.ask(b"start\0" + b"99999999\0"))
        self.assertIn("is no process id", self.ask(b"start\0x1\0"))
        self.end(process, 106)

    def test_hostile_commands(self):
        """Whatever comes, the run goes on and hears the next one."""
        process = self.start("init")
        for data in (b"", b"start", b"\0", b"a\0" * 2000, b"status\0--verbose" * 9, b"status\0-k\0x\0", b"\xff\xfe\0",
                     b"--help\0", b"--version\0", b"start\0" + b"9" * 40 + b"\0", b"report\0x\0"):
            self.assertTrue(self.ask(data).startswith("exit 1"), data)
        for data in (b"x" * 3000000, b"a\0" * 9000):
            self.assertIn("error kprof ctl: more than 524288 bytes or 8192 words", self.ask(data))
        self.connect().close()
        self.assertIn("unarmed", self.ask(b"status\0--log-file\0" + os.fsencode(self.path("log")) + b"\0"))
        self.assertFalse(os.path.exists(self.path("log")))
        self.end(process, 106)

    def test_damaged_switches(self):
        process = self.start("init", f"launch={SCALE}")
        session = os.path.join(self.tmp, *os.listdir(self.tmp))
        switch, = (name for name in os.listdir(session) if name.endswith(".control"))
        for content in (b"", b"\xff" * 20, b"\x01"):
            with open(os.path.join(session, switch), "wb") as file:
                file.write(content)
            self.assertIn("unknown", self.ask(b"status\0"))
        self.end(process, 106)

    def test_launches_of_other_sets_are_recovered(self):
        process = self.start("init", f"run={CTL} start", f"launch={VECTOR_ADD}", f"run={CTL} start --metrics "
                             "sm__cycles_active.avg -o part", f"launch={SCALE}*2", f"run={CTL} start",
                             f"launch={VECTOR_ADD}", f"run={CTL} stop")
        os.remove(self.path("part.kprof"))
        process.kill()
        process.communicate()
        run = self.kprof("recover", "-o", "found")
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(self.launches("found.kprof"), ["vectorAdd"] * 2)
        self.assertEqual(self.launches("found-1.kprof"), ["scale"] * 2)
        self.assertIn("found-1.kprof (2 launches profiled, with other sets)", run.err)

    def test_program_that_has_no_descriptor_left_for_a_while(self):
        limit = "prlimit --nofile=%d: --pid $PPID"
        run = self.collect([], ["init", f"run={limit % 3}; {CTL} start & sleep 0.3; {limit % 64}; wait $!; echo $?",
                                f"launch={SCALE}", f"run={CTL} stop"])
        self.assert_run(run, 0)
        self.assertEqual((run.out, self.launches()), ("0\n", ["scale"]))

    def test_part_that_cannot_be_written_is_recovered(self):
        """The run's own report is whole, and has none of its launches."""
        os.mkdir(self.path("gone"))
        run = self.collect([], [f"run={CTL} start --metrics sm__cycles_active.avg -o gone/part", f"launch={SCALE}*2",
                                f"run=rmdir gone; {CTL} stop; echo $?; {CTL} start", f"launch={VECTOR_ADD}"])
        self.assertEqual((run.code, run.out), (108, "108\n"), run.err)
        self.assertEqual(self.launches(), ["vectorAdd"])
        self.assertIn("report: run.kprof (1 launch profiled", run.err)
        self.assertIn("makes a report of it", run.err)
        self.assert_run(self.kprof("recover"), 0)
        self.assertEqual((self.launches(), self.launches("run-1.kprof")), (["vectorAdd"], ["scale"] * 2))

    def test_kprof_that_is_killed(self):
        process = self.start("init", f"launch={SCALE}")
        process.kill()
        process.stdin.close()
        process.wait()
        while os.listdir(self.tmp) and self.kprof("recover").code != 0:
            time.sleep(0.01)
        process.stdout.close()
        process.stderr.close()
        for name in os.listdir(self.tmp): # the application was about to end
            os.rmdir(os.path.join(self.tmp, name))
