"""What the tests of the HTML page share: reports with hostile names and with many launches, and the data of a page."""
import json
import random
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


OTHER_MEMORY = {f"lts__t_sectors_srcunit_tex_aperture_{kind}.sum": value
                for kind, value in (("sysmem_op_read", 3_000_000), ("sysmem_op_write", 500_000),
                                    ("sysmem_op_red", 40_000), ("peer_op_read", 0))}
NOT_MEASURED = "lts__t_sectors_srcunit_tex_aperture_peer_op_write.sum"
SHARED = {f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum": value
          for kind, value in (("ld", 12_345_678), ("st", 4321), ("atom", 0))}


def make_memory(report, target):
    """The report with values of shared memory, and of the host's and other GPUs' memory, without NOT_MEASURED."""
    of_metric = "WHERE metric_id = (SELECT id FROM metric WHERE name = ?)"
    return change(report, target, (f"DELETE FROM value {of_metric}", [NOT_MEASURED]),
                  *((f"UPDATE value SET value = ? {of_metric}", [value, name])
                    for name, value in {**SHARED, **OTHER_MEMORY}.items()))


KERNELS = ("gemm", "softmax", "layer_norm_forward", "copy", "reduce_rows", "transpose", "embedding_gather", "histogram",
           "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
           "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)")


def make_kernels(report, target):
    """The report with KERNELS, of which the nth has n + 1 launches of different length beside the report's own kernel:
    amounts and shares are random, but the same each time."""
    numbers = random.Random(1)
    with sqlite3.connect(report) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(launch)") if row[1] not in ("id", "kernel_id")]
        first, last, kernel = database.execute("SELECT min(id), max(id), min(kernel_id) FROM launch").fetchone()
        own = database.execute("SELECT metric.id, name, unit, value FROM value JOIN metric ON metric.id = metric_id "
                               "WHERE launch_id = ?", [first]).fetchall()
    database.close()
    statements, names, launch = [], ", ".join(columns), last
    for number, name in enumerate(KERNELS, 1):
        statements.append(("INSERT INTO kernel SELECT (SELECT max(id) + 1 FROM kernel), ?1, ?1, ?1, "
                           "registers_per_thread_compiled, static_smem_bytes, local_bytes_per_thread, constant_bytes, "
                           "max_threads_per_block, binary_version, ptx_version FROM kernel WHERE id = ?2",
                           [name, kernel]))
        scale, work = numbers.uniform(0.2, 1.2), 10 ** numbers.uniform(-0.3, 2)
        for _ in range(number):
            launch += 1
            statements.append((f"INSERT INTO launch (id, kernel_id, {names}) SELECT ?, (SELECT max(id) FROM kernel), "
                               f"{names} FROM launch WHERE id = ?", [launch, first]))
            for metric, metric_name, unit, value in own:
                fixed = value is None or metric_name.startswith(("launch__", "device__")) or \
                    metric_name.endswith("cycles_elapsed.avg.per_second") or "peak" in metric_name and unit != "%"
                most = 100 if unit == "%" else float("inf")
                grown = (value or 0) * (work if "flops" in metric_name else scale) * numbers.uniform(0.7, 1.3)
                own_value = value if fixed else min(most, grown)
                statements.append(("INSERT INTO value VALUES (?, ?, ?)", [launch, metric, own_value]))
    return change(report, target, *statements)


def frame(function, file, line):
    return {"function": function, "file": file, "line": line}


TRAIN = "/home/me/train.py"
TORCH = "/usr/lib/python3.12/site-packages/torch"
OUTER = [frame("train", TRAIN, 40), frame("<module>", TRAIN, 57)]
MODULE = [frame("Module._call_impl", TORCH + "/nn/modules/module.py", 1784),
          frame("Module._wrapped_call_impl", TORCH + "/nn/modules/module.py", 1773)]
# Frames of a line of the program and its text; the innermost first.
STACKS = (("train.py:12 in Net.forward", [frame("Linear.forward", TORCH + "/nn/modules/linear.py", 125), *MODULE,
                                          frame("Net.forward", TRAIN, 12), *MODULE, *OUTER]),
          ("train.py:13 in Net.forward", [frame("relu", TORCH + "/nn/functional.py", 1701),
                                          frame("Net.forward", TRAIN, 13), *MODULE, *OUTER]),
          ("train.py:33 in step", [frame("Tensor.backward", TORCH + "/_tensor.py", 648), frame("step", TRAIN, 33),
                                   *OUTER]),
          (f"train.py:34 in {HOSTILE}", [frame(HOSTILE, TRAIN, 34), *OUTER]),
          ("app+0x1234 in run", [{"function": "run", "module": "/home/me/app", "offset": 4660},
                                 {"module": "/lib/x86_64-linux-gnu/libc.so.6", "offset": 160329}]))


