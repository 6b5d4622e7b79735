#!/usr/bin/env python3
"""Programs whose GPU waits for the host, for another stream or for another process, or that end without a word, plain
and under kprof: the same output, how many launches are complete or told of, and the time, beside what is wanted. Below
the table stand why launches are not complete, how many for each reason, and where kprof's own time went.
Exits 1 when a program does something else or launches are lost, 77 where there is no GPU. What is merely below the
wanted figures is "missed", and no failure.

    waits.py [--output FILE] [PROGRAM...]
"""
import argparse
import collections
import pathlib
import re
import sqlite3
import sys
import tempfile

import harness

LIMIT = 60


class Row:
    """A program, and what is wanted of it: `complete` launches of `launches`, all told of but for `lost`, in `seconds`;
    `argv` names the program of waits.cu, or another. `status`: its own; `same`: its output is the same each time;
    `alone`: the seconds that it took alone where those were wanted."""

    def __init__(self, name, launches, complete, seconds, **more):
        self.name, self.launches, self.complete, self.seconds = name, launches, complete, seconds
        self.argv = more.get("argv") or [harness.programs() / "waits", name]
        self.options, self.status, self.same = more.get("options", []), more.get("status", 0), more.get("same", True)
        self.lost, self.alone = more.get("lost", 0), more.get("alone")

    def most_seconds(self, alone):
        """What is wanted where the program takes so long alone: a machine may be slower than that of the wish."""
        return self.seconds if self.alone is None else self.seconds - self.alone + max(alone, self.alone)


def exact(part, launches, seconds):
    return Row(f"memory/{part}", launches, launches * 4 // 5, seconds, argv=[harness.programs() / "exact-memory", part],
               options=["--set", "full", "-c", str(launches)], lost=19)


def rows():
    jax = [sys.executable, harness.ROOT / "tests/gpu/frameworks/jax_train.py", "--autotune", "on"]
    return [Row("handshake", 13, 5, 2.5), Row("held", 26, 24, 2.5), Row("fed", 6, 3, 1.5),
            Row("ranks", 20, 16, 3), Row("pools", 121, 121, 2.5), Row("workers", 12, 12, 3),
            Row("forked", 80, 80, 30), Row("killed", 200, 150, 25, status=137, lost=50),
            Row("slow", 16, 10, 30), Row("written", 40, 40, 3),
            exact("frees", 20, 4), exact("managed", 6, 4),
            Row("jax", 100, 95, 10, argv=jax, options=["-c", "100"], same=False, alone=7.4)]


SHARED = "multiplexed: its counters are part of the values of"
PARTIAL = "measured in "


class Finding:
    """What one run under kprof showed. `shared`: launches whose counters are part of another one's complete values."""

    def __init__(self, plain, under, launches, messages=()):
        self.plain, self.under, self.messages = plain, under, messages
        self.told = len(launches)
        self.complete = sum(is_complete(launch) for launch in launches)
        whole = {launch.position for launch in launches if is_complete(launch)}
        self.shared = sum(shared_position(launch) in whole for launch in launches)
        self.reasons = collections.Counter(f"{launch.kernel}: {launch.reason or 'no reason'}" for launch in launches
                                           if not is_complete(launch))

    def cells(self, row):
        wrong, missed = judge(row, self)
        shared = f" and {self.shared} in their values" if self.shared else ""
        return (row.name, f"**{'; '.join(wrong)}**" if wrong else "same", f"{self.complete}{shared} of {row.launches}",
                f"{row.complete}", f"{self.under.seconds:.1f} s", f"{row.most_seconds(self.plain.seconds):.3g} s",
                f"{self.plain.seconds:.1f} s", ", ".join(missed))

    def details(self):
        """Lines on what is not complete, and on time."""
        return [f"{count} of {reason}" for reason, count in self.reasons.most_common()] + told_times(self.messages)


def is_complete(launch):
    return launch.measured and not launch.reason.startswith(PARTIAL)


