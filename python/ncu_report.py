"""Reads kprof's reports with the interface of Nsight Compute's Python module of this name, so that scripts made for
that one go on working: import ncu_report; ncu_report.load_report("run.ncu-rep").

One file, which needs the standard library alone, and for findings the program kprof. What was not measured is not
there: metric_by_name returns None, and an index raises KeyError. docs/guide.md tells what else differs.
"""

import enum
import errno
import json
import math
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import urllib.parse

__all__ = ["FocusSeverity", "IAction", "IContext", "IMetric", "INvtxDomainInfo", "INvtxRange", "INvtxState", "IRange",
           "IRuleResult", "ISourceInfo", "MarkerKind", "MsgType", "SpeedupType", "load_report"]

_APPLICATION_ID = 0x6B707266  # of SQLite's header: "kprf"
_NEWEST_SCHEMA = 13
_SAMPLES_MAX = 1024  # of a kernel and shape, as kprof report reads them
_ADDRESS_BITS = 32  # of an offset in a function; above these stands the function's number
_SAMPLED = "smsp__pcsamp_warps_issue_stalled_"
_LIMIT = "Bottleneck"  # the finding that tells what limits the kernel
_EXCESSIVE = ("memory_l2_theoretical_sectors_global", "memory_l1_wavefronts_shared")  # which have an _ideal one
# What ncu calls the counters of instructions that CUPTI calls smsp__sass_...
_NCU_NAMES = {"inst_executed": "inst_executed", "thread_inst_executed": "thread_inst_executed",
              "thread_inst_executed_pred_on": "thread_inst_executed_true",
              "branch_targets_threads_divergent": "smsp__branch_targets_threads_divergent",
              "branch_targets_threads_uniform": "smsp__branch_targets_threads_uniform",
              "inst_executed_op_branch": "branch_inst_executed",
              "sectors_mem_global": "memory_l2_theoretical_sectors_global",
              "sectors_mem_global_ideal": "memory_l2_theoretical_sectors_global_ideal",
              "l1tex_tags_mem_global": "memory_l1_tag_requests_global",
              "l1tex_pipe_lsu_wavefronts_mem_shared": "memory_l1_wavefronts_shared",
              "l1tex_pipe_lsu_wavefronts_mem_shared_ideal": "memory_l1_wavefronts_shared_ideal",
              "sectors_mem_local": "memory_l2_theoretical_sectors_local"}
_NCU_NAMES = {"smsp__sass_" + name: ncu for name, ncu in _NCU_NAMES.items()}

MsgType = enum.IntEnum("MsgType", "NONE OK OPTIMIZATION WARNING ERROR", start=0)
SpeedupType = enum.IntEnum("SpeedupType", "UNKNOWN LOCAL GLOBAL", start=0)
FocusSeverity = enum.IntEnum("FocusSeverity", "DEFAULT LOW HIGH", start=0)
MarkerKind = enum.IntEnum("MarkerKind", "SASS SOURCE NONE", start=0)


def _constants(prefix, names):
    """As the interface has them: IMetric.ValueKind_DOUBLE is an int."""
    def add(cls):
        for number, name in enumerate(names.split()):
            setattr(cls, f"{prefix}_{name}", number)
        return cls
    return add


class _Sequence:
    """Iteration, len() and indices over _items()."""

    def __len__(self):
        return len(self._items())

    def __iter__(self):
        return iter(self._items())

    def __getitem__(self, key):
        if not isinstance(key, (int, slice)):
            raise TypeError(f"{type(self).__name__} takes an index or a slice, not {type(key).__name__}")
        return self._items()[key]

    def _by_idx(self, idx):
        return self._items()[idx] if 0 <= idx < len(self) else None


def _ncu_unit(unit):
    return "hz" if unit == "cycle/second" else re.sub("/second$", "/s", unit)


@_constants("MetricType", "OTHER COUNTER RATIO THROUGHPUT")
@_constants("MetricSubtype", "NONE PEAK_SUSTAINED PEAK_SUSTAINED_ACTIVE PEAK_SUSTAINED_ACTIVE_PER_SECOND "
            "PEAK_SUSTAINED_ELAPSED PEAK_SUSTAINED_ELAPSED_PER_SECOND PEAK_SUSTAINED_FRAME "
            "PEAK_SUSTAINED_FRAME_PER_SECOND PEAK_SUSTAINED_REGION PEAK_SUSTAINED_REGION_PER_SECOND PER_CYCLE_ACTIVE "
            "PER_CYCLE_ELAPSED PER_CYCLE_IN_FRAME PER_CYCLE_IN_REGION PER_SECOND PCT_OF_PEAK_SUSTAINED_ACTIVE "
            "PCT_OF_PEAK_SUSTAINED_ELAPSED PCT_OF_PEAK_SUSTAINED_FRAME PCT_OF_PEAK_SUSTAINED_REGION MAX_RATE PCT RATIO")
