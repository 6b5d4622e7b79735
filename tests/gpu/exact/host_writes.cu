// A host thread that never stops writing to memory that it shares with the GPU, or looking at it, while another
// launches: none of its writes may be lost, what it sees may not go back in time, and a kernel must see what was
// written before its launch, and nothing that was written after the host saw it end.
//
// Usage: host_writes MODE...
//   counter, counter-managed, counter-registered, watcher, watcher-managed, watcher-hidden, mailbox, release,
//   process (which must come first)
#include "exact.h"

#include <chrono>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

static const unsigned LAUNCHES = 8, MAILS = 40, SLOTS = 1024, LINE = 64 / sizeof(unsigned);

static std::atomic<bool> finished;
static std::atomic<unsigned> tally;

static unsigned *allocate_pinned(size_t count)
{
    unsigned *memory;
    CHECK(cudaHostAlloc(&memory, count * sizeof(unsigned), cudaHostAllocMapped | cudaHostAllocPortable));
    memset(memory, 0, count * sizeof(unsigned));
    return memory;
}

static unsigned *allocate_managed(size_t count)
{
    int concurrent = 0;
    unsigned *memory;
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    if (!concurrent)
        skip("the host may not touch managed memory while a kernel runs here");
    CHECK(cudaMallocManaged(&memory, count * sizeof(unsigned)));
    memset(memory, 0, count * sizeof(unsigned));
    return memory;
}

static unsigned *allocate_registered(size_t count)
{
    const size_t bytes = (count * sizeof(unsigned) + 4095) / 4096 * 4096;
    unsigned *memory = (unsigned *)aligned_alloc(4096, bytes);
    require(memory != NULL, "memory for the host");
    memset(memory, 0, bytes);
    CHECK(cudaHostRegister(memory, bytes, cudaHostRegisterMapped));
    return memory;
}

// Shared with processes that are forked.
static unsigned *allocate_shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED, "memory for two processes");
    return (unsigned *)memory;
}

// Alone in its cache line. The thread keeps count for itself, and notices at once when a write of its was undone.
static void count_up(volatile unsigned *counter)
{
    unsigned own = 0;
    while (!finished) {
        if (*counter != own) {
            fprintf(stderr, "the counter went from %u to %u by itself\n", own, *counter);
            _exit(2);
        }
        *counter = ++own;
        tally = own;
    }
}

// Kernels that change device memory and never touch the host's counter.
static void step_beside(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x);
    for (unsigned n = 1; n <= LAUNCHES; n++) {
        step(x, 3, n);
        model.step(3, n);
        if (n == LAUNCHES / 2)
            show_device("x", x, model.x);
    }
    show_device("x", x, model.x);
}

static void count_beside(unsigned *shared)
{
    finished = false;
    std::thread writer(count_up, shared + LINE);
    step_beside();
    finished = true;
    writer.join();
    require(shared[LINE] == tally && tally > 0, "every write of the host thread is there");
    printf("counter ok\n");
}

static void run_counter(void)
{
    count_beside(allocate_pinned(3 * LINE));
}

static void run_counter_managed(void)
{
    count_beside(allocate_managed(3 * LINE));
}

static void run_counter_registered(void)
{
    count_beside(allocate_registered(3 * LINE));
}

// flags[0] stops the process, flags[1] is how often it counted.
static void count_in_process(volatile unsigned *counter, volatile unsigned *flags)
{
    const pid_t parent = getppid();
    unsigned own = 0;
    for (; !flags[0] && getppid() == parent; flags[1] = own) {
        if (*counter != own)
            _exit(2); // it was changed by somebody else
        *counter = ++own;
    }
    _exit(0);
}

// Another process writes memory that this one has registered. It has one thread, which is the only one here.
static void run_process(void)
{
    const size_t bytes = 1 << 16;
    unsigned *counter = allocate_shared(bytes), *flags = allocate_shared(bytes);
    const pid_t child = fork();
    if (child == 0)
        count_in_process(counter, flags);
    require(child > 0, "a process");
    CHECK(cudaHostRegister(counter, bytes, cudaHostRegisterMapped));
    step_beside();
    *(volatile unsigned *)flags = 1;
    int status = -1;
    require(waitpid(child, &status, 0) == child && status == 0, "no write of the process was undone");
    require(*counter == flags[1] && *counter > 0, "every write of the process is there");
    CHECK(cudaHostUnregister(counter));
    printf("counter ok\n");
}

__global__ void countLaunch(volatile unsigned *counter, unsigned *x)
{
    *counter = *counter + 1;
    __threadfence_system();
    *x = *x * 3 + *counter;
}

// The kernel's arguments do not show that it reaches host memory.
__global__ void countHidden(volatile unsigned *const *counter, unsigned *x)
{
    **counter = **counter + 1;
    __threadfence_system();
    *x = *x * 3 + **counter;
}

static void watch(const volatile unsigned *counter)
{
    for (unsigned last = 0; !finished;) {
        const unsigned now = *counter;
        if (now < last) {
            fprintf(stderr, "the host saw the counter go back from %u to %u\n", last, now);
            _exit(2);
        }
        last = now;
    }
}

