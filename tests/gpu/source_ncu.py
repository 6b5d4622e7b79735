#!/usr/bin/env python3
"""Compares kprof's source page with ncu's, kernel by kernel: `--page source --csv` of both, with instructions as rows.
What is counted of an instruction must be equal; of a column that differs the first rows are printed, and both pages of
that kernel stay among the results, as NAME-kprof.csv.gz and NAME-ncu.csv.gz.

Both take samples every 512 cycles of five launches (of the product three), and neither changes clocks. Samples are
not independent: SMs begin a launch together, so what one samples at a time the others sample, too. The square root of
their number is no error of their share then. So a share is that of each of the launches, and its error comes from how
these vary: the standard error of their mean, but no less than that of independent samples. Means of the two may
differ by five such errors of both (of five values that is three of many), or by one point where that is more.

What a kernel waits for in memory depends on what caches hold. `--caches` says how both get them:
    all    both tools empty them before each repetition (--cache-control all)
    none   neither does; ncu repeats a launch with what its own repetition before left, kprof with what the launch
           before it in the program left
    swept  neither does; the program itself fills L2 before each launch, which kprof repeats with the launch. ncu runs
           the whole program again for each pass (--replay-mode application), as it would leave that out. So it
           takes samples alone, in one pass, and counts are not compared. Then both sample a kernel with the same
           caches, however each empties them. Of the reduction and the softmax.

Where kprof has no texts of instructions, the reason is told. Kernels that take little time come first, and after
--seconds nothing runs any more. Prints Markdown, also to a file; exits 1 when something differs or is left out, 77
where there is no GPU or no ncu.

    source_ncu.py [--caches all|none|swept] [--seconds N] [--output FILE] [KERNEL...]
"""
import argparse
import collections
import csv
import gzip
import io
import math
import os
import sqlite3
import statistics
import sys
import tempfile
import time

import harness

# The first launches of a kernel, by a pattern of its name, of a program.
Case = collections.namedtuple("Case", "pattern words launches", defaults=[5])
CASES = {
    "vectorAdd": Case("^vectorAdd", ["{programs}/vectorAdd", "{launches}"]),
    "transposeConflicts": Case("^transposeConflicts", ["{programs}/transpose", "{launches}"]),
    "reduceSum": Case("^reduceSum", ["{programs}/reduction", "{launches}"]),
    "softmax": Case("^softmax", [sys.executable, "{here}/programs/softmax_and_products.py", "{launches}", "softmax"]),
    "gemm": Case("gemm|nvjet|cutlass",
                 [sys.executable, "{here}/programs/softmax_and_products.py", "{launches}", "products"], 3),
}
SWEPT = ["reduceSum", "softmax"]  # whose programs sweep
SAMPLES, TEXT = "Warp Stall Sampling (All Samples)", "Source"
ERRORS, POINTS = 5, 1.0
SAMPLING = ["--warp-sampling-interval", "4", "--warp-sampling-buffer-size", str(256 << 20)]
HEADER = ["kernel", "instructions", "kprof's launches", "ncu's", "kprof's samples", "ncu's", "counts",
          "largest difference of shares, points", "s until then"]
SECTION = ["--section", "SourceCounters"]
SAMPLES_ALONE = ["--metrics", "group:smsp__pcsamp_warp_stall_reasons,group:smsp__pcsamp_warp_stall_reasons_not_issued"]
EXAMPLES = 2  # instructions of a column that differs, with all their columns


def read_pages(text):
    """The rows of each launch of the first kernel of a source page in ncu's CSV, by address from 0 on."""
    kernel, first, header, pages = None, None, None, []
    for row in csv.reader(io.StringIO(text)):
        if row[:1] == ["Kernel Name"]:
            kernel, header = row[1], None
            first = kernel if first is None else first
        elif row[:1] == ["Address"] and kernel == first:
            header = row
            pages.append({})
        elif header and row and row[0].startswith("0x"):
            pages[-1][int(row[0], 16)] = dict(zip(header, row))
    return [{address - min(page): row for address, row in page.items()} for page in pages if page]


def is_sampled(column):
    return column.startswith("stall_") or "Sampl" in column


