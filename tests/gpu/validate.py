#!/usr/bin/env python3
"""Compares kprof's values with arithmetic and with ncu, on the same programs in the same session.

For each program: its plain run prints the counts that arithmetic gives (`expect` lines); kprof collects the full set
and whatever those lines name; ncu collects every metric that kprof reported, with its clocks left alone and its caches
flushed before each pass, as kprof does. compare.py says what must agree and how closely. Prints Markdown, also to a
file; exits 1 when a value is outside, missing or unexpected. With --caches none neither tool flushes, and what a launch
finds in the caches differs between them: only counts of instructions and of the launch fail the run then, and
what is missing.

    validate.py [--launches N] [--output FILE] [--set SET] [--caches all|none] [--no-ncu] [PROGRAM...]
"""
import argparse
import os
import collections
import re
import statistics
import sys
import tempfile

import compare
import harness

# Program and what it is given besides the number of launches.
PROGRAMS = {"vectorAdd": [], "inplace": [], "reduction": [], "transpose": [], "fma": [], "tensor": [], "copy": []}
# Programs in Python, whose kernels libraries name, and which of them are compared. No count is known by arithmetic.
SCRIPTS = {"softmax_and_products": "regex:^softmax$|gemm|nvjet|cutlass"}
HEADLINES = ["gpu__time_duration.sum", "smsp__inst_executed.sum", "sm__inst_executed.avg.per_cycle_active",
             "sm__throughput.avg.pct_of_peak_sustained_elapsed",
             "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
             "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__bytes_read.sum", "dram__bytes_write.sum",
             "dram__bytes.sum.per_second", "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct",
             "sm__warps_active.avg.pct_of_peak_sustained_active"]
DURATION = "gpu__time_duration.sum"
SM_CLOCK = "sm__cycles_elapsed.avg.per_second"
METRIC_NAME = re.compile(r"[a-zA-Z]\w*__[\w.]+")


class Program:
    """One program under both tools; `kprof` and `ncu` map a kernel to its launches."""

    def __init__(self, name, launches, caches):
        self.name, self.launches, self.caches = name, launches, caches
        self.argv = [harness.programs() / name, str(launches), *PROGRAMS.get(name, [])]
        self.expected, self.kernels = [], []
        self.kprof, self.ncu = {}, {}
        self.units, self.ncu_units = {}, {}
        self.stdout, self.kprof_seconds, self.ncu_seconds = "", None, None

    def run_plain(self):
        result = harness.run(self.argv)
        if result.status != 0:
            raise harness.Failure(f"plain run ended with {result.status}: {harness.last_lines(result.stderr)}")
        self.stdout = result.stdout
        self.expected = compare.parse_expect(result.stdout)
        self.kernels = list(dict.fromkeys(kernel for kernel, *_ in self.expected))

    def kernel_filter(self):
        return harness.kernel_filter(self.kernels)

    def metrics_expected(self):
        names = []
        for _, expression, _, _ in self.expected:
            names += compare.expression_names(expression)
        return list(dict.fromkeys(names))

    def run_kprof(self, folder, chosen_set):
        base = f"{folder}/{self.name}"
        metrics = ",".join(self.metrics_expected() + HEADLINES)
        result = harness.run([harness.kprof(), "--set", chosen_set, "--metrics", metrics, "--cache-control",
                              self.caches, "-k", self.kernel_filter(), "-o", base, "--log-file",
                              f"{base}.log", *self.argv])
        self.kprof_seconds = result.seconds
        if result.status != 0:
            raise harness.Failure(f"kprof ended with {result.status}: {harness.last_lines(result.stderr)}")
        if result.stdout != self.stdout:
            raise harness.Failure("under kprof the program printed something else: "
                                  f"{harness.last_lines(result.stdout)}")
        launches, self.units = harness.read_report(base)
        self.kprof = group(launches)
        self.check_launches()

    def check_launches(self):
        for kernel in self.kernels:
            launches = self.kprof.get(kernel, [])
            measured = [launch for launch in launches if launch.measured]
            if len(measured) != self.launches:
                reasons = {launch.reason for launch in launches if launch.reason}
                raise harness.Failure(f"{kernel}: {len(measured)} of {self.launches} launches measured {reasons or ''}")

    def run_ncu(self, folder, names):
        log = f"{folder}/{self.name}.ncu.csv"
        result, text = run_ncu(log, names, self.caches, self.kernel_filter(), self.argv)
        self.ncu_seconds = result.seconds
        launches, self.ncu_units = harness.parse_ncu_raw(text)
        self.ncu = group(launches)
        if result.status != 0 or set(self.kernels) - set(self.ncu):
            raise harness.Failure(f"ncu ended with {result.status} and profiled {list(self.ncu)}: "
                                  f"{harness.last_lines(text)}")


