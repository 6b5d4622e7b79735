#!/usr/bin/env python3
"""Reads reports with python/ncu_report.py, as scripts made for Nsight Compute's module do: values, instances, NVTX
ranges and findings are those that kprof prints, and what ncu counted of instructions. Usage: check_ncu_report.py
SOURCE_FOLDER WRITE_FIXTURE KPROF"""
import collections
import csv
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SOURCE, WRITE_FIXTURE, KPROF = (pathlib.Path(word) for word in sys.argv[1:4])
sys.path.insert(0, str(SOURCE / "python"))
sys.dont_write_bytecode = True
os.environ["KPROF"] = str(KPROF)
import ncu_report  # noqa: E402

FIXTURES, SAMPLES = SOURCE / "tests/fixtures", SOURCE / "samples"
SOURCE_REPORT = SAMPLES / "source-h200.kprof"
TIME = "gpu__time_duration.sum"


def printed(report, *options):
    run = subprocess.run([KPROF, "report", report, "--json", *options], capture_output=True, text=True)
    if run.returncode == 106:  # no launch matches
        return []
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["launches"]


def actions_of(report):
    return [action for each in ncu_report.load_report(report) for action in each]


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, *words):
        path = self.folder / "run.ncu-rep"
        subprocess.run([WRITE_FIXTURE, path, *words], check=True)
        return path

    def changed(self, *statements):
        """A report of the newest schema with these changes."""
        path = self.written()
        database = sqlite3.connect(path)
        for statement in statements:
            database.execute(statement)
        database.commit()
        database.close()
        return path


