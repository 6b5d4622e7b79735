/* Finds the chips, with or without a GPU, and resolves the selection for each. */
#include "cli/plans.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "core/log.h"
#include "core/regex.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Messages name at most this many of the metrics that are left out. */
#define NAMES_TOLD   4
#define DEFAULT_CHIP "GH100"
/* The section of what is sampled over the time of a program. */
#define SAMPLED_SECTION "ProgramUtilization"

static bool is_chosen(size_t device, uint64_t mask)
{
    return mask == 0 || (device < 64 && mask >> device & 1);
}

/* Memory of the smallest device that is measured; 0: not known. */
static uint64_t least_memory(const kprof_probe *probe, uint64_t device_mask)
{
    uint64_t least = 0;
    for (size_t i = 0; i < probe->device_count; i++) {
        const char *chip = probe->devices[i].chip;
        const uint64_t bytes = probe->devices[i].memory_bytes;
        const bool is_measured = is_chosen(i, device_mask) && *chip && !kprof_chip_is_too_old(chip);
        if (is_measured && bytes > 0 && (least == 0 || bytes < least))
            least = bytes;
    }
    return least;
}

kprof_status kprof_probe_chips(const kprof_probe *probe, uint64_t device_mask, kprof_strlist *out)
{
    size_t chosen = 0;
    for (size_t i = 0; i < probe->device_count; i++) {
        if (!is_chosen(i, device_mask))
            continue;
        chosen++;
        if (probe->devices[i].chip[0] == '\0')
            kprof_log(KPROF_LOG_WARNING,
                      "device %zu (%s) is not known to CUPTI, and its launches are not measured; a newer CUDA toolkit "
                      "may know it",
                      i, probe->devices[i].name);
        else if (kprof_chip_is_too_old(probe->devices[i].chip))
            kprof_log(KPROF_LOG_WARNING,
                      "device %zu (%s) is a %s, whose compute capability is less than kprof supports, and its launches "
                      "are not measured",
                      i, probe->devices[i].name, probe->devices[i].chip);
        else
            kprof_strlist_add_unique(out, probe->devices[i].chip);
    }
    if (chosen == 0)
        return kprof_fail(KPROF_USAGE, "--devices leaves no device: there %s %zu, numbered from 0",
                          probe->device_count == 1 ? "is" : "are", probe->device_count);
    if (out->count == 0)
        return kprof_fail(KPROF_UNSUPPORTED, "kprof can measure none of the devices");
    return KPROF_OK;
}

static void keep_error(void *user, kprof_log_level level, const char *message)
{
    if (level == KPROF_LOG_ERROR)
        (void)kprof_strlist_add(user, message);
}

/* Does the chip lack a metric that another chip has, or all that a pattern means? */
static bool is_missing(const kprof_catalog *catalog, kprof_host *own, const char *word)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    bool is_known = false;
    const bool is_unknown = kprof_metrics_check(catalog, own, word) == KPROF_UNKNOWN_NAME;
    if (is_unknown && kprof_regex_pattern(word))
        return true;
    const bool are_known = is_unknown && kprof_host_chips(&chips) == KPROF_OK;
    for (size_t i = 0; i < chips.count && are_known && !is_known; i++) {
        kprof_host *host = NULL;
        is_known = kprof_host_open(chips.items[i], NULL, &host) == KPROF_OK &&
                   kprof_metrics_check(catalog, host, word) == KPROF_OK;
        kprof_host_close(host);
    }
    return is_known;
}

/* A selection in two parts: what a chip can collect, and the metrics that only other chips can. */
typedef struct parted {
    kprof_selection kept; /* borrowed but for its metrics */
    kprof_strlist left_out;
} parted;

/* Part the metrics of a selection; is anything left to collect? */
static bool part_selection(const kprof_catalog *catalog, kprof_host *host, const kprof_selection *selection,
                           parted *out)
{
    out->kept = *selection;
    out->kept.metrics = (kprof_strlist)KPROF_STRLIST_INIT;
    for (size_t i = 0; i < selection->metrics.count; i++) {
        const char *word = selection->metrics.items[i];
        kprof_strlist_add(is_missing(catalog, host, word) ? &out->left_out : &out->kept.metrics, word);
    }
    return out->left_out.count > 0 && kprof_selection_count(&out->kept) > 0;
}

/* Plan what this chip has: leave out a metric that only other chips have, and a pattern that matches nothing here, if
 * something else was asked for beside it. */
