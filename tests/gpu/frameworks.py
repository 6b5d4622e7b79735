#!/usr/bin/env python3
"""Runs programs of PyTorch, JAX, Triton and CuPy plain, under kprof and under ncu, and prints Markdown.

The programs are in tests/gpu/frameworks, written as people write them. The table tells how many of the chosen launches
are complete, whether the program prints what it prints alone, and what a launch costs. The exit status is 0 when all
rows that ran have enough complete launches and the same output, 1 otherwise, and 77 when nothing could run.

    frameworks.py [--only ROW,...] [--sets default,full] [--no-ncu] [--ncu ROW,...] [--runs N]
                  [--launches N] [--seconds LIMIT] [--output FILE]

- A row is a program and a window of its launches (--launch-skip, --launch-count, and maybe -k). Both tools get the same
  window; ncu gets fewer launches of it (NCU_LAUNCHES).
- Each program runs plain and under kprof --runs times each, two by default, and the fastest run counts: to import
  PyTorch alone takes 3.1 to 4.4 s. The first plain run fills the caches of compilers. If plain runs print different
  things, nothing can be said about the output under kprof, and the row fails.
- A launch is complete when each metric of the set that needs counters has a value: each metric of kind "hardware" that
  the report's `schedule` names for the launch's chip. NULL and a missing row both count as no value. Derived
  metrics are left out, as they follow from these and may divide by zero; so are witnesses.
- With the sets source and full, a launch is complete that also has counters and samples of its instructions, and with
  full samples over its time.
- `chosen` is the number of launches asked for, so launches that the report does not have are incomplete as well. It is
  larger where several processes launch kernels, as each has the window. Each window lies inside of what its program
  launches; the details give the number of launches that kprof saw.
- Added time per launch is (wall time under the tool - plain wall time) / launches. These are the complete launches of
  kprof, and the launches that ncu profiled by its log. The time includes the start of the tool.
- A run of ncu that meets its time limit gives a lower bound of its added time and of the ratio.
- kprof runs for all rows first, the default set before the full one, then ncu does. Nothing starts after --seconds;
  what did not run is listed.

The results keep the stderr of each run of kprof, with --verbose, as frameworks-ROW-SET.log (its last 200 kB)."""
import argparse
import collections
import os
import pathlib
import re
import shlex
import signal
import sqlite3
import sys
import tempfile
import time

import harness
from bench import Clock

PLAIN_LIMIT, KPROF_LIMIT, NCU_LIMIT = 120, 150, 100  # seconds for one run
LOG_BYTES = 200_000
REASONS_SHOWN = 5
# What ncu calls the sets.
NCU_SETS = {"default": ["--set", "basic"], "full": ["--set", "full"], "source": ["--section", "SourceCounters"]}
NCU_LAUNCHES = {"default": 20, "full": 5, "source": 20}
USUAL_SETS = ["default", "full"]
MARK = "KPROF_FRAMEWORKS_RUN"


class Row:
    """A program and the window of launches that is measured. `percent` of them have to be complete. ncu's added time
    is to be `target` times kprof's."""

    # pylint: disable-next=too-many-arguments
    def __init__(self, name, program, skip, launches, target=15, percent=99, options=(), ncu_launches=None):
        self.name, self.skip, self.launches, self.percent = name, skip, launches, percent
        self.argv = [sys.executable, str(harness.ROOT / "tests/gpu/frameworks" / program[0]), *program[1:]]
        self.target = target
        self.options, self.ncu_launches = list(options), {**NCU_LAUNCHES, **(ncu_launches or {})}

    def window(self, launches):
        return [*self.options, "--launch-skip", str(self.skip), "--launch-count", str(launches)]


