#!/usr/bin/env python3
"""NVTX ranges under kprof: a program of CUDA with ranges of every kind, and one of PyTorch. Checks the ranges that are
stored, which launches each expression of --nvtx-include and --nvtx-exclude chooses, in a run and of a report, that ncu
chooses the same, the rows of --group-by nvtx, and that the programs print what they print without kprof. Exits 1 when
a check fails.

    nvtx.py [--no-ncu] [--output FILE]
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import sqlite3
import sys
import tempfile

import harness

METRIC = "gpu__time_duration.sum"
COUNTS = ["sm__inst_executed.sum", "sm__ctas_launched.sum"] # of the same work, always the same
# Nearly all of it is of copies of the range "input".
TRAFFIC = ["pcie__read_bytes.sum", "pcie__write_bytes.sum", "lts__t_sectors_op_write.sum", "lts__t_sectors_op_read.sum"]
# The ranges of the launches of programs/nvtx.cu, by their number of blocks.
RANGES = {1: None, 2: "outer/", 3: "outer/inner/", 4: "net@conv/; outer/inner/", 5: "outer/wide/",
          6: "outer/wide/inner/", 7: "outer/; epoch", 8: "outer/; epoch; net@phase", 9: "net@phase",
          10: "worker/; net@phase", 11: "a\\/b[0], c/", 12: "inner/", 13: None}
INCLUDE, EXCLUDE = "--nvtx-include", "--nvtx-exclude"
# Options, the launches that they choose, and whether ncu documents the form (else what ncu does is told, no more).
CASES = [
    ([INCLUDE, "outer/"], [2, 3, 4, 5, 6, 7, 8], True),
    ([INCLUDE, "outer/inner"], [3, 4], True),
    ([INCLUDE, "outer/inner/"], [3, 4], False),
    ([INCLUDE, "outer/*/inner"], [3, 4, 6], True),
    ([INCLUDE, "outer/+/inner"], [6], True),
    ([INCLUDE, "[outer"], [2, 3, 4, 5, 6, 7, 8], True),
    ([INCLUDE, "[inner"], [12], True),
    ([INCLUDE, "inner]"], [3, 4, 6, 12], True),
    ([INCLUDE, "outer]"], [2, 7, 8], True),
    ([INCLUDE, "[outer/*/inner]"], [3, 4, 6], True),
    ([INCLUDE, "net@conv/"], [4], True),
    ([INCLUDE, "conv/"], [], True),
    ([INCLUDE, "epoch"], [7, 8], True),
    ([INCLUDE, "net@phase"], [8, 9, 10], True),
    ([INCLUDE, "outer"], [], True),
    ([INCLUDE, "worker/"], [10], True),
    ([INCLUDE, "a\\/b\\[0\\]\\, c/"], [11], True),
    ([INCLUDE, "regex:^in.*r$/"], [3, 4, 6, 12], True),
    ([INCLUDE, "regex:nne/"], [3, 4, 6, 12], False),
    ([INCLUDE, "regex:n.t@c[no]+v/"], [4], True),
    ([INCLUDE, "worker/", INCLUDE, "epoch"], [7, 8, 10], True),
    ([INCLUDE, "outer/", EXCLUDE, "inner]"], [2, 5, 7, 8], True),
    ([EXCLUDE, "outer/"], [1, 9, 10, 11, 12, 13], True),
    ([INCLUDE, "inner/", "-s", "1", "-c", "2"], [4, 6], True),
]


def demand(condition, text):
    if not condition:
        raise harness.Failure(text)


def read(base):
    """[(number of blocks, ranges)] of the launches, in the program's order."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        return database.execute("SELECT grid_x, ranges FROM launch LEFT JOIN nvtx ON launch_id = id "
                                "ORDER BY position").fetchall()