class Script(Program):
    """Its kernels are those that kprof measured: each is launched as often as the others."""

    def __init__(self, name, launches, caches):
        super().__init__(name, launches, caches)
        self.argv = [sys.executable, harness.ROOT / f"tests/gpu/programs/{name}.py", str(launches)]

    def kernel_filter(self):
        return SCRIPTS[self.name]

    def check_launches(self):
        self.kernels = list(self.kprof)
        super().check_launches()


def group(launches):
    kernels = collections.defaultdict(list)
    for launch in launches:
        kernels[launch.kernel].append(launch)
    return dict(kernels)


def run_ncu(log, names, caches, kernel_filter, argv):
    """(result, text of the log). Clocks are never touched: other users of the machine would feel it."""
    result = harness.run([harness.ncu(), "--clock-control", "none", "--cache-control", caches, "--csv", "--page", "raw",
                          "--print-units", "base", "--print-fp", "--print-kernel-base", "function", "--log-file", log,
                          "--metrics", ",".join(names), "-k", kernel_filter, *argv], limit=300)
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        text = ""
    return result, text + result.stderr


def refused_names(text, names):
    """Metrics that ncu's errors and warnings name."""
    named = set()
    for line in text.splitlines():
        if line.startswith(("==ERROR==", "==WARNING==")):
            named.update(word.rstrip(".") for word in METRIC_NAME.findall(line))
    return named & set(names)


def base_names_of_ncu():
    names = set()
    for collection in ("profiling", "launch"):
        result = harness.run([harness.ncu(), "--query-metrics", "--query-metrics-mode", "base",
                              "--query-metrics-collection", collection])
        names.update(METRIC_NAME.findall(result.stdout))
    return names


def names_for_ncu(program, names, folder):
    """(names that ncu takes, names that it does not): it refuses to profile at all when it is given an unknown one.
    What it says is believed first; if it says nothing usable, its own list of metrics decides."""
    asked = list(names)
    for attempt in range(8):
        _, text = run_ncu(f"{folder}/known{attempt}.csv", asked, program.caches, program.kernel_filter(),
                          [*program.argv[:-1 - len(PROGRAMS.get(program.name, []))], "1"])
        launches, _ = harness.parse_ncu_raw(text)
        if launches:
            return asked, [name for name in names if name not in asked]
        refused = refused_names(text, asked)
        if not refused or attempt == 1:
            known = base_names_of_ncu()
            refused |= {name for name in asked if known and name.partition(".")[0] not in known}
        if not refused:
            break
        asked = [name for name in asked if name not in refused]
    raise harness.Failure(f"ncu takes none of the metrics: {harness.last_lines(text)}")


def values(launches, name):
    found = (launch.metrics.get(name) for launch in launches)
    return [value for value in found if value is not None]


def comparisons(program, kernel, names):
    kprof, ncu = program.kprof[kernel], program.ncu.get(kernel, [])
    durations = values(kprof, DURATION)
    duration = statistics.median(durations) if durations else None
    compared = []
    for name in names:
        cells = values(ncu, name)
        digit = max((half for _, half in cells), default=0.0)
        item = compare.Comparison(name, values(kprof, name), [value for value, _ in cells], digit, duration)
        item.units = f"{program.units.get(name, '')} / {program.ncu_units.get(name, '')}"
        compared.append(item)
    return compared


def collected_names(program):
    """Every metric that kprof stored for any kernel of a program, less what it derives itself."""
    names = {}
    for launches in program.kprof.values():
        for launch in launches:
            names.update(dict.fromkeys(launch.metrics))
    return [name for name in names if not name.startswith("derived__")]


