#!/usr/bin/env python3
"""What a running job pays for kprof: a training loop of PyTorch plain, and under `--armed no`, where it measures a step
from inside: its steps before that ran unarmed. Prints each run as it ends. Checks that the weights are the same, that
the step has launches, and that kprof unarmed costs less than 1 % (what is left after the step is only printed). Then it
checks that torch.profiler sees the same kernels while kprof is not armed as alone, and that kprof declines while
torch.profiler records. Exits 1 when a check fails, 77 where there is no GPU or no PyTorch.

    control.py [--runs N] [--unselected] [--output FILE]

--unselected runs it under `-k` of no kernel, too: what a launch costs that is not chosen. --runs 0 times nothing.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import harness

PLAIN, UNARMED, UNSELECTED = "without kprof", "--armed no, a step measured", "-k (no kernel)"
LIMIT = 0.01
GUEST_HEADER = ["torch.profiler's kernels", "before kprof", "beside it", "after it", "launches of kprof's",
                "beside torch.profiler", "what kprof said"]
HEADER = ["run", "best step, µs", "cost", "later steps, µs", "cost", "launches measured"]


def judge(found):
    """What is not as it should be of {name: [results of the program]}."""
    wrong = []
    for name, results in found.items():
        if {result["checksum"] for result in results} != {found[PLAIN][0]["checksum"]}:
            wrong.append(f"{name}: other weights")
        if any((result["launches"] > 0) != (name == UNARMED) for result in results):
            wrong.append(f"{name}: {[result['launches'] for result in results]} launches measured")
    if cost(found, UNARMED) >= LIMIT:
        wrong.append(f"{UNARMED}: costs {cost(found, UNARMED):.1%}")
    return wrong


def best(found, name, key="us"):
    return min(result[key] for result in found[name])


def cost(found, name, key="us"):
    """How much longer a step takes than without kprof, as a part of it."""
    return best(found, name, key) / best(found, PLAIN, key) - 1


def row(found, name):
    """Of the table: the best of the runs of this name."""
    times = [text for key in ("us", "after_us") for text in (f"{best(found, name, key):.1f}",
                                                             f"{cost(found, name, key):+.2%}")]
    return (name, *times, str(found[name][-1]["launches"]))


def judge_guest(alone, unarmed):
    """What is not as it should be of what torch.profiler saw alone, and while kprof was not armed."""
    times = ("before", "beside", "after")
    wrong = [f"torch.profiler, {time}: {unarmed[time]} kernels, alone {alone[time]}"
             for time in times if unarmed[time] != alone[time] or not alone[time]]
    if unarmed["checksum"] != alone["checksum"]:
        wrong.append("torch.profiler: another result")
    if not unarmed["launches"]:
        wrong.append("torch.profiler: kprof measured no launch behind it")
    if unarmed["launches_beside"] or "torch.profiler" not in unarmed["said"]:
        wrong.append(f"torch.profiler: kprof beside it measured {unarmed['launches_beside']}: {unarmed['said']!r}")
    return wrong


def take(name, folder, file="control_torch.py"):
    """The program's result under kprof as name says, or None where it cannot run."""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs" / file]
    kprof = [harness.kprof(), "-f", "-o", f"{folder}/run"]
    argv = {PLAIN: program, UNARMED: [*kprof, "--armed", "no", *program, "measured"],
            UNSELECTED: [*kprof, "-k", "no_such_kernel", *program]}[name]
    environment = {**os.environ, "PYTHONPATH": str(harness.ROOT / "python"), "KPROF": str(harness.kprof())}
    done = harness.run(argv, limit=300, env=environment)
    if name == PLAIN and done.status == harness.SKIPPED:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise harness.Failure(f"{name}: status {done.status}: {harness.last_lines(done.stderr)}")
    return {**json.loads(lines[0]), "seconds": done.seconds}


def runs(names, count, folder):
    """(name, result) of each run as it ends, none without PyTorch. They take turns, as a machine's clocks change."""
    for _ in range(count):
        for name in names:
            result = take(name, folder)
            if result is None:
                return
            yield name, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--unselected", action="store_true", help="run it where no launch is chosen, too")
    parser.add_argument("--output", help="Markdown file (control.md among the results)")
    options = parser.parse_args()
    if not harness.have_gpu():
        print("control.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
    document = harness.Document(options.output or harness.results_folder() / "control.md")
    document.add("# A training loop under kprof that is not armed\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/control.py")))
    names = (PLAIN, UNARMED, UNSELECTED) if options.unselected else (PLAIN, UNARMED)
    found, wrong = {}, []
    with tempfile.TemporaryDirectory(prefix="kprof-control-") as folder:
        try:
            for name, result in runs(names, options.runs, folder):
                found.setdefault(name, []).append(result)
                document.add(f"- {name}: a step {result['us']:.1f} µs, later {result['after_us']:.1f}, "
                             f"{result['launches']} launches measured, {result['seconds']:.1f} s in all")
            guests = [take(name, folder, "guest_torch.py") for name in (PLAIN, UNARMED)]
        except harness.Failure as error:
            wrong = [str(error)]
    if not wrong and guests[0] is None:
        print("control.py: no PyTorch: skipped", file=sys.stderr)
        return harness.SKIPPED
    if not wrong:
        wrong = [*(judge(found) if found else []), *judge_guest(*guests)]
        document.add("\n" + harness.table(HEADER, [row(found, name) for name in found]))
        document.add(harness.table(GUEST_HEADER, [(name, *(guest[key] for key in ("before", "beside", "after")),
                                                   guest["launches"], guest["launches_beside"], guest["said"])
                                                  for name, guest in zip((PLAIN, UNARMED), guests)]))
    document.add("\n".join(f"- **fail**: {line}" for line in wrong) or "All checks pass.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