class Values(Case):
    def assert_same(self, report):
        actions, launches = actions_of(report), printed(report, "--page", "raw")
        self.assertEqual(len(actions), len(launches), report)
        for action, launch in zip(actions, launches):
            known = {name: value for name, value in launch["values"].items() if value is not None}
            scalars = {name: action[name] for name in action if name in launch["values"]}
            self.assertEqual(sorted(scalars), sorted(known), report)
            for name, value in known.items():
                self.assertAlmostEqual(scalars[name].as_double(), value, delta=abs(value) * 1e-12, msg=name)
            kernel = launch["kernel"]
            self.assertEqual([action.name(base) for base in range(3)],
                             [kernel["function"], kernel["demangled"], kernel["mangled"]])

    def test_as_printed(self):
        for report in (*FIXTURES.glob("report-v*.kprof"), *SAMPLES.glob("vec*.kprof"), self.written("multiplexed")):
            self.assert_same(report)

    def test_a_path_that_is_no_utf8(self):
        path = self.folder / os.fsdecode(b"run?%20\xff.ncu-rep")
        self.written().rename(path)
        self.assertEqual(ncu_report.load_report(path)[0][0].name(), actions_of(self.written())[0].name())

    def test_disagreeing_samples_are_set_apart(self):
        spread = "(SELECT id FROM metric WHERE name LIKE '%inst_executed%spread%')"
        first = "(SELECT min(id) FROM launch WHERE replay_mode='multiplex' AND measured>0)"
        path = self.written("multiplexed")
        database = sqlite3.connect(path)
        database.execute(f"INSERT OR REPLACE INTO value SELECT {first}, id, 5 FROM metric WHERE id={spread}")
        database.commit()
        database.close()
        self.assert_same(path)

    def test_missing(self):
        action = actions_of(FIXTURES / "report-v11.kprof")[2]  # it was not measured
        self.assertIsNone(action.metric_by_name(TIME))
        self.assertNotIn(TIME, action.metric_names())
        self.assertRaises(KeyError, lambda: action[TIME])
        self.assertRaises(TypeError, lambda: action[0])
        self.assertGreater(len(action), 50)

    def test_kinds(self):
        action = actions_of(SAMPLES / "vectorAdd-h200.kprof")[0]
        time, share = action[TIME], action["sm__throughput.avg.pct_of_peak_sustained_elapsed"]
        self.assertEqual((time.name(), str(time), time.unit(), type(time.value())), (TIME, TIME, "ns", int))
        self.assertEqual((time.kind(), share.kind()), (time.ValueKind_UINT64, share.ValueKind_DOUBLE))
        self.assertEqual(time.as_uint64(), time.value())
        self.assertEqual(share.as_uint64(), int(share.value()))
        self.assertEqual(time.as_string(), str(time.value()))
        self.assertEqual((time.metric_type(), time.rollup_operation(), time.metric_subtype()),
                         (time.MetricType_COUNTER, ncu_report.IMetric.RollupOperation_SUM, None))
        self.assertEqual((share.metric_type(), share.rollup_operation(), share.metric_subtype()),
                         (share.MetricType_THROUGHPUT, share.RollupOperation_AVG,
                          share.MetricSubtype_PCT_OF_PEAK_SUSTAINED_ELAPSED))
        ratio = next(action[name] for name in action if name.endswith(".ratio") and action[name].metric_type())
        self.assertEqual((ratio.metric_type(), ratio.rollup_operation(), ratio.metric_subtype()),
                         (ratio.MetricType_RATIO, None, ratio.MetricSubtype_RATIO))
        block, gpu = action["launch__block_size"], action["device__attribute_display_name"]
        self.assertEqual((block.metric_type(), block.rollup_operation(), block.value()),
                         (block.MetricType_OTHER, None, 256))
        self.assertEqual((gpu.kind(), gpu.value(), gpu.as_string()), (gpu.ValueKind_STRING, *["NVIDIA H200"] * 2))
        self.assertEqual((gpu.as_double(), gpu.as_uint64(), gpu.num_instances(), gpu.has_correlation_ids(),
                          gpu.correlation_ids(), gpu.has_value(), gpu.has_value(0), gpu.value(0)),
                         (0.0, 0, 0, False, None, True, False, None))
        self.assertEqual(action["dram__bytes_read.sum.per_second"].unit(), "byte/s")
        self.assertIn("# of", action["dram__bytes_read.sum.per_second"].description())
        self.assertEqual(action.workload_type(), ncu_report.IAction.WorkloadType_KERNEL)

    def test_indices(self):
        context = ncu_report.load_report(str(FIXTURES / "report-v11.kprof"))
        self.assertEqual((context.num_ranges(), len(context), len(list(context))), (1, 1, 1))
        every = context.range_by_idx(0)
        self.assertIs(every, context[0])
        self.assertEqual((context.range_by_idx(1), every.action_by_idx(4), every.action_by_idx(-1)), (None, None, None))
        self.assertEqual((every.num_actions(), len(every), len(every[1:3])), (4, 4, 2))
        self.assertEqual([str(action) for action in every], [every.action_by_idx(i).name() for i in range(4)])
        self.assertRaises(IndexError, lambda: every[4])
        self.assertRaises(TypeError, lambda: every["vectorAdd"])
        self.assertRegex(context.get_version(), r"^\d+\.\d+")

    def test_graphs_and_ranges(self):
        path = self.changed("UPDATE launch SET block_x=0 WHERE id<2",
                            "UPDATE metric SET name='launch__range_launches' WHERE name='launch__context_id'",
                            "DELETE FROM value WHERE launch_id<>1 AND metric_id=(SELECT id FROM metric WHERE "
                            "name='launch__range_launches')")
        graph, a_range, kernel = actions_of(path)[:3]
        self.assertEqual((graph.workload_type(), a_range.workload_type(), kernel.workload_type()),
                         (graph.WorkloadType_GRAPH, graph.WorkloadType_RANGE, graph.WorkloadType_KERNEL))


