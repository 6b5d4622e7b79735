"""Which values must agree, and how closely. Everything here is arithmetic on numbers that were collected elsewhere, and
is tested without a GPU by test_compare.py.

Against ncu, medians over the launches of a kernel are compared:
- Instruction counts (`*inst_executed*.sum` and `.avg`) and `launch__*` must be equal; the only slack is the last digit
  that ncu prints.
- Everything else may differ by 5 %, or by a floor under which a value says nothing: 1 percentage point for percentages,
  0.05 for ratios, 1,024 events for a sum over the whole GPU, 16 events for a value per unit, 1,024 events per duration
  for a rate.
- Where a metric outside that varies by more than the tolerance from launch to launch under either tool, the two ranges
  have to meet within the tolerance. Such metrics are called noisy and are listed with their ranges.
- What is left is outside. known-differences.txt may explain one (a pattern and a reason); it is listed all the same."""
import ast
import math
import re
import statistics

RELATIVE = 0.05
EXACT = re.compile(r"^(sm|smsp)__(sass_)?(thread_)?inst_executed\w*\.(sum|avg)$|^launch__\w+$")
SMALL_COUNT = 1000
EVENTS, EVENTS_PER_UNIT, POINTS, RATIO = 1024.0, 16.0, 1.0, 0.05


def is_exact(name):
    return bool(EXACT.match(name))


def floor(name, duration_ns):
    """The difference under which two values of this metric count as equal."""
    if ".pct" in name or "_pct" in name:
        return POINTS
    if name.endswith(".ratio") or ".per_cycle" in name or ".per_" in name and ".per_second" not in name:
        return RATIO
    if name.endswith(".per_second"):
        return EVENTS / (duration_ns * 1e-9) if duration_ns else 0.0
    if name.startswith("gpu__time"):
        return 0.0
    return EVENTS if name.endswith(".sum") else EVENTS_PER_UNIT


def tolerance(name, reference, duration_ns):
    return 0.0 if is_exact(name) else max(RELATIVE * abs(reference), floor(name, duration_ns))


class Comparison:
    """One metric of one kernel: `kprof` and `ncu` are the values of its launches, `digit` half of ncu's last digit."""

    def __init__(self, name, kprof, ncu, digit=0.0, duration_ns=None):
        self.name, self.kprof, self.ncu, self.digit = name, kprof, ncu, digit
        self.slack = 0.0
        self.verdict = self.judge(duration_ns)

    def judge(self, duration_ns):
        if not self.ncu:
            return "not in ncu"
        if not self.kprof:
            return "missing"
        reference = self.median_ncu()
        self.slack = tolerance(self.name, reference, duration_ns) + self.digit + 1e-9 * abs(reference)
        if abs(self.median_kprof() - reference) <= self.slack:
            return "equal" if is_exact(self.name) else "within"
        if is_exact(self.name) or max(self.spread(self.kprof), self.spread(self.ncu)) <= self.slack:
            return "outside"
        return "noisy" if self.ranges_meet() else "outside"

    def apart_pct(self):
        """The least that the medians differ by, whatever digits ncu left out."""
        apart = max(abs(self.median_kprof() - self.median_ncu()) - 1.000001 * self.digit, 0)
        return 0 if apart <= 1e-9 * abs(self.median_ncu()) else 100 * apart / max(abs(self.median_ncu()), 1e-30)

    def is_small_count(self):
        counts = not any(part in self.name for part in (".pct", "_pct", ".ratio", ".per_", "gpu__time"))
        return counts and self.median_ncu() < SMALL_COUNT

    def ranges_meet(self):
        return (min(self.kprof) <= max(self.ncu) + self.slack) and (min(self.ncu) <= max(self.kprof) + self.slack)

    @staticmethod
    def spread(values):
        return max(values) - min(values)

    def median_kprof(self):
        return statistics.median(self.kprof) if self.kprof else None

    def median_ncu(self):
        return statistics.median(self.ncu) if self.ncu else None

    def difference_pct(self):
        if not self.kprof or not self.ncu or not self.median_ncu():
            return None
        return 100.0 * (self.median_kprof() - self.median_ncu()) / abs(self.median_ncu())


SPREAD_RULE = """Of each metric of a kernel, A are its values over all runs and launches that were repeated alone, B
those that were repeated in batches; the spread of A is max(A) - min(A), and the floor is the difference under which a
value says nothing: 1 percentage point for percentages, 0.05 for ratios, 1,024 events for a sum over the whole GPU, 16
events for a value per unit, 1,024 events per duration for a rate.

- equal: every value of B equals every value of A. Instruction counts (`*inst_executed*.sum` and `.avg`) and `launch__*`
  have to be equal, unless A itself varies; then they have to be within.
- within: the median of B lies from min(A) - spread to max(A) + spread.
- near: outside of that, but closer to the median of A than 5 % or the floor.
- outside: anything else; missing: A has values and B has none, or B and not A.
"""


def judge_spread(name, batched, alone, duration_ns=None):
    """The verdict of SPREAD_RULE."""
    if not batched or not alone:
        return "missing"
    low, high = min(alone), max(alone)
    if min(batched) == max(batched) == low == high:
        return "equal"
    if is_exact(name) and low == high:
        return "outside"
    median, reference, spread = statistics.median(batched), statistics.median(alone), high - low
    rounding = 1e-9 * abs(reference)
    if low - spread - rounding <= median <= high + spread + rounding:
        return "within"
    if is_exact(name):
        return "outside"
    return "near" if abs(median - reference) <= tolerance(name, reference, duration_ns) else "outside"


def parse_expect(text):
    """(kernel, expression, value, tolerance) of each `expect` line that a program printed."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 5 and words[0] == "expect":
            found.append((words[1], words[2], float(words[3]), float(words[4])))
    return found


def dotted_name(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    raise ValueError("not a metric name")


OPERATIONS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
              ast.Div: lambda a, b: a / b if b else math.nan}


def expression_names(expression):
    """Every metric in an expression, in order."""
    tree = ast.parse(expression, mode="eval")
    outer = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
    inner = {id(node.value) for node in outer if isinstance(node, ast.Attribute)}
    return list(dict.fromkeys(dotted_name(node) for node in outer if id(node) not in inner))


def evaluate(expression, metrics):
    """The value of an expression over a launch's metrics; NaN when one of them is missing."""
    def value(node):
        if isinstance(node, ast.BinOp):
            return OPERATIONS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Constant):
            return float(node.value)
        found = metrics.get(dotted_name(node))
        return math.nan if found is None else float(found)
    return value(ast.parse(expression, mode="eval").body)


def meets(value, wanted, relative):
    """Is a measured value the expected one? An expected 0 has an absolute tolerance."""
    if value is None or math.isnan(value):
        return False
    return abs(value - wanted) <= (relative * abs(wanted) if wanted else relative)


def load_known(path):
    """[(pattern, reason)] of known-differences.txt: a regular expression over "kernel/metric", a tab, a reason."""
    known = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            pattern, _, reason = line.strip().partition("\t")
            if pattern and not pattern.startswith("#"):
                known.append((re.compile(pattern), reason.strip()))
    return known


def known_reason(known, kernel, name):
    return next((reason for pattern, reason in known if pattern.fullmatch(f"{kernel}/{name}")), None)
