#!/usr/bin/env python3
"""Holds the findings of a recorded run to findings/recorded.csv: each finding is told of the kernels that show its
problem and not of those that do not. The kernels are those of tests/gpu/findings, recorded on an H200 with the full
set. Also checks what the verdict says limits some of them, and which stall each kernel made for one has. Before that,
without a report: evidence is called what the page calls the same metric, nothing else is called so, and thresholds and
estimates name their source.

Usage: check_findings.py SOURCE KPROF"""
import contextlib
import csv
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

RECORDED = "tests/report/findings/recorded-h200.kprof"
# Of tests/gpu/programs/host_memory.cu, with the section of memory: a launch of each kernel.
HOST_MEMORY = "tests/report/findings/host-memory-h200.kprof"
# Some kernels of the run above with --set agent; tests/gpu/findings.py names them.
AGENT = "tests/report/findings/agent-h200.kprof"
# Of tests/gpu/programs/compression.cu: a launch that writes what L2 compresses, and one that writes noise.
COMPRESSION = "tests/report/findings/compression-h200.kprof"
# A product of matrices of 32,768 rows and columns of random numbers, one of 60 in a row: the GPU met its power limit
# of 700 W.
LOW_CLOCK = "tests/report/findings/low-clock-h200.kprof"
# Kernels that use libraries: with --set source each thread of one adds to a double, and two count the degrees of a
# graph by libcu++, in its default order and relaxed. With the values of few findings of --set full a block adds up
# floats in shared memory, or by steps with barriers between them, and a kernel reads a table in host memory.
LIBRARIES = "tests/report/findings/libraries-h200.kprof"
# {kernel: finding, the user's line, the line in a library, least and most estimate}
PLACES = {"loss": ("Atomics", "memory.cu:96", "sm_60_atomic_functions.hpp:294", None),
          "degrees": ("Atomics", "memory.cu:128", "cuda_ptx_generated.h:2363", None),
          "blocksum": ("Atomics", "shared.cu:80", "sm_20_atomic_functions.hpp:84", (46.5, 100)),
          "ladder": ("WarpStall", "shared.cu:110", "sm_30_intrinsics.hpp:98", (0, 100)),
          "parameters": ("SystemMemory", "host.cu:9", None, (49.2, 100))}
# As people write them: with the full set threads that index a table of constants, and a filter that reads each value of
# 49 places again; with --set source threads of Triton that add to one word.
FURTHER = "tests/report/findings/further-h200.kprof"
FURTHER_PLACES = {"palette": ("DivergentConstants", "shared.cu:182", None, (46.2, 100)),
                  "filter7": ("L1Traffic", "global.cu:211", None, (28.8, 100)),
                  "loss_sum": ("Atomics", "triton_more.py:87", None, None)}
# With the full set: fences between stores, constants that threads index, a histogram in shared memory of an image that
# is mostly dark, loads in narrow blocks of Triton, one that some threads leave out, loads from shared memory that are
# as wide as can be, and a sum at the limit of DRAM.
FOURTH = "tests/report/findings/fourth-h200.kprof"
FOURTH_PLACES = {"publish": ("WarpStall", "memory.cu:180", None, (16.3, 65)),
                 "shade": ("DivergentConstants", "logic.cu:223", None, (19.4, 77.8)),
                 "dark_histogram": ("Atomics", "inner.cu:13", "device_atomic_functions.hpp:112", (26.5, 100)),
                 "small_block": ("NarrowAccesses", "triton_wild.py:59", None, (22.1, 88.6)),
                 "shared_peak": ("L1Traffic", "limits.cu:67", None, None)}
FOURTH_BEST = {"publish": "WarpStall", "shade": "DivergentConstants", "dark_histogram": "Atomics",
               "small_block": "NarrowAccesses", "sum_peak": "L2Reuse"}
