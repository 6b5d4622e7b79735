"""--clock-control: what it locks is unlocked exactly once, however kprof or the application ends. A fake libnvidia-ml
records the calls; no GPU is touched."""

import contextlib
import time

from harness import *

NVML = os.path.join(BUILD, "tests/sim/nvml")
FIRST, SECOND = "ffffffff:ff:00.0", "ffffffff:ff:01.0"
BASE = "ffffff01"  # NVML_CLOCK_LIMIT_ID_TDP
UNLOCKED = ["load", "init", f"lock {FIRST} {BASE} {BASE}", f"unlock {FIRST}", "shutdown"]


def children(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def executable(pid):
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe")


class ClockCase(Case):
    def clocked(self, fault="", nvml=NVML, gpus="one-gpu"):
        return {"LD_LIBRARY_PATH": nvml, "KPROF_FAKE_NVML_LOG": self.path("nvml"), "KPROF_FAKE_NVML_FAULT": fault,
                "KPROF_SIM_PROBE": gpus}

    def calls(self):
        """What was asked of NVML, in order."""
        if not os.path.exists(self.path("nvml")):
            return []
        with open(self.path("nvml")) as file:
            return file.read().splitlines()

    def run_with(self, control, *options, steps=(f"launch={VECTOR_ADD}", "say=ran"), **machine):
        return self.profile(["-o", "run", "--clock-control", control, *options], steps, env=self.clocked(**machine))


class Clocks(ClockCase):
    def test_left_alone_by_default(self):
        self.assert_run(self.profile([], [f"launch={VECTOR_ADD}"], env=self.clocked()), 0)
        self.assert_run(self.run_with("none"), 0)
        self.assertEqual(self.calls(), [])

    def test_base(self):
        run = self.run_with("base")
        self.assert_run(run, 0)
        self.assertEqual(self.calls(), UNLOCKED)
        self.assertIn(f"GPU {FIRST}: graphics clock locked at its base frequency", run.err)
        self.assertIn("--clock-control base", self.query("run.kprof", "SELECT command_line FROM run")[0][0])

    def test_boost(self):
        run = self.run_with("boost", "--verbose")
        self.assert_run(run, 0)
        self.assertEqual(self.calls()[2:4], [f"lock {FIRST} 7bc 7bc", f"unlock {FIRST}"])
        self.assertIn("locked at its maximum, 1980 MHz", run.err)
        self.assertIn(f"GPU {FIRST}: graphics clock unlocked", run.err)

    def test_all_devices_that_are_measured(self):
        self.assert_run(self.run_with("base", gpus="two-gpus"), 0)
        self.assertEqual(self.calls()[2:-1], [f"lock {FIRST} {BASE} {BASE}", f"lock {SECOND} {BASE} {BASE}",
                                              f"unlock {FIRST}", f"unlock {SECOND}"])

    def test_devices_that_are_chosen(self):
        self.run_with("base", "--devices", "1", gpus="two-gpus")
        self.assertEqual(self.calls()[2:-1], [f"lock {SECOND} {BASE} {BASE}", f"unlock {SECOND}"])

    def test_application_that_crashes(self):
        run = self.run_with("base", steps=[f"launch={VECTOR_ADD}", "settle", f"raise={int(signal.SIGSEGV)}"])
        self.assert_run(run, 128 + signal.SIGSEGV)
        self.assertEqual(self.calls(), UNLOCKED)

    def test_application_that_cannot_start(self):
        with open(self.path("script"), "w") as file:
            file.write("#!/no/interpreter\n")
        os.chmod(self.path("script"), 0o755)
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--clock-control", "base", "./script",
                         env=self.clocked())
        self.assert_run(run, 109)
        self.assertEqual(self.calls(), UNLOCKED)

    def test_report_that_cannot_be_made(self):
        run = self.profile(["-o", "/proc/none/run", "--clock-control", "base"], ["say=ran"], env=self.clocked())
        self.assert_run(run, 108)
        self.assertEqual((run.out, self.calls()), ("", UNLOCKED))

    def test_errors_before_cost_no_call(self):
        self.assert_run(self.run_with("base", "--section", "Nonsense"), 102)
        self.assert_run(self.run_with("base", gpus="no-gpu"), 103)
        self.assert_run(self.kprof("--clock-control", "base", "./nothing", env=self.clocked()), 109)
        self.assertEqual(self.calls(), [])

    def test_clock_that_stays_locked(self):
        run = self.run_with("base", gpus="two-gpus", fault=f"unlock {FIRST} 999")
        self.assert_run(run, 100)
        self.assertEqual(run.out, "ran\n")
        self.assertIn(f"nvidia-smi --reset-gpu-clocks -i {FIRST}", run.err)
        self.assertEqual(self.calls()[-3:], [f"unlock {FIRST}", f"unlock {SECOND}", "shutdown"])
        self.assertEqual(self.launches(), ["vectorAdd"])