# A training step makes about 200 launches, a token about 60, a step of JAX about 20, a round of CuPy about 9.
ROWS = [
    Row("train-steady", ["torch_train.py"], 450, 300, target=20),
    Row("train-first", ["torch_train.py"], 0, 200, target=8),
    Row("decode", ["torch_decode.py"], 400, 300, target=20),
    Row("graph", ["torch_graph.py"], 600, 300),
    Row("compile", ["torch_graph.py", "--compile", "--tokens", "40"], 300, 150),
    Row("jax", ["jax_train.py"], 100, 100, percent=95, ncu_launches={"default": 2, "full": 1}),
    Row("jax-no-command-buffers", ["jax_train.py", "--command-buffers", "off"], 100, 100, percent=95,
        ncu_launches={"default": 2, "full": 1}),
    Row("triton", ["triton_tune.py"], 40, 60, options=["-k", "grow"]),
    Row("cupy", ["cupy_pool.py"], 60, 150),
    Row("torch-async", ["torch_async.py"], 450, 200),
]

# Programs of libraries: they run when --only names them, or "libraries".
LIBRARIES = {"transformers": (300, 100), "timm": (400, 100), "lightning": (20, 100), "flax": (20, 60),
             "gpytorch": (200, 100), "recurrent": (60, 100), "compile": (60, 100), "profiler": (0, 40)}
LIBRARY_ROWS = [Row(f"library-{name}", ["libraries.py", name], skip, launches)
                for name, (skip, launches) in LIBRARIES.items()]


# Completeness


class Completeness:
    """What a report has of the chosen launches. `reasons` counts why launches are incomplete, `modes` how the complete
    ones were measured, `seen` is the number of all launches that kprof counted (None: not known). `counted` and
    `sampled` are the launches with counters and with samples of their instructions, `over_time` those with samples over
    their time in each pass of these."""

    def __init__(self, chosen, complete=0, reasons=None, modes=None, seen=None, warnings=()):
        self.chosen, self.complete, self.seen = chosen, complete, seen
        self.counted = self.sampled = self.over_time = 0
        self.reasons, self.modes = collections.Counter(reasons or {}), collections.Counter(modes or {})
        self.warnings = list(warnings)

    def percent(self):
        return 100.0 * self.complete / self.chosen if self.chosen else 0.0

    def want_instructions(self, database):
        """A launch without them is not complete."""
        self.counted, self.sampled = database.execute(INSTRUCTIONS).fetchone()
        self.complete = min(self.complete, self.counted, self.sampled)
        self.reasons.update(dict(database.execute(INSTRUCTION_REASONS)))

    def want_timelines(self, database):
        """A launch without samples over its time is not complete."""
        self.over_time = database.execute(TIMELINES).fetchone()[0]
        self.complete = min(self.complete, self.over_time)
        self.reasons.update(dict(database.execute(TIMELINE_REASONS)))

    def reasons_text(self):
        """The most frequent reasons with their counts."""
        shown = [f"{count} x {reason}" for reason, count in self.reasons.most_common(REASONS_SHOWN)]
        rest = sum(self.reasons.values()) - sum(count for _, count in self.reasons.most_common(REASONS_SHOWN))
        return "; ".join(shown + ([f"{rest} for other reasons"] if rest else []))


# A row per launch and metric of the set that needs counters.
PLANNED = """
WITH planned AS (SELECT DISTINCT schedule.chip AS chip, metric.id AS metric, metric.name AS name
                 FROM schedule JOIN metric ON metric.id = schedule.metric_id WHERE metric.kind = 'hardware')
SELECT launch.id, launch.replay_mode, launch.reason, planned.name, value.value
FROM launch JOIN device ON device.id = launch.device_id
LEFT JOIN planned ON planned.chip = device.chip
LEFT JOIN value ON value.launch_id = launch.id AND value.metric_id = planned.metric
ORDER BY launch.id, planned.name"""

INSTRUCTIONS = "SELECT coalesce(sum(counted), 0), coalesce(sum(sampled), 0) FROM code_profile"
INSTRUCTION_REASONS = ("SELECT 'instructions: ' || reason, count(*) FROM code_profile JOIN launch_code_profile "
                       "ON profile_id = code_profile.id WHERE reason != '' GROUP BY reason")