FOURTH_NOT_TOLD = {"cell_charge_ok": {"UncoalescedGlobal"}, "sum_peak": {"WarpStall", "WaitedFor", "IssueSlots"}}
# With the set source: each thread takes the minimum with a pixel of its own, and looks first whether it is smaller.
FIFTH = "tests/report/findings/fifth-h200.kprof"
FIFTH_PLACES = {"splat": ("Atomics", "memory.cu:218", "sm_32_atomic_functions.hpp:121", None)}
# Findings that no kernel of the run shows, and why.
NOT_RECORDED = {
    "Fp64OnWeakChip": "GH100 has full FP64 units",
    "DramBursts": "the run has no samples over time",
    "Phases": "the run has no samples over time",
    "RampUp": "the run has no samples over time",
    "TailSeen": "the run has no samples over time",
    "WaitedFor": "the run has no samples of instructions",
}
ALWAYS = {"Bottleneck"}
# A chase has few warps, but what each waits for is clear: reasons of the latency kernels with small grids take 68 to
# 98 % of a warp's time, those of the launch-size kernels at most 19 %. Half of the SMs have no block of
# grid_smaller_than_gpu.
LIMITS = {"dram_bound_sum": "DRAM bandwidth", "uncoalesced_read": "DRAM bandwidth", "pipe_alu": "ALU pipe",
          "compute_bound_fma": "issue slots", "latency_bound_chase": "latency", "dependent_loads": "latency",
          "occupancy_shared_memory": "occupancy", "coalesced_write": "path from L1 to L2",
          "shared_bank_conflicts": "L1 data pipe", "barrier_waits": "barriers", "atomic_one_address": "atomics",
          "empty_kernel": "launch overhead", "grid_smaller_than_gpu": "launch size", "sleeping_wait": "latency",
          "dependent_chain": "launch size", "many_branches": "launch size", "fence_once": "launch size",
          "fence_each_store": "latency", "dependent_shared_loads": "latency", "dram_few_channels": "launch size",
          "sm_imbalance": "unequal SMs",
          "coalesced_read": "latency", "l2_hits": "latency", "pipe_xu": "XU pipe (special functions, conversions)",
          "pipe_fp64": "FP64 pipe", "matmul_half_without_tensor_cores": "L1 data pipe"}
STALLS = {"dependent_loads": "Long Scoreboard", "dependent_shared_loads": "Short Scoreboard",
          "barrier_waits": "Barrier",
          "fence_each_store": "Membar", "shared_store_flood": "MIO Throttle", "texture_flood": "TEX Throttle",
          "pipe_xu": "MIO Throttle", "dependent_chain": "Wait", "sleeping_wait": "Sleeping"}

BEST = {"atomic_one_address": "Atomics", "uncoalesced_read": "UncoalescedGlobal", "local_spills": "LocalSpills",
        "shared_bank_conflicts": "SharedBankConflicts", "sm_imbalance": "SmImbalance", "non_fused": "UnfusedFp",
        "dram_few_channels": "SmallGrid", "dependent_loads": "NarrowAccesses", "coalesced_read": "NarrowAccesses",
        "shared_store_flood": "L1Traffic", "atomic_spread": "Atomics", "many_branches": "AchievedOccupancy",
        "dependent_chain": "AchievedOccupancy", "grid_smaller_than_gpu": "SmallGrid", "l1_misses": "WarpStall",
        "matmul_half_without_tensor_cores": "TensorIdle", "double_by_accident": "DoubleByAccident",
        "page_stride_read": "UncoalescedGlobal", "latency_bound_chase": "WarpStall"}

OCCUPANCY = {"occupancy_registers": "registers", "occupancy_shared_memory": "shared memory",
             "occupancy_small_blocks": "block slots", "occupancy_block_size": "block size",
             "occupancy_barriers": "barriers", "occupancy_full": "nothing"}


def read_files(folder):
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def headlines(sections):
    """{label in small letters: metrics} of the values below the headings."""
    labels = {}
    for section in sections.values():
        for item in section.get("items", []):
            names = [item.get("metric") or item["expression"], *item.get("alternatives", [])]
            labels.setdefault(item["label"].lower(), set()).update(name for name in names if isinstance(name, str))
    return labels


