/* Adds guests to the passes: counters that no value depends on. Witnesses go into each pass that has room for them.
 * The proof goes into a pass in front, and its counters show that kernels use no memory outside their GPU. Each
 * variant of an image has some or all of the guests. NVPW's scheduler gets one group of counters for each pass, so
 * all variants have the same passes, and no counter changes its place. */
#include "planner/pack.h"

#include "core/log.h"

#include <string.h>

/* Instructions of the SMs, counted by themselves or as their TPCs see them (GH100, GB10x); active cycles of the
 * TPCs; cycles in which the GPU executes kernels (the same chips) or is busy; and time. One counter compares passes
 * with each other. If some passes count the SMs' instructions and others the TPCs', one pass with room for both gets
 * both, so that all of these passes can be compared. The counter in the SMs costs nothing in a pass that has
 * counters of their first domain, and goes into no other pass. Those of the TPCs take 18 ms more to start and stop a
 * pass, so they go where the counter in the SMs is missing, and once beside it. The others take 1 ms or nothing. The
 * last one does not compare passes: in the pass that counts the time, it shows with the kernel's cycles how much of
 * a range its kernel took. */
enum { SM_INSTRUCTIONS, TPC_INSTRUCTIONS, TPC_CYCLES, GPU_CYCLES, TIME, RANGE_CYCLES, PROOF };
static const struct {
    const char *name, *instead; /* where the chip lacks the first; NULL: nothing */
    bool takes_time;
} kinds[KPROF_MAX_WITNESSES] = {
    {KPROF_SM_INSTRUCTIONS, NULL, false},
    {KPROF_TPC_INSTRUCTIONS, NULL, true},
    {"TPC.TriageCompute.sm__cycles_active.avg", NULL, true},
    {KPROF_KERNEL_CYCLES, "gr__cycles_active.sum", false},
    {KPROF_TIME_WITNESS, NULL, false},
    {KPROF_RANGE_CYCLES, NULL, false},
};

/* The proof counts what goes to the host and to other GPUs, and what of the former only reads. It is the first row that
 * the chip can count in one pass and that shares no counter with a collected value, with its reads or without.
 * Most GB10x and GB20x chips have a second-level cache for memory outside the GPU alone: syslts. */
#define OUTSIDE(counts)                                                                                                \
    {                                                                                                                  \
        counts "_sysmem.sum", counts "_peer.sum", counts "_sysmem_op_read.sum"                                         \
    }
static const char *const proofs[][3] = {
    OUTSIDE("lts__t_sectors_srcunit_tex_aperture"),
    OUTSIDE("lts__t_requests_srcunit_tex_aperture"),
    OUTSIDE("syslts__t_sectors_srcunit_tex_aperture"),
    OUTSIDE("syslts__t_requests_srcunit_tex_aperture"),
};

static bool share(const kprof_strlist *a, const kprof_strlist *b)
{
    return KPROF_ANY(i, a->count, kprof_strlist_contains(b, a->items[i]));
}

/* Append the raw counters of a metric. A counter in several passes reads as their mean, so no value may be computed
 * from it, and no witness from a counter that a pass already has. Appends nothing in these cases, or if the chip
 * cannot collect the metric. */
static kprof_status list_counters(const kprof_packing *p, const char *metric, kprof_strlist *out)
{
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    if (!kprof_host_can_collect(p->host, metric))
        return KPROF_OK;
    kprof_status status = kprof_host_raw_counters(p->host, metric, &required, &optional);
    bool is_free = !share(&required, &p->taken) && !share(&optional, &p->taken);
    if (is_free && status == KPROF_OK)
        kprof_strlist_add_all(out, &required);
    KPROF_FREE_LISTS(&required, &optional);
    return status;
}

