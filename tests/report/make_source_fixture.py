#!/usr/bin/env python3
"""Writes tests/fixtures/source/source.kprof, a report of four kernels whose instructions were measured.

vectorAdd has what ncu printed for it on an H200 (tests/fixtures/source/ncu-source.csv), with lines; incr likewise,
without lines; softmax_kernel is made up, as Triton compiles it, with inlined functions and a fault of each kind;
stripped has neither lines nor texts. Usage: make_source_fixture.py WRITE_FIXTURE [OUTPUT]"""

import csv
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "source")
PREFIX = "smsp__sass_"
COUNTERS = {
    "Instructions Executed": "inst_executed",
    "Thread Instructions Executed": "thread_inst_executed",
    "Predicated-On Thread Instructions Executed": "thread_inst_executed_pred_on",
    "Divergent Branches": "branch_targets_threads_divergent",
    "L1 Tag Requests Global": "l1tex_tags_mem_global",
    "L1 Wavefronts Shared": "l1tex_pipe_lsu_wavefronts_mem_shared",
    "L1 Wavefronts Shared Ideal": "l1tex_pipe_lsu_wavefronts_mem_shared_ideal",
    "L2 Theoretical Sectors Global": "sectors_mem_global",
    "L2 Theoretical Sectors Global Ideal": "sectors_mem_global_ideal",
    "Local": "sectors_mem_local",
    "Atomics": "inst_executed_op_atom",
    "Reductions": "inst_executed_op_global_red",
    "FP64": "thread_inst_executed_op_fp64_pred_on",
    "L2 Explicit Hit Policy Evict First": "inst_executed_memdesc_explicit_hitprop_evict_first",
    "L2 Explicit Hit Policy Evict Last": "inst_executed_memdesc_explicit_hitprop_evict_last",
    "L2 Explicit Hit Policy Evict Normal": "inst_executed_memdesc_explicit_hitprop_evict_normal",
    "L2 Explicit Hit Policy Evict Normal Demote": "inst_executed_memdesc_explicit_hitprop_evict_normal_demote",
    "L2 Explicit Miss Policy Evict First": "inst_executed_memdesc_explicit_missprop_evict_first",
    "L2 Explicit Miss Policy Evict Normal": "inst_executed_memdesc_explicit_missprop_evict_normal",
}
REASONS = {
    "barrier": "barrier", "branch_resolving": "branch_resolving", "dispatch": "dispatch_stall", "drain": "drain",
    "imc": "imc_miss", "lg": "lg_throttle", "long_sb": "long_scoreboard", "math": "math_pipe_throttle",
    "membar": "membar", "mio": "mio_throttle", "misc": "misc", "no_inst": "no_instructions",
    "not_selected": "not_selected", "selected": "selected", "short_sb": "short_scoreboard", "sleep": "sleeping",
    "tex": "tex_throttle", "wait": "wait",
}
STALL = "smsp__pcsamp_warps_issue_stalled_"


def metric_names():
    return ([PREFIX + name for name in COUNTERS.values()] + [STALL + name for name in REASONS.values()]
            + [STALL + name + "_not_issued" for name in REASONS.values()])


class Instruction:
    def __init__(self, text, values, access=(None, None, None), frames=(), waits=()):
        self.text, self.values, self.access, self.frames, self.waits = text, values, access, frames, waits


def values_of(row):
    """The values of a row of ncu's, by metric."""
    values = {}
    for column, name in COUNTERS.items():
        values[PREFIX + name] = int(row.get(column) or 0)
    for column, value in row.items():
        found = re.fullmatch(r"stall_(\w+?)(ing)?( \(Not Issued\))?", column)
        if found:
            short = found.group(1) if found.group(1) in REASONS else found.group(1) + (found.group(2) or "")
            values[STALL + REASONS[short] + ("_not_issued" if found.group(3) else "")] = int(value)
    return values


def recorded(kernel):
    """The instructions of a kernel in ncu's file."""
    rows = list(csv.reader(open(os.path.join(FOLDER, "ncu-source.csv"), encoding="utf-8")))
    at = next(i for i, row in enumerate(rows) if row[0] == "Kernel Name" and row[1].startswith(kernel + "("))
    header, out = rows[at + 1], []
    base = int(rows[at + 2][0], 16)
    for row in rows[at + 2:]:
        if row[0] == "Kernel Name":
            break
        named = dict(zip(header, row))
        access = (None, None, None)
        if named["Address Space"] != "-":
            access = (named["Address Space"], named["Access Operation"], int(named["Access Size"]))
        text = re.sub(r"0x7ff[0-9a-f]+", lambda found: hex(int(found.group(), 16) - base), named["Source"])
        out.append(Instruction(" ".join(text.split()), values_of(named), access))
    return out


def vector_add(path):
    out = recorded("vectorAdd")
    lines = [4] + 4 * [6] + [7, 7, 7] + 11 * [8] + [9]
    for instruction, line in zip(out, lines):
        instruction.frames = ((path, line, "vectorAdd"),)
    out[4].waits = (0x10, 0x20, 0x30)
    out[17].waits = (0xd0, 0xf0)
    return out


