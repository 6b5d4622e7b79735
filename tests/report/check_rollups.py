#!/usr/bin/env python3
"""Holds the averages of the statistics page, and the rows of the summary page, to what the launches of the raw page
come to, by the rules of docs/report-schema.md worked out anew: of random launches of several kernels, shapes,
processes, devices, graph nodes and NVTX ranges, some of which lack values, in every grouping, and of the launches that
--launch and --kernel-name choose. Usage: check_rollups.py SOURCE KPROF FIRST_SEED SEEDS"""
import csv
import io
import math
import pathlib
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

DURATION = "gpu__time_duration.sum"
FILTERED = 12
GRIDS = (1024, 4096, 65536)
GROUPINGS = ("kernel", "config", "device", "process", "graph", "nvtx")
# Ranges of a launch, and the part that --group-by nvtx goes by: the first, up to a ; that has no \ before it.
NVTX = {"step/": "step/", "step/forward/; net@conv1/; epoch": "step/forward/", "net@conv1/; step/": "net@conv1/",
        r"a\;b/; step/": r"a\;b/", "epoch": "epoch"}
STABLE, UNSTABLE = (0.995, 1.005), (0.5, 2)
# Metrics, each with what it is weighted by; amounts have "".
RATIOS = {
    "dram__bytes.sum.per_second": DURATION,
    "sm__warps_active.avg.per_cycle_active": "sm__cycles_active.sum",
    "sm__inst_executed.avg.pct_of_peak_sustained_elapsed": "gpc__cycles_elapsed.max",
    "lts__t_sector_hit_rate.pct": "lts__t_sectors.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "smsp__inst_executed.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": DURATION,
}
METHODS = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": "time"}
FORMULAS = {
    "derived__l1tex_global_ld_sectors_per_request.ratio":
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", 1),
    "derived__l1tex_global_ld_hit_rate.pct":
        ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
         100),
}
AMOUNTS = [DURATION, "dram__bytes_read.sum", "sm__cycles_active.avg", "gpc__cycles_elapsed.max",
           "smsp__inst_executed.sum"]
failures = []


def check(holds, message):
    if not holds:
        failures.append(message)


def near(left, right):
    return left != "" and math.isclose(float(left), right, rel_tol=1e-9)


def copy_sample(source, kprof, path):
    """In the newest version of the schema, which has NVTX ranges."""
    subprocess.run([kprof, "report", source / "samples/vectorAdd-h200.kprof", "-q", "-o", path], check=True)


def copy_rows(db, table, count, changed):
    """Make `count` rows of the first one of a table. Return their ids."""
    names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
    first = dict(zip(names, db.execute(f"SELECT * FROM {table}").fetchone()))
    for number in range(1, count):
        row = {**first, "id": first["id"] + number, **changed(number, first)}
        db.execute(f"INSERT INTO {table}({','.join(row)}) VALUES({','.join('?' * len(row))})", list(row.values()))
    return [first["id"] + number for number in range(count)]


