"""Training steps of a small network in PyTorch, bound by launches. Prints as JSON the best time of a step in µs, a
checksum, how many steps there were, and how many launches kprof measured of a step between; exits with 77 without
PyTorch or a GPU.

    control_torch.py [turns] [measured|counted]

measured: by a set of metrics; counted: by the census of this run. turns: told by standard input, "steps" prints the
time of a step, "measure" how many launches were measured of one.
"""
import json
import sys
import time
import zlib

import in_turn

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

generator = torch.Generator(device="cpu").manual_seed(1)
data = torch.randn(64, 256, generator=generator).cuda()
weights = [(torch.randn(256, 256, generator=generator) / 16).cuda().requires_grad_() for _ in range(8)]


def step():
    x = data
    for weight in weights:
        x = torch.relu(x @ weight)
    x.square().mean().backward()
    with torch.no_grad():
        for weight in weights:
            weight -= 0.01 * weight.grad
            weight.grad = None


def best_us(rounds, steps=50):
    global count
    best = float("inf")
    count += rounds * steps
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / steps * 1e6)
    return best


def measure():
    """One step, measured if that is asked for; gives the number of its launches."""
    global count
    count += 1
    if words[-1:] not in (["measured"], ["counted"]):
        step()
        return 0
    import kprof
    with kprof.profile(set="default" if words[-1] == "measured" else None) as result:
        step()
        torch.cuda.synchronize()
    return len(result.launches)


count = 0
words = sys.argv[1:]
found = {}
best_us(2)
if words[:1] == ["turns"]:
    in_turn.serve({"steps": lambda: best_us(1), "measure": measure})
else:
    found = {"us": best_us(16), "launches": measure(), "after_us": best_us(8)}
state = b"".join(weight.detach().cpu().numpy().tobytes() for weight in weights)
print(json.dumps({**found, "steps": count, "checksum": f"{zlib.crc32(state):08x}"}))