class Instructions(Case):
    def test_counted_by_ncu(self):
        names = {"Instructions Executed": "inst_executed", "Thread Instructions Executed": "thread_inst_executed",
                 "Predicated-On Thread Instructions Executed": "thread_inst_executed_true",
                 "Divergent Branches": "smsp__branch_targets_threads_divergent",
                 "L1 Tag Requests Global": "memory_l1_tag_requests_global",
                 "L1 Wavefronts Shared": "memory_l1_wavefronts_shared",
                 "L1 Wavefronts Shared Ideal": "memory_l1_wavefronts_shared_ideal",
                 "L1 Wavefronts Shared Excessive": "derived__memory_l1_wavefronts_shared_excessive",
                 "L2 Theoretical Sectors Global": "memory_l2_theoretical_sectors_global",
                 "L2 Theoretical Sectors Global Excessive": "derived__memory_l2_theoretical_sectors_global_excessive"}
        kernels = collections.defaultdict(list)
        with open(FIXTURES / "source/ncu-recorded.csv") as file:
            for row in csv.reader(file):
                if row[0] == "Kernel Name":
                    rows = kernels[row[1].split("(")[0]]
                elif row[0] == "Address":
                    header = row
                elif row:
                    rows.append(dict(zip(header, row)))
        for action in actions_of(FIXTURES / "source/recorded.kprof"):
            rows = kernels[action.name()]
            begin, base = int(rows[0]["Address"], 16), action["launch__function_pcs"].value(0)
            for column, name in ((column, name) for column, name in names.items() if column in rows[0]):
                metric = action[name]
                ids = metric.correlation_ids()
                self.assertEqual(ids.num_instances(), metric.num_instances())
                found = {ids.as_uint64(i) - base: metric.as_uint64(i) for i in range(metric.num_instances())}
                self.assertEqual(found, {int(row["Address"], 16) - begin: int(row[column]) for row in rows}, name)
                self.assertEqual(metric.value(), sum(found.values()))

    def test_samples_and_lines(self):
        action = actions_of(SOURCE_REPORT)[1]
        counted = action["smsp__pcsamp_sample_count"]
        self.assertEqual(counted.value(), 7347)  # as docs/source.md tells
        self.assertEqual(sum(counted.value(i) for i in range(counted.num_instances())), 7347)
        stalls = action["smsp__pcsamp_warps_issue_stalled_long_scoreboard"]
        ids, lines = stalls.correlation_ids(), collections.Counter()
        for i in range(stalls.num_instances()):
            info = action.source_info(ids.as_uint64(i))
            lines[os.path.basename(info.file_name()), info.line()] += stalls.as_uint64(i)
        self.assertEqual(lines.most_common(1)[0][0], ("memory.cu", 14))
        hottest = max(range(stalls.num_instances()), key=stalls.as_uint64)
        self.assertRegex(action.sass_by_pc(ids.as_uint64(hottest)), r"IADD3|IMAD|R13")
        self.assertEqual([name for name, text in action.source_files().items() if name.endswith("memory.cu") and
                          "total += in[i * stride];" in text], [name for name in action.source_files()
                                                               if name.endswith("memory.cu")])
        self.assertEqual((action.sass_by_pc(7), action.ptx_by_pc(7), action.source_info(7)), ("", "", None))
        self.assertEqual((action.source_markers(), action.timed_warp_samples()), ((), ()))
        own = action["smsp__sass_inst_executed"]  # kprof's name
        self.assertEqual((own.name(), own.value()), ("inst_executed", action["inst_executed"].value()))
        self.assertNotIn("inst_executed", actions_of(SAMPLES / "vectorAdd-h200.kprof")[0].metric_names())

    def test_sums_of_launches_are_shared(self):
        report = SAMPLES / "transpose-before-h200.kprof"
        actions = [action for action in actions_of(report) if "inst_executed" in action]
        [(total, launches)] = sqlite3.connect(report).execute(
            "SELECT total(value), counted FROM instruction_value JOIN metric ON metric.id=metric_id JOIN code_profile "
            "ON code_profile.id=profile_id WHERE name='smsp__sass_inst_executed' AND profile_id=1")
        self.assertGreater(launches, 1)
        self.assertAlmostEqual(actions[0]["inst_executed"].as_double(), total / launches)

    def test_ptx_and_time(self):
        path = self.changed(
            "INSERT INTO code VALUES(1, 1, 64, '', '', NULL)",
            "INSERT INTO code_function VALUES(3, 1, '_Z9vectorAddPKfS0_Pfi', 'vectorAdd', 32)",
            "INSERT INTO code_file VALUES(1, '1.ptx', 9, 'aa', 'first\nsecond\n')",
            "INSERT INTO code_instruction VALUES(3, 0, 'LDC R1', NULL, NULL, NULL), (3, 16, NULL, NULL, NULL, NULL)",
            "INSERT INTO code_ptx VALUES(3, 16, 1, 2)",
            "INSERT INTO metric VALUES(9001, 'smsp__sass_inst_executed', 'inst', '', 'instruction')",
            "INSERT INTO code_profile SELECT 1, process_id, kernel_id, device_id, 0, 1, 0, 0, 0, '' FROM launch "
            "WHERE id=0",
            "INSERT INTO launch_code_profile VALUES(0, 1)", "INSERT INTO code_profile_metric VALUES(1, 9001)",
            "INSERT INTO instruction_value VALUES(1, 3, 16, 9001, 5)",
            "INSERT INTO timeline SELECT 0, id, 0, 1000, 2.0 FROM metric WHERE name='" + TIME + "'",
            "INSERT INTO timeline SELECT 0, id, 1000, 3000, 6.0 FROM metric WHERE name='" + TIME + "'",
            "INSERT INTO timeline SELECT 0, id, 4000, 1000, NULL FROM metric WHERE name='" + TIME + "'")
        action = actions_of(path)[0]
        executed = action["inst_executed"]
        pcs = [executed.correlation_ids().value(i) for i in range(executed.num_instances())]
        self.assertEqual([executed.value(i) for i in range(2)], [0, 5])
        self.assertEqual([action.sass_by_pc(pc) for pc in pcs], ["LDC R1", ""])
        self.assertEqual([action.ptx_by_pc(pc) for pc in pcs], ["", "second"])
        self.assertEqual(pcs[1] - action["launch__function_pcs"].as_uint64(0), 16)
        samples = action["pmsampling:" + TIME]
        self.assertEqual([samples.value(i) for i in range(samples.num_instances())], [2.0, 6.0, None])
        self.assertEqual([samples.has_value(i) for i in range(4)], [True, True, False, False])
        self.assertEqual(samples.correlation_ids().as_uint64(1), 1000)
        self.assertEqual(samples.value(), 5.0)  # over the time that is known

    def test_names_and_version_are_those_of_kprof(self):
        text = (SOURCE / "src/metricset/instruction.c").read_text()
        rows = re.findall(r'COUNTER\(([^,]+), "(\w+)"', text)
        for name, value in re.findall(r'#define (\w+) +"(\w*)"', text):
            rows = [(re.sub(rf"\b{name}\b", f'"{value}"', words), ncu) for words, ncu in rows]
        self.assertEqual({"".join(re.findall(r'"(\w*)"', words)): ncu for words, ncu in rows}, ncu_report._NCU_NAMES)
        fields = (SOURCE / "src/core/fields.h").read_text()
        self.assertEqual(int(re.search(r"KPROF_SCHEMA_VERSION (\d+)", fields)[1]), ncu_report._NEWEST_SCHEMA)