static kprof_status plan_what_there_is(const kprof_plans *plans, const kprof_selection *selection, kprof_chip_plan *out)
{
    KPROF_AUTO(kprof_strlist) errors = KPROF_STRLIST_INIT;
    parted parts = {0};
    kprof_status status =
        KPROF_HEAR(keep_error, &errors, kprof_plan_make(plans->catalog, selection, out->host, &out->plan));
    if (status == KPROF_UNKNOWN_NAME && kprof_selection_count(selection) > 1 &&
        KPROF_MUTE(part_selection(plans->catalog, out->host, selection, &parts)))
        status = KPROF_MUTE(kprof_plan_make(plans->catalog, &parts.kept, out->host, &out->plan));
    for (size_t i = 0; i < errors.count && status != KPROF_OK; i++)
        kprof_log(KPROF_LOG_ERROR, "%s", errors.items[i]);
    for (size_t i = 0; i < parts.left_out.count && status == KPROF_OK; i++)
        kprof_log(KPROF_LOG_WARNING, "--metrics %s is left out: chip %s has no such metric%s", parts.left_out.items[i],
                  kprof_host_chip(out->host), kprof_regex_pattern(parts.left_out.items[i]) ? "" : ", other chips have");
    KPROF_FREE_LISTS(&parts.kept.metrics, &parts.left_out);
    return status;
}

/* As the recorder has them; what they hold is the plan's. */
static void list_timelines(kprof_chip_plan *plan)
{
    const kprof_timeline_plan *from = &plan->plan.timeline;
    plan->timelines = kprof_calloc(from->count + 1, sizeof *plan->timelines);
    for (size_t i = 0; i < from->count; i++)
        plan->timelines[i] =
            (kprof_chip_timeline){from->passes[i].metrics, {from->passes[i].image.data, from->passes[i].image.size}};
}

static kprof_status plan_chip(const kprof_plans *plans, const kprof_selection *selection, const char *chip,
                              kprof_chip_plan *out)
{
    kprof_selection limited = *selection;
    kprof_status status = kprof_host_open(chip, NULL, &out->host);
    limited.limits = plans->limits;
    limited.limits.max_passes = plans->by_application ? 0 : plans->limits.max_passes;
    KPROF_THEN(status, plan_what_there_is(plans, &limited, out));
    if (status == KPROF_OK)
        list_timelines(out);
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "%s: %zu metrics in %zu passes", chip, out->plan.collect.count,
                  kprof_plan_pass_count(&out->plan));
    return status;
}

/* The first names and the number of the others, or all. Caller frees. */
static char *join_names(const kprof_strlist *names, size_t most)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < names->count && i < most; i++)
        kprof_strbuf_printf(&text, "%s%s", i ? ", " : "", names->items[i]);
    if (names->count > most)
        kprof_strbuf_printf(&text, " and %zu more (--verbose names them all)", names->count - most);
    return kprof_strbuf_take(&text);
}

/* Tell which parts stand in for a throughput that is left out, if any do. */
static void tell_stand_ins(const kprof_options *options, const kprof_chip_plan *chip, const char *left_out)
{
    KPROF_AUTO(kprof_strlist) parts = KPROF_STRLIST_INIT;
    if (kprof_instruction_is_word(left_out) || kprof_begins_with(left_out, KPROF_TIMELINE_PREFIX))
        return;
    kprof_status status = kprof_limits_stand_ins(chip->host, left_out, &chip->plan.collect, &parts);
    KPROF_AUTO_FREE char *names =
        status == KPROF_OK ? join_names(&parts, options->verbose ? SIZE_MAX : NAMES_TOLD) : NULL;
    if (names && parts.count > 0)
        kprof_log(KPROF_LOG_INFO, "%s: %s is left out, and the greatest of these parts stands in for it: %s",
                  chip->plan.chip, left_out, names);
}

/* Nothing is left out in silence. */
static void tell_limits(const kprof_options *options, const kprof_limits *limits, const kprof_chip_plan *chip)
{
    const kprof_plan *plan = &chip->plan;
    char share[64] = "";
    if (kprof_instruction_passes(&plan->instructions) > 0)
        snprintf(share, sizeof share, ", %.1f s of it for instructions",
                 plan->cost.total_s - kprof_plan_cost_without_instructions(plan, &limits->workload).total_s);
    if (limits->budget_s > 0)
        kprof_log(KPROF_LOG_INFO, "%s: about %.1f s for %lu launches%s%s, of a budget of %g s", plan->chip,
                  plan->cost.total_s, limits->workload.launches,
                  options->most_launches ? "" : " (assumed; --launch-count tells how many)", share, limits->budget_s);
    if (plan->left_out.count == 0)
        return;
    size_t most = options->verbose ? SIZE_MAX : NAMES_TOLD;
    KPROF_AUTO_FREE char *names = join_names(&plan->left_out, most);
    kprof_log(KPROF_LOG_WARNING, "%s: %zu of %zu metrics are left out to keep within %s: %s", plan->chip,
              plan->left_out.count, plan->left_out.count + plan->collect.count,
              limits->max_passes == 0 ? "--budget"
              : limits->budget_s > 0  ? "--max-passes and --budget"
                                      : "--max-passes",
              names);
    for (size_t i = 0; i < plan->left_out.count && i < most; i++)
        tell_stand_ins(options, chip, plan->left_out.items[i]);
}

