#!/usr/bin/env python3
"""Programs that fork, exec, crash, fail or use CUDA in less common ways, each run plain and under kprof: exit status
and standard output must be those of the plain run, and the report must hold the launches that were made. Then kprof's
own exit codes and the formats of what it exports. Prints a table; exits 1 when a case fails.

    behave.py [--output FILE] [CASE...]       a CASE is a name or the beginning of one
"""
import argparse
import csv
import io
import json
import os
import pathlib
import re
import sqlite3
import stat
import sys
import tempfile

import harness

# Exit codes of kprof, src/core/status.h.
USAGE, UNKNOWN_NAME, NO_PERMISSION, NO_MATCH, BAD_REPORT, NO_APPLICATION = 101, 102, 104, 106, 107, 109
OUTPUT = 108


class Case:
    """A program under kprof. `launches` is how many the report must hold measured: a number, or (least, most)."""

    def __init__(self, name, argv, launches, options=(), status=None):
        self.name, self.argv, self.options = name, [str(word) for word in argv], list(options)
        self.least, self.most = launches if isinstance(launches, tuple) else (launches, launches)
        self.status = status


def program(name, *arguments):
    return [harness.programs() / name, *arguments]


def script(name):
    return [sys.executable, harness.ROOT / "tests/gpu/programs" / name]


STEP = ["-k", "step"]

CASES = [
    Case("launch by static cudart", program("vectorAdd"), 1, ["-k", "vectorAdd"]),
    Case("launch by shared cudart", program("vectorAdd-shared"), 1, ["-k", "vectorAdd"]),
    Case("launch in place", program("inplace", 3), 3),
    Case("launch with atomics", program("reduction", 3), 3),
    Case("launch by extra, cluster, cooperative, large shared memory", program("driver_api"), 5),
    Case("launch from four streams", program("streams", "chain"), 12),
    Case("launch from eight threads", program("streams", "threads"), 24),
    Case("launch beside unselected kernels", program("launches", 5, 1, 1000, 3), 6, ["-k", "work"]),
    Case("graph", program("graph"), (1, 7)),
    Case("filter skip and count", program("inplace", 8), 3, ["-k", "scaleInPlace", "-s", "2", "-c", "3"]),
    Case("filter regex", program("transpose", 2), 2, ["-k", "regex:Pad.*ed$"]),
    Case("filter skip before match", program("inplace", 8), 3, ["--launch-skip-before-match", "5"]),
    Case("process fork before CUDA", program("processes", "fork"), 6, STEP),
    Case("process exec", program("processes", "exec"), 6, STEP),
    Case("process fork after CUDA", program("processes", "fork-after"), 4, STEP),
    Case("process first only", program("processes", "exec"), 2, [*STEP, "--target-processes", "application-only"]),
    Case("end normally", program("faults", "none"), 3, STEP, 0),
    Case("end with status 3", program("faults", "exit3"), 3, STEP, 3),
    Case("end by _exit", program("faults", "_exit"), 3, STEP, 0),
    Case("end by SIGSEGV", program("faults", "segv"), 3, STEP, 139),
    Case("end by abort", program("faults", "abort"), 3, STEP, 134),
    Case("end by SIGKILL", program("faults", "kill"), 3, STEP, 137),
    Case("disturb: change directory", program("faults", "chdir"), 3, STEP, 0),
    Case("disturb: close descriptors", program("faults", "closefds"), (3, 6), STEP, 0),
    Case("disturb: close descriptors before CUDA", program("faults", "closefds-early"), 3, STEP, 0),
    Case("kernel fails: illegal address", program("faults", "illegal"), 3, STEP, 4),
    Case("kernel fails while selected: illegal address", program("faults", "illegal"), (3, 4), [], 4),
    Case("kernel fails while selected: assertion", program("faults", "assert"), (3, 4), [], 4),
    Case("kernel fails while selected: launch refused", program("faults", "bad-launch"), 3, [], 4),
    Case("python: PyTorch", script("torch_ops.py"), (1, 30), ["-c", "30"]),
    Case("python: Triton", script("triton_ops.py"), 3, ["-k", "scale_add"]),
]


