#!/usr/bin/env python3
"""Compares kprof's source page with ncu's, kernel by kernel: `--page source --csv` of both, with instructions as rows.
What is counted of an instruction must be equal. Its shares of the samples may differ by three standard errors of their
numbers, or by one point where that is more, as samples of one warp are not independent of each other. Prints
Markdown, also to a file; exits 1 when something differs, 77 where there is no GPU or no ncu.

    source_ncu.py [--output FILE] [KERNEL...]
"""
import argparse
import collections
import csv
import io
import math
import sys
import tempfile

import harness

# The first launch of a kernel, by a pattern of its name, of a program.
Case = collections.namedtuple("Case", "pattern words")
CASES = {
    "vectorAdd": Case("^vectorAdd", ["{programs}/vectorAdd", "1"]),
    "transposeConflicts": Case("^transposeConflicts", ["{programs}/transpose", "1"]),
    "reduceSum": Case("^reduceSum", ["{programs}/reduction", "1"]),
    "softmax": Case("^softmax", [sys.executable, "{here}/programs/softmax_and_products.py", "1"]),
    "gemm": Case("gemm|nvjet|cutlass", [sys.executable, "{here}/programs/softmax_and_products.py", "1"]),
}
SAMPLES, TEXT = "# Samples", "Source"
ERRORS, POINTS = 3, 1.0


def read_page(text):
    """The rows of the first kernel of a source page in ncu's CSV, by address from 0 on."""
    rows = list(csv.reader(io.StringIO(text)))
    start = next((i for i, row in enumerate(rows) if row and row[0] == "Address"), None)
    if start is None:
        return {}
    header, page = rows[start], {}
    for row in rows[start + 1:]:
        if not row or not row[0].startswith("0x"):
            break
        page[int(row[0], 16)] = dict(zip(header, row))
    first = min(page, default=0)
    return {address - first: row for address, row in page.items()}


def is_sampled(column):
    return column.startswith("stall_") or "Sampl" in column


def count_faults(ours, theirs):
    """What is counted otherwise: columns that both have, of each instruction. Texts are those of one disassembler."""
    if set(ours) != set(theirs):
        return [f"kprof has {len(ours)} instructions, ncu {len(theirs)}"]
    faults = []
    for address in sorted(ours):
        for column, value in theirs[address].items():
            own = ours[address].get(column)
            if column in ("Address", TEXT) or is_sampled(column) or own is None or own == value:
                continue
            faults.append(f"{address:#x} {column}: kprof has {own}, ncu {value}")
    return faults


def samples_of(page):
    return {address: float(row[SAMPLES].replace(",", "") or 0) for address, row in page.items()}


def share_faults(ours, theirs):
    """(faults, largest difference in points)."""
    own, other = samples_of(ours), samples_of(theirs)
    own_sum, other_sum = sum(own.values()), sum(other.values())
    if not own_sum or not other_sum:
        return ["one of them has no samples"], 0.0
    faults, largest = [], 0.0
    for address in sorted(set(own) | set(other)):
        shares = [100 * own.get(address, 0) / own_sum, 100 * other.get(address, 0) / other_sum]
        both = (own.get(address, 0) + other.get(address, 0)) / (own_sum + other_sum)
        error = 100 * math.sqrt(both * (1 - both) * (1 / own_sum + 1 / other_sum))
        difference = abs(shares[0] - shares[1])
        largest = max(largest, difference)
        if difference > max(ERRORS * error, POINTS):
            faults.append(f"{address:#x}: {shares[0]:.2f} % of kprof's samples, {shares[1]:.2f} % of ncu's, "
                          f"standard error {error:.2f}")
    return faults, largest


def run_kprof(case, words, folder):
    report = f"{folder}/kprof.kprof"
    options = ["--set", "source", "-k", f"regex:{case.pattern}", "-c", "1", "-f", "-o", report]
    harness.run([harness.kprof(), *options, *words], limit=300)
    return harness.run([harness.kprof(), "report", report, "--page", "source", "--csv", "--csv-layout", "ncu"]).stdout


def run_ncu(case, words):
    options = ["--section", "SourceCounters", "-k", f"regex:{case.pattern}", "-c", "1", "--page", "source"]
    return harness.run([harness.ncu(), *options, "--print-source", "sass", "--csv", *words], limit=300).stdout


def compare(name, case, folder):
    """A row of the table, and what is wrong."""
    places = {"programs": harness.programs(), "here": harness.ROOT / "tests/gpu"}
    words = [word.format(**places) for word in case.words]
    ours, theirs = read_page(run_kprof(case, words, folder)), read_page(run_ncu(case, words))
    if not ours or not theirs:
        return (name, len(ours), len(theirs), "", "", ""), [f"{name}: kprof has {len(ours)} instructions, ncu "
                                                             f"{len(theirs)}"]
    counts = count_faults(ours, theirs)
    shares, largest = share_faults(ours, theirs)
    row = (name, len(ours), int(sum(samples_of(ours).values())), int(sum(samples_of(theirs).values())),
           "equal" if not counts else f"{len(counts)} differ", f"{largest:.2f}")
    return row, [f"{name}, {fault}" for fault in [*counts[:10], *shares]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help=", ".join(CASES) + " (all)")
    parser.add_argument("--output", help="Markdown file (source-ncu.md among the results)")
    options = parser.parse_args()
    for name in set(options.kernels) - set(CASES):
        parser.error(f"{name}: not one of {', '.join(CASES)}")
    if not harness.have_gpu() or not harness.ncu():
        print("source_ncu.py: no GPU, or no ncu: skipped", file=sys.stderr)
        return harness.SKIPPED
    rows, faults = [], []
    with tempfile.TemporaryDirectory(prefix="kprof-source-") as folder:
        for name in options.kernels or CASES:
            row, found = compare(name, CASES[name], folder)
            rows.append(row)
            faults += found
    document = harness.Document(options.output or harness.results_folder() / "source-ncu.md")
    document.add("# The source page beside ncu's\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/source_ncu.py " + " ".join(sys.argv[1:]))))
    document.add(harness.table(["kernel", "instructions", "kprof's samples", "ncu's", "counts", "largest difference of "
                                "shares, points"], rows))
    document.add("".join(f"- FAULT: {fault}\n" for fault in faults) or "All checks hold.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
