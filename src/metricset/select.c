/* Expands the words of --metrics into the full names of one chip, as ncu does; aliases too. */
#include "metricset/select.h"

#include "core/log.h"
#include "core/regex.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

kprof_status kprof_all_base_metrics(kprof_host *host, kprof_strlist *out)
{
    kprof_status status = kprof_host_base_metrics(host, KPROF_METRIC_COUNTER, out);
    KPROF_THEN(status, kprof_host_base_metrics(host, KPROF_METRIC_RATIO, out));
    return KPROF_THEN(status, kprof_host_base_metrics(host, KPROF_METRIC_THROUGHPUT, out));
}

/* A name without a suffix names a metric, not a value. */
static bool is_base(const char *word)
{
    return word[kprof_metric_base_length(word)] == '\0';
}

static size_t count_dots(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '.';
    return count;
}

kprof_status kprof_full_names(kprof_host *host, const char *base, bool first_level, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) suffixes = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_submetrics(host, base, &suffixes);
    size_t level = SIZE_MAX;
    for (size_t i = 0; i < suffixes.count; i++) {
        size_t dots = count_dots(suffixes.items[i]);
        level = dots < level ? dots : level;
    }
    for (size_t i = 0; i < suffixes.count && status == KPROF_OK; i++) {
        if (first_level && count_dots(suffixes.items[i]) != level)
            continue;
        kprof_strlist_take(out, kprof_strprintf("%s.%s", base, suffixes.items[i]));
    }
    return status;
}

/* Move the names that can be collected from `candidates`, which `word` stands for, to `out`. */
static kprof_status keep_collectable(kprof_host *host, const char *word, const kprof_strlist *candidates,
                                     kprof_strlist *out)
{
    if (candidates->count > KPROF_MOST_METRICS)
        return kprof_fail(KPROF_USAGE,
                          "--metrics %s stands for %zu metrics of %s, more than the %d that kprof plans at once; "
                          "narrow it down, or measure them in several runs",
                          word, candidates->count, kprof_host_label(host), KPROF_MOST_METRICS);
    kprof_status status = kprof_host_check(host, candidates);
    for (size_t i = 0; i < candidates->count && status == KPROF_OK; i++)
        if (kprof_host_can_collect(host, candidates->items[i]))
            kprof_strlist_add_unique(out, candidates->items[i]);
    return status;
}

/* Append a name if the pattern matches it. */
static kprof_status add_match(kprof_regex *regex, const char *name, kprof_strlist *out)
{
    bool matches;
    kprof_status status = kprof_regex_search(regex, name, &matches);
    if (status == KPROF_OK && matches)
        kprof_strlist_add(out, name);
    return status;
}

static kprof_status add_launch_matches(kprof_regex *regex, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    for (const kprof_launch_metric *metric = kprof_launch_metrics; metric->name && status == KPROF_OK; metric++)
        status = add_match(regex, metric->name, &names);
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++)
        kprof_strlist_add_unique(out, names.items[i]);
    return status;
}

/* Counters with a group's name before them, as TPC.TriageCompute.sm__cycles_active, count in another way than their
 * namesakes. ncu has the latter alone, so a pattern means the former only where it names the group. */
static kprof_status list_bases(kprof_host *host, const char *pattern, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) all = KPROF_STRLIST_INIT;
    kprof_status status = kprof_all_base_metrics(host, &all);
    for (size_t i = 0; i < all.count && status == KPROF_OK; i++)
        if (!strstr(all.items[i], "TriageCompute.") || strstr(pattern, "Triage"))
            kprof_strlist_add(out, all.items[i]);
    return status;
}

/* A pattern that matches base names stands for their plainest values. */
static kprof_status match_bases(kprof_host *host, kprof_regex *regex, const kprof_strlist *bases,
                                kprof_strlist *candidates)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < bases->count && status == KPROF_OK; i++) {
        bool matches;
        status = kprof_regex_search(regex, bases->items[i], &matches);
        if (status == KPROF_OK && matches)
            status = kprof_full_names(host, bases->items[i], true, candidates);
    }
    return status;
}

/* A pattern that matches no base name is meant for full names, such as regex:^dram__bytes.*sum$. */
static kprof_status match_full_names(kprof_host *host, kprof_regex *regex, const kprof_strlist *bases,
                                     kprof_strlist *candidates)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < bases->count && status == KPROF_OK; i++) {
        KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
        status = kprof_full_names(host, bases->items[i], false, &names);
        for (size_t j = 0; j < names.count && status == KPROF_OK; j++)
            status = add_match(regex, names.items[j], candidates);
    }
    return status;
}