class Table:
    def __init__(self):
        self.rows, self.failed, self.skipped = [], 0, 0

    def add(self, name, problems, detail):
        self.rows.append((name, "**fail**" if problems else "pass", "; ".join(problems) or detail))
        self.failed += bool(problems)
        print(f"{'FAIL' if problems else 'ok  '} {name}: {self.rows[-1][2]}", flush=True)

    def skip(self, name, reason):
        self.rows.append((name, "skipped", reason))
        self.skipped += 1
        print(f"skip {name}: {reason}", flush=True)


def count_problems(case, base):
    try:
        launches, _ = harness.read_report(base)
    except sqlite3.Error as error:
        return [f"the report cannot be read: {error}"], "no report"
    measured = [launch for launch in launches if launch.measured and any(
        value is not None for name, value in launch.metrics.items() if not name.startswith("launch__"))]
    reasons = sorted({launch.reason for launch in launches if launch.reason})
    detail = f"{len(measured)} launches measured" + (f", reasons: {reasons}" if reasons else "")
    if case.least <= len(measured) <= case.most:
        return [], detail
    return [f"{detail}, expected {case.least}" + (f" to {case.most}" if case.most != case.least else "")], detail


def run_case(case, folder, results):
    plain = harness.run(case.argv)
    if plain.status == harness.SKIPPED:
        return results.skip(case.name, "the program says that it cannot run here")
    wanted = plain.status if case.status is None else case.status
    if plain.status != wanted:
        problem = f"the plain run ended with {plain.status}: {harness.last_lines(plain.stderr)}"
        return results.add(case.name, [problem], "")
    base = f"{folder}/{case.name.replace(' ', '-').replace(':', '').replace(',', '')}"
    under = harness.run([harness.kprof(), "--set", "default", *case.options, "-o", base, "--log-file", f"{base}.log",
                         *case.argv])
    problems, detail = count_problems(case, base)
    if under.status != wanted:
        problems.append(f"exit status {under.status}, plain {wanted}")
    if under.stdout != plain.stdout:
        problems.append(f"stdout differs: {harness.last_lines(under.stdout, 3)!r}, "
                        f"not {harness.last_lines(plain.stdout, 3)!r}")
    if problems:
        problems.append(f"stderr: {harness.last_lines(under.stderr)}")
    return results.add(case.name, problems, f"status {wanted}, {detail}, {under.seconds:.1f} s")


# kprof's own exit codes


def expect_exit(results, name, argv, status, words=(), **options):
    """Run kprof with these arguments; `words` must all be on stderr, and the application must not have printed."""
    result = harness.run([harness.kprof(), *argv], **options)
    problems = [] if result.status == status else [f"exit status {result.status}, expected {status}"]
    problems += [f"stderr lacks {word!r}" for word in words if word not in result.stderr]
    if problems:
        problems.append(f"stderr: {harness.last_lines(result.stderr)}")
    results.add(name, problems, f"status {result.status}: {harness.last_lines(result.stderr, 1)[:160]}")
    return result


def check_exit_codes(folder, results):
    add = str(harness.programs() / "vectorAdd")
    expect_exit(results, "exit: no kernel matched", ["-k", "vectorAd", add], NO_MATCH, ["vectorAdd"])
    expect_exit(results, "exit: not a CUDA program", ["/bin/true"], NO_MATCH)
    for name, argv, status, words in (
            ("unknown metric", ["--metrics", "dram__byte.sum", add], UNKNOWN_NAME, ["dram__bytes.sum"]),
            ("unknown set", ["--set", "ful", add], UNKNOWN_NAME, ["full"]),
            ("unknown section", ["--section", "SpeedOfLigth", add], UNKNOWN_NAME, ["SpeedOfLight"]),
            ("unknown option", ["--kernel-nam", "x", "--sett", "full", add], USAGE, []),
            ("bad pattern", ["-k", "regex:(", add], USAGE, []),
            ("no such application", ["./no-such-program"], NO_APPLICATION, [])):
        result = expect_exit(results, f"exit: {name}", argv, status, words)
        if "sums are right" in result.stdout:
            results.add(f"exit: {name}, before the application", ["the application ran"], "")
    foreign = pathlib.Path(folder) / "foreign.kprof"
    foreign.write_text("no report\n")
    expect_exit(results, "exit: foreign report", ["report", str(foreign)], BAD_REPORT)
    expect_exit(results, "exit: report exists", ["-k", "vectorAdd", "-o", f"{folder}/foreign", add], OUTPUT)
    expect_exit(results, "exit: disk full",
                ["--set", "default", "-k", "vectorAdd", "--csv", "--log-file", "/dev/full", add], OUTPUT)


