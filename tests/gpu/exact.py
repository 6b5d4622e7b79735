#!/usr/bin/env python3
"""The programs of exact/, each a kind of memory, launch or ending that replay must not disturb, run plain and under
kprof in many modes: exit status and standard output, with its checksums of all that the device and the host came to
hold, must be those of the plain run, and the report must hold every launch, measured or with a reason. Prints a table;
exits 1 when anything differs, and 77 when not everything could run.

    exact.py [--mode PATTERN]... [--every-mode] [--budget SECONDS] [--limit SECONDS] [--separate] [--keep FOLDER]
             [--output FILE] [--resume FILE] [CASE...]

A CASE is the beginning of a name, "memory" or "memory/vmm". Parts of a case run in one process where the mode measures
all launches. Other modes measure the first launches of a process, so each part has one of its own there, as it has
where a case fails. A mode is METRICS-BATCH-CACHES, such as default-auto-all: one metric of a single pass, the default,
the full or the source set; --replay-batch, or multiplex for --replay-mode multiplex, or graphs for --graph-profiling
graph;
--cache-control. A few cases run in all modes, most in those that differ most, and those that take long, or that the
mode can hardly matter to, in fewer. Modes run one after the other, the most telling
first, as far as the budget goes; where there are several GPUs, each has a run at a time, and programs for several come
last. With --resume, several commands make one table.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import itertools
import json
import os
import pathlib
import re
import sqlite3
import sys
import tempfile
import threading
import time

import harness

METRICS = {"one": ["--metrics", "dram__bytes.sum.per_second"],
           "default": ["--set", "default"],
           "full": ["--set", "full"],
           "source": ["--set", "source"]}
# --replay-batch N, if the mode has none of these. So many samples, so that all launches are told of.
HOW = {"multiplex": ["--replay-mode", "multiplex", "--multiplex-samples", "100000"],
       "graphs": ["--graph-profiling", "graph"]}
NOT_COLLECTED = 110  # kprof's exit status when launches matched and none could be measured


class Mode:
    """Options of kprof, and at most how many launches a process has measured: repeating each alone takes long."""

    def __init__(self, name, most=None):
        self.name, self.most = name, most
        metrics, batch, caches = name.split("-")
        self.options = [*METRICS[metrics], *HOW.get(batch, ["--replay-batch", batch]), "--cache-control", caches]
        self.joins_launches = batch == "graphs"  # a graph of several kernels is one launch


MODES = [
    Mode("default-auto-all", 60),
    Mode("one-auto-all"),
    Mode("default-multiplex-all"),
    Mode("default-graphs-all", 60),
    Mode("source-auto-all", 20),
    Mode("default-auto-none", 60),
    Mode("default-3-all", 12),
    Mode("one-3-none", 100),
    Mode("full-auto-all", 20),
    Mode("full-multiplex-all"),
    Mode("source-multiplex-all"),
    Mode("default-1-all", 5),
    Mode("one-1-all", 40),
    Mode("one-auto-none"),
    Mode("full-3-none", 6),
    Mode("default-1-none", 5),
    Mode("default-3-none", 12),
    Mode("one-1-none", 40),
    Mode("one-3-all", 100),
    Mode("full-auto-none", 20),
    Mode("source-auto-none", 20),
    Mode("full-3-all", 6),
    Mode("full-1-all", 3),
    Mode("full-1-none", 3),
]

# In which modes a case runs.
EVERY = ("*",)
MANY = ("default-auto-*", "default-multiplex-all", "one-auto-all", "source-auto-all", "default-3-all",
        "one-3-none")
GRAPHS = (*MANY, "default-graphs-all", "full-multiplex-all")
SOME = ("default-auto-*", "source-auto-all", "default-multiplex-all", "one-auto-all")
FIRST = ("default-auto-all", "default-multiplex-all")


class Case:
    """A program of exact/ and the modes it runs in, one after the other. `most` lowers the number of launches measured
    by passes with replay; `modes` are patterns, to which the case keeps where it is `fixed`; `command` stands before
    the parts; `reason` is the beginning of one that some launch must have in the report, whatever was measured; parts
    that are `batched` must have batches of three where the mode allows them."""

    def __init__(self, program, parts, modes=MANY, options=(), most=None, command=(), reason="", fixed=False,
                 batched=""):
        self.program, self.parts, self.modes, self.options = program, parts.split(), modes, list(options)
        self.most, self.command, self.reason, self.fixed = most, list(command), reason, fixed
        self.batched, self.times_split = batched, 0
        self.must_batch = any(part in batched.split() for part in self.parts)
        self.name = "/".join([program, *self.command, "+".join(self.parts)])
        self.argv = [str(harness.programs() / f"exact-{program}"), *self.command, *self.parts]

    def with_parts(self, parts):
        return Case(self.program, " ".join(parts), self.modes, self.options, self.most, self.command, self.reason,
                    self.fixed, self.batched)

    def split(self):
        return [self.with_parts([part]) for part in self.parts]

    def part_is_chosen(self, part, wanted):
        return not wanted or any(f"{self.program}/{part}".startswith(prefix) for prefix in wanted)

    def chosen(self, wanted):
        return any(self.part_is_chosen(part, wanted) for part in self.parts)

    def narrowed(self, wanted):
        """This case with the parts alone that `wanted` names."""
        return self.with_parts([part for part in self.parts if self.part_is_chosen(part, wanted)])

    def launch_limit(self, mode):
        limits = [limit for limit in (mode.most, self.most if not mode.name.startswith("one") else None) if limit]
        return min(limits) if limits else None

    def processes(self, mode):
        """What runs in the mode: this case, or its parts one by one, each with the launches that the mode measures. A
        command gives each part a process itself."""
        return self.split() if self.launch_limit(mode) and not self.command else [self]

    def wants_all_gpus(self):
        return self.program == "shared_devices"

    def runs_in(self, mode):
        return any(fnmatch.fnmatch(mode.name, pattern) for pattern in self.modes)


ENDINGS = "return exit-handler exit-thread _exit _exit-waited _exit-idle abort abort-waited kill kill-waited " \
          "kill-idle reset illegal illegal-waited trap"

# Parts stand apart that end their process, need options of their own, can find that they cannot run here, or share
# memory with the host, which changes how all that follows in the process is measured.
CASES = [
    Case("globals", "device constant foreign", EVERY, batched="device"),
    Case("globals", "constant-foreign", SOME),
    Case("globals", "passed", options=["-k", "moduleStep"]),
    Case("globals", "managed", SOME),
    Case("globals", "managed-passed", SOME),
    Case("globals_managed", "own foreign"),
    Case("modules", "ptx cubin candidates library lazy plugin"),
    Case("memory", "malloc pool array large-copies memset transfers", EVERY),
    Case("memory", "frees pool-destroyed pool-threads"),
    Case("memory", "vmm copies"),
    Case("memory", "growth", batched="growth"),
    Case("memory", "rows", batched="rows"),
    Case("memory", "alias"),
    Case("memory", "graph-memory", GRAPHS),
    Case("arrays", "mipmapped layered"),
    Case("arrays", "sparse", SOME),
    Case("arrays", "deferred", SOME),
    Case("memory", "managed managed-beside managed-prefetch"),
    Case("memory", "managed-graph", GRAPHS),
    Case("memory", "managed-advice", SOME),
    Case("memory", "mapped registered", SOME),
    Case("memory", "pageable", SOME),
    Case("streams", "events threads default", batched="events"),
    Case("streams", "callbacks", SOME),
    Case("streams", "values values-listed", SOME, batched="values values-listed"),
    Case("streams", "late-values host-values", SOME),
    Case("streams", "contexts"),
    Case("contexts", "green", SOME),
    Case("contexts", "green-stream", SOME),
    Case("contexts", "completion"),
    Case("streams-per-thread", "events threads default", SOME),
    Case("kinds", "cooperative cluster dependent arguments shared carveout capture capture-other capture-lost captures "
                  "graph refused", GRAPHS),
    Case("kinds", "unselected", options=["-k", "affine"]),
    Case("device_side", "launch", SOME),
    Case("device_side", "streams", SOME),
    Case("device_side", "conditional", SOME),
    Case("device_calls", "printf malloc float-atomics tickets clock"),
    Case("device_calls", "assert", SOME),
    Case("device_calls", "long", FIRST),
    Case("device_calls", "longer", ("default-auto-*", "full-auto-all"), reason="a pass took far longer", fixed=True,
         options=["-k", "regex:affine|takeLonger"]),
    Case("series", "quiet polls copies", EVERY, batched="quiet"),
    Case("series", "idle", SOME),
    Case("series", "pinned", SOME),
    Case("host_writes", "counter counter-managed counter-registered", SOME),
    Case("host_writes", "watcher watcher-managed", SOME),
    Case("host_writes", "watcher-hidden", SOME),
    Case("host_writes", "mailbox", SOME, most=16),
    Case("host_writes", "release", SOME),
    Case("host_writes", "process", SOME),
    Case("host_waits", "spin", SOME),
    Case("host_waits", "spin-hidden", SOME),
    Case("host_waits", "stream-value", SOME),
    Case("host_waits", "host-function event", SOME),
    Case("host_waits", "device-flag copy", SOME, options=["-k", "affine"]),
    Case("host_waits", "copy-in copy-in-device", SOME, options=["-k", "affine"]),
    Case("host_waits", "copy-function", SOME),
    Case("host_waits", "freed"),
    *(Case("endings", part, FIRST, fixed=True) for part in ENDINGS.split()),
    Case("endings", ENDINGS, ("one-auto-all", "default-auto-none"), command=["children"]),
    Case("endings", "return-busy", SOME, options=["-k", "affine"]),
    Case("corners", "pointers read-only until no-kernel", ("default-auto-*", "full-auto-all", "one-auto-all")),
    Case("corners", "ipc-event", SOME),
    Case("corners", "local", SOME, options=["-k", "affine"]),
    Case("shared_devices", "ipc", SOME),
    Case("shared_devices", "peer", SOME),
    Case("shared_devices", "copies", SOME, options=["-k", "affine"]),
]


class Finding:
    """What one run under kprof showed. `bad` is whether it fails the check; `declined` the launches that were not
    measured, by reason; `counts` tells the measured ones and how many there had to be."""

    def __init__(self, verdict, detail="", bad=False):
        self.verdict, self.detail, self.bad = verdict, detail, bad
        self.measured, self.counts, self.largest_batch, self.declined = 0, "", "", {}
        self.seconds, self.commit = 0.0, harness.commit()

    @staticmethod
    def restored(attributes):
        finding = Finding("")
        vars(finding).update(attributes)
        return finding

    def take(self, launches):
        """What the report holds."""
        self.measured, self.declined = launches.measured, launches.declined
        self.counts, self.largest_batch = launches.counts(), launches.largest_batch

    def is_done(self):
        return not self.bad and self.verdict != "not run"

    def cells(self):
        return (f"**{self.verdict}**" if self.bad else self.verdict, self.counts, self.largest_batch,
                explained(self.declined), self.detail)

    def __str__(self):
        return "; ".join(str(cell) for cell in self.cells() if cell)


# Launches


def explained(declined):
    """"reason (2), reason (1)", or ""."""
    return ", ".join(f"{reason or '**no reason**'} ({count})" for reason, count in declined.items())


def expected_launches(stderr, limit=None):
    """(least, most) that a report has to hold, by the lines of all processes of the program, each with its limit."""
    lines = [(int(least), int(most)) for least, most in re.findall(r"^launches (\d+) (\d+)$", stderr, re.MULTILINE)]
    return tuple(sum(min(line[i], limit) if limit else line[i] for line in lines) for i in (0, 1))


def is_measured(launch):
    return launch.measured and any(value is not None for name, value in launch.metrics.items()
                                   if not name.startswith("launch__"))


CONTRIBUTION = re.compile(r"multiplexed: its counters are part of .* at position (\d+)$")


# Launches that -c does not count: kprof puts off what it wanted to do, or measures what is behind them.
UNCOUNTED = re.compile("the GPU's work did not end within 0.1 s|.*; what is queued behind it is measured$")


def sample_problem(launches, most, existing):
    """What is wrong where launches are multiplexed, of which -c counts those with a sample's last pass, so that it does
    not tell how many a report holds: samples that -c did not ask for, launches that the program did not make, or
    counters for a sample that is not there."""
    whole = sum(is_measured(launch) and not launch.reason.startswith("measured in ") for launch in launches)
    positions = {launch.position for launch in launches}
    found = (CONTRIBUTION.match(launch.reason) for launch in launches)
    lost = sorted({int(match.group(1)) for match in found if match} - positions)
    if whole > most:
        return f"{whole} whole samples of {most}"
    if len(launches) > existing:
        return f"{len(launches)} launches reported of {existing}"
    return f"no sample at position {lost[0]}" if lost else ""


class Launches:
    """What a report says of the launches, of which it should hold `least` to `most`, by the limit that -c sets;
    `existing`: that the program made at most."""

    def __init__(self, base, least, most, existing):
        self.least, self.most, self.existing, self.problem = least, most, existing, ""
        self.reported = self.measured = self.largest_batch = 0
        self.declined = {}  # reason -> launches
        self.reasons = []  # of each launch that has one, measured or not
        try:
            self.read(base)
        except sqlite3.Error as error:
            self.problem = f"the report cannot be read ({error})"

    def read(self, base):
        launches, _ = harness.read_report(base)
        self.reported, self.measured = len(launches), sum(is_measured(launch) for launch in launches)
        self.reasons = [launch.reason for launch in launches if launch.reason]
        for launch in launches:
            if not is_measured(launch):
                reason = re.sub(r"of launch \d+", "of another launch", launch.reason)
                self.declined[reason] = self.declined.get(reason, 0) + 1
        self.largest_batch = harness.largest_batch(base)
        uncounted = sum(bool(UNCOUNTED.match(reason)) for reason in self.reasons)
        if self.existing >= self.most and any(launch.replay_mode == "multiplex" for launch in launches):
            self.problem = sample_problem(launches, self.most, self.existing)
        elif not self.least <= self.reported <= max(self.most, min(self.most + uncounted, self.existing)):
            self.problem = f"{self.reported} launches reported"
        if not self.problem and "" in self.declined:
            self.problem = "launches without values or a reason"

    def counts(self):
        return f"{self.measured} of " + (f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}")


# Comparing runs


def first_difference(plain, under):
    before, after = plain.splitlines(), under.splitlines()
    for number, (want, got) in enumerate(zip(before, after), 1):
        if want != got:
            return f"line {number} is {got!r}, plain {want!r}{mode_above(before, number)}"
    shorter = min(len(before), len(after))
    more = (before + [""])[shorter] if len(before) > len(after) else (after + [""])[shorter]
    return f"line {shorter + 1}, {more!r}, is {'missing' if len(before) > len(after) else 'more than plain'}" \
           f"{mode_above(before, shorter + 1)}"


def mode_above(lines, number):
    modes = [line for line in lines[:number] if line.startswith("mode ")]
    return f" in {modes[-1]}" if modes else ""


def assertions(stderr):
    return [line for line in stderr.splitlines() if "Assertion `" in line]


def own_messages(stderr, count=4):
    """The last of what the program said, and of kprof's errors and warnings."""
    noise = re.compile(r"launches \d|kprof: (?!error|warning)")
    return harness.last_lines("\n".join(line for line in stderr.splitlines() if not noise.match(line)), count)


