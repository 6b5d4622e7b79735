// Programs that end, or meet the end of their context, with kernels behind them that nobody waited for. What was
// printed before must be the same; the first ten launches were waited for, so a profiler has to report them.
//
// Usage: endings MODE...
//   return, exit-handler, exit-thread, _exit, abort, kill, reset, illegal
#include "exact.h"

#include <csignal>
#include <thread>

static const unsigned WAITED = 10, LATER = 20;

static Model model;
static unsigned *x;

static void run_series(unsigned launches)
{
    for (unsigned n = 0; n < launches; n++) {
        step(x, 3, n);
        model.step(3, n);
    }
}

static void run_first_part(void)
{
    x = copy_to_device(model.x);
    run_series(WAITED);
    show_device("before", x, model.x);
    fflush(stdout);
}

static void open_series(void)
{
    run_first_part();
    report_launches(WAITED, WAITED + LATER);
    run_series(LATER);
}

// These two return to their caller while kernels run, and all launches have to be reported.
static void end_by_return(void)
{
    run_first_part();
    run_series(LATER);
    report_launches(WAITED + LATER, WAITED + LATER);
    exit(3);
}

static void show_at_exit(void)
{
    show_device("in the exit handler", x, model.x);
}

static void end_with_handler(void)
{
    CHECK(cudaFree(0));
    atexit(show_at_exit);
    end_by_return();
}

static void end_in_thread(void)
{
    open_series();
    std::thread([] { exit(5); }).join();
}

static void end_at_once(void)
{
    open_series();
    _exit(6);
}

static void end_by_abort(void)
{
    open_series();
    abort();
}

static void end_by_kill(void)
{
    open_series();
    raise(SIGKILL);
}

// The context goes and a new one comes.
static void reset_device(void)
{
    run_first_part();
    run_series(LATER);
    CHECK(cudaDeviceReset());
    model = Model();
    run_first_part();
    run_series(LATER);
    show_device("after", x, model.x);
}

__global__ void writeWild(unsigned *address)
{
    address[threadIdx.x] = 1;
}

// A kernel fails in the middle of a series. The driver may report it at a later launch or when the host waits; which of
// these is not promised, so the first error counts.
static void fail_in_series(void)
{
    cudaError_t error = cudaSuccess;
    open_series();
    writeWild<<<1, 32>>>((unsigned *)0x10);
    for (unsigned n = 0; n < 5 && error == cudaSuccess; n++) {
        error = cudaGetLastError();
        affine<<<GRID, BLOCK>>>(x, 3, n);
    }
    const cudaError_t launch = cudaGetLastError(), wait = cudaDeviceSynchronize();
    if (error == cudaSuccess)
        error = launch != cudaSuccess ? launch : wait;
    printf("first error: %s\n", cudaGetErrorName(error));
    printf("copying: %s\n", cudaGetErrorName(cudaMemcpy(model.x.data(), x, 4, cudaMemcpyDeviceToHost)));
    printf("the context: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    report_launches(0, 6);
    exit(4);
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"return", end_by_return},      {"exit-handler", end_with_handler},
                                 {"exit-thread", end_in_thread}, {"_exit", end_at_once},
                                 {"abort", end_by_abort},        {"kill", end_by_kill},
                                 {"reset", reset_device},        {"illegal", fail_in_series}};
    return run_modes(argc, argv, modes);
}
