#!/usr/bin/env python3
"""What utilization.py makes of samples, without a GPU: those of pulses as they are, late, and of another height."""
import types
import unittest

import utilization

MS = utilization.MS
START = 1700000000 * 1000 * MS


def made_run(late_ns=0, height=100, lost=()):
    kernels = [(START + i * 100 * MS, START + (i * 100 + 50) * MS) for i in range(20)]
    rows = []
    for i in range(200, 2100):
        if i not in lost:
            begin = START + i * MS
            value = utilization.overlap(kernels, begin - late_ns, begin - late_ns + MS) / MS * height
            rows.append({"Start (ns)": begin, "Duration (ns)": MS, "Metric": utilization.BUSY, "Value": value})
    steps = [{"Range": name, "SMs Busy (%)": mean} for name, mean in ((":on", 99), (":off", 1))]
    run = types.SimpleNamespace(kernels=kernels, known={"kernels": 20.0}, first_call=START,
                                tables={"pm_sampling_trace": rows, "pm_sampling_steps": steps,
                                        "pm_sampling_sum": [{"Gaps": 1 if lost else 0}]})
    run.of = lambda metric: utilization.Samples.of(run, metric)
    return run


class Judgement(unittest.TestCase):
    def off(self, run):
        return [what for what, told, lowest, highest in utilization.checks_pulses(run) if not lowest <= told <= highest]

    def test_pulses(self):
        self.assertEqual(self.off(made_run()), [])
        self.assertEqual(self.off(made_run(lost=range(1000, 1010))), [])
        self.assertEqual(self.off(made_run(lost=range(1000, 1250))), ["samples, of those that fit into the time (%)"])
        self.assertEqual(self.off(made_run(height=80)), [
            "SMs busy, mean of that time (%)", "samples that say busy for idle, or idle for busy (%)",
            "clock of samples, later than that of kernels (us)"])

    def test_another_clock(self):
        self.assertAlmostEqual(utilization.offset_us(made_run(late_ns=400000).of(utilization.BUSY),
                                                     made_run().kernels), 400, 3)
        self.assertIn("clock of samples, later than that of kernels (us)", self.off(made_run(late_ns=3 * MS)))

    def test_limited(self):
        off = lambda run, checks: [what for what, told, low, high in checks(run) if not low <= told <= high]
        run = made_run()
        run.known["chosen"] = 20.0
        run.tables["gpu_busy"] = [{"Busy (%)": 51.2}]
        rows = run.tables["pm_sampling_trace"]
        rows[:] = [{**rows[0], "Start (ns)": START + i * MS, "Value": 100 * (i % 100 < 50)} for i in range(2000)]
        self.assertEqual(off(run, utilization.checks_between_calls), [])
        self.assertEqual(off(run, utilization.checks_in_ranges),
                         ["samples", "SMs busy, mean of all samples (%)", "GPU busy (%)"])
        rows[:] = [row for row in rows if row["Value"] > 99]
        run.tables["gpu_busy"] = [{"Busy (%)": 99.5}]
        self.assertEqual(off(run, utilization.checks_in_ranges), [])
        del rows[500:]
        self.assertEqual(off(run, utilization.checks_in_ranges), ["samples"])

    def test_nothing(self):
        run = made_run()
        run.tables["pm_sampling_trace"] = []
        self.assertEqual(self.off(run), ["samples"])

    def test_cost(self):
        figures = list(utilization.checks_cost("busy", {"alone": 2.0, "traced": 2.2, "sampled": 2.4}))
        self.assertEqual([told > highest for _, told, _, highest in figures], [False, False, True])
        figures = list(utilization.checks_cost("busy", {"alone": 2.0, "sampled": 2.4}))
        self.assertEqual([told for _, told, _, _ in figures], [2, -1, -1])

    def test_what_a_crash_leaves(self):
        crashed = types.SimpleNamespace(status=139, stderr="")
        self.assertEqual([told for _, told, _, _ in utilization.check_end("busy", [crashed])], [139])
        self.assertEqual([told for _, told, _, _ in utilization.check_end("busy", [])], [0])
        run, rows, failures = made_run(), [], []
        run.known = {}
        utilization.judge(utilization.checks_pulses(run), rows, failures)
        self.assertEqual([row[4] for row in rows], ["**off**"])
        utilization.judge([("a", 1, 0, 2), ("b", 3, 0, 2)], rows, failures)
        self.assertEqual([row[4] for row in rows], ["**off**", "good", "**off**"])
        self.assertEqual(len(failures), 2)


unittest.main()