class Session:
    def __init__(self, folder):
        self.folder, self.count = folder, 0
        self.program = [harness.programs() / "nvtx"]
        self.plain = harness.run(self.program)
        self.full = None  # a report of all launches

    def profile(self, options, program=None, plain=None):
        """(status, base of the report) of a run that must print what the program prints alone."""
        self.count += 1
        base = f"{self.folder}/{self.count}"
        plain = plain or self.plain
        under = harness.run([harness.kprof(), "--metrics", METRIC, *options, "-o", base, *(program or self.program)],
                            limit=300)
        demand(under.status in (0, 106) and under.stdout == plain.stdout,
               f"status {under.status}, stdout {under.stdout!r}, plain {plain.stdout!r}: "
               f"{harness.last_lines(under.stderr)}")
        return under.status, base


def check_ranges(session):
    demand(session.plain.status == 0, f"the plain run: {harness.last_lines(session.plain.stderr)}")
    _, base = session.profile(["--nvtx"])
    found = dict(read(base))
    wrong = [f"launch {number}: {found.get(number)!r}, not {text!r}" for number, text in RANGES.items()
             if found.get(number) != text]
    demand(not wrong and len(found) == len(RANGES), "; ".join(wrong) or f"{len(found)} launches")
    session.full = base
    return f"{len(found)} launches"


def check_unasked(session):
    _, base = session.profile([])
    found = read(base)
    demand(len(found) == len(RANGES) and not any(text for _, text in found), f"{found}")
    return "no ranges without --nvtx"


def check_groups(session):
    result = harness.run([harness.kprof(), "report", f"{session.full}.kprof", "--page", "summary", "--group-by", "nvtx",
                          "--json"])
    demand(result.status == 0, harness.last_lines(result.stderr))
    found = {row["group"]: row["launches"] for row in json.loads(result.stdout)["kernels"]}
    wanted = collections.Counter((text or "no range").partition("; ")[0] for text in RANGES.values())
    demand(found == dict(wanted), f"{found}, not {dict(wanted)}")
    return f"{len(found)} rows"


def check_another_tool(session):
    other = {**os.environ, "NVTX_INJECTION64_PATH": "/nowhere/tool.so"}
    result = harness.run([harness.kprof(), "--metrics", METRIC, "--nvtx", *session.program], env=other)
    demand(result.status == 0 and "another tool gets the NVTX ranges" in result.stderr,
           f"status {result.status}: {harness.last_lines(result.stderr)}")
    return "told, and none collected"


def counts_of(base):
    """[(number of blocks, [value of each of COUNTS])] of the launches or ranges that have values."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        return [(blocks, [value for (value,) in database.execute(
            "SELECT value FROM value JOIN metric ON metric.id = metric_id WHERE launch_id = ? AND name IN (?, ?) "
            "ORDER BY name DESC", (launch, *COUNTS))]) for launch, blocks in database.execute(
                "SELECT id, grid_x FROM launch ORDER BY position").fetchall()]


def check_as_one(session):
    """A range that is measured as one counts what its launches count together, those of other threads too: 9 and 10."""
    metrics = ["--metrics", ",".join(COUNTS)]
    _, base = session.profile(metrics)
    alone = dict(counts_of(base))
    for expression, launches in (("outer/", range(2, 11)), ("outer/inner", (3, 4)), ("net@conv/", (4,)),
                                 ("worker/", (10,)), ("epoch", (7, 8))):
        _, base = session.profile([*metrics, "--replay-mode", "range", INCLUDE, expression])
        found = [values for _, values in counts_of(base)]
        wanted = [sum(alone[launch][i] for launch in launches) for i in range(len(COUNTS))]
        demand(found[:1] == [wanted], f"{expression}: {found}, not {wanted}")
    return "five ranges count as much as their launches"


def read_range(base):
    """(mode, counts, hardware metrics without a value, reason) of the only range of a report."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        [(mode, reason)] = database.execute("SELECT replay_mode, coalesce(reason, '') FROM launch").fetchall()
        missing = [name for (name,) in database.execute(
            "SELECT name FROM value JOIN metric ON metric.id = metric_id WHERE kind = 'hardware' AND value IS NULL")]
    return mode, [values for _, values in counts_of(base)][0], missing, reason


