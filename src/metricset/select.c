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
    return status == KPROF_OK ? kprof_host_base_metrics(host, KPROF_METRIC_THROUGHPUT, out) : status;
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
    KPROF_AUTO_FREE const char **ids = kprof_calloc(catalog->section_count + 1, sizeof *ids);
    for (size_t i = 0; i < catalog->section_count; i++)
        ids[i] = catalog->sections[i].id;
    const char *nearest = kprof_nearest(id, ids, catalog->section_count);
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

/* "dram__bytes" is of the unit dram, and "gpu__dram_throughput" is about it. */
static bool is_of_unit(const char *metric, const char *unit, size_t length)
{
    const size_t own = unit_length(metric);
    if (own == 0)
        return false;
    const char *rest = metric + own + 2;
    return (own == length && strncasecmp(metric, unit, length) == 0) ||
           (strncasecmp(rest, unit, length) == 0 && rest[length] == '_');
}

static bool has_near_unit(const char *metric, const char *unit)
{
    char own[64];
    snprintf(own, sizeof own, "%.*s", (int)unit_length(metric), metric);
    return kprof_nearest_spelling(unit, (const char *const[]){own}, 1) != NULL;
}

/* Does the metric belong to the whole GPU, to a part of the unit, the unit around it, or one of nearly its spelling? */
static bool has_related_unit(const char *metric, const char *unit)
{
    const size_t own = unit_length(metric), length = strlen(unit);
    return (own == 3 && strncasecmp(metric, "gpu", own) == 0) ||
           (own == 3 && strncasecmp(metric, "lts", own) == 0 && strcasecmp(unit, "l2") == 0) ||
           strncasecmp(metric, unit, own < length ? own : length) == 0 || has_near_unit(metric, unit);
}

/* The name that has the word's text under a related unit: "gpu__dram_throughput" for "dram__throughput", and
 * "smsp__warps_eligible" for "sm__warps_eligible". */
static const char *under_related_unit(const char *word, const char *unit, const char *const *names, size_t count)
{
    const size_t length = unit_length(word);
    const char *text = word + length + 2, *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t own = unit_length(names[i]);
        const char *rest = own > 0 ? names[i] + own + 2 : "";
        if (is_of_unit(names[i], unit, length) && strlen(rest) > length && strcasecmp(rest + length + 1, text) == 0)
            return names[i];
        if (!found && own > 0 && strcasecmp(rest, text) == 0 && has_related_unit(names[i], unit))
            found = names[i];
    }
    return found;
}

enum { TYPES_MAX = 8 };

/* A part of a name that has a number: "fp16" of "sm__ops_path_tensor_src_fp16_dst_fp32". */
typedef struct number_part {
    const char *at;
    size_t length;
    bool is_known; /* other names have it, so that it is no misspelling */
} number_part;

/* Find these parts behind the unit of a name; the number of them. */
static size_t find_number_parts(const char *name, number_part parts[TYPES_MAX])
{
    size_t count = 0;
    for (const char *at = name + unit_length(name); *at && count < TYPES_MAX; at += *at != '\0') {
        const size_t length = strcspn(at, "_.");
        if (strcspn(at, "0123456789") < length)
            parts[count++] = (number_part){at, length, false};
        at += length;
    }
    return count;
}

static void note_known_parts(const char *name, number_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *found = parts[i].is_known ? NULL : strstr(name, "_");
        while (found && (strncmp(found + 1, parts[i].at, parts[i].length) != 0 ||
                         (found[1 + parts[i].length] && found[1 + parts[i].length] != '_')))
            found = strstr(found + 1, "_");
        parts[i].is_known = parts[i].is_known || found;
    }
}

/* "src_bf16" is another precision than "src_fp16", and no misspelling of it. */
static bool has_other_number(const char *metric, const number_part *parts, size_t count)
{
    number_part own[TYPES_MAX];
    const size_t own_count = find_number_parts(metric, own);
    for (size_t i = 0; i < count && i < own_count; i++) {
        const bool is_same = own[i].length == parts[i].length && memcmp(own[i].at, parts[i].at, parts[i].length) == 0;
        if (!is_same && parts[i].is_known)
            return true;
    }
    return false;
}

