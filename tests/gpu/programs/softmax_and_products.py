"""A softmax in Triton and two matrix products of cuBLAS, or one of both, some times each, and checksums of the results;
exits with 77 without PyTorch, Triton or a GPU. With KPROF_TEST_SWEEP a softmax finds L2 full of memory that nothing
else uses.

    softmax_and_products.py LAUNCHES [softmax|products]"""
import os
import sys
import zlib

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

ROWS, COLUMNS = 4096, 4096


@triton.jit
def softmax(output, source, columns: tl.constexpr):
    row = tl.program_id(0)
    place = row * columns + tl.arange(0, columns)
    values = tl.load(source + place)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(output + place, powers / tl.sum(powers, 0))


def checksum(tensor):
    return zlib.crc32(tensor.contiguous().cpu().view(torch.uint8).numpy().tobytes())


parts = sys.argv[2:] or ["softmax", "products"]
generator = torch.Generator(device="cpu").manual_seed(1)
a = torch.randn(ROWS, COLUMNS, generator=generator).cuda()
b = torch.randn(ROWS, COLUMNS, generator=generator).cuda()
halves = a.half(), b.half()
output = torch.empty_like(a)
filler = torch.zeros(1 << 26).cuda() if "KPROF_TEST_SWEEP" in os.environ else None
for _ in range(int(sys.argv[1])):
    if "softmax" in parts:
        if filler is not None:
            filler.sum()
        softmax[(ROWS,)](output, a, columns=COLUMNS, num_warps=8)
    if "products" in parts:
        product = a @ b
        half_product = halves[0] @ halves[1]
torch.cuda.synchronize()
if "softmax" in parts:
    print(f"checksum softmax {checksum(output):08x}")
if "products" in parts:
    print(f"checksum product {checksum(product):08x}")
    print(f"checksum half {checksum(half_product):08x}")
