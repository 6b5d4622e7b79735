"""Trains a small network with DistributedDataParallel, one process for each GPU, which torchrun starts. Before it,
an all-reduce of whole numbers, whose sums are known. Rank 0 prints the losses and a checksum of the parameters; exits
with 77 without PyTorch or for fewer than two GPUs, with 1 where a sum is wrong."""
import argparse
import os

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS is deterministic with it; read at import
import common  # noqa: E402

try:
    import torch
    import torch.distributed
except ImportError:
    common.skip("PyTorch is missing")

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=60, help="(60)")
options = parser.parse_args()
ranks = int(os.environ.get("WORLD_SIZE", "1"))
if ranks < 2 or torch.cuda.device_count() < ranks:
    common.skip("there are fewer than two GPUs, or torchrun did not start this")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl")
torch.manual_seed(1)
watch = common.Stopwatch()

numbers = torch.arange(1 << 20, device="cuda") * (rank + 1)
torch.distributed.all_reduce(numbers)
wanted = torch.arange(1 << 20) * (ranks * (ranks + 1) // 2)
sums_are_right = torch.equal(numbers.cpu(), wanted)

layers = [torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 512)]
network = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers).cuda(), device_ids=[rank])
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
torch.manual_seed(2 + rank)
data = torch.randn(options.steps, 64, 512).cuda()
losses = []
for batch in data:
    optimizer.zero_grad()
    loss = (network(batch) - batch).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
if rank == 0:
    print(f"sums of {ranks} ranks are {'right' if sums_are_right else 'wrong'}")
    print(f"loss {losses[0]:.6f} {losses[-1]:.6f}")
    common.checksum("parameters", b"".join(p.detach().cpu().numpy().tobytes() for p in network.parameters()))
    watch.report()
torch.distributed.destroy_process_group()
raise SystemExit(0 if sums_are_right else 1)