def expected_status(plain, launches):
    """kprof's own status takes the place of a success that left nothing measured."""
    nothing = plain.status == 0 and launches.reported > 0 and launches.measured == 0
    return NOT_COLLECTED if nothing else plain.status


def compare(plain, under, wanted):
    """None when the application behaved as in the plain run, and kprof exited with the status `wanted`."""
    if under.status is None:
        return Finding("hang", f"killed; the last line was {harness.last_lines(under.stdout, 1)!r}", True)
    if under.status != wanted:
        crashed = under.status > 128
        messages = own_messages(under.stderr, 50 if crashed else 4)  # with the backtrace of a crash
        return Finding("crash" if crashed else "DIFFERENT",
                       f"exit status {under.status}, expected {wanted}; stdout ends with "
                       f"{harness.last_lines(under.stdout, 1)!r}, stderr with {messages!r}", True)
    if under.stdout != plain.stdout:
        return Finding("DIFFERENT", first_difference(plain.stdout, under.stdout), True)
    if assertions(under.stderr) != assertions(plain.stderr):
        return Finding("DIFFERENT", f"stderr has the assertions {assertions(under.stderr)}", True)
    return None


def require_reason(finding, launches, beginning):
    """Adds to `finding` how many launches have a reason that begins so; there has to be one."""
    found = [reason for reason in launches.reasons if reason.startswith(beginning)]
    finding.detail = f"{found[0]} ({len(found)})" if found else f"no launch has the reason {beginning!r}"
    if not found and not finding.bad:
        finding.verdict, finding.bad = "reason missing", True