def check_repeated(session):
    """Ranges that come once have the values of the default set, but for ratios of nothing to nothing, and count what
    their launches count, or, with sets and copies within the GPU, which the driver makes by kernels, what they count
    in a run for each pass. Copies from the host and to it add nothing."""
    program = [harness.programs() / "ranges"]
    plain = harness.run(program)
    metrics = ["--metrics", ",".join(COUNTS)]
    _, base = session.profile(metrics, program, plain)
    alone, told = dict(counts_of(base)), []
    for name, launches in (("plain", (2, 3, 4)), ("wait", (5, 6)), ("copies", (7, 8, 9)), ("graph", (10, 11, 12)),
                           ("streams", (13, 14)), ("input", (15, 16, 17)), ("beside", (18, 19)),
                           ("ordered", (20, 21)), ("default", (22, 23))):
        status, base = session.profile(["--set", "default", *metrics, "--replay-mode", "range", INCLUDE, f"{name}/"],
                                       program, plain)
        mode, counts, missing, reason = read_range(base)
        sums = [sum(alone[launch][i] for launch in launches) for i in range(len(COUNTS))]
        if name == "copies":
            under = harness.run([harness.kprof(), *metrics, "--replay-mode", "app-range", INCLUDE, "copies/", "-f",
                                 "-o", f"{base}-runs", *program])
            demand(under.status == 0, f"copies: {harness.last_lines(under.stderr)}")
            _, as_it_runs, _, _ = read_range(f"{base}-runs")
            demand(all(a >= b for a, b in zip(as_it_runs, sums)), f"copies: {as_it_runs}, below {sums}")
            sums = as_it_runs
        told.append(f"{name}: {mode}, {counts}, missing {missing}")
        demand(status == 0 and mode == "range" and counts == sums and len(missing) <= 3 and
               "one after the other" not in reason,
               f"{told[-1]}, not {sums}; status {status}: {reason}")
    return "; ".join(told)


def times_of(base):
    """{number of blocks: time} of the launches or ranges."""
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        return dict(database.execute("SELECT grid_x, value FROM launch JOIN value ON launch.id = launch_id JOIN metric "
                                     "ON metric.id = metric_id WHERE name = ?", (METRIC,)))


def check_streams(session):
    """Kernels of two streams are repeated as the program's own run has them under a profiler: side by side, and one
    after the other where an event orders them, or one in the default stream does."""
    program, told = [harness.programs() / "ranges"], []
    plain = harness.run(program)
    alone = times_of(session.profile([], program, plain)[1])
    for name, launches in (("beside", (18, 19)), ("ordered", (20, 21)), ("default", (22, 23))):
        one = sum(alone[launch] for launch in launches) / 2
        took = {}
        for mode in ("range", "app-range"):
            base = f"{session.folder}/{name}-{mode}"
            under = harness.run([harness.kprof(), "--set", "default", "--metrics", METRIC, "--replay-mode", mode,
                                 INCLUDE, f"{name}/", "-f", "-o", base, *program], limit=300)
            demand(under.status == 0 and plain.stdout in under.stdout, f"{mode}: {harness.last_lines(under.stderr)}")
            [time_ns] = times_of(base).values()
            took[mode] = time_ns / one
        told.append(f"{name}: {took['range']:.2f} times a kernel of {one / 1000:.0f} us, {took['app-range']:.2f} in "
                    "its own run")
        demand(abs(took["range"] / took["app-range"] - 1) < 0.15, "; ".join(told))
    return "; ".join(told)


def check_traffic(session):
    """A range that is repeated copies from the host, and to it, as many bytes as the program's own run does."""
    program, found = [harness.programs() / "ranges"], []
    plain = harness.run(program)
    for mode in ("range", "app-range"):
        base = f"{session.folder}/traffic-{mode}"
        under = harness.run([harness.kprof(), "--set", "default", "--metrics", ",".join(TRAFFIC), "--replay-mode", mode,
                             INCLUDE, "input/", "-f", "-o", base, *program], limit=300)
        demand(under.status == 0 and plain.stdout in under.stdout, f"{mode}: {harness.last_lines(under.stderr)}")
        with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
            found.append(dict(database.execute("SELECT name, value FROM value JOIN metric ON metric.id = metric_id "
                                               f"WHERE name IN ({', '.join('?' * len(TRAFFIC))})", TRAFFIC)))
    repeated, own = found
    told = "; ".join(f"{name}: {repeated.get(name)}, in its own run {own.get(name)}" for name in TRAFFIC)
    known = [(repeated[name], own[name]) for name in TRAFFIC if None not in (repeated.get(name), own.get(name))]
    demand(known and all(0.8 * b <= a <= 1.25 * b for a, b in known), told)
    return told