class Refused(ClockCase):
    """The application does not run, and no clock stays locked."""

    def refuse(self, code, text, **machine):
        run = self.run_with("boost", **machine)
        self.assert_run(run, code)
        self.assertEqual(run.out, "")
        self.assertIn(text, run.err)
        self.assertFalse(os.path.exists(self.path("run.kprof")))

    def test_no_permission(self):
        self.refuse(104, "only root may lock clocks", fault=f"lock {FIRST} 4")
        self.assertEqual(self.calls()[2:], [f"lock {FIRST} 7bc 7bc", "shutdown"])

    def test_gpu_without_lockable_clock(self):
        self.refuse(111, f"cannot lock the clock of GPU {FIRST}: Not Supported", fault=f"max {FIRST} 3")

    def test_gpu_that_nvml_does_not_see(self):
        self.refuse(111, FIRST, fault=f"find {FIRST} 6")

    def test_divided_gpu(self):
        self.refuse(111, "MIG", fault="mig")
        self.assertEqual(self.calls(), ["load", "init", "shutdown"])

    def test_second_device_fails(self):
        self.refuse(111, SECOND, gpus="two-gpus", fault=f"lock {SECOND} 3")
        self.assertEqual(self.calls()[2:], [f"lock {FIRST} 7bc 7bc", f"lock {SECOND} 7bc 7bc", f"unlock {FIRST}",
                                            "shutdown"])

    def test_no_driver(self):
        self.refuse(103, "NVML does not start", fault="init - 9")
        self.assertEqual(self.calls(), ["load", "init"])

    def test_other_failures(self):
        self.refuse(100, "NVML error 999", fault="init - 999")

    def test_no_nvml(self):
        os.mkdir(self.path("damaged"))
        with open(self.path("damaged/libnvidia-ml.so.1"), "w") as file:
            file.write("no library, and it keeps the loader from looking further")
        self.refuse(111, "--clock-control needs NVML", nvml=self.path("damaged"))
        self.assertEqual(self.calls(), [])


class Killed(ClockCase):
    def setUp(self):
        super().setUp()
        self.processes = []
        self.addCleanup(self.kill_all)

    def kill_all(self):
        for pid in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def wait_for(self, happened, what):
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            self.assertLess(time.monotonic(), deadline, f"{what}: {self.calls()}")
            time.sleep(0.01)

    def start(self, fault="", **keywords):
        """kprof with an application that would run for a minute."""
        steps = [f"launch={VECTOR_ADD}", "settle", "say=ready", "sleep=900000"]
        process = subprocess.Popen(
            [KPROF, "--injection-path", INJECTION, "--metrics", METRIC, "--clock-control", "base", "-o", "run", APP,
             *steps], cwd=self.dir, text=True, env=self.environment(self.clocked(fault)), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **keywords)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.processes.append(process.pid)
        return process

    def start_application(self, **keywords):
        process = self.start(**keywords)
        self.assertEqual(process.stdout.readline(), "ready\n")
        # The bystander, kprof's other process, is in its group.
        self.guards = [pid for pid in children(process.pid)
                       if executable(pid) == executable(process.pid) and os.getpgid(pid) != os.getpgid(process.pid)]
        self.application, = [pid for pid in children(process.pid) if executable(pid) == os.path.realpath(APP)]
        self.processes += children(process.pid)
        self.assertEqual(len(self.guards), 1)
        return process

    def finish(self, process):
        _, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, err

    def test_kprof_is_killed(self):
        process = self.start_application()
        process.kill()
        process.wait()
        self.wait_for(lambda: "shutdown" in self.calls(), "unlocked")
        self.wait_for(lambda: executable(self.guards[0]) is None, "the guard is gone")
        self.assertEqual(executable(self.application), os.path.realpath(APP))
        self.assertEqual(self.calls(), UNLOCKED)

    def test_kprof_is_killed_while_the_clock_is_locked(self):
        process = self.start(fault=f"lock {FIRST} hang")
        self.wait_for(lambda: self.calls()[2:], "lock")
        process.kill()
        process.wait()
        self.wait_for(lambda: "shutdown" in self.calls(), "unlocked")
        self.assertEqual(self.calls(), UNLOCKED)

    def test_interrupt_before_the_start(self):
        process = self.start(fault=f"lock {FIRST} hang")
        self.wait_for(lambda: self.calls()[2:], "lock")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process)[0], -signal.SIGINT)
        self.wait_for(lambda: "shutdown" in self.calls(), "unlocked")
        self.assertEqual(self.calls(), UNLOCKED)

    def test_interrupt_and_term(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self.path("nvml"))
                    os.remove(self.path("run.kprof"))
                process = self.start_application(start_new_session=True)
                os.killpg(process.pid, number)
                code, err = self.finish(process)
                self.assertEqual(code, 128 + number, err)
                self.assertEqual(self.calls(), UNLOCKED)
                self.assert_clean()

    def test_the_whole_process_group_is_killed(self):
        process = self.start_application(start_new_session=True)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.wait_for(lambda: "shutdown" in self.calls(), "unlocked")
        self.assertEqual(self.calls(), UNLOCKED)

    def test_signals_do_not_end_the_guard(self):
        process = self.start_application()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
            os.kill(self.guards[0], number)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.finish(process)[0], 128 + signal.SIGTERM)
        self.assertEqual(self.calls(), UNLOCKED)

    def test_guard_is_killed(self):
        process = self.start_application()
        os.kill(self.guards[0], signal.SIGKILL)
        os.kill(self.application, signal.SIGTERM)
        code, err = self.finish(process)
        self.assertEqual(code, 128 + signal.SIGTERM)
        self.assertIn(f"nvidia-smi --reset-gpu-clocks -i {FIRST}", err)
