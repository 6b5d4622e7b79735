"""What is measured of instructions, from the option to the tables of the report."""

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from harness import APP, INJECTION, KPROF, METRIC, PATIENCE_S, SCALE, VECTOR_ADD, Case

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RECORDED = os.path.join(TESTS, "../samples/source-h200.kprof")
CODE = os.path.join(TESTS, "fixtures/code")


class Instructions(Case):
    @contextlib.contextmanager
    def changed(self, report):
        """A copy, and the database that it is."""
        path = os.path.join(self.dir, "changed.kprof")
        shutil.copyfile(report, path)
        os.chmod(path, 0o600)
        database = sqlite3.connect(path)
        database.execute("PRAGMA journal_mode=DELETE")
        yield path, database
        database.close()

    def measure(self, *options):
        steps = ["init", *(f"launch={name}" for name in (VECTOR_ADD, SCALE, VECTOR_ADD))]
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *options, APP, *steps)
        self.assert_run(run, 0)
        return run

    def test_sums_over_instructions_are_stored(self):
        self.measure("--set", "source")
        self.assertEqual(len(self.launches()), 3)
        profiles = self.query("run.kprof", "SELECT counted, sampled, reason FROM code_profile ORDER BY id")
        self.assertEqual([row[:2] for row in profiles], [(2, 2), (1, 1)])
        # Each counter of a launch is 1000.5 and its number on the simulated machine, in parts for its instructions.
        sums = self.query("run.kprof", "SELECT profile_id, metric.name, sum(value) FROM instruction_value JOIN metric "
                          "ON metric.id = metric_id WHERE metric.name LIKE 'smsp__sass_%' GROUP BY 1, 2")
        self.assertGreater(len(sums), 10)
        by_profile = {}
        for profile, name, value in sums:
            by_profile.setdefault(profile, {})[name] = value
        first, second = (by_profile[key] for key in sorted(by_profile))
        self.assertEqual(set(first), set(second))
        for name in first:
            self.assertAlmostEqual(first[name], 2 * second[name]) # of two launches and of one
        samples = self.query("run.kprof", "SELECT count(DISTINCT metric.name) FROM instruction_value JOIN metric ON "
                             "metric.id = metric_id WHERE metric.name LIKE 'smsp__pcsamp_%'")
        self.assertEqual(samples, [(3,)])

    def test_run_that_is_stopped_and_started_again(self):
        ctl = f"{KPROF} ctl"
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--armed", "no", "--set", "source", APP,
                         f"run={ctl} start", f"launch={SCALE}", f"run={ctl} start --metrics {METRIC} -o part",
                         f"launch={SCALE}", f"run={ctl} start", f"launch={SCALE}")
        self.assert_run(run, 0)
        self.assertEqual(self.query("run.kprof", "SELECT counted, sampled, reason FROM code_profile"), [(2, 2, "")])
        self.assertEqual(self.query("part.kprof", "SELECT count(*) FROM code_profile"), [(0,)])

    def test_names_of_instructions_alone_are_enough(self):
        for metrics in ("source:inst_executed", "group:smsp__pcsamp_warp_stall_reasons,launch__grid_size"):
            self.measure("--metrics", metrics)
            kinds = self.query("run.kprof", "SELECT counted > 0, sampled > 0, reason FROM code_profile")
            is_hottest = "Hottest     instruction 0x0000 of called" in self.kprof("report", "run.kprof").out
            self.assertEqual(is_hottest, metrics.startswith("group:")) # on the simulated machine each kernel calls it
            self.assertEqual(set(kinds), {(metrics.startswith("source:"), metrics.startswith("group:"), "")})
            self.assertGreater(self.query("run.kprof", "SELECT count(*) FROM instruction_value")[0][0], 0)
            self.assertEqual(self.query("run.kprof", "SELECT DISTINCT measured, reason FROM launch"), [(1, "")])

    def test_counters_that_were_asked_for_have_columns(self):
        """Rows are sorted by one that was measured."""
        alone = "smsp__sass_inst_executed_op_shared"
        for metrics, labels in ((f"source:{alone}", [alone]),
                                ("smsp__branch_targets_threads_divergent", ["Divergent branches"]),
                                ("inst_executed,memory_l1_tag_requests_global", ["Instructions", "L1 tag requests"])):
            self.measure("--metrics", metrics)
            page = self.kprof("report", "run.kprof", "--page", "source", "--top", "1", "-w", "200").out
            head, row = re.search("\n( .* Address .*)\n(.*)\n", page).groups()
            self.assertTrue(head.endswith("  ".join(labels)), head)
            self.assertRegex(row, " 0x[0-9a-f]+" + " +[0-9,.]+" * len(labels) + "$")
            self.assertEqual(self.kprof("report", "run.kprof", "--html", "page.html", "-f").code, 0)
            with open(self.path("page.html"), encoding="utf-8") as file:
                columns = json.loads(re.search(r'"columns":(\[.*?\]),"zeros"', file.read())[1])
            self.assertEqual([column["label"] for column in columns], labels)

    def test_launches_stay_apart_where_that_is_asked_for(self):
        self.measure("--set", "source", "--source-per-launch")
        self.assertEqual(self.query("run.kprof", "SELECT link.launch_id, counted, sampled FROM code_profile JOIN "
                                    "launch_code_profile AS link ON profile_id = code_profile.id ORDER BY 1"),
                         [(0, 1, 1), (1, 1, 1), (2, 1, 1)])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code_profile"), [(3,)])
        page = self.kprof("report", "run.kprof", "--page", "source", "-w", "400").out
        for launch in (0, 2):
            self.assertIn(f"Simulated H200, Launch {launch}, ", page)
        note = "the lines of its instructions are not known" # of two kernels, three launches
        self.assertEqual(re.findall(f" ([0-9]*) +{note}", page), ["1"])
        self.assertEqual(self.kprof("report", "run.kprof", "--page", "source", "--json").out.count(note), 2)

    def test_nothing_of_it_happens_unless_it_is_asked_for(self):
        self.measure("--set", "full", "--section-exclude", "SourceCounters")
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code_profile"), [(0,)])
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code"), [(0,)])

    def run_cubin(self, *options):
        """One whose source is not where it was compiled; what nvdisasm prints of it was recorded."""
        stub = self.path("nvdisasm")
        with open(stub, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec cat {CODE}/lengths_sm90.sass\n")
        os.chmod(stub, 0o700)
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--metrics", "inst_executed", "--nvdisasm",
                         stub, *options, APP, "init", "launch=doubled",
                         env={"KPROF_SIM_CUBIN": f"{CODE}/lengths_sm90.cubin"})
        self.assert_run(run, 0)
        return self.kprof("report", "run.kprof", "--page", "source", "--print-source", "cuda,sass", "-w", "200").out

    def test_a_cubin_gives_lines_texts_and_sources(self):
        os.makedirs(self.path("project/deep"))
        source = self.path("project/deep/lengths.cu")
        shutil.copyfile(f"{CODE}/lengths.cu", source)
        for given in ("--source-folders", self.path("project")), ("--resolve-source-file", source):
            page = self.run_cubin("--import-source", "yes", *given)
            self.assertIn("out[i] = twice(a[i]);", page)
            self.assertIn("/home/ada/project/lengths.cu  text from the report", page)
            self.assertRegex(page, r"\n +0x0050  LDG.E R2, desc\[UR4\]\[R2.64\] ")
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code WHERE cubin NOT NULL"), [(0,)])
        page = self.run_cubin("--source-folders", self.path("project"), "--import-sass", "yes")
        self.assertNotIn("out[i]", page)
        self.assertIn("lengths.cu:17", page)
        self.assertIn("no text: not found", page)
        for named, is_stranger in (source, False), (APP, True):
            run = self.kprof("report", "run.kprof", "--page", "source", "--resolve-source-file", named)
            self.assertEqual("no line of the report is of a file of this name" in run.err, is_stranger)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code WHERE cubin NOT NULL"), [(1,)])

    def test_nvdisasm_that_hangs_is_interrupted(self):
        """Whoever ends kprof then gets the report without texts."""
        stub, started = self.path("nvdisasm"), self.path("started")
        with open(stub, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n: >{started}\nexec sleep 1000\n")
        os.chmod(stub, 0o700)
        words = [KPROF, "--injection-path", INJECTION, "-o", "run", "--metrics", "inst_executed", "--nvdisasm", stub,
                 APP, "init", "launch=doubled"]
        environment = self.environment({"KPROF_SIM_CUBIN": f"{CODE}/lengths_sm90.cubin"}, words)
        with subprocess.Popen(words, cwd=self.dir, env=environment) as kprof:
            while not os.path.exists(started):
                self.assertIsNone(kprof.poll())
                time.sleep(0.01)
            kprof.send_signal(signal.SIGINT)
            self.assertEqual(kprof.wait(PATIENCE_S), 0)
        self.assertIn(f"have no text: {stub}: a signal has interrupted it",
                      self.kprof("report", "run.kprof", "--page", "source", "-w", "300").out)

    def test_files_that_were_edited_after_they_were_compiled(self):
        """nvcc notes the time and the size of a file behind its name, as LEB128."""
        folder = tempfile.mkdtemp(prefix="kpr-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        source, size, time = os.path.join(folder, "l.cu"), 1234, 1_700_000_000
        padded = [bytes(value >> 7 * i & 0x7f | (i + 1 < count) << 7 for i in range(count))
                  for value, count in ((time, 5), (size, 3))]
        with open(f"{CODE}/lengths_sm90.cubin", "rb") as file:
            code = file.read()
        self.assertEqual(len(folder), len("/home/ada/project"))
        code = code.replace(b"/home/ada/project", folder.encode()).replace(
            b"lengths.cu\0\1\0\0", b"l.cu\0\1" + b"".join(padded))
        with open(self.path("cubin"), "wb") as file:
            file.write(code)
        warned = f"kprof: warning: {source} was written after it was compiled"
        for length, written, is_shown in (size, time, True), (size, time + 9, True), (size + 1, time + 9, False):
            with open(source, "w", encoding="utf-8") as file:
                file.write("// the text\n" * 60 + "-" * (length - 720))
            os.utime(source, (written, written))
            for keeps in "no", "yes":
                run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--metrics", "inst_executed",
                                 "--import-source", keeps, APP, "init", "launch=doubled",
                                 env={"KPROF_SIM_CUBIN": self.path("cubin")})
                self.assert_run(run, 0)
                self.assertEqual(warned in run.err, written > time)
                self.assertEqual("--import-source yes: " in run.err, keeps == "yes" and not is_shown)
                page = self.kprof("report", "run.kprof", "--page", "source", "-w", "200").out
                self.assertEqual("// the text" in page, is_shown)
                self.assertEqual("no text: the file here is not the one that was compiled" in page, not is_shown)
        os.mkdir(self.path("else"))
        shutil.copyfile(source, self.path("else/l.cu"))
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--metrics", "inst_executed",
                         "--import-source", "yes", "--source-folders", self.path("else"), APP, "init",
                         "launch=doubled", env={"KPROF_SIM_CUBIN": self.path("cubin")})
        self.assertIn(warned, run.err) # nothing of its size is there either
        os.truncate(source, size) # the report does not know its hash
        page = "report", "run.kprof", "--page", "source", "-w", "200"
        self.assertNotIn("// the text", self.kprof(*page).out)
        self.assertIn("// the text", self.kprof(*page, "--source-folders", folder).out)

    def test_counters_of_instructions_need_no_permission(self):
        denied = {"KPROF_SIM_PROBE": "no-permission", "KPROF_SIM_FAULT": "permission"}
        steps = ["init", f"launch={VECTOR_ADD}", "settle", f"launch={VECTOR_ADD}"]
        for metrics, samples in (("--set", "source"), True), (("--metrics", "source:inst_executed"), False):
            run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *metrics, APP, *steps, env=denied)
            self.assert_run(run, 0)
            self.assertIn("instructions are counted and nothing else is measured: RmProfilingAdminOnly is 1", run.err)
            self.assertEqual(self.query("run.kprof", "SELECT DISTINCT measured, reason FROM launch"),
                             [(0, "counters are for root alone (simulated)")])
            ((counted, sampled, reason),) = self.query("run.kprof", "SELECT counted, sampled, reason FROM code_profile")
            self.assertEqual((counted, sampled), (2, 0))
            self.assertEqual("samples are for root alone (simulated)" in reason, samples)
            page = self.kprof("report", "run.kprof", "--page", "source").out
            self.assertIn("counters of 2 launches", page)
        for metrics in (("--set", "full"), ("--metrics", METRIC), ("--metrics", "smsp__pcsamp_interval")):
            run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", *metrics, APP, *steps, env=denied)
            self.assert_run(run, 104)
            self.assertIn("error: RmProfilingAdminOnly is 1 (simulated)", run.err)

    def multiplex(self, launches, *options):
        run = self.kprof("--injection-path", INJECTION, "-f", "-o", "run", "--set", "source",
                         "--replay-mode", "multiplex", *options, APP, "init", *[f"launch={VECTOR_ADD}"] * launches)
        self.assert_run(run, 0)
        return self.query("run.kprof", "SELECT counted, sampled, reason FROM code_profile")

    def test_launches_that_are_not_repeated_are_measured_one_pass_each(self):
        rows = self.multiplex(30, "--multiplex-samples", "2", "--warp-sampling-interval", "5")
        self.assertEqual(rows, [(2, 2, "")])
        # Each counter of a launch is 1000.5 and its number; all are of the launches that were counted.
        sums = [row[0] for row in self.query("run.kprof", "SELECT sum(value) FROM instruction_value JOIN metric ON "
                                             "metric.id = metric_id WHERE metric.name LIKE 'smsp__sass_%' GROUP BY "
                                             "metric_id ORDER BY metric_id")]
        self.assertEqual(sums, [2 * (1000.5 + i) for i in range(len(sums))])
        page = self.kprof("report", "run.kprof", "--page", "source", "--print-source", "sass", "--all").out
        self.assertIn("samples of 2 launches", page)
        self.assertIn("counters of 2 launches", page)

    def test_multiplexed_launches_that_are_too_few_tell_so(self):
        self.multiplex(3)
        page = self.kprof("report", "run.kprof", "--page", "source").out
        self.assertIn("samples of 2 launches, at several intervals", page) # the first one had few
        ((counted, sampled, reason),) = self.multiplex(2)
        self.assertEqual((counted, sampled), (0, 1))
        self.assertIn("instructions are counted in one launch of a kernel and shape and sampled in another", reason)

    def test_what_never_ran_is_told_as_ncu_does(self):
        run = self.kprof("report", RECORDED, "--page", "source", "--print-source", "sass", "--all", "--csv",
                         "--csv-layout", "ncu")
        self.assert_run(run, 0)
        rows = list(csv.reader(run.out.splitlines()))
        header = next(row for row in rows if row[0] == "Address")
        idle = [told for told in (dict(zip(header, row)) for row in rows if len(row) == len(header))
                if told["Instructions Executed"] == "0"]
        told = {(row["Source"].split()[0].split(".")[0], row["Avg. Predicated-On Threads Unexecuted"],
                 row["Access Operation"], row["Access Size"]) for row in idle}
        for instruction in (("LDG", "32", "", ""), ("VIADD", "32", "-", "-"), ("BRA", "0", "-", "-"),
                            ("NOP", "0", "-", "-")):
            self.assertIn(instruction, told)

    def ncu_rows(self, report):
        run = self.kprof("report", report, "-k", "uncoalesced_read", "--page", "source", "--print-source", "sass",
                         "--all", "--csv", "--csv-layout", "ncu")
        self.assert_run(run, 0)
        rows = list(csv.reader(run.out.splitlines()))
        header = next(row for row in rows if row[0] == "Address")
        return header, [row for row in rows if row[0].startswith("0x")]

    def test_brief_of_a_launch_without_a_time(self):
        run = self.kprof("report", RECORDED, "--brief", "-k", "uncoalesced_read")
        self.assert_run(run, 0)
        self.assertRegex(run.out, r"\n  Launches +1\n  Duration +n/a\n")
        self.assertIn("no counters of 1 of 1 launch\n", run.out)
        self.assertNotIn("not measured", run.out)

    def test_a_kernel_with_instructions_alone_has_its_verdict_on_each_page(self):
        told = {}
        for page in ("details", "summary", "brief"):
            run = self.kprof("report", RECORDED, "--page", page, "-k", "uncoalesced_read")
            self.assert_run(run, 0)
            told[page] = " ".join(run.out.split())
            self.assertRegex(told[page], "(Top stall|Stalls) +Long Scoreboard:? 98.15 %")
            self.assertIn("Occupancy 100 % possible", told[page])
        for page in ("details", "summary"):
            self.assertIn("Worth most Accesses are not coalesced (no estimate)", told[page])
        self.assertIn("Findings Accesses are not coalesced, high confidence", told["brief"])

    def test_columns_depend_on_what_the_code_has_as_ncus_do(self):
        """As of a product of cuBLAS on an H200, whether or not an access has run."""
        local, policies = "L2 Theoretical Sectors Local", "L2 Explicit Evict Policies"
        header, rows = self.ncu_rows(RECORDED)
        self.assertNotIn(local, header)
        self.assertNotIn("L1 Wavefronts Shared", header)
        self.assertIn(policies, header)
        idle = next(int(row[0], 16) for row in rows if "NOP" in row[1])
        load = next(int(row[0], 16) for row in rows if "LDG" in row[1] and "Global" in row)
        with self.changed(RECORDED) as (path, database):
            database.execute("UPDATE code_instruction SET text = 'STL.64 [R1+0x70], R88', space = 'Local', operation = "
                             "'Store', access_bits = 64 WHERE offset = ?", (idle,))
            database.execute("UPDATE code_instruction SET text = 'LD.E R13, [R12]', space = 'Generic' WHERE offset = ?",
                             (load,))
            database.execute("UPDATE code_instruction SET text = replace(text, ' desc[', ' [')")
            database.commit()
            header, rows = self.ncu_rows(path)
            self.assertEqual(header.index(local), header.index("L2 Theoretical Sectors Global Ideal") + 1)
            self.assertEqual({row[header.index(local)] for row in rows}, {"0"})
            self.assertNotIn(policies, header)
            told = {int(row[0], 16): row[header.index("Address Space")] for row in rows}
            self.assertEqual(told[load], "Global")
            database.execute("UPDATE code_instruction SET text = 'LDGSTS.E [R3], desc[UR6][R12.64]', space = 'Global' "
                             "WHERE offset = ?", (load,))
            database.commit()
            header, rows = self.ncu_rows(path)
            row = next(row for row in rows if int(row[0], 16) == load)
            self.assertEqual((row[header.index("Address Space")], row[header.index("Access Operation")]),
                             ("Global,Shared", "Load,Store"))

    def test_pages_tell_why_no_line_is_the_hottest(self):
        """As of kernels that were loaded before samples were enabled, which have counters alone."""
        reason = "loaded while samples were not enabled"
        of_samples = "metric_id IN (SELECT id FROM metric WHERE name LIKE 'smsp__pcsamp_%')"
        with self.changed(RECORDED) as (path, database):
            database.execute(f"DELETE FROM instruction_value WHERE {of_samples}")
            database.execute(f"DELETE FROM code_profile_metric WHERE {of_samples}")
            database.execute("UPDATE code_profile SET sampled = 0, reason = ?", (reason,))
            database.commit()
            told = {options: self.kprof("report", path, *options.split()).out
                    for options in ("", "--page source", "--markdown", "--csv", "--json", "--brief --json")}
        self.assertIn(f"Hottest     not known: {reason}", told[""])
        self.assertIn(f"**Hottest**: not known: {reason}", told["--markdown"])
        self.assertIn(reason, told["--page source"])
        self.assertRegex(told["--csv"], f'"verdict__hot_line","",+"{reason}"')
        self.assertNotIn('"hot_line"', told["--json"])
        self.assertNotIn("hot_lines", told["--brief --json"])

    def test_lines_of_ptx_are_told_where_there_are_no_others(self):
        """As of PTX without lines that was compiled with -lineinfo."""
        with self.changed(os.path.join(TESTS, "../samples/transpose-before-h200.kprof")) as (path, database):
            database.execute("DELETE FROM code_line")
            database.execute("UPDATE code SET line_state = 'the code was compiled without lines'")
            database.commit()
            page = self.kprof("report", path, "--page", "source", "--top", "1", "-w", "200").out
            self.assertIn("the code was compiled without lines; those of its PTX are (--print-source ptx)", page)
            self.assertNotIn("lines come with", page)
            self.assertRegex(self.kprof("report", path, "--page", "source", "--print-source", "ptx", "--top", "1").out,
                             r"[0-9a-f]{8}\.ptx:[0-9]+ ")
            rows = csv.DictReader(self.kprof("report", path, "--page", "source", "--print-source", "ptx",
                                             "--csv").out.splitlines())
            self.assertEqual({row["function"] for row in rows}, {"transpose(float const*, float*, unsigned int)"})

    def test_instructions_without_a_line_have_their_addresses_below_those_with_one(self):
        with self.changed(RECORDED) as (path, database):
            database.execute("DELETE FROM code_line WHERE offset = 0x180")
            database.commit()
            page = self.kprof("report", path, "-k", "uncoalesced_read", "--page", "source", "--print-source",
                              "cuda,sass", "--all", "-w", "200").out
        self.assertRegex(page, r"\n  no line .*\n( +Costs .*\n)?    0x0180  LDG\.E R13, desc\[UR6\]\[R12\.64\] ")

    def test_codes_of_one_name_and_shape_are_told_apart(self):
        """As of kernels that torch.compile makes for two graphs."""
        with self.changed(RECORDED) as (path, database):
            (function,), = database.execute("SELECT id FROM code_function WHERE mangled LIKE '%uncoalesced_read%'")
            database.execute("INSERT INTO code SELECT 9001, crc + 1, bytes, text_state, line_state, NULL FROM code "
                             "LIMIT 1")
            database.execute("INSERT INTO code_function SELECT 9002, 9001, mangled, demangled, bytes FROM "
                             "code_function WHERE id = ?", (function,))
            for table, columns in (("code_instruction", "offset, text, space, operation, access_bits"),
                                   ("instruction_value", "offset, metric_id, 2 * value")):
                keys = "profile_id, 9002" if table == "instruction_value" else "9002"
                database.execute(f"INSERT INTO {table} SELECT {keys}, {columns} FROM {table} WHERE function_id = ?",
                                 (function,))
            database.execute("DELETE FROM code_line")
            database.commit()
            page = self.kprof("report", path, "-k", "uncoalesced_read", "--page", "source", "-w", "200").out
            hottest = self.kprof("report", path, "-k", "uncoalesced_read").out
        self.assertIn("2 codes of this name ran in this shape", page)
        self.assertRegex(page, r"\n  uncoalesced_read\(.*\) \(2\)  0x[0-9a-f]+ ")
        self.assertRegex(" ".join(hottest.split()), r"Hottest instruction 0x0260 of uncoalesced_read.*\) \(2\), ")

    def test_each_framework_has_its_way_to_lines(self):
        """By the kernel's mangled name."""
        ways = {"_ZN6cudapy8__main__3hotEv": "Numba: lines come with @cuda.jit(lineinfo=True)",
                "_ZN2at6native3addEv": "PyTorch's own kernels have lines where", "loop_add_fusion": "XLA: ",
                "fusion_3": "XLA: ", "_Z11conv_fusionPf": "lines come with -lineinfo of nvcc and NVRTC"}
        self.assert_run(self.collect(["--set", "source"], [f"launch={name}*2" for name in ways]), 0)
        for name, way in ways.items():
            page = " ".join(self.kprof("report", "run", "--page", "source", "--kernel-name-base", "mangled", "-k",
                                       name).out.split())
            self.assertEqual([other for other in {*ways.values()} if other in page], [way])

    def test_people_see_the_start_of_a_long_line(self):
        with self.changed(RECORDED) as (path, database):
            (content, identity), = database.execute("SELECT content, id FROM code_file WHERE path LIKE '%memory.cu'")
            lines = content.split("\n")
            lines[13] = "    " + "\N{LATIN SMALL LETTER E WITH ACUTE}" * 3000
            database.execute("UPDATE code_file SET content = ? WHERE id = ?", ("\n".join(lines), identity))
            database.commit()
            page = "-k", "uncoalesced_read", "--page", "source", "--top", "1"
            text, table = (self.kprof("report", path, *page, *options).out for options in ((), ("--csv",)))
        self.assertIn("\N{LATIN SMALL LETTER E WITH ACUTE}...", text)
        self.assertLess(text.count("\N{LATIN SMALL LETTER E WITH ACUTE}"), 200)
        self.assertGreater(table.count("\N{LATIN SMALL LETTER E WITH ACUTE}"), 1000)

    def test_merged_reports_tell_the_process_of_a_kernel(self):
        """Both have a file of the same path, with another text."""
        folder = os.path.dirname(RECORDED)
        reports = [os.path.join(folder, f"transpose-{name}-h200.kprof") for name in ("before", "after")]
        self.assert_run(self.kprof("merge", "-o", "both", *reports), 0)
        text = self.kprof("report", "both.kprof", "--page", "source", "--top", "1").out
        processes = [pid for pid, in self.query("both.kprof", "SELECT pid FROM process ORDER BY id")]
        for pid in processes:
            self.assertIn(f"Process {pid}, (128, 128, 1)", text)
        self.assertRegex(text, r"\n  transpose\.cu:36 +39\.42 %")
        self.assertEqual(self.kprof("report", "both.kprof", "--html", "both.html").code, 0)
        with open(self.path("both.html"), encoding="utf-8") as page:
            self.assertIn(f"launches; process {processes[0]}", page.read())

    def test_instances_of_a_metric(self):
        """Metrics of instructions may be named where they are printed."""
        name = "smsp__pcsamp_warps_issue_stalled_wait"
        words = ["report", RECORDED, "--page", "raw", "--csv-layout", "ncu", "--print-metric-instances", "values"]
        rows = list(csv.reader(io.StringIO(self.kprof(*words, "--metrics", name).out)))
        whole = list(csv.reader(io.StringIO(self.kprof(*words).out)))
        at = whole[0].index(name)
        self.assertEqual([row[-1] for row in rows], [row[at] for row in whole])
        self.assertEqual(rows[0][10:], ["CC", name])
        self.assertRegex(rows[2][-1], r"^\d+ \(\d")

    def test_names_of_instructions_lead_to_their_page(self):
        for name in ("smsp__pcsamp_warps_issue_stalled_wait", "memory_l2_theoretical_sectors_global",
                     "group:smsp__pcsamp_warp_stall_reasons"):
            run = self.kprof("report", RECORDED, "--metrics", name)
            self.assertNotEqual(run.code, 0)
            self.assertIn("single instructions have it, not launches; --page source shows", run.err)
