#!/usr/bin/env python3
"""What trace.py makes of tables, without a GPU: those of the program that it expects, and of one that is off."""
import unittest

import trace as traces


def tables(busy):
    times = {"Total Time (ns)": 20000000, "Instances": 20, "Name": "spin"}
    return {"cuda_gpu_kern_sum": [times], "cuda_api_sum": [{"Num Calls": 20, "Name": "cudaLaunchKernel"}],
            "gpu_busy": [{"Busy (%)": busy, "Idle (%)": 100 - busy, "Span (ns)": 115000000, "Queue Depth Max": 1}],
            "gpu_idle_sum": [{"Cause": "host code", "Total Time (ns)": 95500000},
                             {"Cause": "launching", "Total Time (ns)": 500000}]}


class Judgement(unittest.TestCase):
    known = {"kernels": 20.0, "kernel_us": 20000.0, "host_us": 95000.0}

    def off(self, told):
        return [what for what, value, lowest, highest in traces.checks("gaps", self.known, told)
                if not lowest <= value <= highest]

    def test_gaps(self):
        self.assertEqual(self.off(tables(17)), [])
        self.assertEqual(self.off(tables(50)), ["busy (%)"])
        told = tables(17)
        told["gpu_idle_sum"].pop(0)
        self.assertEqual(self.off(told), ["idle by host code (us)"])
        told["cuda_gpu_kern_sum"][0]["Instances"] = 19
        self.assertEqual(self.off(told), ["kernels", "idle by host code (us)"])
        told = tables(17)
        told["cuda_api_sum"].append({"Num Calls": 1, "Name": "cuLaunchKernelEx"})
        self.assertEqual(self.off(told), ["launches that are told as calls of the driver, too"])

    def test_judge(self):
        rows, failures = [], []
        traces.judge("p", [("a", 1, 1, float("inf")), ("b", 0, 1, 2)], rows, failures)
        self.assertEqual(([row[-1] for row in rows], failures), (["good", "**off**"], ["p: b is 0"]))


unittest.main()