def check_in_runs(session):
    """With app-range the program runs once for each pass, so that a range that comes once has the set's values, but
    for those of metrics that take several passes at once."""
    metrics = ["--metrics", ",".join(COUNTS)]
    _, base = session.profile(metrics)
    alone = dict(counts_of(base))
    under = harness.run([harness.kprof(), "--set", "default", *metrics, "--replay-mode", "app-range", INCLUDE, "outer/",
                         "-f", "-o", f"{base}-runs", *session.program], limit=300)
    runs = len(under.stdout) // max(1, len(session.plain.stdout))
    demand(under.status == 0 and under.stdout == session.plain.stdout * runs and runs > 1,
           f"status {under.status}, {runs} runs: {harness.last_lines(under.stderr)}")
    found = [values for _, values in counts_of(f"{base}-runs")]
    wanted = [sum(alone[launch][i] for launch in range(2, 11)) for i in range(len(COUNTS))]
    demand(found == [wanted], f"{found}, not {wanted}")
    with sqlite3.connect(f"file:{harness.report_path(f'{base}-runs')}?mode=ro", uri=True) as database:
        [(known, asked)] = database.execute("SELECT count(value), count(*) FROM value JOIN metric ON "
                                            "metric.id = metric_id WHERE kind = 'hardware'").fetchall()
    demand(known >= 0.8 * asked, f"{known} of {asked} values")
    return f"{known} of {asked} values of a range that comes once, in {runs} runs"


def check_torch(session):
    """What a user of PyTorch asks for: the launches of the forward passes, without those of the others."""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs/nvtx_torch.py"]
    plain = harness.run(program, limit=300)
    if plain.status == harness.SKIPPED:
        return "skipped: no PyTorch"
    demand(plain.status == 0, f"the plain run: {harness.last_lines(plain.stderr)}")
    _, full = session.profile(["--nvtx"], program, plain)
    texts = [text or "" for _, text in read(full)]
    for step in range(3):
        demand(any(text.startswith(f"step {step}/forward/") for text in texts), f"no forward of step {step}: {texts}")
        demand(any(text.startswith(f"step {step}/; ") and text.endswith("update") for text in texts),
               f"no update of step {step}: {texts}")
    forward = [text for text in texts if text.startswith("step 1/forward/")]
    status, base = session.profile([INCLUDE, "step 1/forward"], program, plain)
    chosen = [text for _, text in read(base)]
    demand(status == 0 and chosen == forward, f"{chosen}, not {forward}")
    backward, outside = sum("/backward/" in text for text in texts), sum(not text for text in texts)
    _, base = session.profile(["--nvtx-push-pop-scope", "process"], program, plain)
    of_process = sum("/backward/" in (text or "") for _, text in read(base))
    demand(of_process > backward, f"{of_process} launches in backward of any thread, {backward} in the thread's own")
    return f"{len(texts)} launches, {len(forward)} in step 1/forward, {outside} in no range, {backward} in backward; " \
           f"with the ranges of all threads {of_process}"


