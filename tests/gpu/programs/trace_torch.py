"""Programs of PyTorch of many kernels, timed on the host: training steps whose kernels take about 20 or 3 us,
decoding, and a softmax in Triton. Told "steps" by standard input, prints the time of a step in us, and as JSON a
checksum in the end; with FILE, torch.profiler writes its trace there. Exits with 77 without PyTorch, Triton or a GPU.

    trace_torch.py train20 | train3 | decode | softmax [FILE]
"""
import contextlib
import json
import os
import pathlib
import sys
import time
import zlib

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "frameworks"))
import in_turn  # noqa: E402
import model  # noqa: E402
from model import torch  # noqa: E402

try:
    import triton
    import triton.language as tl
except ImportError:
    sys.exit(77)

PROMPT, TOKENS = 16, 64


def training(rows, width):
    """(a training step of eight layers, how many of them to time at once, what has the result)"""
    generator = torch.Generator(device="cpu").manual_seed(1)
    data = torch.randn(rows, width, generator=generator).cuda()
    weights = [torch.randn(width, width, generator=generator).div(width ** 0.5).cuda().requires_grad_()
               for _ in range(8)]

    def step():
        x = data
        for weight in weights:
            x = torch.relu(x @ weight)
        x.square().mean().backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.01 * weight.grad
                weight.grad = None

    return step, 20, lambda: weights


def decoding():
    network = model.build(PROMPT + TOKENS, torch.bfloat16).eval()
    cache = model.Cache(PROMPT + TOKENS, torch.bfloat16)
    prompt = (torch.arange(PROMPT, device="cuda") * 31 % model.VOCABULARY).view(1, PROMPT)

    def step():
        cache.place, token = 0, prompt
        with torch.no_grad():
            for _ in range(TOKENS):
                logits = network(token, cache)[:, -1]
                cache.place += token.shape[1]
                token = logits.argmax(-1, keepdim=True)
                token.item()

    return step, 1, lambda: [cache.keys, cache.values]


@triton.jit
def row_softmax(output, source, columns: tl.constexpr):
    row = tl.program_id(0)
    place = row * columns + tl.arange(0, columns)
    values = tl.load(source + place)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(output + place, powers / tl.sum(powers, 0))


def softmax():
    source = torch.randn(4096, 4096, generator=torch.Generator(device="cpu").manual_seed(1)).cuda()
    output = torch.empty_like(source)

    def step():
        row_softmax[(4096,)](output, source, columns=4096, num_warps=8)

    return step, 100, lambda: [output]


PROGRAMS = {"train20": lambda: training(1024, 1024), "train3": lambda: training(64, 256), "decode": decoding,
            "softmax": softmax}


def time_us(step, steps):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e6


def profiler(path):
    """What torch.profiler records of the GPU alone, with the calls that ask for it, as kprof does."""
    if not path:
        return contextlib.nullcontext()
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])


def main(name, path=None):
    torch.cuda.init()
    with profiler(path) as profile:
        step, steps, results = PROGRAMS[name]()
        time_us(step, steps)
        in_turn.serve({"steps": lambda: time_us(step, steps)})
        torch.cuda.synchronize()
    if path:
        profile.export_chrome_trace(path)
    state = b"".join(model.bytes_of(tensor) for tensor in results())
    print(json.dumps({"checksum": f"{zlib.crc32(state):08x}"}))


main(*sys.argv[1:])
