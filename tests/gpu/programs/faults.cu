// Launches `step` three times, prints the result, and then ends or misbehaves in the way its argument names.
//
// Usage: faults MODE
//   none, exit3           return 0 or 3
//   _exit                 _exit(0) without running exit handlers
//   segv, abort, kill     die of SIGSEGV, SIGABRT or SIGKILL
//   chdir                 change to / before the first launch and again before the last
//   closefds              close every descriptor above 2 but the driver's, then launch three times more
//   closefds-early        close every descriptor above 2 before CUDA starts
//   illegal               launch a kernel that writes to an unmapped address; report the error and return 4
//   assert                launch a kernel whose assertion fails; report the error and return 4
//   bad-launch            launch with too many threads; report the error and return 4
#include "check.h"

#include <cassert>
#include <csignal>
#include <dirent.h>
#include <unistd.h>

static const unsigned COUNT = 1 << 20, BLOCK = 256;

__global__ void step(unsigned *x, unsigned addend)
{
    x[blockIdx.x * BLOCK + threadIdx.x] += addend;
}

__global__ void writeWild(unsigned *x)
{
    x[threadIdx.x] = 1;
}

__global__ void failAssertion(unsigned *x)
{
    assert(x == NULL);
}

static const char *mode = "none";

static bool mode_is(const char *name)
{
    return !strcmp(mode, name);
}

static bool belongs_to_driver(const char *descriptor)
{
    char path[64], target[256];
    snprintf(path, sizeof path, "/proc/self/fd/%s", descriptor);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    // Besides its device files the driver keeps pipes, sockets and event descriptors of its own: only files can go.
    return strncmp(target, "/dev/", 5) == 0 || target[0] != '/';
}

static void close_descriptors(bool keep_driver)
{
    std::vector<int> numbers;
    DIR *folder = opendir("/proc/self/fd");
    require(folder != NULL, "/proc/self/fd can be read");
    while (struct dirent *entry = readdir(folder)) {
        const int number = atoi(entry->d_name);
        if (number > 2 && number != dirfd(folder) && !(keep_driver && belongs_to_driver(entry->d_name)))
            numbers.push_back(number);
    }
    closedir(folder);
    for (int number : numbers)
        close(number);
}

static void run_steps(unsigned *x, unsigned first)
{
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2 && mode_is("chdir"))
            require(chdir("/") == 0, "chdir");
        step<<<COUNT / BLOCK, BLOCK>>>(x, first + i);
        CHECK(cudaGetLastError());
    }
    CHECK(cudaDeviceSynchronize());
    print_checksum("x", copy_to_host(x, COUNT).data(), COUNT * sizeof(unsigned));
    fflush(stdout);
}

// Says what the application sees of a kernel that fails. The driver may report it at the launch or at the next wait;
// which of the two is not promised, so the first error is printed.
static int report_failure(void)
{
    const cudaError_t launch = cudaGetLastError(), wait = cudaDeviceSynchronize();
    printf("first error: %s; the context afterwards: %s\n", cudaGetErrorName(launch != cudaSuccess ? launch : wait),
           cudaGetErrorName(cudaDeviceSynchronize()));
    return 4;
}

static void die(void)
{
    if (mode_is("_exit"))
        _exit(0);
    if (mode_is("segv"))
        raise(SIGSEGV);
    if (mode_is("abort"))
        abort();
    if (mode_is("kill"))
        raise(SIGKILL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        mode = argv[1];
    if (mode_is("chdir"))
        require(chdir("/") == 0, "chdir");
    if (mode_is("closefds-early"))
        close_descriptors(false);
    unsigned *x = copy_to_device(std::vector<unsigned>(COUNT, 0));
    run_steps(x, 1);
    die();
    if (mode_is("closefds")) {
        close_descriptors(true);
        run_steps(x, 10);
    }
    if (mode_is("illegal")) {
        writeWild<<<1, 32>>>((unsigned *)0x10);
        return report_failure();
    }
    if (mode_is("assert")) {
        failAssertion<<<1, 1>>>(x);
        return report_failure();
    }
    if (mode_is("bad-launch")) {
        step<<<1, 4096>>>(x, 1);
        return report_failure();
    }
    CHECK(cudaFree(x));
    return mode_is("exit3") ? 3 : 0;
}
