#!/usr/bin/env python3
"""Holds what `kprof export --to chrome` writes to the trace event format: the members that each kind of event has to
have, names for all rows, slices that nest, flows that lead from a slice to a slice; and compares it with the records.
Usage: check_chrome.py WRITE_FIXTURE KPROF"""
import collections
import json
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

REQUIRED = {"M": {"name", "pid", "tid", "args"}, "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"},
            "s": {"name", "cat", "id", "pid", "tid", "ts"}, "f": {"name", "cat", "id", "pid", "tid", "ts", "bp"},
            "b": {"name", "cat", "id", "pid", "tid", "ts"}, "e": {"name", "cat", "id", "pid", "tid", "ts"},
            "C": {"name", "pid", "tid", "ts", "args"}, "i": {"name", "cat", "s", "pid", "tid", "ts", "args"}}
# Each kind of event that there may be: its phase, and its category or, without one, its name.
KINDS = {("M", "process_name"), ("M", "thread_name"), ("X", "kernel"), ("X", "gpu_memcpy"), ("X", "gpu_memset"),
         ("X", "managed"), ("X", "cuda_runtime"), ("X", "cuda_driver"), ("X", "user_annotation"),
         ("i", "user_annotation"), ("i", "managed"), ("b", "user_annotation"), ("e", "user_annotation"),
         ("b", "gpu_user_annotation"), ("e", "gpu_user_annotation"), ("b", "overhead"), ("e", "overhead"),
         ("s", "ac2g"), ("f", "ac2g"), ("C", "allocated Device memory"), ("C", "queue depth"), ("C", "SMs Busy"),
         ("C", "DRAM Read")}
MOST = 2 ** 53 - 1 # a whole number that JavaScript knows
failures = []


def check(condition, message):
    if not condition:
        failures.append(message)


def check_members(event):
    kind = event.get("ph")
    check(kind in REQUIRED and REQUIRED[kind] | {"ph"} == set(event), f"an event is {event}")
    check(all(type(event.get(key, 0)) is int and 0 <= event.get(key, 0) <= MOST for key in ("pid", "tid", "id")) and
          max(event["pid"], event["tid"]) < 2 ** 31, f"a number of {event}")
    check(all(isinstance(event.get(key, "text"), str) and event.get(key, "text") for key in ("name", "cat")),
          f"a text of {event}")
    check(isinstance(event.get("args", {}), dict), f"arguments of {event}")
    check(all(isinstance(event.get(key, 0), (int, float)) and event.get(key, 0) >= 0 for key in ("ts", "dur")),
          f"a time of {event}")
    check(kind != "C" or all(isinstance(value, (int, float)) for value in event["args"].values()), f"counter {event}")
    check(kind != "C" or len(event["args"]) == 1, f"counter {event}")
    check(kind != "f" or event["bp"] == "e", f"{event} does not bind to the slice around it")
    check(kind != "i" or event["s"] == "t", f"{event} is no mark of a thread")
    check(kind != "M" or list(event["args"]) == ["name"] and event["args"]["name"], f"name {event}")


def check_pairs(events):
    """Events that are told their ends: each end has a begin of its category, number and name, and before it."""
    begins = {(event["cat"], event["id"]): event for event in events if event["ph"] == "b"}
    check(len(begins) == sum(event["ph"] == "b" for event in events), "two begins have one number")
    ended = collections.Counter()
    for event in events:
        if event["ph"] == "e":
            begin = begins.get((event["cat"], event["id"]), {})
            ended[event["cat"], event["id"]] += 1
            check((begin.get("name"), begin.get("pid")) == (event["name"], event["pid"]) and
                  begin["ts"] <= event["ts"], f"{event} ends {begin}")
    check(not ended or max(ended.values()) == 1, "something ends twice")