class Ranges(Case):
    TEXTS = ["train/step 1/forward/; net@conv\\/1/; epoch", "train/step 1/", "a/b/a/c/", "net@a/b/; x; net@y", "; ",
             "d\\@e\\;f@g\\\\/h/"]
    EXPRESSIONS = ["train/", "[train/", "forward]", "[train]", "train/forward/", "train/+/forward/", "train/*/forward/",
                   "a/*/c", "a/+/+/c/", "a/b]", "[a/b/]", "epoch", "x,epoch", "x", "net@y", "net@a/", "net@conv\\/1/",
                   "regex:net|zz@b/", "regex:st.p/", "regex:^ep", "regex:/[af]/]/", "d\\@e\\;f@g\\\\/", "g\\\\/",
                   "none/"]

    def test_as_kprof_chooses(self):
        path = self.changed("DELETE FROM nvtx", *(f"INSERT INTO nvtx VALUES({i}, '{text}')"
                                                  for i, text in enumerate(self.TEXTS) if i < 4))
        self.assertEqual(len(actions_of(path)), 4)
        for texts in (self.TEXTS[:4], self.TEXTS[2:]):
            database = sqlite3.connect(path)
            database.executemany("UPDATE nvtx SET ranges=? WHERE launch_id=?", [(t, i) for i, t in enumerate(texts)])
            database.commit()
            database.close()
            every = ncu_report.load_report(path)[0]
            for one in self.EXPRESSIONS:
                for words, chosen in ((["--nvtx-include", one], every.actions_by_nvtx([one], [])),
                                      (["--nvtx-exclude", one], every.actions_by_nvtx([], [one]))):
                    wanted = [launch["id"] for launch in printed(path, "--page", "raw", *words)]
                    self.assertEqual([every[i]._row["id"] for i in chosen], wanted, (words, texts))
        self.assertEqual(every.actions_by_nvtx([], []), (0, 1, 2, 3))
        self.assertRaises(ValueError, every.actions_by_nvtx, ["a@b@c/"], [])

    def test_state(self):
        actions = actions_of(FIXTURES / "report-v11.kprof")
        state = actions[1].nvtx_state()
        self.assertEqual((state.domains(), len(state), [str(domain) for domain in state]),
                         ((0, 1), 2, ["<default domain>", "net"]))
        default = state.domain_by_id(0)
        self.assertEqual((default.push_pop_ranges(), default.start_end_ranges()),
                         (("train", "step 1", "forward"), ("epoch",)))
        self.assertEqual((state[1].name(), state[1].push_pop_ranges()), ("net", ("conv/1",)))
        self.assertEqual((default.push_pop_range(2).name(), default.push_pop_range(3),
                          default.start_end_range(0).name(), default.start_end_range(1)),
                         ("forward", None, "epoch", None))
        self.assertEqual((state.domain_by_id(2), actions[0].nvtx_state().domains()), (None, ()))
        self.assertRaises(KeyError, lambda: state[2])
        one = default.push_pop_range(0)
        self.assertEqual((one.has_attributes(), one.category(), one.color(), one.message(), one.payload_type(),
                          one.payload_as_double(), one.payload_as_uint64(), one.payload_as_string()),
                         (False, 0, 0, "", one.PayloadType_PAYLOAD_UNKNOWN, 0.0, 0, ""))
        self.assertIsNone(actions_of(SOURCE_REPORT)[0].nvtx_state())