def count_faults(ours, theirs):
    """What is counted otherwise of each instruction. Texts are those of one disassembler."""
    if set(ours) != set(theirs):
        return [f"kprof has {len(ours)} instructions, ncu {len(theirs)}"]
    first = min(ours, default=None)
    faults = [f"kprof has no column {column}" for column in theirs.get(first, ()) if column not in ours[first]]
    for address in sorted(ours):
        for column, value in theirs[address].items():
            own = ours[address].get(column)
            if column in ("Address", TEXT) or is_sampled(column) or own is None or own == value:
                continue
            faults.append(f"{address:#x} {column}: kprof has {own}, ncu {value}")
    return faults


def number(text):
    return float(text.replace(",", "") or 0)


def samples_of(page):
    """Where the page has no sums of the reasons, they are added up."""
    return {address: number(row[SAMPLES]) if SAMPLES in row else
            sum(number(row[column]) for column in row if column.startswith("stall_") and "Not Issued" not in column)
            for address, row in page.items()}


def total(pages):
    return sum(sum(samples_of(page).values()) for page in pages)


def shares_of(pages):
    """{address: (mean share in %, its variance)} of launches that have samples."""
    launches = [samples_of(page) for page in pages]
    launches = [launch for launch in launches if sum(launch.values())]
    found = {}
    for address in sorted({address for launch in launches for address in launch}):
        shares = [100 * launch.get(address, 0) / sum(launch.values()) for launch in launches]
        mean = statistics.mean(shares)
        independent = mean * (100 - mean) / sum(sum(launch.values()) for launch in launches)
        varied = statistics.variance(shares) / len(shares) if len(shares) > 1 else 0.0
        found[address] = mean, max(independent, varied)
    return found


def share_faults(ours, theirs):
    """(faults, largest difference in points) of two lists of launches."""
    own, other = shares_of(ours), shares_of(theirs)
    if not own or not other:
        return ["one of them has no samples"], 0.0
    faults, largest = [], 0.0
    for address in sorted(set(own) | set(other)):
        (mean, variance), (other_mean, other_variance) = own.get(address, (0, 0)), other.get(address, (0, 0))
        error, difference = math.sqrt(variance + other_variance), abs(mean - other_mean)
        largest = max(largest, difference)
        if difference > max(ERRORS * error, POINTS):
            faults.append(f"{address:#x}: {mean:.2f} % of kprof's samples, {other_mean:.2f} % of ncu's, "
                          f"standard error {error:.2f}")
    return faults, largest


def differing_rows(ours, theirs):
    """The first instructions of each column that differs, whole, so that the reason can be seen."""
    shown = collections.Counter()
    lines = []
    for address in sorted(set(ours) & set(theirs)):
        columns = [fault.partition(": ")[0].partition(" ")[2] for fault in
                   count_faults({address: ours[address]}, {address: theirs[address]})]
        if not any(shown[column] < EXAMPLES for column in columns):
            continue
        shown.update(columns)
        for who, page in (("kprof", ours), ("ncu", theirs)):
            values = ", ".join(f"{column} {value}" for column, value in page[address].items()
                               if value not in ("", "0") or column in columns)
            lines.append(f"    {address:#x} {who}: {values}")
    return lines


# Twice the launches, as the program of gemm has two kernels of that pattern, one after the other.
def chosen(case, caches):
    control = "all" if caches == "all" else "none"
    return [*SAMPLING, "--cache-control", control, "-k", f"regex:{case.pattern}", "-c", 2 * case.launches]


def environment(caches):
    return {**os.environ, "KPROF_TEST_SWEEP": "1"} if caches == "swept" else None


class Clock:
    """How long commands may run until all have to have ended."""

    def __init__(self, seconds):
        self.start, self.seconds = time.monotonic(), seconds

    def passed(self):
        return time.monotonic() - self.start

    def left(self):
        return self.seconds - self.passed()

    def run(self, argv, **options):
        if self.left() <= 0:
            raise harness.Failure(f"{self.seconds} s had passed before {argv[0]}")
        result = harness.run(argv, limit=self.left(), **options)
        if result.status is None:
            raise harness.Failure(f"{self.seconds} s had passed before {argv[0]} ended")
        return result