static kprof_status plan_chips(const kprof_options *options, const kprof_strlist *chips, kprof_plans *out)
{
    out->chips = kprof_calloc(chips->count, sizeof *out->chips);
    kprof_rank rank = {0, 1};
    const bool shares = options->rank_passes && (options->command->mask & KPROF_IN(profile));
    kprof_status status = shares ? kprof_rank_find(&rank) : KPROF_OK;
    KPROF_AUTO(kprof_strlist) told = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < chips->count && status == KPROF_OK; i++) {
        out->count = i + 1;
        status = plan_chip(out, &out->selection, chips->items[i], &out->chips[i]);
        if (status == KPROF_OK && shares)
            status = kprof_rank_take(out->catalog, out->chips[i].host, &rank, &out->chips[i].plan);
        if (status == KPROF_OK && out->by_application)
            status =
                kprof_shares_make(&(kprof_shares_wish){out->catalog, out->chips[i].host, out->limits.max_passes, false},
                                  &out->chips[i].plan, &out->chips[i].shares);
        const kprof_strlist *notes = &out->chips[i].plan.notes;
        for (size_t k = 0; k < notes->count; k++) { /* each once, though several chips mean the same */
            if (!kprof_strlist_contains(&told, notes->items[k]) && kprof_strlist_add(&told, notes->items[k]))
                kprof_log(KPROF_LOG_INFO, "%s", notes->items[k]);
        }
        if (status == KPROF_OK)
            tell_limits(options, &out->limits, &out->chips[i]);
        /* A counter that some chip lacks is left out there by the injection library, which says so. */
        const kprof_instruction_wish *wish = &out->chips[i].plan.instructions;
        if (status == KPROF_OK)
            kprof_strlist_add_all_unique(&out->instructions.counters, &wish->counters);
        out->instructions.samples = out->instructions.samples || (status == KPROF_OK && wish->samples);
    }
    return status;
}

static kprof_status read_catalog(const kprof_options *options, kprof_plans *out)
{
    *out = (kprof_plans){.limits = options->selection.limits,
                         .by_application = kprof_replay_is_of_runs(options->replay_choice)};
    kprof_finding_list findings = {NULL, 0};
    kprof_status status = kprof_catalog_locate(options, &out->catalog);
    if (status == KPROF_OK)
        kprof_selection_trim(out->catalog, &options->selection, &out->selection);
    out->selection.is_traced = options->traces;
    KPROF_THEN(status, kprof_selection_check(out->catalog, &out->selection));
    KPROF_THEN(status, kprof_catalog_findings(out->catalog, &options->rules, &findings));
    free(findings.items);
    return status;
}

/* Tell what the driver keeps from this user only once it is known whether something is left to measure. */
static kprof_status find_devices(kprof_plans *out)
{
    KPROF_AUTO(kprof_strlist) errors = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_HEAR(keep_error, &errors, kprof_probe_devices(&out->probe));
    const char *error = errors.count > 0 ? errors.items[0] : kprof_status_message(status);
    if (status == KPROF_NO_PERMISSION)
        out->denied = kprof_strdup(error);
    else if (status != KPROF_OK)
        kprof_log(KPROF_LOG_ERROR, "%s", error);
    return out->denied ? KPROF_OK : status;
}

/* CUPTI counts instructions by code in the kernel, and that needs no permission. */
static kprof_status check_denied(const kprof_plans *plans)
{
    bool is_enough = true;
    for (size_t i = 0; i < plans->count; i++) {
        const kprof_plan *plan = &plans->chips[i].plan;
        is_enough = is_enough && plan->instructions.counters.count > 0 &&
                    2 * kprof_instruction_passes(&plan->instructions) >= kprof_plan_pass_count(plan);
    }
    if (!is_enough)
        return kprof_fail(KPROF_NO_PERMISSION, "%s", plans->denied);
    kprof_log(KPROF_LOG_WARNING, "instructions are counted and nothing else is measured: %s", plans->denied);
    return KPROF_OK;
}

