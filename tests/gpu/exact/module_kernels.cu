// The module that modules.cu and streams.cu load at run time, as PTX and as machine code.
extern "C" __device__ unsigned module_total = 5;

extern "C" __global__ void moduleStep(unsigned *x, unsigned factor, unsigned addend)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * factor + addend;
    if (i == 0)
        module_total += addend;
}
