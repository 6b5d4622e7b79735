"""What the tests of the HTML page share: reports with hostile names and with many launches, and the data of a page."""
import json
import re
import shutil
import sqlite3
import subprocess

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"><!-- <script>'&\\ \u2028"
BLOCK = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def write_page(kprof, *arguments):
    return subprocess.run([kprof, *map(str, arguments)], capture_output=True, text=True, check=False)


def change(report, target, *statements):
    """A copy of a report after SQL statements; a statement is a text, or a tuple with its values."""
    shutil.copy(report, target)
    target.chmod(0o600)
    with sqlite3.connect(target) as database:
        for statement in statements:
            database.execute(*([statement] if isinstance(statement, str) else statement))
    database.close()
    return target


def make_hostile(report, target):
    """Every name in the report that a program chooses could end the data block, or is a tag."""
    return change(report, target, ("UPDATE kernel SET demangled=?1, function=?1", [HOSTILE]),
                  ("UPDATE process SET name=?1, command_line=?1, host=?1", [HOSTILE]),
                  ("UPDATE run SET command_line=?1, working_directory=?1", [HOSTILE]),
                  ("UPDATE device SET name=?1", [HOSTILE]), ("UPDATE launch SET reason=?1", [HOSTILE]))


def make_many(report, target, count):
    """The report with copies of its first launch, `count` launches in all, one nanosecond longer each."""
    with sqlite3.connect(report) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(launch)") if row[1] != "id"]
        first, last = database.execute("SELECT min(id), max(id) FROM launch").fetchone()
    database.close()
    copies = count - (last - first + 1)
    numbers = f"WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < {copies})"
    names = ", ".join(columns)
    return change(
        report, target, f"{numbers} INSERT INTO launch (id, {names}) SELECT {last} + n, {names} FROM copy, launch "
        f"WHERE id = {first}",
        f"{numbers} INSERT INTO value (launch_id, metric_id, value) SELECT {last} + n, metric_id, "
        "value + n * (metric_id = (SELECT id FROM metric WHERE name = 'gpu__time_duration.sum')) FROM copy, value "
        f"WHERE launch_id = {first}")


def data_of(path):
    """The text of the data block and what it holds."""
    text = BLOCK.search(path.read_text(encoding="utf-8"))[1]
    return text, json.loads(text)