kprof_status kprof_plans_make(const kprof_options *options, kprof_plans *out)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    kprof_status status = read_catalog(options, out);
    KPROF_THEN(status, find_devices(out));
    KPROF_THEN(status, kprof_probe_chips(&out->probe, options->filter.device_mask, &chips));
    out->limits.workload.device_bytes = least_memory(&out->probe, options->filter.device_mask);
    KPROF_THEN(status, plan_chips(options, &chips, out));
    if (status == KPROF_OK && out->denied)
        status = check_denied(out);
    return status;
}

kprof_status kprof_plans_make_for(const kprof_options *options, const kprof_strlist *chips, uint64_t device_bytes,
                                  kprof_plans *out)
{
    kprof_status status = read_catalog(options, out);
    out->limits.workload.device_bytes = device_bytes;
    return KPROF_THEN(status, plan_chips(options, chips, out));
}

static kprof_status plan_samples(const kprof_options *options, kprof_strlist *chips, kprof_plans *out)
{
    kprof_status status = kprof_catalog_locate(options, &out->catalog);
    KPROF_THEN(status, kprof_probe_devices(&out->probe));
    KPROF_THEN(status, kprof_probe_chips(&out->probe, 0, chips));
    out->chips = kprof_calloc(chips->count + 1, sizeof *out->chips);
    for (size_t i = 0; i < chips->count && status == KPROF_OK; i++) {
        kprof_chip_plan *chip = &out->chips[out->count++];
        status = kprof_host_open(chips->items[i], NULL, &chip->host);
        const kprof_probe_device *devices = out->probe.devices;
        const bool is_linked = KPROF_ANY(k, out->probe.device_count,
                                         devices[k].is_linked && strcmp(devices[k].chip, chips->items[i]) == 0);
        const kprof_sampled_section section = {SAMPLED_SECTION, is_linked};
        KPROF_THEN(status, kprof_plan_make_sampled(out->catalog, &section, chip->host, &chip->plan));
        if (status == KPROF_OK)
            list_timelines(chip);
    }
    return status;
}

void kprof_plans_sample(const kprof_options *options, kprof_plans *out)
{
    kprof_strlist errors = KPROF_STRLIST_INIT, chips = KPROF_STRLIST_INIT;
    *out = (kprof_plans){0};
    const kprof_status status = KPROF_HEAR(keep_error, &errors, plan_samples(options, &chips, out));
    for (size_t i = 0; i < out->count && status == KPROF_OK; i++)
        for (size_t k = 0; k < out->chips[i].plan.notes.count; k++)
            kprof_log(KPROF_LOG_INFO, "%s", out->chips[i].plan.notes.items[k]);
    if (status != KPROF_OK) {
        kprof_log(KPROF_LOG_WARNING, "nothing is sampled over time, and the trace goes on without: %s",
                  errors.count > 0 ? errors.items[0] : kprof_status_message(status));
        kprof_plans_free(out);
    }
    KPROF_FREE_LISTS(&errors, &chips);
}

void kprof_plans_free(kprof_plans *plans)
{
    for (size_t i = 0; i < plans->count; i++) {
        free(plans->chips[i].timelines);
        kprof_shares_free(&plans->chips[i].shares);
        kprof_plan_free(&plans->chips[i].plan);
        kprof_host_close(plans->chips[i].host);
    }
    KPROF_FREE(plans->chips, plans->denied);
    kprof_probe_free(&plans->probe);
    kprof_selection_free(&plans->selection);
    kprof_instruction_wish_free(&plans->instructions);
    kprof_catalog_free(plans->catalog);
    *plans = (kprof_plans){0};
}

size_t kprof_plans_runs(const kprof_plans *plans)
{
    size_t most = 0;
    for (size_t i = 0; i < plans->count; i++)
        most = plans->chips[i].shares.count > most ? plans->chips[i].shares.count : most;
    return most;
}

void kprof_plans_swap_run(kprof_plans *plans, size_t run)
{
    plans->in_run = !plans->in_run;
    for (size_t i = 0; i < plans->count; i++) {
        const kprof_shares *shares = &plans->chips[i].shares;
        if (shares->count > 0) /* a chip with fewer shares measures its own again */
            kprof_plan_swap(&plans->chips[i].plan, &shares->plans[run % shares->count]);
    }
}

