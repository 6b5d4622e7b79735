#!/usr/bin/env python3
"""Tests of how values.py collects and judges; they need no GPU."""
import os
import pathlib
import stat
import tempfile
import types
import unittest

import harness
import values

# A stand-in for kprof: a report of one measured launch of k for each launch asked for, with the metrics of FAKE_ALONE
# or FAKE_BATCHED, which are name=value pairs, and a message on the size of the batch.
FAKE = """#!/usr/bin/env python3
import os, sqlite3, sys
argument = lambda name: sys.argv[sys.argv.index(name) + 1]
batched, launches = argument("--replay-batch") == "auto", int(sys.argv[-1])
database = sqlite3.connect(argument("-o") + ".kprof")
database.execute("CREATE TABLE launches(launch, kernel, measured, reason, position, replay_mode, pid)")
database.execute("CREATE TABLE launch_metrics(launch, metric, value, unit)")
database.execute("CREATE TABLE message(text)")
if batched:
    database.execute("INSERT INTO message VALUES(?)", (f"batch of {os.environ['FAKE_BATCH']} launches: open 1 ms",))
for number in range(launches):
    database.execute("INSERT INTO launches VALUES(?, 'k', 1, '', ?, 'batch', 7)", (number, number))
    for pair in os.environ["FAKE_BATCHED" if batched else "FAKE_ALONE"].split(","):
        name, value = pair.split("=")
        database.execute("INSERT INTO launch_metrics VALUES(?, ?, ?, 'inst')", (number, name, float(value)))
database.commit()
"""


class Judging(unittest.TestCase):
    def compare(self, alone, batched, caches="all", batch=8):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "kprof"
            fake.write_text(FAKE)
            fake.chmod(stat.S_IRWXU)
            os.environ.update(KPROF=str(fake), FAKE_ALONE=alone, FAKE_BATCHED=batched, FAKE_BATCH=str(batch))
            comparing = values.Comparing(types.SimpleNamespace(runs=2, alone=3, batched=8, set="full"), folder)
            found = values.Values("vectorAdd", caches)
            found.plain = lambda: found.kernels.append("k")
            comparing.collect(found)
            comparing.judge(found)
            return comparing

    def test_all_agree(self):
        comparing = self.compare("smsp__inst_executed.sum=64,gpu__time_duration.sum=900",
                                 "smsp__inst_executed.sum=64,gpu__time_duration.sum=901")
        self.assertEqual(comparing.failures, [])
        self.assertEqual(comparing.rows, [("k", "all", 6, 16, 8, 2, 1, 0, 1, 0, 0, 0)])
        self.assertEqual(comparing.listed["near"][0][:3], ("k", "all", "`gpu__time_duration.sum`"))

    def test_a_count_differs(self):
        for caches in ("all", "none"):
            comparing = self.compare("smsp__inst_executed.sum=64", "smsp__inst_executed.sum=65", caches)
            self.assertEqual(comparing.failures, [f"k, caches {caches}: smsp__inst_executed.sum is outside"])

    def test_what_caches_change_fails_only_where_they_are_flushed(self):
        self.assertEqual(self.compare("dram__bytes.sum=9e6", "dram__bytes.sum=1e6", "none").failures, [])
        comparing = self.compare("dram__bytes.sum=9e6", "dram__bytes.sum=1e6")
        self.assertEqual(len(comparing.failures), 1)
        self.assertEqual(comparing.listed["outside"][0][5], "-88.9 %")

    def test_known_difference(self):
        comparing = self.compare("derived__l2_evict_first_hit_rate.pct=90,dram__bytes.sum=1e6",
                                 "derived__l2_evict_first_hit_rate.pct=10,dram__bytes.sum=1e6")
        self.assertEqual(comparing.failures, [])
        self.assertEqual(comparing.listed["known difference"][0][2], "`derived__l2_evict_first_hit_rate.pct`")

    def test_a_metric_is_missing(self):
        self.assertEqual(len(self.compare("a__b.sum=1,c__d.sum=1", "a__b.sum=1", "none").failures), 1)

    def test_nothing_was_batched(self):
        with self.assertRaises(harness.Failure):
            self.compare("a__b.sum=1", "a__b.sum=1", batch=1)


if __name__ == "__main__":
    unittest.main()