/* A pattern that matches nothing of a launch is meant for instructions. */
static kprof_status match_instructions(kprof_host *host, kprof_regex *regex, kprof_strlist *out)
{
    kprof_status status = KPROF_OK;
    for (const kprof_instruction_metric *row = kprof_instruction_metrics; row->name && status == KPROF_OK; row++)
        if (kprof_instruction_metric_on(host, row))
            status = add_match(regex, row->word, out);
    return status;
}

static kprof_status select_regex(kprof_host *host, const char *word, kprof_strlist *out)
{
    kprof_regex *regex;
    kprof_strlist bases = KPROF_STRLIST_INIT, candidates = KPROF_STRLIST_INIT;
    kprof_status status = kprof_regex_new("--metrics", kprof_regex_pattern(word), &regex);
    if (status != KPROF_OK)
        return status;
    size_t before = out->count;
    status = add_launch_matches(regex, out);
    KPROF_THEN(status, list_bases(host, kprof_regex_pattern(word), &bases));
    KPROF_THEN(status, match_bases(host, regex, &bases, &candidates));
    if (status == KPROF_OK && candidates.count == 0 && out->count == before)
        status = match_full_names(host, regex, &bases, &candidates);
    KPROF_THEN(status, keep_collectable(host, word, &candidates, out));
    if (status == KPROF_OK && out->count == before && candidates.count == 0)
        status = match_instructions(host, regex, out);
    if (status == KPROF_OK && out->count == before && candidates.count == 0)
        status = kprof_fail(KPROF_UNKNOWN_NAME, "%s matches no metric of %s; kprof list metrics has all", word,
                            kprof_host_label(host));
    kprof_regex_free(regex);
    KPROF_FREE_LISTS(&bases, &candidates);
    return status;
}

static void add_launch_item(void *out, kprof_item *item, const char *column)
{
    (void)column;
    if (item->name && kprof_launch_metric_find(item->name))
        kprof_strlist_add_unique(out, item->name);
}

void kprof_section_launch_metrics(const kprof_section *section, kprof_strlist *out)
{
    kprof_section_visit(section, add_launch_item, out);
}

void kprof_section_instructions(const kprof_section_definition *definition, kprof_host *host, kprof_strlist *out)
{
    for (char **name = definition->instructions; name && *name; name++) {
        const kprof_instruction_metric *metric = kprof_instruction_metric_find(*name);
        if (kprof_instruction_metric_on(host, metric))
            kprof_strlist_add_unique(out, metric->word);
    }
    if (definition->samples)
        kprof_strlist_add_unique(out, KPROF_SAMPLE_COUNT);
}

static kprof_status fail_unknown_group(const kprof_catalog *catalog, const char *id)
{
    const char *why = kprof_catalog_why_not(catalog, id);
    if (why)
        return kprof_fail(KPROF_UNKNOWN_NAME, "group:%s: there is no section of that name: %s", id, why);
    const char *nearest = kprof_catalog_nearest_section(catalog, id);
    return nearest ? kprof_fail(KPROF_UNKNOWN_NAME,
                                "group:%s: there is no section of that name; did you mean group:%s?", id, nearest)
                   : kprof_fail(KPROF_UNKNOWN_NAME,
                                "group:%s: there is no section of that name; group: takes the identifier of a section, "
                                "or a name of ncu's for tables of memory; kprof list sections tells which there are",
                                id);
}

static kprof_status select_group(const kprof_catalog *catalog, kprof_host *host, const char *id, kprof_strlist *out)
{
    size_t index = kprof_catalog_find_section(catalog, id);
    if (index == catalog->section_count)
        return fail_unknown_group(catalog, id);
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_section section;
    kprof_supply supply = {&pool, host, NULL};
    kprof_status status = kprof_section_candidates(&catalog->sections[index], host, &candidates);
    KPROF_THEN(status, kprof_host_check(host, &candidates));
    KPROF_THEN(status, kprof_section_resolve(&catalog->sections[index], &supply, out, &section));
    if (status == KPROF_OK) {
        kprof_section_launch_metrics(&section, out);
        kprof_section_instructions(&catalog->sections[index], host, out);
    }
    return status;
}

static size_t unit_length(const char *metric)
{
    const char *end = strstr(metric, "__");
    return end ? (size_t)(end - metric) : 0;
}

/* Does the metric belong to the whole GPU, to a part of the unit, the unit around it, or one of nearly its spelling, or
 * is it about the unit, as "gpu__dram_throughput" is about dram? */
