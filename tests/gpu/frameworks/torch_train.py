"""Trains a small transformer in PyTorch as people write it: AdamW, batches in pinned memory from worker processes,
`loss.item()` at each step. Prints the losses and checksums of parameters and optimiser; exits with 77 without PyTorch
or a GPU."""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with it; read at import
import model  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=6, help="steps that are timed (6)")
parser.add_argument("--warmup", type=int, default=0, help="steps before those (0)")
parser.add_argument("--no-pinned", action="store_true", help="batches in pageable memory")
options = parser.parse_args()
model.train(options.steps, options.warmup, pinned=not options.no_pinned)