@_constants("RollupOperation", "NONE AVG MAX MIN SUM")
@_constants("ValueKind", "UNKNOWN ANY STRING FLOAT DOUBLE UINT32 UINT64")
class IMetric:
    """A metric of a launch: a value, and for metrics of instructions or over time one for each of these."""

    def __init__(self, name, value, unit="", description="", is_counter=False, instances=(), ids=()):
        self._name, self._value, self._unit, self._description = name, value, _ncu_unit(unit), description
        self._is_counter, self._instances, self._ids = is_counter, instances, ids

    def __str__(self):
        return self._name

    def __repr__(self):
        return f"<IMetric {self._name}: {self._value} {self._unit}>"

    def name(self):
        return self._name

    def unit(self):
        return self._unit

    def description(self):
        return self._description

    def num_instances(self):
        return len(self._instances)

    def has_correlation_ids(self):
        return bool(self._ids)

    def correlation_ids(self):
        """Addresses of instructions, or times in ns; None where there are none."""
        return IMetric(self._name, None, instances=self._ids) if self._ids else None

    def value(self, idx=None):
        if idx is None:
            return self._value
        return self._instances[idx] if 0 <= idx < len(self._instances) else None

    def has_value(self, idx=None):
        return self.value(idx) is not None

    def kind(self, idx=None):
        value = self._instances[0] if idx is None and self._value is None and self._instances else self.value(idx)
        return {str: self.ValueKind_STRING, float: self.ValueKind_DOUBLE, int: self.ValueKind_UINT64}.get(
            type(value), self.ValueKind_UNKNOWN)

    def as_double(self, idx=None):
        value = self.value(idx)
        return float(value) if isinstance(value, (int, float)) else 0.0

    def as_uint64(self, idx=None):
        value = self.value(idx)
        return value if isinstance(value, int) else max(0, int(self.as_double(idx)))

    def as_string(self, idx=None):
        value = self.value(idx)
        return None if value is None else str(value)

    def _parts(self):
        """Of sm__cycles_active.avg.per_second: sm__cycles_active, AVG, PER_SECOND."""
        base, *rest = self._name.split(".")
        names = [part.upper() for part in rest]
        rollup = names.pop(0) if names and names[0] in ("AVG", "MAX", "MIN", "SUM") else None
        return base, rollup, names[0] if names else None

    def metric_type(self):
        if not self._is_counter:
            return self.MetricType_OTHER
        base, rollup, _ = self._parts()
        if rollup is None:
            return self.MetricType_RATIO
        return self.MetricType_THROUGHPUT if base.endswith("throughput") else self.MetricType_COUNTER

    def metric_subtype(self):
        name = self._parts()[2] if self._is_counter else None
        return getattr(self, f"MetricSubtype_{name}", None)

    def rollup_operation(self):
        name = self._parts()[1] if self._is_counter else None
        return getattr(self, f"RollupOperation_{name}", None)


@_constants("PayloadType", "PAYLOAD_UNKNOWN PAYLOAD_INT32 PAYLOAD_INT64 PAYLOAD_UINT32 PAYLOAD_UINT64 PAYLOAD_FLOAT "
            "PAYLOAD_DOUBLE PAYLOAD_JSON")
class INvtxRange:
    """An NVTX range. kprof keeps its name alone."""

    def __init__(self, name):
        self._name = name

    def name(self):
        return self._name

    def has_attributes(self):
        return False

    def category(self):
        return 0

    color = payload_as_uint64 = category

    def message(self):
        return ""

    payload_as_string = message

    def payload_as_double(self):
        return 0.0

    def payload_type(self):
        return self.PayloadType_PAYLOAD_UNKNOWN