def softmax(paths):
    """Rows of text, line, inlined at, executions, threads of 32, samples by reason, and what else differs from 0."""
    own, library = paths
    here = lambda line: (own, line, "softmax_kernel")
    rows = [
        ("S2R R0, SR_TID.X", (here(13),), 32, {"wait": 4}, {}, None, ()),
        ("S2UR UR6, SR_CTAID.X", (here(12),), 32, {"no_instructions": 30, "wait": 2}, {}, None, ()),
        ("IMAD R2, R0, c[0x0][0x220], RZ", (here(14),), 32, {"short_scoreboard": 60}, {}, None, (0,)),
        ("@!P0 BRA 0x50", (here(14),), 20, {"branch_resolving": 40}, {"Divergent Branches": 96}, None, ()),
        ("LDG.E R4, desc[UR4][R2.64]", (here(14),), 32, {"lg_throttle": 700, "wait": 12},
         {"L1 Tag Requests Global": 1024, "L2 Theoretical Sectors Global": 32768,
          "L2 Theoretical Sectors Global Ideal": 4096}, ("Global", "Load", 32), ()),
        ("FMUL R4, R4, 1.5", ((own, 7, "scale"), here(15)), 32, {"long_scoreboard": 3100, "selected": 21}, {}, None,
         (4,)),
        ("STL [R1], R4", ((own, 7, "scale"), here(15)), 32, {"lg_throttle": 15}, {"Local": 4096},
         ("Local", "Store", 32), ()),
        ("SHFL.BFLY PT, R5, R4, 0x10, 0x1f", ((library, 170, "_reduce"), (library, 191, "max"), here(16)), 32,
         {"short_scoreboard": 12, "wait": 30}, {}, None, ()),
        ("FMNMX R5, R4, R5, !PT", ((library, 118, "_elementwise_max"), (library, 191, "max"), here(16)), 32,
         {"short_scoreboard": 410, "selected": 9}, {}, None, (7,)),
        ("STS [R3], R5", ((library, 170, "_reduce"), (library, 191, "max"), here(16)), 32, {"mio_throttle": 140},
         {"L1 Wavefronts Shared": 8192, "L1 Wavefronts Shared Ideal": 1024}, ("Shared", "Store", 32), ()),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", ((library, 170, "_reduce"), (library, 191, "max"), here(16)), 32,
         {"barrier": 620}, {}, None, ()),
        ("LDS R6, [R3]", ((library, 170, "_reduce"), (library, 191, "max"), here(16)), 32, {"mio_throttle": 50},
         {"L1 Wavefronts Shared": 1024, "L1 Wavefronts Shared Ideal": 1024}, ("Shared", "Load", 32), ()),
        ("MUFU.EX2 R7, R6", (here(17),), 32, {"short_scoreboard": 95, "math_pipe_throttle": 22}, {}, None, (11,)),
        ("STG.E.128 desc[UR4][R8.64], R12", (here(19),), 32, {"wait": 44, "selected": 5},
         {"L1 Tag Requests Global": 1024, "L2 Theoretical Sectors Global": 16384,
          "L2 Theoretical Sectors Global Ideal": 16384, "L2 Explicit Hit Policy Evict First": 1024},
         ("Global", "Store", 128), ()),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R8.64], R12", (here(19),), 32, {"lg_throttle": 9}, {"Reductions": 1024},
         ("Global", "Reduction", 32), ()),
        ("EXIT", (here(19),), 32, {}, {}, None, ()),
    ]
    out = []
    for text, frames, threads, samples, more, access, waits in rows:
        values = {PREFIX + "inst_executed": 1024, PREFIX + "thread_inst_executed": 1024 * threads,
                  PREFIX + "thread_inst_executed_pred_on": 1024 * threads}
        values.update({PREFIX + COUNTERS[column]: value for column, value in more.items()})
        for reason, count in samples.items():
            values[STALL + reason] = count
            values[STALL + reason + "_not_issued"] = 0 if reason == "selected" else count * 3 // 4
        out.append(Instruction(text, values, access or (None, None, None), frames, tuple(16 * at for at in waits)))
    return out


def hash_of(content):
    """FNV-1a of 64 bits."""
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:016x}"


def insert(db, table, **columns):
    """A row; columns that are not named are NULL, or 0 or "" where they must not be."""
    known = db.execute(f"PRAGMA table_info({table})").fetchall()
    default = lambda row: None if not row[3] or row[5] else ("" if row[2] == "TEXT" else 0)
    assert set(columns) <= {row[1] for row in known}, (table, columns)
    values = [columns.get(row[1], default(row)) for row in known]
    return db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(values))})", values).lastrowid