LONG_NAME = "at::native::a_name_that_is_longer_than_a_narrow_window<with, template, arguments, of, its, own>"


def make_deep_stacks(kprof, report, target):
    """The report, in the present version, with a stack of 60 frames for each launch, different in the innermost one."""
    present = target.with_suffix(".present.kprof")
    subprocess.run([kprof, "report", report, "-q", "-o", present], check=True)
    outer = [frame(f"{LONG_NAME}{depth}", f"/home/me/a/project/part{depth}.py", depth) for depth in range(59)]
    statement = ("INSERT INTO stack SELECT 1 + id, 'train.py:1 in leaf' || id, ?1, replace(?2, 'leaf', 'leaf' || id), "
                 "0, '' FROM launch", [TRAIN, json.dumps([frame("leaf", TRAIN, 1), *outer])])
    return change(present, target, statement, "INSERT INTO launch_stack SELECT id, 1 + id, 'launch' FROM launch")


def make_stacks(kprof, report, target):
    """The report, in the present version, with the call stacks STACKS of its launches in turn; each sixth has none."""
    present = target.with_suffix(".present.kprof")
    subprocess.run([kprof, "report", report, "-q", "-o", present], check=True)
    statements = [("INSERT INTO stack VALUES (?, ?, ?, ?, ?, '')",
                   [number, line, TRAIN, json.dumps(frames), number == 3])
                  for number, (line, frames) in enumerate(STACKS, 1)]
    return change(present, target, *statements, "INSERT INTO launch_stack SELECT id, 1 + id % 6, 'launch' FROM launch "
                  "WHERE id % 6 < 5")


GENERATED = "ctjdbz5ca6omwk7rvwnvyotfgbfnkqflfbzbzzqvcpbkdlbbn5ms.py" # as torch.compile names files


def make_long_source(report, target, count):
    """softmax_kernel, of such a file, has that many more instructions, 16 in each of the lines from 1000 on and the
    last 1,000 in line 2000, with a sample each; one of their texts is a tag. Line 1005 has 4,000 letters."""
    sample = "smsp__pcsamp_warps_issue_stalled_wait"
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?2 - 1)"
    return change(report, target,
                  ("UPDATE code_function SET bytes = bytes + 16 * ?1 WHERE id = 2", [count]),
                  (f"{numbers} INSERT INTO code_instruction (function_id, offset, text) SELECT 2, 4096 + 16 * i, "
                   "CASE i WHEN 5 THEN ?1 ELSE 'MOV R1, ' || i END FROM n", [HOSTILE, count]),
                  (f"{numbers} INSERT INTO code_line (function_id, offset, depth, file_id, line) "
                   "SELECT 2, 4096 + 16 * i, 0, (SELECT id FROM code_file WHERE path LIKE ?1), "
                   "iif(i < ?2 - 1000, 1000 + i / 16, 2000) FROM n",
                   ["%softmax.py", count]),
                  ("UPDATE code_file SET path = ?1, content = ?2 WHERE path LIKE '%softmax.py'",
                   [f"/tmp/{GENERATED}", "\n" * 1004 + "x " * 2000]),
                  (f"{numbers} INSERT INTO instruction_value SELECT 2, 2, 4096 + 16 * i, "
                   "(SELECT id FROM metric WHERE name = ?1), 1 FROM n", [sample, count]))


def data_of(path):
    """The text of the data block and what it holds, with the values of each launch in full and findings by name."""
    text = BLOCK.search(path.read_text(encoding="utf-8"))[1]
    data, before = json.loads(text), []
    for launch in [launch for part in data["parts"] for launch in part.get("launches", [])]:
        values = []
        for value in launch["values"]:
            values += before[len(values):len(values) + value[0]] if isinstance(value, list) else [value]
        launch["values"] = before = values
        launch["findings"] = [dict(zip(("rule", "gain", "message", "advice", "next", "places"), found))
                              for found in launch.get("findings", [])]
    return text, data
