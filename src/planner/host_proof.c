/* Chooses the proof that kernels use no memory outside their GPU: metrics that count the SMs' traffic to such memory.
 */
#include "planner/variants_private.h"

/* The proof is the first row that the chip can count in one pass and that shares no counter with a collected value.
 * Most GB10x and GB20x chips have a second-level cache for memory outside the GPU alone: syslts. */
enum { PROOF_METRICS = 2 };
static const char *const alternatives[][PROOF_METRICS] = {
    {"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", "lts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"lts__t_requests_srcunit_tex_aperture_sysmem.sum", "lts__t_requests_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_sectors_srcunit_tex_aperture_sysmem.sum", "syslts__t_sectors_srcunit_tex_aperture_peer.sum"},
    {"syslts__t_requests_srcunit_tex_aperture_sysmem.sum", "syslts__t_requests_srcunit_tex_aperture_peer.sum"},
};
enum { ROWS = sizeof(alternatives) / sizeof(alternatives[0]) };

static bool can_collect(kprof_host *host, const char *const *names)
{
    for (size_t i = 0; i < PROOF_METRICS; i++) {
        if (!kprof_host_can_collect(host, names[i]))
            return false;
    }
    return true;
}

/* False after a failure of NVPW too: kprof can do without a proof. */
static bool fit_one_pass(const kprof_host *host, const kprof_strlist *counters)
{
    kprof_raw_config *config;
    bool fit = false;
    kprof_status status = kprof_raw_config_open_quietly(host, &config);
    if (status == KPROF_OK)
        status = kprof_raw_config_begin(config);
    if (status == KPROF_OK)
        status = kprof_raw_config_fits(config, counters, &fit);
    kprof_raw_config_close(config);
    return status == KPROF_OK && fit;
}

static kprof_status list_counters(kprof_variant_builder *b, const char *const *names)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < PROOF_METRICS && status == KPROF_OK; i++)
        status = kprof_evaluator_raw_counters(b->evaluator, names[i], &b->proof_counters, NULL);
    return status;
}

/* A counter that is in several passes reads as their mean, so no collected value may depend on those of the proof. */
static kprof_status find_row(kprof_variant_builder *b, size_t *row)
{
    for (*row = 0; *row < ROWS; (*row)++) {
        if (!can_collect(b->host, alternatives[*row]))
            continue;
        kprof_status status = list_counters(b, alternatives[*row]);
        if (status != KPROF_OK)
            return status;
        if (!kprof_variant_builder_has_taken(b, &b->proof_counters) && fit_one_pass(b->host, &b->proof_counters))
            return KPROF_OK;
        kprof_strlist_free(&b->proof_counters);
    }
    return KPROF_OK;
}

kprof_status kprof_proof_choose(kprof_variant_builder *b, kprof_strlist *names)
{
    size_t row;
    kprof_status status = find_row(b, &row);
    for (size_t i = 0; i < PROOF_METRICS && row < ROWS && status == KPROF_OK; i++)
        status = kprof_strlist_add(names, alternatives[row][i]) ? KPROF_OK : KPROF_NO_MEMORY;
    return status;
}
