"""An in-place Triton kernel that is tuned over three configurations and then launched many times, and a checksum; exits
with 77 where Triton or a GPU is missing. The result does not depend on the configuration that the tuner chooses."""
import argparse
import zlib

import common

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    common.skip("no PyTorch or no Triton")
if not torch.cuda.is_available():
    common.skip("PyTorch finds no GPU")

TRIALS = 10  # launches with which a configuration is timed


def time_calls(call, quantiles):
    """Time a fixed number of calls, so that each run makes as many launches as the others. The tuner's own function
    goes on for a fixed time."""
    times = []
    for _ in range(TRIALS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    times.sort()
    return [times[int(quantile * (TRIALS - 1))] for quantile in quantiles]


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=4),
                          triton.Config({"BLOCK": 2048}, num_warps=8)],
                 key=["count"], restore_value=["x_pointer"], do_bench=time_calls)
@triton.jit
def grow(x_pointer, y_pointer, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    x = tl.load(x_pointer + offsets, mask=mask)
    y = tl.load(y_pointer + offsets, mask=mask)
    tl.store(x_pointer + offsets, 1.001 * x + tl.exp(-y), mask=mask)  # in place: a replay that runs it twice shows


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--launches", type=int, default=200, help="launches after tuning (200)")
options = parser.parse_args()
COUNT = (1 << 20) + 17
x = torch.arange(COUNT, dtype=torch.float32, device="cuda") % 1000
y = torch.arange(COUNT, dtype=torch.float32, device="cuda") % 7
watch = common.Stopwatch()
for _ in range(options.launches):
    grow[lambda meta: (triton.cdiv(COUNT, meta["BLOCK"]),)](x, y, COUNT)
torch.cuda.synchronize()
watch.report()
print(f"checksum x {zlib.crc32(x.cpu().numpy().tobytes()):08x}")
