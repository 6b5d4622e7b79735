"""Trains a small network in JAX: a jitted step with Adam whose state is donated, JAX's default preallocated pool, a
batch from the host and the loss on the host at each step. Prints the losses and checksums; exits with 77 without JAX
or a GPU."""
import argparse
import functools
import os

import common

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=40, help="steps (40)")
parser.add_argument("--command-buffers", choices=["on", "off"], default="on",
                    help="let XLA run the step as CUDA graphs, as it does by default, or not (on)")
parser.add_argument("--autotune", choices=["on", "off"], default="off",
                    help="let XLA time kernels and choose by that, as it does by default, or not (off)")
options = parser.parse_args()

# XLA chooses nothing by time, so that each run computes the same.
flags = ["--xla_gpu_deterministic_ops=true", "--xla_gpu_autotune_level=0"]
if options.autotune == "on":
    flags = []
if options.command_buffers == "off":
    flags.append("--xla_gpu_enable_command_buffer=")
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags]).strip()
try:
    import jax
    import jax.numpy as jnp
    import numpy
except ImportError:
    common.skip("no JAX")
if jax.default_backend() != "gpu":
    common.skip("JAX finds no GPU")
jax.config.update("jax_default_matmul_precision", "highest")  # no TF32

INPUTS, WIDTH, CLASSES, BATCH = 128, 512, 16, 256
RATE, MEAN_DECAY, SQUARE_DECAY, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def loss_of(weights, inputs, labels):
    x = inputs
    for matrix, bias in weights[:-1]:
        x = jax.nn.gelu(x @ matrix + bias)
    matrix, bias = weights[-1]
    logarithms = jax.nn.log_softmax(x @ matrix + bias)
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, CLASSES) * logarithms, axis=-1))


@functools.partial(jax.jit, donate_argnums=0)
def train_step(state, inputs, labels):
    weights, means, squares, count = state
    loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels)
    count = count + 1
    means = jax.tree.map(lambda m, g: MEAN_DECAY * m + (1 - MEAN_DECAY) * g, means, gradients)
    squares = jax.tree.map(lambda s, g: SQUARE_DECAY * s + (1 - SQUARE_DECAY) * g * g, squares, gradients)

    def update(weight, mean, square):
        mean, square = mean / (1 - MEAN_DECAY ** count), square / (1 - SQUARE_DECAY ** count)
        return weight - RATE * mean / (jnp.sqrt(square) + EPSILON)

    return (jax.tree.map(update, weights, means, squares), means, squares, count), loss


random = numpy.random.default_rng(1)
sizes = [INPUTS, WIDTH, WIDTH, WIDTH, CLASSES]
weights = [(random.normal(0, rows ** -0.5, (rows, columns)).astype(numpy.float32), numpy.zeros(columns, numpy.float32))
           for rows, columns in zip(sizes, sizes[1:])]
zeros = [jax.tree.map(numpy.zeros_like, weights) for _ in range(2)]
state = jax.device_put((weights, *zeros, numpy.float32(0)))
watch = common.Stopwatch()
for step in range(options.steps):
    inputs = random.normal(size=(BATCH, INPUTS)).astype(numpy.float32)
    labels = random.integers(CLASSES, size=BATCH, dtype=numpy.int32)
    state, loss = train_step(state, inputs, labels)
    value = float(loss)
    print(f"step {step} loss {value!r} {value.hex()}")
watch.report()
for number, leaf in enumerate(jax.tree.leaves(state)):
    common.checksum(f"state{number}", numpy.asarray(leaf).tobytes())
