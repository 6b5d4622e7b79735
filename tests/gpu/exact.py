#!/usr/bin/env python3
"""The programs of exact/, each a kind of memory, launch or ending that replay must not disturb, run plain and under
every mode of kprof: exit status and standard output, with its checksums of all that the device and the host came to
hold, must be those of the plain run, and the report must hold every launch, measured or with a reason. Prints a table;
exits 1 when anything differs.

    exact.py [--mode MODE]... [--budget SECONDS] [--limit SECONDS] [--separate] [--keep FOLDER] [CASE...]

A CASE is the beginning of a name, "memory" or "memory/vmm". Parts of a case run in one process, and one by one where it
fails. Modes: see MODES; without --mode all, as far as the budget goes, each over all cases before the next.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import sqlite3
import sys
import tempfile
import time

import harness

ONE_PASS = ["--metrics", "dram__bytes.sum.per_second"]


class Mode:
    """Options of kprof, and at most how many launches a case has measured: repeating each alone takes long."""

    def __init__(self, name, options, most=None):
        self.name, self.options, self.most = name, options, most


MODES = [
    Mode("batch-default", ["--cache-control", "none", "--set", "default"], 400),
    Mode("batch-one", ["--cache-control", "none", *ONE_PASS]),
    Mode("single-one", ["--cache-control", "all", *ONE_PASS], 200),
    Mode("single-default", ["--cache-control", "all", "--set", "default"], 24),
    Mode("batch-full", ["--cache-control", "none", "--set", "full"], 64),
    Mode("single-full", ["--cache-control", "all", "--set", "full"], 3),
]


class Case:
    """A program of exact/ and the modes it runs in, one after the other. `most` lowers the number of launches measured
    by passes with replay; `full` says whether the full set is worth its time."""

    def __init__(self, program, parts, options=(), most=None, full=False):
        self.program, self.parts, self.options = program, parts.split(), list(options)
        self.most, self.full = most, full
        self.name = f"{program}/{'+'.join(self.parts)}"
        self.argv = [str(harness.programs() / f"exact-{program}"), *self.parts]

    def split(self):
        return [Case(self.program, part, self.options, self.most, self.full) for part in self.parts]

    def chosen(self, wanted):
        names = [f"{self.program}/{part}" for part in self.parts]
        return not wanted or any(name.startswith(prefix) for name in names for prefix in wanted)

    def narrowed(self, wanted):
        """This case with the parts alone that `wanted` names."""
        parts = [part for part in self.parts
                 if not wanted or any(f"{self.program}/{part}".startswith(prefix) for prefix in wanted)]
        return Case(self.program, " ".join(parts), self.options, self.most, self.full)

    def launch_limit(self, mode):
        limits = [limit for limit in (mode.most, self.most if "one" not in mode.name else None) if limit]
        return min(limits) if limits else None

    def runs_in(self, mode):
        return self.full or not mode.name.endswith("full")


# Those that end their process, need options of their own, or can find that they cannot run here, stand alone.
CASES = [
    Case("globals", "device constant managed", full=True),
    Case("modules", "ptx cubin library lazy"),
    Case("memory", "malloc pool vmm array copies memset"),
    Case("memory", "managed"),
    Case("memory", "mapped registered", most=24),
    Case("streams", "events threads default"),
    Case("streams", "callbacks", most=8),
    Case("streams", "values", most=8),
    Case("streams", "contexts"),
    Case("streams-per-thread", "events threads default"),
    Case("kinds", "cooperative cluster dependent capture capture-other refused"),
    Case("kinds", "unselected", ["-k", "affine"]),
    Case("device_side", "launch", most=8),
    Case("device_calls", "printf malloc float-atomics"),
    Case("device_calls", "assert"),
    Case("device_calls", "long"),
    Case("series", "quiet polls copies", full=True),
    Case("series", "pinned", most=16),
    Case("host_writes", "counter", most=40),
    Case("host_writes", "mailbox", most=16),
    Case("host_writes", "release"),
    *(Case("endings", part) for part in "return exit-handler exit-thread _exit abort kill reset illegal".split()),
    Case("shared_devices", "ipc"),
    Case("shared_devices", "peer"),
]


class Finding:
    """What one run under kprof showed. `bad` is whether it fails the check."""

    def __init__(self, verdict, detail="", bad=False, seconds=0.0):
        self.verdict, self.detail, self.bad, self.seconds = verdict, detail, bad, seconds

    def __str__(self):
        verdict = f"**{self.verdict}**" if self.bad else self.verdict
        return f"{verdict}: {self.detail}" if self.detail else verdict


# Launches


def expected_launches(stderr):
    """(least, most) that a report has to hold, by the lines of all processes of the program."""
    lines = re.findall(r"^launches (\d+) (\d+)$", stderr, re.MULTILINE)
    return sum(int(least) for least, _ in lines), sum(int(most) for _, most in lines)


def is_measured(launch):
    return launch.measured and any(value is not None for name, value in launch.metrics.items()
                                   if not name.startswith("launch__"))


def describe_reasons(launches):
    """"3 not: reason (2), reason (1)" of those that were not measured, or ""."""
    counts = {}
    for launch in launches:
        if not is_measured(launch):
            counts[launch.reason or "**no reason**"] = counts.get(launch.reason or "**no reason**", 0) + 1
    if not counts:
        return ""
    return f", {sum(counts.values())} not: " + ", ".join(f"{reason} ({count})" for reason, count in counts.items())


def check_launches(base, expected, limit):
    """(problem or "", detail) of the report."""
    try:
        launches, _ = harness.read_report(base)
    except sqlite3.Error as error:
        return f"the report cannot be read ({error})", ""
    least, most = (min(count, limit) if limit else count for count in expected)
    measured = sum(is_measured(launch) for launch in launches)
    detail = f"{measured} of {least if least == most else f'{least} to {most}'} measured" + describe_reasons(launches)
    if not least <= len(launches) <= most:
        return f"{len(launches)} launches reported", detail
    if any(not is_measured(launch) and not launch.reason for launch in launches):
        return "launches without values or a reason", detail
    return "", detail


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


def own_messages(stderr):
    return harness.last_lines("\n".join(line for line in stderr.splitlines() if not line.startswith("launches ")), 4)


def compare(plain, under):
    """None when the application behaved as in the plain run."""
    if under.status is None:
        return Finding("hang", f"killed; the last line was {harness.last_lines(under.stdout, 1)!r}", True)
    if under.status != plain.status:
        verdict = "crash" if under.status > 128 else "DIFFERENT"
        return Finding(verdict, f"exit status {under.status}, plain {plain.status}; stdout ends with "
                       f"{harness.last_lines(under.stdout, 1)!r}, stderr with {own_messages(under.stderr)!r}", True)
    if under.stdout != plain.stdout:
        return Finding("DIFFERENT", first_difference(plain.stdout, under.stdout), True)
    if assertions(under.stderr) != assertions(plain.stderr):
        return Finding("DIFFERENT", f"stderr has the assertions {assertions(under.stderr)}", True)
    return None


class Runner:
    def __init__(self, options, folder):
        self.limit, self.folder = options.limit, folder
        self.end = time.monotonic() + options.budget if options.budget else None
        self.plain, self.runs = {}, 0

    def late(self):
        return self.end is not None and time.monotonic() >= self.end

    def run_plain(self, case):
        if case.name not in self.plain:
            self.plain[case.name] = harness.run(case.argv, limit=self.limit)
        return self.plain[case.name]

    def profile(self, case, mode):
        """(result, base of the report)"""
        self.runs += 1
        base = pathlib.Path(self.folder) / f"{self.runs:03}-{mode.name}-{case.name.replace('/', '-')}"
        limit = case.launch_limit(mode)
        count = ["-c", str(limit)] if limit else []
        result = harness.run([harness.kprof(), *mode.options, *case.options, *count, "-o", base, "--log-file",
                              f"{base}.log", *case.argv], limit=self.limit)
        pathlib.Path(f"{base}.stderr").write_text(result.stderr)
        pathlib.Path(f"{base}.stdout").write_text(result.stdout)
        return result, base

    def check(self, case, mode):
        plain = self.run_plain(case)
        if plain.status == harness.SKIPPED:
            return Finding("skipped", own_messages(plain.stderr))
        if plain.status in (None, 1, 2):
            return Finding("plain run failed", f"{plain.status}: {own_messages(plain.stderr)}", True)
        if self.late():
            return Finding("not run", "no time left")
        under, base = self.profile(case, mode)
        finding = compare(plain, under)
        problem, detail = check_launches(base, expected_launches(plain.stderr), case.launch_limit(mode))
        if finding is None:
            finding = Finding(problem or "same", detail, bool(problem))
        finding.seconds = under.seconds
        return finding


class Results:
    """Findings by case and mode, in the order in which cases came up."""

    def __init__(self):
        self.rows = {}

    def add(self, case, mode, finding):
        self.rows.setdefault(case.name, {})[mode.name] = finding
        print(f"{mode.name:14} {case.name}: {finding} ({finding.seconds:.1f} s)", flush=True)

    def findings(self):
        return [finding for row in self.rows.values() for finding in row.values()]

    def table(self, modes):
        return harness.table(["program", *(mode.name for mode in modes)],
                             [[name, *(str(row.get(mode.name, "")) for mode in modes)]
                              for name, row in self.rows.items()])


def run_mode(runner, cases, mode, results):
    for case in cases:
        if not case.runs_in(mode):
            continue
        finding = runner.check(case, mode)
        results.add(case, mode, finding)
        if finding.bad and len(case.parts) > 1:
            for part in case.split():
                results.add(part, mode, runner.check(part, mode))


def run_plain_together(runner, cases):
    """All plain runs, several at a time: only kprof needs the GPU's counters for itself."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(runner.run_plain, cases))