kprof_status kprof_guests_list(kprof_packing *p, const kprof_strlist *collect)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < collect->count && status == KPROF_OK; i++)
        status = kprof_host_raw_counters(p->host, collect->items[i], &p->taken, &p->taken);
    for (size_t i = 0; i < KPROF_MAX_WITNESSES && status == KPROF_OK && p->now.pass_count > 0; i++) {
        kprof_guest *guest = &p->guests[i];
        guest->domains = kprof_calloc(p->most_passes, sizeof(*guest->domains));
        guest->name = kinds[i].name;
        status = list_counters(p, guest->name, &guest->counters);
        if (status == KPROF_OK && guest->counters.count == 0 && kinds[i].instead) {
            guest->name = kinds[i].instead;
            status = list_counters(p, guest->name, &guest->counters);
        }
        if (guest->counters.count > (i == SM_INSTRUCTIONS ? 1 : KPROF_MAX_GUEST_COUNTERS))
            kprof_strlist_free(&guest->counters);
        if (status == KPROF_OK)
            kprof_strlist_add_all(&p->taken, &guest->counters);
    }
    return status;
}

/* List the counters of a pass for a question to NVPW; *traits describes them. */
static size_t list_pass(kprof_packing *p, uint32_t pass, kprof_traits *traits)
{
    size_t count = 0;
    *traits = (kprof_traits){0, 0};
    for (size_t i = 0; i < p->names.count; i++) {
        uint32_t domain = p->now.spots[i].domain;
        if (p->now.spots[i].pass != pass)
            continue;
        traits->possible |= domain ? kprof_place_traits(domain) : p->counters[i].traits.possible;
        traits->certain |= domain ? kprof_place_traits(domain) : p->counters[i].traits.certain;
        p->question[count++] = (kprof_placed_counter){p->names.items[i], domain};
    }
    return count;
}

/* List a guest after `count` counters of its pass; returns the new count. */
static size_t add_guest(kprof_packing *p, size_t count, const kprof_guest *guest, uint32_t domain)
{
    for (size_t i = 0; i < guest->counters.count; i++)
        p->question[count++] = (kprof_placed_counter){guest->counters.items[i], i == 0 ? domain : 0};
    return count;
}

/* Find a domain for a guest beside `count` counters that are listed. A guest in the SMs is read in their first
 * domain if the pass has counters there: one more costs nothing. */
static uint32_t find_domain(kprof_packing *p, size_t number, size_t count, const kprof_traits *pass)
{
    const kprof_guest *guest = &p->guests[number];
    kprof_counter_places places = {{0}, 1};
    if (number == SM_INSTRUCTIONS && guest->counters.count > 0 && p->status == KPROF_OK)
        p->status = kprof_raw_config_places(p->config, guest->counters.items[0], &places);
    for (size_t i = 0; i < places.count && guest->counters.count > 0 && p->status == KPROF_OK; i++) {
        unsigned traits = kprof_place_traits(places.items[i]);
        bool is_free = traits & pass->certain & KPROF_IN_SM_A && !(traits & ~pass->possible & KPROF_IS_SLOW);
        bool fits = false;
        if (!is_free && number == SM_INSTRUCTIONS)
            continue;
        p->questions -= p->questions > 0; /* limits a search; settling at the end may always ask */
        p->status = kprof_raw_config_takes(p->config, p->question, add_guest(p, count, guest, places.items[i]), &fits);
        if (fits)
            return places.items[i];
    }
    return KPROF_NOWHERE;
}

bool kprof_guests_count_instructions(kprof_packing *p, uint32_t pass)
{
    kprof_traits traits;
    size_t count = list_pass(p, pass, &traits);
    return p->guests[SM_INSTRUCTIONS].counters.count == 0 || traits.possible & KPROF_IS_PATCH ||
           find_domain(p, TPC_INSTRUCTIONS, count, &traits) != KPROF_NOWHERE ||
           find_domain(p, SM_INSTRUCTIONS, count, &traits) != KPROF_NOWHERE;
}

bool kprof_guest_is_there(const kprof_packing *p, size_t number, uint32_t pass)
{
    return p->guests[number].counters.count > 0 && p->guests[number].domains[pass] != KPROF_NOWHERE;
}

/* Return the pass that counts the elapsed time, the divisor of shares of time; KPROF_NO_PASS: there is none. Plans
 * have these counters in one pass. */
