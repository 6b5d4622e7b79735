"""Call stacks of launches: a program in Python launches kernels of the simulated machine."""

import csv
import io
import json
import re
import shutil
import sys
import unittest

from harness import APP, INJECTION, METRIC, SCALE, VECTOR_ADD, Case, is_sanitized, os

LAUNCHER = '''
import ctypes, os
library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
started = []
def launch(name):
    if not started:
        started.append(library.InitializeInjection())
    library.kprof_sim_launch(name.encode())
'''
PROGRAM = f'''
import sys, threading
sys.path.insert(0, "site-packages")
from framework import ops

def forward(x):
    return ops.linear(x)

def step(number):
    forward(number)
    if number == 1:
        ops.add("{VECTOR_ADD}")

def main():
    for number in range(3):
        step(number)
    thread = threading.Thread(target=forward, args=(3,))
    thread.start()
    thread.join()

main()
'''
# Lines of PROGRAM, from 1; the first is empty.
FORWARD, ADD = "train.py:7 in forward", "train.py:12 in step"
FROM = [FORWARD, FORWARD, ADD, FORWARD, FORWARD]


@unittest.skipIf(is_sanitized(), "Python itself would have to be sanitized")
class Stacks(Case):
    def setUp(self):
        super().setUp()
        folder = self.path("site-packages/framework")
        os.makedirs(folder)
        with open(os.path.join(folder, "__init__.py"), "w") as file:
            file.write("")
        with open(os.path.join(folder, "ops.py"), "w") as file:
            file.write(LAUNCHER + f"def add(name):\n    launch(name)\ndef linear(x):\n    launch('{SCALE}')\n")
        with open(self.path("train.py"), "w") as file:
            file.write(PROGRAM)

    def write_program(self, text):
        with open(self.path("train.py"), "w") as file:
            file.write("import sys\nsys.path.insert(0, 'site-packages')\nfrom framework import ops\n" + text)

    def run_python(self, *options, script="train.py"):
        return self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run", *options,
                          sys.executable, "-BS", script)

    def origins(self):
        return [row[0] for row in self.query(
            "run.kprof", "SELECT launched_from FROM launches ORDER BY launch")]

    def test_nothing_without_the_option(self):
        self.assert_run(self.run_python(), 0)
        self.assertEqual(self.origins(), [None] * 5)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM stack"), [(0,)])

    def test_launches_of_functions(self):
        for options, positions in ((["--python-include", "forward"], [0, 1, 3, 4]),
                                   (["--python-include", "step/forward"], [0, 1, 3]),
                                   (["--python-include", "[<module>/*/add", "--python-include", "regex:r[u]n$"],
                                    [2, 4]),
                                   (["--python-include", "train.py@step", "--python-exclude", "ops.py@linear"], [2]),
                                   (["--python-exclude", "main/step"], [4]),
                                   (["--python-include", "linear/launch]", "-k", "scale", "-c", "2"], [0, 1])):
            with self.subTest(options):
                self.assert_run(self.run_python(*options), 0)
                self.assertEqual([row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY 1")],
                                 positions)
                self.assertEqual(self.origins(), [FROM[position] for position in positions])
        run = self.run_python("--python-include", "forwards")
        self.assert_run(run, 106)
        self.assertIn('no launch matched --python-include "forwards"', run.err)
        self.assertIn("launches were made in: <module>/main/step/forward/linear/launch; <module>/main/step/add/launch",
                      run.err)
        self.assert_run(self.run_python("--python-include", "train.py@"), 101)

    def test_methods_of_python(self):
        """By their qualified names, or by the last part alone."""
        self.write_program("class Net:\n    def forward(self): ops.linear(1)\n"
                           "    def loss(self): (lambda: ops.linear(1))()\n"
                           "def step(net):\n    net.forward()\n    net.loss()\nstep(Net())\n")
        for options, positions in ((["--python-include", "forward"], [0]), (["--python-include", "step/loss"], [1]),
                                   (["--python-exclude", "forward"], [1]), (["--python-exclude", "step"], [])):
            self.assert_run(self.run_python(*options), 0 if positions else 106)
            self.assertEqual([row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY 1")],
                             positions)
        if sys.version_info >= (3, 11):
            self.assert_run(self.run_python("--python-include", "step/Net.forward"), 0)
            self.assertEqual(self.query("run.kprof", "SELECT position FROM launch"), [(0,)])

    def test_callers_of_stacks(self):
        """Stacks of one line are told apart by who called it; one that was cut has a root of its own."""
        self.write_program("def walk(left): walk(left - 1) if left else ops.linear(1)\n"
                           "def train(): walk(1)\ndef test(): walk(0)\ntrain()\ntest()\nwalk(400)\n")
        self.assert_run(self.run_python("--call-stack-type", "python"), 0)
        text = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", "stack")
        self.assertEqual(text.err, "")
        text = text.out
        for line in ("stack 1, train.py:4 in walk, from walk (train.py:4), train (train.py:5), <module>",
                     "stack 2, train.py:4 in walk, from test (train.py:6), <module> (train.py:8)",
                     "stack 3, train.py:4 in walk, from walk (train.py:4), walk (train.py:4), walk"):
            self.assertIn(line, text)
        lines = self.kprof("export", "run.kprof", "--to", "folded").out.splitlines()
        self.assertEqual([line.startswith("(more frames);walk (") for line in lines], [False, False, True])

    def test_lines_of_a_census(self):
        """It does not know from where kernels were launched, so that rows of lines say whose time they tell."""
        run = self.run_python("--census", "--top", "2", "--call-stack-type", "python")
        self.assert_run(run, 0)
        for by, count in (("line", 2), ("stack", 2), ("kernel", 0), ("config", 0)):
            out = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", by).out
            self.assertEqual(out.count("time of the launches measured alone, not of the census"), count, out)

    def test_functions_around_deep_recursion(self):
        """Each frame that is kept counts."""
        self.write_program("def walk(left): walk(left - 1) if left else ops.linear(1)\n"
                           "def step(): walk(200)\nstep()\n")
        self.assert_run(self.run_python("--python-include", "train.py@step"), 0)
        self.assert_run(self.run_python("--python-exclude", "step/walk"), 106)

    def test_lines_of_python(self):
        self.assert_run(self.run_python("--call-stack-type", "python"), 0)
        self.assertEqual(self.origins(), FROM)
        run = self.kprof("report", "run.kprof")
        self.assert_run(run, 0)
        self.assertIn(f"\n  Launched from: {ADD}\n", run.out)
        stacks = self.query("run.kprof", "SELECT stack_id, frames, cut, reason, module FROM launch_stack "
                            "JOIN stack ON stack.id=stack_id ORDER BY launch_id")
        # Of the launches of step one is of another line; with the thread's there are 3 stacks.
        self.assertEqual([row[0] for row in stacks], [1, 1, 2, 1, 3])
        frames = json.loads(stacks[2][1])
        self.assertEqual([(frame["function"], os.path.basename(frame["file"])) for frame in frames], [
            ("launch", "ops.py"), ("add", "ops.py"), ("step", "train.py"), ("main", "train.py"),
            ("<module>", "train.py")])
        self.assertEqual([frame["line"] for frame in frames], [8, 10, 12, 16, 21])
        self.assertEqual({row[2:4] for row in stacks}, {(0, "")})
        self.assertEqual({os.path.basename(row[4]) for row in stacks}, {"train.py"})
        self.assertEqual(json.loads(stacks[4][1])[-1]["function"].rpartition(".")[2], "_bootstrap")

    def test_launches_of_native_functions(self):
        steps = [f"launch={SCALE}*2", f"thread={SCALE}", f"launch={VECTOR_ADD}"]
        for options, positions in ((["--native-include", "main"], [0, 1, 3]),
                                   (["--native-include", "sim-app@main/*/launch]"], [0, 1, 3]),
                                   (["--native-exclude", "main"], [2]),
                                   (["--native-include", "regex:^launch_in", "--native-exclude", "libc.so.6@main"],
                                    [2])):
            with self.subTest(options):
                self.assert_run(self.collect(options, steps), 0)
                self.assertEqual([row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY 1")],
                                 positions)
                self.assertEqual(set(self.query("run.kprof", "SELECT count(*)>0 FROM launch_stack")), {(1,)})
        run = self.collect(["--native-include", "nowhere"], steps)
        self.assert_run(run, 106)
        self.assertIn('no launch matched --native-include "nowhere"', run.err)
        self.assertRegex(run.err, "launches were made in: .*main/.*launch; ")
        self.assert_run(self.run_python("--native-include", "nowhere", "--python-include", "add"), 106)
        self.assert_run(self.run_python("--native-include", "regex:^ffi_call$", "--python-include", "add"), 0)
        self.assertEqual(self.origins(), [ADD])

    def test_native_frames(self):
        self.assert_run(self.run_python("--call-stack-type", "native"), 0)
        for (frames,) in self.query("run.kprof", "SELECT frames FROM stack"):
            modules = [os.path.basename(frame.get("module", "")) for frame in json.loads(frames)]
            self.assertTrue(any("_ctypes" in module or "ffi" in module for module in modules), modules)
            self.assertFalse(any("kprof" in module for module in modules), modules)
        self.assert_run(self.run_python("--call-stack-type", "python,native"), 0)
        self.assertEqual(self.origins(), FROM)
        for (frames,) in self.query("run.kprof", "SELECT frames FROM stack"):
            kinds = ["module" in frame for frame in json.loads(frames)]
            self.assertEqual(kinds, sorted(kinds))
            self.assertEqual(len(set(kinds)), 2)

    def test_program_without_python(self):
        self.assert_run(self.collect(["--call-stack-type", "python"], [f"launch={SCALE}"]), 0)
        self.assertEqual(self.origins(), ["(there is no Python in the process)"])
        self.assert_run(self.collect(["--call-stack"], [f"launch={SCALE}*2", f"thread={SCALE}"]), 0)
        for origin in self.origins(): # sim-app's symbols tell the function; lines need debug information
            self.assertRegex(origin, r"^(app\.c:\d+|sim-app\+0x[0-9a-f]+) in \w+$")
        self.assertEqual(len(set(self.origins())), 1) # all are of one line of a function of sim-app
        functions = [[frame.get("function") for frame in json.loads(frames)] for (frames,) in self.query(
            "run.kprof", "SELECT frames FROM stack ORDER BY id")]
        self.assertEqual(["main" in names for names in functions], [True, False]) # and from a thread

    def test_function_that_launches_a_kernel_of_its_name(self):
        """nvcc makes one for each kernel: the line is that of its caller."""
        for kernel, function in (SCALE, "launch"), ("launch", "run_step"):
            self.assert_run(self.collect(["--call-stack-type", "native"], [f"launch={kernel}"]), 0)
            self.assertRegex(self.origins()[0], rf" in ({function}|main)$")
            self.assertNotIn(f" in {kernel}", self.origins()[0])

    def test_a_thread_without_python(self):
        """No line is the user's own: the innermost frame stands for it, with the reason."""
        self.write_program("ops.linear(1)\nops.library.kprof_sim_thread()\n")
        self.assert_run(self.run_python("--call-stack"), 0)
        self.assertRegex(self.origins()[1], r"^[^(]+ \(the thread runs no Python\)$")
        for (frames,) in self.query("run.kprof", "SELECT frames FROM stack"):
            self.assertNotIn("libkprof", frames)

    def test_program_in_a_package(self):
        """No code is outside of installed packages: the line is the innermost one outside of frameworks of kernels."""
        libraries = self.path("env/lib/python3.12/site-packages")
        for name, text in {"serve/__init__.py": "", "serve/__main__.py": "from serve.main import main\nmain()\n",
                           "serve/main.py": "import threading\nfrom serve.model import forward\ndef main():\n"
                                            "    forward()\n    thread = threading.Thread(target=forward)\n"
                                            "    thread.start()\n    thread.join()\n",
                           "serve/model.py": "from torch import ops\ndef forward():\n    ops.linear(1)\n",
                           "../../../bin/serve": "import click\nfrom serve.main import main\nclick.call(main)\n",
                           "click/__init__.py": "def call(function):\n    function()\n",
                           "../../../bin/train.py": "from torch import ops\nops.linear(1)\n"}.items():
            path = os.path.join(libraries, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        shutil.copytree(self.path("site-packages/framework"), os.path.join(libraries, "torch"))
        own, framework = "model.py:3 in forward (package serve)", "ops.py:8 in launch (package torch)"
        spawned = ("import multiprocessing as m, serve.main\n"
                   "p = m.get_context('spawn').Process(target=serve.main.main)\np.start()\np.join()")
        for words, lines in ((["env/bin/serve"], [own] * 2), (["-m", "serve"], [own] * 2),
                             (["env/bin/train.py"], ["train.py:2 in <module>"]),
                             (["-c", spawned], [own] * 2),
                             (["-c", "import serve.main; serve.main.main()"], ["<string>:1 in <module>", own]),
                             (["-c", "import threading; from torch import ops\n"
                               "t = threading.Thread(target=ops.linear, args=(1,)); t.start(); t.join()"],
                              [framework])):
            run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run",
                             "--call-stack-type", "python", sys.executable, "-BS", *words,
                             env={"PYTHONPATH": libraries})
            self.assert_run(run, 0)
            self.assertEqual(self.origins(), lines, words)
            if words == ["env/bin/serve"]:
                out = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", "stack").out
                self.assertIn(f"stack 1, {own}, from main (main.py:4)", out)
                self.assertNotIn("(serve:3)", out)

    def test_pages_and_groups(self):
        self.assert_run(self.run_python("--call-stack"), 0)
        run = self.kprof("report", "run.kprof", "--page", "raw", "--json")
        self.assert_run(run, 0)
        self.assertEqual([launch["launched_from"] for launch in json.loads(run.out)["launches"]], FROM)
        run = self.kprof("report", "run.kprof", "--page", "raw", "--csv", "--print-metric-name", "name")
        self.assert_run(run, 0)
        for grouping, groups in (("line", {("scale", FORWARD): 4, ("vectorAdd", ADD): 1}),
                                 ("module", {("scale", "train.py"): 4, ("vectorAdd", "train.py"): 1}),
                                 ("stack", {("scale", FORWARD): 3, ("vectorAdd", ADD): 1, ("scale", "thread"): 1})):
            run = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", grouping, "--json")
            self.assert_run(run, 0)
            rows = [(row["function"], row["group"], row["launches"]) for row in json.loads(run.out)["kernels"]]
            self.assertEqual(sorted(row[2] for row in rows), sorted(groups.values()), rows)
            if grouping == "line":
                self.assertEqual({row[:2]: row[2] for row in rows}, groups)
            if grouping == "module":
                self.assertTrue(all(row[1].endswith("train.py") for row in rows), rows)
        run = self.kprof("export", "run.kprof", "--to", "long")
        self.assert_run(run, 0)
        rows = list(csv.DictReader(io.StringIO(run.out)))
        self.assertEqual({row["launched_from"] for row in rows}, set(FROM))

    def test_ranges(self):
        """Where a range begins; one from before CUDA has the line of its first launch."""
        self.write_program('''
def step():
    ops.library.kprof_sim_push(b"step")
    ops.linear(1)
    ops.linear(2)
    ops.library.kprof_sim_pop()
step()
step()
''')
        self.assert_run(self.run_python("--call-stack-type", "python", "--replay-mode", "range", "--nvtx-include",
                                        "step/"), 0)
        self.assertEqual(self.origins(), ["train.py:7 in step", "train.py:6 in step"])
        self.write_program("ops.linear(0)\nops.library.kprof_sim_profiler(True)\nops.linear(1)\n"
                           "ops.library.kprof_sim_profiler(False)\n")
        self.assert_run(self.run_python("--call-stack-type", "python", "--replay-mode", "range"), 0)
        self.assertEqual(self.origins(), ["train.py:5 in <module>"])

    def test_modules_that_pytorch_names(self):
        self.write_program('''
def in_ranges(*ranges):
    for name in ranges:
        ops.library.kprof_sim_push(name.encode())
    ops.linear(1)
    for name in ranges:
        ops.library.kprof_sim_pop()
in_ranges()
in_ranges("step 1", "aten::linear, seq = 3, op_id = 1", "aten::addmm, seq = 3, op_id = 2")
in_ranges("step 1", "layer1, op_id = 7", "aten::linear, seq = 3, op_id = 1")
in_ranges("step 1")
''')
        self.assert_run(self.run_python("--call-stack-type", "python", "--nvtx"), 0)
        run = self.kprof("report", "run.kprof", "--page", "summary", "--group-by", "module", "--csv")
        self.assert_run(run, 0)
        rows = {os.path.basename(row["group"]): int(row["launches"]) for row in csv.DictReader(io.StringIO(run.out))}
        self.assertEqual(rows, {"train.py": 2, "aten::linear": 1, "layer1": 1})

    def test_graphs_and_backward_passes(self):
        """A node has the stack of its capture; a backward pass that of its operator, where NVTX ranges tell which."""
        with open(self.path("train.py"), "w") as file:
            file.write("import sys, threading\nsys.path.insert(0, 'site-packages')\nfrom framework import ops\n" + f'''
def forward(seq):
    ops.library.kprof_sim_push(b"aten::linear, seq = %d, op_id = 1" % seq)
    ops.linear(seq)
    ops.library.kprof_sim_pop()
def backward(seq):
    ops.library.kprof_sim_push(b"autograd::engine::evaluate_function: AddmmBackward0, seq = %d" % seq)
    ops.add("{VECTOR_ADD}")
    ops.library.kprof_sim_pop()
def step():
    forward(1)
    thread = threading.Thread(target=lambda: (backward(1), backward(2)))
    thread.start()
    thread.join()
def captured():
    ops.linear(3)
    backward(1)
ops.linear(0) # CUDA begins
step()
ops.library.kprof_sim_capture(True)
captured()
ops.library.kprof_sim_capture(False)
ops.library.kprof_sim_graph()
''')
        first, forward, backward = "train.py:21 in <module>", "train.py:7 in forward", "train.py:11 in backward"
        captured, pushed = "train.py:19 in captured", "train.py:6 in forward"
        for options, told in ((["--nvtx"], [(first, "launch"), (forward, "launch"), (pushed, "forward"),
                                            (backward, "launch"), (captured, "capture"), (pushed, "forward")]),
                              ([], [(first, "launch"), (forward, "launch"), (backward, "launch"),
                                    (backward, "launch"), (captured, "capture"), (backward, "capture")])):
            self.assert_run(self.run_python("--call-stack-type", "python", *options), 0)
            self.assertEqual(self.query("run.kprof", "SELECT line, origin FROM launch_stack JOIN stack ON "
                                        "stack.id=stack_id ORDER BY launch_id"), told)
        run = self.kprof("report", "run.kprof")
        self.assertIn(f"Launched from: {captured}, which made its graph's node", run.out)
        for chosen, origins in ("captured", ["capture"] * 2), ("forward", ["launch"]), ("backward", ["launch"] * 2 +
                                                                                                   ["capture"]):
            self.assert_run(self.run_python("--python-include", chosen), 0)
            self.assertEqual(self.query("run.kprof", "SELECT origin FROM launch_stack ORDER BY launch_id"),
                             [(origin,) for origin in origins])
        self.assert_run(self.run_python("--nvtx", "--python-include", "step/forward"), 0)
        self.assertEqual(self.query("run.kprof", "SELECT origin FROM launch_stack ORDER BY launch_id"),
                         [("launch",), ("forward",), ("forward",)])

    def test_folded(self):
        self.assert_run(self.run_python("--call-stack-type", "python"), 0)
        run = self.kprof("export", "run.kprof", "--to", "folded")
        self.assert_run(run, 0)
        lines = dict(line.rsplit(" ", 1) for line in run.out.splitlines())
        main = "<module> (train.py:21);main (train.py:16)"
        times = self.query("run.kprof", "SELECT stack_id, kernel_id, sum(value) FROM launch JOIN launch_stack ON "
                           "launch_stack.launch_id=launch.id JOIN value ON value.launch_id=launch.id JOIN metric ON "
                           f"metric.id=metric_id WHERE metric.name='{METRIC}' GROUP BY 1, 2 ORDER BY 1")
        times = [float(f"{row[2]:.0f}") for row in times]
        self.assertEqual(len(lines), len(times))
        self.assertEqual(float(lines[f"{main};step (train.py:10);forward (train.py:7);linear (ops.py:12);"
                                     "launch (ops.py:8);scale"]), times[0])
        self.assertEqual(float(lines[f"{main};step (train.py:12);add (ops.py:10);launch (ops.py:8);vectorAdd"]),
                         times[1])
        self.assertEqual(sorted(float(value) for value in lines.values()), sorted(times))
        self.assert_run(self.collect(["--call-stack-type", "native"], [f"launch={SCALE}"]), 0)
        run = self.kprof("export", "run.kprof", "--to", "folded")
        self.assert_run(run, 0)
        self.assertRegex(run.out, r"^([^;]+( \([^;]+\)|\+0x[0-9a-f]+);)+scale \d+\n$")
        self.assertRegex(run.out, r";main \((sim-app|app\.c:\d+)\);") # without debug information no line is known

    def test_multiplexed_launches_of_several_lines(self):
        """They share samples, and each line has its own launches; in each NVTX range, too."""
        self.write_program('''
def forward():
    ops.library.kprof_sim_push(b"forward")
    ops.linear(1)
    ops.linear(1)
    ops.library.kprof_sim_pop()
def backward():
    ops.linear(1)
for i in range(12):
    forward()
    backward()
''')
        self.assert_run(self.run_python("--call-stack-type", "python", "--nvtx", "--replay-mode", "multiplex"), 0)
        for grouping, parts in (("line", {"train.py:7 in forward": 12, "train.py:8 in forward": 12,
                                          "train.py:11 in backward": 12}),
                                ("nvtx", {"forward/": 24, "no range": 12})):
            page = ("report", "run.kprof", "--page", "summary", "--group-by", grouping)
            rows = json.loads(self.kprof(*page, "--json").out)["kernels"]
            self.assertEqual({row["group"]: row["launches"] for row in rows}, parts)
            self.assertEqual(len({(row["median"], row["samples"]) for row in rows}), 1)
            self.assertRegex(self.kprof(*page).out, r"multiplexed, \d+ samples, with launches of other groups")
        text = " ".join(self.kprof("report", "run.kprof").out.split())
        self.assertIn("24 launches are from other lines; 12 launches are in other NVTX ranges", text)
        folded = self.kprof("export", "run.kprof", "--to", "folded").out
        self.assertEqual(len(set(re.findall(r"train.py:(?:7|8|11)\);.* (\d+)\n", folded))), 1)
        self.assertEqual(len(folded.splitlines()), 3)

    def test_names_of_a_program_that_the_shell_found(self):
        """The linker knows it as it was called, such as ./app, and maybe from another folder."""
        os.symlink(APP, self.path("own"))
        os.mkdir(self.path("elsewhere"))
        for words in (["./own"], ["own"], ["sh", "-c", 'cd elsewhere && exec ../own "$@"', "sh"]):
            run = self.kprof("--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run",
                             "--call-stack-type", "native", *words, f"launch={SCALE}",
                             env={"PATH": f"{self.dir}:{os.environ['PATH']}"})
            self.assert_run(run, 0)
            frames = json.loads(self.query("run.kprof", "SELECT frames FROM stack")[0][0])
            self.assertEqual([frame["module"] for frame in frames if frame.get("function") in ("launch", "main")],
                             [APP, APP])

    def test_folded_needs_times(self):
        self.assert_run(self.kprof("--injection-path", INJECTION, "--metrics", "launch__grid_size", "-f", "-o", "run",
                                   "--call-stack-type", "python", sys.executable, "-BS", "train.py"), 0)
        run = self.kprof("export", "run.kprof", "--to", "folded")
        self.assertNotEqual(run.code, 0)
        self.assertIn("gpu__time_duration.sum", run.err)
        self.assertEqual(run.out, "")

    def test_folded_without_stacks(self):
        self.assert_run(self.collect([], [f"launch={SCALE}"]), 0)
        run = self.kprof("export", "run.kprof", "--to", "folded")
        self.assertEqual((run.code, run.out.startswith("(no call stack);scale ")), (0, True), run.out)
        self.assertIn("no call stacks, which a run keeps with --call-stack", run.err)

    def test_merged(self):
        self.assert_run(self.run_python("--call-stack-type", "python"), 0)
        os.rename(self.path("run.kprof"), self.path("other.kprof"))
        self.assert_run(self.run_python("--call-stack-type", "python"), 0)
        self.assert_run(self.kprof("merge", "run.kprof", "other.kprof", "-o", "both.kprof"), 0)
        self.assertEqual(self.query("both.kprof", "SELECT count(*) FROM stack"), [(3,)])
        self.assertEqual([row[0] for row in self.query(
            "both.kprof", "SELECT launched_from FROM launches ORDER BY launch")], FROM * 2)
