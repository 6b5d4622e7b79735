#!/usr/bin/env python3
"""What a running job pays for kprof: a training loop of PyTorch plain, under `--armed no`, where no launch is chosen,
and with a step measured from inside. Checks that the weights are the same, that the step has launches, and that kprof
unarmed costs less than 1 % (what is left after the step is only printed). Exits 1 when a check fails, 77 where there is
no GPU or no PyTorch.

    control.py [--runs N] [--output FILE]
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

import harness

PLAIN, UNARMED, UNSELECTED, MEASURED = "without kprof", "--armed no", "-k (no kernel)", "--armed no, a step measured"
LIMIT = 0.01


def judge(found):
    """What is not as it should be of {name: [results of the program]}."""
    wrong = []
    for name, results in found.items():
        if {result["checksum"] for result in results} != {found[PLAIN][0]["checksum"]}:
            wrong.append(f"{name}: other weights")
        if any((result["launches"] > 0) != (name == MEASURED) for result in results):
            wrong.append(f"{name}: {[result['launches'] for result in results]} launches measured")
    if cost(found, UNARMED) >= LIMIT:
        wrong.append(f"{UNARMED}: costs {cost(found, UNARMED):.1%}")
    return wrong


def best(found, name, key="us"):
    return min(result[key] for result in found[name])


def cost(found, name, key="us"):
    """How much longer a step takes than without kprof, as a part of it."""
    return best(found, name, key) / best(found, PLAIN, key) - 1


def take(name, folder):
    """The program's result under kprof as name says, or None where it cannot run."""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs/control_torch.py"]
    kprof = [harness.kprof(), "-f", "-o", f"{folder}/run"]
    argv = {PLAIN: program, UNARMED: [*kprof, "--armed", "no", *program],
            UNSELECTED: [*kprof, "-k", "no_such_kernel", *program],
            MEASURED: [*kprof, "--armed", "no", *program, "measured"]}[name]
    environment = {**os.environ, "PYTHONPATH": str(harness.ROOT / "python"), "KPROF": str(harness.kprof())}
    done = harness.run(argv, limit=300, env=environment)
    if name == PLAIN and done.status == harness.SKIPPED:
        return None
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != 1:
        raise RuntimeError(f"{name}: status {done.status}: {harness.last_lines(done.stderr)}")
    return json.loads(lines[0])


def check(runs, folder):
    """({name: results}, what is wrong); nothing without PyTorch. Runs take turns, as a machine's clocks change."""
    found = {}
    for _ in range(runs):
        for name in (PLAIN, UNARMED, UNSELECTED, MEASURED):
            result = take(name, folder)
            if result is None:
                return {}, []
            found.setdefault(name, []).append(result)
    return found, judge(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each (3)")
    parser.add_argument("--output", help="Markdown file (control.md among the results)")
    options = parser.parse_args()
    if not harness.have_gpu():
        print("control.py: no GPU: skipped", file=sys.stderr)
        return harness.SKIPPED
    with tempfile.TemporaryDirectory(prefix="kprof-control-") as folder:
        try:
            found, wrong = check(options.runs, folder)
        except RuntimeError as error:
            found, wrong = {}, [str(error)]
    if not found and not wrong:
        print("control.py: no PyTorch: skipped", file=sys.stderr)
        return harness.SKIPPED
    rows = []
    for name, results in found.items():
        costs = [text for key in ("us", "after_us") for text in (f"{best(found, name, key):.1f}",
                                                                 f"{cost(found, name, key):+.2%}")]
        rows.append((name, *costs, str(results[-1]["launches"])))
    document = harness.Document(options.output or harness.results_folder() / "control.md")
    document.add("# A training loop under kprof that is not armed\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/control.py")))
    header = ["run", "a step in µs", "cost", "later steps in µs", "cost", "launches measured"]
    document.add(harness.table(header, rows))
    document.add("\n".join(f"- **fail**: {line}" for line in wrong) or "All checks pass.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
