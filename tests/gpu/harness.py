"""What the GPU checks share: running programs, reading kprof's reports and ncu's CSV, the facts that head every table,
and Markdown. Standard library only."""
import csv
import datetime
import functools
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


def kprof():
    return os.path.abspath(os.environ.get("KPROF", ROOT / "build/src/cli/kprof"))


def programs():
    return pathlib.Path(os.environ.get("KPROF_GPU_PROGRAMS", ROOT / "build/gpu-programs")).resolve()


def results_folder():
    folder = pathlib.Path(os.environ.get("KPROF_GPU_RESULTS", ROOT / "build/gpu-results")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Result:
    """How a program ended. `status` is what a shell would show: 128 + signal for one that was killed, None for one that
    outlasted its limit and was killed with its whole process group."""

    def __init__(self, status, stdout, stderr, seconds):
        self.status, self.stdout, self.stderr, self.seconds = status, stdout, stderr, seconds


def run(argv, limit=120, **options):
    """Run to the end. Output goes to files: a grandchild that keeps them open cannot hold the caller."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                                   start_new_session=True, **options)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
        seconds = time.monotonic() - start
        stdout.seek(0)
        stderr.seek(0)
        status = 128 - code if code is not None and code < 0 else code
        return Result(status, decode(stdout.read()), decode(stderr.read()), seconds)


def decode(data):
    return data.decode("utf-8", "replace")


def last_lines(text, count=6):
    return " / ".join(text.strip().splitlines()[-count:])


def have_gpu():
    if not shutil.which("nvidia-smi"):
        return False
    result = run(["nvidia-smi", "-L"], limit=60)
    return result.status == 0 and "GPU" in result.stdout


def need_gpu(and_ncu=False):
    """Without a GPU, or ncu, end this program as skipped."""
    if not have_gpu() or (and_ncu and not ncu()):
        print(f"{os.path.basename(sys.argv[0])}: no GPU{' or no ncu' * and_ncu}: skipped", file=sys.stderr)
        sys.exit(SKIPPED)


def gpus():
    """What CUDA_VISIBLE_DEVICES names of them one by one: all that this process sees."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [gpu for gpu in visible.split(",") if gpu]
    listed = run(["nvidia-smi", "-L"], limit=60).stdout.splitlines()
    return [str(number) for number, _ in enumerate(line for line in listed if line.startswith("GPU "))]


def ncu():
    """Path of ncu, or None."""
    path = os.environ.get("NCU") or shutil.which("ncu")
    candidates = sorted(pathlib.Path("/opt/nvidia/nsight-compute").glob("*/ncu"))
    return path or (str(candidates[-1]) if candidates else None)


# Facts


def first_match(pattern, text, default="not known"):
    match = re.search(pattern, text)
    return match.group(1) if match else default


@functools.lru_cache(maxsize=None)
def commit():
    if os.environ.get("KPROF_COMMIT"):
        return os.environ["KPROF_COMMIT"]
    result = run(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"])
    return result.stdout.strip() if result.status == 0 else "not known (set KPROF_COMMIT)"


def facts(command):
    """Rows of the table that opens every result."""
    query = run(["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"])
    smi = run(["nvidia-smi"]).stdout
    tool = run([ncu(), "--version"]).stdout if ncu() else "none"
    return [("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")),
            ("GPU, driver, compute capability", query.stdout.strip().splitlines()[0] if query.stdout else "not known"),
            ("CUDA version of the driver", first_match(r"CUDA Version: *([\d.]+)", smi)),
            ("ncu", first_match(r"Version ([\d.]+)", tool, "none")),
            ("kprof", last_lines(run([kprof(), "--version"]).stdout, 1) or "not known"),
            ("commit", commit()),
            ("command", f"`{command}`")]


# Reports


class Launch:
    def __init__(self, kernel, metrics, measured=True, reason="", position=0, replay_mode="", process=0):
        self.kernel, self.metrics, self.measured = kernel, metrics, measured
        self.reason, self.position, self.replay_mode, self.process = reason, position, replay_mode, process


def report_path(base):
    """The file that `-o base` makes."""
    return pathlib.Path(base) if str(base).endswith(".kprof") else pathlib.Path(f"{base}.kprof")


class Failure(Exception):
    """kprof or a program did something else than it should."""


# Sample programs, and what they are given besides the number of launches.
PROGRAMS = {"vectorAdd": [], "inplace": [], "reduction": [], "transpose": [], "fma": [], "tensor": [], "copy": ["1024"]}


def measure_as_alone(program, launches, options, base):
    """Run one of PROGRAMS under kprof, where it must print what it prints alone; gives the Result."""
    words = [programs() / program, launches, *PROGRAMS[program]]
    alone = run(words)
    result = run([kprof(), *options, "-f", "-o", base, *words], limit=600)
    if result.status != 0:
        raise Failure(f"kprof ended with {result.status}: {last_lines(result.stderr)}")
    if result.stdout != alone.stdout:
        raise Failure("the program's output is not that of the program alone")
    return result


def read_report(base):
    """(launches, units by metric) of a .kprof file, through its documented views."""
    with sqlite3.connect(f"file:{report_path(base)}?mode=ro", uri=True) as database:
        launches = {row[0]: Launch(row[1], {}, bool(row[2]), *row[3:]) for row in database.execute(
            "SELECT launch, kernel, measured, reason, position, replay_mode, pid FROM launches ORDER BY launch")}
        units = {}
        for launch, metric, value, unit in database.execute("SELECT launch, metric, value, unit FROM launch_metrics"):
            launches[launch].metrics[metric] = value
            units[metric] = unit
    return list(launches.values()), units


def read_messages(base):
    """What kprof said in the run."""
    with sqlite3.connect(f"file:{report_path(base)}?mode=ro", uri=True) as database:
        return [row[0] for row in database.execute("SELECT text FROM message")]


def largest_batch(base):
    """Launches in the largest batch that was replayed, which kprof tells with --verbose; 0 when it tells none."""
    found = (re.match(r"batch of (\d+) launches", text) for text in read_messages(base))
    return max((int(match.group(1)) for match in found if match), default=0)


# ncu


def parse_number(text):
    """(value, digits after the point) of one of ncu's cells; (None, 0) for one that holds no number."""
    plain = text.replace(",", "").strip()
    try:
        return float(plain), len(plain.partition(".")[2]) if "e" not in plain.lower() else 0
    except ValueError:
        return None, 0


def parse_ncu_raw(text):
    """(launches, units) of `ncu --csv --page raw`: a header, a row of units, a row per launch, among other lines. A
    metric of a launch is (value, half of the last digit printed)."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return [], {}
    rows = list(csv.reader(line for line in lines[start:] if line.startswith('"')))
    header, units = rows[0], dict(zip(rows[0], rows[1]))
    launches = []
    for row in rows[2:]:
        cells = dict(zip(header, row))
        metrics = {}
        for name in header[header.index("CC") + 1:]:
            value, digits = parse_number(cells.get(name, ""))
            if value is not None:
                metrics[name] = (value, 0.5 * 10.0 ** -digits if digits else 0.0)
        launches.append(Launch(cells["Kernel Name"].partition("(")[0], metrics, position=int(cells["ID"])))
    return launches, units


def kernel_filter(kernels):
    return "regex:^(" + "|".join(kernels) + ")$"


# Markdown


def cell(value):
    if value is None or value != value:
        return "n/a"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,.6g}"
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def run_checks(checks, session):
    """A row of each (name, check): what the check says of the session, or why it fails."""
    rows = []
    for name, check in checks:
        try:
            rows.append((name, "pass", check(session)))
        except (Failure, sqlite3.Error) as failure:
            rows.append((name, "**fail**", str(failure)))
        print(*rows[-1], sep=": ", flush=True)
    return rows


class Document:
    """Markdown that appears on stdout as it is made, and in a file."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def add(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()
