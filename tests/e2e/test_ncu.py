"""Command lines of ncu: which of them run, and what they choose."""

import csv
import io
import pathlib
import re
import shlex
import shutil
import sys

import harness
from harness import *


class ProfilerCalls(Case):
    """cudaProfilerStart and cudaProfilerStop of the application. The device tells each call twice: that of the runtime
    ends in that of the driver."""

    STEPS = [f"launch={VECTOR_ADD}", "profiler=start", f"launch={SCALE}", f"launch={VECTOR_ADD}", "profiler=stop",
             f"launch={VECTOR_ADD}*2", "profiler=start", f"launch={SCALE}", "profiler=stop", f"launch={VECTOR_ADD}"]

    def positions(self, *options, steps=None):
        self.seen = self.collect(options, steps or self.STEPS)
        self.assert_run(self.seen, 0)
        return [row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY position")]

    def test_ranges(self):
        self.assertEqual(self.positions("--profile-from-start", "off"), [1, 2, 5])
        self.assertNotIn("cudaProfilerStop", self.seen.err)
        self.assertEqual(self.positions(), [0, 1, 2, 5])
        self.assertIn("has called cudaProfilerStop: launches are not measured before it calls", self.seen.err)
        self.assertEqual(self.positions("--profile-from-start", "on"), [0, 1, 2, 5])
        self.assertEqual(self.positions("--disable-profiler-start-stop"), list(range(7)))
        self.assertNotIn("cudaProfilerStop", self.seen.err)

    def test_launches_outside_do_not_count(self):
        off = ("--profile-from-start=off",)
        self.assertEqual(self.positions(*off, "-s", "1"), [2, 5])
        self.assertEqual(self.positions(*off, "-c", "1"), [1])
        self.assertEqual(self.positions(*off, "-k", "scale", "-s", "1"), [5])
        self.assertEqual(self.positions(*off, "--launch-skip-before-match", "2"), [5])
        steps = ["push=a", f"launch={VECTOR_ADD}", "profiler=start", f"launch={VECTOR_ADD}", "pop",
                 f"launch={VECTOR_ADD}", "profiler=stop"]
        self.assertEqual(self.positions(*off, "--nvtx-include", "a/", steps=steps), [1])

    def test_chosen_ranges(self):
        self.assertEqual(self.positions("--range-filter", ":2:"), [5])
        self.assertEqual(self.positions("--range-filter", "yes:1:", "--profile-from-start", "off"), [1, 2])
        self.assertEqual(self.positions("--range-filter", ":[12]:", "-k", "scale"), [1, 5])
        steps = ["push=A", f"launch={SCALE}", "pop", "profiler=start", "push=A", f"launch={SCALE}", "pop", "push=A",
                 f"launch={SCALE}*2", "pop", "profiler=stop", "profiler=start", f"launch={SCALE}", "push=A",
                 f"launch={SCALE}", "pop", "profiler=stop"]
        inside = ("--nvtx-include", "A/", "--range-filter")
        self.assertEqual(self.positions(*inside, "::3", steps=steps), [2, 3])
        self.assertEqual(self.positions(*inside, "::1", steps=steps), [0])  # before CUDA is there
        self.assertEqual(self.positions(*inside, "::[24]", steps=steps), [1, 5])
        self.assertEqual(self.positions(*inside, ":2:3", steps=steps), [2, 3, 4, 5])
        self.assertEqual(self.positions(*inside, "yes:1:2", steps=steps), [2, 3])
        self.assertEqual(self.positions(*inside, "yes::1", steps=steps), [1, 5])
        run = self.collect(["--range-filter", ":7:"], steps)
        self.assert_run(run, 106)
        self.assertIn('no launch matched --range-filter ":7:"', run.err)
        self.assertIn("had 2 ranges between cudaProfilerStart and cudaProfilerStop; no launch was in those that "
                      "--range-filter :7: asks for", run.err)
        run = self.collect([*inside, "::9"], steps)
        self.assert_run(run, 106)
        self.assertIn("had 4 NVTX ranges of --nvtx-include; no launch was in those that --range-filter ::9 asks for",
                      run.err)
        self.assertNotIn("no launch in an NVTX range", run.err)

    def test_each_process_has_its_own(self):
        steps = ["profiler=start", f"launch={SCALE}", "exec", f"launch={VECTOR_ADD}", "profiler=start",
                 f"launch={SCALE}"]
        self.assert_run(self.collect(["--profile-from-start", "off"], steps), 0)
        self.assertEqual(self.launches(), ["scale", "scale"])

    def test_ranges_outside(self):
        """A range that no launch between the calls is in may have launches all the same."""
        steps = ["push=a", f"launch={SCALE}", "pop", "profiler=start", f"launch={SCALE}", "push=b", f"launch={SCALE}",
                 "profiler=stop"]
        for steps, ranges in ((steps, ': "b/"'), (steps[:5], " no range")):
            run = self.collect(["--profile-from-start", "off", "--nvtx-include", "a/"], steps)
            self.assert_run(run, 106)
            self.assertIn("its launches between cudaProfilerStart and cudaProfilerStop were in" + ranges, run.err)

    def test_never_started(self):
        run = self.collect(["--profile-from-start", "off"], [f"launch={VECTOR_ADD}*3"])
        self.assert_run(run, 106)
        self.assertIn("never called cudaProfilerStart or cuProfilerStart, which --profile-from-start off waits for: "
                      "none of its launches was measured, 3 in all", run.err)
        self.assertIn("no launch matched --profile-from-start off; the application launched:", run.err)
        run = self.collect(["--profile-from-start", "off", "-k", "other"], self.STEPS)
        self.assert_run(run, 106)
        self.assertNotIn("never called", run.err)


class Choices(Case):
    """What ncu's options choose."""

    def positions(self, *options, steps=()):
        steps = steps or [f"launch={VECTOR_ADD}", f"launch={SCALE}*2", f"launch={VECTOR_ADD}*2"]
        self.assert_run(self.collect(options, steps), 0)
        return [row[0] for row in self.query("run.kprof", "SELECT position FROM launch ORDER BY position")]

    def test_launches_of_kernels(self):
        self.assertEqual(self.positions("--kernel-id", "::vectorAdd:2"), [3])
        self.assertEqual(self.positions("--kernel-id", ":::2"), [2, 3])
        self.assertEqual(self.positions("--kernel-id", ":::2", "-c", "1"), [2])
        self.assertEqual(self.positions("--kernel-id", "::regex:^vec:", "-s", "1"), [3, 4])
        self.assertEqual(self.positions("--kernel-regex", "^sc"), [1, 2])
        self.assertEqual(self.positions("--kernel-regex-exclude", "^sc"), [0, 3, 4])
        run = self.collect(["--kernel-id", "::vectorAdd:7"], [f"launch={VECTOR_ADD}"])
        self.assert_run(run, 106)
        self.assertIn("no launch matched --kernel-id ::vectorAdd:7", run.err)

    def test_launches_of_a_report(self):
        steps = [f"launch={VECTOR_ADD}", f"launch={SCALE}*2", f"fork={SCALE}", f"launch={VECTOR_ADD}*2"]
        self.assert_run(self.collect([], steps), 0)
        pids = [row[0] for row in self.query("run.kprof", "SELECT DISTINCT pid FROM launch_metrics")]
        stored = self.launches()

        def shown(kernel_id, *words):
            run = self.kprof("report", "run", "--kernel-id", kernel_id, "--csv", *words)
            self.assert_run(run, 0)
            return [int(row["launch"]) for row in csv.DictReader(io.StringIO(run.out))]
        adds = [number for number, name in enumerate(stored) if name == "vectorAdd"]
        self.assertEqual(shown("::vectorAdd:"), adds)
        self.assertEqual(shown("::vectorAdd:2|3"), adds[1:])
        self.assertEqual(shown("1:0:regex:^vec:2"), adds[1:2])
        self.assertEqual(shown("::vectorAdd:", "-s", "1", "-c", "1"), adds[1:2])
        self.assertEqual(len(shown("::scale:1")), len(pids)) # each process counts its own
        for kernel_id, message in (("7:::", "no launch matched --kernel-id 7:::; the application launched:"),
                                   ("::vectorAdd:9", "no launch matched --kernel-id ::vectorAdd:9;")):
            run = self.kprof("report", "run", "--kernel-id", kernel_id)
            self.assert_run(run, 106)
            self.assertIn(message, run.err)
        run = self.kprof("report", "run", "--kernel-id", ":main::")
        self.assert_run(run, 101)
        self.assertIn("a report has numbers of contexts and streams, as launch__context_id", run.err)
        self.assert_run(self.kprof("-i", "run", "--kernel-id", "::vectorAdd:3", "-o", "part"), 0)
        self.assertEqual(self.launches("part.kprof"), ["vectorAdd"])

    def test_end_of_the_application(self):
        steps = [f"launch={VECTOR_ADD}*5", "sleep=60000", "sleep=60000", "say=not reached", "exit=3"]
        at_once = {"KPROF_SIM_SLOWNESS": "1"}  # its patience is two seconds then
        for options, steps, env in (([], steps, {}), ([], ["handle", *steps], at_once),
                                    ([], ["handle", *steps[:2], "exit=0"], {}),
                                    (["--replay-mode", "multiplex"], steps, {})):
            with self.subTest((options, steps)):
                run = self.collect(["-c", "2", "--kill", "yes", *options], steps, env=env)
                self.assert_run(run, 0)
                self.assertNotIn("not reached", run.out)
                if env == {}: # else a slow machine may not have it handle the first signal in time
                    self.assertEqual("got signal 15" in run.out, "handle" in steps)
                self.assertIn("--kill yes has ended process", run.err)
                self.assertEqual(len(self.query("run.kprof", "SELECT * FROM launch")), 2)
                self.assertNotIn("cut short", self.kprof("report", "run.kprof").err)
        run = self.collect(["-c", "9", "--kill", "yes"], [f"launch={VECTOR_ADD}*5", "exit=3"])
        self.assert_run(run, 3)

    def test_launches_by_context_and_stream(self):
        steps = [f"launch={VECTOR_ADD}*3", "place=stream:7", f"launch={VECTOR_ADD}*3", f"launch={SCALE}",
                 "place=context:2", f"launch={VECTOR_ADD}*2", "place=stream:0", f"launch={VECTOR_ADD}"]
        self.assertEqual(self.positions("--kernel-id", "1:7::", steps=steps), [3, 4, 5, 6])
        self.assertEqual(self.positions("--kernel-id", ":7:vectorAdd:", steps=steps), [3, 4, 5, 7, 8])
        self.assertEqual(self.positions("--kernel-id", ":7:vectorAdd:2", steps=steps), [4])
        self.assertEqual(self.positions("--kernel-id", ":7:vectorAdd:2|[45]", steps=steps), [4, 7, 8])
        self.assertEqual(self.positions("--kernel-id", "2::regex:vec:", steps=steps), [7, 8, 9])
        self.assertEqual(self.positions("--kernel-id", ":::.*5|3", steps=steps), [2, 4])
        named = [f"launch={SCALE}", "name=stream:compute 0", f"launch={SCALE}", "name=stream:copy", f"launch={SCALE}",
                 "name=context:first", f"launch={SCALE}"]
        self.assertEqual(self.positions("--kernel-id", ":compute.*::", steps=named), [1])
        self.assertEqual(self.positions("--kernel-id", ":co.*::2", steps=named), [2])
        self.assertEqual(self.positions("--kernel-id", "first:copy:scale:", steps=named), [3])
        run = self.collect(["--kernel-id", "1:9:vectorAdd:2|3"], steps)
        self.assert_run(run, 106)
        self.assertIn("no launch matched --kernel-id 1:9:vectorAdd:2|3", run.err)
        self.assertIn("launched kernels that --kernel-id names in contexts 1, 2 and streams 0, 7, and not where it "
                      "asks for", run.err)

    def test_launches_of_configurations(self):
        steps = [f"launch={VECTOR_ADD}*2", f"launch={SCALE}*2", "place=grid:8", f"launch={VECTOR_ADD}*2",
                 "place=block:64", f"launch={VECTOR_ADD}*2", "place=smem:1024", f"launch={VECTOR_ADD}*2",
                 "place=stream:7", f"launch={VECTOR_ADD}*2"]
        one_of_each = ("--filter-mode", "per-launch-config", "-c", "1")
        self.assertEqual(self.positions(*one_of_each, steps=steps), [0, 2, 4, 6, 8])
        self.assertEqual(self.positions(*one_of_each, "-k", "vectorAdd", "-s", "1", steps=steps), [1, 5, 7, 9])
        self.assertEqual(self.positions("--filter-mode", "global", "-c", "1", steps=steps), [0])
        self.assertEqual(self.positions(steps=steps), list(range(12)))
        run = self.kprof("report", "run.kprof", *one_of_each, "-s", "1", "-o", "part")
        self.assert_run(run, 0)
        self.assertEqual([row[0] for row in self.query("part.kprof", "SELECT position FROM launch ORDER BY position")],
                         [1, 3, 5, 7, 9])

    def test_launches_of_each_gpu(self):
        steps = [f"launch={VECTOR_ADD}*3", "place=device:1", f"launch={VECTOR_ADD}*2", "place=device:0",
                 f"launch={SCALE}", "place=device:1", f"launch={SCALE}*2"]
        for options, chosen in (([], [0, 0, 0, 1, 1, 0, 1, 1]),
                                (["-c", "1"], [0, None, None, 1, None, None, None, None]),
                                (["-s", "2"], [None, None, 0, None, None, 0, 1, 1]),
                                (["-k", "scale", "-s", "1"], [None] * 7 + [1]),
                                (["-c", "2", "--devices", "1"], [None, None, None, 1, 1, None, None, None])):
            run = self.collect(["--filter-mode", "per-gpu", *options], steps, env={"KPROF_SIM_PROBE": "two-gpus"})
            self.assert_run(run, 0)
            rows = dict(self.query("run.kprof", "SELECT position, ordinal FROM launch JOIN device ON "
                                                "device.id=device_id"))
            self.assertEqual([rows.get(position) for position in range(8)], chosen, options)

    def told(self, *options):
        """The metrics of instructions in the configuration that the injection library reads."""
        run = self.kprof(*options, "/bin/sh", "-c", 'tr -c "a-z0-9_." "\\n" <"$KPROF_SESSION_DIR/config"')
        return sorted(set(re.findall(r"^smsp__sass_[a-z0-9_]+$", run.out, re.MULTILINE)))

    def test_instructions(self):
        counted = self.told("--set", "source")
        self.assertEqual(len(counted), 19)
        self.assertIn("smsp__sass_sectors_mem_global_ideal", counted)
        self.assertEqual(self.told("--section", "SourceCounters"), counted)
        self.assertEqual(self.told("--metrics", "memory_l2_theoretical_sectors_global,smsp__pcsamp_sample_count"),
                         ["smsp__sass_sectors_mem_global"])
        self.assertEqual(self.told("--set", "default"), [])
        self.assertEqual(self.told("--set", "source", "--max-passes", "2"), [])  # samples alone

    def test_source(self):
        """What set source has is collected, and stands in the report: counters and samples of instructions."""
        self.assert_run(self.collect(["--set", "source"], [f"launch={VECTOR_ADD}*2"]), 0)
        [(counted, sampled)] = self.query("run.kprof", "SELECT sum(counted), sum(sampled) FROM code_profile")
        self.assertEqual((counted, sampled), (2, 2))
        names = [row[0] for row in self.query("run.kprof", "SELECT name FROM metric WHERE kind='instruction'")]
        self.assertIn("smsp__sass_inst_executed", names)
        self.assertIn("smsp__pcsamp_warps_issue_stalled_wait", names)
        words = "SELECT unit, description FROM metric WHERE name='smsp__sass_inst_executed'"
        self.assertEqual(self.query("run.kprof", words), [("inst", "Times that a warp executed the instruction")])
        self.assertIn("gpu__time_duration.sum", [row[0] for row in self.query("run.kprof", "SELECT name FROM metric")])
        self.assert_run(self.collect(["--metrics", "smsp__pcsamp_sample_count"], [f"launch={VECTOR_ADD}"]), 0)
        self.assertEqual(self.query("run.kprof", "SELECT sum(counted), sum(sampled) FROM code_profile"), [(0, 1)])
        self.assert_run(self.collect(["--set", "default"], [f"launch={VECTOR_ADD}"]), 0)
        self.assertEqual(self.query("run.kprof", "SELECT count(*) FROM code_profile"), [(0,)])

    def test_values_on_request(self):
        """Attributes of the GPU that kprof itself does not need, and whether a kernel launches kernels, are there where
        somebody asks for them."""
        asked = ("device__attribute_max_pitch,device__attribute_max_threads_per_block,launch__uses_cdp,"
                 "smsp__maximum_warps_avg_per_active_cycle")
        self.assert_run(self.collect(["--metrics", asked + ",launch__grid_size"], [f"launch={VECTOR_ADD}"]), 0)
        values = dict(self.query("run.kprof", "SELECT metric, value FROM launch_metrics"))
        self.assertGreater(values["device__attribute_max_pitch"], 1000)
        self.assertIsNone(values["device__attribute_max_threads_per_block"])
        self.assertEqual(values["launch__uses_cdp"], 1)
        self.assertEqual(values["smsp__maximum_warps_avg_per_active_cycle"], # of one of the four schedulers of an SM
                         values["sm__maximum_warps_avg_per_active_cycle"] / 4)
        self.assertNotIn("device__attribute_integrated", values)
        self.assert_run(self.collect(["--metrics", "launch__grid_size", "-f"], [f"launch={VECTOR_ADD}"]), 0)
        self.assertNotIn("launch__uses_cdp", dict(self.query("run.kprof", "SELECT metric, value FROM launch_metrics")))

    def test_input(self):
        run = self.profile(["--null-stdin"], ["cat", f"launch={SCALE}"], stdin="from here")
        self.assert_run(run, 0)
        self.assertNotIn("from here", run.out)
        self.assertIn("from here", self.profile([], ["cat", f"launch={SCALE}"], stdin="from here").out)

    def test_names_of_reports(self):
        self.assert_run(self.profile(["-o", "a.ncu-rep", "-f"], [f"launch={SCALE}"]), 0)
        self.assert_run(self.profile(["-o", "b%i.ncu-repz"], [f"launch={SCALE}"]), 0)
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name != "tmp"), ["a.kprof", "b1.kprof"])
        shown = self.kprof("-i", "a.kprof", "--page", "raw", "--csv")
        self.assert_run(shown, 0)
        for words in (["--import", "a.ncu-rep", "--page", "raw", "--csv"],
                      ["report", "a.ncu-repz", "--page", "raw", "--csv"]):
            run = self.kprof(*words)
            self.assert_run(run, 0)
            self.assertEqual(run.out, shown.out)
        self.assert_run(self.kprof("export", "b1.ncu-rep", "--to", "wide"), 0)
        with open(self.path("a.ncu-rep"), "wb") as file: # ncu's own stays what it is
            file.write(b"NVR\0")
        self.assertIn("a.ncu-rep: is not a kprof report; ncu --import reads those of ncu",
                      self.kprof("-i", "a.ncu-rep").err)
        self.assertIn("missing.ncu-rep: cannot open the report", self.kprof("-i", "missing.ncu-rep").err)

    def test_names_of_metrics(self):
        self.assert_run(self.collect(["--section", "Occupancy"], [f"launch={SCALE}"]), 0)
        achieved, label = "sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy"
        for option, name in (([], label), (["--print-metric-name", "name"], achieved),
                             (["--print-metric-name", "label-name"], f"{label} ({achieved})")):
            for page in (["--page", "details"], ["--print-summary", "per-kernel"]):
                for layout in ([], ["--csv-layout", "ncu"]):
                    run = self.kprof("-i", "run", *page, *layout, *option)
                    self.assert_run(run, 0)
                    self.assertRegex(run.out, rf'(?m)(^ *|"){re.escape(name)}("|  )', option)

    def test_pattern_without_its_prefix(self):
        for asked, is_pattern in (("nothing|scale", True), (".*ale$", True), ("*ale*", False), ("q|b", False),
                                  ("regex:q|b", False)):
            run = self.profile(["-k", asked], [f"launch={SCALE}"])
            self.assert_run(run, 106)
            self.assertEqual(f'did you mean -k "regex:{asked}"?' in run.err, is_pattern, run.err)
            self.assertNotIn("<-- here", run.err)
        self.assertIn('did you mean -k "regex:^.*cal.*$"?', self.profile(["-k", "*cal*"], [f"launch={SCALE}"]).err)
        self.assertNotIn("did you mean", self.profile(["-k", "*nothing*"], [f"launch={SCALE}"]).err)
        self.assertIn('^nothing$ is taken as it stands; a pattern is written -k "regex:^nothing$"',
                      self.profile(["-k", "^nothing$"], [f"launch={SCALE}"]).err)
        for asked, hint in (("::^scale$:", 'did you mean --kernel-id "::regex:^scale$:"?'),
                            ("::no.*:1", 'no.* is taken as it stands; a pattern is written --kernel-id "::regex:no.*')):
            self.assertIn(hint, self.profile(["--kernel-id", asked], [f"launch={SCALE}"]).err)

    def test_no_other_profiler(self):
        run = self.profile([], [f"launch={SCALE}"], env={"CUDA_INJECTION64_PATH": "none"})
        self.assert_run(run, 0)
        self.assertNotIn("another profiler", run.err)


