"""A folder in which the documents' commands run as a reader would run them: kprof in PATH, the recorded run below
samples/, and a program ./app. A command that starts ./app or python runs on
the simulated machine of tests/sim."""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROFILES = re.compile(r"(^| )(\./app|python)( |$|[;&|>])")
ANY_LINES = "(?:.*\n)*?"
WRAPPER = """#!/bin/sh
case " $* " in
*" ./app "*|*" python "*) exec {sim}/kprof-sim --injection-path {sim}/libkprof-inject-sim.so "$@";;
*) exec {kprof} "$@";;
esac
"""
APP = """#!/bin/sh
exec {sim}/sim-app launch=_Z9vectorAddPKfS0_Pf
"""
# A real Python runs train.py, which uses a framework in a folder as of installed packages.
PYTHON = """#!/bin/sh
[ "$1" = train.py ] && PYTHONPATH={root}/site-packages exec {python} -BS "$@"
exec {root}/app
"""
TRAINING = """import framework


class Net:
    def forward(self, x):
        return framework.relu(framework.linear(x))


def step(net, batch):
    framework.backward(net.forward(batch))


net = Net()
for batch in range(4):
    step(net, batch)
"""
FRAMEWORK = """import ctypes
import os
library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
library.InitializeInjection()


def launch(name):
    library.kprof_sim_launch(name)

def linear(x):
    launch(b"_Z9vectorAddPKfS0_Pfi")

def relu(x):
    launch(b"_Z5scaleIfEvPT_S0_i")

def backward(x):
    launch(b"_Z9vectorAddPKfS0_Pfi")
"""


class Scratch:
    def __init__(self, source, build):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="kprof-docs-"))
        places = {"sim": build / "tests/sim", "kprof": build / "src/cli/kprof"}
        for name in ("bin", "tmp", "samples", "site-packages"):
            (self.root / name).mkdir()
        self.add_script("bin/kprof", WRAPPER.format(**places))
        self.add_script("bin/python", PYTHON.format(root=self.root, python=sys.executable))
        (self.root / "train.py").write_text(TRAINING)
        (self.root / "site-packages/framework.py").write_text(FRAMEWORK)
        self.add_script("app", APP.format(**places))
        for report in (source / "samples").glob("*.kprof"):
            shutil.copy(report, self.root / "samples")
        self.environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", "TMPDIR": f"{self.root}/tmp",
                            "HOME": str(self.root), "LC_ALL": "C.UTF-8",
                            "XDG_CACHE_HOME": os.environ.get("KPROF_TEST_CACHE", f"{build}/plans.cache")}
        for name in ("NO_COLOR", "COLUMNS", "CUDA_INJECTION64_PATH"):
            self.environment.pop(name, None)
        # LeakSanitizer stumbles over the thread-local storage of NVIDIA's libraries when it tracks that itself.
        self.environment["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":intercept_tls_get_addr=0"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def add_script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, command):
        """Exit status and output, both streams in one."""
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=self.root, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.decode("utf-8", "replace")


def find_difference(expected, output):
    """How the output differs from what a document shows; None when it does not. A line of one ellipsis stands for any
    lines, an ellipsis within a line for any text."""
    parts = [line.rstrip().split("…") for line in expected]
    pattern = "".join(ANY_LINES if "".join(part).strip() == "" and len(part) == 2
                      else ".*".join(map(re.escape, part)) + "[ ]*\n" for part in parts)
    text = output if output.endswith("\n") or not output else output + "\n"
    if re.fullmatch(pattern, text):
        return None
    lines = [line.rstrip() for line in text.splitlines()]
    shown = difflib.unified_diff([line.rstrip() for line in expected], lines, "document", "output", lineterm="", n=0)
    return "\n".join(list(shown)[:60])


def needs(command):
    """What a command needs besides a reporter: "cupti", "sqlite3" or nothing ("")."""
    asks = r"--(query-metrics|list-sets|list-chips|plan)|kprof (explain|plan) "
    if PROFILES.search(command) or re.search(asks, command):
        return "cupti"
    return "sqlite3" if re.search(r"(^|[|&;] *)sqlite3 ", command) else ""


def is_there(need, scratch):
    if need == "cupti":
        return scratch.run("kprof --list-chips")[0] == 0
    if need == "pandas":
        return scratch.run("python3 -c 'import pandas'")[0] == 0
    return need == "" or shutil.which(need) is not None
