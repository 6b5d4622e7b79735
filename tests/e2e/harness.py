"""Runs kprof on the simulated machine and looks at what it leaves: exit code, streams, files."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tries import TRIES_SOME, some

BUILD = os.environ["KPROF_BUILD_DIR"]
KPROF = os.path.join(BUILD, "tests/sim/kprof-sim")
INJECTION = os.path.join(BUILD, "tests/sim/libkprof-inject-sim.so")
APP = os.path.join(BUILD, "tests/sim/sim-app")
# What is not about the cache shares the plans of one run of ctest.
CACHE = os.environ.get("KPROF_TEST_CACHE", os.path.join(BUILD, "plans.cache"))
# Each run reads all answers about its chip, of which planning sets leaves megabytes; those that collect only METRIC do
# without these.
CACHE_OF_METRIC = os.path.join(CACHE, "metric")
METRIC = "gpu__time_duration.sum"
VECTOR_ADD = "_Z9vectorAddPKfS0_Pfi"
SCALE = "_Z5scaleIfEvPT_S0_i"
SKIPPED = 77
PATIENCE_S = 900 # after which something hangs, on any machine
# Of what is told or done after some time; the tests of that time choose another one.
SLOWNESS = "50"
BUSY = {"KPROF_SIM_BUSY": "1"} # no pause closes a batch
MEGABYTES = int(os.environ.get("KPROF_TEST_MEGABYTES", 10)) # of a file that is large


def can_profile():
    """False where CUPTI's host library is missing: nothing can be planned then."""
    result = subprocess.run([KPROF, "--list-chips"], capture_output=True, text=True,
                            env={**os.environ, "XDG_CACHE_HOME": CACHE})
    return result.returncode == 0


class Run:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="kprof-e2e-")
        self.tmp = os.path.join(self.dir, "tmp")
        os.mkdir(self.tmp)
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.assert_no_violations)

    def environment(self, extra, words=(METRIC,)):
        is_metric = METRIC in words and "--set" not in words and "--section" not in words
        environment = {**os.environ, "TMPDIR": self.tmp, "XDG_CACHE_HOME": CACHE_OF_METRIC if is_metric else CACHE,
                       "KPROF_SIM_VIOLATIONS": self.path("violations"), "KPROF_SIM_SLOWNESS": SLOWNESS, "LC_ALL": "C",
                       **extra}
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "KPROF_SESSION_DIR", "NO_COLOR",
                     "COLUMNS"):
            if name not in extra:
                environment.pop(name, None)
        # LeakSanitizer stumbles over the thread-local storage of NVIDIA's libraries when it tracks that itself.
        environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":intercept_tls_get_addr=0"
        if "LD_PRELOAD" in extra: # kprof itself has that library before AddressSanitizer's, where it is built with it
            environment["ASAN_OPTIONS"] += ":verify_asan_link_order=0"
        return environment

    def kprof(self, *words, env=None, stdin="", **keywords):
        """Run kprof with exactly these words."""
        return Run(
            subprocess.run(
                [KPROF, *words], env=self.environment(env or {}, words), cwd=self.dir, input=stdin, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE_S, **keywords))

    def profile(self, options, steps, **keywords):
        """Profile the test application with one cheap metric."""
        return self.kprof("--injection-path", INJECTION, "--metrics", METRIC, *options, APP, *steps, **keywords)

    def assert_run(self, run, code):
        self.assertEqual(run.code, code, f"stdout:\n{run.out}\nstderr:\n{run.err}")
        self.assert_clean()

    def assert_clean(self):
        self.assertEqual(os.listdir(self.tmp), [])

    def assert_no_violations(self):
        """What the engine did to the simulated machine that it must not do."""
        if os.path.exists(self.path("violations")):
            with open(self.path("violations")) as file:
                self.fail(file.read())

    def path(self, name):
        return os.path.join(self.dir, name)

    def query(self, name, sql):
        with sqlite3.connect(self.path(name)) as database:
            return database.execute(sql).fetchall()

    def launches(self, name="run.kprof"):
        """Function names of the stored launches, in order."""
        rows = self.query(
            name, "SELECT kernel.function FROM launch JOIN kernel ON kernel.id = launch.kernel_id ORDER BY launch.id")
        return [row[0] for row in rows]

    def collect(self, options, steps, **keywords):
        """Profile into run.kprof; gives the run."""
        return self.profile(["-f", "-o", "run", *options], steps, **keywords)


def is_sanitized():
    """AddressSanitizer reserves terabytes of address space, and all takes several times as long and as much."""
    with open(os.path.join(BUILD, "CMakeCache.txt")) as cache:
        return "\nKPROF_ASAN:BOOL=ON\n" in cache.read()


def limit_time_and_memory():
    """What any file of up to 10 MB keeps to. It needs seconds of time: no machine is as slow as this."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (900, 900))
    if not is_sanitized():
        resource.setrlimit(resource.RLIMIT_DATA, (500 << 20, 500 << 20))


def limit_file_size(soft):
    import resource

    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))


__all__ = ["APP", "BUILD", "BUSY", "Case", "INJECTION", "KPROF", "MEGABYTES", "METRIC", "PATIENCE_S", "SCALE",
           "SKIPPED", "TRIES_SOME", "VECTOR_ADD", "can_profile", "is_sanitized", "limit_file_size",
           "limit_time_and_memory", "os", "signal", "some", "subprocess"]
