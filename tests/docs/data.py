#!/usr/bin/env python3
"""Checks the raw tables in docs/data: each tells what was measured, when, where, at which commit and by which command,
each is listed in docs/data/README.md, and each CSV file is rectangular. README.md says what they hold.
Usage: data.py SOURCE BUILD"""
import csv
import pathlib
import re
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


def read(folder, name):
    lines = (folder / name).read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def last_of(rows, **wanted):
    """The latest row of those with these values; the tables are in the order of time."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())][-1]


def rounded(text):
    """"1,834" of "1833.7", "6" of "6.4"."""
    return f"{round(float(text)):,}"


def benchmark(folder, work):
    row = last_of([row for row in read(folder, "bench-native-runs.csv") if row["ncu"]], work=work)
    return [row["kprof (ms added per launch)"], row["ncu"]]


def framework(folder, program):
    """What both tools add to a launch. In steady training ncu's figure has what it takes to skip launches, too."""
    row = last_of(read(folder, "frameworks-own-clock.csv"), program=program)
    return [rounded(row[f"{tool}: added (ms/launch)"]) for tool in ("kprof", "ncu")]


def complete_programs(folder):
    """Launches and programs of frameworks and libraries, by the latest run of each; these have every value."""
    rows = [row for name in ("frameworks.csv", "libraries.csv") for row in read(folder, name)
            if row["set"] == "default" and "to its end" not in row["program"] and "Distributed" not in row["program"]]
    latest = {row["program"]: row for row in rows}
    assert all(row["chosen"] == row["complete"] and row["output as plain"] == "yes" for row in latest.values())
    return [f"{sum(int(row['chosen']) for row in latest.values()):,}", str(len(latest))]


def cuda_samples(folder):
    rows = read(folder, "cuda-samples.csv")
    chosen, whole = (sum(int(row[key]) for row in rows) for key in ("launches chosen", "with every value"))
    return [f"{whole:,}", f"{chosen:,}", str(len(rows))]


def distributed(folder):
    row = last_of(read(folder, "libraries.csv"), program="DistributedDataParallel, 60 steps, 20 kernels")
    return [row["kprof (s)"], row["plain (s)"], row["complete"].split()[0]]


def full_set_parts(folder):
    """What the full set adds, and in tens of milliseconds what of it its samples over time and its instructions do."""
    whole, without, alone = (float(benchmark(folder, f"{work}, 200 launches")[0])
                             for work in ("full set", "full set without PmSampling", "section SourceCounters"))
    return [rounded(whole), rounded(10 * round((whole - without) / 10)), rounded(10 * round(alone / 10))]


def passes_of_the_full_set(folder):
    """docs/metricsets.md has them for each chip, which docs_sets holds to what kprof lists."""
    rows = [line.split("|")[1:-1] for line in (folder.parent / "metricsets.md").read_text().splitlines()
            if re.match(r"\| (set|full) \|", line)]
    titles, cells = ([cell.strip() for cell in row] for row in rows[:2])
    return [dict(zip(titles, cells))["GH100"].split("/")[1].strip()]


# What README.md and docs/guide.md say: a pattern whose groups hold the figures, and the function that finds them in the
# tables.
CLAIMS = (
    (r"\| default set, 200 launches in a row \| ([\d,]+) \| ([\d,]+) \|",
     lambda at: map(rounded, benchmark(at, "default set, 200 launches"))),
    (r"\| full set, 200 launches in a row \| ([\d,]+) \| ([\d,]+) \|",
     lambda at: map(rounded, benchmark(at, "full set, 200 launches"))),
    (r"\| a first step of PyTorch training, default set \| ([\d,]+) \| ([\d,]+) \|",
     lambda at: framework(at, "PyTorch training, first step")),
    (r"\| decoding with a KV cache, default set \| ([\d,]+) \| ([\d,]+) \|",
     lambda at: framework(at, "decoding with a KV cache")),
    (r"Of kprof's ([\d,]+) ms counters over time take about (\d+), and counters of instructions (\d+)",
     full_set_parts),
    (r"now it takes (\d+):", passes_of_the_full_set),
    (r"all ([\d,]+) chosen launches of (\d+) programs got every value", complete_programs),
    (r"So did ([\d,]+) of ([\d,]+) launches of (\d+) programs", cuda_samples),
    (r"on two GPUs took (\d+) s, (\d+) s without kprof, and gave (\d+) whole samples", distributed),
)


def check_claims(source):
    texts = {name: " ".join((source / name).read_text().split()) for name in ("README.md", "docs/guide.md")}
    for pattern, find in CLAIMS:
        measured = list(find(source / "docs/data"))
        said = [(name, match) for name, text in texts.items() for match in re.finditer(pattern, text)]
        if not said:
            yield f"README.md and docs/guide.md: nothing is like {pattern}"
        for name, match in said:
            if list(match.groups()) != measured:
                yield f'{name}: "{match[0]}", but docs/data has {", ".join(measured)}'


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
    failures += check_claims(source)
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
