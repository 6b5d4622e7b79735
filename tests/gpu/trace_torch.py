#!/usr/bin/env python3
"""Programs of PyTorch (programs/trace_torch.py) alone, under `kprof trace` and under torch.profiler, by turns. Checks
that the results are the same, that both tools have the same launches of each kernel and times within 1 %, and that
tracing takes at most 5 % of a step whose kernels take 20 us, and 30 % of one of 3 us, by the median of turns that are
compared with those beside them. Also lists the calls of a run, as each costs time. Exits 1 when a check fails, 77 where
there is no GPU, no PyTorch or no Triton.

    trace_torch.py [--runs N] [--turns N] [--programs NAME,NAME] [--output FILE]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import harness
import turns

ALONE, KPROF, PROFILER = "alone", "kprof trace", "torch.profiler"
LIMITS = {"train20": 0.05, "train3": 0.3, "decode": None, "softmax": None}
NEAR = 0.01
MOST_CALLS = 12
MAIN_SHARE = 0.02 # of the time of kernels: shorter ones are compared by their number and in the sum of all


def key(name):
    """A kernel's name as both tools write it: they use different demanglers."""
    return "".join(name.split())


def add_up(rows):
    """{kernel: (launches, ns)} of (name, launches, ns)."""
    found = {}
    for name, launches, ns in rows:
        before = found.get(key(name), (0, 0))
        found[key(name)] = (before[0] + launches, before[1] + ns)
    return found


def of_kprof(stats):
    """Of a single table, which is an array in JSON."""
    return add_up((row["Name"], row["Instances"], row["Total Time (ns)"]) for row in stats)


def of_profiler(chrome):
    """Of torch.profiler's trace, in which durations are in µs."""
    return add_up((event["name"], 1, event["dur"] * 1e3) for event in chrome["traceEvents"]
                  if event.get("cat") == "kernel")


def total(run, kernel=None):
    """(launches, ns) of a kernel in a run, or of all."""
    if kernel is not None:
        return run.get(kernel, (0, 0))
    return tuple(sum(numbers) for numbers in zip(*run.values())) or (0, 0)


def compare(ours, theirs):
    """(kernel or None for all, launches of ours, of theirs, ns of ours, of theirs, difference, spread of theirs) of the
    runs of both tools. Times are medians of the runs."""
    names = sorted({name for run in (*ours, *theirs) for name in run})
    for name in (None, *names):
        our_runs, their_runs = ([total(run, name) for run in runs] for runs in (ours, theirs))
        our_ns, their_ns = (statistics.median(ns for _, ns in runs) for runs in (our_runs, their_runs))
        times = [ns for _, ns in their_runs]
        difference = our_ns / their_ns - 1 if their_ns else float("inf")
        spread = (max(times) - min(times)) / their_ns if their_ns else 0
        yield (name, {launches for launches, _ in our_runs}, {launches for launches, _ in their_runs}, our_ns, their_ns,
               difference, spread)


def differences(rows):
    """What is wrong of the rows of compare."""
    rows = list(rows)
    all_ns = rows[0][4]
    for name, our_launches, their_launches, _, their_ns, difference, spread in rows:
        if our_launches != their_launches or len(our_launches) != 1:
            yield f"{name or 'all'}: launches {sorted(our_launches)}, of torch.profiler {sorted(their_launches)}"
        elif (name is None or their_ns >= MAIN_SHARE * all_ns) and abs(difference) > max(NEAR, spread):
            yield f"{name or 'all'}: time differs by {difference:+.2%}"


def joined(results, name):
    return [us for run in results[name] for us in run["us"]]


def cost(results, name):
    """How much longer a step takes than alone."""
    return turns.cost(joined(results, name), joined(results, ALONE))


def judge(results, limit):
    """What is wrong of {ALONE, KPROF, PROFILER: the programs' results}."""
    for name, runs in results.items():
        if {run["checksum"] for run in runs} != {results[ALONE][0]["checksum"]}:
            yield f"{name}: other results"
    if limit is not None and cost(results, KPROF) > limit:
        yield f"costs {cost(results, KPROF):.1%}"


def words_of(program, folder):
    """{name: (words, environment)} of the program alone and under each tool."""
    words = [sys.executable, pathlib.Path(__file__).parent / "programs/trace_torch.py", program]
    kprof = [harness.kprof(), "trace", "--verbose", "-f", "-o", f"{folder}/run", *words]
    return {ALONE: (words, None), KPROF: (kprof, None), PROFILER: ([*words, f"{folder}/chrome.json"], None)}


def read_kprof(folder):
    """(kernels, calls of CUDA) of kprof's trace."""
    stats = harness.run([harness.kprof(), "stats", harness.report_path(f"{folder}/run"), "--json", "--report",
                         "cuda_gpu_kern_sum,cuda_api_sum"], limit=300)
    tables = json.loads(stats.stdout)
    return of_kprof(tables["cuda_gpu_kern_sum"]), tables["cuda_api_sum"]


