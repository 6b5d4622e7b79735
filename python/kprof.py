"""Measures CUDA kernels of this process with kprof, from inside: in a script, or in a cell of a notebook.

    import kprof
    kprof.prepare()                      # before the first call of CUDA; not needed under kprof --armed no

    with kprof.profile(set="default") as p:
        step()
        torch.cuda.synchronize()
    p.dict()                             # {kernel: {metric: mean}}
    p.dataframe()                        # a row for each launch; needs pandas
    p.launches                           # a dict for each launch

    @kprof.profile()                     # the same of each call; step.profile has what the last one gave
    def step(): ...

One file without dependencies; it talks to the kprof of this run by the socket that kprof ctl uses. CUDA loads kprof's
library as it starts, so a process that has called CUDA already, and was not started under kprof, cannot be measured:
Error says so.
"""

import atexit
import contextlib
import functools
import inspect
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import warnings
import weakref

__all__ = ["Error", "Result", "prepare", "profile", "start", "status", "stop"]

_PART = "part.kprof"
_PREPARED = "KPROF_PREPARED"  # a variable with the options of prepare, for children
_LIMIT_S = 150  # a command may have launches measured first
_RELAUNCH = ("start it as: kprof --armed no python ... (a notebook: kprof --armed no jupyter lab), or call "
             "kprof.prepare() before the first call of CUDA, after a restart of the notebook's kernel")


class Error(RuntimeError):
    """kprof could not do it. `code` is the exit code that kprof ctl would end with."""

    def __init__(self, text, code=109):
        super().__init__(text)
        self.code = code


def _remove(path, pid):
    if pid == os.getpid():  # a forked child has a copy of who removes it
        shutil.rmtree(path, ignore_errors=True)


class _Folder:
    """Removed with this object."""

    def __init__(self):
        self.name = tempfile.mkdtemp(prefix="kprof-python-")
        weakref.finalize(self, _remove, self.name, os.getpid())


class Result:
    """What was measured between a start and a stop. The report is removed with this object unless it has a name."""

    def __init__(self, path, folder=None):
        self.path = path
        self._folder = folder
        self._launches = None

    def _query(self, sql):
        address = f"file:{urllib.parse.quote(os.fsencode(self.path))}?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
                database.row_factory = sqlite3.Row
                return [dict(row) for row in database.execute(sql)]
        except sqlite3.Error as error:
            raise Error(f"{self.path}: {error}", 107) from error

    @property
    def launches(self):
        """A dict for each launch, in order; a metric that was not measured is None."""
        if self._launches is None:
            rows = self._query("SELECT * FROM launches ORDER BY launch")
            found = {row["launch"]: {**row, "metrics": {}} for row in rows}
            for row in self._query("SELECT launch, metric, value FROM launch_metrics"):
                found[row["launch"]]["metrics"][row["metric"]] = row["value"]
            self._launches = list(found.values())
        return self._launches

    @property
    def units(self):
        """The unit of each metric."""
        return {row["name"]: row["unit"] for row in self._query("SELECT name, unit FROM metric")}

    @property
    def census(self):
        """A dict for each kernel and shape that kprof --armed no --census has counted, with its launches and time."""
        return self._query("SELECT function AS kernel, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, "
                           "dynamic_smem_bytes, census.launches AS launches, total_ns, shortest_ns, longest_ns "
                           "FROM census JOIN kernel ON kernel.id=kernel_id ORDER BY total_ns DESC")

    def dict(self):
        """{kernel: {"launches": how many, metric: mean over those that have it, or None}}; of metrics that were
        measured, or computed from such. What launches and devices are is in `launches`."""
        kernels = {}
        counted = {row["name"] for row in self._query("SELECT name FROM metric WHERE kind IN ('hardware', 'derived')")}
        for launch in self.launches:
            kernel = kernels.setdefault(launch["kernel"], {"launches": 0})
            kernel["launches"] += 1
            for name in counted & launch["metrics"].keys():
                kernel.setdefault(name, []).append(launch["metrics"][name])
        for kernel in kernels.values():
            for name, values in kernel.items():
                if name != "launches":
                    known = [value for value in values if value is not None]
                    kernel[name] = sum(known) / len(known) if known else None
        return kernels

    def dataframe(self):
        """A row for each launch: what it was, and a column for each metric."""
        try:
            import pandas
        except ImportError:
            raise Error("pandas is not installed: use dict() or launches, or pip install pandas") from None
        rows = [{**launch, **launch["metrics"]} for launch in self.launches]
        for row in rows:
            del row["metrics"]
        return pandas.DataFrame(rows)

    def report(self, *options):
        """The text that kprof report prints of it: report("--page", "summary")."""
        run = subprocess.run([_find_kprof(), "report", self.path, *options], capture_output=True, text=True)
        if run.returncode != 0:
            raise Error(run.stderr.strip(), run.returncode)
        return run.stdout

    def __repr__(self):
        counts = (f"{count} {what}{ending * (count != 1)}" for count, what, ending in
                  ((len(self.launches), "launch", "es"), (len(self.dict()), "kernel", "s")))
        return f"<kprof.Result: {' of '.join(counts)} in {self.path}>"