class Findings(Case):
    def test_as_printed(self):
        report = SAMPLES / "vectorAdd-h200.kprof"
        [launch], action = printed(report), actions_of(report)[0]
        results, rows = action.rule_results(), action.rule_results_as_dicts()
        self.assertEqual([result.rule_identifier() for result in results],
                         [one["ncu_rule"] or one["id"] for one in launch["findings"]])
        self.assertEqual([str(result) for result in results], [row["name"] for row in rows])
        for finding, result, row in zip(launch["findings"], results, rows):
            gain = finding["estimated_speedup"] and finding["estimated_speedup"]["pct"]
            self.assertEqual(row.get("speedup_estimation", {}).get("speedup"), gain)
            self.assertEqual(result.has_speedup_estimation(), "speedup_estimation" in row)
            self.assertTrue(row["rule_message"]["message"].startswith(finding["message"]))
            self.assertEqual((row["section_identifier"], result.has_rule_message()), (finding["section"], True))
            self.assertEqual((result.focus_metrics(), len(result.result_tables()[0]["data"])),
                             ([], len(finding["evidence"])))
        kinds = {row["rule_identifier"]: row["rule_message"]["type"] for row in rows}
        self.assertEqual((kinds["SOLBottleneck"], kinds["NarrowAccesses"], kinds["IssueSlotUtilization"]),
                         (ncu_report.MsgType.OK, ncu_report.MsgType.OPTIMIZATION, ncu_report.MsgType.WARNING))
        self.assertEqual({row["speedup_estimation"]["type"] for row in rows if "speedup_estimation" in row},
                         {ncu_report.SpeedupType.GLOBAL})
        json.dumps(rows)

    def test_of_metrics_alone(self):
        for action in actions_of(self.changed("DELETE FROM section WHERE identifier <> 'CommandLine'")):
            self.assertEqual((action.rule_results(), action.rule_results_as_dicts()), ((), []))

    def test_no_program(self):
        self.addCleanup(os.environ.update, KPROF=os.environ["KPROF"])
        os.environ["KPROF"] = "/nowhere/kprof"
        self.assertRaisesRegex(RuntimeError, "name it by the variable KPROF", actions_of(SOURCE_REPORT)[0].rule_results)


