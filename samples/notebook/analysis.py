# %% [markdown]
# # Analyse kprof's reports with pandas
#
# Run this in a clone of kprof, as a notebook or as a script. `REPORT` and `OTHER` in the environment name two reports
# of your own, such as those before and after a change; without them both are the recorded sample.

# %%
import io
import os
import pathlib
import sqlite3
import subprocess
import sys

import matplotlib

if "ipykernel" not in sys.modules:
    matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy
import pandas

SAMPLE = "samples/vectorAdd-h200.kprof"
REPORT = os.environ.get("REPORT", SAMPLE)
OTHER = os.environ.get("OTHER", REPORT)
KPROF = os.environ.get("KPROF", "kprof")
OUT = pathlib.Path(os.environ.get("OUT", "."))
DURATION = "gpu__time_duration.sum"

# %% [markdown]
# ## Load a report as CSV
# The wide layout has a row for each launch and a column for each metric.

# %%
csv = subprocess.run([KPROF, "export", REPORT, "--to", "wide"], check=True, stdout=subprocess.PIPE, text=True).stdout
launches = pandas.read_csv(io.StringIO(csv))
print(launches[["launch", "function", "grid_x", "block_x", DURATION]].to_string())

# %% [markdown]
# ## Load the same report as a database
# A report is an SQLite file; `docs/report-schema.md` describes its tables and views.


# %%
def load(path):
    """All values of a report, a row for each launch and metric."""
    with sqlite3.connect(f"file:{pathlib.Path(path).resolve()}?mode=ro", uri=True) as database:
        return pandas.read_sql_query("SELECT launch, kernel, metric, value, unit FROM launch_metrics", database)


values = load(REPORT)
table = values.pivot(index="launch", columns="metric", values="value")
same = numpy.allclose(table[DURATION].dropna(), launches.set_index("launch")[DURATION].dropna())
print("CSV and database agree" if same else "CSV and database differ: CSV joins launches that were multiplexed")

# %% [markdown]
# ## A roofline
# Each launch is a point: FLOP per byte of DRAM traffic, and FLOP per second. The roof is the lower of DRAM's
# bandwidth times the intensity and the peak of the FP32 units, at the clocks of the launch.

# %%
INTENSITY = "derived__roofline_fp32_dram_intensity"
WORK, PEAK = "derived__flops_fp32.per_second", "derived__peak_flops_fp32.per_second"
BANDWIDTH = "derived__dram_peak_bytes.per_second"
if {INTENSITY, WORK, PEAK, BANDWIDTH} <= set(table.columns):
    points = table[table[WORK] > 0]
    intensity = numpy.geomspace(min(0.01, points[INTENSITY].min()), max(1000, points[INTENSITY].max()), 200)
    roof = numpy.minimum(points[PEAK].median(), points[BANDWIDTH].median() * intensity)
    figure, axes = plt.subplots()
    axes.loglog(intensity, roof, color="black")
    axes.scatter(points[INTENSITY], points[WORK])
    axes.set(xlabel="FLOP/byte of DRAM", ylabel="FLOP/s", title="FP32 roofline")
    figure.savefig(OUT / "roofline.png")
    share = points[WORK] / numpy.minimum(points[PEAK], points[BANDWIDTH] * points[INTENSITY])
    print("Of the roof:", ", ".join(f"{100 * each:.2f} %" for each in share))
else:
    print("No roofline: profile with --set full")

# %% [markdown]
# ## Compare two runs
# Medians of each kernel's time. `kprof diff` also tells change from noise.


# %%
def times(path):
    """The median time of each kernel, in ns."""
    every = load(path)
    return every[every.metric == DURATION].groupby("kernel").value.median()


comparison = pandas.DataFrame({"before": times(REPORT), "after": times(OTHER)})
comparison["change_pct"] = 100 * (comparison.after / comparison.before - 1)
print(comparison.to_string())
figure, axes = plt.subplots(figsize=(8, 2 + 0.3 * len(comparison)))
comparison[["before", "after"]].plot.barh(ax=axes)
axes.set(xlabel="ns")
figure.tight_layout()
figure.savefig(OUT / "comparison.png")
