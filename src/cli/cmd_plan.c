/* kprof plan: what would be collected, and what that costs. Nothing is started, and no GPU is needed. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/plans.h"
#include "cli/program.h"
#include "report/page/page.h"

#include <math.h>
#include <string.h>

/* A field that people see with --verbose alone. */
#define FURTHER(field) kprof_field_with_role(field, KPROF_ROLE_MACHINE)

static kprof_emit_field size_if(bool is_known, const char *key, const char *label, double bytes)
{
    return kprof_field_with(key, label, is_known ? bytes : NAN, "byte");
}

/* All fields are for programs. People see the short ones, and the others with --verbose. */
static void show_record(kprof_emitter *emitter, kprof_emit_field *fields, size_t count, bool all)
{
    for (size_t i = 0; i < count && all; i++)
        fields[i].role = fields[i].role == KPROF_ROLE_MACHINE ? KPROF_ROLE_SHOWN : fields[i].role;
    kprof_show_record(emitter, fields, count);
}

static const char *source_of_size(const kprof_workload *workload, const kprof_cost *cost)
{
    if (workload->allocated_bytes == 0)
        return "not known before it runs; set it with --allocated";
    return (double)workload->allocated_bytes > cost->device_bytes ? "given; more than the GPU has" : "given";
}

static const char *space_for_copies(const kprof_cost *cost, bool is_known)
{
    if (!is_known)
        return "not known";
    return cost->saved_fits ? "enough" : "where enough of it is uniform; else launches are multiplexed";
}

/* The labels of memory and of time say on what the figures rest. */
typedef struct reckoning {
    const char *saved, *total;
} reckoning;

static reckoning reckon(const kprof_options *options, const kprof_cost *cost, bool is_known)
{
    /* Prices are known of repeated launches only. */
    if (options->replay_choice != KPROF_REPLAY_WHERE_PROVED && options->replay_choice != KPROF_REPLAY_ONLY)
        return (reckoning){"Memory to save, if launches were repeated", "Time in all, if launches were repeated"};
    if (!is_known)
        return (reckoning){"Memory to save (depends on --allocated)", "Time in all, without memory, about"};
    if (cost->saved_fits)
        return (reckoning){"Memory to save, over all batches, about", "Time in all, about"};
    return (reckoning){"Memory to save (too much, unless most is uniform: then launches are multiplexed)",
                       "Time in all, if memory can be saved, about"};
}

/* Every plan names the GPU whose prices it uses. Programs have it in the fields of memory and prices. */
static kprof_emit_field gpu_field(const kprof_workload *workload, const kprof_cost *cost, char text[96])
{
    const bool is_here = workload->device_bytes > 0;
    if (is_here)
        snprintf(text, 96, "of an %s", kprof_prices.measured_on);
    else
        snprintf(text, 96, "of an %s, %.0f GB", kprof_prices.measured_on, cost->device_bytes / 1e9);
    return kprof_field_text("prices", is_here ? "Prices" : "Prices and memory", text, .role = KPROF_ROLE_PEOPLE);
}

/* A field about instructions: people see it where some are measured. */
static kprof_emit_field if_wanted(const kprof_instruction_wish *wish, kprof_emit_field field)
{
    return kprof_instruction_passes(wish) > 0 ? field : FURTHER(field);
}

static kprof_emit_field if_sampled(const kprof_timeline_plan *plan, kprof_emit_field field)
{
    return plan->count > 0 ? field : FURTHER(field);
}

