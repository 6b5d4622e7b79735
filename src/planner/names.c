/* Finds the metrics that the range profiler can collect. CUPTI tells by taking or refusing a whole list of names, at
 * about a millisecond a call, so names are tried in groups and a refused group is halved. Answers are remembered. */
#include "planner/nvpw.h"

#include <stdlib.h>
#include <string.h>

/* A counter of the context that every chip has: NVLink and PCIe counters are taken alone, but not beside it. */
#define COMPANION "sm__cycles_elapsed.max"

/* CUPTI takes a millisecond for a short list and up to half a second for a long one: what is kept on disk. */
#define WORTH_KEEPING_COUNT 32

typedef struct memo_entry {
    char *name;
    bool can;
} memo_entry;

struct kprof_name_memo {
    memo_entry *entries; /* open addressing; [capacity], a power of two */
    size_t count, capacity;
};

static size_t hash_name(const char *name)
{
    size_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static memo_entry *find_slot(const memo_entry *entries, size_t capacity, const char *name)
{
    size_t i = hash_name(name) & (capacity - 1);
    while (entries[i].name && strcmp(entries[i].name, name) != 0)
        i = (i + 1) & (capacity - 1);
    return (memo_entry *)&entries[i];
}

static bool grow_memo(kprof_name_memo *memo)
{
    size_t capacity = memo->capacity ? memo->capacity * 2 : 1024;
    memo_entry *entries = calloc(capacity, sizeof(*entries));
    if (!entries)
        return false;
    for (size_t i = 0; i < memo->capacity; i++) {
        if (memo->entries[i].name)
            *find_slot(entries, capacity, memo->entries[i].name) = memo->entries[i];
    }
    free(memo->entries);
    memo->entries = entries;
    memo->capacity = capacity;
    return true;
}

static void remember(kprof_host *host, const char *name, bool can)
{
    if (!host->memo)
        host->memo = calloc(1, sizeof(*host->memo));
    kprof_name_memo *memo = host->memo;
    if (!memo || (memo->count * 2 >= memo->capacity && !grow_memo(memo)))
        return; /* only forgotten: asked again, CUPTI answers again */
    memo_entry *slot = find_slot(memo->entries, memo->capacity, name);
    if (slot->name)
        return;
    char *copy = strdup(name);
    if (!copy)
        return;
    *slot = (memo_entry){copy, can};
    memo->count++;
}

static const memo_entry *recall(const kprof_host *host, const char *name)
{
    if (!host->memo || !host->memo->capacity)
        return NULL;
    const memo_entry *slot = find_slot(host->memo->entries, host->memo->capacity, name);
    return slot->name ? slot : NULL;
}

void kprof_name_memo_free(kprof_name_memo *memo)
{
    if (!memo)
        return;
    for (size_t i = 0; i < memo->capacity; i++)
        free(memo->entries[i].name);
    free(memo->entries);
    free(memo);
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

/* Answers of an earlier run: one byte a name, 0 or 1. */
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
    bool complete = true;
    for (size_t i = 0; i < question->names->count && complete; i++) {
        const memo_entry *entry = recall(question->host, question->names->items[i]);
        complete = entry != NULL;
        char answer = (char)(complete && entry->can);
        kprof_strbuf_append(&answers, &answer, 1);
    }
    if (complete && !answers.failed)
        kprof_host_keep(question, answers.data, answers.length);
    kprof_strbuf_free(&answers);
}

/* `group` has room for the companion in front. */
static void ask(kprof_host *host, const char **group, size_t count)
{
    kprof_strlist names = {(char **)group, count, count};
    kprof_host_question question = {host, "collectable", &names};
    bool worth_keeping = count >= WORTH_KEEPING_COUNT;
    if (worth_keeping && recall_group(&question, host))
        return;
    if (check_group(host, group, count) && worth_keeping)
        keep_group(&question);
}

/* A base name alone has properties but is no value. */
static bool may_exist(kprof_host *host, const char *name)
{
    return name[kprof_metric_base_length(name)] && kprof_host_has_metric(host, name);
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    const char **group = calloc(names->count + 1, sizeof(*group));
    if (!group)
        return KPROF_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (recall(host, names->items[i]))
            continue;
        if (may_exist(host, names->items[i]))
            group[1 + count++] = names->items[i];
        else
            remember(host, names->items[i], false);
    }
    if (count > 0)
        ask(host, group + 1, count);
    free(group);
    return KPROF_OK;
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    const memo_entry *known = recall(host, name);
    if (known)
        return known->can;
    char *items[] = {(char *)name};
    kprof_strlist one = {items, 1, 1};
    if (kprof_host_check(host, &one) != KPROF_OK)
        return false;
    known = recall(host, name);
    return known && known->can;
}