static bool has_related_unit(const char *metric, const char *unit)
{
    char own[64];
    const size_t own_length = unit_length(metric), length = strlen(unit);
    if (own_length == 0)
        return false;
    snprintf(own, sizeof own, "%.*s", (int)own_length, metric);
    return strcasecmp(own, "gpu") == 0 || (strcasecmp(own, "lts") == 0 && strcasecmp(unit, "l2") == 0) ||
           strncasecmp(own, unit, own_length < length ? own_length : length) == 0 ||
           kprof_nearest_spelling(unit, (const char *const[]){own}, 1);
}

/* The words of a name behind its unit: "bytes", "read" and "sum" of "dram__bytes_read.sum". */
enum { WORDS_MAX = 24 };
typedef struct name_words {
    char items[WORDS_MAX][40];
    size_t count;
} name_words;

static void split_words(const char *name, name_words *out)
{
    out->count = 0;
    for (const char *at = name + unit_length(name); *(at += strspn(at, "_.")) && out->count < WORDS_MAX;) {
        const size_t length = strcspn(at, "_.");
        snprintf(out->items[out->count++], sizeof *out->items, "%.*s", (int)length, at);
        at += length;
    }
}

static bool has_word(const name_words *words, const char *word)
{
    return KPROF_ANY(i, words->count, strcasecmp(words->items[i], word) == 0);
}

/* Is one of them nearly spelled so, or are two without the "_" between them? */
static bool has_near_word(const name_words *words, const char *word)
{
    bool has = false;
    for (size_t i = 0; i < words->count && !has; i++) {
        const char *item = words->items[i], *next = i + 1 < words->count ? words->items[i + 1] : "";
        const size_t length = strlen(item);
        has = kprof_nearest_spelling(word, &item, 1) ||
              (strncasecmp(word, item, length) == 0 && strcasecmp(word + length, next) == 0);
    }
    return has;
}

/* A name that somebody typed. */
typedef struct typed_name {
    const char *unit;
    name_words words;
    bool has_slip; /* no other name has one of its words with digits: "fp31" is a slip, and "fp16" is not "bf16" */
} typed_name;

static bool has_digit(const char *word)
{
    return strpbrk(word, "0123456789") != NULL;
}

/* How much another name differs, in whatever order its words stand; SIZE_MAX: too much to be meant. */
static size_t difference(const typed_name *typed, const char *name)
{
    enum { OTHER_UNIT = 2, NEAR = 1, MISSING = 3, FURTHER = 1 };
    name_words own;
    const size_t length = unit_length(name);
    const bool is_of_unit = length == strlen(typed->unit) && strncasecmp(name, typed->unit, length) == 0;
    size_t cost = is_of_unit ? 0 : OTHER_UNIT, missing = 0;
    if (!is_of_unit && !has_related_unit(name, typed->unit))
        return SIZE_MAX;
    split_words(name, &own);
    for (size_t i = 0; i < own.count; i++)
        if (!typed->has_slip && has_digit(own.items[i]) && !has_word(&typed->words, own.items[i]))
            return SIZE_MAX;
    for (size_t i = 0; i < typed->words.count; i++) {
        const bool is_there = has_word(&own, typed->words.items[i]);
        const bool is_near = !is_there && has_near_word(&own, typed->words.items[i]);
        missing += !is_there && !is_near;
        cost += is_near ? NEAR : 0;
    }
    const size_t found = typed->words.count - missing;
    cost += missing * MISSING + (own.count > found ? own.count - found : 0) * FURTHER;
    return found > missing ? cost : SIZE_MAX;
}

const char *kprof_nearest_metric(const char *word, const char *const *names, size_t count)
{
    const size_t length = unit_length(word);
    if (length == 0)
        return kprof_nearest(word, names, count);
    KPROF_AUTO_FREE char *unit = kprof_strndup(word, length);
    KPROF_AUTO_FREE const char **near = kprof_calloc(count + 1, sizeof *near);
    typed_name typed = {.unit = unit};
    const char *best = NULL;
    size_t least = SIZE_MAX, near_count = 0;
    split_words(word, &typed.words);
    for (size_t i = 0; i < typed.words.count; i++) {
        const char *own = typed.words.items[i];
        typed.has_slip = typed.has_slip || (has_digit(own) && !KPROF_ANY(k, count, strstr(names[k], own)));
    }
    for (size_t i = 0; i < count; i++) {
        const size_t cost = difference(&typed, names[i]);
        if (cost < least || (best && cost == least && strlen(names[i]) < strlen(best))) {
            best = names[i];
            least = cost;
        }
        if (unit_length(names[i]) == length && strncasecmp(names[i], word, length) == 0)
            near[near_count++] = names[i];
    }
    return best ? best : kprof_nearest(word, near, near_count);
}

