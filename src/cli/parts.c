/* A plan is two files: the configuration that processes read, and a report that has the plan and nothing measured.
 * kprof makes the reports of launches from that, and reads the spools from their beginning for each, as kprof recover
 * does. Parts that have ended stay in their list until all processes have followed. */
#include "cli/parts.h"
#include "cli/begin.h"
#include "cli/paths.h"
#include "cli/spools.h"
#include "core/clean.h"
#include "core/control.h"
#include "core/log.h"
#include "report/model/change.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAFT "report.kprof.plan"

typedef struct kprof_open_part {
    kprof_part part;    /* its process ids are owned */
    char *path;         /* of its report; NULL: none is asked for */
    bool overwrites;    /* a file of that name */
    const void *closer; /* NULL: it is open */
} open_part;

void kprof_parts_free(kprof_parts *parts)
{
    kprof_strlist_free(&parts->wanted);
    free(parts->items);
}

static void describe_list(const char *what, const kprof_strlist *words, kprof_strbuf *out)
{
    for (size_t i = 0; i < words->count; i++)
        kprof_strbuf_printf(out, "%s %s\n", what, words->items[i]);
}

/* Lines that ask for the same have the same text. */
static char *describe(const kprof_selection *selection)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    describe_list("set", &selection->sets, &text);
    describe_list("section", &selection->sections, &text);
    describe_list("metrics", &selection->metrics, &text);
    return kprof_strbuf_take(&text);
}

static void name_seed(uint32_t plan, char *out, size_t size)
{
    if (plan == 0)
        snprintf(out, size, KPROF_SESSION_SEED);
    else
        snprintf(out, size, KPROF_SESSION_SEED ".%u", plan);
}

static kprof_status keep_seed(const kprof_parts *parts, const kprof_options *options, const kprof_plans *plans,
                              uint32_t number)
{
    char draft[PATH_MAX + 64], seed[PATH_MAX + 64], name[64];
    kprof_report *report = NULL;
    const char *dir = parts->run.session->dir;
    name_seed(number, name, sizeof name);
    snprintf(draft, sizeof draft, "%s/" DRAFT, dir);
    snprintf(seed, sizeof seed, "%s/%s", dir, name);
    kprof_status status = kprof_report_begin_run(
        options, plans, &(kprof_report_target){draft, KPROF_CREATE_NEW, "default", NULL}, &report);
    KPROF_THEN(status, kprof_report_keep_seed(report, seed));
    kprof_report_discard(report);
    return status;
}

#define WHY_NOT                                                                                                        \
    "single instructions are measured in code that is kept from the start, and counted by the same metrics in all of " \
    "a run"

/* Leave single instructions out where the run was not started for them; USAGE where nothing else was asked for. */
static kprof_status settle_instructions(const kprof_parts *parts, kprof_plans *plans)
{
    const kprof_instruction_wish *wanted = &plans->instructions, *kept = &parts->run.plans->instructions;
    const bool measures = kept->samples || kept->counters.count > 0;
    size_t others = 0;
    /* CUPTI counts instructions by one configuration in a process. */
    const bool may =
        (wanted->counters.count == 0 || wanted->counters.count == kept->counters.count) &&
        KPROF_ALL(i, wanted->counters.count, strcmp(wanted->counters.items[i], kept->counters.items[i]) == 0);
    if (may && (measures || (!wanted->samples && wanted->counters.count == 0)))
        return KPROF_OK;
    for (size_t i = 0; i < plans->count; i++) {
        const kprof_strlist *collect = &plans->chips[i].plan.collect;
        others += collect->count - kprof_strlist_contains(collect, KPROF_TIME_METRIC); /* which goes with them */
    }
    if (others == 0)
        return kprof_fail(KPROF_USAGE, WHY_NOT ": give such a set, section or metric to kprof --armed no, too");
    kprof_log(KPROF_LOG_WARNING, WHY_NOT ", so that they are left out here: they are measured where kprof --armed no "
                                         "is given such a set, section or metric, too");
    for (size_t i = 0; i < plans->count; i++)
        kprof_instruction_wish_free(&plans->chips[i].plan.instructions);
    kprof_instruction_wish_free(&plans->instructions);
    return KPROF_OK;
}