def _find_kprof():
    here, named = os.path.dirname(os.path.abspath(__file__)), os.environ.get("KPROF")
    for path in [named] if named else (shutil.which("kprof"), os.path.join(here, "../../../bin/kprof")):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    if named:
        raise Error(f"the variable KPROF names {named}, which is no program")
    raise Error("there is no kprof in PATH; name it by the variable KPROF")


def _words(option, values):
    values = [values] if isinstance(values, str) else values or []
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{option[2:]} is a name or a list of names, not {values!r}")
    return [word for value in values for word in (option, value)]


def _receive(client):
    text = b""
    while block := client.recv(65536):
        text += block
    return text


def _ask(*words):
    """The lines of the answer, as (key, rest)."""
    session = os.environ.get("KPROF_SESSION_DIR")
    if not session:
        raise Error("this process does not run under kprof; " + _RELAUNCH)
    try:
        folder = os.open(session, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(_LIMIT_S)
                client.connect(f"/proc/self/fd/{folder}/gpu.socket")
                client.sendall(b"".join(os.fsencode(word) + b"\0" for word in words))
                client.shutdown(socket.SHUT_WR)
                text = _receive(client)
        finally:
            os.close(folder)
    except socket.timeout: # TimeoutError from Python 3.10 on
        raise Error(f"the kprof of this run has given no answer for {_LIMIT_S} s: it may be stopped") from None
    except OSError as error:
        raise Error(f"the kprof of this run takes no commands ({error}): it measures from the start (without --armed "
                    "no), or is gone; " + _RELAUNCH) from None
    parts = [line.partition(b" ")[::2] for line in text.split(b"\n") if line]
    lines = [(key.decode(errors="replace"), os.fsdecode(rest) if key == b"report" else rest.decode(errors="replace"))
             for key, rest in parts]
    code = int(lines[0][1]) if lines and lines[0][0] == "exit" else 109
    messages = [rest.partition(" ")[::2] for key, rest in lines if key == "message"]
    for level, message in messages:
        if level == "warning":
            warnings.warn(f"kprof: {message}", stacklevel=4)
    if code != 0:
        errors = "; ".join(message for level, message in messages if level == "error")
        errors = errors.replace("use --force-overwrite", "use overwrite=True")
        late = "; " + _RELAUNCH if "takes no commands" in errors else ""
        raise Error((errors or "kprof gave no answer") + late, code)
    return lines


if "_Host" not in globals():  # importlib.reload leaves what was there, and the kprof with it
    class _Host:
        """A kprof that this process has started for itself."""

        process = folder = channel = None  # it ends when the channel is closed

    _open = {}  # of the start that is not stopped yet
    _lock = threading.Lock()  # of this


def _leave_to_parent():
    """A forked child has what its parent started. While it keeps that pipe open, the parent's kprof goes on."""
    global _lock
    if _Host.process:
        _Host.channel.close()
    _Host.process = None
    _lock = threading.Lock()
    _open.clear()


def _end_host():
    if _Host.process:
        with contextlib.suppress(OSError):  # this program may have closed all files
            _Host.channel.close()
        try:
            _Host.process.wait(60)
        except subprocess.TimeoutExpired:
            _Host.process.terminate()
        _Host.process = None


def _start_host(options):
    """kprof runs a program; what it sets in that program's environment is what CUDA looks for here, too. The program
    has a channel of its own: options decide about its standard input and output."""
    if not sys.executable:  # of a Python within another program
        raise Error("sys.executable names no Python that kprof can start; " + _RELAUNCH)
    names = "('CUDA_INJECTION64_PATH', 'NVTX_INJECTION64_PATH', 'KPROF_SESSION_DIR')"
    _Host.folder = _Folder()
    ours, its = socket.socketpair()
    waiter = ("import json, os; told = json.dumps({name: value for name, value in os.environ.items() if name in "
              f"{names}}}) + '\\n'; os.write({its.fileno()}, told.encode()); os.read({its.fileno()}, 1)")
    try:
        with its, open(os.path.join(_Host.folder.name, "messages"), "w+") as errors:
            process = subprocess.Popen([_find_kprof(), "--armed", "no", "--quiet", "-o",
                                        _in_folder(_Host.folder.name, "all"), *options, "--", sys.executable, "-ISc",
                                        waiter], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                       pass_fds=[its.fileno()], start_new_session=True)
            its.close()
            with ours.makefile() as lines:
                line = lines.readline()
            if not line:
                process.wait()
                errors.seek(0)
                raise Error(process.returncode and errors.read().strip() or
                            f"kprof runs no program with the options {' '.join(options)}", process.returncode or 101)
    except BaseException:  # among them an interrupted cell
        ours.close()
        raise
    _Host.process, _Host.channel = process, ours
    return json.loads(line)


def prepare(*options):
    """Have a kprof of its own beside this process, with these options of a run, unless it runs under one already. CUDA
    looks for kprof's library as it starts, so this has to come before the first call of CUDA."""
    options = [os.fsdecode(option) for option in options]
    if os.environ.get("KPROF_SESSION_DIR"):
        before = os.environ.get(_PREPARED)
        if options and before != json.dumps(options):
            why = ("this process was started under a kprof that has its own options" if before is None else
                   f"kprof runs already, with {before}; restart the notebook's kernel")
            warnings.warn(f"kprof.prepare: {' '.join(options)} has no effect: {why}", stacklevel=2)
        return
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise Error("this process has called CUDA already; " + _RELAUNCH)
    os.environ.update(_start_host(options), **{_PREPARED: json.dumps(options)})
    os.environ.pop("TEARDOWN_CUPTI", None)  # with which PyTorch would end CUPTI
    atexit.register(_end_host)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


def _in_folder(folder, name):
    """kprof expands placeholders such as %p in the name, and must expand none in the folder."""
    return os.path.join(folder.replace("%", "%%"), name)


def start(set=None, *, section=None, metrics=None, keep=None, overwrite=False):
    """Measure this process' launches from now on, with the sets, sections and metrics given, or else those of the run.
    The report of them is removed with the result, unless `keep` names it; `overwrite` lets that replace a file. Under
    kprof trace --armed no the trace of the run goes on."""
    words = [*_words("--set", set), *_words("--section", section), *_words("--metrics", metrics)]
    with _lock:
        if _open:
            raise Error("kprof.start: what was started before, perhaps by another thread, is not stopped yet "
                        "(kprof.stop does that), and a block cannot be within another one", 101)
        _open.update(folder=None)
    try:
        prepare()
        folder = _open["folder"] = None if keep else _Folder()
        path = _in_folder(os.getcwd(), os.path.expanduser(keep)) if keep else _in_folder(folder.name, _PART)
        try:
            _ask("start", str(os.getpid()), *words, "--export", path, *["--force-overwrite"] * bool(overwrite))
        except Error as refused:
            if keep or "a trace has one report" not in str(refused):
                raise
            _ask("start", str(os.getpid()), *words)
            _open["is_trace"] = True
    except BaseException as failed:  # among them an interrupted cell
        _open.clear()
        _stop_if_interrupted(failed)
        raise


def _stop_if_interrupted(failed):
    """Else this process would be measured on, into a report that nobody awaits."""
    if not isinstance(failed, Error):
        with contextlib.suppress(Error):
            _ask("stop", str(os.getpid()))


def stop():
    """Measure no more, and return what was measured: a Result, or None under kprof trace, whose report will have it.
    Work that the GPU still has to do should have been waited for."""
    with _lock:
        if not _open:
            raise Error("kprof.stop: nothing was started", 101)
        folder, is_trace = _open.pop("folder"), _open.pop("is_trace", False)
    try:
        lines = _ask("stop", str(os.getpid()))
    except BaseException as failed:
        _stop_if_interrupted(failed)
        raise
    reports = [rest for key, rest in lines if key == "report"]
    if str(os.getpid()) not in (rest.split(" ")[0] for key, rest in lines if key == "process"):
        if not _Host.process: # it ran under kprof from the start
            raise Error("this process has not called CUDA yet, so that nothing was measured", 106)
        raise Error("this process has not called CUDA, or had called it before kprof was there; " + _RELAUNCH)
    if is_trace:
        return None
    if not reports:
        raise Error("kprof has made no report", 110)
    # a name that has the end of a line is no answer
    result = Result(os.path.join(folder.name, _PART) if folder else reports[-1], folder)
    _tell_nothing(result)
    return result


def _tell_nothing(result):
    """Warn where there is no value, since an empty table does not tell why."""
    launches = result.launches
    seen = int(result._query("SELECT total(launches) AS launches FROM seen")[0]["launches"])
    if not launches and not result.census and seen:
        warnings.warn(f"kprof: {seen} launches were made between start and stop, and the options of the run, such as "
                      "-k, choose none of them", stacklevel=4)
    elif not launches and not result.census:
        warnings.warn("kprof: no kernel was launched between start and stop: the code that launches has to be within "
                      "the block, in this process", stacklevel=4)
    elif launches and all(launch["reason"] and not launch["measured"] for launch in launches):
        reasons = sorted({launch["reason"] for launch in launches})
        warnings.warn(f"kprof: none of {len(launches)} launches was measured: {'; '.join(reasons[:3])}", stacklevel=4)


def status():
    """A dict for each process of the run that has called CUDA."""
    rows = [rest.split(" ") for key, rest in _ask("status") if key == "process"]
    return [{"pid": int(pid), "state": state, "measured": int(measured)} for pid, state, measured in rows]


class profile:
    """with kprof.profile(set="default") as p: step()

    What p has once the block has ended: launches, dict(), dataframe(), census, report(), units, path; see Result."""

    def __init__(self, set=None, *, section=None, metrics=None, keep=None, overwrite=False):
        self._wanted = {"set": set, "section": section, "metrics": metrics, "keep": keep, "overwrite": overwrite}
        self.result, self._open_in, self._has_ended = None, None, False  # open in a process
        self._calls = {}  # process -> the call that opens it
        if callable(set):
            raise TypeError("write @kprof.profile(), with brackets, before a function")

    def __enter__(self):
        start(**self._wanted)
        self.result, self._open_in, self._has_ended = None, os.getpid(), False
        return self

    def __call__(self, function):
        """Measure each call of a function: @kprof.profile(set="default"). The function's attribute `profile` has what
        the last call gave; calls within that one, and of other threads meanwhile, belong to it."""
        if not callable(function):
            raise TypeError("kprof.profile is for a function here; write: with kprof.profile(): ...")
        kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
        if any(is_kind(called) for is_kind in kinds for called in (function, function.__call__)):
            raise Error("kprof.profile: a call of a coroutine or generator runs nothing of it; use "
                        "with kprof.profile() within it", 101)

        @functools.wraps(function)
        def measured(*words, **named):
            pid, own = os.getpid(), object()
            # of threads that come here at once, one alone adds its call
            if self._open_in == pid or self._calls.setdefault(pid, own) is not own:
                return function(*words, **named)
            try:
                with self:
                    return function(*words, **named)
            finally:
                del self._calls[pid]

        measured.profile = self
        return measured

    def __exit__(self, kind, error, trace):
        is_copy, self._open_in = self._open_in != os.getpid(), None
        if is_copy:  # in a forked child, whose parent's block this is
            return
        try:
            self.result = stop()
        except Error as failed:
            if kind is None:
                raise
            warnings.warn(f"kprof: {failed}", stacklevel=2) # what the block has raised matters more
        self._has_ended = True

    def __repr__(self):
        return f"<kprof.profile, {repr(self.result) if self.result else 'ended' if self._has_ended else 'not ended'}>"

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.result)})

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if self.result is None:
            raise Error(f"{name}: " + ("this block has no result; of a run of kprof trace its report has what ran in it"
                                       if self._has_ended else "what was measured is known when the block has ended"),
                        101)
        return getattr(self.result, name)
