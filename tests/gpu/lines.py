#!/usr/bin/env python3
"""Runs one small kernel of each way to compile kernels under `kprof --set source`, and looks for its lines in the
source page: nvcc's cubins, PTX that the driver compiles, NVRTC (by CuPy), Triton, torch.compile, Numba and JAX. Each
kernel has one line that must have instructions; of generated files any line will do. What is not installed is told.
Prints Markdown, also to a file; exits 1 when lines or texts are missing, 77 where there is no GPU.

    lines.py [--seconds N] [--output FILE] [CASE...]
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile

import harness
from source_ncu import Clock

MARK = "HOT"  # in a comment of the line
CUDA = """#include <cstdio>
#include <cuda_runtime.h>
__global__ void hot_kernel(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * 1.5f + 2.0f; // HOT
}
int main()
{
    float *x;
    cudaMalloc(&x, 1 << 22);
    for (int i = 0; i < 3; i++)
        hot_kernel<<<4096, 256>>>(x, 1 << 20);
    return cudaDeviceSynchronize();
}
"""
CUPY = """import cupy
module = cupy.RawModule(code=r'''
extern "C" __global__ void hot_kernel(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = x[i] * 1.5f + 2.0f; // HOT
}
''', options=("-lineinfo",))
x = cupy.zeros(1 << 20, dtype=cupy.float32)
for _ in range(3):
    module.get_function("hot_kernel")((4096,), (256,), (x, cupy.int32(1 << 20)))
cupy.cuda.Device().synchronize()
"""
TRITON = """import torch, triton
import triton.language as tl
@triton.jit
def hot_kernel(x, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + offsets) # HOT
    tl.store(x + offsets, values * 1.5 + 2.0)
x = torch.zeros(1 << 20, device="cuda")
for _ in range(3):
    hot_kernel[(1024,)](x, BLOCK=1024)
torch.cuda.synchronize()
"""
TORCH = """import torch, triton
@torch.compile
def scale(x):
    return torch.tanh(x * 1.5 + 2.0)
x = torch.zeros(1 << 20, device="cuda")
for _ in range(3):
    y = scale(x)
torch.cuda.synchronize()
"""
NUMBA = """import numpy
from numba import cuda
@cuda.jit(lineinfo=True)
def hot_kernel(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] * 1.5 + 2.0 # HOT
x = cuda.to_device(numpy.zeros(1 << 20, dtype=numpy.float32))
for _ in range(3):
    hot_kernel[4096, 256](x)
cuda.synchronize()
"""
JAX = """import jax, jax.numpy as jnp
@jax.jit
def scale(x):
    return jnp.tanh(x * 1.5 + 2.0)
x = jnp.zeros(1 << 20)
for _ in range(3):
    x = scale(x)
x.block_until_ready()
"""
Case = collections.namedtuple("Case", "source kernels options needs environment", defaults=[(), (), {}])
CASES = {
    "driver": Case(CUDA, "hot_kernel", ["-lineinfo", "-gencode", "arch=compute_75,code=compute_75"]),
    "NVRTC": Case(CUPY, "hot_kernel", needs=["cupy"]),
    "Numba": Case(NUMBA, "regex:hot_kernel", needs=["numba"]),
    "JAX": Case(JAX, "regex:.", needs=["jax"], environment={
        "XLA_FLAGS": "--xla_gpu_generate_line_info=true", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "torch.compile": Case(TORCH, "regex:^triton_", needs=["torch", "triton"]),
    "Triton": Case(TRITON, "hot_kernel", needs=["torch", "triton"]),
    "nvcc": Case(CUDA, "hot_kernel", ["-lineinfo"]),
    "nvcc, linked": Case(CUDA, "hot_kernel", ["-lineinfo", "-rdc=true"]),
}
HEADER = ["compiled by", "instructions", "with lines", "with texts", "files", ""]


def marked_line(source):
    """The number of the line with the mark in what is compiled: of a program of CuPy that is the module's text."""
    text = source.split("r'''", 1)[-1]
    lines = [number for number, line in enumerate(text.splitlines(), 1) if MARK in line]
    return lines[0] if lines else None


