/* The table of the metrics of single instructions. libnvperf_host has the names, per chip for those that CUPTI counts
 * for whole kernels too; what ncu calls them is what its source page and its documentation say. */
#include "metricset/instruction.h"

#include "core/log.h"
#include "core/regex.h"

#include <stdio.h>
#include <string.h>

#define COUNTER(name, ncu, label, unit, help)                                                                          \
    {KPROF_INSTRUCTION_COUNTER, name, KPROF_INSTRUCTION_PREFIX name, ncu, label, unit, help, {NULL}},
#define COMPUTED(name, label, unit, help, ...)                                                                         \
    {KPROF_INSTRUCTION_COMPUTED, name, name, NULL, label, unit, help, {__VA_ARGS__, NULL}},
#define OF_SAMPLES(name, label, unit, help)                                                                            \
    {KPROF_INSTRUCTION_COMPUTED, KPROF_SAMPLE_PREFIX name, KPROF_SAMPLE_PREFIX name, NULL, label, unit, help, {NULL}},
#define SAMPLE(name, label, help) {KPROF_INSTRUCTION_SAMPLE, name, name, NULL, label, "sample", help, {NULL}},
#define REASON(name, people, column, unissued, notation, help)                                                         \
    SAMPLE(KPROF_STALL_PREFIX name, "stall_" column, help)                                                             \
    SAMPLE(KPROF_STALL_PREFIX name KPROF_STALL_SUFFIX, "stall_" column " (Not Issued)",                                \
           help ", in a cycle in which its scheduler issued no instruction")
#define MEMDESC "smsp__sass_inst_executed_memdesc_explicit_"

#define INST                "smsp__sass_inst_executed"
#define THREAD_INST         "smsp__sass_thread_inst_executed"
#define THREAD_INST_TRUE    "smsp__sass_thread_inst_executed_pred_on"
#define SECTORS             "smsp__sass_sectors_mem_global"
#define WAVEFRONTS          "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared"
#define IDEAL               "_ideal"
#define PREDICATED_THREADS  "Threads for which the predicate of the instruction was true"
#define SECTORS_HELP        "Sectors of 32 bytes of global memory that the addresses of the warps' threads lie in"
#define WAVEFRONTS_HELP     "Turns that accesses to shared memory take"
#define POLICY(kind, event) "Instructions with a descriptor of memory whose policy on a " kind " is " event

