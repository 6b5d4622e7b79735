#!/usr/bin/env python3
"""Holds findings to the kernels of tests/gpu/planted, in code as programs have it: each has one fault, and a twin
(KERNEL_ok) has none. A finding has to name the line with the fault, and what it waits for, and no such line of the
twin, with the set full and with the set source. Comments in the sources mark the lines. And each sample of a wait has
to be about what its reason is taken for: Long Scoreboard about accesses to other memory than the shared one. Exits 1
when one fails, 77 where there is no GPU.

    planted.py [--output FILE] [--set SET]... [--without-triton] [--judge REPORT...]"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import sqlite3
import sys

import harness

FOLDER = harness.ROOT / "tests/gpu/planted"
SETS = ("full", "source")
MARK = re.compile(r"(?://|#) (FAULT|SOURCE|CALLER) ([\w| ]+)")
LIMIT_S = 200

# Of a kernel: the findings one of which has to name one of the lines, and the lines that it waits for.
Mark = collections.namedtuple("Mark", "findings lines sources")


# Samples of instructions that wait for one kind of others alone, and those of them that the other reason tells.
REASONS = """
    WITH kinds AS (
        SELECT w.function_id, w.offset, max(coalesce(space, 'Shared') != 'Shared') AS is_far,
               max(coalesce(space, 'Shared') = 'Shared') AS is_near
        FROM code_wait AS w JOIN code_instruction AS i ON i.function_id = w.function_id AND i.offset = producer_offset
        GROUP BY w.function_id, w.offset)
    SELECT coalesce(sum(value), 0), coalesce(sum(value * ((name LIKE '%long%') != is_far)), 0)
    FROM instruction_value JOIN metric ON metric.id = metric_id JOIN kinds USING (function_id, offset)
    WHERE is_far != is_near AND name IN ('smsp__pcsamp_warps_issue_stalled_long_scoreboard',
                                         'smsp__pcsamp_warps_issue_stalled_short_scoreboard')"""


def sources():
    return sorted(path for path in FOLDER.iterdir() if path.suffix in (".cu", ".h", ".py"))


def read_marks(paths):
    marks = collections.defaultdict(lambda: Mark(set(), set(), set()))
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for kind, words in MARK.findall(line):
                *findings, kernel = words.split()
                if findings:
                    marks[kernel].findings.update(findings[0].split("|"))
                (marks[kernel].sources if kind == "SOURCE" else marks[kernel].lines).add(f"{path.name}:{number}")
    return dict(marks)


def names_of(place):
    return {name for name in (place["place"], place["called_from"]) if name}


def places_of(launch, findings):
    return [(found["id"], place) for found in launch["findings"] if found["id"] in findings
            for place in found["places"] or []]


def text_of(name):
    """The text of a line without its marks."""
    file, _, line = name.rpartition(":")
    path = FOLDER / file
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return MARK.split(lines[int(line) - 1])[0].strip() if 0 < int(line) <= len(lines) else name


def fault_of(mark, launch, twin):
    """What is wrong with what a report tells of a pair; None: nothing."""
    places = places_of(launch, mark.findings)
    right = [place for _, place in places if names_of(place) & mark.lines]
    if not right:
        return f"names {', '.join(place['place'] for _, place in places) or 'no line'}"
    if mark.sources and not any(place["waits_for"] and names_of(place["waits_for"]) & mark.sources for place in right):
        return "does not say what it waits for"
    same = {text_of(name) for name in mark.lines}
    named = [name for _, place in places_of(twin, mark.findings) for name in names_of(place) if text_of(name) in same]
    return f"names {named[0]} of the twin" if named else None


def launches_of(report):
    return json.loads(harness.run([harness.kprof(), "report", report, "--json"]).stdout)["launches"]


def samples_by_reason(report):
    """Samples of waits, and how many of them are not about what their reason is taken for."""
    with contextlib.closing(sqlite3.connect(f"file:{report}?mode=ro", uri=True)) as database:
        return database.execute(REASONS).fetchone()


def judge(report, marks):
    """Rows of (kernel, findings, lines, what is wrong) for the kernels of a report."""
    launches = {launch["kernel"]["function"]: launch for launch in launches_of(report)}
    rows = []
    for kernel, mark in sorted(marks.items()):
        there = kernel in launches and f"{kernel}_ok" in launches
        fault = fault_of(mark, launches[kernel], launches[f"{kernel}_ok"]) if there else "not measured"
        rows.append((kernel, " or ".join(sorted(mark.findings)), " ".join(sorted(mark.lines)), fault or "right"))
    return rows


def judge_reasons(report):
    """A row as above for all kernels of a report."""
    samples, others = samples_by_reason(report)
    return "all", "reasons of waits", f"{samples:.0f} samples", f"{others:.0f} are of others" if others else "right"


def record(program, words, kernels, which):
    pattern = "regex:^(" + "|".join(f"{kernel}(_ok)?" for kernel in sorted(kernels)) + ")$"
    report = harness.results_folder() / f"{program}-{which}.kprof"
    done = harness.run([harness.kprof(), "--set", which, "-k", pattern, "-f", "-o", report, *words], limit=LIMIT_S,
                       cwd=FOLDER)
    if done.status != 0:
        raise harness.Failure(f"{report.name} ended with {done.status}: {harness.last_lines(done.stderr)}")
    return report


def programs(without_triton):
    """(name, command line, sources) of what is measured."""
    cuda = [path for path in sources() if path.suffix != ".py"]
    yield "planted", [harness.programs() / "planted"], cuda
    script = FOLDER / "triton_kernels.py"
    if not without_triton and harness.run([sys.executable, script], limit=LIMIT_S, cwd=FOLDER).status == 0:  # compiles
        yield "triton", [sys.executable, script], [script]


def measure(options):
    for name, words, paths in programs(options.without_triton):
        marks = read_marks(paths)
        for which in options.set or SETS:
            report = record(name, words, marks, which)
            yield f"{name}, set {which}", judge(report, marks)
            yield f"{name}, set {which}, samples", [judge_reasons(report)]


def judged(reports):
    for report in reports:
        rows = judge(report, read_marks(sources()))
        yield report.name, [row for row in rows if row[-1] != "not measured"]
        yield f"{report.name}, samples", [judge_reasons(report)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=None)
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--without-triton", action="store_true")
    parser.add_argument("--judge", nargs="+", type=pathlib.Path, metavar="REPORT", help="reports of another time")
    options = parser.parse_args()
    if not options.judge:
        harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "planted.md")
    if not options.judge:
        document.add(harness.table(["", ""], harness.facts("tests/gpu/planted.py")))
    faults = 0
    for title, rows in judged(options.judge) if options.judge else measure(options):
        wrong = sum(row[-1] != "right" for row in rows)
        faults += wrong
        document.add(f"{title}: {len(rows) - wrong} of {len(rows)} pairs are right\n")
        document.add(harness.table(["kernel", "finding", "line", "is told"], rows))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