class Validation:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.document = harness.Document(options.output or harness.results_folder() / "validation.md")
        self.known = compare.load_known(harness.ROOT / "tests/gpu/known-differences.txt")
        self.failures, self.programs, self.compared, self.refused = [], [], {}, []

    def collect(self):
        for name in self.options.programs:
            kind = Script if name in SCRIPTS else Program
            program = kind(name, self.options.launches, self.options.caches)
            try:
                program.run_plain()
                program.run_kprof(self.folder, self.options.set)
                self.programs.append(program)
            except harness.Failure as failure:
                self.failures.append(f"{name}: {failure}")
        if self.programs and not self.options.no_ncu:
            self.collect_ncu()

    def collect_ncu(self):
        names = list(dict.fromkeys(name for program in self.programs for name in collected_names(program)))
        try:
            asked, self.refused = names_for_ncu(self.programs[0], names, self.folder)
        except harness.Failure as failure:
            self.failures.append(str(failure))
            return
        for program in self.programs:
            try:
                program.run_ncu(self.folder, asked)
            except harness.Failure as failure:
                self.failures.append(f"{program.name}: {failure}")
            for kernel in program.kernels if program.ncu else []:
                self.compared[program.name, kernel] = comparisons(program, kernel, collected_names(program))

    def report_counts(self):
        rows = []
        for program in self.programs:
            for kernel, expression, wanted, relative in program.expected:
                ours = median_of(program.kprof[kernel], expression)
                theirs = median_of_ncu(program.ncu.get(kernel, []), expression)
                passed = compare.meets(ours, wanted, relative)
                if not passed and self.matters(expression):
                    self.failures.append(f"{kernel}: {expression} is {harness.cell(ours)}, not {harness.cell(wanted)}")
                rows.append((kernel, f"`{expression}`", wanted, ours, theirs, deviation(ours, wanted),
                             f"{100 * relative:g} %", "pass" if passed else "**fail**"))
        self.document.add("## Counts known by arithmetic\n")
        self.document.add("Medians over the launches.\n")
        self.document.add(harness.table(["kernel", "value", "expected", "kprof", "ncu", "deviation of kprof", "allowed",
                                         "verdict"], rows))

    def report_summary(self):
        rows = []
        for (program, kernel), compared in self.compared.items():
            count = collections.Counter(self.verdict(kernel, item) for item in compared)
            rows.append((program, kernel, len(compared), count["equal"], count["within"], count["noisy"],
                         count["known difference"], count["outside"], count["missing"], count["not in ncu"]))
        self.document.add("## Every metric against ncu\n")
        header = ["program", "kernel", "metrics", "equal (counts)", "within 5 % or floor", "noisy", "known difference",
                  "outside", "missing", "not in ncu"]
        self.document.add(harness.table(header, rows))

    def report_near(self):
        """The share of metrics within 2 and 10 % of ncu's, small counts aside: they are mostly traffic of others."""
        rows, far = [], []
        for (_, kernel), compared in self.compared.items():
            items = [item for item in compared if item.kprof and item.ncu and not item.is_small_count()]
            rows.append((kernel, len(items), *(share_within(items, limit) for limit in (0, 2, 10)),
                         *clocks_mhz(compared)))
            far += [(kernel, f"`{item.name}`", f"{item.apart_pct():.1f}") for item in items if item.apart_pct() > 2]
        self.document.add("## How near\n")
        self.document.add(f"Without counts below {compare.SMALL_COUNT:,}; what ncu rounds away is no difference. "
                          "Cycles can only be near where the clocks are.\n")
        self.document.add(harness.table(["kernel", "metrics", "equal", "within 2 %", "within 10 %",
                                         "SM clock, MHz: kprof", "ncu"], rows))
        self.document.add("## Apart by more than 2 %\n")
        self.document.add(harness.table(["kernel", "metric", "apart, %"], far))

    def matters(self, name):
        return self.options.caches == "all" or compare.is_exact(name)

    def verdict(self, kernel, item):
        explained = item.verdict in ("outside", "missing") and compare.known_reason(self.known, kernel, item.name)
        return "known difference" if explained else item.verdict

    def report_listed(self, wanted, title):
        """Each metric with one of these verdicts, with its values: none is dropped."""
        rows = []
        for (_, kernel), compared in self.compared.items():
            for item in compared:
                verdict = self.verdict(kernel, item)
                if verdict not in wanted:
                    continue
                rows.append((*item_cells(kernel, item), value_range(item.kprof), value_range(item.ncu), item.units,
                             compare.known_reason(self.known, kernel, item.name) or ""))
                if verdict == "missing" or verdict == "outside" and self.matters(item.name):
                    self.failures.append(f"{kernel}: {item.name} is {verdict}: kprof "
                                         f"{harness.cell(item.median_kprof())}, ncu {harness.cell(item.median_ncu())}")
        self.document.add(f"## {title}\n")
        self.document.add(harness.table([*ITEM_HEADER, "range of kprof", "range of ncu", "units", "reason"], rows)
                          if rows else "None.\n")

    def report_absent(self):
        """Metrics without a value of ncu's to compare with."""
        absent = {item.name for compared in self.compared.values() for item in compared if item.verdict == "not in ncu"}
        self.document.add("## Not in ncu\n")
        for title, names in (("ncu does not know these", sorted(absent & set(self.refused))),
                             ("ncu gave no number for these", sorted(absent - set(self.refused)))):
            self.document.add(f"{title}: " + (", ".join(f"`{name}`" for name in names) or "none") + ".\n")

    def report_headlines(self):
        rows = []
        for (_, kernel), compared in self.compared.items():
            by_name = {item.name: item for item in compared}
            for name in HEADLINES:
                item = by_name.get(name)
                if item:
                    rows.append(item_cells(kernel, item))
        self.document.add("## Headline metrics, medians\n")
        self.document.add(harness.table(ITEM_HEADER, rows))

    def report_times(self):
        rows = [(program.name, program.launches * len(program.kernels), program.kprof_seconds, program.ncu_seconds)
                for program in self.programs]
        self.document.add("## Time of the runs\n")
        self.document.add(harness.table(["program", "launches measured", "kprof (s)", "ncu (s)"], rows))

    def report(self):
        add = self.document.add
        add("# Validation\n")
        add(harness.table(["", ""], harness.facts("tests/gpu/validate.py " + " ".join(sys.argv[1:]))))
        add(f"kprof `--set {self.options.set}`, {self.options.launches} launches of each kernel under each tool, ncu "
            f"with `--clock-control none`; both with `--cache-control {self.options.caches}`.\n")
        self.report_counts()
        if not self.options.no_ncu and self.compared:
            add(compare.__doc__.partition("\n\n")[2] + "\n")
            self.report_summary()
            self.report_near()
            self.report_listed(("outside", "missing"), "Outside")
            self.report_listed(("known difference",), "Known differences")
            self.report_listed(("noisy",), "Noisy: ranges meet, medians differ by more")
            self.report_absent()
            self.report_headlines()
        self.report_times()
        add(f"## Result\n\n{len(self.failures)} failures.\n")
        for failure in self.failures:
            add(f"- {failure}")


