# %% [markdown]
# # Measure a cell
#
# Kernels of a cell of this notebook, with hardware counters, and without a relaunch under a profiler. It takes a GPU,
# kprof and PyTorch; `python/kprof.py` of kprof has to be where Python looks for modules.

# %%
import json

import kprof

# %% [markdown]
# kprof's library comes into the process as CUDA starts. So this cell has to run before the first call of CUDA; if one
# came before, restart the kernel of the notebook. Where the whole of it runs under `kprof --armed no jupyter lab`, the
# cell does nothing.

# %%
kprof.prepare()

# %%
import torch

a, b = (torch.rand(1024, 1024, device="cuda") for _ in range(2))


def step():
    """What is to be measured."""
    c = torch.relu(a @ b)
    torch.cuda.synchronize()
    return c


step()  # what is made once, such as handles of libraries, is not measured

# %% [markdown]
# ## The default set
# The block's launches are measured, and what comes after it is not. `dict()` has the mean of each metric for each
# kernel.

# %%
with kprof.profile() as p:
    step()

means = p.dict()
for kernel, values in means.items():
    print(f"{kernel}: {values['launches']} launches, {values['gpu__time_duration.sum'] / 1e3:.2f} us each")

# %% [markdown]
# ## Metrics of your choice
# Units stand beside the values. A metric that could not be measured is `None`, and never 0.

# %%
with kprof.profile(metrics=["sm__cycles_active.avg", "dram__bytes.sum"]) as q:
    for _ in range(3):
        step()

units = q.units
for launch in q.launches:
    wanted = {name: launch["metrics"][name] for name in ("sm__cycles_active.avg", "dram__bytes.sum")}
    print(launch["kernel"], json.dumps(wanted), units["dram__bytes.sum"])

# %% [markdown]
# ## A table
# A row for each launch, where pandas is installed.

# %%
try:
    table = q.dataframe()
    print(table.groupby("kernel")["sm__cycles_active.avg"].describe())
except kprof.Error as error:
    print(error)

# %% [markdown]
# ## The report itself
# `report()` prints any page of `kprof report`. `kprof.profile(keep="step.kprof")` keeps the file, for `kprof diff` or
# another day.

# %%
print(p.report("--page", "summary"))
