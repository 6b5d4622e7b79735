"""Has torch.profiler record equal work before, beside and after a step that kprof measures. Prints as JSON how many
kernels torch.profiler saw each time, how many launches kprof measured, what kprof said where both were wanted at once,
and a checksum; exits with 77 without PyTorch or a GPU.

    guest_torch.py [measured]
"""
import json
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "frameworks"))
from model import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

generator = torch.Generator(device="cpu").manual_seed(1)
data = (torch.randn(512, 512, generator=generator) / 23).cuda()


def step():
    global data
    for _ in range(5):
        data = torch.relu(data @ data + data)
    torch.cuda.synchronize()


def recorded(work):
    """(kernels that torch.profiler saw of the work, what the work returned)"""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        result = work()
    kernels = [event for event in profiler.events()
               if str(event.device_type).endswith("CUDA") and not event.name.startswith(("Memcpy", "Memset"))]
    return len(kernels), result


def measured():
    """(launches that kprof measured of a step, what kprof said)"""
    import kprof
    try:
        with kprof.profile() as result:
            step()
    except kprof.Error as error:
        step()
        return 0, str(error)
    return len(result.launches), ""


is_measured = len(sys.argv) > 1
step()
before, _ = recorded(step)
launches, _ = measured() if is_measured else (0, step())
beside, (launches_beside, said) = recorded(measured if is_measured else lambda: (0, step() or ""))
after, _ = recorded(step)
print(json.dumps({"before": before, "beside": beside, "after": after, "launches": launches,
                  "launches_beside": launches_beside, "said": said,
                  "checksum": f"{zlib.crc32(data.cpu().numpy().tobytes()):08x}"}))