def add_launches(db, kernels):
    """Leave of the launches of the fixture the first one, and add one like it of each kernel."""
    db.executescript("DELETE FROM value WHERE launch_id > 0; DELETE FROM launch WHERE id > 0; DELETE FROM nvtx;"
                     "DELETE FROM graph_node; DELETE FROM kernel WHERE id > 1; DELETE FROM seen; DELETE FROM message;")
    columns = [row[1] for row in db.execute("PRAGMA table_info(launch)")]
    copied = ", ".join({"id": "?1", "kernel_id": "?2", "position": "?1"}.get(name, name) for name in columns)
    for number, (mangled, demangled, function) in enumerate(kernels, 1):
        if number > 1:
            insert(db, "kernel", id=number, mangled=mangled, demangled=demangled, function=function,
                   registers_per_thread_compiled=16, max_threads_per_block=1024, binary_version=90, ptx_version=90)
            db.execute(f"INSERT INTO launch SELECT {copied} FROM launch WHERE id=0", (number - 1, number))
            db.execute("INSERT INTO value SELECT ?, metric_id, value FROM value WHERE launch_id=0", (number - 1,))
        insert(db, "seen", process_id=1, kernel_id=number, launches=1)


def add_files(db, paths):
    ids = {}
    for path in paths:
        local = os.path.join(FOLDER, os.path.basename(path))
        content = open(local, "rb").read() if os.path.exists(local) else None
        ids[path] = insert(db, "code_file", path=path, bytes=len(content) if content else None,
                           hash=hash_of(content) if content else None)
    return ids


def add_code(db, kernel, instructions, states):
    code = insert(db, "code", crc=1000 + kernel, bytes=16 * len(instructions), text_state=states[0],
                  line_state=states[1])
    mangled, demangled = db.execute("SELECT mangled, demangled FROM kernel WHERE id=?", (kernel,)).fetchone()
    return insert(db, "code_function", code_id=code, mangled=mangled, demangled=demangled,
                  bytes=16 * len(instructions))


def add_instructions(db, function, instructions, files):
    for at, instruction in enumerate(instructions):
        space, operation, bits = instruction.access
        insert(db, "code_instruction", function_id=function, offset=16 * at, text=instruction.text, space=space,
               operation=operation, access_bits=bits)
        for depth, (path, line, name) in enumerate(instruction.frames):
            insert(db, "code_line", function_id=function, offset=16 * at, depth=depth, file_id=files[path], line=line,
                   function=name)
        for producer in instruction.waits:
            insert(db, "code_wait", function_id=function, offset=16 * at, producer_offset=producer)


def add_profile(db, kernel, function, instructions, metrics):
    profile = insert(db, "code_profile", process_id=1, kernel_id=kernel, device_id=1, launch_id=kernel - 1, counted=1,
                     sampled=1, period_cycles=256)
    insert(db, "launch_code_profile", launch_id=kernel - 1, profile_id=profile)
    for metric in metrics.values():
        insert(db, "code_profile_metric", profile_id=profile, metric_id=metric)
    for at, instruction in enumerate(instructions):
        for name, value in instruction.values.items():
            if value:
                insert(db, "instruction_value", profile_id=profile, function_id=function, offset=16 * at,
                       metric_id=metrics[name], value=value)


def fill(db):
    kernels = [
        ("_Z9vectorAddPKfS0_Pfi", "vectorAdd(float const*, float const*, float*, int)", "vectorAdd"),
        ("softmax_kernel", "softmax_kernel", "softmax_kernel"),
        ("_Z4incrPfi", "incr(float*, int)", "incr"),
        ("stripped", "stripped", "stripped"),
    ]
    home = "/home/user/project/"
    library = "/home/user/project/standard.py"
    add_launches(db, kernels)
    files = add_files(db, [home + "vectorAdd.cu", home + "softmax.py", library])
    metrics = {name: insert(db, "metric", name=name, kind="instruction") for name in metric_names()}
    no_lines = "the code has no lines"
    codes = [
        (vector_add(home + "vectorAdd.cu"), ("", "")),
        (softmax((home + "softmax.py", library)), ("", "")),
        (recorded("incr"), ("", no_lines)),
        (recorded("incr")[:14], ("nvdisasm was not found", no_lines)),
    ]
    for kernel, (instructions, states) in enumerate(codes, 1):
        function = add_code(db, kernel, instructions, states)
        if states[0]:
            for instruction in instructions:
                instruction.text, instruction.access = None, (None, None, None)
        add_instructions(db, function, instructions, files)
        add_profile(db, kernel, function, instructions, metrics)


def main():
    output = sys.argv[2] if len(sys.argv) > 2 else os.path.join(FOLDER, "source.kprof")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "source.kprof")
        subprocess.run([sys.argv[1], path], check=True)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous=OFF")
        fill(db)
        db.execute("PRAGMA page_size=512")
        db.execute("VACUUM")
        db.close()
        with open(path, "rb") as made, open(output, "wb") as kept:
            kept.write(made.read())


if __name__ == "__main__":
    main()
