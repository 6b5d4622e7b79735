"""Matrix products, element-wise kernels, reductions and copies in CuPy with its default pool, and checksums; exits with
77 without CuPy or a GPU."""
import argparse

import common

try:
    import cupy
    import numpy
except ImportError:
    common.skip("no CuPy")
if not cupy.cuda.is_available():
    common.skip("CuPy finds no GPU")

SIZE = 512

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--rounds", type=int, default=40, help="rounds of the same work (40)")
options = parser.parse_args()

blend = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = tanhf(0.05f * x + y)", "blend")
squares = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrtf(a)", "0", "squares")

random = numpy.random.default_rng(1)
a, b = (cupy.asarray(random.normal(size=(SIZE, SIZE)).astype(numpy.float32)) for _ in range(2))
watch = common.Stopwatch()
for number in range(options.rounds):
    a = blend(a @ b, a)
    columns = a.sum(axis=0)
    norm = squares(a, axis=1)
    peak = cupy.abs(a * 2 - norm).max()
    if number % 4 == 3:
        host = cupy.asnumpy(columns)
        b[number % SIZE] = cupy.asarray(host / SIZE)
    value = float(peak)
    print(f"round {number} peak {value!r} {value.hex()}")
watch.report()
for name, array in (("a", a), ("b", b), ("columns", columns), ("norm", norm)):
    common.checksum(name, cupy.asnumpy(array).tobytes())