def faults_of_labels(source):
    labels = headlines(read_files(source / "metricsets/sections"))
    for finding in read_files(source / "metricsets/findings").values():
        for value in finding.get("values", []):
            label, metric = value.get("label", "").lower(), value.get("expression")
            shown_as = [text for text, metrics in labels.items() if metric in metrics]
            is_plain = metric and re.fullmatch(r"\w+__[\w.]+", metric)
            if not label or (label not in labels and not (is_plain and shown_as)):
                continue
            if label not in shown_as and not metric_is_choice(metric, labels.get(label, ())):
                yield f"{finding['id']} calls {metric} \"{value['label']}\"; the page has {shown_as or labels[label]}"


def metric_is_choice(expression, metrics):
    """if_missing(a, b) of what the page shows under the label, as chips have either, or of sums over instructions."""
    counted = set(re.findall(r"\w+__[\w.]+", expression or ""))
    return {name for name in counted if "." in name or not name.startswith("smsp__")} <= set(metrics) and counted


def faults_of_sources(source):
    """Each threshold and each estimate says where it comes from, and why kprof chose the number, if it did. What has
    the number of another finding has the same."""
    findings = read_files(source / "metricsets/findings")
    numbers = {name: {one["value"] for one in finding.get("thresholds", [])} for name, finding in findings.items()}
    for finding in findings.values():
        for threshold in finding.get("thresholds", []):
            said = threshold.get("source", "")
            if not said or re.search(r"kprof's choice(?!(, above [^:]+)?: .{20})", said):
                yield f"{finding['id']}: threshold {threshold['name']} has no source, or no reason: {said}"
            other = re.match(r"as of (\w+)", said)
            if other and threshold["value"] not in numbers[other[1]]:
                yield f"{finding['id']}: threshold {threshold['name']} is not that of {other[1]}"
        speedup = finding.get("speedup", {"formula": "none", "source": "none"})
        if not speedup.get("formula") or not speedup.get("source"):
            yield f"{finding['id']}: its estimate has no formula in words or no source"


def print_report(source, kprof, *options, recorded=RECORDED):
    return subprocess.run([kprof, "report", source / recorded, *options], capture_output=True, text=True,
                          check=True).stdout


def read_launches(source, kprof, *options, recorded=RECORDED):
    """{function: launch} of the recorded run."""
    printed = print_report(source, kprof, "--json", *options, recorded=recorded)
    return {launch["kernel"]["function"]: launch for launch in json.loads(printed)["launches"]}