/* The longest name that the word begins with, less some of its last parts. */
static const char *beginning_of(const char *word, const char *const *names, size_t count)
{
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(names[i]);
        if (strncmp(names[i], word, length) == 0 && word[length] == '_' && (!found || length > strlen(found)))
            found = names[i];
    }
    return found;
}

static bool has_word(const char *name, const char *word, size_t length)
{
    for (const char *at = name; *at; at += strspn(at, "_")) {
        const size_t own = strcspn(at, "_");
        if (own == length && strncasecmp(at, word, length) == 0)
            return true;
        at += own;
    }
    return false;
}

/* Find the name of the same unit with the same words in another order: "dram__bytes_write" for "dram__write_bytes". */
static const char *in_another_order(const char *word, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool is_same = is_of_unit(names[i], word, unit_length(word)) && strlen(names[i]) == strlen(word);
        for (const char *at = word; is_same && *at; at += strspn(at, "_")) {
            const size_t length = strcspn(at, "_");
            is_same = has_word(names[i], at, length);
            at += length;
        }
        if (is_same)
            return names[i];
    }
    return NULL;
}

/* Find the shortest name that begins with the word, or else the shortest that has its text: "lts__t_sector_hit_rate"
 * for "lts__hit_rate". */
static const char *longer_name(const char *word, const char *const *names, size_t count)
{
    const char *text = word + unit_length(word) + 1, *beginning = NULL, *having = NULL;
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(names[i], text);
        const bool has_text = at && strlen(text) > 4 && strchr("_.", at[strlen(text)]);
        if (strncasecmp(names[i], word, strlen(word)) == 0)
            beginning = beginning && strlen(beginning) <= strlen(names[i]) ? beginning : names[i];
        else if (has_text)
            having = having && strlen(having) <= strlen(names[i]) ? having : names[i];
    }
    return beginning ? beginning : having;
}

/* Do they differ by two letters at most, in one place, as "warp_active" and "warps_active" do? */
static bool is_slip_of(const char *word, const char *name)
{
    const size_t length = strlen(word), other = strlen(name), shorter = length < other ? length : other;
    size_t same = 0, end = 0;
    while (same < shorter && word[same] == name[same])
        same++;
    while (end < shorter - same && word[length - end - 1] == name[other - end - 1])
        end++;
    return (length > other ? length : other) - same - end <= 2;
}

const char *kprof_nearest_metric(const char *word, const char *const *names, size_t count)
{
    const size_t length = unit_length(word);
    if (length == 0)
        return kprof_nearest(word, names, count);
    KPROF_AUTO_FREE char *unit = kprof_strndup(word, length);
    const char *same = in_another_order(word, names, count);
    same = same ? same : under_related_unit(word, unit, names, count);
    if (same)
        return same;
    KPROF_AUTO_FREE const char **near = kprof_calloc(count + 1, sizeof *near);
    number_part parts[TYPES_MAX];
    const size_t part_count = find_number_parts(word, parts);
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        note_known_parts(names[i], parts, part_count);
    for (size_t i = 0; i < count; i++)
        if (is_of_unit(names[i], word, length) && !has_other_number(names[i], parts, part_count))
            near[found++] = names[i];
    const bool is_known = found > 0;
    for (size_t i = 0; i < count && !is_known; i++)
        if (has_near_unit(names[i], unit))
            near[found++] = names[i];
    const char *spelling = kprof_nearest_spelling(word, near, found);
    const char *nearest = spelling && is_slip_of(word, spelling) ? spelling : longer_name(word, near, found);
    nearest = nearest ? nearest : spelling;
    nearest = nearest ? nearest : beginning_of(word, near, found);
    return nearest ? nearest : kprof_nearest(word, near, found);
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
        kprof_strbuf_puts(out, "; kprof list metrics has those that are");
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

static const char breakdown[] = "breakdown:", group[] = "group:";

bool kprof_is_group(const char *word)
{
    return strncmp(word, breakdown, sizeof(breakdown) - 1) == 0 || strncmp(word, group, sizeof(group) - 1) == 0;
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
    if (strncmp(word, breakdown, sizeof(breakdown) - 1) == 0)
        return select_breakdown(catalog, host, word + sizeof(breakdown) - 1, out);
    if (strncmp(word, group, sizeof(group) - 1) == 0)
        return select_group(catalog, host, word + sizeof(group) - 1, out);
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
