#!/usr/bin/env python3
"""Opens the page that `kprof export --to timeline` writes, and works with it as people do: names that are HTML do
nothing, search finds, a click tells, the wheel zooms. Skipped (77) without a Chromium. Usage: check_timeline.py
WRITE_FIXTURE KPROF"""
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import browser

ROWS = "ordered.map(row => [names.get('t' + key(row)), row.events.length, row.depth])"
ATTACK = "</script><img src=x onerror=alert(1)>"
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def try_page(page, path):
    page.open(path)
    page.settle()
    check(page.complaints() == [] and page.requests() == [], f"{page.complaints()}, {page.requests()}")
    rows = page.evaluate(ROWS)
    check(rows == [["thread 4242", 28, 2], ["stream 7 (context 1)", 12, 1], ["stream 8 (context 1)", 3, 1]],
          f"rows are {rows}")
    check(page.evaluate("document.images.length") == 0, "a name became HTML")
    page.evaluate("document.getElementById('search').focus()")
    page.call("Input.insertText", text="onerror")
    page.settle()
    found = page.evaluate("document.getElementById('found').textContent")
    detail = page.evaluate("document.getElementById('detail').textContent")
    check(found == "3 found" and ATTACK in detail and "takes 100.000 us" in detail, f"{found}: {detail}")
    page.press("Enter", 13)
    check("takes 110.000 us" in page.evaluate("document.getElementById('detail').textContent"), "Enter does not go on")
    box = page.evaluate("[canvas.getBoundingClientRect().x, canvas.getBoundingClientRect().y]")
    before = page.evaluate("to - from")
    page.mouse("mouseWheel", box[0] + 600, box[1] + 60, deltaX=0, deltaY=-100)
    page.settle()
    check(page.evaluate("to - from") < before, "the wheel does not zoom")
    page.evaluate("document.getElementById('all').click()")
    check(page.evaluate("to - from") == before, "All does not show all")
    x, y = page.evaluate("(e => [x(e.ts + e.dur / 2), rows.get(key(e)).y + e.level * ROW + 5])"
                         "(ordered[1].events.find(e => e.cat === 'gpu_memcpy'))")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, box[0] + x, box[1] + y, button="left", clickCount=1)
    detail = page.evaluate("document.getElementById('detail').textContent")
    check("Memcpy Host-to-Device" in detail, f"a click shows {detail}")
    check(page.complaints() == [], f"{page.complaints()}")
    page.open(path, width=400)
    page.settle()
    check(page.evaluate("document.documentElement.scrollWidth") <= 400, "a narrow window has to be scrolled sideways")


def main():
    write_fixture, kprof = sys.argv[1:]
    if not browser.find():
        print("skipped: no Chromium")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        report, html = (str(pathlib.Path(folder) / name) for name in ("trace.kprof", "timeline.html"))
        subprocess.run([write_fixture, report, "trace"], check=True)
        with sqlite3.connect(report) as database:
            database.execute("UPDATE trace_name SET demangled=? WHERE function='scale'", (ATTACK,))
        database.close()
        subprocess.run([kprof, "export", report, "--to", "timeline", "-q", "-o", html], check=True)
        try:
            page = browser.Browser()
        except browser.NoBrowser as reason:
            print(f"skipped: {reason}")
            return 77
        try:
            try_page(page, html)
        finally:
            page.close()
    print("\n".join(failures), end="")
    return 1 if failures else 0


sys.exit(main())