/* As the run's own options say, but for what is collected. */
static kprof_status make_plan(const kprof_parts *parts, const kprof_selection *wanted, uint32_t number)
{
    kprof_options options = *parts->run.options;
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_plans) plans = {0};
    options.selection = *wanted;
    options.selection.limits = parts->run.options->selection.limits;
    for (size_t i = 0; i < parts->run.plans->count; i++)
        kprof_strlist_add(&chips, parts->run.plans->chips[i].plan.chip);
    kprof_status status =
        kprof_plans_make_for(&options, &chips, parts->run.plans->limits.workload.device_bytes, &plans);
    KPROF_THEN(status, settle_instructions(parts, &plans));
    kprof_config config;
    kprof_plans_config(&plans, &options, &config);
    char name[64];
    snprintf(name, sizeof name, KPROF_CONTROL_CONFIG, number);
    KPROF_THEN(status, kprof_config_save_as(&config, parts->run.session->dir, name));
    free(config.chips);
    return KPROF_THEN(status, keep_seed(parts, &options, &plans, number));
}

kprof_status kprof_parts_plan(kprof_parts *parts, const kprof_options *wanted, uint32_t *plan)
{
    KPROF_AUTO_FREE char *text = describe(&wanted->selection);
    kprof_status status = KPROF_OK;
    *plan = 0;
    for (size_t i = 0; i < parts->wanted.count && *plan == 0; i++)
        *plan = strcmp(parts->wanted.items[i], text) == 0 ? (uint32_t)i + 1 : 0;
    const bool is_new = *text && *plan == 0;
    if (is_new && parts->wanted.count + 1 == KPROF_CONTROL_PLANS)
        status =
            kprof_fail(KPROF_USAGE, "this run has been asked for %d selections of sets and metrics; it takes no more",
                       KPROF_CONTROL_PLANS - 1);
    else if (is_new)
        status = make_plan(parts, &wanted->selection, (uint32_t)parts->wanted.count + 1);
    if (is_new && status == KPROF_OK) {
        kprof_strlist_add(&parts->wanted, text);
        *plan = (uint32_t)parts->wanted.count;
    }
    return status;
}

/* It has followed and lives: the part has all that it did. */
static void take_whole(void *report, const kprof_spools_process *process)
{
    kprof_report_set_whole(report, process->pid);
}

/* Progress goes nowhere: the messages of the processes were shown before. */
static kprof_status store(const kprof_parts *parts, const kprof_part *part, kprof_report *report)
{
    kprof_progress progress = {.out = NULL};
    kprof_spools *spools = kprof_spools_new(parts->run.session, report, &progress);
    kprof_spools_choose(spools, &(kprof_spools_choice){part->plan, part->first_turn, part->pids});
    kprof_status status = kprof_spools_poll(spools);
    kprof_spools_visit(spools, take_whole, report);
    kprof_spools_free(spools);
    const kprof_code_options code = kprof_code_options_of(parts->run.options, parts->run.session);
    return KPROF_THEN(status, kprof_report_read_code(report, &code));
}

/* Make a report of a part, from all that processes have written so far, and tell where it is. */
static kprof_status make_report(const kprof_parts *parts, const open_part *part, kprof_strbuf *out)
{
    kprof_report *report = NULL;
    char seed[64];
    KPROF_AUTO_FREE char *path = NULL;
    kprof_report_target to = {.seed = seed};
    const kprof_options wanted = {.export_path = part->path, .force_overwrite = part->overwrites};
    if (!part->path)
        return KPROF_OK;
    name_seed(part->part.plan, seed, sizeof seed);
    kprof_status status = kprof_export_path_claim(&wanted, &path, &to.mode);
    to.path = path;
    KPROF_THEN(status, kprof_report_begin_again(parts->run.options, parts->run.session, &to, &report));
    KPROF_THEN(status, store(parts, &part->part, report));
    if (status == KPROF_OK)
        status = kprof_report_close(report);
    else
        kprof_report_discard(report);
    KPROF_AUTO_FREE char *shown = kprof_clean_text(path); /* one line of the answer */
    if (status == KPROF_OK && out)
        kprof_strbuf_printf(out, "report %s\n", shown ? shown : "");
    else if (status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "report: %s", path);
    return status;
}

