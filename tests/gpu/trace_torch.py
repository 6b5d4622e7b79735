#!/usr/bin/env python3
"""Programs of PyTorch (programs/trace_torch.py) alone, under `kprof trace` and under torch.profiler, by turns. Checks
that the results are the same, that both tools have the same launches of each kernel and times within 1 %, and that
tracing takes at most 5 % of a step whose kernels take 20 us, and 30 % of one of 3 us. Also lists the calls of a run, as
each costs time. Exits 1 when a check fails, 77 where there is no GPU, no PyTorch or no Triton.

    trace_torch.py [--runs N] [--pairs N] [--programs NAME,NAME] [--output FILE]
"""
import argparse
import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import harness

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


def cost(results, name):
    """How much longer a step takes than alone, by the fastest runs: whatever else the machine does adds time."""
    return best(results, name) / best(results, ALONE) - 1


def best(results, name):
    return min(run["us"] for run in results[name])


def judge(results, limit):
    """What is wrong of {ALONE, KPROF, PROFILER: the programs' results}."""
    for name, runs in results.items():
        if {run["checksum"] for run in runs} != {results[ALONE][0]["checksum"]}:
            yield f"{name}: other results"
    if limit is not None and cost(results, KPROF) > limit:
        yield f"costs {cost(results, KPROF):.1%}"


def take(program, name, folder):
    """(the program's result, kernels or None, calls of CUDA or None), or None where it cannot run. Of kprof's messages
    those about calls that are not recorded go to stderr."""
    words = [sys.executable, pathlib.Path(__file__).parent / "programs/trace_torch.py", program]
    if name == KPROF:
        words = [harness.kprof(), "trace", "--verbose", "-f", "-o", f"{folder}/run", *words]
    if name == PROFILER:
        words.append(f"{folder}/chrome.json")
    done = harness.run(words, limit=300)
    if done.status == harness.SKIPPED:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.status != 0 or len(lines) != 1:
        raise harness.Failure(f"{name}: status {done.status}: {harness.last_lines(done.stderr)}")
    kernels = calls = None
    if name == KPROF:
        print(*(line for line in done.stderr.splitlines() if "calls of the driver that launch" in line), sep="\n",
              file=sys.stderr)
        stats = harness.run([harness.kprof(), "stats", harness.report_path(f"{folder}/run"), "--json", "--report",
                             "cuda_gpu_kern_sum,cuda_api_sum"])
        tables = json.loads(stats.stdout)
        kernels, calls = of_kprof(tables["cuda_gpu_kern_sum"]), tables["cuda_api_sum"]
    if name == PROFILER:
        kernels = of_profiler(json.loads(pathlib.Path(f"{folder}/chrome.json").read_text(encoding="utf-8")))
    return json.loads(lines[0]), kernels, calls


def keep_tables(program, report):
    """The usual tables of a trace as people see them, beside the results."""
    shown = harness.run([harness.kprof(), "stats", report, "--width", "120"], limit=300)
    path = harness.results_folder() / f"trace-torch-{program}.txt"
    path.write_text(shown.stdout + shown.stderr, encoding="utf-8")


def check(program, options, folder):
    """({name: results}, rows of compare, calls, what is wrong), or None where it cannot run. Runs take turns, as a
    machine's clocks change."""
    results, kernels, calls = {ALONE: [], KPROF: [], PROFILER: []}, {KPROF: [], PROFILER: []}, []
    for i in range(options.runs + options.pairs):
        for name in results if i < options.runs else (ALONE, KPROF):
            taken = take(program, name, folder)
            if taken is None:
                return None
            results[name].append(taken[0])
            print(f"{program}, {name}: {taken[0]['us']:.0f} us", file=sys.stderr) # lest time ends before
            if taken[1] is not None:
                kernels[name].append(taken[1])
            if taken[2] and not calls:
                print(*shown_calls(taken[2]), sep="\n", file=sys.stderr)
            calls = taken[2] or calls
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
    medians = (statistics.median(run["us"] for run in results[name]) for name in (ALONE, KPROF))
    return (program, len(results[ALONE]), *(best(results, name) for name in results), *medians,
            f"{cost(results, KPROF):+.1%}", f"{cost(results, PROFILER):+.1%}",
            f"{LIMITS[program]:.0%}" if LIMITS[program] else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--pairs", type=int, default=1, help="more runs alone and under kprof trace (1)")
    parser.add_argument("--programs", default=",".join(LIMITS), help="which (all)")
    parser.add_argument("--output", help="Markdown file (trace-torch.md among the results)")
    options = parser.parse_args()
    if not harness.have_gpu():
        print("trace_torch.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
    document = harness.Document(options.output or harness.results_folder() / "trace-torch.md")
    document.add("# Programs of PyTorch alone, under kprof trace and under torch.profiler\n")
    document.add(harness.table(["", ""], [*harness.facts("tests/gpu/trace_torch.py " + " ".join(sys.argv[1:])),
                                          ("nsys", shutil.which("nsys") or "none")]))
    costs, wrong = [], []
    for program in options.programs.split(","):
        with tempfile.TemporaryDirectory(prefix="kprof-trace-torch-") as folder:
            try:
                checked = check(program, options, folder)
            except (harness.Failure, KeyError, ValueError) as failure: # of what a tool wrote, too
                wrong.append(f"{program}: {failure!r}")
                continue
        if checked is None:
            print("trace_torch.py: no PyTorch or no Triton: skipped", file=sys.stderr)
            return harness.SKIPPED
        results, rows, calls, faults = checked
        wrong += [f"{program}: {fault}" for fault in faults]
        costs.append(costs_of(program, results))
        document.add(f"## {program}\n\n" + harness.table(
            ["kernel", "launches", "torch.profiler's", "µs", "torch.profiler's", "difference", "spread of its runs",
             "µs each"], list(shown(rows))))
        document.add(harness.table(["call", "calls", "median (ns)"], shown_calls(calls)))
    document.add("## What tracing costs\n\n" + harness.table(
        ["program", "runs", "a step alone (µs)", "kprof trace", "torch.profiler", "median alone",
         "median of kprof trace", "kprof costs", "torch.profiler costs", "at most"], costs))
    document.add("\n".join(f"- **fail**: {line}" for line in wrong) or "All checks pass.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
