"""Decoding in PyTorch with CUDA graphs: a decode step that is captured once and replayed, with a copy of the result to
the host at each replay. With --compile, torch.compile makes and replays the graphs (mode reduce-overhead), and the
model sees a window of the last tokens in place of a cache. Prints the tokens and checksums; exits with 77 without
PyTorch or a GPU."""
import argparse
import os
import zlib

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # compile in this process; worker processes start slowly
import common  # noqa: E402
import model  # noqa: E402
from model import torch  # noqa: E402

PROMPT, WARMUP = 16, 3

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tokens", type=int, default=24, help="replays, each of one token (24)")
parser.add_argument("--compile", action="store_true", help="torch.compile in place of torch.cuda.CUDAGraph")
options = parser.parse_args()


def prompt(length):
    return (torch.arange(length, device="cuda") * 31 % model.VOCABULARY).view(1, length)


def replay_graph():
    """(tokens, CRC-32 of the logits of all replays)"""
    length = -(-(PROMPT + WARMUP + options.tokens + 1) // 8) * 8  # attention wants masks of a multiple of 8
    network = model.build(length, torch.bfloat16).eval()
    cache = model.Cache(length, torch.bfloat16)
    token = network(prompt(PROMPT), cache)[:, -1].argmax(-1, keepdim=True)
    cache.place = torch.tensor([PROMPT], device="cuda")

    def step():
        logits = network(token, cache)[:, -1]
        token.copy_(logits.argmax(-1, keepdim=True))
        cache.place.add_(1)
        return logits

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMUP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits = step()
    host = torch.empty(logits.shape, dtype=logits.dtype, pin_memory=True)
    watch = common.Stopwatch()
    chosen, crc = [], 0
    for _ in range(options.tokens):
        graph.replay()
        host.copy_(logits, non_blocking=True)
        chosen.append(token.item())  # waits for the copy as well
        crc = zlib.crc32(model.bytes_of(host), crc)
    watch.report()
    return chosen, crc


def replay_compiled():
    """(tokens, CRC-32 of all windows)"""
    network = model.build(model.LENGTH, torch.bfloat16).eval()
    compiled = torch.compile(network, mode="reduce-overhead")
    window = prompt(model.LENGTH)
    watch = common.Stopwatch()
    chosen, crc = [], 0
    for _ in range(options.tokens):
        torch.compiler.cudagraph_mark_step_begin()
        token = compiled(window)[:, -1].argmax(-1, keepdim=True)
        window = torch.cat([window[:, 1:], token], dim=1)
        chosen.append(token.item())
        crc = zlib.crc32(model.bytes_of(window), crc)
    watch.report()
    return chosen, crc


with torch.no_grad():
    chosen, crc = replay_compiled() if options.compile else replay_graph()
print("tokens", *chosen)
print(f"checksum replays {crc:08x}")
