"""Training steps in PyTorch with ranges of torch.cuda.nvtx, and a checksum; exits with 77 without PyTorch or a GPU."""
import sys
import zlib

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)

generator = torch.Generator(device="cpu").manual_seed(1)
x = torch.randn(256, 256, generator=generator).cuda()
weight = torch.randn(256, 256, generator=generator).cuda().requires_grad_()
for step in range(3):
    with torch.cuda.nvtx.range(f"step {step}"):
        torch.cuda.nvtx.range_push("forward")
        loss = torch.relu(x @ weight).sum()
        torch.cuda.nvtx.range_pop()
        with torch.cuda.nvtx.range("backward"):
            loss.backward()
        started = torch.cuda.nvtx.range_start("update")
        with torch.no_grad():
            weight -= 1e-3 * weight.grad
            weight.grad = None
        torch.cuda.nvtx.range_end(started)
data = weight.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
print(f"checksum weight {zlib.crc32(data):08x}")
