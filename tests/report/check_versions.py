#!/usr/bin/env python3
"""Reports of older versions of the schema tell what those of this version tell, as far as they have it. They are made
of reports of this version, by the statements of tests/fixtures/schemas.sql, and some are those of older versions
themselves. Usage: check_versions.py SOURCE_DIR WRITE_FIXTURE KPROF"""
import collections
import csv
import io
import json
import lzma
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1])
sys.path.append(str(SOURCE / "tests"))
from tries import some

WRITE_FIXTURE, KPROF = sys.argv[2:4]
FIXTURES = SOURCE / "tests/fixtures"
APPLICATION = 0x6b707266
NEWEST = int(re.search(r"KPROF_SCHEMA_VERSION (\d+)", (SOURCE / "src/core/fields.h").read_text())[1])
FORMER_NAMES = {("kernel", "registers_per_thread"): "registers_per_thread_compiled"}
# The first versions that have what pages, and tables of `kprof stats`, tell of.
PASSES, NVTX, SOURCE_LINES, STACKS, TRACES, SAMPLES, MANAGED, CALLERS = 2, 6, 7, 8, 9, 10, 11, 12
STATS_SINCE = {"pm_sampling_sum": SAMPLES, "pm_sampling_steps": SAMPLES, "um_sum": MANAGED, "um_total_sum": MANAGED,
               "um_cpu_page_faults_sum": MANAGED, "kern_line_sum": CALLERS, "call_line_sum": CALLERS}


def numbers(text):
    """The rows of a table of CSV, with numbers where they are some."""
    return [{key: float(value) if re.fullmatch(r"[\d.]+", value) else value for key, value in row.items()}
            for row in csv.DictReader(io.StringIO(text))]


# Of reports of this kind: what kprof tells, and the same from the tables.
ADDED_UP = {
    "trace": (lambda figures: figures["tables"]["cuda_gpu_kern_sum"], ("Name", "Instances", "Total Time (ns)"),
              "SELECT demangled, count(*), sum(end_ns - start_ns) FROM trace_kernel JOIN trace_name n ON "
              "n.id = name_id GROUP BY 1"),
    "census": (lambda figures: numbers(figures["census"]), ("kernel", "launches", "time"),
               "SELECT demangled, sum(launches), sum(total_ns) FROM census JOIN kernel k ON k.id = kernel_id "
               "GROUP BY 1"),
    "stack": (lambda figures: [{"function": function, "line": re.sub(r"^stack \d+, |, from .*", "", group),
                                "launches": int(launches)} for function, group, launches in figures["stacks"]],
              ("function", "line", "launches"),
              "SELECT function, line, count(*) FROM launch_stack JOIN stack s ON s.id = stack_id JOIN launch l ON "
              "l.id = launch_id JOIN kernel k ON k.id = kernel_id GROUP BY 1, stack_id")}


def read_schemas():
    """By version, the statement of each table."""
    text = (FIXTURES / "schemas.sql").read_text()
    versions, tables = {}, {}
    for part in re.split(r"^-- version ", text, flags=re.M)[1:]:
        number, statements = part.split("\n", 1)
        for statement in statements.splitlines():
            tables = {**tables, re.match(r"CREATE TABLE (\w+)\(", statement)[1]: statement.rstrip(";")}
        versions[int(number)] = tables
    return versions


SCHEMAS = read_schemas()


def columns_of(database, table):
    return [row[1] for row in database.execute(f"PRAGMA {table}")]


def mark(database, version):
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {version}")
    database.commit()
    database.close()


def make_older(path, older, version):
    """A report of `version` with what it can have of that at `path`."""
    database = sqlite3.connect(older)
    database.execute("ATTACH ? AS newer", (str(path),))
    for table, statement in SCHEMAS[version].items():
        database.execute(statement)
        names = columns_of(database, f"main.table_info({table})")
        newer = [FORMER_NAMES.get((table, name), name) for name in names]
        there = set(columns_of(database, f"newer.table_info({table})"))
        newer = [new if new in there else old for new, old in zip(newer, names)]
        database.execute(f"INSERT INTO main.{table} SELECT {', '.join(newer)} FROM newer.{table}")
    database.commit()
    database.execute("DETACH newer")
    mark(database, version)


# Tables whose rows a merged report shares among those that were merged, or has for itself.
SHARED = {"run", "device", "kernel", "metric", "section", "source", "process_source", "pass", "schedule", "left_out",
          "stack", "trace_name"}


def count_rows(path, version):
    """By table, of those whose rows add up."""
    database = sqlite3.connect(path)
    counts = collections.Counter({table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                                  for table in SCHEMAS[version] if table not in SHARED})
    database.close()
    return counts