# A few samples are enough, since those of launches of a shape are laid over one another.
TIMELINES = "SELECT count(*) FROM (SELECT 1 FROM timeline_pass GROUP BY launch_id HAVING min(samples) > 0)"
TIMELINE_REASONS = "SELECT 'over time: ' || reason, count(*) FROM timeline_pass WHERE samples = 0 GROUP BY reason"


def read_completeness(base, chosen, chosen_set="default"):
    """Completeness of the report that `-o base` made with a set. A report that cannot be read has no launches."""
    try:
        with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
            missing, labels = {}, {}
            for launch, mode, reason, metric, value in database.execute(PLANNED):
                labels[launch] = (mode, reason)
                lacking = missing.setdefault(launch, [])
                if value is None:
                    lacking.append(metric or "all metrics")
            seen = database.execute("SELECT sum(launches) FROM process").fetchone()[0]
            warnings = [text for text, in database.execute(
                "SELECT DISTINCT text FROM message WHERE level IN ('warning', 'error') ORDER BY id")]
            found = Completeness(max(chosen, len(missing)), seen=seen, warnings=warnings)
            for launch, lacking in missing.items():
                mode, reason = labels[launch]
                if not lacking:
                    found.complete += 1
                    found.modes[mode] += 1
                else:
                    found.reasons[f"{mode}: {reason or no_reason(lacking)}"] += 1
            if chosen_set in ("source", "full"):
                found.want_instructions(database)
            if chosen_set == "full":
                found.want_timelines(database)
    except sqlite3.Error as error:
        return Completeness(chosen, reasons={f"the report cannot be read: {error}": chosen})
    if len(missing) < chosen:
        found.reasons["not in the report"] += chosen - len(missing)
    return found


def no_reason(lacking):
    names = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
    return f"no reason given, {len(lacking)} metrics without a value ({names})"


# Arithmetic


def added_ms(seconds, plain_seconds, launches):
    """Added milliseconds per launch, or None where something is not known."""
    if seconds is None or plain_seconds is None or not launches:
        return None
    return 1e3 * (seconds - plain_seconds) / launches


def ratio(slow, fast):
    """None where it is not known, or where the added time is lost in noise."""
    if slow is None or fast is None or slow <= 0 or fast <= 0:
        return None
    return slow / fast


def ratio_verdict(value, target, lower_bound):
    """Whether the target is met. A lower bound below the target tells nothing."""
    if value is None:
        return "n/a"
    if value >= target:
        return "met"
    return "n/a" if lower_bound else "missed"


# Runs


def run(argv, limit):
    """harness.run, but a run that meets its limit leaves no process behind: a tool may have started the program in
    another process group, and JAX keeps most of the GPU's memory."""
    value = f"{os.getpid()}-{time.monotonic_ns()}"
    result = harness.run(argv, limit=limit, env={**os.environ, MARK: value})
    if result.status is None:
        end_marked(f"{MARK}={value}")
    return result


