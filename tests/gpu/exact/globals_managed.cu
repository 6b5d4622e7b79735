// Managed variables of the module, which the host reads and writes by name. They stand alone: a program that has one
// shares memory with its kernels from its start.
//
// Usage: globals_managed MODE...
//   own, foreign
#include "exact.h"

__managed__ unsigned total;
__managed__ unsigned values[COUNT];

__global__ void addManaged(unsigned addend)
{
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    values[i] = values[i] * 3 + addend;
    if (threadIdx.x == 0)
        atomicAdd(&total, addend);
}

struct Wanted {
    std::vector<unsigned> values;
    unsigned total;

    Wanted() : values(::values, ::values + COUNT), total(::total) {}
    void add(unsigned factor, unsigned addend)
    {
        for (unsigned &value : values)
            value = value * factor + addend;
    }
    void look(void)
    {
        CHECK(cudaDeviceSynchronize());
        show("managed total", &::total, {total});
        show("managed values", ::values, values);
    }
};

static void add_managed(Wanted &want, unsigned n)
{
    addManaged<<<GRID, BLOCK>>>(n);
    launched();
    want.add(3, n);
    want.total += n * GRID;
}

static void run_own(void)
{
    Wanted want;
    for (unsigned n = 1; n <= 8; n++) {
        add_managed(want, n);
        if (n % 4 != 0)
            continue;
        want.look();
        total = want.total = n;
        values[n] = want.values[n] = 7;
    }
}

// The kernel of another module changes them through their address.
static void run_foreign(void)
{
    const LoadedModule loaded = load_module(read_neighbour("exact-module.ptx"));
    Wanted want;
    for (unsigned n = 1; n <= 6; n++) {
        add_managed(want, n);
        step_loaded(loaded.step, (CUdeviceptr)values, 5, n);
        want.add(5, n);
        if (n % 3 == 0)
            want.look();
    }
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"own", run_own}, {"foreign", run_foreign}};
    CHECK(cudaFree(0)); // the variables exist from here on
    return run_modes(argc, argv, modes);
}