static void show_plan(kprof_emitter *emitter, const kprof_options *options, const kprof_workload *workload,
                      const kprof_chip_plan *chip)
{
    kprof_effort effort = kprof_effort_of(&chip->plan.schedule, chip->plan.collect.count);
    const kprof_workload all = kprof_plan_workload(&chip->plan, workload);
    const kprof_instruction_wish *instructions = &chip->plan.instructions;
    kprof_cost cost = kprof_cost_of(&effort, &all);
    const kprof_cost others = kprof_plan_cost_without_instructions(&chip->plan, workload);
    bool is_given = workload->allocated_bytes > 0;
    bool is_known = is_given || kprof_plan_pass_count(&chip->plan) < 2; /* what is saved: nothing for a single pass */
    bool is_counted = options->most_launches > 0;
    const reckoning labels = reckon(options, &cost, is_known);
    char gpu[96];
    kprof_emit_field fields[] = {
        kprof_field_text("chip", "Chip", chip->plan.chip),
        kprof_field_integer("metrics", "Metrics", effort.metric_count),
        kprof_field_integer("left_out", "Metrics left out", chip->plan.left_out.count),
        kprof_field_integer("passes", "Passes", kprof_plan_pass_count(&chip->plan)),
        chip->shares.count > 0 ? kprof_field_integer("runs", "Runs of the program", chip->shares.count)
                               : FURTHER(kprof_field_integer("runs", "Runs of the program", 1)),
        if_wanted(instructions, kprof_field_integer("instruction_counters", "Counters of instructions, all in one pass",
                                                    instructions->counters.count)),
        if_wanted(instructions, kprof_field_text("instruction_samples", "Samples of instructions, in another pass",
                                                 instructions->samples ? "yes" : "no")),
        if_sampled(&chip->plan.timeline,
                   kprof_field_integer("timeline_passes", "Passes of samples over time", chip->plan.timeline.count)),
        if_sampled(&chip->plan.timeline, kprof_field_integer("timeline_metrics", "Metrics sampled over time",
                                                             kprof_timeline_metric_count(&chip->plan.timeline))),
        FURTHER(kprof_field_integer("sm_passes", "Passes with counters of the SMs", effort.sm_pass_count)),
        FURTHER(kprof_field_integer("slow_passes", "Passes that make launches slow", effort.slow_pass_count)),
        FURTHER(kprof_field_with("counter_data", "Counter data of a launch, about", cost.counter_data_bytes, "byte")),
        kprof_field_integer("launches", is_counted ? "Launches" : "Launches (assumed; set them with --launch-count)",
                            (int64_t)workload->launches),
        FURTHER(kprof_field_text("launches_from", "Number of launches",
                                 is_counted ? "given" : "assumed; set it with --launch-count")),
        kprof_field_ns("launch_time", "Time for the passes of a launch, about", cost.launch_ms * 1e6),
        if_wanted(instructions, kprof_field_ns("launch_instruction_time", "Part of that for its instructions",
                                               (cost.launch_ms - others.launch_ms) * 1e6)),
        FURTHER(kprof_field_ns("batch_time", "Time for a batch beside its launches, about", cost.batch_ms * 1e6)),
        FURTHER(kprof_field_ns("start_time", "Time to start, about", cost.start_s * 1e9)),
        FURTHER(kprof_field_integer("batches", "Batches, about", cost.batch_count)),
        FURTHER(kprof_field_with("batch_counter_data", "Counter data of a batch, at most about",
                                 cost.batch_counter_bytes, "byte")),
        FURTHER(
            size_if(is_given, "allocated", "Memory that the application allocates", (double)workload->allocated_bytes)),
        FURTHER(kprof_field_text("allocated_from", "Size of that memory", source_of_size(workload, &cost))),
        FURTHER(kprof_field_with("device_memory", "Memory of the GPU", cost.device_bytes, "byte")),
        FURTHER(kprof_field_text("device_memory_from", "Which GPU",
                                 workload->device_bytes ? "the GPU here" : "the GPU whose prices these are")),
        FURTHER(size_if(is_known, "saved_per_batch", "Saved for a batch", cost.saved_bytes_per_batch)),
        FURTHER(kprof_field_text("saved_fits", "Space for copies", space_for_copies(&cost, is_known))),
        size_if(is_known, "saved", labels.saved, cost.saved_bytes),
        FURTHER(size_if(is_known, "restored", "Restored in all, about", cost.restored_bytes)),
        kprof_field_ns("total_time", labels.total, cost.total_s * 1e9),
        if_wanted(instructions, kprof_field_ns("total_instruction_time", "Part of that for instructions, about",
                                               (cost.total_s - others.total_s) * 1e9)),
        gpu_field(workload, &cost, gpu),
        FURTHER(kprof_field_ns("memory_time_per_gib",
                               is_known ? "For each GiB allocated, about" : "And for each GiB allocated, about",
                               cost.memory_s_per_gib * 1e9)),
    };
    show_record(emitter, fields, COUNT_OF(fields), options->verbose);
}

static void show_left_out(kprof_emitter *emitter, const kprof_plans *plans)
{
    kprof_list_begin(emitter, "left_out", "Left out, the most useful first", KPROF_LIST_TABLE, false);
    for (size_t i = 0; i < plans->count; i++) {
        const kprof_plan *plan = &plans->chips[i].plan;
        for (size_t k = 0; k < plan->left_out.count; k++) {
            kprof_emit_field fields[] = {
                kprof_field_text("chip", "Chip", plan->chip),
                kprof_field_text("metric", "Metric", plan->left_out.items[k]),
            };
            show_record(emitter, fields, COUNT_OF(fields), true);
        }
    }
    emitter->ops->list_end(emitter);
}

