"""Triton kernels with one planted fault each, and their twins."""
import torch
import triton
import triton.language as tl


@triton.jit
def column_major(x, out, stride, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(COUNT):
        total += tl.load(x + at * stride + k * 64)  # FAULT UncoalescedGlobal column_major
    tl.store(out + at, total)


@triton.jit
def column_major_ok(x, out, stride, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(COUNT):
        total += tl.load(x + at + k * stride)
    tl.store(out + at, total)


@triton.jit
def embedding_chase(index, table, out, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = at
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(COUNT):
        row = tl.load(index + row)  # SOURCE embedding_chase
        row = (row + k) & 65535  # FAULT WaitedFor embedding_chase
        total += row
    tl.store(out + at, total)


@triton.jit
def embedding_chase_ok(index, table, out, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index + at)
    total = tl.zeros((BLOCK,), tl.int32)
    for k in range(COUNT):
        row = (row * 1664525 + k) & 65535
        total += row
    tl.store(out + at, total)


@triton.jit
def sum_by_atomics(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.atomic_add(out + (at & 3), value)  # FAULT Atomics sum_by_atomics


@triton.jit
def sum_by_atomics_ok(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.atomic_add(out + (tl.program_id(0) & 63), tl.sum(value))


def main():
    x = torch.ones(1 << 24, device="cuda")
    out = torch.zeros(1 << 20, device="cuda")
    index = torch.randint(0, 65536, (1 << 17,), device="cuda", dtype=torch.int32)
    whole = torch.zeros(1 << 20, device="cuda", dtype=torch.int32)
    column_major[(64,)](x, out, 1024, COUNT=16, BLOCK=256)
    column_major_ok[(1024,)](x, out, 1 << 18, COUNT=64, BLOCK=256)
    embedding_chase[(256,)](index, x, whole, COUNT=128, BLOCK=256)
    embedding_chase_ok[(256,)](index, x, whole, COUNT=4096, BLOCK=256)
    sum_by_atomics[(2048,)](x, out, 1 << 20, BLOCK=512)
    sum_by_atomics_ok[(32768,)](x, out, 1 << 24, BLOCK=512)
    torch.cuda.synchronize()
    print("triton: done")


main()
