// Several processes: children forked before CUDA starts, children that exec, and a child forked after CUDA started,
// which must not use it. Each process that uses CUDA launches `step` twice.
//
// Usage: processes fork | exec | fork-after | leaf
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static const unsigned COUNT = 1 << 16, BLOCK = 256;

__global__ void step(unsigned *x, unsigned addend)
{
    x[blockIdx.x * BLOCK + threadIdx.x] += addend;
}

static void use_gpu(const char *who, unsigned addend)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(COUNT, 1));
    step<<<COUNT / BLOCK, BLOCK>>>(x, addend);
    step<<<COUNT / BLOCK, BLOCK>>>(x, addend);
    CHECK(cudaGetLastError());
    std::vector<unsigned> result = copy_to_host(x, COUNT);
    for (unsigned value : result)
        require(value == 1 + 2 * addend, "both steps ran once");
    print_checksum(who, result.data(), COUNT * sizeof(unsigned));
    fflush(stdout);
    CHECK(cudaFree(x));
}

// Children run one after another, so that the order of the output is known.
static void wait_for(pid_t child)
{
    int status = 0;
    require(child > 0 && waitpid(child, &status, 0) == child, "a child was started and ended");
    require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child succeeded");
}

static void run_forked(void)
{
    for (unsigned i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            use_gpu("child", 10 + i);
            exit(0);
        }
        wait_for(child);
    }
    use_gpu("parent", 1);
}

static void run_executed(char *program)
{
    char leaf[] = "leaf";
    char *arguments[] = {program, leaf, NULL};
    use_gpu("parent", 1);
    for (unsigned i = 0; i < 2; i++) {
        const pid_t child = fork();
        if (child == 0) {
            execv("/proc/self/exe", arguments);
            _exit(127);
        }
        wait_for(child);
    }
}

static void run_forked_after(void)
{
    use_gpu("before", 1);
    const pid_t child = fork();
    if (child == 0) {
        printf("child without CUDA\n");
        fflush(stdout);
        _exit(0);
    }
    wait_for(child);
    use_gpu("after", 2);
}

int main(int argc, char **argv)
{
    require(argc == 2, "usage: processes fork | exec | fork-after | leaf");
    if (!strcmp(argv[1], "fork"))
        run_forked();
    else if (!strcmp(argv[1], "exec"))
        run_executed(argv[0]);
    else if (!strcmp(argv[1], "fork-after"))
        run_forked_after();
    else
        use_gpu("leaf", 7);
    return 0;
}