static void show_memory(kprof_emitter *emitter, bool all)
{
    static const char saved[] =
        "all device memory that the application has allocated when a batch begins; nothing, where one pass does";
    char beyond[128];
    snprintf(beyond, sizeof beyond,
             "where copies leave less than %g GiB free, launches are multiplexed; uniform memory takes no copies",
             KPROF_DEVICE_RESERVE_BYTES / 0x1p30);
    kprof_emit_field fields[] = {
        FURTHER(kprof_field_text("saved", "Saved", saved)),
        FURTHER(kprof_field_ns("save_time_per_gib", "Time to save a GiB, once for each batch",
                               kprof_prices.save_ms_per_gib * 1e6)),
        FURTHER(kprof_field_ns("restore_time_per_gib", "Time to restore a GiB, for each pass and at the end",
                               kprof_prices.restore_ms_per_gib * 1e6)),
        FURTHER(kprof_field_text("beyond", "But", beyond)),
    };
    kprof_list_begin(emitter, "memory", "Memory", KPROF_LIST_BLOCKS, false);
    show_record(emitter, fields, COUNT_OF(fields), all);
    emitter->ops->list_end(emitter);
}

#define TIME(key, label, ms) FURTHER(kprof_field_ns(key, label, (ms)*1e6))
static void show_prices(kprof_emitter *emitter, bool all)
{
    const kprof_price_list *prices = &kprof_prices;
    kprof_emit_field fields[] = {
        FURTHER(kprof_field_text("measured_on", "Measured on", prices->measured_on)),
        FURTHER(kprof_field_text("source", "Source", prices->source)),
        FURTHER(kprof_field_ns("start_time", "A process, to start", prices->start_s * 1e9)),
        TIME("room_time_per_mib", "A MiB of counter data that batches have room for", prices->room_ms_per_mib),
        TIME("slow_pass_time", "A launch in a pass that makes launches slow", prices->slow_pass_ms),
        TIME("other_pass_time", "A launch in another pass", prices->other_pass_ms),
        TIME("flush_time", "Flushing L2 by copying before it", prices->flush_ms),
        TIME("empty_time", "Emptying L2 and the caches of instructions before it, in a replay", prices->empty_ms),
        TIME("evaluation_time", "Evaluating a metric of a launch", prices->evaluation_ms),
        TIME("sm_pass_start_time", "A pass with counters of the SMs, to start and stop for a batch",
             prices->sm_pass_start_ms),
        TIME("pass_start_time", "Another pass, to start and stop for a batch", prices->other_pass_start_ms),
        TIME("instruction_time", "A launch with counters of its instructions (of an experiment)",
             prices->instruction_ms),
        TIME("sample_time", "A launch with samples of its instructions (of an experiment)", prices->sample_ms),
        TIME("sample_start_time", "Samples, to start and stop for a batch (of an experiment)", prices->sample_start_ms),
        TIME("timeline_time", "A launch in a pass of samples over time (of an experiment)", prices->timeline_ms),
        TIME("timeline_start_time", "Samples over time, to start and stop a pass for a batch (of an experiment)",
             prices->timeline_start_ms),
    };
    kprof_list_begin(emitter, "prices", "Prices", KPROF_LIST_BLOCKS, false);
    show_record(emitter, fields, COUNT_OF(fields), all);
    emitter->ops->list_end(emitter);
}

/* The content of the page of plans. */
typedef struct plan_content {
    const kprof_options *options;
    const kprof_plans *plans;
} plan_content;

static kprof_status print_plans(const kprof_page_context *context)
{
    const plan_content *content = context->content;
    kprof_emitter *emitter = kprof_page_begin(context);
    kprof_list_begin(emitter, "plans", "Plan", KPROF_LIST_BLOCKS, false);
    for (size_t i = 0; i < content->plans->count; i++)
        show_plan(emitter, content->options, &content->plans->limits.workload, &content->plans->chips[i]);
    emitter->ops->list_end(emitter);
    show_left_out(emitter, content->plans);
    show_memory(emitter, content->options->verbose);
    show_prices(emitter, content->options->verbose);
    return kprof_page_end(emitter, KPROF_OK);
}

/* The application need not be here, but "kprof plan full" names none. */
static kprof_status check_application(const kprof_options *options)
{
    KPROF_AUTO_FREE char *program = options->application ? kprof_program_find(options->application[0]) : NULL;
    const bool is_named = options->application && strcmp(options->application[-1], "--") == 0;
    return !options->application || program || is_named ? KPROF_OK : kprof_program_word_check(options);
}

int kprof_cmd_plan(const kprof_options *options)
{
    static const kprof_page_row page = {"plan", 0, print_plans, NULL};
    KPROF_AUTO(kprof_plans) plans = {0};
    kprof_chips chips = {0};
    kprof_status status = check_application(options);
    KPROF_THEN(status, kprof_chips_named(options, &chips));
    KPROF_THEN(status, kprof_plans_make_for(options, &chips.names, chips.device_bytes, &plans));
    kprof_strlist_free(&chips.names);
    KPROF_THEN(status,
               kprof_results_show(options, &page, &(kprof_page_input){.content = &(plan_content){options, &plans}}));
    return kprof_status_exit_code(status);
}
