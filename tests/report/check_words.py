#!/usr/bin/env python3
"""`kprof explain` knows every heading of the pages of reports and comparisons: the titles of lists and tables, and
what stands above columns and beside values. Of traces it knows every table, its headings, causes and findings. Markdown
has the headings that text has, and HTML those of its lists and of web/src. Usage: check_words.py SOURCE_DIR
WRITE_FIXTURE KPROF"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PAGES = [["details", "--details-all"], ["raw"], ["statistics"], ["summary"], ["summary", "--group-by", "line"],
         ["session"], ["sources"], ["census"], ["source"], ["source", "--print-source", "sass"],
         ["source", "--print-source", "cuda,sass"], ["source", "--print-source", "ptx"]]
OF_PAGES = re.compile(r'label: "([A-Z][^"]+)"|head: "([A-Z][^"]+)"|h\("(?:dt|h[1-4])", \{\}, "([A-Z][^"]+)"'
                      r'|h\("dt", \{\}, \w+ \? "([^"]+)" : "([^"]+)"\)|part\(\s*"([A-Z][^"]+)"')
OF_SECTIONS = {"details", "raw", "statistics"}
COLUMNS = {"Value", "Text", "Metric", "Note", "Kernel"}  # second ones, of tables with headings
OLDER = {f"{unit}: Average" for unit in ("DRAM", "L1", "SMSP")}  # a column that sections had when samples were recorded
NO_HEADINGS = OLDER | {"", "This report is damaged", "Not in this report"}  # in place of a page


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)


def of_markdown(text, kernels):
    """Above a table's rule stand headings of columns; a table of one record has a heading in each row instead. Rows of
    values begin with what they are called."""
    lines, has_names = text.split("\n"), False
    for above, line in zip([""] + lines, lines):
        title = re.match(r"#+ (.*)", line)
        if title and not any(name in plain(title[1]) for name in kernels):
            yield plain(title[1])
        if line.startswith("| ---"):
            heads = cells_of(above)
            is_record = len(heads) == 2 and "" not in heads and heads[1] not in COLUMNS
            has_names = is_record or heads[0] == "Metric"
            yield from heads[:1] if is_record else heads
        elif has_names and line.startswith("|") and "__" not in line:
            yield cells_of(line)[0]


def cells_of(line):
    return [plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def plain(text):
    return re.sub(r"\\(.)", r"\1", text.strip()).rstrip(":")


def of_html(path):
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    raw = json.loads(data[1])

    def of_record(record):
        yield from (field["label"] for field in json.loads(raw["texts"][record[0]]))
        for row in (record[2] if len(record) > 2 else None) or []:
            yield from of_record(row)

    for part in raw["parts"]:
        if part["part"] == "list":
            yield part["title"]
            for record in part["records"]:
                yield from of_record(record)


def of_web(source):
    for path in sorted((source / "web/src").glob("*.js")):
        text = path.read_text()
        yield from (word for found in OF_PAGES.findall(text) for word in found)
        facts = re.search(r"^function factsOf.*?^}", text, re.DOTALL | re.MULTILINE)
        yield from re.findall(r'[\[?(:] ?"([A-Z][^"]+)"[,:\]]', facts[0]) if facts else ()


def of_traces(source, kprof, trace):
    """Names and titles of tables are those that kprof has in one place; a heading is what a column is called."""
    tables = re.findall(r'^    TABLE\((\w+), "([^"]+)"', (source / "src/report/model/trace_stats.c").read_text(), re.M)
    assert len(tables) > 30
    for name, title in tables:
        yield from (name, title)
        yield from run(kprof, "stats", trace, "-r", name, "-f", "tsv").stdout.split("\n")[0].split("\t")
    queries = (source / "src/report/model/trace_stats.sql").read_text()
    yield from re.findall(r"(?:UNION ALL|found AS \()\s*SELECT (?:\d(?: AS i)?, )?'([A-Z][^']+)'", queries)
    causes = re.search(r"cause_names\[CAUSES\] = {(.*?)}", (source / "src/report/model/trace_lost.c").read_text(), re.S)
    yield from re.findall(r'"([^"]+)"', causes[1])


def headings(source, write_fixture, kprof, work):
    for kind in ((), ("multiplexed",), ("census",), ("trace",)):
        assert run(write_fixture, work / f"{'-'.join(kind) or 'plain'}.kprof", *kind).returncode == 0
    made = [*sorted(work.glob("*.kprof")), source / "tests/fixtures/source/source.kprof"]
    reports = [*made, *sorted((source / "samples").glob("*.kprof"))]
    merged = run(kprof, "merge", *sorted((source / "samples").glob("transpose-*.kprof")), "-o", work / "merged.kprof")
    assert merged.returncode == 0, merged.stderr
    for report in [*reports, work / "merged.kprof"]:
        kernels = [json.loads(line)["function"] for line in run(kprof, "report", report, "--brief",
                                                                 "--json").stdout.splitlines()]
        for page in PAGES:
            if report in made and page[0] in OF_SECTIONS:
                continue  # with made-up sections
            yield from of_markdown(run(kprof, "report", report, "--markdown", "--page", *page).stdout, kernels)
        page = work / "page.html"
        assert run(kprof, "report", report, "-f", "--html", page).returncode == 0
        yield from of_html(page)
    yield from of_web(source)
    yield from re.findall(r'kprof_field_\w+\("\w+", "([^"]+)"', (source / "src/report/emit/timeline.c").read_text())
    yield from of_traces(source, kprof, work / "trace.kprof")
    pairs = [sorted((source / "samples").glob("transpose-*.kprof")), [work / "before", work / "after"]]
    for kind in pairs[1]:
        assert run(write_fixture, kind, kind.name).returncode == 0
    for after, before in [pairs[0], pairs[1][::-1]]:
        titles = of_markdown(run(kprof, "diff", before, after, "--markdown").stdout, ())
        yield from (title for title in titles if ")x(" not in title)  # kernels


def main():
    source, write_fixture, kprof = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        words = sorted(set(headings(source, write_fixture, kprof, pathlib.Path(work))) - NO_HEADINGS)
    asked = run(kprof, "explain", "--json", *words)
    known = {metric["name"] for metric in json.loads(asked.stdout)["metrics"]}
    unknown = [word for word in words if word not in known]
    print(f"{len(words)} headings, of which kprof explain does not know {len(unknown)}: {unknown}")
    sys.exit(bool(unknown) or len(words) < 100)


if __name__ == "__main__":
    main()