def shared_position(launch):
    """Where the launch is whose values this one's counters are part of; None."""
    match = re.match(SHARED + r" the process's launch at position (\d+)", launch.reason or "")
    return int(match.group(1)) if match else None


def told_times(messages):
    """What --verbose tells of batches and profilers, summed over all processes."""
    closed, stages, chosen, ready = collections.Counter(), collections.Counter(), 0, []
    for text in messages:
        batch = re.match(r"batch of \d+ launches, (\d+) of them chosen, closed by (.*), \d+ passes, ms: (.*)", text)
        if batch:
            chosen += int(batch.group(1))
            closed[batch.group(2)] += 1
            for stage, ms in re.findall(r"([a-z ]+) ([\d.]+)(?:, |$)", batch.group(3)):
                stages[stage] += float(ms)
        profiler = re.match(r"profiler ready: CUPTI ([\d.]+) ms, context ([\d.]+) ms", text)
        if profiler:
            ready.append(float(profiler.group(1)) + float(profiler.group(2)))
    lines = [f"{sum(closed.values())} batches with {chosen} launches, closed by "
             + ", ".join(f"{why} ({count})" for why, count in closed.most_common()),
             "ms: " + ", ".join(f"{stage} {ms:.0f}" for stage, ms in stages.most_common() if ms >= 1),
             f"{len(ready)} times a profiler got ready, in {sum(ready):.0f} ms"]
    return lines if closed or ready else ["kprof told of no batch"]


def judge(row, finding):
    """(what is wrong, what is missed)"""
    wrong, missed = [], []
    plain, under = finding.plain, finding.under
    wanted = 110 if plain.status == 0 and finding.told > 0 and finding.complete == 0 else plain.status
    if plain.status != row.status:
        wrong.append(f"alone it ends with {plain.status}: {harness.last_lines(plain.stderr, 2)}")
    elif under.status != wanted:
        wrong.append(f"ends with {under.status}: {harness.last_lines(under.stderr, 2)}")
    elif row.same and plain.stdout != under.stdout:
        wrong.append(f"prints {harness.last_lines(under.stdout, 3)!r}")
    if finding.told < row.launches - row.lost:
        wrong.append(f"{finding.told} launches told of")
    if finding.complete + finding.shared < row.complete:
        missed.append("launches")
    if under.seconds > row.most_seconds(plain.seconds):
        missed.append("time")
    return wrong, missed


def take(row, folder):
    """None where the program cannot run here."""
    plain = harness.run(row.argv, limit=LIMIT)
    if plain.status == harness.SKIPPED:
        return None
    base = pathlib.Path(folder) / row.name.replace("/", "-")
    under = harness.run([harness.kprof(), "--verbose", *row.options, "-f", "-o", base, *row.argv], limit=LIMIT)
    try:
        launches, messages = harness.read_report(base)[0], harness.read_messages(base)
    except sqlite3.Error:
        launches, messages = [], []
    return Finding(plain, under, launches, messages)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="programs to run (all)")
    parser.add_argument("--output", help="Markdown file (waits.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    cells, details, is_bad = [], [], False
    with tempfile.TemporaryDirectory(prefix="kprof-waits-") as folder:
        for row in rows():
            if options.programs and row.name not in options.programs:
                continue
            finding = take(row, folder)
            if finding is None:
                cells.append((row.name, "skipped", *[""] * 6))
                continue
            is_bad = is_bad or bool(judge(row, finding)[0])
            cells.append(finding.cells(row))
            details += [f"- {row.name}: {line}" for line in finding.details()]
            print(" | ".join(cells[-1]), *finding.details(), sep="\n    ", file=sys.stderr, flush=True)
    document = harness.Document(options.output or harness.results_folder() / "waits.md")
    document.add("# Programs that wait\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/waits.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["program", "output", "complete", "wanted", "time", "wanted", "alone", "missed"], cells))
    document.add("\n".join(details))
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