ITEM_HEADER = ["kernel", "metric", "kprof", "ncu", "difference"]


def item_cells(kernel, item):
    return (kernel, f"`{item.name}`", item.median_kprof(), item.median_ncu(), percent(item.difference_pct()))


def share_within(items, limit_pct):
    return f"{100 * sum(item.apart_pct() <= limit_pct for item in items) / len(items):.1f} %"


def clocks_mhz(compared):
    """The SM clock that each tool saw, as cells of a table."""
    clock = next((item for item in compared if item.name == SM_CLOCK), None)
    if not clock or not clock.kprof or not clock.ncu:
        return "n/a", "n/a"
    return f"{clock.median_kprof() / 1e6:.0f}", f"{clock.median_ncu() / 1e6:.0f}"


def median_of(launches, expression):
    found = [compare.evaluate(expression, launch.metrics) for launch in launches]
    return statistics.median(found) if found else None


def median_of_ncu(launches, expression):
    plain = [{name: value for name, (value, _) in launch.metrics.items()} for launch in launches]
    found = [value for value in (compare.evaluate(expression, metrics) for metrics in plain) if value == value]
    return statistics.median(found) if found else None


def deviation(value, wanted):
    return f"{100 * (value - wanted) / wanted:+.3f} %" if value is not None and value == value and wanted else "n/a"


def percent(value):
    return None if value is None else f"{value:+.2f} %"


def value_range(found):
    return f"{harness.cell(float(min(found)))} to {harness.cell(float(max(found)))}" if found else None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="; ".join([*PROGRAMS, *SCRIPTS]))
    parser.add_argument("--launches", type=int, default=3, help="launches of each kernel (3)")
    parser.add_argument("--set", default="full", help="the set that kprof collects (full)")
    parser.add_argument("--caches", choices=["all", "none"], default="all", help="--cache-control of both tools (all)")
    parser.add_argument("--output", help="Markdown file (validation.md among the results)")
    parser.add_argument("--pinned", action="store_true",
                        help="the programs have pinned memory, so that launches are repeated with a proof")
    parser.add_argument("--no-ncu", action="store_true", help="arithmetic only")
    options = parser.parse_args()
    known = [*PROGRAMS, *SCRIPTS]
    options.programs = options.programs or known
    for name in set(options.programs) - set(known):
        parser.error(f"{name}: not one of {', '.join(known)}")
    return options


def main():
    options = parse_arguments()
    harness.need_gpu()
    if not harness.ncu() and not options.no_ncu:
        print("validate.py: no ncu: values are compared with arithmetic only", file=sys.stderr)
        options.no_ncu = True
    if options.pinned:
        os.environ["KPROF_TEST_PINNED"] = "1"
    with tempfile.TemporaryDirectory(prefix="kprof-validate-") as folder:
        validation = Validation(options, folder)
        validation.collect()
        validation.report()
    return 1 if validation.failures else 0


if __name__ == "__main__":
    sys.exit(main())