static const kprof_instruction_metric rows[] = {
    /* clang-format off */
    COUNTER(INST, "inst_executed", "Instructions Executed", "inst", "Times that a warp executed the instruction")
    COUNTER(THREAD_INST, "thread_inst_executed", "Thread Instructions Executed", "inst",
            "Threads that were active when their warp executed it, added up")
    COUNTER(THREAD_INST_TRUE, "thread_inst_executed_true", "Predicated-On Thread Instructions Executed", "inst",
            PREDICATED_THREADS ", added up")
    COUNTER("smsp__sass_branch_targets_threads_divergent", "smsp__branch_targets_threads_divergent",
            "Divergent Branches", "branch_target", "Times that only some of a warp's threads took the branch")
    COUNTER("smsp__sass_branch_targets_threads_uniform", "smsp__branch_targets_threads_uniform", "Uniform Branches",
            "branch_target", "Times that all of a warp's threads went the same way")
    COUNTER("smsp__sass_inst_executed_op_branch", "branch_inst_executed", "Branch Instructions Executed", "inst",
            "Times that a warp executed the branch")
    COUNTER(SECTORS, "memory_l2_theoretical_sectors_global", "L2 Theoretical Sectors Global", "sector",
            SECTORS_HELP "; what L1 has of them is not read from L2")
    COUNTER(SECTORS IDEAL, "memory_l2_theoretical_sectors_global_ideal", "L2 Theoretical Sectors Global Ideal",
            "sector", "Sectors that would do, if the threads' bytes lay side by side")
    COUNTER("smsp__sass_l1tex_tags_mem_global", "memory_l1_tag_requests_global", "L1 Tag Requests Global", "tag",
            "Cache lines of L1 that accesses to global memory ask for")
    COUNTER(WAVEFRONTS, "memory_l1_wavefronts_shared", "L1 Wavefronts Shared", "wavefront", WAVEFRONTS_HELP)
    COUNTER(WAVEFRONTS IDEAL, "memory_l1_wavefronts_shared_ideal", "L1 Wavefronts Shared Ideal", "wavefront",
            WAVEFRONTS_HELP " at least, without bank conflicts")
    COUNTER("smsp__sass_sectors_mem_local", "memory_l2_theoretical_sectors_local", "L2 Theoretical Sectors Local",
            "sector", "Sectors of local memory: registers that were spilled, and arrays of a thread")
    COUNTER("smsp__sass_inst_executed_op_atom", NULL, "Atomics Executed", "inst",
            "Times that a warp executed the atomic operation that returns a value")
    COUNTER("smsp__sass_inst_executed_op_global_red", NULL, "Reductions Executed", "inst",
            "Times that a warp executed the atomic operation on global memory that returns nothing")
    COUNTER("smsp__sass_thread_inst_executed_op_fp64_pred_on", NULL, "FP64 Thread Instructions Executed", "inst",
            PREDICATED_THREADS ", of instructions in double precision")
    COUNTER(MEMDESC "hitprop_evict_first", NULL, "L2 Explicit Hit Policy Evict First", "inst",
            POLICY("hit", "evict first"))
    COUNTER(MEMDESC "hitprop_evict_last", NULL, "L2 Explicit Hit Policy Evict Last", "inst",
            POLICY("hit", "evict last"))
    COUNTER(MEMDESC "hitprop_evict_normal", NULL, "L2 Explicit Hit Policy Evict Normal", "inst",
            POLICY("hit", "evict normal"))
    COUNTER(MEMDESC "hitprop_evict_normal_demote", NULL, "L2 Explicit Hit Policy Evict Normal Demote", "inst",
            POLICY("hit", "evict normal demote"))
    COUNTER(MEMDESC "missprop_evict_first", NULL, "L2 Explicit Miss Policy Evict First", "inst",
            POLICY("miss", "evict first"))
    COUNTER(MEMDESC "missprop_evict_normal", NULL, "L2 Explicit Miss Policy Evict Normal", "inst",
            POLICY("miss", "evict normal"))

    KPROF_STALL_REASONS(REASON)

    COMPUTED("derived__memory_l2_theoretical_sectors_global_excessive", "L2 Theoretical Sectors Global Excessive",
             "sector", "Sectors beyond those that the threads' bytes need", SECTORS, SECTORS IDEAL)
    COMPUTED("derived__memory_l1_wavefronts_shared_excessive", "L1 Wavefronts Shared Excessive", "wavefront",
             "Turns beyond those that the accesses need without bank conflicts", WAVEFRONTS, WAVEFRONTS IDEAL)
    COMPUTED("derived__memory_l1_conflicts_shared_nway", "L1 Conflicts Shared N-Way", "",
             "Wavefronts of each execution", WAVEFRONTS, INST)
    COMPUTED("derived__avg_thread_executed", "Avg. Threads Executed", "thread", "Active threads of each execution",
             THREAD_INST, INST)
    COMPUTED("derived__avg_thread_executed_true", "Avg. Predicated-On Threads Executed", "thread",
             PREDICATED_THREADS ", in each execution", THREAD_INST_TRUE, INST)
    COMPUTED("derived__avg_thread_unexecuted_true", "Avg. Predicated-On Threads Unexecuted", "thread",
             "Threads of the warp that did nothing, in each execution: they were not active, or their predicate was "
             "false",
             THREAD_INST_TRUE, INST)
    COMPUTED("memory_type", "Address Space", "", "Memory that the instruction accesses, from its text", INST)
    COMPUTED("memory_access_type", "Access Operation", "", "Load, store or atomic operation, from its text", INST)
    COMPUTED("memory_access_size_type", "Access Size", "bit", "Size of a thread's access, from its text", INST)
    OF_SAMPLES("sample_count", "# Samples", "sample", "Samples with any reason")
    OF_SAMPLES("interval", "Sampling Interval", "", "Cycles between samples, as a power of two")
    OF_SAMPLES("interval_cycles", "Sampling Interval", "cycle", "Cycles between samples of an SM")
    OF_SAMPLES("sample_buffer_full", "Dropped Samples", "sample",
             "Samples that the buffer had no space for")
    {0},
    /* clang-format on */
};

const kprof_instruction_metric *const kprof_instruction_metrics = rows;

/* ncu's groups of samples. */
static const char *const groups[] = {KPROF_SAMPLE_PREFIX "warp_stall_reasons",
                                     KPROF_SAMPLE_PREFIX "warp_stall_reasons_not_issued"};

const kprof_instruction_metric *kprof_instruction_metric_find(const char *name)
{
    for (const kprof_instruction_metric *row = rows; row->name; row++)
        if (strcmp(row->name, name) == 0 || (row->ncu && strcmp(row->ncu, name) == 0))
            return row;
    return NULL;
}