def admin_only():
    try:
        return "RmProfilingAdminOnly: 1" in pathlib.Path("/proc/driver/nvidia/params").read_text()
    except OSError:
        return False


def check_permission(results):
    """As nobody, where counters are for the administrator: kprof says so, names the setting, and passes nothing off."""
    name = "exit: no permission"
    if os.getuid() != 0 or not admin_only():
        return results.skip(name, "counters are open to everybody here, or this is not root")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        reach = harness.run(["test", "-x", harness.kprof()], user=65534, group=65534, extra_groups=[])
        if reach.status != 0:
            return results.skip(name, "kprof's folder is closed to nobody")
        expect_exit(results, name, ["-k", "vectorAdd", "-o", f"{folder}/x", str(harness.programs() / "vectorAdd")],
                    NO_PERMISSION, ["RmProfilingAdminOnly"], user=65534, group=65534, extra_groups=[], cwd=folder,
                    env={**os.environ, "HOME": folder, "TMPDIR": folder})


# Exports


def export(base, *options):
    result = harness.run([harness.kprof(), "report", harness.report_path(base), *options])
    if result.status != 0:
        raise ValueError(f"kprof report {' '.join(options)} ended with {result.status}: "
                         f"{harness.last_lines(result.stderr)}")
    return result.stdout


def check_rectangular(text):
    rows = list(csv.reader(io.StringIO(text)))
    widths = {len(row) for row in rows}
    if len(rows) < 2 or len(widths) != 1:
        raise ValueError(f"{len(rows)} rows of widths {sorted(widths)}")
    return rows


def numeric_columns(text):
    """Columns that pandas reads as floats, or None without pandas."""
    try:
        import pandas
    except ImportError:
        return None
    frame = pandas.read_csv(io.StringIO(text))
    return [name for name in frame.columns if frame[name].dtype.kind == "f"]


def check_exports(folder, results):
    base = f"{folder}/export"
    made = harness.run([harness.kprof(), "--set", "full", "-k", "vectorAdd", "-o", base, *program("vectorAdd")])
    if made.status != 0:
        return results.add("export", [f"kprof ended with {made.status}: {harness.last_lines(made.stderr)}"], "")
    for page in ("details", "raw", "summary", "session"):
        for options in (["--csv"], ["--csv", "--csv-layout", "wide"], ["--json"], []):
            if page == "session" and "wide" in options:
                continue
            check_one_export(base, ["--page", page, *options], results)
    return check_ncu_layout(base, results)


def check_one_export(base, options, results):
    name = "export: " + " ".join(options)
    try:
        text = export(base, *options)
        detail = f"{len(text.splitlines())} lines"
        if "--json" in options:
            json.loads(text)
        elif "--csv" in options:
            check_rectangular(text)
            floats = numeric_columns(text)
            detail += f", float columns {len(floats)}" if floats is not None else ", no pandas"
            if floats == [] and options[1] in ("details", "raw"):
                raise ValueError("pandas reads no column as numbers")
        elif "vectorAdd" not in text:
            raise ValueError("the kernel is not on the page")
        results.add(name, [], detail)
    except (ValueError, csv.Error) as error:
        results.add(name, [str(error)], "")


def check_ncu_layout(base, results):
    try:
        rows = check_rectangular(export(base, "--page", "details", "--csv", "--csv-layout", "ncu"))
        lacking = {"ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value"} - set(rows[0])
        results.add("export: ncu layout", [f"no columns {sorted(lacking)}"] if lacking else [], f"{len(rows)} rows")
    except (ValueError, csv.Error) as error:
        results.add("export: ncu layout", [str(error)], "")


