#!/usr/bin/env python3
"""A CUDA graph under both levels of --graph-profiling: each kernel node a launch, or the graph as one launch. Checks
how many launches there are and that each has its values, that counts of the graph are the sums over its kernels, that
the program prints what it prints without kprof, and that a graph that calls the host is measured but not repeated.
Exits 1 when a check fails.

    graphs.py [--output FILE]
"""
import argparse
import collections
import sqlite3
import sys
import tempfile

import harness

KERNELS, ROUNDS = 3, 4  # of a graph; a plain launch goes before each launch of the graph
WATCHED = 2             # launches of a graph that may wait for the host, before it is measured
GRAPH = "CUDAGraph"
# Counted by the SMs, by patched code and in L2: the same whether kernels run alone or one after the other.
ADDITIVE = ["smsp__inst_executed.sum", "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"]
TOLERANCE = 0.001
# What a graph as a whole does not have.
OF_THE_SHAPE = ("launch__", "sm__maximum_warps", "derived__")

# Notes of launches that have every value: code that is not patched, and times of pushed ranges.
NOTES = ("patched", "the range begins before the kernel")

Launch = collections.namedtuple("Launch", "kernel demangled measured reason mode node metrics")


def read_launches(base):
    with sqlite3.connect(f"file:{harness.report_path(base)}?mode=ro", uri=True) as database:
        metrics = collections.defaultdict(dict)
        for launch, metric, value in database.execute("SELECT launch, metric, value FROM launch_metrics"):
            metrics[launch][metric] = value
        rows = database.execute("SELECT launch, kernel, demangled, measured, reason, replay_mode, graph_node "
                                "FROM launches ORDER BY launch")
        return [Launch(*row[1:], metrics[row[0]]) for row in rows]


class Session:
    def __init__(self, folder):
        self.folder, self.count, self.plain = folder, 0, {}

    def profile(self, kind, level, *options, rounds=ROUNDS):
        """The launches of the program under kprof, after a plain run of it that must print the same."""
        argv = [harness.programs() / "graphs", kind, rounds]
        if kind not in self.plain:
            self.plain[kind] = harness.run(argv)
        plain = self.plain[kind]
        if plain.status != 0:
            raise harness.Failure(f"the plain run ended with {plain.status}: {harness.last_lines(plain.stderr)}")
        self.count += 1
        base = f"{self.folder}/{self.count}"
        under = harness.run([harness.kprof(), "--graph-profiling", level, *(options or ["--set", "default"]),
                             "-o", base, "--log-file", f"{base}.log", *argv])
        if under.status != 0 or under.stdout != plain.stdout:
            raise harness.Failure(f"status {under.status}, stdout {under.stdout!r}, plain {plain.stdout!r}: "
                                  f"{harness.last_lines(under.stderr)}")
        return read_launches(base)


def demand(condition, text):
    if not condition:
        raise harness.Failure(text)


def has_all(launch, names):
    """Is it measured in replays, with a value for each of these metrics?"""
    missing = [name for name in names if launch.metrics.get(name) is None]
    is_note = not launch.reason or any(note in launch.reason for note in NOTES)
    demand(launch.mode == "batch" and is_note and not missing,
           f"{launch.demangled}: mode {launch.mode}, reason {launch.reason!r}, without {missing[:6]}")


def unpatched(names):
    """Without the metrics that need code that is patched into kernels: it does not see those of a graph as a whole."""
    return [name for name in names if "__sass_" not in name and "flop" not in name]


def counters(launch):
    """Without how far the passes differ in time, which is told of ranges that CUPTI makes, not of a graph's."""
    return sorted(name for name, value in launch.metrics.items()
                  if value is not None and not name.startswith((*OF_THE_SHAPE, "gpu__time_active")))


def split(launches, graphs, plain):
    """(launches of graphs, others), as many as these."""
    whole = [launch for launch in launches if launch.kernel == GRAPH]
    others = [launch for launch in launches if launch.kernel != GRAPH]
    demand((len(whole), len(others)) == (graphs, plain),
           f"{len(whole)} launches of graphs and {len(others)} others, not {graphs} and {plain}")
    return whole, others


def check_nodes(session, kind="kernels"):
    launches = session.profile(kind, "node")
    _, launches = split(launches, 0, ROUNDS * (1 + KERNELS))
    nodes = [launch.node for launch in launches if launch.node is not None]
    demand(len(nodes) == ROUNDS * KERNELS and len(set(nodes)) == KERNELS, f"graph nodes {nodes}")
    for launch in launches:
        has_all(launch, counters(launches[0]))
    return f"{len(launches)} launches, {len(counters(launches[0]))} values each"


def check_copies(session):
    """From and to the host, among the nodes."""
    launches = session.profile("copies", "node")
    _, launches = split(launches, 0, ROUNDS * (1 + KERNELS))
    for launch in launches:
        has_all(launch, counters(launches[0]))
    return f"{len(launches)} launches, {len(counters(launches[0]))} values each"