class Versions(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.dir = pathlib.Path(cls.folder.name)
        cls.newest = {}
        for name in ("", "multiplexed", "census", "trace"):
            path = cls.newest[name or "plain"] = cls.dir / f"{name or 'plain'}.kprof"
            subprocess.run([WRITE_FIXTURE, path, *([name] if name else [])], check=True)
        path = cls.newest["source"] = cls.dir / "source.kprof" # a whole copy, of this version
        subprocess.run([KPROF, "report", FIXTURES / "source/source.kprof", "-q", "-o", path], check=True)
        for name in cls.newest: # each has stacks
            with sqlite3.connect(cls.newest[name]) as database:
                database.execute("UPDATE process SET pid = pid + 10 * id")
                database.execute("INSERT INTO stack VALUES(1, 'train.py:7 in step', 'train.py', ?, 0, '')",
                                 ('[{"function":"step","file":"train.py","line":7}]',))
                database.execute("INSERT INTO launch_stack SELECT id, 1, 'launch' FROM launch")
                database.execute("INSERT INTO trace_caller SELECT NULL, process_id, correlation, 1 FROM trace_call")
            database.close()

    def kprof(self, *words):
        run = subprocess.run([KPROF, *map(str, words)], capture_output=True, text=True)
        self.assertIn(run.returncode, (0, 106, 110), (words, run.stderr)) # or it has none of that, and says so
        self.assertNotRegex(run.stderr, r"SQL|no such|malformed|near \"|damaged|syntax", words)
        self.assertTrue(run.stdout.strip() or run.stderr, words)
        return run.stdout

    def rows(self, keys, *words):
        """These columns of a page of CSV."""
        return [tuple(row[key] for key in keys.split()) for row in
                csv.DictReader(io.StringIO(self.kprof("report", *words, "--csv")))]

    def figures(self, path, version=NEWEST):
        """What a report of this version can tell, by the first version that can."""
        def launches(group):
            return self.rows("function group launches", path, *by_name, "--group-by", group)

        def tables():
            found = json.loads(self.kprof("stats", path, "--json") or "{}")
            return {name: rows for name, rows in found.items() if STATS_SINCE.get(name, TRACES) <= version}

        def slices():
            events = json.loads(self.kprof("export", path, "--to", "chrome") or "{}").get("traceEvents", [])
            return sorted((event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X")

        by_name = ("--page", "summary", "--sort", "name") # findings that order kernels may need what older ones lack
        details = self.rows("launch section metric value unit", path, "--page", "details")
        pages = {
            ("raw", 1): lambda: self.rows("launch function metric value unit", path, "--page", "raw"),
            ("details", 1): lambda: [row for row in details
                                     if not row[2].startswith(("finding__", "verdict__", "not_evaluated__"))],
            ("passes", PASSES): lambda: self.rows("launch metric passes", path, "--page", "raw"),
            ("statistics", 1): lambda: self.rows("function metric count minimum maximum average", path, "--page",
                                                 "statistics"),
            ("summary", 1): lambda: self.rows("function measured minimum maximum limit_pct", path, *by_name),
            ("times", TRACES if "census" in path.name else 1): lambda: self.rows(
                "function launches time time_share_pct", path, *by_name),
            ("nvtx", NVTX): lambda: launches("nvtx"),
            ("source", SOURCE_LINES): lambda: self.kprof("report", path, "--page", "source", "--csv"),
            ("stacks", STACKS): lambda: launches("stack"),
            ("census", TRACES): lambda: self.kprof("report", path, "--page", "census", "--csv"),
            ("timeline", TRACES): lambda: self.kprof("report", path, "--page", "timeline", "--csv"),
            ("tables", TRACES): tables,
            ("slices", MANAGED): slices}
        return {name: page() for (name, since), page in pages.items() if since <= version}

    def assert_same(self, older, newer, version):
        for name, figures in older.items():
            expected = newer[name]
            if name == "tables":
                expected = {table: rows for table, rows in expected.items()
                            if STATS_SINCE.get(table, TRACES) <= version}
            self.assertEqual(figures, expected, name)

    def test_the_schema_is_that_of_its_version(self):
        """A change of tables is a new version: else reports of this version are called damaged."""
        with sqlite3.connect(self.newest["plain"]) as database:
            tables = dict(database.execute("SELECT name, sql FROM sqlite_schema WHERE type='table' AND name NOT LIKE "
                                           "'sqlite\\_%' ESCAPE '\\'"))
            version = database.execute("PRAGMA user_version").fetchone()[0]
        database.close()
        self.assertEqual(version, NEWEST)
        advice = ("raise KPROF_SCHEMA_VERSION in src/core/fields.h, and put the statements of the tables that are new "
                  "or have changed behind a line of that version in tests/fixtures/schemas.sql")
        self.assertEqual(max(SCHEMAS), NEWEST, advice)
        self.assertEqual(tables, SCHEMAS[NEWEST], advice)

    def test_older_ones_tell_the_same(self):
        versions = some(range(1, NEWEST), 4)
        for name, newest in self.newest.items():
            expected = self.figures(newest)
            for version in versions:
                with self.subTest(name, version=version):
                    older = self.dir / f"{name}-v{version}.kprof"
                    make_older(newest, older, version)
                    self.assert_same(self.figures(older, version), expected, version)

    def test_all_are_merged_whole(self):
        other = self.dir / "other.kprof"
        subprocess.run([WRITE_FIXTURE, other], check=True)
        with sqlite3.connect(other) as database: # it is another run
            database.execute("UPDATE process SET pid = pid + 1000")
        database.close()
        versions = [*some(range(1, NEWEST), 1), NEWEST]
        for name, newest in self.newest.items():
            for version in versions:
                with self.subTest(name, version=version):
                    older, merged = self.dir / "older.kprof", self.dir / "merged.kprof"
                    older.unlink(missing_ok=True)
                    make_older(newest, older, version)
                    self.kprof("merge", older, other, "-f", "-o", merged)
                    rows = count_rows(older, version) + count_rows(other, version)
                    self.assertEqual(count_rows(merged, version), rows)
                    self.assertLessEqual(set(self.values(older)), set(self.values(merged)))
                    part = set(self.values(older, "--launch", "0")) if name != "trace" else set()
                    self.assertEqual(part, {row for row in self.values(older) if row[0] == "0"})

    def test_code_that_is_the_same_is_merged_once(self):
        """What differs in any way stays apart, and values stay those of their own process."""
        own = SOURCE / "samples/transpose-before-h200.kprof"
        changes = {"same": "", "text": "UPDATE code_instruction SET text = 'NOP' WHERE offset = 16",
                   "line": "UPDATE code_line SET line = line + 1 WHERE offset = 16",
                   "edited": "UPDATE code_file SET hash = '1' WHERE id = 1",
                   "waits": "DELETE FROM code_wait WHERE offset = (SELECT max(offset) FROM code_wait)"}
        tables = ("code", "code_function", "code_instruction", "code_line", "code_wait", "code_ptx", "code_file")
        count = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})" for table in tables)
        alone = sqlite3.connect(own).execute(count).fetchone()
        for name, statement in changes.items():
            with self.subTest(name):
                other, merged = self.dir / "other.kprof", self.dir / "merged.kprof"
                shutil.copy(own, other)
                other.chmod(0o600)
                with sqlite3.connect(other) as database:
                    database.execute("UPDATE process SET pid = pid + 1")
                    database.execute("UPDATE instruction_value SET value = 2 * value")
                    database.execute(statement)
                database.close()
                self.kprof("merge", own, other, "-f", "-o", merged)
                database = sqlite3.connect(merged)
                times = [found / once for found, once in zip(database.execute(count).fetchone(), alone)]
                self.assertEqual(times[0], 1 if name == "same" else 2)
                self.assertEqual(times[6], 1.5 if name == "edited" else 1)
                self.assertEqual(database.execute("PRAGMA foreign_key_check").fetchall(), [])
                database.close()
                rows = self.rows("process_id instructions location", merged, "--page", "source", "--all")
                sums = {pid: sum(int(row[1] or 0) for row in rows if row[0] == pid) for pid in {row[0] for row in rows}}
                self.assertEqual(len(sums), 2)
                self.assertEqual(max(sums.values()), 2 * min(sums.values()))

    def values(self, path, *options):
        return self.rows("launch function metric value", path, "--page", "raw", *options)

    def test_reports_of_older_versions(self):
        """They are as those versions wrote them. What they tell is added up again here."""
        for path in sorted((FIXTURES / "older").glob("*.sql.xz")):
            with self.subTest(path.name):
                report = self.dir / f"recorded-{path.name.split('.')[0]}.kprof"
                database = sqlite3.connect(report)
                database.executescript(lzma.decompress(path.read_bytes()).decode())
                version, = database.execute("PRAGMA user_version").fetchone()
                figures = self.figures(report, version)
                values = database.execute("SELECT launch_id, name, format('%.15g', value) FROM value JOIN metric ON "
                                          "metric.id = metric_id WHERE value IS NOT NULL").fetchall()
                self.assertEqual(sorted((int(launch), metric, value)
                                        for launch, _, metric, value, _ in figures["raw"] if value), sorted(values))
                for figure, (page, keys, sql) in ADDED_UP.items():
                    if path.name.startswith(figure):
                        rows = page(figures)
                        self.assertTrue(rows)
                        self.assertEqual(sorted(tuple(row[key] for key in keys) for row in rows),
                                         sorted(database.execute(sql).fetchall()), figure)
                database.close()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
