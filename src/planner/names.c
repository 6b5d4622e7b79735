/* Finds the metrics that the range profiler can collect. CUPTI tells by taking or refusing a whole list of names, at
 * about a millisecond a call, so names are tried in groups and a refused group is halved. Answers are remembered. */
#include "planner/nvpw.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A counter of the context that every chip has: NVLink and PCIe counters are taken alone, but not beside it. */
#define COMPANION "sm__cycles_elapsed.max"

/* CUPTI takes a millisecond for a short list and up to half a second for a long one: what is kept on disk. */
#define WORTH_KEEPING_COUNT 32

/* Names that are tried together at first: one of a long list that is refused has long lists halved. */
#define GROUP_COUNT 128

/* A node of the host's tree of names. */
typedef struct known_name {
    const char *name;
    bool can;
} known_name;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const known_name *)a)->name, ((const known_name *)b)->name);
}

static void remember(kprof_host *host, const char *name, bool can)
{
    size_t size = strlen(name) + 1;
    known_name *entry = malloc(sizeof(*entry) + size);
    if (!entry)
        return; /* only forgotten: asked again, CUPTI answers again */
    *entry = (known_name){memcpy(entry + 1, name, size), can};
    known_name *const *kept = tsearch(entry, &host->known_names, compare_names);
    if (!kept || *kept != entry)
        free(entry);
}

static const known_name *recall(const kprof_host *host, const char *name)
{
    known_name *const *found = tfind(&(known_name){name, false}, &host->known_names, compare_names);
    return found ? *found : NULL;
}

void kprof_known_names_free(void *known_names)
{
    tdestroy(known_names, free);
}

/* Halve until every name is known; `names` has room for the companion in front. Depth is the logarithm of the
 * count. False when an answer is not to be relied on later. */
static bool check_group(kprof_host *host, const char **names, size_t count)
{
    const char *saved = names[-1];
    names[-1] = COMPANION;
    bool certain = true, taken = kprof_host_takes(host, names - 1, count + 1, &certain);
    names[-1] = saved;
    if (taken || count == 1) {
        for (size_t i = 0; i < count; i++)
            remember(host, names[i], taken);
        return certain;
    }
    certain = check_group(host, names, count / 2);
    return check_group(host, names + count / 2, count - count / 2) && certain;
}

/* False when an answer is not to be relied on later. */
static bool check_groups(kprof_host *host, const char **names, size_t count)
{
    bool certain = true;
    for (size_t i = 0; i < count; i += GROUP_COUNT)
        certain = check_group(host, names + i, count - i < GROUP_COUNT ? count - i : GROUP_COUNT) && certain;
    return certain;
}

/* Remember the answers of an earlier run: one byte a name, 0 or 1. */
static bool recall_group(const kprof_host_question *question, kprof_host *host)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    const kprof_strlist *names = question->names;
    bool found = kprof_host_recall(question, &answers) && answers.length == names->count;
    for (size_t i = 0; i < names->count && found; i++)
        found = answers.data[i] == 0 || answers.data[i] == 1;
    for (size_t i = 0; i < names->count && found; i++)
        remember(host, names->items[i], answers.data[i] == 1);
    kprof_strbuf_free(&answers);
    return found;
}

static void keep_group(const kprof_host_question *question)
{
    kprof_strbuf answers = KPROF_STRBUF_INIT;
    const known_name *entry;
    for (size_t i = 0; i < question->names->count && (entry = recall(question->host, question->names->items[i])); i++)
        kprof_strbuf_append(&answers, &(char){(char)entry->can}, 1);
    if (answers.length == question->names->count && !answers.failed)
        kprof_host_keep(question, answers.data, answers.length);
    kprof_strbuf_free(&answers);
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    const char **group = calloc(names->count + 1, sizeof(*group)); /* with room for the companion in front */
    if (!group)
        return KPROF_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        if (recall(host, name))
            continue;
        if (name[kprof_metric_base_length(name)] && kprof_host_has_metric(host, name))
            group[1 + count++] = name;
        else
            remember(host, name, false); /* a base name alone has properties but is no value */
    }
    kprof_strlist asked = {(char **)group + 1, count, count};
    kprof_host_question question = {host, "collectable", &asked};
    bool worth_keeping = count >= WORTH_KEEPING_COUNT;
    if (count > 0 && !(worth_keeping && recall_group(&question, host)) && check_groups(host, group + 1, count) &&
        worth_keeping)
        keep_group(&question);
    free(group);
    return KPROF_OK;
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    char *items[] = {(char *)name};
    if (!recall(host, name) && kprof_host_check(host, &(kprof_strlist){items, 1, 1}) != KPROF_OK)
        return false;
    const known_name *known = recall(host, name);
    return known && known->can;
}