class Scripts(Case):
    """Scripts made for ncu run unchanged where a link of that name leads to kprof."""

    def setUp(self):
        super().setUp()
        self.ncu = self.path("ncu")
        os.symlink(KPROF, self.ncu)

    def run_ncu(self, *words):
        run = harness.Run(subprocess.run([self.ncu, *words], env=self.environment({}), cwd=self.dir, text=True,
                                         capture_output=True, timeout=PATIENCE_S))
        self.assert_run(run, 0)
        return run

    def profile_ncu(self, *words):
        return self.run_ncu("--injection-path", INJECTION, "--metrics", METRIC, *words, APP, f"launch={SCALE}")

    def test_report(self):
        for words, name in ((["-o", "a"], "a"), (["--export", "b.ncu-rep"], "b"), (["-f", "-o", "a.ncu-rep"], "a")):
            self.profile_ncu(*words)
            self.assertTrue(os.path.exists(self.path(f"{name}.ncu-rep")))
        shown = self.run_ncu("--import", "a.ncu-rep", "--page", "raw", "--csv").out
        self.assertTrue(shown.startswith('"ID","Process ID","Process Name","Host Name","Kernel Name"'), shown)
        self.assertEqual(self.run_ncu("-i", "a", "--csv", "--page", "raw").out, shown)
        for name in ("a.ncu-rep", "a"):
            self.assertTrue(self.kprof("report", name, "--csv").out.startswith('"launch",'))
        self.assertFalse([name for name in os.listdir(self.dir) if name.endswith(".kprof")])
        os.rename(self.path("b.ncu-rep"), self.path("c.kprof"))
        self.assertEqual(self.run_ncu("-i", "c.ncu-rep", "--csv").out, self.run_ncu("-i", "c.kprof", "--csv").out)

    def test_part_that_is_printed_too(self):
        """As of a run, a page is printed beside --export where it is asked for."""
        self.profile_ncu("-o", "a")
        pages = ["--page", "details"], ["--csv", "--page", "raw"]
        for words in pages:
            shown = self.run_ncu("-i", "a", *words)
            kept = self.run_ncu("-i", "a", "-o", "part", "-f", *words)
            self.assertEqual(kept.out, shown.out)
            self.assertIn("report: part.ncu-rep", kept.err)
            self.assertEqual(self.run_ncu("-i", "part", *words).out, shown.out)
        self.assertEqual(self.run_ncu("-i", "a", "-o", "part", "-f").out, "")
        to_stderr = self.run_ncu("-i", "a", "-o", "part", "-f", "--log-file", "stderr", "--page", "details")
        self.assertEqual(to_stderr.out, "")
        self.assertIn("gpu__time_duration.sum", to_stderr.err)

    def test_folder_of_sections_of_ncu(self):
        """Scripts name the folder that ncu has its sections in; kprof has its own of these identifiers."""
        os.mkdir(self.path("sections"))
        pathlib.Path(self.path("sections"), "SpeedOfLight.section").touch()
        for option in ("--section-folder", "--section-folder-recursive"):
            run = self.run_ncu("--injection-path", INJECTION, option, "sections", "--section", "LaunchStats", APP,
                               f"launch={SCALE}")
            self.assertIn("Launch Statistics", run.out)
            self.assertIn(f"{option} sections has no effect: it has ncu's files *.section", run.err)
        os.mkdir(self.path("toolkit"))
        os.rename(self.path("sections"), self.path("toolkit/sections"))
        for option in ("--section-folder", "--section-folder-recursive"):
            run = self.run_ncu("--injection-path", INJECTION, option, "toolkit", "--section", "LaunchStats", APP,
                               f"launch={SCALE}")
            self.assertIn(f"{option} toolkit has no effect: it has ncu's files *.section", run.err)
        os.rename(self.path("toolkit/sections"), self.path("sections"))
        os.mkdir(self.path("sections/findings"))
        both = self.run_ncu("--injection-path", INJECTION, "--section-folder", "sections", "--section", "LaunchStats",
                            APP, f"launch={SCALE}")
        self.assertNotIn("has no effect", both.err)  # it has files of kprof's, too

    def test_options_of_a_run_on_a_report(self):
        """ncu takes them with --import, where they change nothing."""
        self.profile_ncu("-o", "a")
        shown = self.run_ncu("-i", "a", "--csv")
        for words, names in ((["--target-processes", "application-only", "--replay-mode", "range",
                               "--cache-control", "none"], "--target-processes, --replay-mode, --cache-control have"),
                             (["--import-source", "yes"], "--import-source has"), (["--kill", "yes"], "--kill has")):
            run = self.run_ncu("-i", "a", "--csv", *words)
            self.assertEqual((run.out, run.err),
                             (shown.out, f"kprof: warning: {names} no effect on a report, which is measured already\n"))
        run = self.run_ncu("-i", "a", "--csv", "--target-processes", "all", "--import-source", "no")
        self.assertEqual((run.out, run.err), (shown.out, "")) # as without these options
        run = self.kprof("-i", "a.ncu-rep", "-k", "other", "--replay-mode", "range")
        self.assertIn("no launch matched -k other; ", run.err)
        for words in (["-i", "a", "--range-filter", ":1:"], ["-i", "a", "--native-include", "main"],
                      ["report", "a.ncu-rep", "--target-processes", "all"]): # what they choose is not known any more
            self.assertIn(" is no option of kprof report; ", self.kprof(*words).err)

    def test_folder_of_a_toolkit(self):
        """Scripts look for extras/python beside the ncu in PATH, or beside what that leads to."""
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
        for name, target in (("bin/kprof", KPROF), ("share/kprof/python", os.path.join(source, "python"))):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            os.symlink(target, self.path(name))
        shutil.copytree(os.path.join(source, "ncu"), self.path("share/kprof/ncu"), symlinks=True)
        os.symlink(self.path("share/kprof/ncu/ncu"), self.path("bin/ncu"))
        for folder in ("share/kprof/ncu", "bin"):
            with self.subTest(folder):
                environment = self.environment({"PATH": self.path(folder) + ":" + os.environ["PATH"]})
                found = shutil.which("ncu", path=environment["PATH"])
                words = ["ncu", "--injection-path", INJECTION, "--metrics", METRIC, "-f", "-o", "run", APP]
                run = subprocess.run([*words, f"launch={SCALE}*3"], env=environment, cwd=self.dir, text=True,
                                     capture_output=True, timeout=PATIENCE_S)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn('==PROF== Profiling "scale"', run.stdout)
                modules = os.path.join(os.path.dirname(os.path.realpath(found)), "extras/python")
                text = "import ncu_report; print(len(ncu_report.load_report('run.ncu-rep').range_by_idx(0)))"
                read = subprocess.run([sys.executable, "-B", "-c", text], env={**environment, "PYTHONPATH": modules},
                                      cwd=self.dir, text=True, capture_output=True, timeout=PATIENCE_S)
                self.assertEqual((read.returncode, read.stdout), (0, "3\n"), read.stderr)
        self.assertTrue(os.path.isfile(self.path("share/kprof/ncu/extras/python/ncu_report.py")))
        os.unlink(self.path("bin/kprof"))
        run = subprocess.run([self.path("bin/ncu"), "--version"], env={**environment, "PATH": "/usr/bin:/bin"},
                             text=True, capture_output=True, timeout=PATIENCE_S)
        self.assertEqual((run.returncode, run.stdout), (127, ""))
        self.assertIn("ncu: there is no kprof", run.stderr)

    def test_output(self):
        columns = '"Section Name","Metric Name","Metric Unit","Metric Value"'
        profiled = r"""==PROF== Connected to process (\d+) \(/.*\)
==PROF== Profiling "scale" - 0: 0%....50%....100% - 1 pass
==PROF== Disconnected from process \1
"""
        shown = self.profile_ncu("--csv").out
        self.assertRegex(shown, "^" + profiled + '"ID",.*' + columns + "\n")
        self.assertEqual(shown.count(columns), 1)
        self.assertEqual(self.profile_ncu("--csv", "--log-file", "log.csv").out.count("==PROF=="), 0)
        with open(self.path("log.csv")) as file:
            self.assertRegex(file.read(), "^" + profiled + '"ID",.*' + columns + "\n")
        self.assertRegex(self.profile_ncu("--csv", "--quiet").out.splitlines()[0], '^"ID",.*' + columns)
        self.assertTrue(self.profile_ncu("--csv", "--csv-layout", "long").out.startswith('"launch",'))
        run = self.run_ncu("--csv", "--injection-path", INJECTION, "--metrics", METRIC, APP, "say=ran",
                           f"launch={SCALE}")
        self.assertRegex(run.out, r'(?m)^ran$')
        self.assertNotIn("ran", run.err)
        run = self.profile_ncu()
        self.assertIn(METRIC, run.out) # and not on stderr, as elsewhere
        self.assertRegex(run.out, "^" + profiled)
        self.assertEqual(run.err, "")
        report = f"==PROF== Report: {re.escape(self.path('kept.ncu-rep'))}\n"
        self.assertRegex(self.profile_ncu("-o", "kept").out, f"^{profiled}{report}$")
        self.assertEqual(self.profile_ncu("-o", "kept", "-f", "--log-file", "log").out, "")
        with open(self.path("log")) as file:
            self.assertRegex(file.read(), f"^{profiled}{report}$")
        self.assertEqual(self.profile_ncu("-o", "kept", "-f", "--quiet").out, "")
        self.assertIn(r"/k\x1b[5m.ncu-rep", self.profile_ncu("-o", "k\x1b[5m").out) # no terminal is to blink

    def test_text(self):
        """Scripts take the last word of a line, split tables at their spaces, and know launches by their lines."""
        shown = self.profile_ncu("--metrics", METRIC + ",launch__registers_per_thread").out
        self.assertRegex(shown, r"""(?m)^\[\d+\] sim-app@127\.0\.0\.1
  void scale<float>\(float\*, float, int\) \(65536, 1, 1\)x\(256, 1, 1\), Context 1, Stream 0, Device 0, CC 9\.0
    Section: Command line profiler metrics
    -{28} -{15} -{12}
    Metric Name                      Metric Unit Metric Value
    -{28} -{15} -{12}
    gpu__time_duration\.sum                    us         1\.00
    launch__registers_per_thread register/thread           16
    -{28} -{15} -{12}
""")
        names = ["sm__cycles_active.avg", "dram__bytes.sum", METRIC, "launch__grid_size"]
        shown = self.profile_ncu("--metrics", ",".join(names), "-f", "-o", "named").out
        shown = self.run_ncu("-i", "named").out
        found = [line.split()[0] for line in shown.splitlines() if line.split() and line.split()[0] in names]
        self.assertEqual(found, sorted(names)) # as ncu has them
        rows = list(csv.DictReader(self.run_ncu("-i", "named", "--csv").out.splitlines()))
        self.assertEqual([row["Metric Name"] for row in rows], sorted(names))
        own = self.kprof("report", "named.ncu-rep").out # ... and kprof as they were asked for
        self.assertLess(own.index(names[0]), own.index(names[1]))
        self.run_ncu("--injection-path", INJECTION, "--set", "default", "-o", "a", APP, f"launch={SCALE}*2")
        self.assertRegex(self.run_ncu("-i", "a").out, r"Section: Occupancy\n(.*\n)*? +Achieved Occupancy +% +[\d,.]+\n")
        self.assertRegex(self.run_ncu("-i", "a", "--print-summary", "per-kernel").out,
                         r"Invocations 2\n(.*\n)* +Duration +us( +1\.\d\d){3}\n")
        self.assertRegex(self.run_ncu("-i", "a", "--page", "raw", "--print-units", "base").out,
                         r"(?m)^ +gpu__time_duration\.sum +ns +10\d\d\.50$")
        own = self.kprof("report", "a.ncu-rep").out
        self.assertEqual(self.run_ncu("-i", "a", "--text-layout", "kprof").out, own)
        self.assertEqual(self.kprof("report", "a.ncu-rep", "--text-layout", "ncu").out, self.run_ncu("-i", "a").out)
        self.assertNotEqual(self.run_ncu("-i", "a").out, own)

    def test_configuration(self):
        """A link named ncu reads the user's config.ncu-cfg, but that of the working folder, which may be anybody's,
        only where it is asked to, as kprof reads both."""
        home = {"HOME": self.path("home")}
        folder = os.path.join(home["HOME"], ".config", "NVIDIA Corporation")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.ncu-cfg"), "w") as file:
            file.write("[Launch-and-attach]\n-o = by-user\n")

        def run(name, *words):
            seen = subprocess.run([name, *words, "--injection-path", INJECTION, "--metrics", METRIC, APP,
                                   f"launch={SCALE}*3"], env=self.environment(home), cwd=self.dir, text=True,
                                  capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(seen.returncode, 0, seen.stderr)
            return seen.stderr
        self.assertIn("/config.ncu-cfg adds to the command line: -oby-user\n", run(self.ncu))
        self.assertTrue(os.path.exists(self.path("by-user.ncu-rep")))
        with open(self.path("config.ncu-cfg"), "w") as file:
            file.write("[Launch-and-attach]\n-c = 1\n-o = here\n")
        told = run(self.ncu, "-f")
        self.assertIn("config.ncu-cfg of this folder is not read; --config-file yes reads it\n", told)
        self.assertIn("/config.ncu-cfg adds to the command line: -oby-user\n", told)
        self.assertIn("kprof: config.ncu-cfg adds to the command line: -c1 -ohere\n", run(
            self.ncu, "--config-file", "yes"))
        self.assertEqual(self.launches("here.ncu-rep"), ["scale"])
        [line] = self.query("here.ncu-rep", "SELECT command_line FROM run")
        self.assertIn("/ncu -c1 -ohere --config-file yes --injection-path ", line[0])
        self.assertNotIn("config.ncu-cfg", run(self.ncu, "--config-file", "off", "-o", "off"))
        self.assertNotIn("config.ncu-cfg", run(KPROF, "-o", "own"))
        self.assertIn(" -c1 -ohere\n", run(KPROF, "--config-file", "on", "-f"))
        self.assertEqual([len(self.launches(name)) for name in ("off.ncu-rep", "own.kprof", "here.kprof")], [3, 3, 1])

    def test_old_name(self):
        old = self.path("nv-nsight-cu-cli")
        os.symlink(KPROF, old)
        self.ncu = old
        self.assertRegex(self.profile_ncu("--csv").out, '(?m)^"ID",')
        self.profile_ncu("-o", "a.nsight-cuprof-report") # as its reports were called
        self.assertIn('"ID",', self.run_ncu("--import", "a.nsight-cuprof-report", "--csv").out)
        self.assertEqual(self.launches("a.ncu-rep"), ["scale"])

    def test_nothing_is_profiled(self):
        for words, told in (([], r"==WARNING== No kernels were profiled\.\n"), (["--quiet"], "")):
            run = subprocess.run([self.ncu, *words, "--injection-path", INJECTION, "--metrics", METRIC, "-k", "none",
                                  "--csv", APP, f"launch={SCALE}"], env=self.environment({}), cwd=self.dir, text=True,
                                 capture_output=True, timeout=PATIENCE_S)
            self.assertEqual(run.returncode, 106, run.stderr)
            self.assertRegex(run.stdout, f"^(==PROF== .*\n)*{told}$")

    def test_failures_are_told(self):
        """Scripts look for these lines, on stdout or in the log file."""
        refused = r"==ERROR== ERR_NVGPUCTRPERM - .*\n==WARNING== No kernels were profiled\.\n"
        for step, env, code, told in (
                ("exit=3", {}, 3, r"==ERROR== The application returned an error code \(3\)\.\n"),
                ("raise=9", {}, 137, r"==ERROR== The application returned an error code \(9\)\.\n"),
                ("say=ran", {"KPROF_SIM_FAULT": "permission"}, 104, refused),
                ("say=ran", {"KPROF_SIM_PROBE": "no-permission"}, 104, refused)):
            for words in (["--csv"], ["--csv", "--log-file", "log"], ["-f", "-o", "a"], ["--quiet"]):
                run = subprocess.run([self.ncu, *words, "--injection-path", INJECTION, "--metrics", METRIC, APP,
                                      f"launch={SCALE}", "settle", step], env=self.environment(env), cwd=self.dir,
                                     text=True, capture_output=True, timeout=PATIENCE_S)
                self.assertEqual(run.returncode, code, run.stderr)
                seen = run.stdout
                if "--log-file" in words:
                    with open(self.path("log")) as file:
                        seen = file.read()
                self.assertRegex(seen, "(?m)^" + told) if "--quiet" not in words else self.assertNotIn("==", seen)

    def test_numbers(self):
        """Whole numbers have decimals on request, and in summaries, whose rows are for kernels and shapes."""
        self.run_ncu("--injection-path", INJECTION, "--section", "LaunchStats", "-o", "a", APP, f"launch={SCALE}*2",
                     "place=grid:3", f"launch={SCALE}")
        raw = ["-i", "a", "--csv", "--page", "raw"]
        for words, whole in ((raw, "{}"), ([*raw, "--print-fp"], "{}.00")):
            units, first, *_ = csv.DictReader(io.StringIO(self.run_ncu(*words).out))
            for name, value, unit in (("block_dim_y", "1", "block"), ("block_size", "256", ""),
                                      ("grid_dim_y", "1", "")):
                self.assertEqual((first[f"launch__{name}"], units[f"launch__{name}"]), (whole.format(value), unit))
            self.assertRegex(first["launch__waves_per_multiprocessor"], r"^\d+\.\d\d$")
        details = list(csv.DictReader(io.StringIO(self.run_ncu("-i", "a", "--csv", "--print-fp").out)))
        values = {row["Metric Value"] for row in details if row["Metric Name"]} - {""}
        self.assertIn("256.00", values)
        self.assertFalse([value for value in values if not re.fullmatch(r"\d+\.\d\d", value)])
        rows = list(csv.DictReader(io.StringIO(self.run_ncu("-i", "a", "--csv", "--print-summary", "per-kernel").out)))
        self.assertEqual(list(rows[0])[:9], ["Process ID", "Process Name", "Host Name", "Kernel Name", "Block Size",
                                             "Grid Size", "Device", "CC", "Invocations"])
        self.assertEqual([(row["Grid Size"], row["Invocations"], row["Minimum"], row["Average"]) for row in rows
                          if row["Metric Name"] == "Grid Size"],
                         [("(65536, 1, 1)", "2", "65536.00", "65536.00"), ("(3, 1, 1)", "1", "3.00", "3.00")])

    def test_numbers_of_the_locale(self):
        """ncu writes numbers as the user's locale does: a script that takes commas away, or one that does not, goes on
        working. Where points part thousands, such numbers would be taken for others."""
        folder = self.path("locales")
        os.mkdir(folder)
        for name in ("en_US", "de_DE"):
            made = shutil.which("localedef") and subprocess.run(
                ["localedef", "-i", name, "-f", "UTF-8", "--no-archive", f"{folder}/{name}.UTF-8"],
                capture_output=True).returncode in (0, 1)
            if not made or not os.path.exists(f"{folder}/{name}.UTF-8/LC_NUMERIC"):
                self.skipTest("this machine has no locales to make")
        self.run_ncu("--injection-path", INJECTION, "--metrics", f"{METRIC},launch__grid_size", "-o", "a", APP,
                     f"launch={SCALE}")
        for locale, grid_size in (("C", "65536"), ("de_DE.UTF-8", "65536"), ("en_US.UTF-8", "65,536"),
                                  ("none", "65536")):
            for words in ([], ["--csv"], ["--csv", "--page", "raw"]):
                run = subprocess.run([self.ncu, "-i", "a", *words], cwd=self.dir, text=True, capture_output=True,
                                     env=self.environment({"LOCPATH": folder, "LC_ALL": locale}), timeout=PATIENCE_S)
                self.assertRegex(run.stdout, rf'[ "]{grid_size}["\n]', (locale, words))
            own = self.kprof("report", "a.ncu-rep", "--csv", env={"LOCPATH": folder, "LC_ALL": locale})
            self.assertNotIn("65,536", own.out)

    def test_programs_that_look_for_ncu(self):
        """They leave out what ncu does not bear, such as a profiler of their own."""
        name = "NV_COMPUTE_PROFILER_PERFWORKS_DIR"
        for program, expected in ((self.ncu, os.path.dirname(INJECTION)), (KPROF, "unset")):
            run = subprocess.run([program, "--injection-path", INJECTION, "--metrics", METRIC, "/bin/sh", "-c",
                                  f"echo found ${{{name}-unset}}"], env=self.environment({}), cwd=self.dir, text=True,
                                 capture_output=True, timeout=PATIENCE_S)
            self.assertIn(f"found {expected}\n", run.stdout)

    def test_sections_are_restored(self):
        """ncu does this alone, too, and scripts do it before they profile."""
        run = self.run_ncu("--section-folder-restore")
        self.assertIn("SpeedOfLight", run.out)
        run = self.run_ncu("--section-folder-restore", "--injection-path", INJECTION, "--metrics", METRIC, APP,
                           f"launch={SCALE}")
        self.assertIn(METRIC, run.out)

    def test_each_launch_is_told(self):
        out = self.run_ncu("--injection-path", INJECTION, "--set", "default", "--csv", "--page", "raw", APP,
                           f"launch={SCALE}", f"launch={VECTOR_ADD}*2").out
        rows = list(csv.DictReader(io.StringIO(out[out.index('"ID"'):])))[1:]
        told = re.findall(r'^==PROF== Profiling "(\w+)" - (\d+): .* - \d+ passes$', out, re.MULTILINE)
        self.assertEqual([number for _, number in told], [row["ID"] for row in rows])
        self.assertEqual([name for name, _ in told], ["scale", "vectorAdd", "vectorAdd"])

    def test_each_process_is_told(self):
        run = subprocess.run([self.ncu, "--injection-path", INJECTION, "--metrics", METRIC, APP, f"fork={SCALE}",
                              f"launch={SCALE}", "settle", "exec", f"launch={SCALE}", "settle", "raise=9"],
                             env=self.environment({}), cwd=self.dir, text=True, capture_output=True, timeout=PATIENCE_S)
        connected, disconnected = (re.findall(fr"^==PROF== {word}.* process (\d+)", run.stdout, re.MULTILINE)
                                   for word in ("Connected", "Disconnected"))
        self.assertEqual(len(connected), 3, run.stdout + run.stderr) # the child, and both programs of its parent
        self.assertEqual(set(connected), set(disconnected))
        self.assertEqual(len(disconnected), 2)

    def test_kernels_are_renamed_by_ranges(self):
        self.run_ncu("--injection-path", INJECTION, "--metrics", METRIC, "--nvtx", "-o", "a", APP, "push=step",
                     "push=for/ward", f"launch={SCALE}", "pop", "pop", f"launch={SCALE}")
        for page in ("raw", "details"):
            rows = [list(csv.DictReader(io.StringIO(self.run_ncu("-i", "a", "--csv", "--page", page, *words).out)))
                    for words in ([], ["--print-nvtx-rename", "none"], ["--print-nvtx-rename=kernel"])]
            self.assertEqual(rows[0], rows[1])
            names = {row["ID"]: row["Kernel Name"] for row in rows[0]}
            self.assertEqual([row["Kernel Name"] for row in rows[2]],
                             [("for/ward/" if row["ID"] == "0" else "") + names[row["ID"]] for row in rows[2]])
        self.assertIn("  for/ward/void scale<float>(", self.run_ncu("-i", "a", "--print-nvtx-rename", "kernel").out)
        told = self.kprof("report", "a.ncu-rep", "--print-nvtx-rename", "kernel").err
        self.assertIn("--print-nvtx-rename has no effect but", told)

    def test_sums_over_instructions(self):
        """A script looks for samples of warps among the columns of the raw page."""
        name = "smsp__pcsamp_warps_issue_stalled_wait"
        raw = ["-i", "a", "--page", "raw", "--csv"]
        self.run_ncu("--injection-path", INJECTION, "--set", "source", "-o", "a", APP, f"launch={VECTOR_ADD}")
        alone, each, chosen = (list(csv.DictReader(io.StringIO(self.run_ncu(*raw, *words).out)))[1][name] for words in
                               ([], ["--print-metric-instances", "values"], ["--metrics", name]))
        self.assertRegex(alone, r"^\d+(\.\d\d)?$")
        self.assertRegex(each, f"^{re.escape(alone)} \\(.+; .+\\)$")
        self.assertEqual(chosen, alone)

    def test_pipelines(self):
        """What public scripts do with ncu's output, in their shells."""
        collect = f"./ncu --injection-path {INJECTION} --section LaunchStats --metrics {METRIC}"
        app = f"{APP} launch={SCALE}*2 say=hello launch={VECTOR_ADD}"
        grids = "65536\n" * 3
        column = ("""awk -F'","' 'NR==1 {for (i = 1; i <= NF; i++) if ($i == "launch__grid_size") c = i} """
                  "NR>2 {print $c}'")
        for line, expected in (
                (f"{collect} --print-metric-name name {app} 2>&1 | grep launch__grid_size | awk '{{print $NF}}'",
                 grids),
                (f"{collect} --csv {app} 2>/dev/null | grep '\"Grid Size\",\"\"' | awk -F'\",\"' '{{print $15}}'",
                 grids),
                (f"{collect} -f -o a {app} >/dev/null; ./ncu -i a.ncu-rep --page raw --csv | {column}", grids),
                ("./ncu --import a.ncu-rep --csv --page raw | sed -n 2p | tr -d '\",' | grep -c 'ns.*register/thread'",
                 "1\n"),
                ("./ncu -i a.ncu-rep --page details 2>/dev/null | grep -E '^ +(Grid|Block) Size' | awk '{print $3}' "
                 "| sort -u", "256\n65536\n"),
                ("./ncu -i a.ncu-rep --csv -k regex:vec | awk -F'\",\"' 'NR>1 {print $5}' | sort | uniq -c | wc -l",
                 "1\n"),
                (f"{collect} --csv --log-file log.csv {app} >/dev/null; "
                 "grep -v '^==' log.csv | sed -n 1p | cut -c1-17", '"ID","Process ID"\n'),
                ("tail -n +$(($(grep -n ==PROF== log.csv | tail -1 | cut -d: -f1) + 1)) log.csv | sed -n 1p | "
                 "cut -c1-4", '"ID"\n'),
                (f"{collect} --print-summary per-kernel --csv {app} 2>/dev/null | grep '\"Grid Size\",\"\"' | "
                 "awk -F'\",\"' '{s += $9 * $15} END {print s}'", "196608\n")):
            with self.subTest(line):
                run = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=self.dir, env=self.environment({}),
                                     text=True, capture_output=True, timeout=PATIENCE_S)
                self.assertEqual((run.returncode, run.stdout), (0, expected), run.stderr)

    def test_summary_of_ranges(self):
        """A script takes the names of the ranges from their column, the outermost first."""
        self.run_ncu("--injection-path", INJECTION, "--metrics", METRIC, "--nvtx", "-o", "a", APP, "push=epoch 1",
                     "push=layer", f"launch={SCALE}*2", "pop", f"launch={SCALE}", "pop", f"launch={SCALE}")
        words = ["-i", "a", "--print-summary", "per-nvtx", "--print-units", "base"]
        rows = list(csv.DictReader(io.StringIO(self.run_ncu(*words, "--csv").out)))
        ranges = "Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
        names = [row[ranges].replace(":none:none:none:none:none:none", "").strip() for row in rows]
        self.assertEqual([(row["Domain"], name, row["Invocations"]) for row, name in zip(rows, names)],
                         [("<default domain>", '"epoch 1"  "layer"', "2"), ("<default domain>", '"epoch 1"', "1"),
                          ("", "", "1")])
        shown = self.run_ncu(*words).out
        self.assertEqual(re.findall(r"Invocations \d, (.+)", shown), ["epoch 1/layer/", "epoch 1/", "no range"])

    def test_version(self):
        first, second = self.run_ncu("--version").out.splitlines()
        self.assertEqual((first.split()[0], second), ("kprof", "Version " + first.split()[1]))