def run_kprof(options, words, caches, report, clock):
    options = ["--set", "source", "--source-per-launch", *options, "-f", "-o", report]
    clock.run([harness.kprof(), *options, *words], env=environment(caches))
    return clock.run([harness.kprof(), "report", report, "--page", "source", "--csv", "--csv-layout", "ncu"]).stdout


def run_ncu(options, words, caches, clock):
    swept = caches == "swept"
    options = [*(SAMPLES_ALONE if swept else SECTION), "--clock-control", "none", *options, "--page", "source",
               "--print-source", "sass", "--csv", *(["--replay-mode", "application"] if swept else [])]
    return clock.run([harness.ncu(), *options, *words], env=environment(caches)).stdout


def missing_texts(report):
    """Why code of a report has no texts of its instructions."""
    with sqlite3.connect(f"file:{report}?mode=ro", uri=True) as database:
        return [reason for reason, in database.execute("SELECT DISTINCT text_state FROM code WHERE text_state <> ''")]


def keep(name, texts):
    for who, text in texts.items():
        with gzip.open(harness.results_folder() / f"{name}-{who}.csv.gz", "wt", encoding="utf-8") as file:
            file.write(text)


def compare(name, caches, folder, clock):
    """(a row of the table, what is wrong, rows that differ)."""
    case = CASES[name]
    places = {"programs": harness.programs(), "here": harness.ROOT / "tests/gpu", "launches": case.launches}
    options, words = chosen(case, caches), [word.format(**places) for word in case.words]
    report = f"{folder}/kprof.kprof"
    texts = {"kprof": run_kprof(options, words, caches, report, clock),
             "ncu": run_ncu(options, words, caches, clock)}
    ours, theirs = (read_pages(text)[:case.launches] for text in texts.values())
    if not ours or not theirs:
        keep(name, texts)
        told = f"{name}: kprof has {len(ours)} launches with instructions, ncu {len(theirs)}"
        return (name, "", len(ours), len(theirs), "", "", "", ""), [told], []
    counts = [] if caches == "swept" else count_faults(ours[0], theirs[0])
    shares, largest = share_faults(ours, theirs)
    if counts or shares:
        keep(name, texts)
    row = (name, len(ours[0]), len(ours), len(theirs), int(total(ours)), int(total(theirs)),
           "not taken" if caches == "swept" else f"{len(counts)} differ" if counts else "equal", f"{largest:.2f}")
    faults = [*missing_texts(report), *counts[:10], *shares]
    return row, [f"{name}, {fault}" for fault in faults], differing_rows(ours[0], theirs[0]) if counts else []


def compare_all(options, document):
    """Rows of the table as they come; (what is wrong, rows that differ)."""
    faults, differing, clock = [], [], Clock(options.seconds)
    document.add(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    with tempfile.TemporaryDirectory(prefix="kprof-source-") as folder:
        for name in options.kernels or (SWEPT if options.caches == "swept" else CASES):
            try:
                row, found, examples = compare(name, options.caches, folder, clock)
            except harness.Failure as failure:
                faults.append(f"{name}: {failure}")
                continue
            document.add(f"| {' | '.join(map(str, row))} | {clock.passed():.0f} |")
            faults += found
            differing += [f"    {name}", *examples] if examples else []
    document.add("")
    return faults, differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=", ".join(CASES) + " (all)")
    parser.add_argument("--caches", choices=("all", "none", "swept"), default="all", help="of both tools (all)")
    parser.add_argument("--seconds", type=int, default=55, help="run nothing any longer (55)")
    parser.add_argument("--output", help="Markdown file (source-ncu.md among the results)")
    options = parser.parse_args()
    for name in set(options.kernels) - set(CASES):
        parser.error(f"{name}: not one of {', '.join(CASES)}")
    harness.need_gpu(and_ncu=True)
    document = harness.Document(options.output or harness.results_folder() / "source-ncu.md")
    document.add("# The source page beside ncu's\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/source_ncu.py " + " ".join(sys.argv[1:]))))
    faults, differing = compare_all(options, document)
    document.add("".join(f"- FAULT: {fault}\n" for fault in faults) or "All checks hold.")
    document.add("\n".join(differing))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