def end_marked(mark):
    """End all processes that have this in their environment."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            pass  # it has ended, or is another user's


def program_seconds(result):
    """What the program says about its own time."""
    found = re.search(r"^program seconds ([\d.]+)$", result.stderr, re.MULTILINE)
    return float(found.group(1)) if found else None


def ended(result, limit):
    """How a run went wrong, or ""."""
    if result.status is None:
        return f"did not end within {limit} s"
    if result.status != 0:
        return f"ended with {result.status}: {harness.last_lines(result.stderr or result.stdout, 3)}"
    return ""


def fastest(runs):
    return min(runs, key=lambda result: result.seconds)


class Plain:
    """Runs of a program alone. A single one cannot show that the program prints the same each time."""

    def __init__(self, argv, runs=2):
        self.runs = [run(argv, PLAIN_LIMIT)]
        self.skipped = self.runs[0].status == harness.SKIPPED
        while len(self.runs) < runs and not ended(self.runs[-1], PLAIN_LIMIT):
            self.runs.append(run(argv, PLAIN_LIMIT))
        self.problem = ended(self.runs[-1], PLAIN_LIMIT)
        self.stdout = self.runs[-1].stdout
        self.deterministic = all(result.stdout == self.stdout for result in self.runs)
        self.fastest = fastest(self.runs)
        self.seconds = self.fastest.seconds


class Measurement:
    """A row with a set: what is known of it so far."""

    def __init__(self, row, chosen_set, launches):
        self.row, self.set, self.launches = row, chosen_set, launches or row.launches
        self.ncu_launches = min(row.ncu_launches[chosen_set], self.launches)
        self.plain = self.kprof = self.completeness = None
        self.ncu, self.ncu_profiled = None, 0
        self.problems = []

    def label(self):
        return f"{self.row.name}, {self.set}"

    def problem(self, text):
        self.problems.append(f"{self.label()}: {text}")
        print(f"frameworks.py: {self.problems[-1]}", file=sys.stderr, flush=True)

    def run_kprof(self, plain, folder, log):
        """As often as the program ran alone. The first run that goes wrong, or else the fastest one, is told of."""
        self.plain, runs = plain, []
        while len(runs) < len(plain.runs):
            runs.append(self.run_kprof_once(f"{folder}/{self.row.name}-{self.set}", log))
            if not self.passed():
                break
        else:
            self.kprof, self.completeness = min(runs, key=lambda pair: pair[0].seconds)
        if ended(self.kprof, KPROF_LIMIT):
            self.problem(f"kprof {ended(self.kprof, KPROF_LIMIT)}")
        for warning in self.completeness.warnings[:REASONS_SHOWN]:
            self.problem(f"kprof's report says: {warning}")

    def run_kprof_once(self, base, log):
        argv = [harness.kprof(), "--set", self.set, *self.row.window(self.launches), "--verbose", "-f", "-o", base,
                "--log-file", f"{base}.log", *self.row.argv]
        self.kprof = run(argv, KPROF_LIMIT)
        write_log(log, argv, self.kprof)
        self.completeness = read_completeness(base, self.launches, self.set)
        return self.kprof, self.completeness

    def run_ncu(self, folder):
        base = f"{folder}/ncu-{self.row.name}-{self.set}"
        argv = [harness.ncu(), "--clock-control", "none", *NCU_SETS[self.set],
                *self.row.window(self.ncu_launches), "-o", base, "--log-file", f"{base}.log", *self.row.argv]
        self.ncu = run(argv, NCU_LIMIT)
        log = read_text(f"{base}.log")
        self.ncu_profiled = profiled_by_ncu(log)
        if ended(self.ncu, NCU_LIMIT) or self.ncu_profiled == 0:
            self.problem(f"ncu {ended(self.ncu, NCU_LIMIT)}; its log has {self.ncu_profiled} launches and ends with: "
                         f"{harness.last_lines(log, 3)}")

    def identical(self):
        if not self.plain.deterministic:
            return "plain runs differ"
        return "yes" if self.kprof.stdout == self.plain.stdout else "no"

    def passed(self):
        return (self.kprof.status == 0 and self.identical() == "yes" and
                self.completeness.percent() >= self.row.percent)

    def kprof_added_ms(self):
        return added_ms(self.kprof.seconds, self.plain.seconds, self.completeness.complete)

    def ncu_limited(self):
        return self.ncu is not None and self.ncu.status is None

    def ncu_added_ms(self):
        """A lower bound where ncu met its limit: it would have needed longer for the launches asked for."""
        if self.ncu is None or self.ncu.status not in (0, None):
            return None
        launches = self.ncu_launches if self.ncu_limited() else self.ncu_profiled
        return added_ms(self.ncu.seconds, self.plain.seconds, launches)

    def cells(self):
        ours, theirs = self.kprof_added_ms(), self.ncu_added_ms()
        target, bound = self.row.target, self.ncu_limited()
        value, over = ratio(theirs, ours), "over " if bound else ""
        return (self.row.name, self.set, self.completeness.chosen, self.completeness.complete,
                f"{self.completeness.percent():.1f} (of {self.row.percent})", self.completeness.reasons_text(),
                self.identical(), rounded(self.plain.seconds), rounded(self.kprof.seconds),
                over + rounded(self.ncu.seconds) if self.ncu else None, self.ncu_profiled if self.ncu else None,
                rounded(ours), over + rounded(theirs) if theirs is not None else None,
                f"{over}{value:.3g}" if value is not None else None, f"{target:g}", ratio_verdict(value, target, bound))

    def detail_cells(self, log):
        modes = " and ".join(f"{count} {mode}" for mode, count in sorted(self.completeness.modes.items()))
        window = f"`{shlex.join(self.row.window(self.launches))}`"
        return (self.row.name, self.set, window, self.completeness.seen, modes or "none",
                self.completeness.counted, self.completeness.sampled, self.completeness.over_time,
                rounded(program_seconds(self.plain.fastest)), rounded(program_seconds(self.kprof)),
                rounded(program_seconds(self.ncu)) if self.ncu else None, log.name)


HEADER = ["row", "set", "chosen", "complete", "percent (needed)", "incomplete because", "stdout as plain", "plain (s)",
          "kprof (s)", "ncu (s)", "ncu: launches", "kprof: added (ms/launch)", "ncu: added (ms/launch)", "ncu / kprof",
          "target", "ratio"]
DETAIL_HEADER = ["row", "set", "window", "launches that kprof saw", "complete ones measured by",
                 "counted by instruction", "sampled", "sampled over time", "program: plain (s)", "program: kprof (s)",
                 "program: ncu (s)", "log of kprof"]


def rounded(value):
    return "n/a" if value is None else f"{value:.4g}"


def profiled_by_ncu(log):
    """Launches that ncu's log says it profiled to the end."""
    return len(re.findall(r"^==PROF== Profiling .* - \d+ pass(?:es)?\b", log, re.MULTILINE))