def judge(page, line):
    """(instructions, how many have lines and texts, files, what is wrong) of a source page by instructions."""
    rows = [row for kernel in page.get("kernels", []) for row in kernel["rows"]]
    with_lines = [row for row in rows if row["line"]]
    with_texts = [row for row in rows if row["instruction"]]
    files = sorted({row["file"] for row in with_lines if row["file"]})
    faults = []
    if not rows:
        faults.append("no instruction was measured")
    elif not with_lines:
        faults.append("no instruction has a line")
    elif line and not any(row["line"] == line and row["instructions"] for row in with_lines):
        faults.append(f"no instruction is of line {line}")
    if rows and not with_texts:
        faults.append("no instruction has a text")
    return len(rows), len(with_lines), len(with_texts), files, faults


def find_nvcc():
    return shutil.which("nvcc") or shutil.which(os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin/nvcc")


def build(case, folder, clock):
    """The command that runs the case; None: its compiler or its modules are not installed."""
    if case.source is not CUDA:
        path = pathlib.Path(folder, "program.py")
        path.write_text(case.source, encoding="utf-8")
        found = clock.run([sys.executable, "-c", "import importlib.util, sys\n"
                           f"sys.exit(not all(map(importlib.util.find_spec, {list(case.needs)!r})))"])
        return [sys.executable, path] if found.status == 0 else None
    nvcc, path = find_nvcc(), pathlib.Path(folder, "program.cu")
    path.write_text(case.source, encoding="utf-8")
    target = [] if "-gencode" in case.options else ["-arch=native"]
    if not nvcc:
        return None
    result = clock.run([nvcc, *target, *case.options, "-o", f"{folder}/program", path])
    if result.status != 0:
        raise harness.Failure(f"nvcc ended with {result.status}: {harness.last_lines(result.stderr)}")
    return [f"{folder}/program"]


def measure(case, folder, clock):
    """The source page, by instructions; None: it cannot run here."""
    words, report = build(case, folder, clock), f"{folder}/run.kprof"
    if not words:
        return None
    options = ["--set", "source", "-k", case.kernels, "-c", 3, "-f", "-o", report]
    result = clock.run([harness.kprof(), *options, *words], env={**os.environ, **case.environment}, cwd=folder)
    if result.status != 0:
        raise harness.Failure(f"kprof ended with {result.status}: {harness.last_lines(result.stderr)}")
    options = ["--page", "source", "--print-source", "sass", "--all", "--json"]
    return json.loads(clock.run([harness.kprof(), "report", report, *options]).stdout)


def try_case(name, clock):
    """(row of the table, faults)."""
    with tempfile.TemporaryDirectory(prefix="kprof-lines-") as folder:
        page = measure(CASES[name], folder, clock)
        if page is None:
            return (name, "", "", "", "", "not installed"), []
        count, lines, texts, files, faults = judge(page, marked_line(CASES[name].source))
        shown = ", ".join(re.sub(re.escape(folder), "", file) for file in files[:3])
        return (name, count, lines, texts, shown, "; ".join(faults) or "fine"), [f"{name}: {f}" for f in faults]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES) + " (all)")
    parser.add_argument("--seconds", type=int, default=110, help="run nothing any longer (110)")
    parser.add_argument("--output", help="Markdown file (lines.md among the results)")
    options = parser.parse_args()
    for name in set(options.cases) - set(CASES):
        parser.error(f"{name}: not one of {', '.join(CASES)}")
    harness.need_gpu()
    document = harness.Document(options.output or harness.results_folder() / "lines.md")
    document.add("# Lines of kernels, by what compiled them\n")
    document.add(harness.table(["", ""], harness.facts("tests/gpu/lines.py " + " ".join(sys.argv[1:]))))
    document.add(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    faults, clock = [], Clock(options.seconds)
    for name in options.cases or CASES:
        try:
            row, found = try_case(name, clock)
        except harness.Failure as failure:
            row, found = (name, "", "", "", "", "failed"), [f"{name}: {failure}"]
        document.add(f"| {' | '.join(map(str, row))} |")
        faults += found
    document.add("\n" + ("".join(f"- FAULT: {fault}\n" for fault in faults) or "All checks hold."))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