PATCHED = "smsp__sass_inst_executed_op_global_st.sum"  # counted by code that CUPTI patches into the kernel


def check_modules(folder, results, title, options):
    """A kernel that is loaded and unloaded over and over, at addresses that come up again, counts the same."""
    base = f"{folder}/modules{options[-1]}"
    made = harness.run([harness.kprof(), "--metrics", PATCHED, *options, "-o", base,
                        *program("exact-modules", "ptx", "cubin")])
    if made.status != 0:
        return results.add(title, [f"kprof ended with {made.status}: {harness.last_lines(made.stderr)}"], "")
    counts = {launch.metrics.get(PATCHED) for launch in harness.read_report(base)[0]}
    same = len(counts) == 1 and (min(counts) or 0) > 0
    return results.add(f"{title}: counters of patched code", [] if same else [f"{PATCHED} is {counts}"],
                       f"{min(counts):.0f} stores by each launch" if same else "")


LIMITS = [["--max-passes", "3"], ["--max-passes", "5"], ["--max-passes", "15"], ["--budget", "0.8", "-c", "3"],
          ["--budget", "1", "-c", "3"]]
COUNTED = re.compile(r"smsp?__(sass_\w*|inst_executed\w*|thread_inst_executed\w*)\.sum$")  # the same in every run


def measure_limited(base, options):
    made = harness.run([harness.kprof(), "--set", "full", *options, "-o", base, *program("inplace", 3)])
    if made.status != 0:
        raise ValueError(f"kprof ended with {made.status}: {harness.last_lines(made.stderr)}")
    return harness.read_report(base)[0]


def limit_problems(limited, whole):
    problems = []
    for launch, reference in zip(limited, whole):
        missing = [name for name, value in launch.metrics.items()
                   if value is None and reference.metrics.get(name) is not None]
        counted = [name for name in launch.metrics if COUNTED.match(name) and name in reference.metrics]
        different = [name for name in counted if launch.metrics[name] != reference.metrics[name]]
        if missing:
            problems.append(f"no value: {missing[:5]}")
        if different or not counted:
            problems.append(f"counts differ: {different[:5]}" if counted else "nothing to compare")
    return problems if len(limited) == len(whole) else [*problems, f"{len(limited)} launches of {len(whole)}"]


def check_limits(folder, results):
    """What is kept within limits has its values, and counts are those of the whole set."""
    try:
        whole = measure_limited(f"{folder}/limits", [])
        for number, options in enumerate(LIMITS):
            limited = measure_limited(f"{folder}/limits{number}", options)
            results.add("limits: " + " ".join(options), limit_problems(limited, whole),
                        f"{len(limited[0].metrics)} of {len(whole[0].metrics)} metrics" if limited else "")
    except ValueError as error:
        results.add("limits", [str(error)], "")


def selected(name, wanted):
    return not wanted or any(name.startswith(prefix) for prefix in wanted)


def run_all(wanted, folder):
    results = Table()
    for case in CASES:
        if selected(case.name, wanted):
            run_case(case, folder, results)
    if selected("modules", wanted):
        check_modules(folder, results, "modules", ["--cache-control", "none"])
        check_modules(folder, results, "modules, full set", ["--set", "full"])
    if selected("limits", wanted):
        check_limits(folder, results)
    if selected("exit", wanted):
        check_exit_codes(folder, results)
        check_permission(results)
    if selected("export", wanted):
        check_exports(folder, results)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="cases to run, by the beginning of the name (all)")
    parser.add_argument("--output", help="Markdown file (behaviour.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-behave-") as folder:
        results = run_all(options.cases, folder)
    document = harness.Document(options.output or harness.results_folder() / "behaviour.md")
    document.add("# Behaviour under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/behave.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["case", "verdict", "detail"], results.rows))
    document.add(f"{len(results.rows) - results.failed - results.skipped} passed, {results.failed} failed, "
                 f"{results.skipped} skipped\n")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