def chosen_cases(options):
    cases = [case.narrowed(options.cases) for case in CASES if case.chosen(options.cases)]
    return [part for case in cases for part in case.split()] if options.separate else cases


def verdict_line(findings):
    counts = {}
    for finding in findings:
        kind = finding.verdict if not finding.bad or finding.verdict in ("DIFFERENT", "hang", "crash") else "failed"
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in counts.items()) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to run, by the beginning of the name (all)")
    parser.add_argument("--mode", action="append", choices=[mode.name for mode in MODES], help="run this mode (all)")
    parser.add_argument("--budget", type=float, help="start no run after this many seconds")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a run counts as hanging (60)")
    parser.add_argument("--separate", action="store_true", help="each part of a case in a process of its own")
    parser.add_argument("--keep", help="folder for reports and output of the runs (removed without it)")
    parser.add_argument("--output", help="Markdown file (exact.md among the results)")
    return parser.parse_args()


def run_all(options, folder):
    modes = [mode for mode in MODES if not options.mode or mode.name in options.mode]
    cases, results, runner = chosen_cases(options), Results(), Runner(options, folder)
    run_plain_together(runner, cases)
    for mode in modes:
        run_mode(runner, cases, mode, results)
    return modes, results


def main():
    options = parse_arguments()
    if not harness.have_gpu():
        print("exact.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
    with tempfile.TemporaryDirectory(prefix="kprof-exact-") as folder:
        if options.keep:
            pathlib.Path(options.keep).mkdir(parents=True, exist_ok=True)
        modes, results = run_all(options, options.keep or folder)
    document = harness.Document(options.output or harness.results_folder() / "exact.md")
    document.add("# Exactness under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/exact.py " + " ".join(sys.argv[1:]))))
    document.add(results.table(modes))
    findings = results.findings()
    document.add(verdict_line(findings))
    return 1 if any(finding.bad for finding in findings) or not findings else 0


if __name__ == "__main__":
    sys.exit(main())
