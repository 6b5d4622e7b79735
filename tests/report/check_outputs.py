#!/usr/bin/env python3
"""Checks recorded output as a reader would: CSV is rectangular and its values are floats, JSON fits its schema, and the
examples in docs/report-schema.md run. Usage: check_outputs.py SOURCE_FOLDER WRITE_FIXTURE KPROF"""
import csv
import json
import pathlib
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def check_csv(path):
    rows = list(csv.reader(path.open(newline="")))
    header = rows[0]
    check(len(rows) > 1, f"{path.name}: no rows")
    check(len(set(header)) == len(header), f"{path.name}: columns of the same name")
    for number, row in enumerate(rows, 1):
        check(len(row) == len(header), f"{path.name}: row {number} has {len(row)} fields, the header {len(header)}")
    return header, rows[1:]


def check_texts(path):
    """pandas reads a file in parts, and warns where a column is empty in one part and has texts in another."""
    header, rows = check_csv(path)
    for name in ("process", "host", "function", "kernel", "nvtx", "device_name", "replay_mode", "reason",
                 "disagreements"):
        for row in rows:
            check(row[header.index(name)] != "", f"{path.name}: {name} is empty")


def check_floats(path, columns):
    """pandas makes a column of floats when every field is empty or a number."""
    header, rows = check_csv(path)
    for name in columns(header):
        index = header.index(name)
        for row in rows:
            check(row[index] == "" or is_number(row[index]), f"{path.name}: {name} is {row[index]!r}")
        # No kernel of the fixture is limited by barriers.
        check(any(row[index] != "" for row in rows) or name == "launch__occupancy_limit_barriers",
              f"{path.name}: {name} is always empty")


def ncu_value(text):
    return text == "" or is_number(text)


NCU_NVTX = ["thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
            "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"]


def ncu_columns(nvtx):
    return ["ID", "Process ID", "Process Name", "Host Name", *nvtx, "Kernel Name", "Context", "Stream", "Block Size",
            "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name",
            "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup"]


def check_ncu_nvtx(path):
    """The columns of NVTX ranges: there in a report that has some, and each range as ncu writes it."""
    with open(path, encoding="utf-8", newline="") as file:
        found = {tuple(row[name] for name in NCU_NVTX) for row in csv.DictReader(file)}
    rest = ":none" * 6
    pushed = [f'"<default domain>:{name}{rest}"' for name in ("train", "step 1", "forward")]
    check(found == {("", ""), ("  ".join(pushed[:2]), ""),
                    ("  ".join([*pushed, f'"net:conv/1{rest}"']), f'"<default domain>:epoch{rest}"')},
          f"{path.name}: NVTX ranges are {sorted(found)}")


def check_ncu(golden):
    path = golden / "details-ncu.csv"
    header, rows = check_csv(path)
    check(header == ncu_columns(NCU_NVTX), f"{path.name}: columns are {header}")
    check_ncu_nvtx(path)
    header, _ = check_csv(golden / "multiplexed-details-ncu.csv")
    check(header == ncu_columns([]), f"multiplexed-details-ncu.csv: columns are {header}")
    check(all(ncu_value(row[16]) and ncu_value(row[-1]) for row in rows), f"{path.name}: values are not numbers")
    types = {row[18] for row in rows}
    check(types == {"", "INF", "OPT"}, f"{path.name}: rules are {sorted(types)}")
    check(all(bool(row[14]) != bool(row[17]) for row in rows), f"{path.name}: a row is either of a metric or of a rule")
    check(all(line.startswith('"') and line.endswith('"') for line in path.read_text().splitlines()),
          f"{path.name}: every field is quoted")
    header, rows = check_csv(golden / "raw-ncu.csv")
    check(rows[0][:14] == [""] * 14 and "ns" in rows[0], "raw-ncu.csv: the second row has the units")
    check(header[13] == "device__attribute_display_name" and {row[13] for row in rows[1:]} == {"NVIDIA H200"},
          "raw-ncu.csv: the GPU has no name")
    check(all(ncu_value(value) for row in rows[1:] for value in row[14:]), "raw-ncu.csv: values are not numbers")
    header, _ = check_csv(golden / "statistics-ncu.csv")
    check(header[0] == "Process ID" and header[-3:] == ["Minimum", "Maximum", "Average"],
          f"statistics-ncu.csv: columns are {header}")