static void watch_kernels(unsigned *shared, bool hidden)
{
    unsigned *x = copy_to_device(std::vector<unsigned>(1, 1)), want = 1;
    unsigned **pointer = copy_to_device(std::vector<unsigned *>(1, shared));
    finished = false;
    std::thread watcher(watch, shared);
    for (unsigned n = 1; n <= LAUNCHES; n++) {
        if (hidden)
            countHidden<<<1, 1>>>(pointer, x);
        else
            countLaunch<<<1, 1>>>(shared, x);
        launched();
        want = want * 3 + n;
        if (n % 4 != 0)
            continue;
        CHECK(cudaDeviceSynchronize());
        require(*(volatile unsigned *)shared == n, "each kernel counted once");
        show_device("x", x, {want});
    }
    finished = true;
    watcher.join();
    show("counted", shared, {LAUNCHES});
}

static void run_watcher(void)
{
    watch_kernels(allocate_pinned(LINE), false);
}

static void run_watcher_managed(void)
{
    watch_kernels(allocate_managed(LINE), false);
}

static void run_watcher_hidden(void)
{
    watch_kernels(allocate_pinned(LINE), true);
}

// slots[0] is a clock that only grows; the others hold what the round gave them.
static void write_slots(volatile unsigned *slots)
{
    unsigned round = 0;
    while (!finished) {
        round++;
        for (unsigned i = 1; i < SLOTS; i++)
            slots[i] = round * i;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        slots[0] = round;
    }
    for (unsigned i = 1; i < SLOTS; i++)
        slots[i] = 3 * i;
    tally = round;
}

__global__ void readClock(const volatile unsigned *slots, unsigned *trace, unsigned n)
{
    trace[n] = slots[0];
}

__global__ void addSlots(const unsigned *slots, unsigned *x)
{
    x[threadIdx.x] = x[threadIdx.x] * 3 + slots[threadIdx.x];
}

// What each kernel saw of the clock lies between what the host read before its launch and after its end.
static void check_trace(const unsigned *trace, const std::vector<unsigned> &least, unsigned first, unsigned most)
{
    const std::vector<unsigned> seen = copy_to_host(trace, MAILS);
    for (unsigned n = first; n < least.size(); n++) {
        if (seen[n] >= least[n] && seen[n] <= most && (n == 0 || seen[n] >= seen[n - 1]))
            continue;
        fprintf(stderr, "kernel %u saw %u, not from %u to %u\n", n, seen[n], least[n], most);
        exit(2);
    }
}

static void run_mailbox(void)
{
    unsigned *slots = allocate_pinned(SLOTS), *trace = copy_to_device(std::vector<unsigned>(MAILS, 0));
    unsigned *x = copy_to_device(std::vector<unsigned>(SLOTS, 1));
    volatile const unsigned *now = slots;
    std::vector<unsigned> least, want(SLOTS);
    finished = false;
    std::thread writer(write_slots, slots);
    for (unsigned n = 0; n < MAILS; n++) {
        const unsigned before = *now;
        least.push_back(before);
        readClock<<<1, 1>>>(slots, trace, n);
        launched();
        if (n % 20 != 19)
            continue;
        CHECK(cudaDeviceSynchronize());
        check_trace(trace, least, n - 19, *now);
    }
    finished = true;
    writer.join();
    slots[0] = 0;
    for (unsigned n = 0; n < 2; n++) {
        addSlots<<<1, SLOTS>>>(slots, x);
        launched();
    }
    for (unsigned i = 0; i < SLOTS; i++)
        want[i] = (1 * 3 + 3 * i) * 3 + 3 * i;
    show_device("sums", x, want);
    slots[0] = tally;
    require(tally > 0, "the host thread wrote");
    printf("mailbox ok\n");
}

// Waits for the host, three seconds at most.
__global__ void waitForHost(const volatile unsigned *flag, unsigned *x)
{
    const unsigned long long start = gpu_time_ns();
    while (*flag == 0 && gpu_time_ns() - start < 3000000000ull)
        ;
    *x = *x * 3 + *flag;
}

// A kernel that ends only when another host thread lets it.
static void run_release(void)
{
    unsigned *flag = allocate_pinned(LINE), *x = copy_to_device(std::vector<unsigned>(1, 1));
    flag[1] = 1;
    waitForHost<<<1, 1>>>(flag + 1, x); // ends at once: the kernel is loaded before it has to wait
    launched();
    CHECK(cudaDeviceSynchronize());
    std::thread releaser([flag] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        *(volatile unsigned *)flag = 5;
    });
    waitForHost<<<1, 1>>>(flag, x);
    launched();
    CHECK(cudaDeviceSynchronize());
    releaser.join();
    show_device("x", x, {(1 * 3 + 1) * 3 + 5});
    show("flag", flag, {5});
}

int main(int argc, char **argv)
{
    static const Mode modes[] = {{"counter", run_counter},
                                 {"counter-managed", run_counter_managed},
                                 {"counter-registered", run_counter_registered},
                                 {"watcher", run_watcher},
                                 {"watcher-managed", run_watcher_managed},
                                 {"watcher-hidden", run_watcher_hidden},
                                 {"mailbox", run_mailbox},
                                 {"release", run_release},
                                 {"process", run_process}};
    return run_modes(argc, argv, modes);
}
