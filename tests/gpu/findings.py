#!/usr/bin/env python3
"""Records the kernels of tests/gpu/findings, each of which shows one performance problem or none, with the full set but
for instructions as findings.kprof. Checks that the results of the kernels are right with and without kprof, that
every kernel that findings/README.md names is measured with every value that the others have, and that the report
stays small. Prints the summary page and a table of what tells the kernels apart. Exits 1 when a check fails, 77
where there is no GPU.

Records small reports beside it. host-memory.kprof has a launch of each kernel of programs/host_memory.cu, with the
sections that tell what limits it; agent.kprof has some kernels of tests/gpu/findings with --set agent;
compression.kprof has a launch of each kernel of programs/compression.cu. tests/report/findings keeps them with -h200
in their names, and findings.kprof as recorded-h200.kprof. At last places.kprof has counters and samples of
instructions of some kernels, and findings must name the lines there that findings/README.md tells; the texts of
sources and of PTX are taken out of it.

    findings.py [--output FILE]
"""
import argparse
import collections
import contextlib
import re
import sqlite3
import sys

import harness
import places

README = harness.ROOT / "tests/gpu/findings/README.md"
LIMIT_BYTES = 1_500_000
SMALL_BYTES = 300_000
HOST_MEMORY_SECTIONS = ["SpeedOfLight", "SchedulerStats", "WarpStateStats", "MemoryWorkloadAnalysis_Tables",
                        "Occupancy"]
# One kernel or two of each kind of limit, for the brief page of --set agent.
AGENT_KERNELS = ["atomic_one_address", "barrier_waits", "compute_bound_fma", "dram_bound_sum", "empty_kernel",
                 "grid_smaller_than_gpu", "latency_bound_chase", "occupancy_shared_memory", "pipe_tensor",
                 "sm_imbalance"]
STALLS = "smsp__average_warps_issue_stalled_"
COLUMNS = [("time, us", "gpu__time_duration.sum", 1e-3),
           ("SM, %", "sm__throughput.avg.pct_of_peak_sustained_elapsed", 1),
           ("memory, %", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 1),
           ("DRAM, %", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 1),
           ("issue, %", "smsp__issue_active.avg.pct_of_peak_sustained_active", 1),
           ("occupancy, %", "sm__warps_active.avg.pct_of_peak_sustained_active", 1)]

Finding = collections.namedtuple("Finding", "name shown_by not_shown_by")