def check_ncu_source(golden, fixtures):
    """What ncu printed of two kernels on an H200, from which the report was made; addresses begin at 0."""
    path = golden / "source-ncu.csv"
    lines = path.read_text().splitlines()
    recorded = (fixtures / "ncu-source.csv").read_text().splitlines()
    check(len(lines) == len(recorded), f"{path.name}: has {len(lines)} lines, not {len(recorded)}")
    first = 0
    for number, (own, line) in enumerate(zip(csv.reader(lines), csv.reader(recorded)), 1):
        if line[0] == "Address" or len(line) != len(own):
            check(own == line, f"{path.name}: line {number} is {own}, not {line}")
            first = 0
        elif line[0] == "Kernel Name":
            check(own[0] == line[0] and own[2] == line[2], f"{path.name}: line {number} is {own}, not {line}")
        else:
            first = first or int(line[0], 16)
            line[0] = hex(int(line[0], 16) - first)
            line[1] = re.sub(r"BRA 0x(\w+)", lambda target: f"BRA {hex(int(target[1], 16) - first)}", line[1])
            check(own == line, f"{path.name}: line {number} is {own}, not {line}")
    check(all('"' + '","'.join(row) + '"' == line for row, line in zip(csv.reader(lines), lines) if len(row) > 3),
          f"{path.name}: a field is not quoted")


def tables_of(text):
    """The tables of ncu's source page: rows by column, after the name of each kernel. Addresses begin at 0."""
    tables = []
    for row in csv.reader(text.splitlines()):
        if row[0] == "Kernel Name":
            tables.append([])
            header = None
        elif not header:
            header = row
        else:
            tables[-1].append(dict(zip(header[:1] + ["SASS"] + header[2:], row)))
    for table in tables:
        first = int(table[0]["Address"], 16)
        for row in table:
            row["Address"] = hex(int(row["Address"], 16) - first)
            row["SASS"] = re.sub(rf"0x{first // 2**16:x}\w{{4}}", lambda found: hex(int(found[0], 16) - first),
                                 row["SASS"]) if first else row["SASS"]
    return tables


