#!/usr/bin/env python3
"""Prints what a launch on the simulated machine takes without kprof, with kprof that is not armed (before a start, and
after a stop), and where a launch is not selected, by its name or by its call stack: the best of some runs. The driver
and CUPTI are not in it.
Usage: bench_launch.py BUILD [LAUNCHES [RUNS]]"""
import os
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
LAUNCHES = int(sys.argv[2]) if len(sys.argv) > 2 else 200000
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
KPROF, APP, INJECTION = (os.path.join(BUILD, "tests/sim", name)
                         for name in ("kprof-sim", "sim-app", "libkprof-inject-sim.so"))
STEP = f"time=_Z9vectorAddPKfS0_Pfi*{LAUNCHES}"
RUN = [KPROF, "--quiet", "--injection-path", INJECTION, "--metrics", "gpu__time_duration.sum", "-f", "-o", "run"]
ROWS = {
    "without kprof": ([], [STEP]),
    "not armed": ([*RUN, "--armed", "no"], [STEP]),
    "not armed, after a stop": ([*RUN, "--armed", "no"], [f"run={KPROF} ctl start", "launch=_Z5scaleIfEvPT_S0_i*9",
                                                          f"run={KPROF} ctl stop", STEP]),
    "not selected": ([*RUN, "-k", "scale"], [STEP, "launch=_Z5scaleIfEvPT_S0_i"]),
    "not in a function": ([*RUN, "--call-stack-type", "native", "--native-include", "nonesuch"], [STEP]),
}


def take(kprof, steps, folder):
    environment = {**os.environ, "TMPDIR": folder, "XDG_CACHE_HOME": folder}
    if not kprof:
        environment["CUDA_INJECTION64_PATH"] = INJECTION
    run = subprocess.run([*kprof, APP, *steps], cwd=folder, env=environment, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    return float(run.stdout)


with tempfile.TemporaryDirectory() as folder:
    best = {name: min(take(*row, folder) for _ in range(RUNS)) for name, row in ROWS.items()}
for name, ns in best.items():
    print(f"{name:24} {ns:8.1f} ns a launch, {ns - best['without kprof']:+8.1f}")
