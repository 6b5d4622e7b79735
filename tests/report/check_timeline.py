#!/usr/bin/env python3
"""Opens the page that `kprof export --to timeline` writes, and works with it as people do: names that are HTML do
nothing, search finds, a click tells, wheel and keys zoom. In the page of a report that has counters, too, it follows
the links between kernels, counters, source and timeline. Skipped (77) without a Chromium. Usage: check_timeline.py
WRITE_FIXTURE KPROF"""
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import browser
from tries import TRIES_SOME

ATTACK = "</script><img src=x onerror=alert(1)>"
ADD = "vectorAdd(float const*, float const*, float*, int)"
COUNTED = str(pathlib.Path(__file__).parents[1] / "fixtures/source/source.kprof")
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def text_of(page, place):
    return page.evaluate(f"document.querySelector('{place}')?.textContent")


def click_on(page, us, row):
    """Click at a time on a row, by the sizes that program.js gives labels and rows."""
    x, y, width = page.evaluate("(box => [box.x, box.y, box.width])(document.querySelector('canvas')"
                                ".getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, x + 190 + us / 3000 * (width - 190), y + 26 + row * 18 + 5, button="left", clickCount=1)
    page.settle()


def try_page(page, path):
    page.open(path)
    page.settle()
    check(page.complaints() == [] and page.requests() == [], f"{page.complaints()}, {page.requests()}")
    label = page.evaluate("document.querySelector('canvas').getAttribute('aria-label')")
    check(label.startswith("6 rows of streams and threads, and 2 of counters;"), f"the rows are {label}")
    check(text_of(page, "#span") == "0 ns to 3 ms, 3 ms", f"it shows {text_of(page, '#span')}")
    lacks = text_of(page, "#lacks")
    check(lacks == "activities lost: 5; the page is without them. kernels, copies, sets and graphs whose times CUPTI "
          "does not know: 1; the page is without them", f"the page lacks {lacks}")
    check(page.evaluate("document.images.length") == 0, "a name became HTML")
    legend = text_of(page, "#legend").split("\n")
    check("".join(legend) == "NVTX rangescallskernelscopiesmemory setsmanaged memoryno sample",
          f"the colours are {legend}")
    page.evaluate("document.getElementById('search').focus()")
    page.call("Input.insertText", text="onerror")
    page.settle()
    found, detail = text_of(page, "#found"), text_of(page, "#detail")
    check(found == "3 found" and ATTACK in detail and "takes 100 us" in detail, f"{found}: {detail}")
    page.press("Enter", 13)
    check("takes 110 us" in text_of(page, "#detail"), "Enter does not go on")
    x, y = page.evaluate("(box => [box.x, box.y])(document.querySelector('canvas').getBoundingClientRect())")
    page.mouse("mouseWheel", x + 600, y + 40, deltaX=0, deltaY=-100)
    page.settle()
    check(text_of(page, "#span").endswith(", 3 ms"), "the wheel zooms where it has to scroll the page")
    page.mouse("mouseWheel", x + 600, y + 40, deltaX=0, deltaY=-100, modifiers=2)
    page.settle()
    check(text_of(page, "#span").endswith(", 2.40 ms"), f"the wheel zooms to {text_of(page, '#span')}")
    page.evaluate("document.getElementById('all').click()")
    check(text_of(page, "#span").endswith(", 3 ms"), "All does not show all")
    page.evaluate("document.querySelector('canvas').dispatchEvent(new KeyboardEvent('keydown', {key: '+'}))")
    check(text_of(page, "#span").endswith(", 2.40 ms"), f"+ zooms to {text_of(page, '#span')}")
    page.evaluate("document.getElementById('all').click()")
    page.evaluate("document.querySelector('[title=\"Zoom in\"]').click()")
    check(text_of(page, "#span").endswith(", 1.50 ms"), f"a button zooms to {text_of(page, '#span')}")
    page.evaluate("document.getElementById('all').click()")
    # The thread has three levels, for calls lie in ranges; a gap of a third of a row lies before the stream.
    for us, row, name in ((50, 0, "step"), (50, 1, "cudaMemcpy"), (150, 1, "net:forward"),
                          (2890, 1, "net:forward"), (60, 3.4, "Memcpy Host-to-Device"), (50, 6.1, "Host-to-Device"),
                          (2225, 7.4, "Device-to-Host"), (1002, 8.8, "GPU page fault"),
                          (200, 8.8, "CPU page fault")):
        click_on(page, us, row)
        check(text_of(page, "#detail").startswith(name), f"a click shows {text_of(page, '#detail')}, not {name}")
        check(us != 2890 or "StartEnd, not ended" in text_of(page, "#detail"), text_of(page, "#detail"))
    # Counters lie below the rows, two rows high each.
    for us, row, name, value in ((450, 10.1, "SMs Busy", "40 % at "), (1550, 10.1, "SMs Busy", "not known at "),
                                 (250, 12.4, "DRAM Read", "not known at "), (2950, 12.4, "DRAM Read", "45 % at ")):
        click_on(page, us, row)
        detail = text_of(page, "#detail")
        check(detail.startswith(name) and value in detail, f"a click shows {detail}, not {name}: {value}")
    check(page.complaints() == [], f"{page.complaints()}")
    page.open(path, width=400)
    page.settle()
    check(page.evaluate("document.documentElement.scrollWidth") <= 400, "a narrow window has to be scrolled sideways")


# Draw anew, and list each text with its width, that of the canvas, and the rectangle that was drawn before it.
DRAWN = """(() => {
    const { prototype } = CanvasRenderingContext2D, { fillText, fillRect } = prototype, seen = [];
    let bar = [0, 0, 0, 0];
    prototype.fillRect = function (...box) { bar = box; fillRect.apply(this, box); };
    prototype.fillText = function (text, x, y, most) {
        seen.push({ text, x, y, width: this.measureText(text).width, most: most ?? null, bar });
        fillText.call(this, text, x, y);
    };
    dispatchEvent(new Event("resize"));
    Object.assign(prototype, { fillText, fillRect });
    return [seen, document.querySelector("canvas").clientWidth];
})()"""


def try_labels(page, path):
    """No name on the timeline is cut off or squeezed: one that is too long says so by an ellipsis."""
    for width, expected in (1280, ["cudaDeviceSync\u2026", "vectorAd\u2026", "managed memory, to the host"]), (
            400, ["managed memory, to the GPU", "managed memory, faults", "stream 7 (context 1)", "0 to 90 %"]):
        page.open(path, width=width)
        page.settle()
        drawn, canvas = page.evaluate(DRAWN)
        texts = {label["text"] for label in drawn}
        check(set(expected) <= texts, f"at {width} pixels the labels are {texts}")
        left = min(label["bar"][0] for label in drawn if label["bar"][0] > 0)
        for label in drawn:
            begin, end = label["x"], label["x"] + label["width"]
            bar, is_axis = label["bar"], label["y"] == 12
            limit = canvas if is_axis else left if begin == 8 else bar[0] + bar[2]
            check(label["most"] is None and end <= limit, f"at {width} pixels {label} is cut off at {limit}")


def try_launch(page, path):
    """Likewise what a launch has over time."""
    for width in 1280, 400:
        page.open(f"{path}#kernel-0", width=width)
        for _ in range(3):
            page.settle()
        link = page.evaluate("[...document.querySelectorAll('a')].map(a => a.hash).find(to => /^#launch/.test(to))")
        page.evaluate(f"location.hash = '{link}'")
        for _ in range(3):
            page.settle()
        box, texts = page.evaluate(
            "(() => { const box = document.querySelector('#section-timeline svg'); const edge = (it) => "
            "it.getBoundingClientRect().right; return [edge(box), [...box.querySelectorAll('text')].map(text => "
            "[text.textContent, edge(text)])]; })()")
        check(any(text.endswith(", 0 to 100") for text, _ in texts), f"at {width} pixels the names are {texts}")
        check(any("dram" in text and text.endswith(", 0") for text, _ in texts), f"without any DRAM it says {texts}")
        check(all(right <= box for _, right in texts), f"at {width} pixels, of {box}, these are cut off: {texts}")


def follow(page, place):
    page.evaluate(f"document.querySelector('{place}').click()")
    page.settle()
    return page.evaluate("location.hash"), text_of(page, "h1")


def try_joined(page, path):
    page.open(path)
    page.settle()
    rows = page.evaluate("[...document.querySelectorAll('#where tbody tr')].map(row => [...row.children].map("
                         "cell => cell.innerText))")
    check([[cell.split("\n")[0] for cell in row] for row in rows] == [
        [ADD, "64.50 %", "600 us", "3", "200 us", "1", "62.46 us", "DRAM bandwidth", "Warp slots stay empty",
         "counters source timeline"],
        ["void scale<float>(float*, float, int)", "35.50 %", "330 us", "3", "110 us", "0", "n/a", "n/a", "n/a",
         "timeline"]], f"the kernels are {rows}")
    check("'regex:^(scale)$'" in text_of(page, "#count-command"), "no command")
    check("activities lost: 5; the page is without them" in text_of(page, "#where"), "what is lost is not told")
    titles = page.evaluate("[...document.querySelectorAll('h2')].map(title => title.textContent)")
    check({"GPU Use", "Goals", "Steps (NVTX)", "Transfers", "Memory", "GPU Utilization over Time",
           "GPU Utilization of Steps (NVTX)"} <= set(titles), f"the titles are {titles}")
    check("Kernels by Line" not in titles, "a table without rows has a title")
    check("Over Time" not in page.evaluate("document.body.innerText"), "lines of characters are shown")
    check(follow(page, "#where td a") == ("#kernel-0", ADD), f"counters lead to {page.evaluate('location.hash')}")
    check("3 launches of (65536, 1, 1)x(256, 1, 1), 600 us" in text_of(page, "#traced"), text_of(page, "#traced"))
    check(follow(page, "#traced a")[0].startswith("#source-"), "no way to the source")
    page.evaluate("location.hash = '#kernel-0'")
    page.settle()
    check(follow(page, "#traced a:last-of-type") == ("#timeline/0", "Timeline"), "no way to the timeline")
    check(text_of(page, "#found") == "3 found" and text_of(page, "#detail").startswith(ADD), "not found there")
    check(follow(page, "#detail a")[0] == "#kernel-0", "no way back")
    check(page.complaints() == [] and page.requests() == [], f"{page.complaints()}, {page.requests()}")
    page.open(path, width=400)
    page.settle()
    cells = "[...document.querySelectorAll('.cards tbody tr > [data-label]')]"
    names = ".map(cell => cell.dataset.label)"
    hidden = page.evaluate(f"{cells}.filter(cell => cell.getBoundingClientRect().right > "
                           f"document.body.clientWidth){names}")
    check(hidden == [], f"in a narrow window these are cut: {hidden}")
    heads = page.evaluate("Object.fromEntries([...document.querySelectorAll('.cards table')].map(table => "
                          "[table.caption.innerText, table.querySelector('tbody th')?.dataset.label]))")
    check([heads[title] for title in ("Steps (NVTX)", "GPU Idle Time by Cause", "Transfers")] == ["Range", "Cause",
          "Operation"], f"cards begin with {heads}")
    unnamed = page.evaluate(f"{cells}.filter(cell => cell.classList.contains('number') && "
                            f"getComputedStyle(cell, '::before').content === 'none'){names}")
    check(unnamed == [], f"in a narrow window these have no name: {unnamed}")


def add_threads(report, count):
    """One call in each of so many more threads; that in the last one has a name of its own."""
    with sqlite3.connect(report) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(trace_call)")]
        row = dict(zip(columns, database.execute("SELECT * FROM trace_call ORDER BY id DESC LIMIT 1").fetchone()))
        name = database.execute("SELECT max(id) + 1 FROM trace_name").fetchone()[0]
        database.execute("INSERT INTO trace_name VALUES (?1, 'last', 'last', 'last')", [name])
        calls = [{**row, "id": row["id"] + i, "thread": 100_000 + i, "name_id": name if i == count else row["name_id"]}
                 for i in range(1, count + 1)]
        database.executemany(f"INSERT INTO trace_call VALUES ({', '.join('?' * len(columns))})",
                             [list(call.values()) for call in calls])
    database.close()


def try_many_rows(page, path):
    """What is told of an activity stays in sight however many rows there are, and so do the axis and the search."""
    page.open(path)
    page.settle()
    height = page.evaluate("document.querySelector('canvas').offsetHeight")
    check(height < 900, f"the canvas is {height} pixels high")
    page.evaluate("document.getElementById('search').focus()")
    page.call("Input.insertText", text="last")
    for _ in range(3):
        page.settle()
    places = page.evaluate("['search', 'detail'].map(id => document.getElementById(id).getBoundingClientRect())"
                           ".map(box => [box.top, box.bottom])")
    check(all(0 <= top < bottom <= 900 for top, bottom in places), f"search and detail are at {places}")
    check(text_of(page, "#detail").startswith("last"), f"found {text_of(page, '#detail')}")
    page.evaluate("document.getElementById('all').click()")
    page.settle()
    found = set()
    for row in range(0, height // 18 - 2):  # a click finds it where it is drawn
        click_on(page, 2602, row)
        found.add(page.evaluate("document.querySelector('#detail code')?.textContent"))
    check("last" in found, f"clicks find {found}")


def try_limit(kprof, report, path):
    """Kinds that have few activities leave their part of a page of 200,000 to others."""
    with sqlite3.connect(report) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(trace_call)") if row[1] != "id"]
        names = ", ".join(columns)
        database.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 210000) INSERT INTO "
                         f"trace_call ({names}) SELECT {names} FROM n, (SELECT * FROM trace_call LIMIT 1)")
    database.close()
    subprocess.run([kprof, "export", report, "--to", "timeline", "-q", "-o", path], check=True)
    shown = pathlib.Path(path).read_text().count('"ph":"X"')
    check(199_000 < shown <= 200_000, f"{shown} activities are shown")


