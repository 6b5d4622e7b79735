#!/usr/bin/env python3
"""What a running job pays for kprof: a training loop of PyTorch plain, and under `--armed no`, where it measures a step
from inside: its steps before that ran unarmed. Checks that the weights are the same, that the step has launches, and
that kprof unarmed costs less than 1 % by the median (what is left after the step is only printed). Also checks that
torch.profiler sees the same kernels while kprof is not armed as alone, and that kprof declines while torch.profiler
records. Exits 1 when a check fails, 77 where there is no GPU or no PyTorch.

    control.py [--runs N] [--turns N] [--unselected] [--output FILE]

--unselected runs it under `-k` of no kernel, too: what a launch costs that is not chosen. --runs 0 times nothing. The
programs of a run are alive together and take turns of 50 steps, and each turn is compared with the plain one beside it.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

import harness
import turns

PLAIN, UNARMED, UNSELECTED = "without kprof", "--armed no, a step measured", "-k (no kernel)"
LIMIT = 0.01
NO_MATCH = 106 # kprof's exit status when no launch is chosen
GUEST_HEADER = ["torch.profiler's kernels", "before kprof", "beside it", "after it", "launches of kprof's",
                "beside torch.profiler", "what kprof said"]
HEADER = ["run", "median step, µs", "cost", "half of the turns", "later steps, µs", "cost", "half of the turns",
          "launches measured"]


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


def joined(found, name, key="us"):
    """The times of a step in all turns of all runs."""
    return [us for result in found[name] for us in result[key]]


def cost(found, name, key="us"):
    """How much longer a step takes than without kprof, as a part of it."""
    return turns.cost(joined(found, name, key), joined(found, PLAIN, key))


def row(found, name):
    """Of the table: all runs of this name."""
    cells = [name]
    for key in ("us", "after_us"):
        low, high = turns.spread(joined(found, name, key), joined(found, PLAIN, key))
        cells += [f"{statistics.median(joined(found, name, key)):.1f}", f"{cost(found, name, key):+.2%}",
                  f"{low:+.2%} to {high:+.2%}"]
    return (*cells, str(found[name][-1]["launches"]))


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


def words_of(name, folder, program):
    """(words, environment) of a program under kprof as name says; its first word is a file of programs/."""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs" / program[0], *program[1:]]
    kprof = [harness.kprof(), "-f", "-o", f"{folder}/{'unarmed' if name == UNARMED else 'unselected'}"]
    words = {PLAIN: program, UNARMED: [*kprof, "--armed", "no", *program, "measured"],
             UNSELECTED: [*kprof, "-k", "no_such_kernel", *program]}[name]
    return words, {**os.environ, "PYTHONPATH": str(harness.ROOT / "python"), "KPROF": str(harness.kprof())}


def take_guest(name, folder):
    """What torch.profiler saw under kprof as name says, or None where it cannot run."""
    words, environment = words_of(name, folder, ["guest_torch.py"])
    done = harness.run(words, limit=300, env=environment)
    if name == PLAIN and done.status == harness.SKIPPED:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise harness.Failure(f"{name}: status {done.status}: {harness.last_lines(done.stderr)}")
    return json.loads(lines[0])


def take_run(names, count, folder):
    """{name: result} of programs that are alive together; a step is measured after two thirds of the turns."""
    words = {name: words_of(name, folder, ["control_torch.py", "turns"]) for name in names}
    with turns.Turns(words, folder) as programs:
        before = programs.ask_all("steps", count - count // 3)
        measured = {name: int(programs.ask(name, "measure")) for name in names}
        after = programs.ask_all("steps", count // 3)
        return {name: {"us": before[name], "after_us": after[name], "launches": measured[name],
                       **json.loads(programs.end(name, NO_MATCH if name == UNSELECTED else 0))} for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2, help="runs of each (2)")
    parser.add_argument("--turns", type=int, default=120, help="turns of a run (120)")
    parser.add_argument("--unselected", action="store_true", help="run it where no launch is chosen, too")
    parser.add_argument("--output", help="Markdown file (control.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "control.md")
    document.add("# A training loop under kprof that is not armed\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/control.py")))
    names = (PLAIN, UNARMED, UNSELECTED) if options.unselected else (PLAIN, UNARMED)
    found, wrong = {}, []
    with tempfile.TemporaryDirectory(prefix="kprof-control-") as folder:
        try:
            guests = [take_guest(name, folder) for name in (PLAIN, UNARMED)]
            for _ in range(options.runs if guests[0] else 0):
                for name, result in take_run(names, options.turns, folder).items():
                    found.setdefault(name, []).append(result)
                print(*(row(found, name) for name in found), sep="\n", file=sys.stderr) # lest time ends before
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
