// Programs that end, or meet the end of their context, with kernels behind them that nobody waited for. What was
// printed before must be the same; the host has seen the result of the first ten launches, so a profiler has to report
// them.
//
// Usage: endings MODE
//        endings children MODE...
//   return, exit-handler, exit-thread, _exit, _exit-waited, _exit-idle, abort, abort-waited, kill, kill-waited,
//   kill-idle, reset, illegal, illegal-waited, trap, return-busy
// `children` gives each MODE a process of its own and tells how it ended.
#include "exact.h"

#include <chrono>
#include <csignal>
#include <sys/wait.h>
#include <thread>

static const unsigned FIRST = 10, LATER = 20;

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
    run_series(FIRST);
    show_device("before", x, model.x);
    fflush(stdout);
}

// How the host spends its time between the last launch and the end.
enum Pause { AT_ONCE, WAITED, IDLE };

// Long enough for a profiler to see that nothing more comes, and to measure what came, on a loaded machine too.
static const unsigned IDLE_MS = 4000;

static void run_and_pause(Pause pause)
{
    run_first_part();
    report_launches(pause == IDLE ? FIRST + LATER : 0, FIRST + LATER); // what is open is lost with the process
    run_series(LATER);
    if (pause == AT_ONCE)
        return;
    CHECK(cudaDeviceSynchronize());
    printf("waited\n");
    fflush(stdout);
    if (pause == IDLE)
        std::this_thread::sleep_for(std::chrono::milliseconds(IDLE_MS));
}

// These two return to their caller while kernels run, and all launches have to be reported.
static void end_by_return(void)
{
    run_first_part();
    run_series(LATER);
    report_launches(FIRST + LATER, FIRST + LATER);
    exit(3);
}

__global__ void spinForever(volatile unsigned *x)
{
    while (*x != 0xdeadbeef)
        ;
    *x = 1;
}

// A kernel never ends, for which the end of a process does not wait.
static void end_while_busy(void)
{
    unsigned *nothing;
    run_first_part();
    CHECK(cudaMalloc(&nothing, sizeof *nothing));
    CHECK(cudaMemset(nothing, 0, sizeof *nothing));
    spinForever<<<1, 1>>>(nothing);
    report_launches(FIRST, FIRST);
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
    run_and_pause(AT_ONCE);
    std::thread([] { exit(5); }).join();
}

template <Pause PAUSE> static void end_at_once(void)
{
    run_and_pause(PAUSE);
    _exit(6);
}

template <Pause PAUSE> static void end_by_abort(void)
{
    run_and_pause(PAUSE);
    abort();
}

template <Pause PAUSE> static void end_by_kill(void)
{
    run_and_pause(PAUSE);
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
    run_and_pause(AT_ONCE);
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

static void print_error(const char *what, cudaError_t error)
{
    printf("%s: %s\n", what, cudaGetErrorName(error));
    fflush(stdout);
}

__global__ void stopItself(unsigned *x)
{
    if (threadIdx.x == 3)
        asm volatile("trap;");
    x[threadIdx.x] = 1;
}

// The host waits for each launch, so that every call has one right answer.
static void show_failure(void (*launch_failing)(void))
{
    run_and_pause(WAITED);
    launch_failing();
    print_error("launch", cudaGetLastError());
    print_error("wait", cudaDeviceSynchronize());
    affine<<<GRID, BLOCK>>>(x, 3, 1);
    print_error("next launch", cudaGetLastError());
    print_error("next wait", cudaStreamSynchronize(0));
    print_error("allocation", cudaMalloc(&x, 64));
    report_launches(0, 2);
    exit(4);
}

static void fail_and_wait(void)
{
    show_failure([] { writeWild<<<1, 32>>>((unsigned *)0x10); });
}

static void trap_and_wait(void)
{
    show_failure([] { stopItself<<<1, 32>>>(x); });
}

// One after the other, each by itself: CUDA starts anew in each.
static int run_children(int count, char **names)
{
    for (int i = 0; i < count; i++) {
        fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", "endings", names[i], (char *)NULL);
            _exit(127);
        }
        int status = 0;
        require(child > 0 && waitpid(child, &status, 0) == child, "a process for each mode");
        printf("%s ended with %s %d\n", names[i], WIFSIGNALED(status) ? "signal" : "status",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"return", end_by_return},
                                 {"exit-handler", end_with_handler},
                                 {"exit-thread", end_in_thread},
                                 {"_exit", end_at_once<AT_ONCE>},
                                 {"_exit-waited", end_at_once<WAITED>},
                                 {"_exit-idle", end_at_once<IDLE>},
                                 {"abort", end_by_abort<AT_ONCE>},
                                 {"abort-waited", end_by_abort<WAITED>},
                                 {"kill", end_by_kill<AT_ONCE>},
                                 {"kill-waited", end_by_kill<WAITED>},
                                 {"kill-idle", end_by_kill<IDLE>},
                                 {"reset", reset_device},
                                 {"illegal", fail_in_series},
                                 {"illegal-waited", fail_and_wait},
                                 {"trap", trap_and_wait},
                                 {"return-busy", end_while_busy}};
    if (argc > 2 && strcmp(argv[1], "children") == 0)
        return run_children(argc - 2, argv + 2);
    return run_modes(argc, argv, modes);
}
