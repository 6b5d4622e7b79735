#!/usr/bin/env python3
"""Holds docs/metricsets.md to what kprof says: its inline commands run, and its table of costs is what --list-sets
prints. Usage: sets.py SOURCE BUILD. Exit status 77 without CUPTI."""
import os
import pathlib
import re
import sys

import markdown
from scratch import Scratch, is_there

SKIPPED = 77


def check_commands(prose, scratch):
    """DIR is the folder of the document's own example."""
    commands = [(number, span) for number, text in markdown.paragraphs(prose) for span in markdown.code_spans(text)
                if span.startswith("kprof ")]
    failures = [] if len(commands) >= 3 else ["the commands are not found"]
    for number, command in commands:
        status, output = scratch.run(re.sub(r"\bDIR\b", "example", command))
        if status != 0:
            failures.append(f"line {number}: {command}: exit status {status}\n{output}")
    return failures


def read_costs(prose):
    """{(set, chip): "metrics / passes"} of the table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for _, line in prose if line.startswith("|")]
    start = next(i for i, row in enumerate(rows) if row[0] == "set" and "GH100" in row)
    chips, costs = rows[start][1:], {}
    for row in rows[start + 2:]:
        if len(row) != len(chips) + 1 or not re.fullmatch(r"\d+ / \d+", row[1]):
            break
        costs.update({(row[0], chip): cell for chip, cell in zip(chips, row[1:])})
    return costs


def list_costs(chips, scratch):
    status, output = scratch.run(f"kprof --list-sets --chips {','.join(chips)}")
    rows = re.findall(r"^(\w+)\s+(?:\w+\s+)?(\w+)\s+(\d+)\s+(\d+)\s+\d+\s+[A-Z]", output, re.MULTILINE)
    return {(row[0], row[1]): f"{row[2]} / {row[3]}" for row in rows} if status == 0 else {}


def check_costs(prose, scratch):
    wanted = os.environ.get("KPROF_TEST_CHIPS")  # fewer chips, where CUPTI is slow
    documented = {key: cost for key, cost in read_costs(prose).items() if not wanted or key[1] in wanted}
    listed = list_costs(sorted({chip for _, chip in documented}), scratch)
    failures = [f"{name} on {chip}: the table has {documented.get(key)}, kprof lists {listed.get(key)}"
                for key in sorted(documented.keys() | listed.keys()) for name, chip in [key]
                if documented.get(key) != listed.get(key)]
    return failures if documented else ["the table of costs is not found"]


def main(source, build):
    _, prose = markdown.split((source / "docs/metricsets.md").read_text())
    with Scratch(source, build) as scratch:
        if not is_there("cupti", scratch):
            return SKIPPED
        (scratch.root / "example").symlink_to(source / "tests/fixtures/metricsets")
        failures = check_commands(prose, scratch) + check_costs(prose, scratch)
    for failure in failures:
        print(f"docs/metricsets.md: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(os.path.abspath(sys.argv[2]))))