kprof_status kprof_tell_nearest_name(kprof_host *host, const char *word, kprof_strbuf *out)
{
    KPROF_AUTO_FREE char *meant = kprof_regex_meant(word);
    if (meant) {
        kprof_strbuf_printf(out, "; did you mean \"regex:%s\"?", meant);
        return KPROF_OK;
    }
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    KPROF_AUTO_FREE char *base = kprof_strndup(word, kprof_metric_base_length(word));
    const char *suffix = word + kprof_metric_base_length(word);
    const bool known_base = kprof_host_has_metric(host, base);
    kprof_status status =
        known_base ? kprof_full_names(host, base, false, &names) : kprof_all_base_metrics(host, &names);
    for (const kprof_launch_metric *metric = kprof_launch_metrics; status == KPROF_OK && metric->name; metric++)
        if (!known_base)
            kprof_strlist_add(&names, metric->name);
    for (const kprof_instruction_metric *row = kprof_instruction_metrics; status == KPROF_OK && row->name; row++) {
        const char *name = row->kind == KPROF_INSTRUCTION_COUNTER ? row->ncu : row->name;
        if (!known_base && name)
            kprof_strlist_add(&names, name);
    }
    const char *nearest = status == KPROF_OK ? kprof_nearest_metric(known_base ? word : base,
                                                                    (const char *const *)names.items, names.count)
                                             : NULL;
    const bool has_suffixes = nearest && !known_base && kprof_host_has_metric(host, nearest);
    if (nearest)
        kprof_strbuf_printf(out, "; did you mean \"%s%s\"?", nearest, has_suffixes ? suffix : "");
    else
        kprof_strbuf_puts(out, "; kprof list metrics shows those that are known");
    return status;
}

/* "occupancy.achieved" has the parts "occupancy" and "achieved". */
static bool has_part(const char *alias, const char *word)
{
    const size_t length = strlen(word);
    bool found = false;
    for (const char *part = alias; *part && !found; part += *part != '\0') {
        const size_t part_length = strcspn(part, "._");
        found = part_length == length && strncasecmp(part, word, length) == 0;
        part += part_length;
    }
    return found;
}

/* The shortest alias of those that have the part, or NULL; kprof's own before those of other tools. */
static const char *find_alias_with_part(const kprof_catalog *catalog, const char *word, const kprof_name_supply *supply)
{
    const kprof_alias *best = NULL;
    for (size_t i = 0; i < catalog->alias_count; i++) {
        const kprof_alias *alias = &catalog->aliases[i];
        const bool is_better = !best || (best->is_foreign && !alias->is_foreign) ||
                               (best->is_foreign == alias->is_foreign && strlen(alias->name) < strlen(best->name));
        if (!is_better || alias->item.choice_count == 0 || !has_part(alias->name, word))
            continue;
        KPROF_AUTO(kprof_strlist) chosen = KPROF_STRLIST_INIT;
        if (supply)
            kprof_alias_choose(alias, supply, &chosen);
        if (!supply || chosen.count > 0)
            best = alias;
    }
    return best ? best->name : NULL;
}

const char *kprof_nearest_alias(const kprof_catalog *catalog, const char *word, const kprof_name_supply *supply)
{
    KPROF_AUTO_FREE const char **names = kprof_calloc(catalog->alias_count + 1, sizeof *names);
    for (size_t i = 0; i < catalog->alias_count; i++)
        names[i] = catalog->aliases[i].name;
    const char *near = strstr(word, "__") ? NULL : kprof_nearest_spelling(word, names, catalog->alias_count);
    return near ? near : find_alias_with_part(catalog, word, supply);
}

/* Names of sections, sets and findings are easily given where a metric is wanted. */
static bool tell_other_kind(const kprof_catalog *catalog, const char *word, kprof_strbuf *out)
{
    const char *of_section = kprof_after(word, "section:"), *of_set = kprof_after(word, "set:");
    word = of_section ? of_section : of_set ? of_set : word;
    if (kprof_catalog_find_section(catalog, word) < catalog->section_count)
        kprof_strbuf_printf(out, "; it is a section: see --section %s, or group:%s for its metrics", word, word);
    else if (kprof_catalog_find_set(catalog, word) < catalog->set_count)
        kprof_strbuf_printf(out, "; it is a set: --set %s collects it, kprof list collected --set %s shows its metrics",
                            word, word);
    for (size_t i = 0; i < catalog->finding_count && out->length == 0; i++)
        if (strcmp(catalog->findings[i].id, word) == 0)
            kprof_strbuf_puts(out, "; it is a finding: see kprof list findings");
    return out->length > 0;
}