def check_whole(session):
    whole, others = split(session.profile("kernels", "graph"), ROUNDS, ROUNDS)
    names = counters(others[0])
    for launch in others:
        has_all(launch, names)
    for launch in whole:
        has_all(launch, unpatched(names))
        zeros = [name for name in set(names) - set(unpatched(names)) if launch.metrics.get(name) is not None]
        demand(not zeros, f"values of patched code: {zeros}")
    told = {name for name, value in whole[0].metrics.items() if name.startswith("launch__") and value is not None}
    demand(len({launch.demangled for launch in whole}) == 1 and whole[0].demangled.startswith(f"{GRAPH}<3 kernels, "),
           f"names {[launch.demangled for launch in whole]}")
    demand(told <= {"launch__context_id", "launch__device_id", "launch__sm_count", "launch__stream_id"},
           f"a graph has {sorted(told)}")
    return f"{len(whole)} graphs, {len(unpatched(names))} values each, {whole[0].demangled}"


def check_sums(session):
    options = ["--metrics", ",".join(ADDITIVE)]
    nodes = [launch for launch in session.profile("kernels", "node", *options) if launch.node is not None]
    whole, _ = split(session.profile("kernels", "graph", *options), ROUNDS, ROUNDS)
    demand(len(nodes) == ROUNDS * KERNELS, f"{len(nodes)} launches of nodes")
    texts = []
    for name in ADDITIVE:
        wanted = sum(launch.metrics[name] or 0 for launch in nodes) / ROUNDS
        for launch in whole:
            got = launch.metrics[name]
            if not unpatched([name]):
                demand(got is None, f"{name}: {got}, though its code is not patched")
                continue
            demand(got is not None and wanted > 0 and abs(got - wanted) <= TOLERANCE * wanted,
                   f"{name}: {got} for the graph, {wanted} for its kernels")
        texts.append(f"{name} {wanted:,.0f}")
    return ", ".join(texts)


def check_kind(session, kind):
    whole, others = split(session.profile(kind, "graph"), ROUNDS, ROUNDS)
    for launch in others:
        has_all(launch, counters(others[0]))
    for launch in whole:
        has_all(launch, unpatched(counters(others[0])))
    return f"{len(whole)} graphs, {len(unpatched(counters(others[0])))} values each"


def check_one_pass(session):
    whole, others = split(session.profile("kernels", "graph", "--metrics", "gpu__time_duration.sum"), ROUNDS, ROUNDS)
    for launch in whole + others:
        has_all(launch, ["gpu__time_duration.sum"])
    return f"{whole[0].metrics['gpu__time_duration.sum']} ns"


def check_filter(session):
    split(session.profile("kernels", "graph", "-k", GRAPH, "-s", "1", "-c", "2"), 2, 0)
    return "-k, -s and -c count graphs"


def check_host(session):
    """It is not repeated, as the program's count of the calls shows, and the report says why."""
    rounds = 12
    whole, others = split(session.profile("host", "graph", rounds=rounds), rounds, rounds)
    for launch in others:
        has_all(launch, counters(others[0]))
    for launch in whole[:WATCHED]:
        demand(not launch.measured and "only watched" in launch.reason, f"{launch.measured}, {launch.reason!r}")
    for launch in whole[WATCHED:]:
        told = "it calls a function of the host" in launch.reason or not launch.measured
        demand(launch.mode == "multiplex" and told,
               f"mode {launch.mode}, reason {launch.reason!r}")
    measured = [launch for launch in whole if launch.measured]
    demand(measured, f"no graph has a value: {whole[-1].reason!r}")
    return f"{len(measured)} of {rounds} graphs measured, {measured[0].reason!r}"


CHECKS = [("node level", check_nodes), ("child graph", lambda session: check_nodes(session, "child")),
          ("changed between launches, node level", lambda session: check_nodes(session, "update")),
          ("copies from and to the host", check_copies),
          ("graph level", check_whole), ("sums over the kernels", check_sums),
          ("memset and copy", lambda session: check_kind(session, "mixed")),
          ("changed between launches", lambda session: check_kind(session, "update")),
          ("one pass", check_one_pass), ("filters", check_filter), ("function of the host", check_host)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", help="Markdown file (graphs.md among the results)")
    options = parser.parse_args()
    harness.need_gpu()
    with tempfile.TemporaryDirectory(prefix="kprof-graphs-") as folder:
        session = Session(folder)
        rows = harness.run_checks(CHECKS, session)
    document = harness.Document(options.output or harness.results_folder() / "graphs.md")
    document.add("# CUDA graphs under kprof\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/graphs.py")))
    document.add(harness.table(["check", "verdict", "detail"], rows))
    return 1 if any(row[1] != "pass" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