def faults_of_table(source, launches):
    told = {kernel: {finding["id"] for finding in launch["findings"]} for kernel, launch in launches.items()}
    with open(source / "tests/report/findings/recorded.csv", encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    for row in rows:
        for kernel in row["found"].split():
            if row["finding"] not in told[kernel]:
                yield f"{row['finding']} is not told of {kernel}"
        for kernel in row["not found"].split():
            if row["finding"] in told[kernel]:
                yield f"{row['finding']} is told of {kernel}"
    yield from faults_of_coverage({path.stem for path in (source / "metricsets/findings").glob("*.json")}, rows)


def faults_of_helps(source):
    """Each value below a section's heading says what it is, other than as the counter that it is made of; what is known
    of a launch has words of its own."""
    for path in sorted((source / "metricsets/sections").glob("*.json")):
        for item in json.loads(path.read_text()).get("items", []):
            if not item.get("help") and not item.get("metric", "").startswith("launch__"):
                yield f"{path.stem}: {item.get('label')} has no help"


def faults_of_docs(source):
    """The documentation says which findings no recorded run shows."""
    text = (source / "docs/metricsets.md").read_text(encoding="utf-8")
    start = text.index("No recorded run shows")
    yield from (f"docs/metricsets.md does not say that no run shows {finding}" for finding in NOT_RECORDED
                if f"`{finding}`" not in text[start:text.index("\n\n", start)])


def faults_of_coverage(shipped, rows):
    """Each finding has a kernel that shows it and one that does not, or a reason why not."""
    for finding in sorted(shipped ^ {row["finding"] for row in rows}):
        yield f"{finding} is not in recorded.csv, or not shipped"
    for row in rows:
        if bool(row["found"]) == (row["finding"] in NOT_RECORDED):
            yield f"{row['finding']} needs a kernel that shows it or a reason in NOT_RECORDED, and not both"
        if bool(row["not found"]) == (row["finding"] in ALWAYS):
            yield f"{row['finding']} needs a kernel that does not show it, unless it is in ALWAYS"


def faults_of_verdicts(launches):
    for kernel, limit in LIMITS.items():
        found = launches[kernel]["verdict"]["limit"]["name"]
        if found != limit:
            yield f"{kernel} is limited by {found}, not {limit}"
    for kernel, launch in launches.items():
        if not re.search(r"[\d.]+ % of (the|its) peak", launch["verdict"]["limit"]["text"]):
            yield f"the verdict of {kernel} does not tell how far it is from its roof"
        # The page shows two numbers for L2; which one counts matters where it could be the limit.
        throughput = re.search(r"\(L2's ([\d.]+) %", launch["verdict"]["limit"]["text"])
        if throughput and float(throughput[1]) < 60:
            yield f"the verdict of {kernel} explains L2's {throughput[1]} %, which limits nothing"
    for kernel, stall in STALLS.items():
        found = launches[kernel]["verdict"]["stall"]["name"]
        if found != stall:
            yield f"the top stall of {kernel} is {found}, not {stall}"


def faults_of_occupancy(launches):
    """What keeps the blocks of a kernel from an SM; where barriers do, less shared memory is of no use."""
    for kernel, limit in OCCUPANCY.items():
        found = launches[kernel]["verdict"]["occupancy"]["name"]
        if found != limit:
            yield f"the occupancy of {kernel} is limited by {found}, not {limit}"
    [section] = [one for one in launches["occupancy_barriers"]["sections"] if one["id"] == "Occupancy"]
    [curve] = [one for one in section["what_if"] if one["id"] == "shared_memory_per_block"]
    if {step["occupancy_pct"] for step in curve["steps"][:1]} != {12.5}:
        yield f"with less shared memory, occupancy_barriers would be at {curve['steps'][0]}"


def faults_of_words(source, kprof):
    """Units with plural names are in sentences that suit these, and no line says its first words twice."""
    for page in ("summary", "brief", "details"):
        printed = print_report(source, kprof, "--page", page, "--width", "200")
        for line in printed.splitlines():
            if re.search(r"\b(slots|cores|banks|requests|atomics) (is|has|works)\b|issue slots, .* its peak", line) or \
               re.search(r"Limited by +([a-z ]+): \1,", line):
                yield f"--page {page}: {line.strip()}"


def faults_of_width(source, kprof):
    """A kernel of the brief page has at most 15 lines in a terminal of 80 columns, however many there are, and names of
    kernels alone are cut."""
    for width in ("80", "200"):
        printed = print_report(source, kprof, "--brief", "--group-by", "config", "--width", width)
        for block in printed.split("\n\n"):
            lines = [line for line in block.splitlines() if line.startswith(" ")]
            yield from (f"{len(line)} columns: {line}" for line in lines if len(line) > 80)
            whole = "  (Limited by|Worth most|Findings) "
            yield from (f"cut: {line}" for line in lines if re.match(whole + ".*[.]{3}", line))
            if len(lines) > 15:
                yield f"{len(lines)} lines: {lines[0]}"


def shares_of_stalls(launch):
    """{stall: share of a warp's time} of the page's table of stall reasons; what is issued does not wait."""
    [table] = [table for section in launch["sections"] for table in section["tables"] if table["id"] == "stalls"]
    return {row["label"]: row["cells"][1]["value"] for row in table["rows"] if row["label"] != "Selected"}


def faults_of_brief(source, kprof, launches):
    """The brief names the largest stalls of the page, with their shares, and the verdict's first; and it gives the
    verdict's limit, and the gain of the first finding."""
    printed = print_report(source, kprof, "--brief", "--json")
    for brief in map(json.loads, printed.splitlines()):
        kernel, launch = brief["function"], launches[brief["function"]]
        shares, verdict = shares_of_stalls(launch), launch["verdict"]
        told = [(stall["name"], stall["pct"]) for stall in brief["stalls"]]
        if told[0][0] != verdict["stall"]["name"]:
            yield f"the brief of {kernel} begins with {told[0][0]}, the verdict with {verdict['stall']['name']}"
        yield from (f"the brief of {kernel} has {name} at {pct} %, the page at {shares.get(name)} %"
                    for name, pct in told if abs(pct - (shares.get(name) or 0)) > 0.006)
        # Where the top stall is a wait, other warps that were ready are no stall of its list.
        left_out = {"Not Selected"} if told[0][0] != "Not Selected" else set()
        least = min(pct for _, pct in told)
        yield from (f"the brief of {kernel} leaves out {name}, at {share} %" for name, share in shares.items()
                    if share and share > least + 0.006 and name not in left_out | dict(told).keys())
        if abs(brief["limit_pct"] - verdict["limit"]["pct"]) > 0.006:
            yield f"the brief of {kernel} is at {brief['limit_pct']} %, the verdict at {verdict['limit']['pct']} %"


def faults_of_gains(launches):
    """A finding that is told is worth no more than all of the time, and what is worth most is no other finding's
    symptom."""
    for kernel, launch in launches.items():
        for finding in launch["findings"]:
            gain = (finding["estimated_speedup"] or {}).get("pct")
            if gain is not None and not 0 <= gain <= 100:
                yield f"{finding['id']} of {kernel} is worth {gain} %"
    for kernel, best in BEST.items():
        found = launches[kernel]["verdict"]["finding"]["id"]
        if found != best:
            yield f"{found} is worth most of {kernel}, not {best}"


def faults_of_contradictions(launches):
    """Where most warps are ready and wait for their turn, more warps are not what is worth most."""
    for kernel, launch in launches.items():
        verdict = launch["verdict"]
        if verdict["stall"]["name"] == "Not Selected" and verdict["little_to_gain"] == "no" and \
           verdict["finding"]["id"] in ("AchievedOccupancy", "TheoreticalOccupancy"):
            yield f"{kernel} has enough warps, and more of them are worth most"


def faults_of_host_memory(launches):
    """Reading host memory is what the kernel that does so loses most by. A report without times cannot tell."""
    verdict = launches["host_memory_sum"]["verdict"]
    if verdict["limit"] is None:
        print(f"no times in {HOST_MEMORY}: what it is worth to move the data is not tested")
    elif verdict["limit"]["name"] != "link to the host" or verdict["finding"]["id"] != "SystemMemory":
        yield f"host_memory_sum is limited by {verdict['limit']['name']}, worth most is {verdict['finding']['id']}"
    elif not verdict["finding"]["pct"] > 50:
        yield f"host_memory_sum could gain {verdict['finding']['pct']} %, not most of its time"


def faults_of_libraries(source, kprof):
    """Findings name the user's own line, and estimate half of what the mended kernel gains to twice of it."""
    launches = read_launches(source, kprof, recorded=LIBRARIES)
    yield from faults_of_places(launches, PLACES)
    yield from faults_of_places(read_launches(source, kprof, recorded=FURTHER), FURTHER_PLACES)
    if "Atomics" in {one["id"] for one in launches["degrees_ok"]["findings"]}:
        yield "Atomics is found for degrees_ok, where nothing is left to mend"


def faults_of_fourth(source, kprof):
    for brief in map(json.loads, print_report(source, kprof, "--brief", "--json", recorded=FOURTH).splitlines()):
        names = [stall["name"] for stall in brief["stalls"]]
        if len(set(names)) < len(names):
            yield f"the brief of {brief['function']} names a stall twice: {names}"
    launches = read_launches(source, kprof, recorded=FOURTH)
    yield from faults_of_places(launches, FOURTH_PLACES)
    yield from (f"{launches[kernel]['verdict']['finding']['id']} is worth most of {kernel}, not {best}"
                for kernel, best in FOURTH_BEST.items() if launches[kernel]["verdict"]["finding"]["id"] != best)
    yield from (f"{finding['id']} is told of {kernel}" for kernel, others in FOURTH_NOT_TOLD.items()
                for finding in launches[kernel]["findings"] if finding["id"] in others)


def faults_of_fifth(source, kprof):
    launches = read_launches(source, kprof, recorded=FIFTH)
    yield from faults_of_places(launches, FIFTH_PLACES)
    if launches["splat"]["verdict"]["finding"]["id"] != "Atomics":
        yield "Atomics is not worth most of splat, whose minima change little"
    if "Atomics" in {one["id"] for one in launches["splat_ok"]["findings"]}:
        yield "Atomics is found for splat_ok, which leaves out most of them"


def faults_of_places(launches, places):
    for kernel, (finding, line, library, range_pct) in places.items():
        found = {one["id"]: one for one in launches[kernel]["findings"]}.get(finding)
        told = [(place["place"], place.get("in_library")) for place in (found or {}).get("places", [])]
        if (line, library) not in told:
            yield f"{finding} names {told} of {kernel}, not {line}"
        gain = found and found["estimated_speedup"] and found["estimated_speedup"]["pct"]
        if (gain is None) != (range_pct is None) or (range_pct and not range_pct[0] <= gain <= range_pct[1]):
            yield f"{finding} of {kernel} is worth {gain} %, not {range_pct}"


def read_briefs(source, kprof, recorded):
    done = subprocess.run([kprof, "report", source / recorded, "--brief", "--json"], capture_output=True,
                          check=True)
    return [(len(line), json.loads(line)) for line in done.stdout.splitlines()]


def metrics_of_agent(source):
    """Names of all that --set agent collects on GH100: those of its section, and the parts of the throughputs."""
    essentials = (source / "metricsets/sections/Essentials.json").read_text(encoding="utf-8")
    with sqlite3.connect(f"file:{source / RECORDED}?mode=ro", uri=True) as database:
        [definition] = database.execute("SELECT definition FROM section WHERE identifier='SpeedOfLight'").fetchone()
    parts = [table for table in json.loads(definition)["tables"]
             if table["id"] in ("compute_breakdown", "memory_breakdown")]
    return set(re.findall(r"\b\w+__[\w.]+", essentials + json.dumps(parts)))


def reduce_to_agent(source, report):
    """The recorded run as if it had been one with --set agent."""
    shutil.copyfile(source / RECORDED, report)
    kept = metrics_of_agent(source)
    with contextlib.closing(sqlite3.connect(report)) as database:
        dropped = [(number,) for number, name in database.execute("SELECT id, name FROM metric").fetchall()
                   if name not in kept and not re.match("launch__|device__|sm__maximum_warps", name)]
        database.executemany("DELETE FROM value WHERE metric_id=?", dropped)
        database.execute("DELETE FROM section WHERE identifier<>'SpeedOfLight'")
        database.commit()


def faults_of_agent(source, kprof):
    """--set agent fills the brief, and says of a kernel what the full set says: in the recorded run without all other
    metrics, and in one that was recorded with that set."""
    full = {brief["function"]: brief for _, brief in read_briefs(source, kprof, RECORDED)}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "agent.kprof")
        reduce_to_agent(source, report)
        briefs = read_briefs(source, kprof, report)
    if (source / AGENT).exists():
        briefs += read_briefs(source, kprof, AGENT)
    else:
        print(f"{AGENT} has not been recorded: the agent set is tested on a part of {RECORDED} alone")
    reasons = set(re.findall(r'"label": "([^"]+)"', (source / "metricsets/sections/Essentials.json").read_text()))
    for size, brief in briefs:
        if size > 2048:
            yield f"the brief of {brief['function']} has {size} bytes"
        yield from faults_of_agent_brief(brief, full[brief["function"]], reasons)


