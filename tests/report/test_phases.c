/* Phases of a kernel's time, of utilisations that are known. */
#include "report/store/phases.h"
#include "test.h"

#include <math.h>
#include <string.h>

static kprof_phase_input input;
static kprof_phase phases[KPROF_PHASES_MOST];

static void put(kprof_phase_unit unit, size_t from, size_t to, double pct)
{
    for (size_t i = from; i < to; i++)
        input.pct[unit][i] = pct;
}

static int clear(void **state)
{
    memset(&input, 0, sizeof input);
    return 0;
}

static void assert_phase(size_t i, size_t end, kprof_phase_unit unit, double pct)
{
    assert_int_equal(phases[i].end, end);
    assert_int_equal(phases[i].unit, unit);
    assert_true(fabs(phases[i].pct - pct) < 0.01);
}

TEST(one_phase)
{
    put(KPROF_PHASE_DRAM, 0, 100, 80);
    put(KPROF_PHASE_TENSOR, 0, 100, 60);
    assert_int_equal(kprof_phases_find(&input, phases), 1);
    assert_phase(0, 100, KPROF_PHASE_DRAM, 80);
}

TEST(dram_then_tensor_cores)
{
    put(KPROF_PHASE_DRAM, 0, 40, 82);
    put(KPROF_PHASE_DRAM, 40, 100, 10);
    put(KPROF_PHASE_TENSOR, 40, 100, 71);
    assert_int_equal(kprof_phases_find(&input, phases), 2);
    assert_phase(0, 40, KPROF_PHASE_DRAM, 82);
    assert_phase(1, 100, KPROF_PHASE_TENSOR, 71);
}

TEST(latency_in_between)
{
    put(KPROF_PHASE_DRAM, 0, 30, 90);
    put(KPROF_PHASE_L2, 30, 60, 12);
    put(KPROF_PHASE_FMA, 60, 100, 85);
    assert_int_equal(kprof_phases_find(&input, phases), 3);
    assert_phase(0, 30, KPROF_PHASE_DRAM, 90);
    assert_phase(1, 60, KPROF_PHASE_NONE, 12);
    assert_phase(2, 100, KPROF_PHASE_FMA, 85);
}

/* Units that take turns all the time, a short part, and one that is not worth a cut. */
TEST(no_phases)
{
    for (size_t i = 0; i < 100; i++)
        put(i % 4 < 2 ? KPROF_PHASE_DRAM : KPROF_PHASE_TENSOR, i, i + 1, 90);
    assert_int_equal(kprof_phases_find(&input, phases), 1);
    clear(state);
    put(KPROF_PHASE_DRAM, 0, 95, 80);
    put(KPROF_PHASE_TENSOR, 95, 100, 80);
    assert_int_equal(kprof_phases_find(&input, phases), 1);
    clear(state);
    put(KPROF_PHASE_DRAM, 0, 50, 50);
    put(KPROF_PHASE_L2, 0, 50, 48);
    put(KPROF_PHASE_DRAM, 50, 100, 44);
    put(KPROF_PHASE_L2, 50, 100, 50);
    assert_int_equal(kprof_phases_find(&input, phases), 1);
    assert_phase(0, 100, KPROF_PHASE_L2, 49);
    clear(state);
    assert_int_equal(kprof_phases_find(&input, phases), 1);
    assert_phase(0, 100, KPROF_PHASE_NONE, 0);
}

TEST(units_of_metrics)
{
    double scale = 0;
    assert_int_equal(kprof_phase_unit_of("dram__throughput.avg.pct_of_peak_sustained_elapsed", &scale),
                     KPROF_PHASE_DRAM);
    assert_true(scale == 1);
    assert_int_equal(kprof_phase_unit_of("sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_elapsed", &scale),
                     KPROF_PHASE_TENSOR);
    assert_int_equal(kprof_phase_unit_of("sm__inst_executed.avg.per_cycle_elapsed", &scale), KPROF_PHASE_ISSUE);
    assert_true(scale == 25);
    assert_int_equal(kprof_phase_unit_of("dram__bytes_read.sum.pct_of_peak_sustained_elapsed", &scale),
                     KPROF_PHASE_NONE);
    assert_int_equal(kprof_phase_unit_of("lts__t_sectors.sum", &scale), KPROF_PHASE_NONE);
}

AROUND_EACH(clear, NULL)