/* Labels that pages have, with the metric or, where there is none, a help. */
static const struct {
    const char *label, *name, *help;
} labels[] = {
    {"Samples", KPROF_SAMPLE_PREFIX "sample_count", NULL},
    {"Not issued", NULL, "Samples of cycles in which the warp's scheduler issued no instruction"},
    {"Instructions", INST, NULL},
    {"Thread instructions", THREAD_INST, NULL},
    {"Predicated on", THREAD_INST_TRUE, NULL},
    {"Threads", "derived__avg_thread_executed", NULL},
    {"Threads on", "derived__avg_thread_executed_true", NULL},
    {"Threads off", "derived__avg_thread_unexecuted_true", NULL},
    {"Divergent branches", "smsp__sass_branch_targets_threads_divergent", NULL},
    {"L1 tag requests", "smsp__sass_l1tex_tags_mem_global", NULL},
    {"Shared ways", "derived__memory_l1_conflicts_shared_nway", NULL},
    {"Bank conflicts", "derived__memory_l1_wavefronts_shared_excessive", NULL},
    {"Shared wavefronts", WAVEFRONTS, NULL},
    {"Ideal wavefronts", WAVEFRONTS IDEAL, NULL},
    {"Excess sectors", "derived__memory_l2_theoretical_sectors_global_excessive", NULL},
    {"L2 sectors", SECTORS, NULL},
    {"Ideal sectors", SECTORS IDEAL, NULL},
    {"Local sectors", "smsp__sass_sectors_mem_local", NULL},
    {"Atomics", NULL, "Times that a warp executed an atomic operation, whether or not it returns a value"},
    {"FP64 thread instructions", "smsp__sass_thread_inst_executed_op_fp64_pred_on", NULL},
    {"Evict first on hit", MEMDESC "hitprop_evict_first", NULL},
    {"Evict last on hit", MEMDESC "hitprop_evict_last", NULL},
    {"Evict normal on hit", MEMDESC "hitprop_evict_normal", NULL},
    {"Demote on hit", MEMDESC "hitprop_evict_normal_demote", NULL},
    {"Evict first on miss", MEMDESC "missprop_evict_first", NULL},
    {"Evict normal on miss", MEMDESC "missprop_evict_normal", NULL},
};

static size_t find_label(const char *label)
{
    for (size_t i = 0; i < COUNT_OF(labels); i++) {
        const char *rest = kprof_after_words(labels[i].label, label);
        if (rest && *rest == '\0')
            return i;
    }
    return COUNT_OF(labels);
}

const kprof_instruction_metric *kprof_instruction_of_label(const char *label)
{
    const size_t at = find_label(label);
    return at < COUNT_OF(labels) && labels[at].name ? kprof_instruction_metric_find(labels[at].name) : NULL;
}

const char *kprof_instruction_label_help(const char *label)
{
    const size_t at = find_label(label);
    const kprof_instruction_metric *metric = kprof_instruction_of_label(label);
    return metric ? metric->help : at < COUNT_OF(labels) ? labels[at].help : NULL;
}

bool kprof_instruction_can_add(const kprof_instruction_metric *metric)
{
    return metric->kind != KPROF_INSTRUCTION_COMPUTED || kprof_ends_with(metric->name, "_excessive");
}

static bool counter_is_on(kprof_host *host, const char *name)
{
    char real[128];
    /* CUPTI counts these of kernels but, on an H200, declines them for instructions. */
    if (strcmp(kprof_host_chip(host), "GH100") == 0 &&
        strcmp(name, "smsp__sass_thread_inst_executed_op_fp64_pred_on") == 0)
        return false;
    if (!kprof_ends_with(name, IDEAL))
        return kprof_host_has_metric(host, name);
    snprintf(real, sizeof real, "%.*s", (int)(strlen(name) - strlen(IDEAL)), name);
    return kprof_host_has_metric(host, real);
}

bool kprof_instruction_metric_on(kprof_host *host, const kprof_instruction_metric *metric)
{
    bool is_on = metric->kind != KPROF_INSTRUCTION_COUNTER || counter_is_on(host, metric->name);
    for (size_t i = 0; metric->needs[i]; i++)
        is_on = is_on && counter_is_on(host, metric->needs[i]);
    return is_on;
}

void kprof_instruction_wish_free(kprof_instruction_wish *wish)
{
    kprof_strlist_free(&wish->counters);
    wish->samples = false;
}

size_t kprof_instruction_passes(const kprof_instruction_wish *wish)
{
    return (size_t)(wish->counters.count > 0) + wish->samples;
}

