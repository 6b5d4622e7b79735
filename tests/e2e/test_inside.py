"""Programs that measure parts of themselves: with python/kprof.py, and with include/kprof/ctl.h."""

import json
import shutil
import socket
import sys
import types

from harness import *

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python")
# What a script finds: the module, and launch(), which does what a call of CUDA does.
PRELUDE = f"""
import ctypes, json, os, sys
sys.path[:0] = [{PYTHON!r}]
import kprof
library = None
def launch(name, count=1):
    global library
    if library is None:
        library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
        library.InitializeInjection()
    for i in range(count):
        library.kprof_sim_launch(name.encode())
ADD, SCALE = {VECTOR_ADD!r}, {SCALE!r}
"""


class Inside(Case):
    def setUp(self):
        super().setUp()
        if is_sanitized():
            self.skipTest("Python cannot load a library that is built with AddressSanitizer")

    def script(self, text, name="script.py"):
        with open(self.path(name), "w") as file:
            file.write(PRELUDE + text)
        return self.path(name)

    def under_kprof(self, text, *options, armed="no", **keywords):
        return self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--armed", armed, "-f", "-o", "run",
                          *options, sys.executable, "-B", self.script(text), **keywords)

    def alone(self, text):
        environment = {**self.environment({}), "KPROF": KPROF}
        run = subprocess.run([sys.executable, "-B", self.script(text)], env=environment, cwd=self.dir, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
        return types.SimpleNamespace(code=run.returncode, out=run.stdout, err=run.stderr)

    def test_block(self):
        run = self.under_kprof("""
launch(ADD)
with kprof.profile() as p:
    launch(SCALE, 3)
launch(ADD)
print(json.dumps([p.dict(), [launch["kernel"] for launch in p.launches], p.units["gpu__time_duration.sum"]]))
assert os.path.exists(p.path), p.path
assert "3 launches of 1 kernel in" in repr(p), repr(p)
print(len(p.report("--page", "raw", "--csv-layout", "wide").splitlines()))
path = p.path
del p
assert not os.path.exists(path)
""", env={"KPROF": KPROF})
        self.assert_run(run, 0)
        first, second = run.out.splitlines()
        found, names, unit = json.loads(first)
        self.assertEqual(list(found), ["scale"])
        self.assertEqual(found["scale"]["launches"], 3)
        self.assertIsInstance(found["scale"][METRIC], float)
        self.assertEqual((names, unit, second), (["scale"] * 3, "ns", "4"))
        self.assertEqual(self.launches(), ["scale"] * 3)

    def test_other_metrics_and_a_name(self):
        run = self.under_kprof("""
with kprof.profile(metrics=["sm__cycles_active.avg", "sm__cycles_active.max"], keep="part#?1.kprof") as p:
    launch(ADD, 2)
kprof.start()
launch(SCALE)
print(sorted(p.dict()["vectorAdd"]), sorted(kprof.stop().dict()["scale"])[0], p.path)
print([process["state"] for process in kprof.status()])
""")
        self.assert_run(run, 0)
        self.assertEqual(self.query("part#?1.kprof", "SELECT name FROM metric WHERE kind = 'hardware' ORDER BY name"),
                         [("sm__cycles_active.avg",), ("sm__cycles_active.max",)])
        for text in ("'sm__cycles_active.avg', 'sm__cycles_active.max'", METRIC, self.path("part#?1.kprof"),
                     "['unarmed']"):
            self.assertIn(text, run.out)

    def test_blocks_that_measure_nothing(self):
        run = self.under_kprof("""
import warnings
warnings.simplefilter("always")
def attempt(does, **what):
    try:
        with kprof.profile(**what) as p:
            does()
        print(p.dict())
    except (kprof.Error, ValueError) as error:
        print(type(error).__name__, error)
def nested():
    with kprof.profile():
        pass
attempt(lambda: None)
launch(ADD)
attempt(lambda: None)
attempt(nested)
attempt(lambda: launch(SCALE), keep="nowhere/part")
attempt(lambda: int("mine"))
""")
        self.assertEqual(run.out.splitlines()[0],
                         "Error this process has not called CUDA yet, so that nothing was measured")
        self.assertEqual(run.out.splitlines()[1], "{}")
        self.assertIn("UserWarning: kprof: no kernel was launched between start and stop", run.err)
        self.assertIn("a block cannot be within another one", run.out.splitlines()[2])
        self.assertIn("nowhere/part.kprof: cannot create the report", run.out.splitlines()[3])
        self.assertIn("ValueError invalid literal", run.out.splitlines()[4])
        run = self.under_kprof("""
launch(ADD)
with kprof.profile() as p:
    launch(SCALE, 3)
""", "-k", "other")
        self.assertIn("UserWarning: kprof: 3 launches were made between start and stop, and the options", run.err)

    def test_reports_that_cannot_be_read(self):
        run = self.alone("""
for path in "none.kprof", "script.py":
    try:
        kprof.Result(path).launches
    except kprof.Error as error:
        print(error.code, error)
""")
        self.assertEqual((run.code, run.out), (0, "107 none.kprof: unable to open database file\n"
                                                  "107 script.py: file is not a database\n"), run.err)

    def test_metrics_that_no_pass_counts(self):
        run = self.under_kprof("""
with kprof.profile(metrics="launch__grid_size") as p:
    launch(ADD)
print(p.launches[0]["metrics"]["launch__grid_size"])
""")
        self.assert_run(run, 0)
        self.assertNotIn("UserWarning", run.err)
        self.assertGreater(float(run.out), 0)

    def test_beside_another_tool(self):
        """Which records: kprof declines with the reason each time, and measures when that has ended."""
        open(self.path("guest"), "w").close()
        run = self.under_kprof("""
guest = os.environ["KPROF_SIM_GUEST"]
launch(ADD)
for attempt in range(3):
    try:
        with kprof.profile() as p:
            launch(SCALE)
        print(p.dict()["scale"]["launches"])
    except kprof.Error as error:
        print(error)
    if attempt == 1:
        os.remove(guest)
""", env={"KPROF_SIM_GUEST": self.path("guest")})
        self.assert_run(run, 0)
        lines = run.out.splitlines()
        self.assertRegex(lines[0], "^process [0-9]+ could not be armed: another tool records")
        self.assertEqual(lines[1:], [lines[0], "1"])
        self.assertNotIn("cannot create the report", run.err)
        self.assertEqual(self.launches(), ["scale"])

    def test_first_call_of_cuda_within_the_block(self):
        run = self.under_kprof("""
with kprof.profile() as p:
    launch(SCALE)
print(p.dict()["scale"]["launches"])
""")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "1\n")

    def test_census(self):
        run = self.kprof("--injection-path", INJECTION, "--armed", "no", "--census", "-f", "-o", "run", sys.executable,
                         "-B", self.script("""
launch(ADD)
with kprof.profile() as p:
    launch(SCALE, 3)
    launch(ADD)
print(sorted((row["kernel"], row["launches"], row["total_ns"] > 0) for row in p.census), p.launches)
"""))
        self.assert_run(run, 0)
        self.assertEqual(run.out, "[('scale', 3, True), ('vectorAdd', 1, True)] []\n")
        self.assertNotIn("Warning", run.err)

    def test_without_a_relaunch(self):
        run = self.alone(f"""
kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", {METRIC!r})
launch(ADD)
for i in range(2):
    with kprof.profile() as p:
        launch(SCALE, i + 1)
    print(p.dict()["scale"]["launches"])
""")
        self.assertEqual((run.code, run.out), (0, "1\n2\n"), run.err)
        self.assert_clean()

    def test_too_late(self):
        run = self.alone(f"""
os.environ["CUDA_INJECTION64_PATH"] = {INJECTION!r}
launch(ADD) # which loads a library that finds no session
kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", {METRIC!r})
try:
    with kprof.profile():
        launch(SCALE)
except kprof.Error as error:
    print(error)
""")
        self.assertEqual(run.code, 0, run.err)
        self.assertIn("had called it before kprof was there; start it as: kprof --armed no", run.out)
        self.assert_clean()

    def test_kprof_that_does_not_start(self):
        run = self.alone("""
try:
    kprof.prepare("--set", "fulll")
except kprof.Error as error:
    print(error.code, error)
python, sys.executable = sys.executable, None
try:
    kprof.prepare()
except kprof.Error as error:
    print(error)
sys.executable = python
for option in ("--help", "--list-sets"):
    try:
        kprof.prepare(option)
    except kprof.Error as error:
        print(error)
""")
        self.assertIn("102 kprof: error", run.out)
        self.assertIn("sys.executable names no Python that kprof can start", run.out)
        self.assertIn("kprof runs no program with the options --help\n", run.out)
        self.assertIn("kprof runs no program with the options --list-sets\n", run.out)
        self.assert_clean()

    def test_options_that_are_about_standard_streams(self):
        """They do not keep the kprof beside the script from telling where it is, nor from staying."""
        run = self.alone(f"""
import pathlib
kprof.prepare("--injection-path", pathlib.Path({INJECTION!r}), "--metrics", {METRIC!r}, "--json", "--null-stdin")
launch(ADD)
with kprof.profile() as p:
    launch(SCALE)
print(p.dict()["scale"]["launches"])
""")
        self.assertEqual((run.code, run.out, run.err), (0, "1\n", ""))
        self.assert_clean()

    def test_run_that_measures_from_the_start(self):
        run = self.under_kprof("""
launch(ADD)
try:
    kprof.start()
except kprof.Error as error:
    print(error)
""", armed="yes")
        self.assertIn("it measures from the start (without --armed no), or is gone", run.out)

    def test_what_is_wrong(self):
        run = self.under_kprof("""
def fails(call, *words, **named):
    try:
        call(*words, **named)
    except kprof.Error as error:
        print(error.code, error)
launch(ADD)
fails(kprof.stop)
fails(kprof.start, set="fulll")
try:
    kprof.start(set=3)
except TypeError as error:
    print(error)
with kprof.profile() as p:
    fails(lambda: p.launches)
    launch(SCALE)
fails(p.dataframe)
try:
    with kprof.profile() as p:
        launch(ADD)
        raise KeyError("mine")
except KeyError:
    print(p.dict()["vectorAdd"]["launches"])
""", env={"PYTHONPATH": self.module("pandas", "raise ImportError('there is no pandas')")})
        lines = run.out.splitlines()
        for line, text in zip(lines, ("101 kprof.stop: nothing was started", "102", "set is a name or a list",
                                      "101 launches: what was measured", "109 pandas is not installed", "1")):
            self.assertTrue(line.startswith(text), line)
        self.assertIn("did you mean", lines[1])
        self.assert_run(run, 0)

    def test_child_that_leaves_its_parents_block(self):
        run = self.under_kprof("""
launch(ADD)
@kprof.profile()
def step():
    launch(SCALE)
    if child := os.fork():
        os.waitpid(child, 0)
        launch(SCALE)
    return child
if step():
    print("parent", step.profile.dict()["scale"]["launches"])
else:
    try:
        step.profile.dict()
    except kprof.Error:
        print("child", flush=True)
""")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "child\nparent 2\n")

    def test_functions(self):
        """Each call of a function is measured, and within it no further one; the last one's result counts."""
        run = self.under_kprof("""
import functools
launch(ADD)
@kprof.profile()
def step(count):
    "what it does"
    if count > 1:
        step(count - 1)
    launch(SCALE, count)
    return count
print(step(1), step.profile.dict()["scale"]["launches"])
print(step(3), step.profile.dict()["scale"]["launches"], step.__name__, step.__doc__)
@kprof.profile()
def fails():
    launch(ADD)
    raise KeyError("mine")
try:
    fails()
except KeyError:
    print(fails.profile.dict()["vectorAdd"]["launches"])
async def later():
    pass
def some():
    yield
class Late:
    async def __call__(self):
        pass
for wrong in (lambda: kprof.profile()(later), lambda: kprof.profile()(some), lambda: kprof.profile(step),
              lambda: kprof.profile()(3), lambda: kprof.profile()(functools.partial(some)),
              lambda: kprof.profile()(Late())):
    try:
        wrong()
    except (TypeError, kprof.Error) as error:
        print(error)
p = kprof.profile()
with p:
    launch(SCALE)
with p:
    try:
        p.dict() # of the block that has ended
    except kprof.Error as error:
        print(error)
    launch(ADD)
print(list(p.dict()))
""")
        self.assert_run(run, 0)
        lines = run.out.splitlines()
        self.assertEqual(lines[:3], ["1 1", "3 6 step what it does", "1"])
        for line, text in zip(lines[3:], ("a call of a coroutine or generator runs nothing", "a call of a coroutine",
                                          "write @kprof.profile(), with brackets", "is for a function here",
                                          "a call of a coroutine", "a call of a coroutine",
                                          "is known when the block has ended", "['vectorAdd']")):
            self.assertIn(text, line)
        self.assertEqual(len(lines), 11)

    def test_threads_and_repeated_cells(self):
        """One block at a time, also where two threads begin at once; a name may be used again if that is asked for."""
        run = self.under_kprof("""
import threading
launch(ADD)
found, first = [], threading.Event()
ask = kprof._ask
def slow(*words):
    first.set()
    if words[0] == "start":
        other.join()
    return ask(*words)
def block(**what):
    try:
        with kprof.profile(**what) as p:
            launch(SCALE)
        found.append(p.dict()["scale"]["launches"])
    except kprof.Error as error:
        found.append(str(error))
    return found[-1]
def late():
    first.wait()
    block()
kprof._ask = slow
other = threading.Thread(target=late)
other.start()
print(block(), "perhaps by another thread" in found[0], len(found))
kprof._ask = ask
os.environ["HOME"] = os.getcwd()
print(block(keep="~/kept"), block(keep="kept.kprof"), block(keep="kept.kprof", overwrite=True), sep="\\n")
def interrupted(*words):
    ask(*words)
    raise KeyboardInterrupt
kprof._ask = interrupted
try:
    kprof.start()
except KeyboardInterrupt:
    kprof._ask = ask
    print(kprof.status()[0]["state"], block())
for asks_before in (False, True):
    def interrupted(*words):
        if words[0] == "start":
            return ask(*words)
        kprof._ask = ask
        if asks_before:
            ask(*words)
        raise KeyboardInterrupt
    kprof._ask = interrupted
    try:
        block()
    except KeyboardInterrupt:
        print(kprof.status()[0]["state"], block())
with kprof.profile() as p:
    launch(SCALE)
print({"result", "dict", "path", "launches"} <= set(dir(p)))
""")
        self.assert_run(run, 0)
        lines = run.out.splitlines()
        self.assertEqual(lines[:2] + lines[3:], ["1 True 2", "1", "1", *["unarmed 1"] * 3, "True"])
        self.assertIn("kept.kprof: exists already; use overwrite=True or another name", lines[2])

    def test_function_of_several_threads(self):
        """A call while another one is about to be measured adds nothing, and does not fail."""
        run = self.under_kprof("""
import threading
launch(ADD)
found, begins, ask = [], threading.Event(), kprof._ask
@kprof.profile()
def step():
    launch(SCALE)
    return "step"
def slow(*words):
    if words[0] == "start":
        begins.set()
        other.join()
    return ask(*words)
kprof._ask = slow
other = threading.Thread(target=lambda: begins.wait() and found.append(step()))
other.start()
print(step(), found, step.profile.dict()["scale"]["launches"])
kprof._ask = ask
print(step(), step.profile.dict()["scale"]["launches"])
""")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "step ['step'] 1\nstep 1\n")

    def test_folders_whose_names_look_like_placeholders(self):
        os.mkdir(self.path("100%p"))
        run = self.under_kprof("""
import tempfile
os.chdir("100%p")
tempfile.tempdir = os.getcwd()
launch(ADD)
for keep in (None, "kept", f"{os.getpid()}_%p"):
    with kprof.profile(keep=keep) as p:
        launch(SCALE)
    print(p.dict()["scale"]["launches"], os.path.exists(p.path))
""")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "1 True\n" * 3)
        self.assertIn("kept.kprof", os.listdir(self.path("100%p")))
        run = self.collect(["--armed", "no"], ["init", f"run=cd 100%p; {KPROF} ctl start -q -o part",
                                               f"launch={SCALE}", f"run={KPROF} ctl stop -q"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches("100%p/part.kprof"), ["scale"])
        run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "--armed", "no", "-f", "-o", "run", "sh",
                         "-c", 'cd 100%p; exec "$@"', "sh", APP, "init", "control=start::own", f"launch={SCALE}",
                         "control=stop")
        self.assert_run(run, 0)
        self.assertEqual(self.launches("100%p/own.kprof"), ["scale"])
        run = self.alone(f"""
import tempfile
tempfile.tempdir = os.path.join(os.getcwd(), "100%p")
kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", {METRIC!r})
launch(ADD)
with kprof.profile() as p:
    launch(SCALE)
print(p.dict()["scale"]["launches"])
""")
        self.assertEqual((run.code, run.out), (0, "1\n"), run.err)

    def test_counters_that_another_tool_has(self):
        run = self.under_kprof("""
try:
    with kprof.profile() as p:
        launch(SCALE)
except kprof.Error as error:
    print(error.code, error)
""", env={"KPROF_SIM_FAULT": "busy"})
        self.assertEqual(run.code, 105, run.err)
        self.assertTrue(run.out.startswith("105 a chosen launch could not be measured: another tool holds"), run.out)

    def test_what_prepare_cannot_do(self):
        """Options that come too late have no effect, and a program that is named has to be there."""
        run = self.alone(f"""
import warnings
warnings.simplefilter("always")
os.environ["KPROF"] = "/nowhere"
try:
    kprof.prepare()
except kprof.Error as error:
    print(error)
os.environ["KPROF"] = {KPROF!r}
for metric in ({METRIC!r}, {METRIC!r}, "sm__cycles_active.avg"):
    kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", metric)
launch(ADD)
with kprof.profile() as p:
    launch(SCALE)
waits, ends = os.pipe()
child = os.fork()
if child == 0: # it neither keeps the parent's kprof alive nor removes its reports, and may end later
    os.write(1, f"{{kprof._Host.process}}\\n".encode()) # at once, and nothing that its parent has printed
    del p
    os.close(ends)
    os.read(waits, 1)
    os._exit(0)
os.write(1, f"{{p.dict()['scale']['launches']}}\\n".encode())
""")
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(sorted(run.out.splitlines()), ["1", "None",
                                                        "the variable KPROF names /nowhere, which is no program"])
        self.assertEqual(run.err.count("has no effect: kprof runs already"), 1, run.err)
        run = self.under_kprof("kprof.prepare('--set', 'full')\n")
        self.assertIn("--set full has no effect: this process was started under a kprof", run.err)

    def test_folders_of_any_name(self):
        """Also with all warnings as errors, and where the program closes what it has not opened."""
        for name in (b"a\nb", b"a\xff"):
            folder = os.path.join(os.fsencode(self.dir), name)
            os.mkdir(folder)
            run = self.alone(f"""
import tempfile, warnings
warnings.simplefilter("error")
tempfile.tempdir = os.fsdecode({folder!r})
kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", {METRIC!r})
launch(ADD)
with kprof.profile() as p:
    launch(SCALE)
print(p.dict()["scale"]["launches"])
os.closerange(3, 600)
""")
            self.assertEqual((run.code, run.out, run.err), (0, "1\n", ""))

    def test_module_that_is_loaded_again(self):
        """Within a block, too."""
        run = self.alone(f"""
import importlib
kprof.prepare("--injection-path", {INJECTION!r}, "--metrics", {METRIC!r})
importlib.reload(kprof)
launch(ADD)
kprof.start()
importlib.reload(kprof)
launch(SCALE)
print(kprof.stop().dict()["scale"]["launches"])
""")
        self.assertEqual((run.code, run.out), (0, "1\n"), run.err)
        self.assert_clean()

    def module(self, name, text):
        folder = self.path("modules")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name + ".py"), "w") as file:
            file.write(text)
        return folder

    def test_dataframe(self):
        run = self.under_kprof("""
with kprof.profile() as p:
    launch(SCALE, 2)
print(json.dumps(p.dataframe()))
""", env={"PYTHONPATH": self.module("pandas", "DataFrame = list")})
        self.assert_run(run, 0)
        rows = json.loads(run.out)
        self.assertEqual([(row["launch"], row["kernel"], type(row[METRIC])) for row in rows],
                         [(0, "scale", float), (1, "scale", float)])

    def test_each_rank_for_itself(self):
        """Two processes measure at the same time, and each gets what is its own."""
        self.script("""
with kprof.profile() as p:
    launch(sys.argv[1], 2)
    print("in", flush=True)
    sys.stdin.readline()
    launch(sys.argv[1], 3)
print(p.dict()[sys.argv[2]]["launches"], list(p.dict()))
""", "rank.py")
        run = self.under_kprof("""
import subprocess
ranks = [subprocess.Popen([sys.executable, "-B", "rank.py", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) for words in ((ADD, "vectorAdd"), (SCALE, "scale"))]
for rank in ranks:
    assert rank.stdout.readline() == "in\\n"
for rank in ranks:
    print(rank.communicate("\\n")[0], end="")
""")
        self.assert_run(run, 0)
        self.assertEqual(run.out, "5 ['vectorAdd']\n5 ['scale']\n")

    def test_trace(self):
        """A block is a part of the one trace."""
        script = self.script("""
def run(name):
    launch(name)
    library.kprof_sim_do(b"sync")
run(ADD)
for i in range(2):
    with kprof.profile() as p:
        run(SCALE)
    run(ADD)
print(p)
for wrong in (lambda: p.dict, lambda: kprof.start(set="full"), lambda: kprof.start(keep="part")):
    try:
        wrong()
    except kprof.Error as error:
        print(error)
""")
        run = self.kprof("trace", "--injection-path", INJECTION, "--armed", "no", "-o", "run", sys.executable, "-B",
                         script)
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT function, count(*) FROM trace_kernel JOIN trace_name n ON "
                                    "n.id=name_id GROUP BY 1"), [("scale", 2)])
        told = run.out.splitlines()
        self.assertEqual(told[0], "<kprof.profile, ended>")
        for line, text in zip(told[1:], ("of a run of kprof trace its report has what ran in it",
                                         "takes a trace, and measures no sets", "a trace has one report")):
            self.assertIn(text, line)

    def test_notebook(self):
        """The code of the sample's cells, with a torch that does what calls of CUDA do."""
        samples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../samples/notebook/inside.ipynb")
        with open(samples) as file:
            cells = ["".join(cell["source"]) for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
        self.module("pandas", "raise ImportError('there is no pandas')")
        with open(os.path.join(self.module("torch", ""), "torch.py"), "w") as file:
            file.write(PRELUDE.replace("import kprof", "") + """
class Tensor:
    def __matmul__(self, other):
        return launch(ADD)
class cuda:
    is_initialized = staticmethod(lambda: library is not None)
    synchronize = staticmethod(lambda: None)
rand = lambda *shape, device: Tensor()
relu = lambda tensor: launch(SCALE)
""")
        options = f"prepare('--injection-path', {INJECTION!r})"
        text = "\n".join(["sys.path.append('modules')", *cells]).replace("kprof.prepare()", "kprof." + options)
        run = self.alone(text)
        self.assertEqual(run.code, 0, run.err)
        for line in ("vectorAdd: 1 launches", "scale: 1 launches", '"dram__bytes.sum": ', "pandas is not installed"):
            self.assertIn(line, run.out)
        self.assertEqual(sum(line.startswith("scale {") for line in run.out.splitlines()), 3)
        self.assertIn("Kernel", run.out)
        self.assert_clean()

    def test_c_header(self):
        run = self.collect(["--armed", "no"], ["init", "control=start", f"launch={SCALE}", "control=stop",
                                               f"launch={SCALE}", f"control=start:default:{self.path('part')}",
                                               f"launch={VECTOR_ADD}*2", "control=stop", "control=start:fulll:x"])
        self.assert_run(run, 0)
        self.assertEqual(self.launches(), ["scale"])
        self.assertEqual(self.launches("part.kprof"), ["vectorAdd"] * 2)
        self.assertEqual([line.split()[0] for line in run.out.splitlines() if line[0].isdigit()], ["0"] * 4 + ["102"])
        self.assertIn("report " + self.path("part.kprof"), run.out)
        self.assertIn("did you mean", run.out)

    def test_c_header_beside_signals(self):
        part = ["control=start", f"launch={SCALE}", "control=stop"]
        run = self.collect(["--armed", "no"], ["init", "ticks", *part * 5])
        self.assert_run(run, 0)
        self.assertEqual([line for line in run.out.splitlines() if line[0].isdigit() and line[0] != "0"], [])
        self.assertEqual(self.launches(), ["scale"] * 5)

    def test_a_kprof_that_does_not_answer(self):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(self.path("gpu.socket"))
            silent.listen()
            script = self.script("kprof._LIMIT_S = 0.1\nkprof.status()\n")
            run = subprocess.run([sys.executable, "-B", script], env=self.environment({"KPROF_SESSION_DIR": self.dir}),
                                 capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn("kprof.Error: the kprof of this run has given no answer for 0.1 s", run.stderr)

    def test_c_header_gives_up_beside_signals(self):
        """A kprof that never answers does not hold a program for ever whose timer interrupts each wait."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("there is no C compiler")
        with open(self.path("own.c"), "w") as file:
            file.write("""
#include <kprof/ctl.h>
#include <signal.h>
static void ignore(int number)
{
    (void)number;
}
int main(int argc, char **argv)
{
    (void)argv;
    const struct itimerval timer = {{0, 10000}, {0, 10000}};
    char answer[KPROF_CTL_ANSWER];
    signal(SIGALRM, ignore);
    setitimer(ITIMER_REAL, &timer, NULL);
    static char many[400000];
    const char *const words[] = {"stop", many, NULL};
    memset(many, 'x', sizeof many - 1);
    const int code = argc > 1 ? kprof_ctl(words, answer) : kprof_ctl_stop(answer);
    printf("%d %s", code, answer);
    return 0;
}
""")
        def stop(limit_s, *words):
            subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", f"-DKPROF_CTL_LIMIT_S={limit_s}", "-I",
                            os.path.join(PYTHON, "../include"), "-o", "own", "own.c"], cwd=self.dir, check=True)
            return subprocess.Popen([self.path("own"), *words], env=self.environment({"KPROF_SESSION_DIR": self.dir}),
                                    stdout=subprocess.PIPE, text=True)

        late = "109 kprof: its kprof gives no answer: Connection timed out\n"
        with socket.socket(socket.AF_UNIX) as its_kprof, socket.socket(socket.AF_UNIX) as another:
            its_kprof.bind(self.path("gpu.socket"))
            its_kprof.listen(0) # one may wait for it
            self.assertEqual(stop(1).communicate(timeout=60)[0], late)
            its_kprof.accept()[0].close()
            another.connect(self.path("gpu.socket"))
            self.assertEqual(stop(1).communicate(timeout=60)[0], late)
            waiting = stop(600)
            with self.assertRaises(subprocess.TimeoutExpired):
                waiting.wait(0.2) # signals interrupt it meanwhile
            its_kprof.accept()[0].close()
            client, _ = its_kprof.accept()
            while client.recv(4096):
                continue
            client.sendall(b"exit 0\nmessage note told\n")
            client.close()
            self.assertEqual(waiting.communicate(timeout=60)[0], "0 message note told\n")
            waiting = stop(600, "many") # more than the socket takes at once
            client, _ = its_kprof.accept()
            with self.assertRaises(subprocess.TimeoutExpired):
                waiting.wait(0.2)
            words = b""
            while block := client.recv(4096):
                words += block
            client.sendall(b"exit 0\n")
            client.close()
            self.assertEqual(words, b"stop\0" + b"x" * 399999 + b"\0")
            self.assertEqual(waiting.communicate(timeout=60)[0], "0 ")

    def test_c_header_in_any_program(self):
        """Compilers take it as strictly as they may be asked to, and nobody has to want the answer."""
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("there is no C compiler")
        with open(self.path("own.c"), "w") as file:
            file.write("#include <kprof/ctl.h>\nint main(void)\n{\n    int code = kprof_ctl_start(NULL, NULL, NULL);\n"
                       "    printf(\"%d\", code);\n    return kprof_ctl_stop(NULL) != 109;\n}\n")
        for flags in (["-std=c99"], ["-std=c11", "-pedantic"], ["-std=gnu17", "-Wshadow"], ["-x", "c++"]):
            subprocess.run([compiler, *flags, "-Wall", "-Wextra", "-Werror", "-I", os.path.join(PYTHON, "../include"),
                            *(["-o", "own", "own.c"] if flags == ["-std=c99"] else ["-fsyntax-only", "own.c"])],
                           cwd=self.dir, check=True)
        run = subprocess.run([self.path("own")], env=self.environment({}), capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, "109"))

    def test_c_header_without_kprof(self):
        for session in ({}, {"KPROF_SESSION_DIR": self.dir}):
            run = subprocess.run([APP, "control=start"], env=self.environment(session), capture_output=True, text=True)
            self.assertTrue(run.stdout.startswith("109 kprof: "), run.stdout)
            self.assertIn("--armed no", run.stdout)