def read_text(path):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def write_log(path, argv, result):
    """The command, how it ended, and the end of what it wrote to stderr."""
    head = f"{shlex.join(map(str, argv))}\nstatus {result.status}, {result.seconds:.2f} s\n\n"
    path.write_bytes(head.encode() + result.stderr.encode()[-LOG_BYTES:])


class Session:
    """All rows that are asked for, with the time that is left."""

    def __init__(self, options, folder, results):
        self.options, self.folder, self.results, self.clock = options, folder, results, Clock(options.seconds)
        self.measurements, self.not_run, self.skipped, self.failures = [], [], [], []
        self.plain = {}  # by command line

    def run(self):
        for chosen_set in self.options.sets:
            for row in self.options.rows:
                self.measure(Measurement(row, chosen_set, self.options.launches))
        for measurement in [m for m in self.measurements if m.row.name in self.options.ncu]:
            if self.clock.over():
                self.not_run.append(f"{measurement.label()}: ncu")
                continue
            measurement.run_ncu(self.folder)
            progress(measurement)

    def measure(self, measurement):
        label, row = measurement.label(), measurement.row
        if self.clock.over():
            self.not_run.append(label)
            return
        key = tuple(row.argv)
        if key not in self.plain:
            self.plain[key] = Plain(row.argv, self.options.runs)
        plain = self.plain[key]
        if plain.skipped:
            self.skipped.append(f"{label}: {harness.last_lines(plain.runs[0].stderr, 1)}")
        elif plain.problem:
            self.failures.append(f"{label}: the plain run {plain.problem}")
        elif self.clock.over():
            self.not_run.append(f"{label}: kprof and ncu")
        else:
            measurement.run_kprof(plain, self.folder, self.log(measurement))
            self.measurements.append(measurement)
            progress(measurement)

    def log(self, measurement):
        return self.results / f"frameworks-{measurement.row.name}-{measurement.set}.log"

    def failed(self):
        return self.failures + [measurement.label() for measurement in self.measurements if not measurement.passed()]

    def status(self):
        if not self.measurements and not self.failures:
            return harness.SKIPPED
        return 1 if self.failed() else 0

    def report(self, document):
        document.add(harness.table(HEADER, [measurement.cells() for measurement in self.measurements]))
        document.add("`chosen` launches were asked for. Times are of whole processes; ncu has fewer launches, and "
                     "`--clock-control none`.\n\n## Details\n")
        document.add(harness.table(DETAIL_HEADER, [measurement.detail_cells(self.log(measurement))
                                                   for measurement in self.measurements]))
        problems = [text for measurement in self.measurements for text in measurement.problems]
        for title, lines in (("Failed", self.failed()), ("Problems and warnings", problems),
                             ("Skipped: a framework or its GPU support is missing", self.skipped),
                             (f"Not run within {self.options.seconds:g} s", self.not_run)):
            document.add(f"## {title}\n\n" + ("\n".join(f"- {line}" for line in lines) or "None.") + "\n")