/* The number of the group that the word names, or -1. */
static int find_group(const char *word)
{
    const char *name = kprof_after(word, "group:");
    for (size_t i = 0; name && i < COUNT_OF(groups); i++)
        if (strcmp(groups[i], name) == 0)
            return (int)i;
    return -1;
}

/* The row of a word without a prefix. Names that a launch has too need the prefix. */
static const kprof_instruction_metric *find_plain(const char *word)
{
    const kprof_instruction_metric *row = kprof_instruction_metric_find(word);
    return row && (row->kind != KPROF_INSTRUCTION_COUNTER || strcmp(row->name, word) != 0) ? row : NULL;
}

const kprof_instruction_metric *kprof_instruction_of_word(const char *word)
{
    const char *name = kprof_after(word, KPROF_INSTRUCTION_PREFIX);
    return name ? kprof_instruction_metric_find(name) : find_plain(word);
}

bool kprof_instruction_is_word(const char *word)
{
    return kprof_begins_with(word, KPROF_INSTRUCTION_PREFIX) || find_group(word) >= 0 || find_plain(word);
}

bool kprof_instruction_is_of_launch(const char *name)
{
    return kprof_begins_with(name, KPROF_SAMPLE_PREFIX) && !kprof_begins_with(name, KPROF_STALL_PREFIX);
}

static void select_group(int group, kprof_strlist *out)
{
    for (const kprof_instruction_metric *row = rows; row->name; row++)
        if (row->kind == KPROF_INSTRUCTION_SAMPLE && kprof_ends_with(row->name, "_not_issued") == (group == 1))
            kprof_strlist_add_unique(out, row->word);
}

static kprof_status fail_unknown(kprof_host *host, const char *name)
{
    const char *names[2 * COUNT_OF(rows)];
    size_t count = 0;
    for (const kprof_instruction_metric *row = rows; row->name; row++) {
        names[count++] = row->name;
        if (row->ncu)
            names[count++] = row->ncu;
    }
    const char *nearest = kprof_nearest(name, names, count);
    KPROF_AUTO_FREE char *meant = kprof_regex_meant(name);
    if (meant)
        return kprof_fail(KPROF_UNKNOWN_NAME,
                          "metric \"%s\" of instructions is not known on %s; did you mean "
                          "\"regex:^" KPROF_INSTRUCTION_PREFIX ".*(?:%s)\"?",
                          name, kprof_host_label(host), meant + (*meant == '^'));
    return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" of instructions is not known on %s%s%s%s", name,
                      kprof_host_label(host), nearest ? "; did you mean \"" KPROF_INSTRUCTION_PREFIX : "",
                      nearest ? nearest : "; kprof list metrics --metrics regex:^source: shows those that are known",
                      nearest ? "\"?" : "");
}

/* Any counter of patched code that the chip has for whole kernels. */
static bool is_further_counter(kprof_host *host, const char *name)
{
    return kprof_begins_with(name, "smsp__sass_") && !kprof_begins_with(name, "smsp__sass_average_") &&
           name[kprof_metric_base_length(name)] == '\0' && kprof_host_has_metric(host, name);
}

kprof_status kprof_instruction_select(kprof_host *host, const char *word, kprof_strlist *out)
{
    const char *name = kprof_after(word, KPROF_INSTRUCTION_PREFIX);
    const kprof_instruction_metric *row = kprof_instruction_of_word(word);
    const int group = find_group(word);
    if (group >= 0) {
        select_group(group, out);
        return KPROF_OK;
    }
    if (row && !kprof_instruction_metric_on(host, row))
        return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" of instructions is not known on %s, which cannot count it",
                          row->name, kprof_host_label(host));
    if (!row && !is_further_counter(host, name ? name : word))
        return fail_unknown(host, name ? name : word);
    kprof_strlist_add_unique(out, row ? row->word : word);
    return KPROF_OK;
}

void kprof_instruction_wish_add(kprof_host *host, const char *word, kprof_instruction_wish *out)
{
    const char *name = kprof_after(word, KPROF_INSTRUCTION_PREFIX);
    const kprof_instruction_metric *row = kprof_instruction_of_word(word);
    const char *const own[] = {row ? row->name : name, NULL};
    const char *const *needs = !row || row->kind == KPROF_INSTRUCTION_COUNTER ? own : row->needs;
    for (size_t i = 0; needs[i]; i++)
        if (counter_is_on(host, needs[i]))
            kprof_strlist_add_unique(&out->counters, needs[i]);
    out->samples = out->samples || !needs[0];
}