static uint32_t pass_of_time(kprof_packing *p)
{
    static const char *const times[] = {"gpc__cycles_elapsed.max", "sm__cycles_elapsed.max", "lts__cycles_elapsed.sum",
                                        "dram__cycles_elapsed.sum", "gpu__time_duration.sum"};
    uint32_t pass = KPROF_NO_PASS;
    for (size_t i = 0; i < COUNT_OF(times) && pass == KPROF_NO_PASS && p->status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strlist) counters = KPROF_STRLIST_INIT;
        if (kprof_host_can_collect(p->host, times[i]))
            p->status = kprof_host_raw_counters(p->host, times[i], &counters, &counters);
        for (size_t k = 0; k < p->names.count && pass == KPROF_NO_PASS; k++)
            if (p->now.spots[k].pass < p->now.pass_count && kprof_strlist_contains(&counters, p->names.items[k]))
                pass = p->now.spots[k].pass;
    }
    return pass;
}

/* Remove a witness that is in one pass only, as it compares nothing. But keep the three that together show how much
 * of a range its kernel takes. Returns the number of its passes. */
static size_t drop_lonely(kprof_packing *p, size_t number)
{
    const bool is_of_three = number == GPU_CYCLES || number == TIME || number == RANGE_CYCLES;
    size_t count = 0;
    bool tells_share = false;
    for (uint32_t i = 0; i < p->now.pass_count; i++) {
        bool is_there = kprof_guest_is_there(p, number, i);
        count += is_there;
        tells_share = tells_share || (is_there && is_of_three && kprof_guest_is_there(p, RANGE_CYCLES, i));
    }
    if (count > 1 || tells_share)
        return count;
    kprof_strlist_free(&p->guests[number].counters);
    return 0;
}

/* Put as many witnesses into each pass as it has room for, then remove those that are not needed. */
static kprof_status settle_witnesses(kprof_packing *p, kprof_strlist *names)
{
    const uint32_t timed = pass_of_time(p);
    bool both = false;
    for (uint32_t pass = 0; pass < p->now.pass_count; pass++) {
        kprof_traits traits;
        size_t count = list_pass(p, pass, &traits);
        for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++) {
            bool is_here = pass < KPROF_WITNESS_PASSES && (i != RANGE_CYCLES || pass == timed);
            uint32_t domain = is_here ? find_domain(p, i, count, &traits) : KPROF_NOWHERE;
            p->guests[i].domains[pass] = domain;
            count = domain == KPROF_NOWHERE ? count : add_guest(p, count, &p->guests[i], domain);
        }
    }
    const kprof_guest *cycles = &p->guests[GPU_CYCLES];
    if (timed < p->now.pass_count &&
        !(kprof_guest_is_there(p, GPU_CYCLES, timed) && strcmp(cycles->name, KPROF_KERNEL_CYCLES) == 0))
        p->guests[RANGE_CYCLES].domains[timed] = KPROF_NOWHERE; /* without the kernel's cycles it shows no share */
    (void)drop_lonely(p, SM_INSTRUCTIONS);
    for (uint32_t i = 0; i < p->now.pass_count; i++) {
        if (!kprof_guest_is_there(p, TPC_INSTRUCTIONS, i) || !kprof_guest_is_there(p, SM_INSTRUCTIONS, i))
            continue;
        if (both)
            p->guests[TPC_INSTRUCTIONS].domains[i] = KPROF_NOWHERE;
        both = true;
    }
    (void)drop_lonely(p, TPC_INSTRUCTIONS);
    for (uint32_t i = 0; i < p->now.pass_count; i++)
        if (p->guests[TPC_CYCLES].counters.count > 0 && !kprof_guest_is_there(p, TPC_INSTRUCTIONS, i))
            p->guests[TPC_CYCLES].domains[i] = KPROF_NOWHERE;
    for (size_t i = 0; i < KPROF_MAX_WITNESSES && p->status == KPROF_OK; i++)
        if (drop_lonely(p, i) > 0)
            kprof_strlist_add(names, p->guests[i].name);
    return p->status;
}