def check_counters(events):
    """A track has the values of one name and unit, in the order of time, and each process of a track has a name."""
    named = {event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"}
    tracks = collections.defaultdict(list)
    for event in events:
        check(event["pid"] in named, f"the process of {event} has no name")
        if event["ph"] == "C":
            tracks[event["pid"], event["name"]].append(event)
    for (_, name), track in tracks.items():
        check(len({tuple(event["args"]) for event in track}) == 1, f"{name} has several units")
        times = [event["ts"] for event in track]
        check(times == sorted(times), f"{name} goes back in time")


def check_rows(events):
    """Slices of a row nest, and each row and process has a name."""
    named = {(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"}
    rows = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], event["tid"]].append(event)
            check(not any(e["ts"] == event["ts"] and 0 < e["dur"] < event["dur"]
                          for e in rows[event["pid"], event["tid"]]),
                  f"{event} stands behind what lies in it")
    for (pid, tid), slices in rows.items():
        check(("thread_name", pid, tid) in named and ("process_name", pid, 0) in named, f"row {pid}, {tid} has no name")
        open_ends = []
        for event in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while open_ends and open_ends[-1] <= event["ts"] + 1e-6:
                open_ends.pop()
            check(not open_ends or end <= open_ends[-1] + 1e-6, f"{event} ends after the one around it")
            open_ends.append(end)
    return rows


def check_flows(events, rows):
    """Perfetto takes events of one time in the order of the file, so a flow stands behind the slice that it is of."""
    places = {id(event): place for place, event in enumerate(events)}
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = [event for event in events if event["ph"] == "f"]
    check(len(starts) == sum(event["ph"] == "s" for event in events), "two flows have one number")
    check({event["id"] for event in ends} == set(starts), "flows do not end, or do not begin")
    for event in [*starts.values(), *ends]:
        around = [s for s in rows[event["pid"], event["tid"]] if s["ts"] == event["ts"]]
        check(around and places[id(around[-1])] < places[id(event)], f"{event} is at the start of {around}")
        begins, category = event["ph"] == "s", around[-1]["cat"] if around else "" # the innermost
        check(category.startswith("cuda_") == begins, f"{event} is at a {category}")
    return ends


def check_records(events, database, ends):
    of = collections.Counter(event["cat"] for event in events if event["ph"] == "X")
    count = lambda table, where: database.execute(f"SELECT count(*) FROM trace_{table} WHERE {where}").fetchone()[0]
    known = "start_ns IS NOT NULL AND end_ns IS NOT NULL"
    wanted = {"kernel": count("kernel", known), "gpu_memcpy": count("copy", known), "gpu_memset": count("set", known),
              "cuda_runtime": count("call", "1"), "user_annotation": 3, "managed": 7}
    # By hand from trace_fixture.c: a step has work on the GPU for 411 us, "forward" for 321 us, also without an end.
    for category, lengths, unended in (("user_annotation", [100, 101], 1),
                                       ("gpu_user_annotation", [321, 321, 321, 411, 411, 411], 0)):
        begun, ended = ({event["id"]: event["ts"] for event in events
                         if event["ph"] == phase and event["cat"] == category} for phase in "be")
        check(len(set(begun) - set(ended)) == unended and
              sorted(round(ended[i] - begun[i]) for i in ended) == lengths,
              f"ranges of {category} are {begun} and {ended}")
    for category, place in (("user_annotation", (1000, 4242)), ("gpu_user_annotation", (1001, 0))):
        places = {(event["pid"], event["tid"]) for event in events if event.get("cat") == category}
        check(places == {place}, f"ranges of {category} are in {places}")
    check(of == wanted, f"{of} slices, not {wanted}")
    check(len(ends) == wanted["kernel"] + wanted["gpu_memcpy"] + wanted["gpu_memset"], f"{len(ends)} flows")
    total = sum(event["dur"] for event in events if event.get("cat") == "kernel")
    [(ns,)] = database.execute(f"SELECT sum(end_ns-start_ns) FROM trace_kernel WHERE {known}")
    check(abs(total - ns / 1e3) < 1e-3, f"kernels take {total} us, not {ns} ns")
    levels = [event["args"]["MB"] for event in events if event["ph"] == "C" and "allocated" in event["name"]]
    check(levels == [1, 0] * 3, f"memory is {levels}")
    for name, of_busy in (("SMs Busy", 1), ("DRAM Read", 0.5)): # by hand from trace_fixture.c
        told = [(round(event["ts"], 3), event["args"]["%"]) for event in events
                if event["ph"] == "C" and event["name"] == name]
        wanted = [(500.0 + 100 * i, i % 10 * 10 * of_busy) for i in range(30)
                  if i not in (15, 16) and (i, of_busy) != (2, 0.5)]
        check(told == wanted, f"{name} is {told}")
    depths = [event["args"]["asked for"] for event in events if event["ph"] == "C" and event["name"] == "queue depth"]
    check(max(depths) == 3 and depths[-1] == 0, f"depths are {depths}")


def exported(kprof, report):
    return json.loads(subprocess.run([kprof, "export", report, "--to", "chrome"], capture_output=True, text=True,
                                     check=True).stdout)


def check_each_kind(kprof, report):
    """With what the fixture lacks the export has each kind of event, and no other."""
    with sqlite3.connect(report) as database:
        of = dict(database.execute("SELECT text, id FROM trace_name"))
        for text in ("driver", "Marker", "kprof: measuring launches"):
            of[text] = database.execute("INSERT INTO trace_name VALUES(NULL, ?1, ?1, ?1)", (text,)).lastrowid
        [(start,)] = database.execute("SELECT max(end_ns) FROM trace_call")
        database.execute("INSERT INTO trace_call VALUES(NULL, 1, ?, ?, 4242, 900, ?, ?, 0)", (
            start + 1000, start + 3000, of["cudaLaunchKernel"], of["driver"]))
        database.execute("INSERT INTO trace_graph VALUES(NULL, 1, ?, ?, 0, 1, 7, 900, 3)", (start + 2000, start + 9000))
        database.execute("INSERT INTO trace_range VALUES(NULL, 1, ?, NULL, 4242, 4242, ?, NULL, ?)", (
            start, of["step"], of["Marker"]))
        database.execute("INSERT INTO trace_overhead VALUES(NULL, 1, ?, ?, 4242, NULL, ?)", (
            start, start + 5, of["kprof: measuring launches"]))
    database.close()
    events = exported(kprof, report)["traceEvents"]
    check_schema(events)
    kinds = {(event["ph"], event.get("cat", event["name"])) for event in events}
    check(kinds == KINDS, f"other kinds of events: {kinds ^ KINDS}")
    [graph] = [event for event in events if event["name"] == "CUDA graph 3"]
    [call] = [event for event in events if event["ph"] == "s" and event["ts"] == graph["ts"] - 1]
    ends = [event["ts"] for event in events if event["ph"] == "f" and event["id"] == call["id"]]
    check(ends == [graph["ts"]], f"flows to the graph end at {ends}")


def check_schema(events):
    for event in events:
        check_members(event)
    check_pairs(events)
    check_counters(events)
    rows = check_rows(events)
    return rows, check_flows(events, rows)


def check_overlaps(kprof, report):
    """Kernels of one stream that overlap, ranges of two domains that do, and times of kprof's across calls: Perfetto
    drops slices that do not nest."""
    with sqlite3.connect(report) as database:
        database.execute("UPDATE trace_kernel SET end_ns=end_ns+2000000 WHERE end_ns IS NOT NULL")
        kernels = database.execute("SELECT start_ns, end_ns FROM trace_kernel WHERE end_ns IS NOT NULL").fetchall()
        [(start, end)] = database.execute("SELECT min((start_ns+end_ns)/2), max((start_ns+end_ns)/2) FROM trace_call")
        database.execute("INSERT INTO trace_overhead SELECT NULL, 1, ?, ?, thread, NULL, name_id FROM trace_call "
                         "LIMIT 1", (start, end))
        database.execute("UPDATE trace_range SET id=-id-10") # those before them were recorded earlier
        database.execute("UPDATE trace_range SET id=-id")
        [(step, begun, ended)] = database.execute("SELECT id, start_ns, end_ns FROM trace_range WHERE end_ns IS NOT "
                                                  "NULL ORDER BY end_ns-start_ns DESC LIMIT 1")
        add = ("INSERT INTO trace_range SELECT ?, process_id, ?, ?, thread, end_thread, name_id, ?, style_id FROM "
               "trace_range WHERE id=?")
        database.execute(add, (9, begun, ended - 1000, None, step)) # begins with the step, and ends within
        database.execute(add, (8, begun + 10000, begun + 840000, None, step)) # begins with a call
        for number, (a, b, domain) in enumerate(((5, 850, None), (600, 950, 1), (600, 860, 1), (600, 840, 1))):
            database.execute(add, (1000 + number, begun + 1000 * a, begun + 1000 * b, domain, step))
    database.close()
    trace = exported(kprof, report)
    rows, _ = check_schema(trace["traceEvents"])
    events = trace["traceEvents"]
    times = sorted((event["ts"], event["dur"]) for event in events if event.get("cat") == "kernel")
    base = trace["baseTimeNanoseconds"]
    check(times == sorted(((a - base) / 1e3, (b - a) / 1e3) for a, b in kernels), f"overlapping kernels are {times}")
    for slices in rows.values():
        of_gpu = sorted((s["ts"], s["ts"] + s["dur"]) for s in slices if s["cat"] in ("kernel", "gpu_memcpy"))
        check(all(a[1] <= b[0] for a, b in zip(of_gpu, of_gpu[1:])), f"slices overlap: {of_gpu}")
    beside = sorted(event["id"] for event in events if event["ph"] == "e" and event["cat"] == "user_annotation")
    check(beside[-2:] == [1001, 1002] and 1000 not in beside, f"ranges beside others are {beside}")
    ends = [event["ts"] for event in events if event["ph"] in "be" and event["cat"] == "overhead"]
    check(ends == [(start - base) / 1e3, (end - base) / 1e3], f"overheads are {ends}")


def check_any_ranges(kprof, report):
    """Ranges of two threads that begin and end anywhere: each is drawn once, and none overlaps another in its row."""
    source = random.Random(1)
    with sqlite3.connect(report) as database:
        [(step, last)] = database.execute("SELECT min(r.id), max(r.id) FROM trace_range r JOIN trace_name s ON "
                                          "s.id=style_id WHERE s.text='PushPop'")
        begins = [source.randrange(200) for _ in range(300)]
        times = [(begin + source.choice((0, 1, source.randrange(200))), begin) for begin in begins]
        for end, begin in sorted(times, key=lambda pair: (pair[0], -pair[1])): # as they are recorded
            database.execute("INSERT INTO trace_range SELECT NULL, process_id, start_ns+?, start_ns+?, thread+?, "
                             "thread+?, name_id, domain_id, style_id FROM trace_range WHERE id=?",
                             (begin, end, *[source.randrange(2)] * 2, step))
        database.execute("DELETE FROM trace_range WHERE id<=?", (last,))
    database.close()
    events = [event for event in exported(kprof, report)["traceEvents"] if event.get("cat") == "user_annotation" or
              event["ph"] == "M"]
    check_rows(events)
    of = collections.Counter(event["ph"] for event in events)
    check(of["X"] + of["b"] == 300 and of["b"] == of["e"] > 0, f"300 ranges are {of}")


def check_idle_gpus(kprof, report):
    """GPUs on which nothing runs have names where memory is allocated, or a page is wanted."""
    with sqlite3.connect(report) as database:
        for kind, device in (("memory", "device"), ("managed", "target_device")):
            database.execute(f"UPDATE trace_{kind} SET {device}=?", (len(kind),))
    database.close()
    names = {event["pid"]: event["args"]["name"] for event in exported(kprof, report)["traceEvents"]
             if event["name"] == "process_name"}
    check({pid: name.startswith(f"GPU {pid - 1001}") for pid, name in names.items() if pid > 1000} ==
          {1001: True, 1001 + len("memory"): True, 1001 + len("managed"): True}, f"idle GPUs are named {names}")


def check_early_start(kprof, report):
    """A damaged report may begin before 1970."""
    with sqlite3.connect(report) as database:
        database.execute("UPDATE trace SET start_unix_ns=-5000")
        database.execute("UPDATE trace_call SET start_ns=-5000, end_ns=-2000")
    database.close()
    trace = exported(kprof, report)
    check(trace["baseTimeNanoseconds"] == -5000, f"early start: base is {trace['baseTimeNanoseconds']}")
    calls = {(event["ts"], event["dur"]) for event in trace["traceEvents"] if event.get("cat") == "cuda_runtime"}
    check(calls == {(0, 3)}, f"early start: calls are {calls}")


def check_no_trace(kprof):
    """A report of a version that has no tables of a trace: this is told of once."""
    report = pathlib.Path(__file__).parents[1] / "fixtures/report-v8.kprof"
    told = subprocess.run([kprof, "export", report, "--to", "chrome"], capture_output=True, text=True,
                          check=False).stderr
    check(told.count("error") == 1 and "has no trace" in told, f"no trace: told is {told}")


def main():
    write_fixture, kprof = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        report = str(pathlib.Path(folder) / "trace.kprof")
        subprocess.run([write_fixture, report, "trace"], check=True)
        trace = exported(kprof, report)
        events = trace["traceEvents"]
        _, ends = check_schema(events)
        if not failures:
            database = sqlite3.connect(report)
            check_records(events, database, ends)
            [(start,)] = database.execute("SELECT start_unix_ns FROM trace")
            check(trace["baseTimeNanoseconds"] == start, f"base is {trace['baseTimeNanoseconds']}")
            database.close()
            check_each_kind(kprof, report)
            subprocess.run([write_fixture, report, "trace"], check=True)
            check_overlaps(kprof, report)
            check_any_ranges(kprof, report)
            check_idle_gpus(kprof, report)
            check_early_start(kprof, report)
        check_no_trace(kprof)
    print("\n".join(failures[:20]), end="")
    sys.exit(1 if failures else 0)


main()