class INvtxDomainInfo:
    """The open ranges of an NVTX domain, those that were pushed with the outermost first."""

    def __init__(self, name):
        self._name, self._pushed, self._started = name, [], []

    def __str__(self):
        return self.name()

    def name(self):
        return self._name or "<default domain>"

    def push_pop_ranges(self):
        return tuple(self._pushed)

    def start_end_ranges(self):
        return tuple(self._started)

    def push_pop_range(self, idx):
        return INvtxRange(self._pushed[idx]) if 0 <= idx < len(self._pushed) else None

    def start_end_range(self, idx):
        return INvtxRange(self._started[idx]) if 0 <= idx < len(self._started) else None


def _split(text, marks):
    """The parts between marks that have no \\ before them, each with the mark behind it."""
    parts = [""]
    for token in re.findall(r"\\.|.", text, re.DOTALL):
        if token in marks:
            parts[-1] = (parts[-1], token)
            parts.append("")
        else:
            parts[-1] += token
    return parts[:-1] + [(parts[-1], "")]


def _unescape(name):
    return re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)


class INvtxState:
    """The NVTX ranges that a launch was in."""

    def __init__(self, text):
        """Of a text of the table nvtx: train/step 1/; net@conv/; epoch."""
        self._domains = {}
        domain, before = "", ""  # and the mark before a name
        for name, mark in _split(text, "/@;") if text else ():
            name = _unescape(name[1:] if before == ";" and name.startswith(" ") else name)
            if mark == "@":
                domain = name
            elif mark == "/" or name or before != "/":
                info = self._domains.setdefault(domain, INvtxDomainInfo(domain))
                (info._pushed if mark == "/" else info._started).append(name)
            domain, before = "" if mark == ";" else domain, mark

    def domains(self):
        return tuple(range(len(self._domains)))

    def domain_by_id(self, id):
        return list(self._domains.values())[id] if 0 <= id < len(self._domains) else None

    def __len__(self):
        return len(self._domains)

    def __iter__(self):
        return iter(list(self._domains.values()))

    def __getitem__(self, key):
        if not isinstance(key, int):
            raise TypeError(f"a domain has a number, not {type(key).__name__}")
        if self.domain_by_id(key) is None:
            raise KeyError(key)
        return self.domain_by_id(key)


class _NvtxExpression:
    """An expression of --nvtx-include: domain@outer/*/inner/, a range that was started, or either as regex:."""

    def __init__(self, text):
        self._is_regex = text.startswith("regex:")
        *domain, (body, _) = _split(text[len("regex:"):] if self._is_regex else text, "@")
        if len(domain) > 1 or not body:
            raise ValueError(f'"{text}": an expression names one domain at most, and a range')
        self._domain = domain[0][0] if domain else None
        if self._is_regex:
            body = re.sub(r"/\]$", "]", re.sub(r"^/\[", "[", body))  # brackets of its own
            self._at_bottom, self._at_top = False, False
        else:
            self._at_bottom = body.startswith("[")
            self._at_top = _split(body, "]")[-1] == ("", "")
            body = body[self._at_bottom:len(body) - self._at_top]
        names = _split(body, "/")
        self._is_started = len(names) == 1 and not self._at_bottom and not self._at_top
        self._names = [name for name, _ in (_split(body, ",") if self._is_started else names)]
        if not self._is_started and len(self._names) > 1 and not self._names[-1]:
            self._names.pop()

    def _is_name(self, wanted, name):
        return re.search(wanted, name) is not None if self._is_regex else _unescape(wanted) == name

    def _is_stack(self, names, stack):
        """Do these names match from the beginning of this part of a stack on?"""
        if not names:
            return not self._at_top or not stack
        if names[0] == "*":
            return any(self._is_stack(names[1:], stack[skipped:]) for skipped in range(len(stack)))
        if not stack:
            return False
        return (names[0] == "+" or self._is_name(names[0], stack[0])) and self._is_stack(names[1:], stack[1:])

    def matches(self, state):
        for info in state or ():
            if not (self._is_name(self._domain, info._name) if self._domain else info._name == ""):
                continue
            stack = info._pushed
            starts = range(1 if self._at_bottom else len(stack))
            if self._is_started and all(any(self._is_name(wanted, name) for name in info._started)
                                        for wanted in self._names):
                return True
            if not self._is_started and any(self._is_stack(self._names, stack[start:]) for start in starts):
                return True
        return False


class ISourceInfo:
    """The line that an instruction comes from."""

    def __init__(self, file_name, line):
        self._file_name, self._line = file_name, line

    def file_name(self):
        return self._file_name

    def line(self):
        return self._line