/* Look for a proof by the first `metrics` of a row. */
static kprof_status choose_proof(kprof_packing *p, size_t metrics, kprof_strlist *names)
{
    kprof_strlist *counters = &p->guests[PROOF].counters;
    for (size_t row = 0; row < COUNT_OF(proofs) && p->status == KPROF_OK; row++) {
        bool fits = false, is_whole = true;
        for (size_t i = 0; i < metrics && is_whole && p->status == KPROF_OK; i++) {
            size_t before = counters->count;
            p->status = list_counters(p, proofs[row][i], counters);
            is_whole = counters->count > before && counters->count <= KPROF_MAX_GUEST_COUNTERS;
        }
        if (is_whole && p->status == KPROF_OK)
            p->status = kprof_raw_config_takes(p->config, p->question, add_guest(p, 0, &p->guests[PROOF], 0), &fits);
        if (fits) {
            for (size_t i = 0; i < metrics; i++)
                kprof_strlist_add(names, proofs[row][i]);
            return KPROF_OK;
        }
        kprof_strlist_free(counters);
    }
    return p->status;
}

size_t kprof_image_passes(size_t pass_count, unsigned index)
{
    return (index == KPROF_IMAGE_PROOF ? 0 : pass_count) + (index >= KPROF_IMAGE_PROVED);
}

/* Make the image of this index, KPROF_IMAGE_. */
static kprof_status make_image(kprof_packing *p, unsigned index, kprof_config_image *out)
{
    const size_t pass_count = index == KPROF_IMAGE_PROOF ? 0 : p->now.pass_count;
    kprof_raw_config *config;
    kprof_status status = kprof_raw_config_open(p->host, &config);
    if (status == KPROF_OK && index >= KPROF_IMAGE_PROVED)
        status = kprof_raw_config_begin(config, p->question, add_guest(p, 0, &p->guests[PROOF], 0));
    for (uint32_t pass = 0; pass < pass_count && status == KPROF_OK; pass++) {
        kprof_traits unused;
        size_t count = list_pass(p, pass, &unused);
        for (size_t i = 0; i < KPROF_MAX_WITNESSES; i++)
            if (kprof_guest_is_there(p, i, pass) && (!kinds[i].takes_time || index & KPROF_IMAGE_WITNESSED))
                count = add_guest(p, count, &p->guests[i], p->guests[i].domains[pass]);
        status = kprof_raw_config_begin(config, p->question, count);
    }
    KPROF_THEN(status, kprof_raw_config_image(p->host, config, out));
    kprof_raw_config_close(config);
    return status;
}

kprof_status kprof_guests_settle(kprof_packing *p, kprof_image_variants *out)
{
    kprof_status status = p->now.pass_count > 0 ? settle_witnesses(p, &out->witnesses) : KPROF_OK;
    for (size_t metrics = 3; metrics > 1 && out->proof.count == 0 && status == KPROF_OK; metrics--)
        status = p->now.pass_count > 0 ? choose_proof(p, metrics, &out->proof) : KPROF_OK;
    for (unsigned index = 0; index < KPROF_IMAGES && status == KPROF_OK && p->now.pass_count > 0; index++) {
        bool is_proved = index >= KPROF_IMAGE_PROVED;
        if ((is_proved && out->proof.count == 0) || (index & KPROF_IMAGE_WITNESSED && out->witnesses.count == 0))
            continue;
        status = make_image(p, index, &out->items[index]);
        size_t made = out->items[index].pass_count;
        if (status != KPROF_OK || made == kprof_image_passes(p->now.pass_count, index))
            continue;
        if (!is_proved)
            return kprof_fail(KPROF_INTERNAL, "a plan of %zu passes makes %zu", p->now.pass_count, made);
        kprof_log(KPROF_LOG_DEBUG, "the proof made %zu passes of %zu: there is none", made, p->now.pass_count);
        kprof_strlist_free(&out->proof);
        for (unsigned i = KPROF_IMAGE_PROVED; i < KPROF_IMAGES; i++)
            kprof_config_image_free(&out->items[i]);
    }
    return status;
}
