"""Greedy decoding in PyTorch: bfloat16, a preallocated cache of keys and values, attention by
scaled_dot_product_attention, and each token read on the host. Prints the tokens and checksums; exits with 77 without
PyTorch or a GPU."""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import common  # noqa: E402
import model  # noqa: E402
from model import torch  # noqa: E402

PROMPT = 16

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tokens", type=int, default=24, help="tokens to decode (24)")
options = parser.parse_args()

with torch.no_grad():
    network = model.build(PROMPT + options.tokens, torch.bfloat16).eval()
    cache = model.Cache(PROMPT + options.tokens, torch.bfloat16)
    watch = common.Stopwatch()
    token = (torch.arange(PROMPT, device="cuda") * 31 % model.VOCABULARY).view(1, PROMPT)
    chosen = []
    for _ in range(options.tokens):
        logits = network(token, cache)[:, -1]
        cache.place += token.shape[1]
        token = logits.argmax(-1, keepdim=True)
        chosen.append(token.item())
    watch.report()
print("tokens", *chosen)
model.checksum("logits", logits)
model.checksum("keys", cache.keys)
model.checksum("values", cache.values)
