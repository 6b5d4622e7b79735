// A host thread that never stops writing to pinned memory while another launches: none of its writes may be lost, and
// a kernel must see those that were made before its launch, and none that came after the host saw it end.
//
// Usage: host_writes MODE...
//   counter, mailbox, release
#include "exact.h"

#include <chrono>
#include <thread>

static const unsigned LAUNCHES = 200, SLOTS = 1024, LINE = 64 / sizeof(unsigned);

static std::atomic<bool> finished;
static std::atomic<unsigned> tally;

static unsigned *allocate_pinned(size_t count)
{
    unsigned *memory;
    CHECK(cudaHostAlloc(&memory, count * sizeof(unsigned), cudaHostAllocMapped | cudaHostAllocPortable));
    memset(memory, 0, count * sizeof(unsigned));
    return memory;
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

// Kernels change device memory and never touch the host's counter.
static void run_counter(void)
{
    Model model;
    unsigned *x = copy_to_device(model.x), *pinned = allocate_pinned(3 * LINE);
    finished = false;
    std::thread writer(count_up, pinned + LINE);
    for (unsigned n = 1; n <= LAUNCHES; n++) {
        step(x, 3, n);
        model.step(3, n);
        if (n % 50 == 0)
            show_device("x", x, model.x);
    }
    CHECK(cudaDeviceSynchronize());
    finished = true;
    writer.join();
    require(pinned[LINE] == tally && tally > 0, "every write of the host thread is there");
    printf("counter ok\n");
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
    const std::vector<unsigned> seen = copy_to_host(trace, LAUNCHES);
    for (unsigned n = first; n < least.size(); n++) {
        if (seen[n] >= least[n] && seen[n] <= most && (n == 0 || seen[n] >= seen[n - 1]))
            continue;
        fprintf(stderr, "kernel %u saw %u, not from %u to %u\n", n, seen[n], least[n], most);
        exit(2);
    }
}

static void run_mailbox(void)
{
    unsigned *slots = allocate_pinned(SLOTS), *trace = copy_to_device(std::vector<unsigned>(LAUNCHES, 0));
    unsigned *x = copy_to_device(std::vector<unsigned>(SLOTS, 1));
    volatile const unsigned *now = slots;
    std::vector<unsigned> least, want(SLOTS);
    finished = false;
    std::thread writer(write_slots, slots);
    for (unsigned n = 0; n < LAUNCHES; n++) {
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
    const long long start = clock64();
    while (*flag == 0 && clock64() - start < 6000000000ll)
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
    static const Mode modes[] = {{"counter", run_counter}, {"mailbox", run_mailbox}, {"release", run_release}};
    return run_modes(argc, argv, modes);
}