def faults_of_agent_brief(brief, full, reasons):
    kernel, top, full_top = brief["function"], brief["stalls"][0]["name"], full["stalls"][0]["name"]
    # In another run a unit that is near a threshold of the class may be on its other side.
    is_clear = min(abs(full["limit_pct"] - threshold) for threshold in (60, 80)) > 3
    yield from (f"of {kernel}, {key} is {brief[key]} with the agent set and {full[key]} with the full set"
                for key in (*(["class"] if is_clear else []), "limit", "occupancy_limit") if brief[key] != full[key])
    # A short launch waits for much that is no stall of an instruction.
    if top != full_top and (top != "Other reasons" or full_top in reasons) and full["class"] != "launch overhead" and \
            full["stalls"][0]["pct"] > 10:
        yield f"the top stall of {kernel} is {top} with the agent set, and {full_top} with the full set"
    if abs(brief["headroom_pct"] - full["headroom_pct"]) > 10:
        yield f"the headroom of {kernel} is {brief['headroom_pct']} % with the agent set, not {full['headroom_pct']} %"
    # What a finding is worth that lacks metrics is not known; little_to_gain says so.
    yield from (f"{key} of {kernel} is not measured with the agent set" for key, value in brief.items()
                if value is None and full[key] is not None and key != "gain_pct")
    yield from (f"{kernel}: {text}" for text in brief["warnings"] if "collect" in text)