class IRuleResult:
    """A finding of kprof's about a launch."""

    def __init__(self, finding):
        self._finding = finding
        self._speedup = finding["estimated_speedup"] or {"pct": None}

    def __str__(self):
        return self.name()

    def name(self):
        return self._finding["name"]

    def rule_identifier(self):
        return self._finding["ncu_rule"] or self._finding["id"]

    def section_identifier(self):
        return self._finding["section"]

    def has_rule_message(self):
        return True

    def rule_message(self):
        kind = MsgType.OK if self._finding["id"] == _LIMIT else MsgType.WARNING
        kind = MsgType.OPTIMIZATION if self.has_speedup_estimation() else kind
        text = " ".join(filter(None, (self._finding["message"], self._finding["advice"])))
        return {"title": self.name(), "message": text, "type": kind}

    def has_speedup_estimation(self):
        return self._speedup["pct"] is not None

    def speedup_estimation(self):
        if not self.has_speedup_estimation():
            return {}
        kind = SpeedupType.LOCAL if self._speedup["scope"] == "local" else SpeedupType.GLOBAL
        return {"type": kind, "speedup": self._speedup["pct"]}

    def focus_metrics(self):
        return []

    def result_tables(self):
        rows = [[item["label"], item["value"], item["unit"]] for item in self._finding["evidence"]]
        return [{"title": "Evidence", "headers": ["Label", "Value", "Unit"], "data": rows}] if rows else []

    def _as_dict(self):
        found = {"name": self.name(), "rule_identifier": self.rule_identifier(),
                 "section_identifier": self.section_identifier(), "rule_message": self.rule_message(),
                 "focus_metrics": self.focus_metrics(), "result_tables": self.result_tables()}
        return {**found, "speedup_estimation": self.speedup_estimation()} if self.has_speedup_estimation() else found


@_constants("NameBase", "FUNCTION DEMANGLED MANGLED")
@_constants("WorkloadType", "KERNEL GRAPH RANGE CMDLIST")
class IAction:
    """A launch that the report has, or a range or graph that was measured as a whole."""

    def __init__(self, report, rows):
        """rows: the launch, and those that were multiplexed with it."""
        self._report, self._rows, self._row = report, rows, rows[0]
        self._loaded, self._code = None, None

    def __str__(self):
        return self.name()

    def __repr__(self):
        return f"<IAction {self._row['id']}: {self.name()}>"

    def name(self, name_base=0):
        return self._row[("function", "demangled", "mangled")[name_base]]

    def workload_type(self):
        if "launch__range_launches" in self._metrics():
            return self.WorkloadType_RANGE
        return self.WorkloadType_GRAPH if self._row["block_x"] == 0 else self.WorkloadType_KERNEL

    def _metrics(self):
        """{name: a function that makes the metric, or the metric}."""
        if self._loaded is None:
            made = self._report.scalars(self._rows)
            made["device__attribute_display_name"] = IMetric("device__attribute_display_name", self._row["device_name"])
            made.update(self._instructions().metrics())
            made.update(self._report.timelines(self._row["id"]))
            self._loaded = made
        return self._loaded

    def _instructions(self):
        if self._code is None:
            self._code = _Instructions(self._report, [row["id"] for row in self._rows])
        return self._code

    def metric_names(self):
        return tuple(sorted(self._metrics()))

    def metric_by_name(self, metric_name):
        metrics, name = self._metrics(), _NCU_NAMES.get(metric_name, metric_name)
        if callable(metrics.get(name)):
            metrics[name] = metrics[name]()
        return metrics.get(name)

    def __getitem__(self, key):
        if not isinstance(key, str):
            raise TypeError(f"a metric has a name, not {type(key).__name__}")
        found = self.metric_by_name(key)
        if found is None:
            raise KeyError(f"{key}: launch {self._row['id']} has no value of it")
        return found

    def __len__(self):
        return len(self._metrics())

    def __iter__(self):
        return iter(self.metric_names())

    def nvtx_state(self):
        return self._report.nvtx(self._row["id"])

    def source_files(self):
        """{name: text}; the text is empty but with --import-source yes."""
        return self._instructions().files()

    def source_info(self, address):
        return self._instructions().line(address)

    def sass_by_pc(self, address):
        return self._instructions().text(address)

    def ptx_by_pc(self, address):
        return self._instructions().ptx(address)

    def source_markers(self):
        return ()

    def timed_warp_samples(self):
        return ()

    def rule_results(self):
        return tuple(IRuleResult(finding) for finding in self._report.findings().get(self._row["id"], ()))

    def rule_results_as_dicts(self):
        return [result._as_dict() for result in self.rule_results()]


