"""An in-place Triton kernel, compiled at run time, and a checksum; exits with 77 where Triton or a GPU is missing."""
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


@triton.jit
def scale_add(x_pointer, y_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_pointer + offsets, mask=mask)
    y = tl.load(y_pointer + offsets, mask=mask)
    tl.store(x_pointer + offsets, 3.0 * x + y, mask=mask)


COUNT = (1 << 20) + 17
x = torch.arange(COUNT, dtype=torch.float32, device="cuda") % 1000
y = torch.ones(COUNT, device="cuda")
want = x.clone()
for _ in range(3):
    scale_add[(triton.cdiv(COUNT, 1024),)](x, y, COUNT, BLOCK=1024)
    want = 3.0 * want + y
torch.cuda.synchronize()
if not torch.equal(x, want):
    sys.exit("triton_ops: each launch must change x exactly once")
print(f"checksum x {zlib.crc32(x.cpu().numpy().tobytes()):08x}")