kprof_status kprof_fail_unknown_metric(const kprof_catalog *catalog, kprof_host *host, const char *word)
{
    const char *why = kprof_catalog_why_not(catalog, word);
    if (kprof_host_has_metric(host, word))
        return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" cannot be collected per kernel on %s: %s", word,
                          kprof_host_label(host),
                          why ? why : "CUPTI counts it for the whole GPU, beside all that runs there");
    KPROF_AUTO(kprof_strbuf) hint = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE char *meant = kprof_regex_meant(word);
    const char *alias = meant ? NULL : kprof_nearest_alias(catalog, word, NULL);
    kprof_status status = KPROF_OK;
    if (why)
        kprof_strbuf_printf(&hint, ": %s", why);
    else if (strpbrk(word, "; "))
        kprof_strbuf_puts(&hint, "; commas part the names of a list");
    else if (!tell_other_kind(catalog, word, &hint) && alias)
        kprof_strbuf_printf(&hint, "; did you mean \"%s\"?", alias);
    else if (hint.length == 0)
        status = kprof_tell_nearest_name(host, word, &hint);
    if (status == KPROF_OK)
        status = kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known on %s%s", word, kprof_host_label(host),
                            hint.data ? hint.data : "");
    return status;
}

static kprof_status select_breakdown(const kprof_catalog *catalog, kprof_host *host, const char *throughput,
                                     kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    KPROF_AUTO_FREE char *name =
        kprof_strprintf("%s%s", throughput, is_base(throughput) ? ".avg.pct_of_peak_sustained_elapsed" : "");
    kprof_status status = KPROF_OK;
    if (kprof_launch_metric_find(throughput) || kprof_instruction_is_word(throughput))
        status = kprof_fail(KPROF_UNKNOWN_NAME, "\"%s\" is not a throughput metric, which alone have a breakdown",
                            throughput);
    else if (!kprof_host_has_metric(host, name))
        status = kprof_fail_unknown_metric(catalog, host, throughput);
    KPROF_THEN(status, kprof_host_breakdown(host, name, &candidates));
    return KPROF_THEN(status, keep_collectable(host, throughput, &candidates, out));
}

static kprof_status select_name(const kprof_catalog *catalog, kprof_host *host, const char *word, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    size_t before = out->count;
    kprof_status status = KPROF_OK;
    if (is_base(word) && kprof_host_has_metric(host, word))
        status = kprof_full_names(host, word, true, &candidates);
    else
        kprof_strlist_add(&candidates, word);
    bool repeated = candidates.count > 0 && kprof_strlist_contains(out, candidates.items[0]);
    KPROF_THEN(status, keep_collectable(host, word, &candidates, out));
    if (status == KPROF_OK && out->count == before && !repeated)
        status = kprof_fail_unknown_metric(catalog, host, word);
    return status;
}

bool kprof_is_group(const char *word)
{
    return kprof_begins_with(word, "breakdown:") || kprof_begins_with(word, "group:");
}

/* Some names of ncu's are aliases for a value of the launch too. */
static kprof_status select_instruction(const kprof_catalog *catalog, kprof_host *host, const char *word,
                                       kprof_strlist *out)
{
    const kprof_alias *alias = kprof_catalog_find_alias(catalog, word);
    kprof_status status = kprof_instruction_select(host, word, out);
    return alias && status == KPROF_OK ? kprof_alias_select(alias, host, out) : status;
}

kprof_status kprof_select_metrics(const kprof_catalog *catalog, kprof_host *host, const char *word, kprof_strlist *out)
{
    if (kprof_regex_pattern(word))
        return select_regex(host, word, out);
    if (kprof_instruction_is_word(word))
        return select_instruction(catalog, host, word, out);
    const char *name = kprof_after(word, "breakdown:"), *section = kprof_after(word, "group:");
    if (name)
        return select_breakdown(catalog, host, name, out);
    if (section)
        return select_group(catalog, host, section, out);
    if (kprof_launch_metric_find(word)) {
        kprof_strlist_add_unique(out, word);
        return KPROF_OK;
    }
    const kprof_alias *alias = kprof_catalog_find_alias(catalog, word);
    return alias ? kprof_alias_select(alias, host, out) : select_name(catalog, host, word, out);
}

kprof_status kprof_metrics_check(const kprof_catalog *catalog, kprof_host *host, const char *word)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    return kprof_select_metrics(catalog, host, word, &names);
}