def copy_launches(path, numbers, count, spread, lacking):
    """Make `count` launches of the recorded one, each of a random kernel, shape, process, device, graph node and range
    and with values of its own, and leave out a share of the values, `lacking`. Derived ratios keep their formulas: they
    are computed from the new values."""
    with sqlite3.connect(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(launch)")]
        first = list(db.execute("SELECT * FROM launch").fetchone())
        processes = copy_rows(db, "process", numbers.randint(1, 3), lambda number, row: {"pid": row["pid"] + number})
        devices = copy_rows(db, "device", numbers.randint(1, 2),
                            lambda number, row: {"ordinal": number, "uuid": f"{number}-of-these"})
        # The first of one name is the same kernel in another module; others are of a kind of device of their own.
        kernels = copy_rows(db, "kernel", numbers.randint(1, 3), lambda number, row: {} if number == 1 else {
            "mangled": f"_Z6other{number}v", "demangled": f"other{number}()", "function": f"other{number}"})
        if numbers.random() < 0.3:
            db.execute("UPDATE device SET name = 'NVIDIA H100' WHERE id = ?", (devices[-1],))
        values = dict(db.execute("SELECT name, value FROM value JOIN metric ON metric.id=metric_id WHERE launch_id=?",
                                 (first[0],)).fetchall())
        ids = dict(db.execute("SELECT name, id FROM metric").fetchall())
        for number in range(1, count):
            launch = list(first)
            launch[0] = first[0] + number
            launch[columns.index("grid_x")] = numbers.choice(GRIDS)
            launch[columns.index("kernel_id")] = numbers.choice(kernels)
            launch[columns.index("process_id")] = numbers.choice(processes)
            launch[columns.index("device_id")] = numbers.choice(devices)
            db.execute(f"INSERT INTO launch VALUES({','.join('?' * len(columns))})", launch)
            if numbers.random() < 0.5:
                db.execute("INSERT INTO graph_node VALUES(?,?)", (launch[0], numbers.choice((7, 77))))
            if numbers.random() < 0.7:
                db.execute("INSERT INTO nvtx VALUES(?,?)", (launch[0], numbers.choice(list(NVTX))))
            own = {name: value if value is None or name.startswith(("launch__", "device__"))
                   else value * numbers.uniform(*spread) for name, value in values.items()}
            for name, (part, whole, factor) in FORMULAS.items():
                own[name] = factor * own[part] / own[whole] if own[whole] else None
            for name in [*RATIOS, *AMOUNTS]:
                if name != DURATION and numbers.random() < lacking:
                    own[name] = None
            db.executemany("INSERT INTO value VALUES(?,?,?)", [(launch[0], ids[name], own[name]) for name in own])


def read(kprof, path, *options):
    text = subprocess.run([kprof, "report", path, *options], capture_output=True, text=True, check=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def number(row, name):
    return float(row[name]) if row[name] else math.nan


def check_group(launches, shown, name):
    """`shown` are the rows of the statistics page of one group, by metric."""
    for metric in AMOUNTS:
        values = [number(row, metric) for row in launches if row[metric]]
        if not values:
            check(not shown[metric]["average"], f"{name}: {metric} has no values, and is {shown[metric]}")
            continue
        check(near(shown[metric]["average"], sum(values) / len(values)) and shown[metric]["rollup"] == "mean",
              f"{name}: {metric} is {shown[metric]}")
    for metric in [*AMOUNTS, *RATIOS]:
        values = [number(row, metric) for row in launches if row[metric]]
        check(int(shown[metric]["count"]) == len(values) and
              (not values or (near(shown[metric]["minimum"], min(values)) and
                              near(shown[metric]["maximum"], max(values)))), f"{name}: the range of {metric}")
    for metric, weight in RATIOS.items():
        having = [row for row in launches if row[metric]]
        if len({row[metric] for row in having}) == 1:
            check(near(shown[metric]["average"], number(having[0], metric)), f"{name}: {metric} is {shown[metric]}")
            continue
        if not all(row[weight] for row in having) or not having:
            check(not shown[metric]["average"], f"{name}: {metric} lacks its weight, and is {shown[metric]}")
            continue
        weights = [number(row, weight) for row in having]
        expected = sum(number(row, metric) * own for row, own in zip(having, weights)) / sum(weights)
        check(near(shown[metric]["average"], expected) and shown[metric]["rollup"] == METHODS.get(metric, "ratio"),
              f"{name}: {metric} is {shown[metric]}, not {expected}")
    for metric, (part, whole, factor) in FORMULAS.items():
        wholes = sum(number(row, whole) for row in launches)
        if metric not in shown or not wholes:
            continue
        expected = factor * sum(number(row, part) for row in launches) / wholes
        is_one = len({row[metric] for row in launches}) == 1
        check(shown[metric]["rollup"] == ("same" if expected == 0 or is_one else "formula") and
              math.isclose(float(shown[metric]["average"]), expected, rel_tol=1e-9, abs_tol=1e-12),
              f"{name}: {metric} is {shown[metric]}, not {expected}")
    check(any(metric in shown for metric in FORMULAS), f"{name}: no value has a formula")


def interval(values):
    """The narrowest pair of order statistics that are as far from either end and hold the median at 99 %."""
    count, ordered, outside, k = len(values), sorted(values), 0.0, 0
    while k < count // 2:
        step = 2 * math.comb(count, k) / 2 ** count
        if outside + step > 0.01:
            break
        outside += step
        k += 1
    return (ordered[k - 1], ordered[count - k]) if k else None


def check_summary(launches, row, total, name):
    times = [number(launch, DURATION) for launch in launches]
    check(row["launches"] == str(len(launches)), f"{name}: {row['launches']} launches")
    check(near(row["time"], sum(times)) and near(row["time_share_pct"], 100 * sum(times) / total), f"{name}: its time")
    check(near(row["minimum"], min(times)) and near(row["maximum"], max(times)), f"{name}: its range")
    check(near(row["median"], statistics.median(times)), f"{name}: its median")
    if row["configurations"] != "1":
        check(row["mad"] == row["low"] == row["stable"] == "", f"{name}: different shapes are no repeats")
        return
    median = statistics.median(times)
    check(near(row["mad"], statistics.median([abs(time - median) for time in times])), f"{name}: its deviation")
    expected = interval(times)
    check(expected is None if row["low"] == "" else
          expected and near(row["low"], expected[0]) and near(row["high"], expected[1]), f"{name}: {row}, {expected}")
    is_stable = expected and median - expected[0] <= 0.02 * median and expected[1] - median <= 0.02 * median
    check(row["stable"] == ("" if expected is None else "yes" if is_stable else "no"), f"{name}: {row['stable']}")


def part_of(row, grouping):
    """What `group` of the summary tells of the part of its kernel that a launch belongs to."""
    shape = "({grid_x}, {grid_y}, {grid_z})x({block_x}, {block_y}, {block_z}), 0 B dynamic".format(**row)
    return {"kernel": "", "config": shape,
            "device": f"device {row['device']}, {row['uuid'][:8]}",
            "process": f"{row['process']} {row['process_id']} on {row['host']}",
            "graph": f"graph node {row['graph_node']}" if row["graph_node"] else "no graph",
            "nvtx": NVTX[row["nvtx"]] if row["nvtx"] != "none" else "no range"}[grouping]


def read_launches(kprof, path):
    """The rows of the raw page, with the UUIDs of their devices."""
    with sqlite3.connect(path) as db:
        uuids = dict(db.execute("SELECT launch.id, uuid FROM launch JOIN device ON device.id=device_id").fetchall())
    return [{**row, "uuid": uuids[int(row["launch"])]}
            for row in read(kprof, path, "--page", "raw", "--csv", "--csv-layout", "wide")]


def check_report(kprof, path, launches, grouping, options=()):
    """The pages with these options have the launches, in the parts of a grouping."""
    name = f"{path.stem}, {grouping}, {options}"
    parts = {}
    for launch in launches:
        key = launch["kernel"], launch["device_name"], part_of(launch, grouping)
        parts.setdefault(key, []).append(launch)
    total = sum(number(row, DURATION) for row in launches)
    options = ("--group-by", grouping, "--csv", *options)
    rows = read(kprof, path, "--page", "summary", *options)
    metrics = read(kprof, path, "--page", "statistics", *options)
    found = sorted((row["kernel"], row["device_name"], row["group"]) for row in rows)
    check(found == sorted(parts), f"{name}: {found}, not {sorted(parts)}")
    gains = [number(row, "gain_pct") for row in rows if row["gain_pct"]]
    check(gains == sorted(gains, reverse=True), f"{name}: rows are not in the order of their gains")
    for row in rows:
        key = row["kernel"], row["device_name"], row["group"]
        if key not in parts:
            continue
        shown = {metric["metric"]: metric for metric in metrics
                 if (metric["kernel"], metric["device_name"], metric["group"]) == key}
        check_summary(parts[key], row, total, f"{name} {key}")
        check_group(parts[key], shown, f"{name} {key}")
        throughput = shown["sm__throughput.avg.pct_of_peak_sustained_elapsed"]["average"]
        check(row["compute_pct"] == throughput or near(row["compute_pct"], float(throughput)),
              f"{name} {key}: its throughput")


def check_chosen(kprof, path, launches, numbers):
    """--launch and --kernel-name take the launches that they name, and no part of the others."""
    chosen = sorted(numbers.sample(range(len(launches)), numbers.randint(1, len(launches))))
    first, last = chosen[0], chosen[-1]
    ids = [int(row["launch"]) for row in launches]
    for text, taken in ((",".join(str(ids[at]) for at in chosen), chosen),
                        (f"{ids[first]}-{ids[last]}", range(first, last + 1))):
        check_report(kprof, path, [launches[at] for at in taken], numbers.choice(GROUPINGS), ("--launch", text))
    function = numbers.choice(launches)["function"]
    check_report(kprof, path, [row for row in launches if row["function"] == function], numbers.choice(GROUPINGS),
                 ("--kernel-name", function))


def check_filters(kprof, path):
    """--filter takes the launches that a program would."""
    launches = read(kprof, path, "--page", "raw", "--csv", "--csv-layout", "wide")
    for condition, holds in (("duration>60us", lambda row: number(row, DURATION) > 60000),
                             ("dram__bytes_read.sum<=0.15GB", lambda row: number(row, "dram__bytes_read.sum") <= 1.5e8),
                             ("sm__throughput.avg.pct_of_peak_sustained_elapsed>=20%",
                              lambda row: number(row, "sm__throughput.avg.pct_of_peak_sustained_elapsed") >= 20)):
        taken = [row["launch"] for row in launches if holds(row)]
        check(0 < len(taken) < FILTERED, f"{condition} takes {len(taken)} launches")
        shown = read(kprof, path, "--page", "raw", "--csv", "--csv-layout", "wide", "--filter", condition)
        check([row["launch"] for row in shown] == taken, f"{condition}: {len(shown)} launches")
        rows = read(kprof, path, "--page", "summary", "--csv", "--filter", condition)
        check(rows[0]["launches"] == str(len(taken)), f"{condition}: {rows[0]['launches']} launches in the summary")


def check_refusals(kprof, path):
    for options, code, message in (
            (("--filter", "duration>1s"), 106, "no launch meets it; the nearest has"),
            (("--filter", "dram__byte_read.sum>1"), 102, 'did you mean "dram__bytes_read.sum"?'),
            (("--filter", "duration>1GB"), 101,
             '"GB" is no unit of gpu__time_duration.sum; give ns, us, ms or s')):
        for page in ("summary", "details", "brief"):
            done = subprocess.run([kprof, "report", path, "--page", page, *options], capture_output=True, text=True)
            check(done.returncode == code and message in done.stderr and not done.stdout,
                  f"{page} {options}: {done.returncode}, {done.stdout[:80]}{done.stderr}")


def check_numbers(kprof, path):
    """--kernel-id counts the launches of each kernel, however many kernels there are."""
    with sqlite3.connect(path) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(launch)")]
        first = dict(zip(columns, db.execute("SELECT * FROM launch").fetchone()))
        kernels = copy_rows(db, "kernel", 100, lambda number, row: {"mangled": f"_Z6other{number}v"})
        copy_rows(db, "launch", 3 * len(kernels), lambda number, row: {"kernel_id": kernels[number % len(kernels)]})
        wanted = [first["id"] + len(kernels) + number for number in range(len(kernels))]
    db.close()
    got = [int(row["launch"]) for row in read(kprof, path, "--csv-layout", "wide", "--kernel-id", ":::2")]
    check(got == wanted, f"the second launches are {got}, not {wanted}")


def main():
    source, kprof, first, seeds = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + seeds):
            numbers = random.Random(seed)
            count = numbers.randint(2, 40)
            path = pathlib.Path(folder) / f"{seed}.kprof"
            copy_sample(source, kprof, path)
            copy_launches(path, numbers, count, numbers.choice((STABLE, UNSTABLE)), numbers.choice((0, 0.1)))
            launches = read_launches(kprof, path)
            check(len(launches) == count, f"seed {seed}: {len(launches)} launches")
            for grouping in GROUPINGS:
                check_report(kprof, path, launches, grouping)
            check_chosen(kprof, path, launches, numbers)
        path = pathlib.Path(folder) / "filtered.kprof"
        copy_sample(source, kprof, path)
        copy_launches(path, random.Random(7), FILTERED, UNSTABLE, 0)
        check_filters(kprof, path)
        check_refusals(kprof, path)
        path = pathlib.Path(folder) / "numbered.kprof"
        copy_sample(source, kprof, path)
        check_numbers(kprof, path)
    print(*failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