static void set_path(open_part *part, const kprof_options *options)
{
    free(part->path);
    part->path = options->export_path ? kprof_strdup(options->export_path) : NULL;
    part->overwrites = options->force_overwrite;
}

void kprof_parts_begin(kprof_parts *parts, const kprof_part *part, const kprof_options *options)
{
    open_part *added = KPROF_ADD(parts->items, parts->count);
    *added = (open_part){.part = {part->plan, part->first_turn, {NULL, 0}}};
    for (size_t i = 0; i < part->pids.count; i++)
        kprof_pids_add(&added->part.pids, part->pids.items[i]);
    set_path(added, options);
}

void kprof_parts_forget(kprof_parts *parts, uint32_t turn)
{
    size_t left = 0;
    for (size_t i = 0; i < parts->count; i++) {
        open_part *part = &parts->items[i];
        if (part->part.first_turn == turn)
            KPROF_FREE(part->path, part->part.pids.items);
        else
            parts->items[left++] = *part;
    }
    parts->count = left;
}

bool kprof_parts_promise(const kprof_parts *parts, const char *path)
{
    return KPROF_ANY(i, parts->count, parts->items[i].path && strcmp(parts->items[i].path, path) == 0);
}

/* Are all processes of a part among these? No ids stand for all processes. */
static bool is_within(const kprof_pids *part, const kprof_pids *whom)
{
    return whom->count == 0 || (part->count > 0 && KPROF_ALL(i, part->count, kprof_pids_have(whom, part->items[i])));
}

void kprof_parts_end(kprof_parts *parts, const kprof_pids *whom, const void *closer)
{
    for (size_t i = 0; i < parts->count; i++)
        if (!parts->items[i].closer && is_within(&parts->items[i].part.pids, whom))
            parts->items[i].closer = closer;
}

kprof_status kprof_parts_name(kprof_parts *parts, const kprof_pids *whom, const kprof_options *options)
{
    open_part *found = NULL;
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) {
        const kprof_pids *pids = &parts->items[i].part.pids;
        const bool overlaps =
            pids->count == 0 || whom->count == 0 || KPROF_ANY(k, pids->count, kprof_pids_have(whom, pids->items[k]));
        if (parts->items[i].closer || !overlaps)
            continue;
        found = &parts->items[i];
        count++;
    }
    if (count == 0)
        return kprof_fail(KPROF_USAGE, "kprof ctl stop -o: nothing was started");
    if (count > 1)
        return kprof_fail(KPROF_USAGE,
                          "kprof ctl stop -o: %zu starts would end; name their reports by kprof ctl start -o", count);
    const kprof_part part = {found->part.plan, found->part.first_turn, *whom};
    if (is_within(&found->part.pids, whom))
        set_path(found, options);
    else
        kprof_parts_begin(parts, &part, options);
    return KPROF_OK;
}

kprof_status kprof_parts_make(kprof_parts *parts, const void *closer, kprof_strbuf *out)
{
    kprof_status result = KPROF_OK;
    size_t left = 0;
    for (size_t i = 0; i < parts->count; i++) {
        open_part *part = &parts->items[i];
        if (part->closer != closer) {
            parts->items[left++] = *part;
            continue;
        }
        kprof_status status = make_report(parts, part, out);
        result = status == KPROF_OK ? result : status;
        parts->lost = part->part.plan > 0 && parts->lost == KPROF_OK ? status : parts->lost;
        KPROF_FREE(part->path, part->part.pids.items);
    }
    parts->count = left;
    return result;
}