def faults_of_statistics(source, kprof):
    """Where tables are not drawn, no two metrics of a section have one label."""
    printed = print_report(source, kprof, "-k", "dram_bound_sum", "--page", "statistics", "--json")
    [kernel] = json.loads(printed)["kernels"]
    metrics = {}
    for row in kernel["metrics"]:
        metrics.setdefault((row["section"], row["label"]), set()).add(row["metric"])
    yield from (f"the label {label} of {section} is that of {names}" for (section, label), names in metrics.items()
                if len(names) > 1)


def faults_of_excess(source, kprof):
    """Text and Markdown say what shares above 100 % or below 0 % are, where they show any."""
    for kernel, page, expected in (("small_code", "details", True), ("dram_bound_sum", "details", False),
                                   ("constant_divergent_index", "details", True),
                                   ("small_code", "statistics", True), ("dram_bound_sum", "statistics", False)):
        for options in ([], ["--markdown"]):
            printed = print_report(source, kprof, "-k", kernel, "--page", page, *options)
            shown = printed.replace("100 %", "").replace("100.00 %", "")
            has_any = re.search(r"(\b1\d\d(\.\d+)?| -[\d.]+) %", shown) is not None
            told = printed.rstrip().rpartition("\n\n")[2].startswith("Shares above 100 %")
            if has_any != expected or told != expected:
                yield f"{kernel}, {page} {options}: impossible shares: {has_any}, explained: {told}"


