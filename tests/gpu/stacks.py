#!/usr/bin/env python3
"""Call stacks under kprof: a program of PyTorch whose launches come from lines that are known. Checks the line of each
launch, that those of a backward pass have the forward pass' and those of a CUDA graph that of the capture, and that the
program prints what it prints without kprof. Exits 1 when a check fails, 77 where there is no GPU or no PyTorch.

    stacks.py [--output FILE]
"""
import argparse
import collections
import pathlib
import sqlite3
import sys
import tempfile

import harness

QUERY = ("SELECT coalesce(line, ''), coalesce(origin, 'none'), coalesce(ranges, '') FROM launch "
         "LEFT JOIN launch_stack ON launch_stack.launch_id = launch.id LEFT JOIN stack ON stack.id = stack_id "
         "LEFT JOIN nvtx ON nvtx.launch_id = launch.id ORDER BY launch.id")


def find_wrong(rows):
    """What is not as it should be of (line, origin, NVTX ranges) of each launch."""
    kinds = collections.Counter(origin for _, origin, _ in rows)
    wrong = [f"no launch has the stack of {origin}" for origin in ("launch", "forward", "capture") if not kinds[origin]]
    for line, origin, ranges in rows:
        if "evaluate_function" in ranges and ", seq = " not in ranges:
            continue # nodes that no operator has made, such as AccumulateGrad
        in_backward = "evaluate_function" in ranges
        wanted = {"forward": " in forward", "capture": " in captured", "launch": "stacks_torch.py:"}.get(origin)
        if in_backward != (origin == "forward") or wanted is None or wanted not in line:
            wrong.append(f"{origin}: {line!r} in {ranges!r}")
    return wrong


def check(folder):
    """(verdict, detail)"""
    program = [sys.executable, pathlib.Path(__file__).parent / "programs/stacks_torch.py"]
    plain = harness.run(program, limit=300)
    if plain.status == harness.SKIPPED:
        return "skipped", "no PyTorch"
    under = harness.run([harness.kprof(), "--metrics", "gpu__time_duration.sum", "--call-stack", "--nvtx", "-o",
                         f"{folder}/run", *program], limit=300)
    if plain.status or under.status or under.stdout != plain.stdout:
        return "**fail**", f"status {plain.status} and {under.status}: {harness.last_lines(under.stderr)}"
    with sqlite3.connect(f"file:{harness.report_path(f'{folder}/run')}?mode=ro", uri=True) as database:
        rows = database.execute(QUERY).fetchall()
    wrong = find_wrong(rows)
    return ("**fail**", "; ".join(wrong[:5])) if wrong else ("pass", f"{len(rows)} launches")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="Markdown file (stacks.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-stacks-") as folder:
        verdict, detail = check(folder)
    print(f"{verdict}: {detail}")
    document = harness.Document(options.output or harness.results_folder() / "stacks.md")
    document.add("# Call stacks under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/stacks.py")))
    document.add(harness.table(["check", "verdict", "detail"], [("PyTorch", verdict, detail)]))
    return {"pass": 0, "skipped": harness.SKIPPED}.get(verdict, 1)


if __name__ == "__main__":
    sys.exit(main())
