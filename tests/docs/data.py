#!/usr/bin/env python3
"""Checks the raw tables in docs/data: each tells what was measured, when, where, at which commit and by which command,
each is listed in docs/data/README.md, and each CSV file is rectangular. Usage: data.py SOURCE BUILD"""
import csv
import pathlib
import sys

FACTS = ("what", "date", "GPU", "commit", "command")


def check_facts(lines):
    head = [line for line in lines if line.startswith("# ")]
    for fact in FACTS:
        if not any(line.startswith(f"# {fact}: ") and line.strip() != f"# {fact}:" for line in head):
            yield f"does not tell its {fact}"


def check_table(lines):
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    if len(rows) < 2:
        yield "has no rows"
    for row in rows[1:]:
        if len(row) != len(rows[0]):
            yield f"has {len(rows[0])} columns and a row of {len(row)}: {row}"
    if any("#" in cell for row in rows for cell in row):
        yield "has a # in a cell, where readers of CSV take it for a comment"


def main(source):
    folder = source / "docs/data"
    files = sorted(path for path in folder.iterdir() if path.suffix in (".csv", ".txt"))
    listed = (folder / "README.md").read_text()
    failures = [] if len(files) > 10 else ["docs/data: the tables are not found"]
    for path in files:
        lines = path.read_text().splitlines()
        wrong = [*check_facts(lines), *(check_table(lines) if path.suffix == ".csv" else [])]
        if f"]({path.name})" not in listed:
            wrong.append("is not listed in docs/data/README.md")
        failures += [f"docs/data/{path.name}: {what}" for what in wrong]
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