def faults_of_breakdowns(source, kprof):
    """Text says below a breakdown where the throughput is above each part, Markdown below its section's table."""
    for kernel, expected in (("atomic_one_address", ["Memory Throughput", "L2 Cache Throughput"]),
                             ("matmul_half_with_tensor_cores", ["L2 Cache Throughput"]), ("dram_bound_sum", [])):
        for options, pattern in ([], r"^    (\S.*) is above each part here"), \
                                (["--markdown"], r"(?:^|\. )(\w[^.|]*) is above each part here"):
            printed = print_report(source, kprof, "-k", kernel, *options)
            told = re.findall(pattern, printed, re.MULTILINE)
            if told != expected:
                yield f"{kernel} {options}: above each of their parts are {told}, not {expected}"


def faults_of_spreads(source, kprof):
    """People see how far passes disagree with two decimals, in each format."""
    for options in ([], ["--markdown"], ["--csv"]):
        printed = print_report(source, kprof, "-k", "tiny_kernel", "--width", "1000", *options)
        if not re.search(r"\bgr__cycles_active\.sum (differs by )?26\.02 %", printed):
            yield f"{' '.join(options) or 'text'} does not say that gr__cycles_active.sum differs by 26.02 %"


def faults_of_raw(source, kprof):
    """A value has the same unit on the raw page as in each section, unless the section computes it."""
    printed = print_report(source, kprof, "-c", "1", "--page", "raw", "--json")
    units = {metric["name"]: metric["unit"] for metric in json.loads(printed)["metrics"]}
    [launch] = json.loads(print_report(source, kprof, "-c", "1", "--json"))["launches"]
    for section in launch["sections"]:
        cells = [cell for table in section["tables"] for row in table["rows"] for cell in row["cells"] if cell]
        for value in [*section["items"], *cells]:
            if value["unit"] != units[value["name"]]:
                yield f"{value['name']}: {value['unit']} in {section['id']}, {units[value['name']]} on the raw page"


