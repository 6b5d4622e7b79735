"""Short programs as the users of well-known libraries write them: libraries.py NAME. Each prints losses or sums that
are the same in each run.

- transformers: GPT-2 with random weights, four training steps with pinned batches, then greedy generation
- timm: ResNet-18 with mixed precision, channels last, DataLoader workers and cuDNN's benchmark mode
- lightning: two epochs of a Trainer
- flax: a jitted training step with optax
- gpytorch: hyperparameters of an exact Gaussian process, with Cholesky factors
- recurrent: an LSTM of cuDNN, with sort, FFT and SVD between the steps
- compile: torch.compile in its default mode
- profiler: torch.profiler around the launches, whose one subscriber of CUPTI kprof has"""
import importlib
import logging
import os
import sys
import warnings

import common

PACKAGES = {"transformers": ["torch", "transformers"], "timm": ["torch", "timm"], "lightning": ["torch", "lightning"],
            "flax": ["jax", "flax", "optax"], "gpytorch": ["torch", "gpytorch"], "recurrent": ["torch"],
            "compile": ["torch"], "profiler": ["torch"]}


def prepare_torch():
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch
    if not torch.cuda.is_available():
        common.skip("PyTorch sees no GPU")
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    return torch


def run_transformers():
    torch = prepare_torch()
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_layer=4, n_head=8, n_embd=512, vocab_size=5000, n_positions=256, resid_pdrop=0, embd_pdrop=0,
                        attn_pdrop=0)
    model = GPT2LMHeadModel(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(4):
        tokens = torch.randint(0, 5000, (4, 64)).pin_memory().cuda(non_blocking=True)
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"loss {loss.item():.4f}")
    model.eval()
    prompt = torch.randint(0, 5000, (1, 8)).cuda()
    print(model.generate(prompt, max_new_tokens=16, do_sample=False, pad_token_id=0).tolist())


def run_timm():
    torch = prepare_torch()
    import timm
    torch.backends.cudnn.benchmark = True
    model = timm.create_model("resnet18", num_classes=10).cuda().to(memory_format=torch.channels_last)
    data = torch.utils.data.TensorDataset(torch.randn(96, 3, 64, 64), torch.randint(0, 10, (96,)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    scaler = torch.amp.GradScaler()
    for images, labels in torch.utils.data.DataLoader(data, 16, num_workers=2, pin_memory=True):
        images = images.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        print(f"loss {loss.item():.1f}")  # the benchmark mode may choose other algorithms


def run_lightning():
    torch = prepare_torch()
    import lightning
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.layers(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), 1e-3)

    data = torch.utils.data.TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,)))
    model = Classifier()
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, **quiet)
    trainer.fit(model, torch.utils.data.DataLoader(data, 64))
    print(f"weights {sum(p.double().abs().sum().item() for p in model.parameters()):.4f}")


def run_flax():
    os.environ.setdefault("XLA_FLAGS", "--xla_gpu_deterministic_ops=true")
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.3")
    import flax.linen as nn
    import jax
    import optax

    class Classifier(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(3):
                x = nn.gelu(nn.Dense(512)(x))
            return nn.Dense(10)(x)

    key = jax.random.PRNGKey(0)
    model, x = Classifier(), jax.random.normal(key, (256, 128))
    labels = jax.random.randint(key, (256,), 0, 10)
    optimizer = optax.adamw(1e-3)

    def find_loss(weights):
        return optax.softmax_cross_entropy_with_integer_labels(model.apply(weights, x), labels).mean()

    @jax.jit
    def step(weights, state):
        loss, gradient = jax.value_and_grad(find_loss)(weights)
        updates, state = optimizer.update(gradient, state, weights)
        return optax.apply_updates(weights, updates), state, loss

    weights = model.init(key, x)
    state = optimizer.init(weights)
    for i in range(30):
        weights, state, loss = step(weights, state)
        if i % 10 == 9:
            print(f"loss {float(loss):.4f}")


def run_gpytorch():
    torch = prepare_torch()
    import gpytorch
    x = torch.linspace(0, 1, 300).cuda()
    y = torch.sin(x * 6) + 0.1 * torch.cos(x * 50)

    class Process(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean = gpytorch.means.ConstantMean()
            self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, at):
            return gpytorch.distributions.MultivariateNormal(self.mean(at), self.kernel(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
    model = Process(likelihood).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    for _ in range(15):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.2f}")


def run_recurrent():
    torch = prepare_torch()
    lstm, head = torch.nn.LSTM(64, 128, 2).cuda(), torch.nn.Linear(128, 1).cuda()
    optimizer = torch.optim.RMSprop([*lstm.parameters(), *head.parameters()], 1e-3)
    x = torch.randn(20, 32, 64).cuda()
    for _ in range(8):
        loss = head(lstm(x)[0]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ordered = torch.sort(torch.rand(10000, device="cuda"))[0]
        spectrum = torch.fft.rfft(ordered).abs().max()
        singular = torch.linalg.svd(torch.eye(32, device="cuda") * 2)[1].sum()
        print(f"loss {loss.item():.4f} sum {ordered.sum().item():.3f} {spectrum.item():.1f} {singular.item():.3f}")


def run_compile():
    torch = prepare_torch()
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.LayerNorm(512),
                                torch.nn.Linear(512, 256)).cuda()
    compiled, x = torch.compile(model), torch.randn(128, 256).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)
    for i in range(25):
        loss = compiled(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if i % 5 == 4:
            print(f"loss {loss.item():.4f}")


def run_profiler():
    torch = prepare_torch()
    from torch import profiler
    x = torch.randn(512, 512).cuda()
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(20):
            x = torch.tanh(x @ x)
        torch.cuda.synchronize()
    print(f"sum {x.sum().item():.3f}, operators of the host: {any(e.name == 'aten::mm' for e in trace.events())}")


def main():
    name = sys.argv[1]
    warnings.filterwarnings("ignore")
    for package in PACKAGES[name]:
        try:
            importlib.import_module(package)
        except ImportError as error:
            common.skip(str(error))
    globals()[f"run_{name}"]()


if __name__ == "__main__":
    main()
