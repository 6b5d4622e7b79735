/* Cuts the time so that the busiest unit of each phase is as busy as can be. Samples of two units that take turns all
 * the time are no phases: a phase has a seventh of the time at least, and a cut has to be worth something. */
#include "report/store/phases.h"
#include "core/strbuf.h"

#include <math.h>
#include <string.h>

#define PARTS      KPROF_PHASE_PARTS
#define LEAST      15   /* parts of a phase */
#define BUSY       30.0 /* below that no unit is what the kernel waits for */
#define WORTH_CUT  8.0  /* per cent of the peak, on average over all the time */
#define ISSUED_PCT 25.0 /* of an instruction in a cycle: an SM has four schedulers since compute capability 7.0 */

#define PCT ".pct_of_peak_sustained_elapsed"
#define TPC "TPC.TriageCompute." /* counters of GH100 and later that go together in one pass */

kprof_phase_unit kprof_phase_unit_of(const char *metric, double *scale)
{
    static const struct {
        const char *metric;
        kprof_phase_unit unit;
        double scale;
    } units[] = {
        {"dram__throughput.avg" PCT, KPROF_PHASE_DRAM, 1},
        {"lts__t_sectors.avg" PCT, KPROF_PHASE_L2, 1},
        {"l1tex__data_pipe_lsu_wavefronts.avg" PCT, KPROF_PHASE_L1, 1},
        {"l1tex__t_sectors.avg" PCT, KPROF_PHASE_L1, 1},
        {TPC "sm__pipe_tensor_cycles_active_realtime.avg" PCT, KPROF_PHASE_TENSOR, 1},
        {"sm__pipe_tensor_cycles_active.avg" PCT, KPROF_PHASE_TENSOR, 1},
        {"sm__inst_executed_pipe_tensor.avg" PCT, KPROF_PHASE_TENSOR, 1},
        {TPC "sm__inst_executed_pipe_fma_realtime.avg" PCT, KPROF_PHASE_FMA, 1},
        {"sm__inst_executed_pipe_fma.avg" PCT, KPROF_PHASE_FMA, 1},
        {"sm__pipe_fma_cycles_active.avg" PCT, KPROF_PHASE_FMA, 1},
        {"sm__inst_executed_pipe_fmaheavy.avg" PCT, KPROF_PHASE_FMA, 1},
        {TPC "sm__inst_executed_pipe_alu_realtime.avg" PCT, KPROF_PHASE_ALU, 1},
        {"sm__inst_executed_pipe_alu.avg" PCT, KPROF_PHASE_ALU, 1},
        {TPC "sm__inst_executed_realtime.avg.per_cycle_elapsed", KPROF_PHASE_ISSUE, ISSUED_PCT},
        {"sm__inst_executed_realtime.avg.per_cycle_elapsed", KPROF_PHASE_ISSUE, ISSUED_PCT},
        {"sm__inst_executed.avg.per_cycle_elapsed", KPROF_PHASE_ISSUE, ISSUED_PCT},
    };
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        *scale = units[i].scale;
        if (strcmp(metric, units[i].metric) == 0)
            return units[i].unit;
    }
    return KPROF_PHASE_NONE;
}

/* Sums of the parts before each. */
typedef struct sums {
    double before[KPROF_PHASE_UNITS][PARTS + 1];
} sums;

static kprof_phase phase_of(const sums *of, size_t from, size_t to)
{
    kprof_phase phase = {to, KPROF_PHASE_NONE, 0};
    kprof_phase_unit busiest = KPROF_PHASE_NONE;
    for (kprof_phase_unit unit = KPROF_PHASE_NONE + 1; unit < KPROF_PHASE_UNITS; unit++) {
        const double pct = (of->before[unit][to] - of->before[unit][from]) / (double)(to - from);
        busiest = pct > phase.pct ? unit : busiest;
        phase.pct = fmax(phase.pct, pct);
    }
    phase.unit = phase.pct >= BUSY ? busiest : KPROF_PHASE_NONE;
    return phase;
}

/* Return how much a phase adds to the sum that is to be large. */
static double worth(const sums *of, size_t from, size_t to)
{
    return fmax(phase_of(of, from, to).pct, BUSY) * (double)(to - from);
}

/* Find the best cuts with one phase more than `fewer`, the sums of the best ones so far. cuts[to]: where the last
 * begins. */
static void add_phase(const sums *of, const double *fewer, double *best, size_t *cuts)
{
    for (size_t to = 0; to <= PARTS; to++) {
        best[to] = -INFINITY;
        for (size_t from = LEAST; from + LEAST <= to; from++) {
            const double sum = fewer[from] + worth(of, from, to);
            cuts[to] = sum > best[to] ? from : cuts[to];
            best[to] = fmax(best[to], sum);
        }
    }
}

size_t kprof_phases_find(const kprof_phase_input *input, kprof_phase out[KPROF_PHASES_MOST])
{
    sums of = {0};
    double best[KPROF_PHASES_MOST][PARTS + 1];
    size_t cuts[KPROF_PHASES_MOST][PARTS + 1] = {{0}}, count = 1;
    for (size_t unit = KPROF_PHASE_NONE + 1; unit < KPROF_PHASE_UNITS; unit++)
        for (size_t i = 0; i < PARTS; i++)
            of.before[unit][i + 1] = of.before[unit][i] + input->pct[unit][i];
    for (size_t to = 0; to <= PARTS; to++)
        best[0][to] = to < LEAST ? -INFINITY : worth(&of, 0, to);
    for (size_t k = 1; k < KPROF_PHASES_MOST; k++) {
        add_phase(&of, best[k - 1], best[k], cuts[k]);
        if (best[k][PARTS] >= best[count - 1][PARTS] + WORTH_CUT * PARTS * (double)(k + 1 - count))
            count = k + 1;
    }
    for (size_t k = count, to = PARTS; k-- > 0; to = cuts[k][to])
        out[k] = phase_of(&of, cuts[k][to], to);
    return count;
}
