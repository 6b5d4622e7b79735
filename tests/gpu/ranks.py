#!/usr/bin/env python3
"""Two processes or more, one for each GPU, that wait for one another in each step (frameworks/torch_ddp.py), alone and
under kprof: with all launches, with `-c`, with a file for each rank, which are merged, counted by `--census`, and
traced. The processes must get the same sums and weights; the table tells how many kernels have a launch with every
value, of those that ran eight times or more in one process. Exits 1 when a program does something else, 77 for fewer
than two GPUs.

    ranks.py [--steps N] [--output FILE] [RUN...]
"""
import argparse
import collections
import pathlib
import sqlite3
import sys
import tempfile

import harness
from waits import is_complete

PROGRAM = pathlib.Path(__file__).parent / "frameworks/torch_ddp.py"
ENOUGH = 8 # launches of a kernel in one process; the default set has as many passes
LIMIT = 150


def count(launches):
    """(kernels that ran often enough, those of them that have a complete launch, names of the others) of what kprof
    tells."""
    by_process, told, complete = collections.Counter(), collections.Counter(), collections.Counter()
    for launch in launches:
        by_process[launch.kernel, launch.process] += 1
        told[launch.kernel] += 1
        complete[launch.kernel] += is_complete(launch)
    often = list(dict.fromkeys(kernel for (kernel, _), number in by_process.items() if number >= ENOUGH))
    others = [f"{kernel[:40]} ({told[kernel]})" for kernel in often if not complete[kernel]]
    return len(often), len(often) - len(others), ", ".join(others)


def judge(alone, under):
    """What is not as it should be."""
    if alone.status != 0:
        return f"alone it ends with {alone.status}: {harness.last_lines(alone.stderr)}"
    if under.status != 0:
        return f"ends with {under.status}: {harness.last_lines(under.stderr)}"
    return "" if under.stdout == alone.stdout else f"prints {harness.last_lines(under.stdout, 3)!r}"


class Runs:
    """The ways to run the program; each gives the Result, and (launches told of, complete, and what `count` tells)."""

    def __init__(self, folder, ranks, steps):
        self.folder = pathlib.Path(folder)
        self.torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
        self.program = [PROGRAM, "--steps", steps]
        self.ranks = ranks

    def alone(self):
        return harness.run([*self.torchrun, *self.program], limit=LIMIT)

    def around(self, name, *options):
        """kprof starts torchrun."""
        base = self.folder / name
        result = harness.run([harness.kprof(), *options, "-f", "-o", base, *self.torchrun, *self.program], limit=LIMIT)
        return result, self.figures(base)

    @staticmethod
    def figures(base):
        try:
            launches = harness.read_report(base)[0]
        except sqlite3.Error:
            return ("n/a",) * 5
        return (len(launches), sum(map(is_complete, launches)), *count(launches))

    def all(self):
        return self.around("all")

    def some(self):
        return self.around("some", "-c", "200")

    def trace(self):
        result, _ = self.around("trace", "trace")
        return result, self.recorded(self.folder / "trace", "SELECT count(*) FROM trace_kernel")

    def census(self):
        result, _ = self.around("census", "--census")
        return result, self.recorded(self.folder / "census", "SELECT sum(launches) FROM census")

    @staticmethod
    def recorded(base, query):
        try:
            with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
                return (database.execute(query).fetchone()[0], *["n/a"] * 4)
        except sqlite3.Error:
            return ("n/a",) * 5

    def each(self):
        """torchrun starts kprof, once for each rank."""
        words = [harness.kprof(), "-c", "200", "-f", "-o", self.folder / "rank_%q{RANK}", sys.executable]
        result = harness.run([*self.torchrun, "--no-python", *words, *self.program], limit=LIMIT)
        files = [self.folder / f"rank_{rank}.kprof" for rank in range(self.ranks)]
        merged = harness.run([harness.kprof(), "merge", "-f", "-o", self.folder / "ranks", *files])
        if result.status == 0 and merged.status != 0:
            result.status, result.stderr = merged.status, merged.stderr
        return result, self.figures(self.folder / "ranks")


RUNS = {"all": "kprof torchrun", "some": "kprof -c 200 torchrun", "each": "torchrun kprof -c 200, merged",
        "census": "kprof --census torchrun", "trace": "kprof trace torchrun"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(RUNS) + " (all of these)")
    parser.add_argument("--steps", type=int, default=60, help="of training (60)")
    parser.add_argument("--output", help="Markdown file (ranks.md among the results)")
    options = parser.parse_args()
    ranks = len(harness.gpus())
    if ranks < 2:
        print("ranks.py: fewer than two GPUs: skipped", file=sys.stderr)
        return harness.SKIPPED
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix="kprof-ranks-") as folder:
        runs = Runs(folder, ranks, options.steps)
        alone = runs.alone()
        if alone.status != 0 and "skipped: " in alone.stderr:
            print("ranks.py: " + harness.last_lines(alone.stderr, 1), file=sys.stderr)
            return harness.SKIPPED
        for name in options.runs or RUNS:
            result, figures = getattr(runs, name)()
            wrong = judge(alone, result)
            print(f"{name}: {wrong or 'same'}; {figures}; {result.seconds:.1f} s", flush=True)
            rows.append((RUNS[name], wrong or "same", *figures, result.seconds, alone.seconds))
            failures += [f"{RUNS[name]}: {wrong}"] if wrong else []
    document = harness.Document(pathlib.Path(options.output or harness.results_folder() / "ranks.md"))
    document.add("# A process for each GPU\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/ranks.py " + " ".join(sys.argv[1:]))))
    document.add(alone.stdout)
    document.add(harness.table(["run", "output", "launches", "complete", f"kernels with {ENOUGH} launches told of",
                                "complete of them", "the others", "seconds", "alone"], rows))
    document.add(f"## Result\n\n{len(failures)} failures.\n")
    for failure in failures:
        document.add(f"- {failure}")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