static void fill_chip(const kprof_chip_plan *from, kprof_chip_metrics *out)
{
    *out = (kprof_chip_metrics){
        .chip = from->plan.chip,
        .metrics = from->plan.collect,
        .last_passes = from->plan.schedule.last_passes,
        .patched = from->plan.schedule.patched,
        .witnesses = from->plan.variants.witnesses,
        .proof = from->plan.variants.proof,
        .pass_count = (uint32_t)from->plan.pass_count,
        .patches_code = KPROF_ANY(i, from->plan.schedule.pass_count, from->plan.schedule.passes[i].patches_code),
        .timelines = from->timelines,
        .timeline_count = from->plan.timeline.count,
    };
    for (size_t i = 0; i < from->plan.variants.witnesses.count; i++) {
        const kprof_pass_list *passes = &from->plan.schedule.metrics[from->plan.collect.count + i];
        for (size_t k = 0; k < passes->count; k++)
            out->witness_passes[i] |= passes->items[k] < KPROF_WITNESS_PASSES ? UINT64_C(1) << passes->items[k] : 0;
    }
    for (size_t i = 0; i < KPROF_IMAGES; i++)
        out->images[i] = (kprof_chip_image){from->plan.variants.items[i].data, from->plan.variants.items[i].size};
}

void kprof_plans_config(const kprof_plans *plans, const kprof_options *options, kprof_config *out)
{
    *out = (kprof_config){
        .filter = options->filter,
        .chips = kprof_calloc(plans->count + 1, sizeof *out->chips),
        .chip_count = plans->count,
        .instruction_metrics = plans->instructions.counters,
        .samples = plans->instructions.samples,
        .verbose = options->verbose,
        .counter_data_dir = options->counter_data_dir,
#define OPTION(place, type, field, ...) KPROF_FOR_RECORDER_##place(.field = options->field, )
#include "core/recorder_options.h"
#undef OPTION
    };
    for (size_t i = 0; i < plans->count; i++)
        fill_chip(&plans->chips[i], &out->chips[i]);
}

/* Add the chips of the GPUs that are present; having none is no error here. False where kprof cannot know any chip. */
static bool add_present_chips(uint64_t device_mask, kprof_chips *out)
{
    KPROF_AUTO(kprof_probe) probe = {0};
    const kprof_status status = KPROF_MUTE(kprof_probe_devices(&probe));
    if (status == KPROF_OK || status == KPROF_NO_PERMISSION)
        (void)!KPROF_MUTE(kprof_probe_chips(&probe, device_mask, &out->names));
    out->device_bytes = least_memory(&probe, device_mask);
    return status != KPROF_UNSUPPORTED;
}

/* Chips have capitals, and ncu's users write them small. Tell of each wrong one; the status is that of the last. */
static kprof_status add_named_chips(const kprof_strlist *typed, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) known = KPROF_STRLIST_INIT;
    kprof_status result = KPROF_OK;
    const bool are_known = KPROF_MUTE(kprof_host_chips(&known)) == KPROF_OK;
    for (size_t i = 0; i < typed->count; i++) {
        const char *name = typed->items[i];
        for (size_t k = 0; are_known && k < known.count; k++)
            name = strcasecmp(known.items[k], name) == 0 ? known.items[k] : name;
        kprof_status status = kprof_chip_check(name, are_known ? &known : NULL);
        if (status == KPROF_OK)
            kprof_strlist_add_unique(out, name);
        result = status != KPROF_OK ? status : result;
    }
    return result;
}

kprof_status kprof_chips_named(const kprof_options *options, kprof_chips *out)
{
    *out = (kprof_chips){0};
    if (options->chips.count > 0)
        return add_named_chips(&options->chips, &out->names);
    const bool can_know = add_present_chips(options->filter.device_mask, out);
    if (out->names.count > 0)
        return KPROF_OK;
    if (can_know)
        kprof_log(KPROF_LOG_INFO, "no GPU found that kprof can use: taking %s; --chips names others", DEFAULT_CHIP);
    kprof_strlist_add(&out->names, DEFAULT_CHIP);
    return KPROF_OK;
}

kprof_status kprof_chip_open(const char *chip, kprof_host **out)
{
    KPROF_AUTO(kprof_strlist) errors = KPROF_STRLIST_INIT;
    *out = NULL;
    kprof_status status = KPROF_HEAR(keep_error, &errors, kprof_host_open(chip, NULL, out));
    for (size_t i = 0; i < errors.count; i++)
        kprof_log(status == KPROF_UNSUPPORTED ? KPROF_LOG_WARNING : KPROF_LOG_ERROR, "%s", errors.items[i]);
    return status == KPROF_UNSUPPORTED ? KPROF_OK : status;
}