class Scripts(Case):
    """What public scripts made for Nsight Compute do, each in a few lines."""

    def test_archive_all_metrics(self):
        report = ncu_report.load_report(str(SOURCE_REPORT))
        kept = {}
        for range_index in range(report.num_ranges()):
            each = report.range_by_idx(range_index)
            for action_index in range(each.num_actions()):
                action = each.action_by_idx(action_index)
                kept[action_index, action.name()] = {
                    name: {"value": action[name].value(), "unit": action[name].unit(),
                           "instances": action[name].num_instances()} for name in sorted(action.metric_names())}
        self.assertEqual(kept[1, "uncoalesced_read"]["inst_executed"]["instances"], 80)
        json.dumps(list(kept.values()))

    def test_table_of_key_metrics(self):
        def safe(action, name):
            try:
                return action[name].value()
            except Exception:
                return None
        action = ncu_report.load_report(SAMPLES / "vectorAdd-h200.kprof").range_by_idx(0).action_by_idx(0)
        names = ["launch__grid_size", "launch__registers_per_thread", "lts__t_sector_hit_rate.pct", "no__such.sum"]
        self.assertEqual([safe(action, name) is None for name in names], [False, False, False, True])

    def test_values_only_where_there_are(self):
        found = []
        for action in ncu_report.load_report(FIXTURES / "report-v11.kprof")[0]:
            metric = action.metric_by_name(TIME)
            if metric is not None and hasattr(metric, "has_value") and metric.has_value():
                found.append(metric.value())
        self.assertEqual(len(found), 3)

    def test_longest_kernel(self):
        found = [(action[TIME].as_double(), action.name(ncu_report.IAction.NameBase_DEMANGLED))
                 for each in ncu_report.load_report(FIXTURES / "source/recorded.kprof") for action in each]
        self.assertTrue(max(found)[1].startswith("transposeConflicts("), found)

    def test_hottest_lines(self):
        action = ncu_report.load_report(SOURCE_REPORT).range_by_idx(0).action_by_idx(1)
        lines = collections.Counter()
        for name in action.metric_names():
            metric = action.metric_by_name(name)
            if name.startswith("smsp__pcsamp_warps_issue_stalled_") and not name.endswith("_not_issued"):
                self.assertTrue(metric.has_correlation_ids())
                for i in range(metric.num_instances()):
                    place = action.source_info(metric.correlation_ids().as_uint64(i))
                    lines[(place.file_name(), place.line()) if place else ("?", 0)] += metric.as_uint64(i)
        [(top, samples)] = lines.most_common(1)
        self.assertEqual((top[1], round(samples / sum(lines.values()), 4)), (14, 0.9871))  # as docs/source.md

    def test_instructions_from_the_entry_on(self):
        action = ncu_report.load_report(SOURCE_REPORT)[0][1]
        entry, listing = action["launch__function_pcs"], []
        for i in range(entry.num_instances()):
            address = entry.as_uint64(i)
            while text := action.sass_by_pc(address):
                listing.append(text)
                address += 16
        self.assertEqual(len(listing), action["inst_executed"].num_instances())
        self.assertIn("EXIT", " ".join(listing))

    def test_rollups(self):
        by_number = {None: None, ncu_report.IMetric.RollupOperation_AVG: "mean",
                     ncu_report.IMetric.RollupOperation_MAX: max, ncu_report.IMetric.RollupOperation_MIN: min,
                     ncu_report.IMetric.RollupOperation_SUM: sum}
        self.assertEqual(list(by_number), [None, 1, 2, 3, 4])
        action = ncu_report.load_report(SOURCE_REPORT)[0][0]
        used = {by_number[action[name].rollup_operation()] for name in action}
        self.assertEqual(used, {None, "mean", max, sum, min} & used)
        self.assertGreater(len(used), 2)

    def test_values_by_kind(self):
        def read(metric, i):
            if metric.kind() == metric.ValueKind_UINT64:
                return metric.as_uint64(i)
            if metric.kind() in (metric.ValueKind_DOUBLE, metric.ValueKind_FLOAT):
                return metric.as_double(i)
            return metric.as_string(i)
        metric = ncu_report.load_report(SOURCE_REPORT)[0][1]["thread_inst_executed"]
        self.assertEqual(sum(read(metric, i) for i in range(metric.num_instances())), metric.value())

    def test_groups_by_range(self):
        groups = collections.defaultdict(list)
        each = ncu_report.load_report(FIXTURES / "report-v11.kprof").range_by_idx(0)
        for i in range(each.num_actions()):
            state = each.action_by_idx(i).nvtx_state()
            for domain_id in state.domains():
                domain = state.domain_by_id(domain_id)
                for name in domain.push_pop_ranges():
                    groups[domain.name(), name].append(i)
        self.assertEqual(groups, {("<default domain>", "train"): [1, 2], ("<default domain>", "step 1"): [1, 2],
                                  ("<default domain>", "forward"): [1], ("net", "conv/1"): [1]})

    def test_mean_in_a_range(self):
        each = ncu_report.load_report(FIXTURES / "report-v11.kprof").range_by_idx(0)
        values = [each.action_by_idx(i)[TIME].value() for i in each.actions_by_nvtx(["train/*/forward/"], [])]
        self.assertEqual(len(values), 1)

    def test_shapes(self):
        action = ncu_report.load_report(SOURCE_REPORT)[0][1]
        available = set(action)

        def shape(prefix):
            return tuple(action.metric_by_name(f"{prefix}_dim_{axis}").value() if f"{prefix}_dim_{axis}" in available
                         else 1 for axis in "xyz")
        self.assertEqual((shape("launch__grid"), shape("launch__block")), ((1056, 1, 1), (256, 1, 1)))

    def test_kinds_of_work(self):
        kinds = collections.Counter(action.workload_type() == action.WorkloadType_KERNEL
                                    for each in ncu_report.load_report(SOURCE_REPORT) for action in each)
        self.assertEqual(kinds, {True: 2})

    def test_best_rule(self):
        action = ncu_report.load_report(SAMPLES / "vectorAdd-h200.kprof")[0][0]
        rows = [((row.get("speedup_estimation") or {}).get("speedup"), row["rule_identifier"],
                 (row.get("rule_message") or {}).get("title") or "") for row in action.rule_results_as_dicts()]
        rows.sort(key=lambda row: row[0] if row[0] is not None else -1, reverse=True)
        self.assertGreater(rows[0][0], rows[2][0])
        self.assertIsNone(rows[-1][0])


class Refused(Case):
    def assert_refused(self, kind, text, path):
        with self.assertRaisesRegex(kind, text):
            ncu_report.load_report(path)

    def test_files(self):
        path = self.folder / "a.ncu-rep"
        self.assert_refused(FileNotFoundError, "a.ncu-rep", path)
        path.write_bytes(b"NVR\0")
        self.assert_refused(RuntimeError, "the ncu_report of Nsight Compute reads it", str(path))
        path.write_bytes(b"")
        self.assert_refused(RuntimeError, "is no report of kprof", path)
        self.assert_refused(IsADirectoryError, "", self.folder)
        path.write_bytes((FIXTURES / "report-v11.kprof").read_bytes()[:6000])
        self.assert_refused(RuntimeError, "a.ncu-rep: ", path)
        path.unlink()
        sqlite3.connect(path).execute("CREATE TABLE metric(id)").connection.close()
        self.assert_refused(RuntimeError, "is no report of kprof", path)
        self.assert_refused(RuntimeError, "version 99 of kprof's schema", self.changed("PRAGMA user_version=99"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
