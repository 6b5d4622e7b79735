"""A small transformer in PyTorch, its cache for decoding, and its training loop. The programs torch_*.py share them.
Importing this module exits with 77 without PyTorch or a GPU. Environment variables that PyTorch reads when it is
imported must be set before."""
import common

try:
    import torch
    import torch.nn.functional as F
    import torch.utils.deterministic
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
except ImportError:
    common.skip("no PyTorch")
if not torch.cuda.is_available():
    common.skip("PyTorch finds no GPU")

VOCABULARY, WIDTH, HEADS, LAYERS = 512, 256, 4, 4
LENGTH, BATCH = 64, 16  # of training sequences
DROPOUT = 0.1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.dropout = nn.Dropout(DROPOUT)

    def attention(self, x, cache, layer):
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mask, causal = None, length > 1
        if cache is not None:
            key, value, mask = cache.extend(layer, key, value)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
        return self.projection(mixed.transpose(1, 2).reshape(batch, length, WIDTH))

    def forward(self, x, cache, layer):
        x = x + self.dropout(self.attention(self.attention_norm(x), cache, layer))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))


class Transformer(nn.Module):
    """Logits of the next token at each place. `length` is the longest sequence."""

    def __init__(self, length):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(length, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens, cache=None):
        length = tokens.shape[1]
        places = torch.arange(length, device=tokens.device) if cache is None else cache.begin(length)
        x = self.tokens(tokens) + self.places(places)
        for layer, block in enumerate(self.blocks):
            x = block(x, cache, layer)
        return self.head(self.norm(x))


class Cache:
    """Preallocated keys and values of all layers. `place` is where the next token goes: an int, with which attention
    sees the part of the cache that is filled, or a tensor of one number on the GPU, with which attention sees the
    whole cache under a mask. The second is the same work at each token, as a CUDA graph needs it; it takes one token
    at a time. The prompt goes to place 0, and the caller moves `place` on."""

    def __init__(self, length, dtype):
        self.keys, self.values = torch.zeros(2, LAYERS, 1, HEADS, length, WIDTH // HEADS, dtype=dtype, device="cuda")
        self.columns = torch.arange(length, device="cuda")
        self.place, self.mask = 0, None

    def begin(self, length):
        """The places of the next `length` tokens."""
        if isinstance(self.place, int):
            return self.columns[self.place:self.place + length]
        self.mask = (self.columns <= self.place).view(1, 1, 1, -1)
        return self.place

    def extend(self, layer, key, value):
        """(keys, values, mask) that attention sees, with those of the new tokens."""
        keys, values = self.keys[layer], self.values[layer]
        if isinstance(self.place, int):
            end = self.place + key.shape[2]
            keys[:, :, self.place:end] = key
            values[:, :, self.place:end] = value
            return keys[:, :, :end], values[:, :, :end], None
        keys.index_copy_(2, self.place, key)
        values.index_copy_(2, self.place, value)
        return keys, values, self.mask


def build(length, dtype=torch.float32):
    """The model on the GPU; its weights are the same in each run. They are drawn on the CPU."""
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("highest")  # no TF32
    return Transformer(length).to(device="cuda", dtype=dtype)


def bytes_of(tensor):
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def checksum(name, tensor):
    common.checksum(name, bytes_of(tensor))


def batches(count, pinned):
    """Random sequences, shuffled and collected by two worker processes."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(VOCABULARY, (count * BATCH, LENGTH + 1), generator=generator)
    return DataLoader(TensorDataset(tokens), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=pinned,
                      generator=generator)


def train(steps, warmup=0, pinned=True):
    """Train with AdamW for `warmup` steps and then for `steps` that are timed. Print the loss of each step, and
    checksums of the parameters and of the optimiser's state."""
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # no extra kernels: ordinary programs have none
    model = build(LENGTH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = common.Stopwatch()
    for step, (tokens,) in enumerate(batches(warmup + steps, pinned)):
        if step == warmup:
            watch = common.Stopwatch()  # item() of the step before has waited for the GPU
        tokens = tokens.to("cuda", non_blocking=True)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        value = loss.item()
        print(f"step {step} loss {value!r} {value.hex()}")
    torch.cuda.synchronize()
    watch.report()
    for name, parameter in model.named_parameters():
        checksum(name, parameter)
        for key, state in sorted(optimizer.state[parameter].items()):
            checksum(f"{name}.{key}", state)