def read_findings(text):
    """The rows of the tables of README.md that name kernels in both columns."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3:
            kernels = [re.findall(r"`(\w+)`", cell) for cell in cells[1:]]
            if all(kernels):
                found.append(Finding(cells[0], *kernels))
    return found


def named_kernels(findings):
    return {kernel for finding in findings for kernel in finding.shown_by + finding.not_shown_by}


def top_stall(metrics):
    """The most frequent reason of a warp to wait, and its cycles for each issued instruction."""
    cycles = {name[len(STALLS):].partition("_per_issue_active")[0]: value for name, value in metrics.items()
              if name.startswith(STALLS) and name.endswith("_per_issue_active.ratio") and value is not None}
    if not cycles:
        return ""
    reason = max(cycles, key=cycles.get)
    return f"{reason} {cycles[reason]:.3g}"


def describe(launch):
    def value(metric, factor):
        known = launch.metrics.get(metric)
        return None if known is None else round(known * factor, 1)

    return [launch.kernel, *(value(metric, factor) for _, metric, factor in COLUMNS), top_stall(launch.metrics)]


def faults_of(launches, findings):
    """What the report lacks: kernels that README.md names, launches that were not measured, and values."""
    faults = [f"{kernel} was not launched" for kernel in
              sorted(named_kernels(findings) - {launch.kernel for launch in launches})]
    faults += [f"README.md does not name {launch.kernel}" for launch in launches
               if launch.kernel not in named_kernels(findings)]
    usual = max((len(launch.metrics) for launch in launches), default=0)
    for launch in launches:
        if not launch.measured or launch.reason:
            faults.append(f"{launch.kernel} is not complete: {launch.reason or 'not measured'}")
        elif len(launch.metrics) < usual:
            faults.append(f"{launch.kernel} has {len(launch.metrics)} metrics, others have {usual}")
    return faults


def record(document):
    """Run the program plain and under kprof; (report, faults)."""
    report, folder = harness.results_folder() / "findings.kprof", harness.programs()
    plain = harness.run(["./findings"], cwd=folder)
    under = harness.run([harness.kprof(), "--set", "full", "--section-exclude", "SourceCounters", "-f", "-o", report,
                         "--log-file", harness.results_folder() / "findings.log", "./findings"], limit=400, cwd=folder)
    faults = [f"{how} it ended with {result.status}: {harness.last_lines(result.stderr)}"
              for how, result in (("plain", plain), ("under kprof", under)) if result.status != 0]
    faults += [line for line in under.stdout.splitlines() if line.endswith(": WRONG")]
    if under.stdout != plain.stdout:
        faults.append("the program printed something else under kprof")
    document.add(f"plain {plain.seconds:.1f} s, under kprof {under.seconds:.1f} s\n")
    return report, faults


def record_host_memory():
    """A launch of the kernel that reads host memory and one of the other, the last of each; (report, faults)."""
    whole, report = (harness.results_folder() / f"host-memory{end}.kprof" for end in ("-whole", ""))
    sections = [word for section in HOST_MEMORY_SECTIONS for word in ("--section", section)]
    faults = run_kprof([*sections, "-f", "-o", whole, "./host_memory", "4"])
    if faults:
        return report, faults
    with contextlib.closing(sqlite3.connect(whole)) as database:
        last = database.execute("SELECT max(launch) FROM launches WHERE measured GROUP BY kernel ORDER BY 1").fetchall()
    chosen = ",".join(str(launch) for launch, in last)
    faults = run_kprof(["report", whole, "--launch", chosen, "-f", "-o", report])
    return report, faults or kernels_missing(report, ["device_memory_sum", "host_memory_sum"])


def record_agent():
    report = harness.results_folder() / "agent.kprof"
    faults = run_kprof(["--set", "agent", "-k", f"regex:^({'|'.join(AGENT_KERNELS)})$", "-f", "-o", report,
                        "./findings"])
    return report, faults or kernels_missing(report, AGENT_KERNELS)


def record_compression():
    report = harness.results_folder() / "compression.kprof"
    faults = run_kprof(["--section", "SpeedOfLight", "--section", "MemoryWorkloadAnalysis_L2", "-f", "-o", report,
                        "./compression"])
    return report, faults or kernels_missing(report, ["write_alike", "write_noise"])


def record_places(document):
    """Faults of the lines that findings name."""
    expected = places.read_places(README.read_text(encoding="utf-8"))
    kernels = sorted({kernel for row in expected for kernel in (row.kernel, row.twin)})
    report = harness.results_folder() / "places.kprof"
    faults = run_kprof(["--set", "full", "-k", f"regex:^({'|'.join(kernels)})$", "-f",
                        "-o", report, "./findings"])
    if faults:
        return faults
    drop_sources(report)
    shrink(report)
    faults = kernels_missing(report, kernels) + places.faults_of(places.read_launches(report), expected,
                                                                 places.read_functions())
    document.add(f"Findings name the expected lines of {len(expected) - len(faults)} of {len(expected)} kernels.\n")
    return faults


def run_kprof(words):
    done = harness.run([harness.kprof(), *words], limit=400, cwd=harness.programs())
    return [] if done.status == 0 else [f"kprof {words[0]} {words[1]} ended with {done.status}: "
                                        f"{harness.last_lines(done.stderr)}"]


def kernels_missing(report, kernels):
    measured = {launch.kernel for launch in harness.read_report(report)[0] if launch.measured}
    return [f"{report.name} has no measured launch of {kernel}" for kernel in kernels if kernel not in measured]


def drop_sources(report):
    with contextlib.closing(sqlite3.connect(report)) as database, database:
        database.execute("UPDATE code_file SET content = NULL")
        database.execute("DELETE FROM code_ptx")
        database.execute("DELETE FROM code_file WHERE id NOT IN (SELECT file_id FROM code_line)")


def shrink(report):
    """Give free pages back, and tell the size in bytes. A report has some 50 tables and indexes, most of them empty in
    these, and each takes a page at least: of 1 KiB they take 150 KB less than of SQLite's usual 4."""
    with contextlib.closing(sqlite3.connect(report)) as database:
        database.execute("PRAGMA page_size = 1024")
        database.execute("VACUUM")
    return report.stat().st_size


def faults_of_small(document, report):
    size = shrink(report)
    document.add(f"{report.name}: {size} bytes\n")
    document.add(harness.run([harness.kprof(), "report", report, "--brief"]).stdout)
    return [f"{report.name} has {size} bytes, more than {SMALL_BYTES}"] if size > SMALL_BYTES else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=None)
    options = parser.parse_args()
    harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "findings.md")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/findings.py")))
    report, faults = record(document)
    if report.exists():
        launches, _ = harness.read_report(report)
        size = shrink(report)
        faults += faults_of(launches, read_findings(README.read_text(encoding="utf-8")))
        if size > LIMIT_BYTES:
            faults.append(f"the report has {size} bytes, more than {LIMIT_BYTES}")
        header = ["kernel", *(label for label, _, _ in COLUMNS), "first stall reason, cycles per issue"]
        document.add(harness.table(header, [describe(launch) for launch in launches]))
        document.add(f"{report.name}: {len(launches)} launches, {size} bytes\n")
        document.add(harness.run([harness.kprof(), "report", report, "--page", "summary"]).stdout)
    for small, found in (record_host_memory(), record_agent(), record_compression()):
        faults += found or faults_of_small(document, small)
    faults += record_places(document)
    document.add("".join(f"- FAULT: {fault}\n" for fault in faults) or "All checks hold.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