class IRange(_Sequence):
    """All launches of a report, in their order."""

    def __init__(self, report):
        self._report = report

    def _items(self):
        return self._report.actions()

    def num_actions(self):
        return len(self)

    def action_by_idx(self, idx):
        return self._by_idx(idx)

    def actions_by_nvtx(self, includes, excludes):
        wanted, unwanted = ([_NvtxExpression(text) for text in texts] for texts in (includes, excludes))

        def is_chosen(state):
            return (not wanted or any(one.matches(state) for one in wanted)) and not any(
                one.matches(state) for one in unwanted)
        return tuple(i for i, action in enumerate(self) if is_chosen(action.nvtx_state()))


class IContext(_Sequence):
    """A report, which has one range."""

    def __init__(self, report):
        self._report = report
        self._ranges = (IRange(report),)

    def _items(self):
        return self._ranges

    def num_ranges(self):
        return len(self)

    def range_by_idx(self, idx):
        return self._by_idx(idx)

    def get_version(self):
        """kprof's version."""
        return self._report.rows("SELECT kprof_version FROM run")[0]["kprof_version"]


class _Report:
    """The database. Its tables are told in docs/report-schema.md."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        with open(self.path, "rb") as file:
            head = file.read(16)
        if not head.startswith(b"SQLite format 3"):
            hint = ": the ncu_report of Nsight Compute reads it" if head.startswith(b"NVR") else ""
            raise RuntimeError(f"{path} is no report of kprof{hint}")
        self._database = sqlite3.connect(f"file:{urllib.parse.quote(os.fsencode(self.path))}?mode=ro", uri=True,
                                         check_same_thread=False)
        self._database.row_factory = sqlite3.Row
        try:
            self._check(path)
            self.metrics = {row["id"]: row for row in self.rows("SELECT * FROM metric")}
        except sqlite3.Error as failed:
            raise RuntimeError(f"{path}: {failed}") from failed
        self._actions = self._findings = self._ranges = None

    def _check(self, path):
        version = self.rows("PRAGMA user_version")[0][0]
        if self.rows("PRAGMA application_id")[0][0] != _APPLICATION_ID:
            raise RuntimeError(f"{path} is no report of kprof")
        if version > _NEWEST_SCHEMA:
            raise RuntimeError(f"{path} has version {version} of kprof's schema; this module knows {_NEWEST_SCHEMA}")
        self._tables = {row["name"] for row in self.rows("SELECT name FROM sqlite_master WHERE type='table'")}

    def rows(self, sql, *values):
        return self._database.execute(sql, values).fetchall()

    def rows_of(self, table, sql, *values):
        """None of a table that older reports lack."""
        return self.rows(sql, *values) if table in self._tables else []

    def actions(self):
        """Multiplexed launches of one kernel and shape are one, in the place of the first."""
        if self._actions is None:
            groups = {}
            for row in self.rows("SELECT launch.*, function, demangled, mangled, device.name AS device_name FROM "
                                 "launch JOIN kernel ON kernel.id=kernel_id JOIN device ON device.id=device_id "
                                 "ORDER BY launch.id"):
                shape = tuple(row[name] for name in (
                    "process_id", "device_id", "kernel_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
                    "block_z", "cluster_x", "cluster_y", "cluster_z", "dynamic_smem_bytes"))
                groups.setdefault(shape if row["replay_mode"] == "multiplex" else row["id"], []).append(row)
            self._actions = [IAction(self, rows) for rows in groups.values()]
        return self._actions

    def _values(self, launch):
        return {row["metric_id"]: row["value"]
                for row in self.rows("SELECT metric_id, value FROM value WHERE launch_id=?", launch)
                if isinstance(row["value"], float) and math.isfinite(row["value"]) and row["metric_id"] in self.metrics}

    def _is_agreeing(self, values):
        """Do the passes of a sample agree? See docs/report-schema.md, multiplexed launches."""
        spreads = {self.metrics[i]["name"]: value for i, value in values.items()
                   if self.metrics[i]["kind"] == "witness"}
        return all(value <= (0.1 if "inst_executed" in name else 10) for name, value in spreads.items())

    def _medians(self, first, samples):
        read = [self._values(launch) for launch in samples]
        used = [values for values in read if self._is_agreeing(values)] or read
        joined = {}
        for i in {i for values in used for i in values}:
            if self.metrics[i]["kind"] != "launch" or self.metrics[i]["name"] == "launch__range_lead_time":
                joined[i] = statistics.median(values[i] for values in used if i in values)
        return {**first, **joined} if used else first

    def scalars(self, rows):
        values = self._values(rows[0]["id"])
        if rows[0]["replay_mode"] == "multiplex":
            values = self._medians(values, [row["id"] for row in rows if row["measured"] > 0][:_SAMPLES_MAX])
        return {self.metrics[i]["name"]: self._scalar(self.metrics[i], value) for i, value in values.items()}

    @staticmethod
    def _scalar(metric, value):
        name, kind = metric["name"], metric["kind"]
        is_count = re.search(r"\.(sum|min|max)$", name) if kind == "hardware" else kind == "launch"
        if is_count and value == int(value) and not re.search("pct|waves|_avg_", name):
            value = int(value)
        return IMetric(name, value, metric["unit"], metric["description"], kind == "hardware")

    def nvtx(self, launch):
        """None for a report without ranges."""
        if self._ranges is None:
            self._ranges = {row["launch_id"]: row["ranges"]
                            for row in self.rows_of("nvtx", "SELECT launch_id, ranges FROM nvtx")}
        return INvtxState(self._ranges.get(launch, "")) if self._ranges else None

    def timelines(self, launch):
        """{name: metric} of the samples over the time of a launch."""
        made = {}
        for row in self.rows_of("timeline", "SELECT DISTINCT metric_id FROM timeline WHERE launch_id=?", launch):
            metric = self.metrics[row["metric_id"]]
            name = "pmsampling:" + metric["name"]
            points = self.rows("SELECT start_ns, duration_ns, value FROM timeline WHERE launch_id=? AND metric_id=? "
                               "ORDER BY start_ns", launch, metric["id"])
            known = [point for point in points if point["value"] is not None]
            time = sum(point["duration_ns"] for point in known)
            mean = sum(point["value"] * point["duration_ns"] for point in known) / time if time else None
            made[name] = IMetric(name, mean, metric["unit"], metric["description"], True,
                                 [point["value"] for point in points], [point["start_ns"] for point in points])
        return made

    def findings(self):
        """{launch: what kprof report finds}."""
        if self._findings is None:
            run = subprocess.run([_find_kprof(), "report", self.path, "--page", "details", "--json"],
                                 capture_output=True, text=True)
            if run.returncode != 0:
                raise RuntimeError(run.stderr.strip())
            self._findings = {launch["id"]: launch.get("findings", ())  # none where --metrics alone chose
                              for launch in json.loads(run.stdout)["launches"]}
        return self._findings


class _Instructions:
    """The code of a launch's kernel, and what was counted and sampled of each instruction. Its address is that of the
    function, which is the number of a row of code_function above 32 bits, and the offset."""

    def __init__(self, report, launches):
        self._report = report
        profiles = [row for launch in launches for row in report.rows_of(
            "launch_code_profile", "SELECT code_profile.*, mangled FROM launch_code_profile AS own JOIN code_profile "
            "ON code_profile.id=profile_id JOIN kernel ON kernel.id=kernel_id WHERE own.launch_id=?", launch)]
        self._profile = profiles[0] if profiles else None
        self._functions, self._addresses = [], None
        if self._profile:
            rows = report.rows("SELECT id, mangled FROM code_function WHERE id IN (SELECT function_id FROM "
                               "instruction_value WHERE profile_id=?)", self._profile["id"])
            own = self._profile["mangled"]
            self._functions = [row["id"] for row in sorted(rows, key=lambda row: (row["mangled"] != own, row["id"]))]

    def _all(self):
        """The address of each instruction, the kernel's own first."""
        if self._addresses is None:
            self._addresses = [(function << _ADDRESS_BITS) + row["offset"] for function in self._functions
                               for row in self._report.rows("SELECT offset FROM code_instruction WHERE function_id=? "
                                                            "ORDER BY offset", function)]
        return self._addresses

    def metrics(self):
        if not self._functions:
            return {}
        starts = [function << _ADDRESS_BITS for function in self._functions]
        made = {"launch__function_pcs": IMetric("launch__function_pcs", starts[0], instances=starts)}
        measured = {}
        for row in self._report.rows("SELECT metric_id FROM code_profile_metric WHERE profile_id=?",
                                     self._profile["id"]):
            name = self._report.metrics[row["metric_id"]]["name"]
            if name.startswith((_SAMPLED, "smsp__sass_")):
                measured[_NCU_NAMES.get(name, name)] = row["metric_id"]
        for name, metric in measured.items():
            made[name] = self._later(name, [metric])
        reasons = [metric for name, metric in measured.items() if name.startswith(_SAMPLED)
                   and not name.endswith("_not_issued")]
        if reasons:
            made["smsp__pcsamp_sample_count"] = self._later("smsp__pcsamp_sample_count", reasons)
            made["smsp__pcsamp_interval_cycles"] = IMetric("smsp__pcsamp_interval_cycles",
                                                           self._profile["period_cycles"], "cycle")
        for name in _EXCESSIVE:
            if name in measured and name + "_ideal" in measured:
                made[f"derived__{name}_excessive"] = self._later(
                    f"derived__{name}_excessive", [measured[name]], measured[name + "_ideal"])
        return made

    def _later(self, name, added, taken=None):
        """A function that makes the metric, whose values are those of metrics added, less those of one taken."""
        def make():
            counts = self._values(added)
            for address, value in (self._values([taken]) if taken is not None else {}).items():
                counts[address] = max(0, counts.get(address, 0) - value)
            addresses = self._all() or sorted(counts)
            values = [self._of_a_launch(name, counts.get(address, 0)) for address in addresses]
            row = self._report.metrics[added[0]]
            return IMetric(name, sum(values), row["unit"], row["description"] if len(added) == 1 else "",
                           instances=values, ids=addresses)
        return make

    def _of_a_launch(self, name, value):
        """Sums of a profile are over its launches, each of which gets as much."""
        launches = self._profile["sampled" if name.startswith("smsp__pcsamp_") else "counted"] or 1
        mean = value / launches
        return int(mean) if mean == int(mean) else mean

    def _values(self, metrics):
        marks = ",".join("?" * len(metrics))
        rows = self._report.rows("SELECT function_id, offset, total(value) AS value FROM instruction_value WHERE "
                                 f"profile_id=? AND metric_id IN ({marks}) GROUP BY 1, 2", self._profile["id"],
                                 *metrics)
        return {(row["function_id"] << _ADDRESS_BITS) + row["offset"]: row["value"] for row in rows}

    def _row(self, table, sql, address):
        """The first row of an instruction of this launch's code."""
        function, offset = address >> _ADDRESS_BITS, address & ((1 << _ADDRESS_BITS) - 1)
        rows = self._report.rows_of(table, sql, function, offset) if function in self._functions else []
        return rows[0] if rows else None

    def text(self, address):
        row = self._row("code_instruction", "SELECT text FROM code_instruction WHERE function_id=? AND offset=?",
                        address)
        return row["text"] or "" if row else ""

    def line(self, address):
        row = self._row("code_line", "SELECT path, line FROM code_line JOIN code_file ON code_file.id=file_id WHERE "
                        "function_id=? AND offset=? ORDER BY depth", address)
        return ISourceInfo(row["path"], row["line"]) if row else None

    def ptx(self, address):
        row = self._row("code_ptx", "SELECT content, line FROM code_ptx JOIN code_file ON code_file.id=file_id WHERE "
                        "function_id=? AND offset=?", address)
        lines = (row["content"] or "").split("\n") if row else []
        return lines[row["line"] - 1] if row and row["line"] <= len(lines) else ""

    def files(self):
        found = {}
        for function in self._functions:
            for row in self._report.rows("SELECT DISTINCT path, content FROM code_line JOIN code_file ON "
                                         "code_file.id=file_id WHERE function_id=?", function):
                found[row["path"]] = row["content"] or ""
        return found


def _find_kprof():
    here, named = os.path.dirname(os.path.realpath(__file__)), os.environ.get("KPROF")
    for path in [named] if named else (shutil.which("kprof"), os.path.join(here, "../../../bin/kprof")):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise RuntimeError("findings are made by the program kprof, which is not in PATH; name it by the variable KPROF")


def load_report(file_name):
    """The report at this path. FileNotFoundError: there is none; RuntimeError: it is no report of kprof."""
    if not os.path.exists(file_name):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(file_name))
    return IContext(_Report(os.fspath(file_name)))