def faults_of_chart(source, kprof):
    """Traffic is drawn from unit to unit where there are enough columns."""
    for width, expected in ((72, []), (80, [
            "SM <--- 103.81 MB --- L1/TEX <--- 103.81 MB --- L2 <--- 103.82 MB --- DRAM",
            "   ---- 1.08 MB ---->        ---- 1.08 MB ---->    --- 280.06 KB --->"])):
        printed = print_report(source, kprof, "-k", "dependent_loads", "--width", str(width))
        drawn = [line[4:] for line in printed.splitlines() if re.search(r"<--|-->", line)]
        if drawn != expected:
            yield f"at {width} columns the traffic is drawn as {drawn}"


def faults_of_expressions(source, kprof):
    """Bytes per sector of loads are missing where no plain load ran, for which CUPTI gives 0: the section's expression
    on the values of the recorded run, as a finding of its own."""
    section = json.loads((source / "metricsets/sections/MemoryWorkloadAnalysis_Tables.json").read_text())
    [item] = [item for item in section["items"] if item["label"] == "Global Load Bytes/Sector"]
    finding = {"id": "Bytes", "name": "Bytes", "help": "Always.", "sections": ["SpeedOfLight"], "confidence": "high",
               "values": [{"name": "bytes", "unit": item.get("unit", ""),
                           "expression": item.get("expression") or item["metric"]}],
               "when": "if_missing(bytes, -1) >= 0", "message": "{bytes}"}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "findings/Bytes.json")
        path.parent.mkdir()
        path.write_text(json.dumps(finding))
        told = {kernel: [one["message"] for one in launch["findings"]] for kernel, launch in
                read_launches(source, kprof, "--section-folder", folder, "--rule", "Bytes").items()}
    for kernel, expected in (("asynchronous_copy", []), ("fused", []), ("coalesced_read", ["32 B/sector"])):
        if told[kernel] != expected:
            yield f"bytes per sector of {kernel} are {told[kernel]}, not {expected}"


def main(source, kprof):
    wrong = [*faults_of_labels(source), *faults_of_sources(source), *faults_of_helps(source),
             *faults_of_docs(source)]
    if wrong:
        print(*wrong, sep="\n")
        return 1
    if not (source / RECORDED).exists():
        print(f"skipped: {RECORDED} has not been recorded; tests/gpu/run.sh findings makes it")
        return 77
    launches = read_launches(source, kprof)
    all_launches = dict(launches)
    for recorded in [HOST_MEMORY, COMPRESSION, LOW_CLOCK]:
        all_launches.update(read_launches(source, kprof, recorded=recorded))
    faults = [*faults_of_table(source, all_launches), *faults_of_verdicts(launches), *faults_of_occupancy(launches),
              *faults_of_words(source, kprof), *faults_of_brief(source, kprof, launches), *faults_of_gains(launches),
              *faults_of_contradictions(launches), *faults_of_expressions(source, kprof),
              *faults_of_width(source, kprof), *faults_of_host_memory(all_launches), *faults_of_agent(source, kprof),
              *faults_of_libraries(source, kprof), *faults_of_fourth(source, kprof), *faults_of_fifth(source, kprof),
              *faults_of_chart(source, kprof), *faults_of_statistics(source, kprof), *faults_of_excess(source, kprof),
              *faults_of_breakdowns(source, kprof), *faults_of_raw(source, kprof), *faults_of_spreads(source, kprof)]
    print(f"{len(launches)} kernels, {len(faults)} faults", *faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
