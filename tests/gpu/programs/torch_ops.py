"""A matrix product and a ReLU in PyTorch, and checksums of the results; exits with 77 without PyTorch or a GPU."""
import sys
import zlib

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available():
    sys.exit(77)


def checksum(tensor):
    return zlib.crc32(tensor.contiguous().cpu().view(torch.uint8).numpy().tobytes())


generator = torch.Generator(device="cpu").manual_seed(1)
a = torch.randn(1024, 1024, generator=generator).cuda()
b = torch.randn(1024, 1024, generator=generator).cuda()
product = a @ b
positive = torch.relu(product)
positive.add_(1.0)  # in place: a replay that runs it twice shows
half = a.half() @ b.half()
print(f"checksum product {checksum(product):08x}")
print(f"checksum relu {checksum(positive):08x}")
print(f"checksum half {checksum(half):08x}")