def main():
    write_fixture, kprof = sys.argv[1:]
    if not browser.find():
        print("skipped: no Chromium")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        report, html, both, joined = (str(pathlib.Path(folder) / name) for name in (
            "trace.kprof", "timeline.html", "both.kprof", "joined.html"))
        subprocess.run([write_fixture, report, "trace"], check=True)
        subprocess.run([kprof, "merge", "-q", report, COUNTED, "-o", both], check=True)
        subprocess.run([kprof, "report", both, "-q", "--html", joined], check=True)
        with sqlite3.connect(report) as database:
            database.execute("UPDATE trace_name SET demangled=? WHERE function='scale'", (ATTACK,))
        database.close()
        subprocess.run([kprof, "export", report, "--to", "timeline", "-q", "-o", html], check=True)
        many, counted = (str(pathlib.Path(folder) / name) for name in ("many.html", "counted.html"))
        subprocess.run([write_fixture, f"{counted}.kprof", "census"], check=True)
        with sqlite3.connect(f"{counted}.kprof") as database:
            database.execute("UPDATE timeline SET value=0 WHERE metric_id IN (SELECT id FROM metric WHERE name LIKE "
                             "'dram%')")
        database.close()
        subprocess.run([kprof, "report", f"{counted}.kprof", "-q", "--html", counted], check=True)
        add_threads(report, 300)
        subprocess.run([kprof, "export", report, "--to", "timeline", "-q", "-o", many], check=True)
        if not TRIES_SOME:
            try_limit(kprof, report, str(pathlib.Path(folder) / "limit.html"))
        try:
            page = browser.Browser()
        except browser.NoBrowser as reason:
            print(f"skipped: {reason}")
            return 77
        try:
            try_page(page, html)
            try_labels(page, html)
            try_launch(page, counted)
            try_joined(page, joined)
            try_many_rows(page, many)
        finally:
            page.close()
    print("\n".join(failures), end="")
    return 1 if failures else 0


sys.exit(main())