def take(program, count, folder):
    """({name: result}, kernels of kprof and of torch.profiler, calls) of one run of the program alone and under each
    tool. kprof's messages about calls that are not recorded go to stderr."""
    with turns.Turns(words_of(program, folder), folder) as programs:
        times = programs.ask_all("steps", count)
        results = {name: {"us": times[name], **json.loads(programs.end(name))} for name in times}
        said = pathlib.Path(programs.errors[KPROF]).read_text(encoding="utf-8", errors="replace")
    print(*(line for line in said.splitlines() if "calls of the driver that launch" in line), sep="\n", file=sys.stderr)
    chrome = json.loads(pathlib.Path(f"{folder}/chrome.json").read_text(encoding="utf-8"))
    kernels, calls = read_kprof(folder)
    return results, {KPROF: kernels, PROFILER: of_profiler(chrome)}, calls


def keep_tables(program, report):
    """The usual tables of a trace as people see them, beside the results."""
    shown = harness.run([harness.kprof(), "stats", report, "--width", "120"], limit=300)
    path = harness.results_folder() / f"trace-torch-{program}.txt"
    path.write_text(shown.stdout + shown.stderr, encoding="utf-8")


def check(program, options, folder):
    """({name: results}, rows of compare, calls, what is wrong)."""
    results, kernels, calls = {ALONE: [], KPROF: [], PROFILER: []}, {KPROF: [], PROFILER: []}, []
    for _ in range(options.runs):
        run, counted, calls = take(program, options.turns, folder)
        for name in results:
            results[name].append(run[name])
        for name in kernels:
            kernels[name].append(counted[name])
        print(f"{program}: {cost(results, KPROF):+.1%}", *shown_calls(calls), sep="\n", file=sys.stderr)
    keep_tables(program, harness.report_path(f"{folder}/run"))
    rows = list(compare(kernels[KPROF], kernels[PROFILER]))
    return results, rows, calls, [*judge(results, LIMITS[program]), *differences(rows)]


def shown(rows):
    """Rows for people of those that compare gives."""
    for name, ours, theirs, our_ns, their_ns, difference, spread in rows:
        if name is None or their_ns >= MAIN_SHARE * rows[0][4]:
            yield ((name or "all kernels")[:60], str(sorted(ours)), str(sorted(theirs)), our_ns / 1e3, their_ns / 1e3,
                   f"{difference:+.2%}", f"{spread:.2%}", our_ns / 1e3 / max(max(ours), 1))


def shown_calls(calls):
    """The calls of a run that are made most."""
    most = sorted(calls, key=lambda row: -row["Num Calls"])[:MOST_CALLS]
    return [(row["Name"], row["Num Calls"], row["Med (ns)"]) for row in most]


def costs_of(program, results):
    """The row of what tracing costs."""
    cells = [program, len(joined(results, ALONE))]
    cells += [statistics.median(joined(results, name)) for name in results]
    for name in (KPROF, PROFILER):
        low, high = turns.spread(joined(results, name), joined(results, ALONE))
        cells += [f"{cost(results, name):+.1%}", f"{low:+.1%} to {high:+.1%}"]
    return (*cells, f"{LIMITS[program]:.0%}" if LIMITS[program] else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2, help="runs of each (2)")
    parser.add_argument("--turns", type=int, default=40, help="turns of a run (40)")
    parser.add_argument("--programs", default=",".join(LIMITS), help="which (all)")
    parser.add_argument("--output", help="Markdown file (trace-torch.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "trace-torch.md")
    document.add("# Programs of PyTorch alone, under kprof trace and under torch.profiler\n")
    document.add(harness.table(["", ""], [*harness.facts("tests/gpu/trace_torch.py " + " ".join(sys.argv[1:])),
                                          ("nsys", shutil.which("nsys") or "none")]))
    costs, wrong = [], []
    for program in options.programs.split(","):
        with tempfile.TemporaryDirectory(prefix="kprof-trace-torch-") as folder:
            try:
                checked = check(program, options, folder)
            except turns.Skipped:
                print("trace_torch.py: no PyTorch or no Triton: skipped", file=sys.stderr)
                return harness.SKIPPED
            except (harness.Failure, KeyError, ValueError, OSError) as failure: # of what a tool wrote, too
                wrong.append(f"{program}: {failure!r}")
                continue
        results, rows, calls, faults = checked
        wrong += [f"{program}: {fault}" for fault in faults]
        costs.append(costs_of(program, results))
        document.add(f"## {program}\n\n" + harness.table(
            ["kernel", "launches", "torch.profiler's", "µs", "torch.profiler's", "difference", "spread of its runs",
             "µs each"], list(shown(rows))))
        document.add(harness.table(["call", "calls", "median (ns)"], shown_calls(calls)))
    document.add("## What tracing costs\n\n" + harness.table(
        ["program", "turns", "a step alone (µs)", "kprof trace", "torch.profiler", "kprof costs", "half of the turns",
         "torch.profiler costs", "half of the turns", "at most"], costs))
    document.add("\n".join(f"- **fail**: {line}" for line in wrong) or "All checks pass.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