def progress(measurement):
    print(f"frameworks.py: {measurement.cells()}", file=sys.stderr, flush=True)


def parse_arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = [row.name for row in ROWS]
    libraries = [row.name for row in LIBRARY_ROWS]
    names = usual + libraries
    parser.add_argument("--only", metavar="ROW,...", default=",".join(usual),
                        help="rows: " + ", ".join(usual) + " (these); " + ", ".join(libraries) + " (libraries: all)")
    parser.add_argument("--sets", metavar="SET,...", default=",".join(USUAL_SETS),
                        help="default, full (both), source")
    parser.add_argument("--no-ncu", action="store_true", help="do not run ncu")
    parser.add_argument("--ncu", metavar="ROW,...", help="rows that ncu runs, too (all)")
    parser.add_argument("--runs", type=int, default=2, help="runs of each, alone and under kprof with each set (2)")
    parser.add_argument("--launches", type=int, help="launches for kprof in each row, in place of the row's number")
    parser.add_argument("--seconds", type=float, default=400,
                        help="start nothing later than this (400); a run that is going on ends by its own limit")
    parser.add_argument("--output", help="Markdown file (frameworks.md among the results)")
    options = parser.parse_args(words)
    wanted, options.sets = options.only.split(","), options.sets.split(",")
    if "libraries" in wanted:
        wanted = [name for name in wanted if name != "libraries"] + libraries
    for kind, given, known in (("row", wanted, names), ("set", options.sets, list(NCU_SETS))):
        for name in set(given) - set(known):
            parser.error(f"{kind} {name}: not one of {', '.join(known)}")
    for name in ("launches", "runs"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            parser.error(f"--{name}: a number above 0")
    options.rows = [row for row in ROWS + LIBRARY_ROWS if row.name in wanted]
    options.ncu = [] if options.no_ncu else options.ncu.split(",") if options.ncu else names
    return options


def main():
    options = parse_arguments()
    harness.need_gpu()
    if not harness.ncu() and options.ncu:
        print("frameworks.py: no ncu: only kprof is run", file=sys.stderr)
        options.ncu = []
    with tempfile.TemporaryDirectory(prefix="kprof-frameworks-") as folder:
        session = Session(options, folder, harness.results_folder())
        session.run()
    document = harness.Document(options.output or harness.results_folder() / "frameworks.md")
    document.add("# Frameworks\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/frameworks.py " + shlex.join(sys.argv[1:]))))
    session.report(document)
    return session.status()


if __name__ == "__main__":
    sys.exit(main())