def read_lines(name):
    """(arguments, outcome, beginnings of messages) of each line of such a file."""
    lines = []
    with open(os.path.join(os.path.dirname(__file__), name)) as file:
        for text in file.read().splitlines():
            if text.startswith("> "):
                lines.append((text[2:], [], []))
            elif text.startswith("  "):
                lines[-1][2].append(text[2:])
            elif not text.startswith("#"):
                lines[-1][1].append(text)
    return [(line, outcome[0], messages) for line, outcome, messages in lines]


class Lines(Case):
    """Command lines of ncu from public scripts: which of them start their program, and what is told of each."""

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("out"))
        for name in ("report", "v249", "gh200_solver"):
            with open(self.path(f"{name}.ncu-rep"), "wb") as file:
                file.write(b"NVR\0")

    def test_lines(self):
        for line, outcome, beginnings in some(read_lines("command_lines.txt"), 70):
            words = shlex.split(line)
            own = [] if "--import" in words else ["--injection-path", INJECTION]
            run = self.kprof(*own, *words, env={"OMPI_COMM_WORLD_RANK": "0"})
            with self.subTest(line):
                told = [text.removeprefix("kprof: ") for text in run.err.splitlines()]
                # /bin/true uses no GPU, which is told once it has run.
                has_run = any("the application did not initialise CUDA" in text for text in told)
                is_answered = run.code == 0 and run.out != ""
                self.assertEqual("starts" if has_run or is_answered else f"refused {run.code}", outcome, run.err)
                told = [text for text in told if "nothing was collected" not in text and "report: " not in text
                        and "takes repeated launches and is left out" not in text] # of the set full alone
                self.assertEqual(len(told), len(beginnings), run.err)
                for text, beginning in zip(told, beginnings):
                    self.assertTrue(text.startswith(beginning), f"{text}\nis not\n{beginning}")