def check_torch_repeated(session):
    """Steps of a training loop that come once, with their backward passes, are repeated but for the first, which may
    load code; the program computes what it computes alone."""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs/nvtx_torch.py"]
    plain = harness.run(program, limit=300)
    if plain.status == harness.SKIPPED:
        return "skipped: no PyTorch"
    told = []
    for number, name in enumerate(("step 0", "step 1", "step 2")):
        base = f"{session.folder}/torch-{number}"
        under = harness.run([harness.kprof(), "--set", "default", "--metrics", ",".join(COUNTS), "--replay-mode",
                             "range", INCLUDE, f"{name}/", "-f", "-o", base, *program], limit=300)
        demand(under.stdout == plain.stdout, f"{name}: stdout {under.stdout!r}, plain {plain.stdout!r}")
        mode, counts, missing, reason = read_range(base)
        told.append(f"{name}: {mode}, {counts}, {len(missing)} missing, {reason}")
        demand(number == 0 or (mode == "range" and len(missing) <= 3 and under.status == 0),
               f"{'; '.join(told)}; status {under.status}: {harness.last_lines(under.stderr)}")
    return "; ".join(told)


def numbers_of_report(session, options):
    """The launches that `kprof report` shows of the full report."""
    result = harness.run([harness.kprof(), "report", f"{session.full}.kprof", *options, "--page", "raw", "--csv-layout",
                          "wide"])
    demand(result.status in (0, 106), harness.last_lines(result.stderr))
    return sorted(int(row["grid_x"]) for row in csv.DictReader(result.stdout.splitlines()))


def numbers_of_ncu(session, options):
    """The launches that ncu measures; None where it refuses the options."""
    result = harness.run([harness.ncu(), "--nvtx", *options, "--metrics", METRIC, "--clock-control", "none", "--csv",
                          "--page", "raw", *session.program], limit=300)
    lines = result.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        return [] if "No kernels were profiled" in result.stdout + result.stderr else None
    rows = csv.DictReader(line for line in lines[start:] if line.startswith('"'))
    return sorted(int(row["Grid Size"].strip("()").split(",")[0]) for row in rows if row["ID"])


def check_case(session, case, with_ncu):
    """A row of the table of expressions."""
    options, wanted, is_documented = case
    row = [" ".join(options), str(wanted)]
    try:
        status, base = session.profile(options)
        chosen = [number for number, _ in read(base)] if status == 0 else []
        reported = numbers_of_report(session, options) if session.full else wanted
        ncu = numbers_of_ncu(session, options) if with_ncu else wanted
        is_right = chosen == wanted and reported == wanted and (ncu == wanted or not is_documented)
        row += [str(chosen), str(reported), ("refused" if ncu is None else str(ncu)) if with_ncu else "not run",
                "pass" if is_right else "**fail**"]
        if is_right and ncu != wanted:
            row[-1] = "pass; ncu differs"
    except (harness.Failure, sqlite3.Error) as failure:
        row += [str(failure), "", "", "**fail**"]
    print(*row, sep=": ", flush=True)
    return row


CHECKS = [("stored ranges", check_ranges), ("without --nvtx", check_unasked), ("--group-by nvtx", check_groups),
          ("another tool", check_another_tool), ("ranges as one", check_as_one), ("ranges in runs", check_in_runs),
          ("ranges that are repeated", check_repeated), ("copies in ranges that are repeated", check_traffic),
          ("streams of ranges that are repeated", check_streams),
          ("PyTorch", check_torch), ("steps of PyTorch that are repeated", check_torch_repeated)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--no-ncu", action="store_true", help="do not compare with ncu")
    parser.add_argument("--output", help="Markdown file (nvtx.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with_ncu = bool(harness.ncu()) and not options.no_ncu
    with tempfile.TemporaryDirectory(prefix="kprof-nvtx-") as folder:
        session = Session(folder)
        rows = harness.run_checks(CHECKS, session)
        cases = [check_case(session, case, with_ncu) for case in CASES]
    document = harness.Document(options.output or harness.results_folder() / "nvtx.md")
    document.add("# NVTX ranges under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/nvtx.py")))
    document.add(harness.table(["check", "verdict", "detail"], rows))
    document.add("Launches of programs/nvtx.cu, by their numbers, that options choose:\n")
    document.add(harness.table(["options", "wanted", "kprof", "kprof report", "ncu", "verdict"], cases))
    return 1 if any("fail" in row[1] for row in rows) or any("fail" in row[-1] for row in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