def check_recorded_source(fixtures, kprof):
    """Two kernels that both profilers measured on one H200: each cell is ncu's. Samples differ from run to run."""
    words = [kprof, "report", fixtures / "recorded.kprof", "--page", "source", "--csv", "--csv-layout", "ncu"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    own, recorded = tables_of(done.stdout), tables_of((fixtures / "ncu-recorded.csv").read_text())
    check([len(table) for table in own] == [len(table) for table in recorded], "recorded.kprof: other instructions")
    for ours, theirs in zip(own, recorded):
        rest = [name for name in ours[0] if name not in theirs[0]]
        check(all("stall_" in name or "Samples" in name for name in rest), f"recorded.kprof: ncu has not {rest}")
        for row, line in zip(ours, theirs):
            found = {name: row.get(name) for name in line}
            check(found == line, f"recorded.kprof: {line['Address']} has {found}, not {line}")


def check_markdown(path):
    """Every row of a table has as many cells as its header, and the line below that says so."""
    lines = path.read_text().splitlines()
    tables = [index for index, line in enumerate(lines)
              if line.startswith("|") and (index == 0 or not lines[index - 1].startswith("|"))]
    check(tables, f"{path.name}: no table")
    for start in tables:
        columns = len(re.findall(r"(?<!\\)\|", lines[start]))
        check(re.fullmatch(r"(\| -{3}:? )+\|", lines[start + 1]), f"{path.name}: line {start + 2} should be dashes")
        for index in range(start, len(lines)):
            if not lines[index].startswith("|"):
                break
            found = len(re.findall(r"(?<!\\)\|", lines[index]))
            check(found == columns, f"{path.name}: line {index + 1} has {found - 1} cells, the header {columns - 1}")


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name in ("number", "integer"):
        return isinstance(value, (int, float) if name == "number" else int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def target_of(schema, root):
    target = root
    for key in schema["$ref"].lstrip("#/").split("/"):
        target = target[key]
    return target


def documented_members(schema, root):
    """Names that a schema and its parts have; a schema for any name has no list."""
    if "additionalProperties" in schema:
        return None
    parts = schema.get("allOf", []) + schema.get("oneOf", []) + ([target_of(schema, root)] if "$ref" in schema else [])
    names = set(schema.get("properties", {}))
    for part in parts:
        names |= documented_members(part, root) or set()
    return names


def fits_whole(value, schema, root, place):
    """As fits, and all members of objects are documented: readers may meet others, kprof itself may not write them."""
    names = documented_members(schema, root) if isinstance(value, dict) else None
    unknown = set(value) - names if names else set()
    return f"{place}: {unknown} is not in the schema" if unknown else fits(value, schema, root, place)


def fits(value, schema, root, place="$"):
    """The parts of JSON Schema that docs/report.schema.json uses; returns what does not fit."""
    if "$ref" in schema:
        wrong = fits(value, target_of(schema, root), root, place)
        if wrong:
            return wrong
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if types and not any(is_type(value, name) for name in types):
        return f"{place}: is no {'/'.join(types)}"
    if "const" in schema and value != schema["const"]:
        return f"{place}: is not {schema['const']}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place}: {value!r} is none of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        return f"{place}: {value!r} is not {schema['pattern']}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"{place}: is below {schema['minimum']}"
    for part in schema.get("allOf", []):
        wrong = fits(value, part, root, place)
        if wrong:
            return wrong
    if "oneOf" in schema:
        results = [fits(value, part, root, place) for part in schema["oneOf"]]
        if sum(result is None for result in results) != 1:
            return f"{place}: fits {sum(r is None for r in results)} of the alternatives: {results}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return f"{place}: has {len(value)} elements"
        for index, element in enumerate(value):
            wrong = fits_whole(element, schema.get("items", {}), root, f"{place}[{index}]")
            if wrong:
                return wrong
    if isinstance(value, dict):
        return fits_object(value, schema, root, place)
    return None


def fits_object(value, schema, root, place):
    for key in schema.get("required", []):
        if key not in value:
            return f"{place}: has no {key}"
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for key, member in value.items():
        if key not in known and others is False:
            return f"{place}: {key} is not in the schema"
        wrong = fits_whole(member, known.get(key, others), root, f"{place}.{key}")
        if wrong:
            return wrong
    return None


def check_json(path, schema):
    def refuse(constant):
        raise ValueError(f"{path.name}: {constant} is not JSON")

    data = json.loads(path.read_text(), parse_constant=refuse)
    wrong = fits_whole(data, schema, schema, "$")
    check(wrong is None, f"{path.name}: {wrong}")
    check(fits({**data, "version": 99}, schema, schema) is not None, f"{path.name}: the checker takes anything")
    try:
        import jsonschema
        jsonschema.Draft202012Validator(schema).validate(data)
    except ImportError:
        pass


def check_lines(path, whole):
    """JSON lines are the launches of the JSON page, each alone in its line."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    check(lines == json.loads(whole.read_text())["launches"], f"{path.name}: has other launches than {whole.name}")


def check_brief(path, schema):
    """Each line is a document of its own, of at most 2 KB."""
    lines = path.read_bytes().splitlines()
    check(lines, f"{path.name}: no documents")
    for line in lines:
        check(len(line) <= 2048, f"{path.name}: a document of {len(line)} bytes")
        wrong = fits(json.loads(line), schema["$defs"]["brief"], schema)
        check(wrong is None, f"{path.name}: {wrong}")
        wrong = fits({**json.loads(line), "version": 99}, schema["$defs"]["brief"], schema)
        check(wrong is not None, f"{path.name}: the checker takes anything")


def check_prometheus(path):
    """Each gauge is announced, its lines stand together, and no two have the same labels."""
    label = r'[a-z_]+="(?:[^"\\\n]|\\["\\n])*"'
    seen, announced = set(), []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("# "):
            if line.startswith("# TYPE "):
                announced.append(line.split()[2])
            continue
        sample = re.fullmatch(rf"([a-z_]+)(\{{{label}(?:,{label})*\}}) (\S+)", line)
        if not sample:
            check(False, f"{path.name}: line {number} is no sample: {line[:80]}")
            continue
        check(is_number(sample[3]), f"{path.name}: line {number}: {sample[3]} is no number")
        check(announced and sample[1] == announced[-1], f"{path.name}: line {number} is not below its gauge's name")
        check(sample[1] + sample[2] not in seen, f"{path.name}: line {number}: the same labels again")
        seen.add(sample[1] + sample[2])
    check(len(announced) == len(set(announced)) and seen, f"{path.name}: gauges are {announced}")


def check_trace(path, whole):
    """A slice or a mark for each launch; slices of one row do not overlap."""
    events = json.loads(path.read_text())["traceEvents"]
    launches = json.loads(whole.read_text())["launches"]
    shown = [event for event in events if event["ph"] in "Xi"]
    check([event["args"]["launch"] for event in shown] == [launch["id"] for launch in launches],
          f"{path.name}: has other launches than {whole.name}")
    ends = {}
    for event in shown:
        row = event["pid"], event["tid"]
        check(event["ts"] >= ends.get(row, event["ts"]) - 1e-6, f"{path.name}: launches overlap in row {row}")
        ends[row] = event["ts"] + event.get("dur", 0)
    named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    check(set(ends) <= named, f"{path.name}: rows without a name")
    check(any(event["ph"] == "C" for event in events), f"{path.name}: no counters")
    for event, launch in zip(shown, launches):
        duration = launch["values"].get("gpu__time_duration.sum")
        check((event["ph"] == "X") == (duration is not None), f"{path.name}: launch {launch['id']} is an {event['ph']}")
        if duration is not None:
            check(abs(event["dur"] - duration / 1e3) < 0.002, f"{path.name}: {event['dur']} us")


def check_examples(source, write_fixture):
    examples = re.findall(r'^sqlite3 run\.kprof (".*")$', (source / "docs/report-schema.md").read_text(), re.MULTILINE)
    check(len(examples) >= 5, f"report-schema.md: {len(examples)} examples")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "run.kprof"
        subprocess.run([write_fixture, str(report)], check=True)
        run = sqlite3.connect(report)
        trace = pathlib.Path(folder) / "trace.kprof"
        subprocess.run([write_fixture, str(trace), "trace"], check=True)
        of_trace = sqlite3.connect(trace)
        census = pathlib.Path(folder) / "census.kprof" # whose one launch has samples over time
        subprocess.run([write_fixture, str(census), "census"], check=True)
        over_time = sqlite3.connect(census)
        of_instructions = sqlite3.connect(source / "tests/fixtures/source/source.kprof")
        for example in examples:
            sql = shlex.split(example)[0]
            if "FROM timeline" in sql:
                check(len(over_time.execute(sql).fetchall()) > 0, f"report-schema.md: no rows: {sql}")
                continue
            database = of_instructions if "instruction_value" in sql else of_trace if "trace_" in sql else run
            check(len(database.execute(sql).fetchall()) > 0, f"report-schema.md: no rows: {sql}")
        check_columns(database, (source / "docs/report-schema.md").read_text())


def check_columns(database, documented):
    """The paragraph on a table explains each of its columns; those of views are anywhere."""
    tables = database.execute("SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')").fetchall()
    for table, kind in tables:
        paragraph = re.search(rf"^\*\*{table}\*\*:.*?\n\n", documented, re.MULTILINE | re.DOTALL)
        check(paragraph or f"`{table}`" in documented, f"report-schema.md: {table} is missing")
        for (column,) in database.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall():
            if kind == "table" and paragraph and (table, column) != ("run", "id"):
                check(f"`{column}`" in paragraph[0], f"report-schema.md: {table}.{column} is missing")
            else:
                group = re.sub(r"_[xyz]$", "_x", column)
                check(re.search(rf"\b({column}|{group})\b", documented),
                      f"report-schema.md: {table}.{column} is missing")


PAGES = "details raw summary statistics brief source sources session".split()


def check_trace_with_instructions(source, write_fixture, kprof):
    """A report with a trace and counters of instructions has its pages in each format, and --html has them all. One
    kernel has several shapes there, so that the pages read the code of other launches."""
    with tempfile.TemporaryDirectory() as folder:
        trace, counted, both, page = (pathlib.Path(folder) / name
                                      for name in ("trace.kprof", "counted.kprof", "both.kprof", "page.html"))
        subprocess.run([write_fixture, str(trace), "trace"], check=True)
        counted.write_bytes((source / "tests/fixtures/source/recorded.kprof").read_bytes())
        with sqlite3.connect(counted) as database:
            (kernel,) = database.execute("SELECT min(kernel_id) FROM code_profile").fetchone()
            database.execute("UPDATE code_profile SET kernel_id = ?", [kernel])
            database.execute("UPDATE launch SET kernel_id = ?, grid_x = id + 1", [kernel])
        database.close()
        subprocess.run([kprof, "merge", trace, counted, "-o", both], capture_output=True, check=True)
        for options in [*([f"--page={name}", *form] for name in PAGES for form in ([], ["--json"], ["--markdown"])),
                        *([f"--page={name}", "--csv"] for name in PAGES if name != "brief"), ["--html", str(page)]]:
            done = subprocess.run([kprof, "report", both, *options], capture_output=True, text=True, check=False)
            check(done.returncode == 0, f"{' '.join(options)} ends with {done.returncode}: {done.stderr[-500:]}")
        text = page.read_text() if page.exists() else ""
        check('"part":"code"' in text and '"part":"program"' in text, "--html lacks the instructions, or the trace")


def check_same_values(path, kprof):
    """Runs of several sets were merged into the report: CSV has each value of a launch that JSON has."""
    def run(option):
        return subprocess.run([kprof, "report", path, option], capture_output=True, text=True, check=True).stdout
    rows = {(int(row["launch"]), row["metric"]) for row in csv.DictReader(run("--csv").splitlines()) if row["value"]}
    for launch in json.loads(run("--json"))["launches"]:
        cells = [cell for section in launch["sections"] for table in section["tables"] for row in table["rows"]
                 for cell in row["cells"] if cell]
        for item in [item for section in launch["sections"] for item in section["items"]] + cells:
            check(item["value"] is None or (launch["id"], item["name"]) in rows,
                  f"{path.name}: launch {launch['id']}: CSV lacks {item['name']}, which JSON has")


def check_callers(path, kprof):
    """Instructions of an inlined line come from two calls: people see that, and programs the call of the hottest."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "calls.kprof"
        report.write_bytes(path.read_bytes())
        with sqlite3.connect(report) as database:
            database.execute("UPDATE code_line SET line=17 WHERE function_id=2 AND offset=112 AND depth="
                             "(SELECT max(depth) FROM code_line WHERE function_id=2 AND offset=112)")
        database.close()
        words = [kprof, "report", report, "--page", "source", "-q"]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        told = re.findall(r"Called from (softmax.py:1[67].*)", text)
        check("softmax.py:16 and 1 other line" in told and "softmax.py:16" in told, f"{path.name}: called from {told}")
        rows = csv.DictReader(subprocess.run([*words, "--csv"], capture_output=True, text=True,
                                             check=True).stdout.splitlines())
        calls = {row["called_from"] for row in rows}
        check("softmax.py:16" in calls and not any("other" in call for call in calls), f"{path.name}: CSV has {calls}")


def check_nothing_sampled(path, kprof):
    """The report has the plan of samples over time, and no sample."""
    done = subprocess.run([kprof, "report", path, "--page", "timeline"], capture_output=True, text=True, check=False)
    check(done.returncode == 106 and "none of these launches has samples over time" in done.stderr,
          f"{path.name}: the timeline page ends with {done.returncode}: {done.stderr}")


def main():
    source, write_fixture, kprof = pathlib.Path(sys.argv[1]), *sys.argv[2:]
    golden = source / "tests/golden"
    for name in ("details-long.csv", "raw-long.csv"):
        check_floats(golden / name, lambda header: ["launch", "cc", "grid_x", "value"])
    for name in ("details-wide.csv", "raw-wide.csv"):
        check_floats(golden / name, lambda header: [column for column in header if "__" in column
                                                    and "fp64_dram_pct_of_roof" not in column])
    for name in ("details-long.csv", "details-wide.csv", "multiplexed-details-long.csv", "multiplexed-raw-wide.csv"):
        check_texts(golden / name)
    check_floats(golden / "statistics-long.csv", lambda header: ["minimum", "maximum", "average", "sum"])
    check_floats(golden / "summary-long.csv", lambda header: ["gain_pct", "time", "launches", "median", "limit_pct"])
    check_csv(golden / "session-long.csv")
    check_floats(golden / "multiplexed-details-long.csv", lambda header: ["value", "samples", "mad"])
    check_floats(golden / "multiplexed-statistics-long.csv",
                 lambda header: ["samples", "minimum", "maximum", "average"])
    check_floats(golden / "diff.csv", lambda header: ["p", "baseline", "new", "change_pct", "low_pct", "new_mad"])
    check_ncu(golden)
    check_ncu_source(golden, source / "tests/fixtures/source")
    check_recorded_source(source / "tests/fixtures/source", kprof)
    for path in sorted(golden.glob("*.md")):
        check_markdown(path)
    schema = json.loads((source / "docs/report.schema.json").read_text())
    check_floats(golden / "source.csv",
                 lambda header: ["line", "samples", "samples_pct", "instructions", "excess_sectors"])
    for page in ("details", "raw", "summary", "sources", "source", "source-details", "session",
                 "raw-v1", "raw-v2", "multiplexed-details", "multiplexed-raw", "multiplexed-summary", "diff",
                 "statistics", "multiplexed-statistics"):
        check_json(golden / f"{page}.json", schema)
    check_lines(golden / "raw.jsonl", golden / "raw.json")
    check_lines(golden / "multiplexed-raw.jsonl", golden / "multiplexed-raw.json")
    for name in ("statistics.prom", "multiplexed-statistics.prom"):
        check_prometheus(golden / name)
    for name in ("brief.jsonl", "multiplexed-brief.jsonl", "source-brief.jsonl"):
        check_brief(golden / name, schema)
    check_trace(golden / "raw-trace.json", golden / "raw.json")
    check_examples(source, write_fixture)
    for name in ("libraries-h200", "further-h200"):
        check_same_values(source / f"tests/report/findings/{name}.kprof", kprof)
    check_callers(source / "tests/fixtures/source/source.kprof", kprof)
    check_nothing_sampled(source / "tests/report/findings/further-h200.kprof", kprof)
    check_trace_with_instructions(source, write_fixture, kprof)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