class Runner:
    def __init__(self, options, folder):
        self.limit, self.folder = options.limit, folder
        self.end = time.monotonic() + options.budget if options.budget else None
        self.plain, self.numbers = {}, itertools.count(1)

    def late(self):
        return self.end is not None and time.monotonic() >= self.end

    def limit_of(self, case):
        """A command runs the parts in processes of their own, and kprof sets itself up in each."""
        return self.limit * (len(case.parts) // 5 + 1) if case.command else self.limit

    def run_plain(self, case):
        if case.name not in self.plain:
            self.plain[case.name] = harness.run(case.argv, limit=self.limit_of(case))
        return self.plain[case.name]

    def profile(self, case, mode, gpu):
        """(result, base of the report)"""
        base = pathlib.Path(self.folder) / f"{next(self.numbers):03}-{mode.name}-{case.name.replace('/', '-')}"
        environment = {**os.environ, **({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})}
        limit = case.launch_limit(mode)
        count = ["-c", str(limit)] if limit else []
        result = harness.run([harness.kprof(), "--verbose", *mode.options, *case.options, *count, "-f", "-o", base,
                              "--log-file", f"{base}.log", *case.argv], limit=self.limit_of(case), env=environment)
        pathlib.Path(f"{base}.stderr").write_text(result.stderr)
        pathlib.Path(f"{base}.stdout").write_text(result.stdout)
        return result, base

    def check(self, case, mode, gpu=None):
        """On one GPU, or on all."""
        plain = self.run_plain(case)
        if plain.status == harness.SKIPPED:
            return Finding("skipped", own_messages(plain.stderr))
        if plain.status in (None, 1, 2):
            return Finding("plain run failed", f"{plain.status}: {own_messages(plain.stderr)}", True)
        if self.late():
            return Finding("not run", "no time left")
        under, base = self.profile(case, mode, gpu)
        least, most = expected_launches(plain.stderr, case.launch_limit(mode))
        existing = expected_launches(plain.stderr)[1]
        launches = Launches(base, min(least, 1) if mode.joins_launches else least, most, existing)
        finding = compare(plain, under, expected_status(plain, launches))
        if finding is None:
            finding = Finding(launches.problem or "same", bad=bool(launches.problem))
            if case.reason:
                require_reason(finding, launches, case.reason)
            alone = "-1-" in mode.name or "multiplex" in mode.name
            if case.must_batch and not alone and launches.largest_batch < 3 and not finding.bad:
                finding = Finding("not batched", bad=True)
        finding.take(launches)
        finding.seconds = under.seconds
        return finding


class Results:
    """Findings by case and mode, in the order of the cases, those of earlier runs in the file `resume` among them."""

    def __init__(self, cases=(), resume=None):
        self.rows, self.lock = {case.name: {} for case in cases}, threading.Lock()
        self.resume = pathlib.Path(resume) if resume else None
        if self.resume and self.resume.exists():
            for name, row in json.loads(self.resume.read_text()).items():
                self.rows[name] = {mode: Finding.restored(attributes) for mode, attributes in row.items()}

    def is_done(self, case, mode):
        finding = self.rows.get(case.name, {}).get(mode.name)
        return finding is not None and finding.is_done()

    def save(self):
        """At once after each run, as the next may not end in time."""
        if self.resume:
            rows = {name: {mode: vars(finding) for mode, finding in row.items()} for name, row in self.rows.items()}
            draft = self.resume.with_suffix(".new")
            draft.write_text(json.dumps(rows))
            os.replace(draft, self.resume)

    def add(self, case, mode, finding):
        """What was not run leaves an earlier finding as it is; a whole case takes the place of its parts."""
        with self.lock:
            row = self.rows.setdefault(case.name, {})
            if finding.verdict != "not run" or mode.name not in row:
                row[mode.name] = finding
                for part in case.split() if len(case.parts) > 1 else []:
                    self.rows.get(part.name, {}).pop(mode.name, None)
            self.save()
            print(f"{mode.name:17} {case.name}: {finding} ({finding.seconds:.1f} s)", flush=True)

    def findings(self):
        return [finding for row in self.rows.values() for finding in row.values()]

    def table(self):
        """A row for each case and what was found, with the modes in which it was."""
        rows = []
        for case, by_mode in self.rows.items():
            same = {}
            for mode in (mode.name for mode in MODES if mode.name in by_mode):
                same.setdefault(by_mode[mode].cells(), []).append(mode)
            rows += [(case, ", ".join(modes), *cells) for cells, modes in same.items()]
        return harness.table(["program", "modes", "verdict", "measured", "largest batch", "declined: reason (launches)",
                              "detail"], rows)

    def reasons(self):
        counts = {}
        for finding in self.findings():
            for reason, count in finding.declined.items():
                counts[reason] = counts.get(reason, 0) + count
        rows = sorted(counts.items(), key=lambda item: -item[1])
        return harness.table(["reason for which launches were not measured", "launches"], rows) if rows else ""

    def commits(self):
        """"3ef15f8 (12 runs), ..." of all that ran."""
        counts = collections.Counter(finding.commit for finding in self.findings() if finding.verdict != "not run")
        return ", ".join(f"{commit} ({count} runs)" for commit, count in counts.items())

    def summary(self):
        """How many runs ended how, and how many launches were measured."""
        counts, measured, declined = {}, 0, 0
        for finding in self.findings():
            known = not finding.bad or finding.verdict in ("DIFFERENT", "hang", "crash")
            verdict = finding.verdict if known else "failed"
            counts[verdict] = counts.get(verdict, 0) + 1
            measured += finding.measured
            declined += sum(finding.declined.values())
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + \
               f"; {measured} launches measured, {declined} declined with a reason"

    def status(self):
        """1 when something failed; 77 when not all could run, as that shows nothing of the rest."""
        verdicts = {finding.verdict for finding in self.findings()}
        if any(finding.bad for finding in self.findings()):
            return 1
        return 0 if "same" in verdicts and "not run" not in verdicts else harness.SKIPPED


def run_one(runner, case, mode, gpu, results):
    """A case that fails is told apart into its parts, in two modes at most: that takes time which others need."""
    finding = runner.check(case, mode, gpu)
    results.add(case, mode, finding)
    if finding.bad and len(case.parts) > 1 and case.times_split < 2:
        case.times_split += 1
        for part in case.split():
            results.add(part, mode, runner.check(part, mode, gpu))


def run_on_each(runner, tasks, gpus, results):
    """Each GPU takes the next of the tasks, (mode, case) in order, when it is done with one."""
    left = collections.deque(tasks)

    def work(gpu):
        while True:
            try:
                mode, case = left.popleft()
            except IndexError:
                return
            run_one(runner, case, mode, gpu, results)

    with concurrent.futures.ThreadPoolExecutor(max_workers=len(gpus)) as pool:
        list(pool.map(work, gpus))


def run_plain_together(runner, cases):
    """All plain runs, several at a time: only kprof needs the GPU's counters for itself."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(runner.run_plain, cases))


def chosen_cases(options):
    cases = [case.narrowed(options.cases) for case in CASES if case.chosen(options.cases)]
    if options.separate:
        cases = [part for case in cases for part in case.split()]
    for case in cases if options.every_mode else []:
        if not case.fixed:
            case.modes = EVERY
    return cases


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to run, by the beginning of the name (all)")
    parser.add_argument("--mode", action="append", metavar="PATTERN", help="run these modes, '*-auto-*' say (all)")
    parser.add_argument("--every-mode", action="store_true",
                        help="run the cases in each mode, also where few would do, unless they are made for some")
    parser.add_argument("--budget", type=float, default=480, help="start no run after this many seconds (480)")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a run counts as hanging (60)")
    parser.add_argument("--separate", action="store_true", help="each part of a case in a process of its own")
    parser.add_argument("--keep", help="folder for reports and output of the runs (removed without it)")
    parser.add_argument("--resume", metavar="FILE",
                        help="JSON file of earlier findings, which are not found again, and of those that come to them")
    parser.add_argument("--output", help="Markdown file (exact.md among the results)")
    options = parser.parse_args()
    options.modes = [mode for mode in MODES
                     if not options.mode or any(fnmatch.fnmatch(mode.name, pattern) for pattern in options.mode)]
    if not options.modes or not chosen_cases(options):
        parser.error("no such mode or case; modes: " + " ".join(mode.name for mode in MODES))
    return options


def run_all(options, folder):
    cases = chosen_cases(options)
    tasks = [(mode, process) for mode in options.modes for case in cases if case.runs_in(mode)
             for process in case.processes(mode)]
    results = Results((part for case in cases for part in [case, *case.split()]), options.resume)
    runner, tasks = Runner(options, folder), [task for task in tasks if not results.is_done(task[1], task[0])]
    run_plain_together(runner, {process.name: process for _, process in tasks}.values())
    run_on_each(runner, [task for task in tasks if not task[1].wants_all_gpus()], harness.gpus() or [None], results)
    run_on_each(runner, [task for task in tasks if task[1].wants_all_gpus()], [None], results)
    return results


def report(options, results):
    document = harness.Document(options.output or harness.results_folder() / "exact.md")
    document.add("# Exactness under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/exact.py " + " ".join(sys.argv[1:]))))
    for table in filter(None, (results.table(), results.reasons())):
        document.add(table)
    document.add(results.summary())
    document.add(f"commits: {results.commits()}")


def main():
    options = parse_arguments()
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-exact-") as folder:
        if options.keep:
            pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
        results = run_all(options, options.keep or folder)
    report(options, results)
    return results.status()


if __name__ == "__main__":
    sys.exit(main())
