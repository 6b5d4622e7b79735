"""The training loop of torch_train.py with memory from cudaMallocAsync in place of PyTorch's own pool; exits with 77
without PyTorch or a GPU."""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):  # the second is the name of older versions
    os.environ[name] = "backend:cudaMallocAsync"
import model  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=5, help="steps (5)")
options = parser.parse_args()
print(f"allocator {model.torch.cuda.get_allocator_backend()}")
model.train(options.steps)
