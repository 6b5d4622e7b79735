"""kprof doctor on the simulated machine: what it finds, what it measures, and the exit codes."""
import json
import os
import signal
import stat
import subprocess
import time

from harness import APP, BUILD, INJECTION, KPROF, PATIENCE_S, VECTOR_ADD, Case

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/man/kprof-doctor.1")) as manual:
    CODES = manual.read().replace("\\-", "-")
DRIVER = os.path.join(BUILD, "tests/sim/driver")


class Doctor(Case):
    def setUp(self):
        super().setUp()
        if not os.path.isdir(DRIVER):
            self.skipTest("built without CUDA")

    def doctor(self, *words, code=0, env=None):
        """What was found, by what was looked at."""
        run = self.kprof("doctor", "--json", *words, env={"LD_LIBRARY_PATH": DRIVER, **(env or {})})
        self.assertEqual(run.code, code, run.out + run.err)
        self.assertEqual(run.err, "")
        rows = json.loads(run.out)
        for row in rows:
            self.assertEqual(row["code"] is None, row["verdict"] == "fine", row)
            self.assertRegex(CODES, rf"\b{row['code'] or ''}\b")
        return {row["check"]: row for row in rows}

    def measure(self, *steps, code=0, env=None):
        return self.doctor("--injection-path", INJECTION, APP, *steps, code=code, env=env)["measurement"]

    def test_a_kernel_is_measured(self):
        rows = self.doctor("--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}", "say=ran")
        self.assertEqual(rows["measurement"]["verdict"], "fine")
        self.assertRegex(rows["measurement"]["found"], r"^one kernel was measured in \d+\.\d s$")
        self.assertEqual(rows["GPUs"]["found"], "GPU 0 is a Simulated H200")
        self.assertEqual(rows["library"]["verdict"], "fine")
        self.assertIn(DRIVER, rows["library"]["found"])
        self.assert_clean()

    def test_what_a_measurement_lacks_is_told(self):
        self.assertEqual(self.measure("run=head -c 3000000 /dev/zero", f"launch={VECTOR_ADD}")["verdict"], "fine")
        row = self.measure("say=ran", code=106)
        self.assertEqual((row["verdict"], row["exit_code"]), ("fault", 106))
        self.assertIn("kprof --launch-count 1", row["fix"])
        self.assertIn("nothing was collected", row["found"])
        row = self.measure(f"launch={VECTOR_ADD}", "exit=7", code=110)
        self.assertEqual([row[key] for key in ("verdict", "code", "found")],
                         ["fault", "measurement-failed", "the application exited with status 7"])
        row = self.measure(f"launch={VECTOR_ADD}", "raise=11", code=110)
        self.assertIn("the application was ended by signal 11", row["found"])
        row = self.measure(f"launch={VECTOR_ADD}", code=105, env={"KPROF_SIM_FAULT": "busy"})
        self.assertEqual((row["verdict"], row["exit_code"]), ("fault", 105))
        self.assertIn("pause DCGM", row["fix"])
        self.assert_clean()

    def test_faults_have_the_codes_of_runs(self):
        for fault, check, named, code, words in (
                ("no-gpu", "GPUs", "no-gpu", 103, "no CUDA driver"),
                ("no-permission", "GPUs", "permission-denied", 104, "RmProfilingAdminOnly"),
                ("old-gpu", "GPUs", "gpu-unsupported", 111, "GV100"),
                ("confidential", "set-up", "confidential-computing", 111, "GPU 1: confidential computing is on"),
                ("no-cupti", "CUPTI", "cupti-missing", 111, "libcupti.so.13 is not found")):
            with self.subTest(fault):
                rows = self.doctor(APP, f"launch={VECTOR_ADD}", code=code, env={"KPROF_SIM_PROBE": fault})
                self.assertEqual([rows[check][key] for key in ("verdict", "code", "exit_code")],
                                 ["fault", named, code])
                self.assertIn(words, rows[check]["found"])
                self.assertTrue(rows[check]["fix"])
                self.assertEqual(rows["measurement"]["code"], "not-tried")
                self.assertIn("mend the faults first", rows["measurement"]["found"])

    def test_without_a_program(self):
        """It stands beside the library, where kprof is whole."""
        os.symlink(INJECTION, self.path("alone.so"))
        rows = self.doctor("--injection-path", self.path("alone.so"))
        self.assertEqual(rows["measurement"]["code"], "no-program")

    def test_clocks(self):
        with open(self.path("nvidia-smi"), "w") as file:
            file.write('#!/bin/sh\n[ "$2" = "--format=csv,noheader,nounits" ] && echo "$LINE"\n')
            os.fchmod(file.fileno(), stat.S_IRWXU)
        for line, code in (("Enabled, 345, 1980, Not Active, Not Active, Not Active, Not Active", None),
                           ("Enabled, 345, 1980, Active, Not Active, Not Active, Active", "gpu-slowed"),
                           ("", "clocks-unknown")):
            rows = self.doctor("--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}",
                               env={"PATH": f"{self.dir}:{os.environ['PATH']}", "LINE": line})
            self.assertEqual(rows["clocks"]["code"], code)

    def test_a_library_of_stubs_is_known(self):
        stubs = os.path.join(self.dir, "stubs")
        os.mkdir(stubs)
        with open(os.path.join(DRIVER, "libcuda.so.1"), "rb") as real, \
                open(os.path.join(stubs, "libcuda.so.1"), "wb") as stub:
            stub.write(real.read())
            os.fchmod(stub.fileno(), stat.S_IRWXU)
        row = self.doctor(code=103, env={"LD_LIBRARY_PATH": stubs})["library"]
        self.assertEqual((row["verdict"], row["exit_code"]), ("fault", 103))
        self.assertIn("LD_LIBRARY_PATH", row["fix"])
        gpus = self.doctor(code=103, env={"LD_LIBRARY_PATH": stubs, "KPROF_SIM_PROBE": "no-gpu"})["GPUs"]
        self.assertEqual(gpus["fix"], row["fix"])
        run = subprocess.run([os.path.join(BUILD, "src/cli/kprof"), APP], capture_output=True, text=True,
                             env=self.environment({"LD_LIBRARY_PATH": stubs, "KPROF_SIM_STUB": "1"}))
        self.assertEqual(run.returncode, 103)
        self.assertRegex(run.stderr, "stub of a CUDA toolkit.*: take its folder out of LD_LIBRARY_PATH")

    def test_a_newer_cupti_is_a_warning(self):
        rows = self.doctor("--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}",
                           env={"KPROF_SIM_PROBE": "new-cupti"})
        self.assertEqual((rows["CUPTI"]["verdict"], rows["CUPTI"]["code"]), ("warning", "cupti-newer"))
        self.assertEqual(rows["measurement"]["verdict"], "fine")

    def test_a_folder_whose_name_looks_like_a_placeholder(self):
        os.mkdir(self.path("100%p%z"))
        self.assertEqual(self.measure(f"launch={VECTOR_ADD}", env={"TMPDIR": self.path("100%p%z")})["verdict"], "fine")

    def test_a_folder_that_nobody_can_use(self):
        row = self.doctor(code=108, env={"TMPDIR": "/nonexistent"})["disk"]
        self.assertEqual((row["verdict"], row["code"]), ("fault", "folder-unusable"))
        self.assertIn("/nonexistent: No such file or directory", row["found"])
        row = self.doctor(code=108, env={"TMPDIR": "/proc"})["disk"] # where root may write, and make nothing
        self.assertEqual((row["verdict"], row["code"]), ("fault", "folder-unusable"))

    def test_another_profiler_is_a_warning(self):
        rows = self.doctor("--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}",
                           env={"CUDA_INJECTION64_PATH": "/other.so"})
        self.assertEqual(rows["other tools"]["verdict"], "warning")
        self.assertIn("/other.so", rows["other tools"]["found"])

    def test_runs_that_fail_name_it(self):
        run = self.kprof("--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}", env={"KPROF_SIM_PROBE": "no-gpu"})
        self.assertEqual(run.code, 103)
        self.assertIn("kprof doctor tells what is wrong", run.err)
        run = self.kprof("--injection-path", INJECTION, APP, "say=ran")
        self.assertNotIn("kprof doctor", run.err)
        run = self.kprof("trace", "--injection-path", INJECTION, APP, "say=ran") # it has not looked for a GPU
        self.assertEqual(run.code, 106)
        self.assertIn("kprof doctor tells whether this machine can run CUDA", run.err)

    def test_a_signal_ends_what_is_measured(self):
        """And then kprof: nothing runs on, and nothing is left behind."""
        ready = self.path("ready")
        process = subprocess.Popen([KPROF, "doctor", "--injection-path", INJECTION, APP, f"launch={VECTOR_ADD}",
                                    f"run=echo $PPID > {ready}", "sleep=600000"],
                                   env=self.environment({"LD_LIBRARY_PATH": DRIVER}), stdout=subprocess.PIPE, text=True)
        while process.poll() is None and not (os.path.exists(ready) and os.path.getsize(ready)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=PATIENCE_S)[0], "")
        self.assertEqual(process.returncode, -signal.SIGINT)
        with open(ready) as file:
            self.assertFalse(os.path.exists(f"/proc/{file.read().strip()}"))
        self.assert_clean()
