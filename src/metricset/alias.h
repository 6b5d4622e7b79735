/* Aliases: names that people know for what each chip has under names of its own. metricsets/aliases/<id>.json;
 * docs/metricsets.md has the format. */
#pragma once

#include "metricset/definition.h"
#include "metricset/metricset.h"

struct kprof_alias {
    char *name;
    char *origin;    /* whose name it is: "kprof", "nvprof" */
    bool is_foreign; /* another tool's: kprof tells its users which metric stands for it */
    kprof_item_definition
        item;       /* its `name` is set where choices are expressions; no choice: nothing counts the same */
    char **closest; /* metrics that come near to one without a choice; NULL: none */
};

/* The aliases of one file. */
typedef struct kprof_alias_file {
    char *id;
    kprof_alias *aliases; /* [count] */
    size_t count;
} kprof_alias_file;

/* BAD_METRICSET names the place. */
kprof_status kprof_alias_file_read(const kprof_json_place *place, const cJSON *value,
                                   kprof_alias_file *out) KPROF_MUST_CHECK;

/* Append the metrics of all its choices, for kprof_host_check. */
void kprof_alias_candidates(const kprof_alias *alias, kprof_strlist *out);

/* Append the metrics that stand for an alias on the chip of a host: full names to collect, and those of a launch; *item
 * is the value itself: one of them, or an expression over them, with the alias' texts. UNKNOWN_NAME, with the closest
 * metrics, if nothing stands for it. */
kprof_status kprof_alias_resolve(const kprof_alias *alias, kprof_host *host, kprof_strlist *metrics,
                                 kprof_item *item) KPROF_MUST_CHECK;

/* Append the full names that stand for an alias. */
kprof_status kprof_alias_select(const kprof_alias *alias, kprof_host *host, kprof_strlist *out) KPROF_MUST_CHECK;
