/* Gathers what the chip, the sections and the aliases know of one metric, or of a section or a finding. */
#include "metricset/explain.h"

#include "core/log.h"
#include "core/regex.h"
#include "metricset/select.h"

#include <string.h>
#include <strings.h>

/* The metric to explain, and what is known about it so far. */
typedef struct explainer {
    const kprof_catalog *catalog;
    kprof_host *host; /* NULL: chips are not known here */
    kprof_explanation *out;
    const kprof_section_definition *section; /* what is explained instead of a metric, or NULL */
    const kprof_section_definition *looked_at;
    const char *label;                        /* what pages call a value, whose metric is looked for; or NULL */
    const kprof_section_definition *found_in; /* the section of that metric */
    const char *point;                        /* what pages call such a value of a roofline; or NULL */
    bool is_unsure; /* the label is that of a row there, which has several metrics, or of samples */
    bool is_base;   /* its name has no suffix, so any of its full names is meant */
} explainer;

static const char *copy(const explainer *by, const char *text)
{
    return text && *text ? kprof_pool_strdup(&by->out->pool, text) : NULL;
}

/* Is a word what pages call something? What stands in brackets may be left out. */
static bool is_called(const char *name, const char *word)
{
    const char *rest = kprof_after_words(name, word);
    return rest && (*rest == '\0' || kprof_begins_with(rest, " ("));
}

/* Is the word the label of a value, or in a table that and the heading of its column, as pages part them? */
static bool is_value_called(const char *label, const char *column, const char *word)
{
    const char *rest = column ? kprof_after_words(word, label) : NULL;
    return is_called(label, word) ||
           (rest && (kprof_begins_with(rest, ", ") || kprof_begins_with(rest, ": ")) && is_called(column, rest + 2));
}

static bool is_meant(const explainer *by, const char *name)
{
    const size_t length = strlen(by->out->metric);
    if (!by->is_base)
        return strcmp(by->out->metric, name) == 0;
    return kprof_metric_base_length(name) == length && strncmp(by->out->metric, name, length) == 0;
}

static bool is_same(const char *name, const char *word)
{
    const char *rest = kprof_after_words(name, word);
    return rest && *rest == '\0';
}

/* The meaning of a word of pages, or of a part of metrics' names, in the last file that has it, as that stands over
 * earlier ones; NULL: no file has it. */
static const char *find_meaning(const kprof_catalog *catalog, const char *word, bool of_names,
                                bool (*is_so)(const char *, const char *))
{
    for (size_t i = catalog->word_count; i-- > 0;)
        for (char **name = catalog->words[i].words; name && *name && catalog->words[i].of_names == of_names; name++)
            if (is_so(*name, word))
                return catalog->words[i].meaning;
    return NULL;
}

/* A part of a name: the hardware that counts the metric, the rollup over its instances, or the submetric. */
static void add_part(const explainer *by, const char *text, size_t length)
{
    kprof_explanation *out = by->out;
    kprof_name_part *part = KPROF_POOL_ADD(&out->pool, out->parts, out->part_count);
    part->part = kprof_pool_keep(&out->pool, kprof_strndup(text, length));
    part->meaning = find_meaning(by->catalog, part->part, true, is_same);
}

/* Add each part of the suffix that is not there yet. */
static void split_suffix(const explainer *by, const char *name)
{
    const kprof_explanation *out = by->out;
    for (const char *suffix = name + kprof_metric_base_length(name); *suffix == '.';) {
        const size_t length = strcspn(suffix + 1, ".");
        if (!KPROF_ANY(i, out->part_count,
                       strlen(out->parts[i].part) == length && memcmp(out->parts[i].part, suffix + 1, length) == 0))
            add_part(by, suffix + 1, length);
        suffix += 1 + length;
    }
}

/* "TPC.TriageCompute.sm__cycles_active.avg" is counted in an SM. */
static void split_name(const explainer *by)
{
    const char *name = by->out->metric, *counter = strstr(name, "__");
    if (!counter)
        return;
    const char *unit = counter;
    while (unit > name && unit[-1] != '.')
        unit--;
    add_part(by, unit, (size_t)(counter - unit));
    split_suffix(by, name);
}

static void add_place(explainer *by, const kprof_item *item, const char *column)
{
    kprof_explanation *out = by->out;
    kprof_explained_place place = {.section = by->looked_at->id};
    place.label = kprof_pool_keep(&out->pool, kprof_strprintf("%s%s%s", item->label ? item->label : "",
                                                              column ? ", " : "", column ? column : ""));
    place.value = copy(by, item->name);
    place.help = copy(by, item->help);
    kprof_strlist_add_unique(&out->sections, place.section);
    /* Rooflines of one section share their roofs. */
    if (!KPROF_FIRST(it, out->places, out->place_count,
                     strcmp(it->section, place.section) == 0 && strcmp(it->value, place.value) == 0 &&
                         strcmp(it->label, place.label) == 0))
        *KPROF_POOL_ADD(&out->pool, out->places, out->place_count) = place;
}

static void look_at(void *user, kprof_item *item, const char *column)
{
    explainer *by = user;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    if (!item->name)
        return;
    if (by->label) {
        const bool is = item->label && is_value_called(item->label, column, by->label);
        if (is && !by->out->metric) {
            by->out->metric = copy(by, item->name);
            by->found_in = by->looked_at;
        } else if (is && column && is_called(item->label, by->label) && by->found_in == by->looked_at &&
                   strcmp(by->out->metric, item->name) != 0 && !item->expression) /* no share of the first */
            by->is_unsure = true;
        return;
    }
    if (by->section) {
        add_place(by, item, column);
        return;
    }
    bool is_shown = is_meant(by, item->name);
    if (is_shown && item->expression && !by->out->kind) { /* a derived value tells its own formula */
        by->out->kind = "derived";
        by->out->unit = copy(by, item->unit);
        by->out->help = copy(by, item->help);
        by->out->formula = copy(by, item->expression);
        kprof_expr_names(item->compiled, &by->out->members);
    }
    if (is_shown && !by->out->help && !by->is_base) /* it is about one of the full names of a base name */
        by->out->help = copy(by, item->help);
    kprof_expr_names(item->compiled, &names);
    for (size_t i = 0; i < names.count && !is_shown; i++)
        is_shown = is_meant(by, names.items[i]);
    if (is_shown)
        add_place(by, item, column);
}

static void look_at_timeline(explainer *by, const kprof_section *section)
{
    for (size_t i = 0; i < section->timeline_count; i++)
        look_at(by, &section->timeline[i], NULL);
}

/* Is the label made of these, and the value's metric not known yet? */
static bool is_made_of(const explainer *by, const char *owner, const char *between, const char *what)
{
    KPROF_AUTO_FREE char *label = kprof_strprintf("%s%s%s", owner, between, what);
    return !by->out->metric && is_same(label, by->label);
}

static void look_at_rate(explainer *by, const char *owner, const char *what, const kprof_item *item)
{
    if (item->name && is_made_of(by, owner, " ", what))
        by->out->metric = copy(by, item->name);
}

/* Values of rooflines have labels of what they are of: "FP32 peak", "FP32 against DRAM: intensity". */
static void look_at_rooflines(explainer *by, const kprof_section *section)
{
    for (const kprof_roofline *line = section->rooflines; line < section->rooflines + section->roofline_count; line++) {
        look_at_rate(by, line->label, "achieved", &line->work);
        look_at_rate(by, line->label, "peak", &line->peak);
        for (const kprof_roof *roof = line->roofs; roof < line->roofs + line->roof_count; roof++) {
            KPROF_AUTO_FREE char *of = kprof_strprintf("%s against %s", line->label, roof->label);
            look_at_rate(by, roof->label, "achieved", &roof->traffic);
            look_at_rate(by, roof->label, "peak", &roof->peak);
            by->point = is_made_of(by, of, ": ", "intensity")     ? "Intensity"
                        : is_made_of(by, of, ": ", "of the roof") ? "Of roof"
                                                                  : by->point;
        }
    }
}

static void look_at_values(explainer *by, const kprof_section *section)
{
    kprof_section_visit(section, look_at, by);
    if (by->label) /* look for it in the timelines of all sections last */
        look_at_rooflines(by, section);
    else
        look_at_timeline(by, section);
}

/* Add the values of tables that have the word as their title, above a column or before a row. */
static void look_at_headings(explainer *by, const kprof_section *section)
{
    for (size_t i = 0; i < section->table_count; i++) {
        const kprof_table *table = &section->tables[i];
        const bool is_title = is_called(table->title, by->label);
        by->out->kind = is_title ? "table" : by->out->kind;
        for (size_t k = 0; k < table->column_count * table->row_count; k++) {
            const char *column = table->column_labels[k / table->row_count];
            const kprof_table_row *row = &table->rows[k % table->row_count];
            const kprof_item *cell = &row->cells[k / table->row_count];
            const bool is_of_row = row->label && is_called(row->label, by->label);
            const kprof_item item = {cell->name, row->label, .help = cell->help};
            if (cell->name && (is_title || is_of_row || is_called(column, by->label)))
                add_place(by, &item, column);
            by->out->kind = cell->name && is_of_row && !by->out->kind ? "row" : by->out->kind;
        }
    }
}

typedef void section_look(explainer *by, const kprof_section *section);

/* Look at each section, or the one that is explained, as it is on the chip. */
static kprof_status look_at_sections(explainer *by, section_look *look)
{
    kprof_status status = by->host ? kprof_catalog_check_sections(by->catalog, NULL, by->host) : KPROF_OK;
    for (size_t i = 0; i < by->catalog->section_count && status == KPROF_OK; i++) {
        if (by->section && by->section != &by->catalog->sections[i])
            continue;
        /* Without a chip, sections are as their first choices make them. */
        KPROF_AUTO(kprof_pool) pool = {0};
        KPROF_AUTO(kprof_strlist) collect = KPROF_STRLIST_INIT;
        kprof_section section;
        by->looked_at = &by->catalog->sections[i];
        status = kprof_section_resolve(by->looked_at, &(kprof_supply){&pool, by->host, NULL}, &collect, &section);
        if (status == KPROF_OK)
            look(by, &section);
    }
    return status;
}

static void find_sets(explainer *by)
{
    for (size_t i = 0; i < by->catalog->set_count; i++) {
        const kprof_set_definition *set = &by->catalog->sets[i];
        char **id = set->sections;
        while (*id && !kprof_strlist_contains(&by->out->sections, *id))
            id++;
        if (*id)
            kprof_strlist_add(&by->out->sets, set->id);
    }
}

/* Find the aliases of the metric, or of the formula that is explained. */
static kprof_status find_aliases(explainer *by)
{
    const kprof_catalog *catalog = by->catalog;
    kprof_status status = by->host ? kprof_catalog_check_aliases(catalog, by->host) : KPROF_OK;
    by->out->aliases = kprof_pool_calloc(&by->out->pool, catalog->alias_count + 1, sizeof *by->out->aliases);
    for (size_t i = 0; i < catalog->alias_count && status == KPROF_OK; i++) {
        const kprof_alias *alias = &catalog->aliases[i];
        const char *text = by->host ? kprof_alias_on(alias, by->host) : kprof_alias_describe(alias).stands_for;
        const char *formula = by->out->formula;
        if (!text || !(is_meant(by, text) || (formula && strcmp(text, formula) == 0)))
            continue;
        by->out->aliases[by->out->alias_count++] = alias;
        if (!by->out->help && !by->is_base && !alias->is_foreign)
            by->out->help = copy(by, alias->item.help);
    }
    return status;
}

/* The full names of a base name, with what their suffixes mean. */
static kprof_status list_full_names(explainer *by)
{
    kprof_explanation *out = by->out;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_status status = kprof_full_names(by->host, out->metric, false, &names);
    out->full_names = kprof_pool_calloc(&out->pool, names.count + 1, sizeof *out->full_names);
    for (size_t i = 0; i < names.count && status == KPROF_OK; i++) {
        kprof_metric_info info;
        kprof_full_name *name = &out->full_names[out->full_name_count++];
        status = kprof_host_metric_info(by->host, names.items[i], &info);
        const char *unit = status == KPROF_OK ? kprof_metric_unit(names.items[i], info.unit) : NULL;
        if (status == KPROF_OK) {
            name->name = copy(by, names.items[i]);
            name->unit = copy(by, unit);
            split_suffix(by, names.items[i]);
        }
        kprof_metric_info_free(&info);
    }
    return status;
}

static kprof_status ask_chip(explainer *by)
{
    static const char *const kinds[] = {"counter", "ratio", "throughput"}; /* of kprof_metric_type */
    kprof_metric_info info;
    kprof_explanation *out = by->out;
    kprof_status status = kprof_host_metric_info(by->host, out->metric, &info);
    if (status != KPROF_OK)
        return status;
    const char *unit = kprof_metric_unit(out->metric, info.unit);
    kprof_strbuf description = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&description, info.description ? info.description : "");
    if (unit != info.unit)
        kprof_strbuf_printf(&description,
                            "; these are the cycles that a warp waits for this reason between two instructions (CUPTI "
                            "and ncu give the unit %s)",
                            info.unit);
    out->kind = kinds[info.type];
    out->description = kprof_pool_keep(&out->pool, kprof_strbuf_take(&description));
    out->unit = copy(by, unit);
    if (info.type == KPROF_METRIC_THROUGHPUT) {
        KPROF_AUTO_FREE char *name =
            kprof_strprintf("%s%s", out->metric, by->is_base ? ".avg.pct_of_peak_sustained_elapsed" : "");
        if (kprof_host_has_metric(by->host, name))
            status = kprof_host_breakdown(by->host, name, &out->members);
    }
    kprof_metric_info_free(&info);
    return status;
}

/* List the hardware metrics that its value needs. A formula may name one in place of another, as chips differ: those
 * that this chip lacks are no members. Names without a suffix are of launches and instructions. */
static kprof_status list_needed(explainer *by, kprof_strlist *out)
{
    kprof_explanation *of = by->out;
    KPROF_AUTO(kprof_strlist) all = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    const bool has_members = of->formula || of->finding;
    if (has_members)
        kprof_strlist_add_all(&all, &of->members);
    else if (by->is_base)
        status = kprof_full_names(by->host, of->metric, true, &all);
    else
        kprof_strlist_add(&all, of->metric);
    KPROF_THEN(status, kprof_host_check(by->host, &all));
    if (status == KPROF_OK && has_members)
        kprof_strlist_free(&of->members);
    for (size_t i = 0; i < all.count && status == KPROF_OK; i++) {
        const char *name = all.items[i];
        const bool is_there = kprof_host_can_collect(by->host, name);
        if (is_there)
            kprof_strlist_add(out, name);
        if (has_members && (is_there || !name[kprof_metric_base_length(name)]))
            kprof_strlist_add(&of->members, name);
    }
    return status;
}

static kprof_status count_passes(explainer *by)
{
    static const char alone[] =
        "CUPTI takes it only by itself, not beside the counters of a kernel, so kprof cannot collect it.";
    kprof_selection selection = {0};
    KPROF_AUTO(kprof_plan) plan = {0};
    kprof_explanation *out = by->out;
    if (by->section)
        kprof_strlist_add(&selection.sections, by->section->id);
    kprof_status status = by->section ? KPROF_OK : list_needed(by, &selection.metrics);
    const bool is_counted = selection.metrics.count + selection.sections.count > 0;
    if (status == KPROF_OK && is_counted)
        status = kprof_plan_make(by->catalog, &selection, by->host, &plan);
    out->pass_count = kprof_plan_pass_count(&plan);
    out->has_passes = is_counted;
    if (out->kind && !out->formula && !out->has_passes && !out->help && status == KPROF_OK)
        out->help = copy(by, alone);
    KPROF_FREE_LISTS(&selection.metrics, &selection.sections);
    return status;
}

/* The words of pages, behind the identifiers of sections and findings, of which there are as many as is returned. */
static size_t list_words(const kprof_catalog *catalog, kprof_strlist *out)
{
#define LABEL(name, people, ...) people,
    static const char *const stalls[] = {KPROF_STALL_REASONS(LABEL)};
#undef LABEL
    for (size_t i = 0; i < catalog->section_count; i++)
        kprof_strlist_add(out, catalog->sections[i].id);
    for (size_t i = 0; i < catalog->finding_count; i++)
        kprof_strlist_add(out, catalog->findings[i].id);
    const size_t id_count = out->count;
    for (size_t i = 0; i < catalog->finding_count; i++)
        kprof_strlist_add(out, catalog->findings[i].name);
    for (size_t i = 0; i < COUNT_OF(stalls); i++)
        kprof_strlist_add(out, stalls[i]);
    for (size_t i = 0; i < catalog->word_count; i++)
        for (char **name = catalog->words[i].words; name && *name && !catalog->words[i].of_names; name++)
            kprof_strlist_add(out, *name);
    return id_count;
}

/* Return the word that this one, which is no metric's name, misspells, or the section or finding whose name it is a
 * part of; or NULL. */
static const char *find_nearest_word(const explainer *by, const char *word)
{
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    if (strstr(word, "__") || kprof_catalog_why_not(by->catalog, word))
        return NULL;
    const size_t id_count = list_words(by->catalog, &words);
    const bool is_long = strlen(word) > 3;
    const char *nearest =
        kprof_nearest_spelling(word, (const char *const *)words.items, is_long ? words.count : id_count);
    const bool is_part = is_long && kprof_catalog_find_set(by->catalog, word) == by->catalog->set_count;
    for (size_t i = 0; is_part && !nearest && i < id_count; i++)
        nearest = strcasestr(words.items[i], word) ? words.items[i] : NULL;
    return copy(by, nearest);
}

/* The chip does not have the name: it is a derived value, stands for an alias, is misspelled, or nobody can know. */
static kprof_status settle_unknown(const explainer *by, const char *word)
{
    if (by->out->place_count > 0 || kprof_catalog_find_alias(by->catalog, word))
        return KPROF_OK;
    const char *nearest = kprof_nearest_alias(by->catalog, word, NULL);
    const char *near_word = nearest ? NULL : find_nearest_word(by, word);
    if (near_word)
        return kprof_fail(KPROF_UNKNOWN_NAME, "\"%s\" is no metric, section or finding; did you mean \"%s\"?", word,
                          near_word);
    if (!nearest && !strstr(word, "__") && !strchr(word, '*') && !kprof_catalog_why_not(by->catalog, word) &&
        kprof_catalog_find_set(by->catalog, word) == by->catalog->set_count)
        return kprof_fail(KPROF_UNKNOWN_NAME,
                          "\"%s\" is no metric, section, finding or stall reason that kprof knows%s%s, and no label of "
                          "its pages; kprof list metrics, list sections and list findings have names",
                          word, by->host ? " on " : "", by->host ? kprof_host_label(by->host) : "");
    if (by->host)
        return kprof_fail_unknown_metric(by->catalog, by->host, word);
    if (nearest)
        return kprof_fail(KPROF_UNKNOWN_NAME, "metric \"%s\" is not known; did you mean \"%s\"?", word, nearest);
    return kprof_fail(KPROF_UNSUPPORTED,
                      "no set and no alias has metric \"%s\", and the metrics of chips are not known here: that takes "
                      "a kprof built with the CUDA 13 toolkit, where CUPTI is installed",
                      word);
}

/* A number that the report makes for findings, of what sections collect. */
static void explain_made_number(explainer *by, const kprof_made_number *number)
{
    kprof_explanation *out = by->out;
    kprof_strbuf help = KPROF_STRBUF_INIT;
    const char *before = " such as ";
    const bool is_of_samples = kprof_begins_with(number->name, "timeline__");
    kprof_strbuf_puts(&help, "The report computes it, for findings");
    for (size_t i = 0; i < by->catalog->finding_count; i++) {
        const kprof_finding *finding = &by->catalog->findings[i];
        if (!kprof_strlist_contains(&finding->operands, number->name))
            continue;
        kprof_strbuf_printf(&help, "%s%s", before, finding->id);
        before = ", ";
        for (char **id = finding->sections; *id && is_of_samples; id++)
            kprof_strlist_add_unique(&out->sections, *id);
    }
    kprof_strbuf_puts(&help, "; --metrics does not take its name, but its sections collect what it is made of.");
    for (size_t i = 0; i < by->catalog->section_count; i++) {
        const kprof_section_definition *section = &by->catalog->sections[i];
        if (!is_of_samples && (section->samples || section->instructions))
            kprof_strlist_add(&out->sections, section->id);
    }
    out->metric = number->name;
    out->kind = "derived";
    out->unit = copy(by, number->unit);
    out->description = copy(by, number->description);
    out->help = kprof_pool_keep(&out->pool, kprof_strbuf_take(&help));
    split_name(by);
    find_sets(by);
}

/* out->metric is set. */
static kprof_status explain_metric(explainer *by, const char *word)
{
    kprof_explanation *out = by->out;
    const kprof_launch_metric *launch = kprof_launch_metric_find(out->metric);
    const bool is_of_chip = by->host && !launch && !out->formula && kprof_host_has_metric(by->host, out->metric);
    by->is_base = out->metric[kprof_metric_base_length(out->metric)] == '\0' && !launch && !out->formula &&
                  !kprof_begins_with(out->metric, "derived__");
    split_name(by);
    kprof_status status = KPROF_OK;
    if (launch) {
        out->kind = "launch";
        out->has_passes = true;
        out->unit = copy(by, launch->unit);
        out->description = copy(by, launch->description);
    }
    if (is_of_chip)
        status = ask_chip(by);
    if (status == KPROF_OK && is_of_chip && by->is_base)
        status = list_full_names(by);
    KPROF_THEN(status, look_at_sections(by, look_at_values));
    if (status == KPROF_OK && !launch && !is_of_chip && !out->formula)
        status = settle_unknown(by, word);
    if (status == KPROF_OK)
        find_sets(by);
    KPROF_THEN(status, find_aliases(by));
    return status == KPROF_OK && by->host && !launch ? count_passes(by) : status;
}

static kprof_status explain_alias(explainer *by, const kprof_alias *alias)
{
    kprof_explanation *out = by->out;
    const kprof_item_definition *item = &alias->item;
    kprof_status status = by->host ? kprof_catalog_check_aliases(by->catalog, by->host) : KPROF_OK;
    if (status != KPROF_OK)
        return status;
    const char *text = by->host ? kprof_alias_on(alias, by->host) : kprof_alias_describe(alias).stands_for;
    if (!text) {
        /* Nothing stands for the alias: on this chip, or on any. */
        for (char **name = alias->closest; name && *name; name++)
            kprof_strlist_add(&out->closest, *name);
        if (alias->item.choice_count > 0)
            out->description =
                kprof_pool_keep(&out->pool, kprof_strprintf("not available on %s, which cannot count %s",
                                                            kprof_host_label(by->host), alias->item.choices[0].text));
        out->help = copy(by, alias->item.help);
        return KPROF_OK;
    }
    const kprof_choice *choice = item->choices; /* the first that can be had */
    while (strcmp(choice->text, text) != 0)
        choice++;
    const char *formula = item->name ? choice->text : NULL;
    out->metric = copy(by, formula ? item->name : text);
    out->formula = copy(by, formula);
    out->help = copy(by, item->help);
    if (formula) {
        out->kind = "derived";
        out->unit = copy(by, item->unit);
        kprof_expr_names(choice->compiled, &out->members);
    }
    return KPROF_THEN(status, explain_metric(by, alias->name));
}

static kprof_status explain_section(explainer *by, const kprof_section_definition *section)
{
    kprof_explanation *out = by->out;
    by->section = section;
    out->kind = "section";
    out->description = copy(by, section->name);
    out->help = copy(by, section->help);
    kprof_status status = look_at_sections(by, look_at_values);
    if (status == KPROF_OK)
        find_sets(by);
    return status == KPROF_OK && by->host ? count_passes(by) : status;
}

static kprof_status explain_finding(explainer *by, const kprof_finding *finding)
{
    kprof_explanation *out = by->out;
    out->kind = "finding";
    out->finding = finding;
    out->description = copy(by, finding->name);
    out->help = copy(by, finding->help);
    out->formula = copy(by, finding->gain_formula);
    kprof_strlist_add_all(&out->members, &finding->operands);
    for (char **id = finding->sections; *id; id++)
        kprof_strlist_add_unique(&out->sections, *id);
    find_sets(by);
    return by->host ? count_passes(by) : KPROF_OK;
}

/* The values below a heading of tables. *is: there is one. */
static kprof_status explain_heading(explainer *by, const char *word, bool *is)
{
    by->label = word;
    kprof_status status = look_at_sections(by, look_at_headings);
    by->label = NULL;
    *is = by->out->place_count > 0;
    if (status != KPROF_OK || !*is)
        return status;
    by->out->kind = by->out->kind ? by->out->kind : "column";
    const char *of = strcmp(by->out->kind, "column") == 0 ? "below this heading" : "of the ";
    by->out->description = kprof_pool_keep(
        &by->out->pool, kprof_strprintf("Each value %s%s is a metric, and kprof explain tells more of it.", of,
                                        of[0] == 'o' ? by->out->kind : ""));
    find_sets(by);
    return KPROF_OK;
}

/* Return what a word of the pages means that no metric and no finding has for a name. */
static const char *meaning_of(const kprof_catalog *catalog, const char *word)
{
    const char *meaning = find_meaning(catalog, word, false, is_same);
    meaning = meaning ? meaning : find_meaning(catalog, word, false, is_called);
    return meaning ? meaning : kprof_instruction_label_help(word);
}

/* Find what the finding names so in its text; a section that it leads to is named by the section's own identifier. */
static bool has_option(const explainer *by, const kprof_finding *finding, const char *word,
                       const kprof_finding_option **out)
{
    for (size_t i = 0; i < finding->value_count; i++) {
        for (size_t k = 0; k < finding->values[i].option_count; k++) {
            *out = &finding->values[i].options[k];
            if (is_called((*out)->name, word) &&
                kprof_catalog_find_section(by->catalog, (*out)->name) == by->catalog->section_count)
                return true;
        }
    }
    return false;
}

/* Look up a unit or limit by a finding's name for it: its metric, if the chip is known, or the finding. */
static kprof_status explain_option(explainer *by, const kprof_finding *finding, const kprof_finding_option *option)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    if (option->value)
        kprof_expr_names(option->value, &names);
    if (!by->host || names.count != 1 || !strstr(names.items[0], "__"))
        return explain_finding(by, finding);
    by->out->metric = copy(by, names.items[0]);
    return explain_metric(by, names.items[0]);
}

/* The metric of a value that has the word as its label, or that is a column of the summary page: in by->out. */
static kprof_status find_label(explainer *by, const char *word)
{
    static const char memory[] = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
    if (is_called("Memory", word)) {
        by->out->metric = copy(by, memory);
        return KPROF_OK;
    }
    by->label = word;
    kprof_status status = look_at_sections(by, look_at_values);
    if (status == KPROF_OK && !by->out->metric) {
        by->is_unsure = true;
        status = look_at_sections(by, look_at_timeline);
    }
    by->label = NULL;
    return status;
}

/* Explains words of findings: a unit, a limit, or one of their values. *is: one of them names it. `is_label`: a value
 * is called so, too, and only what limits the kernel counts, spelled as pages do. */
static kprof_status explain_word_of_finding(explainer *by, const char *word, bool is_label, bool *is)
{
    const kprof_catalog *catalog = by->catalog;
    const kprof_finding_option *option;
    *is = true;
    for (const kprof_finding *one = catalog->findings; one < catalog->findings + catalog->finding_count; one++)
        if ((!is_label || one->verdict == KPROF_VERDICT_LIMIT) && has_option(by, one, word, &option) &&
            (!is_label || strcmp(option->name, word) == 0))
            return explain_option(by, one, option);
    for (const kprof_finding *one = catalog->findings; one < catalog->findings + catalog->finding_count && !is_label;
         one++)
        if (KPROF_ANY(i, one->value_count, one->values[i].label && is_called(one->values[i].label, word)) ||
            (one->verdict == KPROF_VERDICT_LIMIT && is_called("Limited by", word)))
            return explain_finding(by, one);
    *is = false;
    return KPROF_OK;
}

/* Sections that collect it show it on the source page, not among their values. */
static void add_instruction_sections(explainer *by, const kprof_instruction_metric *row)
{
    for (size_t i = 0; i < by->catalog->section_count; i++) {
        const kprof_section_definition *section = &by->catalog->sections[i];
        bool has = row->kind == KPROF_INSTRUCTION_SAMPLE && section->samples;
        for (char **name = section->instructions; name && *name && !has; name++)
            has = strcmp(*name, row->kind == KPROF_INSTRUCTION_COUNTER || !row->needs[0] ? row->name : row->needs[0]) ==
                  0;
        if (has || (row->kind == KPROF_INSTRUCTION_COMPUTED && !row->needs[0] && section->samples))
            kprof_strlist_add_unique(&by->out->sections, section->id);
    }
    find_sets(by);
}

static void explain_instruction(explainer *by, const kprof_instruction_metric *row)
{
    kprof_explanation *out = by->out;
    out->description =
        kprof_pool_keep(&out->pool, kprof_strprintf("%s of each instruction%s%s", row->label, row->ncu ? "; ncu: " : "",
                                                    row->ncu ? row->ncu : ""));
    out->kind = "instruction";
    out->metric = copy(by, row->word);
    out->unit = copy(by, row->unit);
    out->help = copy(by, row->help);
    for (size_t i = 0; row->needs[i]; i++)
        kprof_strlist_add(&out->members, row->needs[i]);
    out->has_passes = true;
    out->pass_count = 1;
    add_instruction_sections(by, row);
}

/* A word that names a metric or a finding may head a column of something else, too. */
static void add_meaning(explainer *by, const char *word)
{
    kprof_explanation *out = by->out;
    const char *meaning = meaning_of(by->catalog, word), *help = out->help ? out->help : "";
    const bool has_it = out->kind && (strcmp(out->kind, "word") == 0 || strcmp(out->kind, "instruction") == 0);
    const char *gap = *help && !kprof_ends_with(help, ".") ? ". " : *help ? " " : "";
    if (meaning && !has_it)
        out->help = kprof_pool_keep(&out->pool, kprof_strprintf("%s%sAs a heading of pages: %s%s", help, gap, meaning,
                                                                kprof_ends_with(meaning, ".") ? "" : "."));
}

/* Look up a word as pages print it: the title of a section or a finding, the label of a value, the heading of a table
 * or a column, what a finding names, or what stands beside a verdict. *is: it is one. */
static kprof_status look_up_page_word(explainer *by, const char *word, bool *is)
{
    const kprof_catalog *catalog = by->catalog;
    *is = true;
    for (size_t i = 0; i < catalog->section_count; i++)
        if (is_called(catalog->sections[i].name, word))
            return explain_section(by, &catalog->sections[i]);
    for (size_t i = 0; i < catalog->finding_count; i++)
        if (is_called(catalog->findings[i].name, word))
            return explain_finding(by, &catalog->findings[i]);
    kprof_status status = find_label(by, word);
    const char *metric = by->out->metric;
    if (status == KPROF_OK && metric && !by->is_unsure)
        return explain_metric(by, metric);
    by->out->metric = NULL;
    const kprof_instruction_metric *row = kprof_instruction_of_label(word);
    *is = false;
    if (status == KPROF_OK && !row)
        status = explain_word_of_finding(by, word, metric != NULL, is);
    if (status == KPROF_OK && !*is)
        status = explain_heading(by, word, is);
    if (status == KPROF_OK && !*is && metric) {
        *is = true;
        by->out->metric = metric;
        return explain_metric(by, metric);
    }
    const char *meaning = meaning_of(catalog, by->point ? by->point : word);
    if (status != KPROF_OK || *is || !meaning)
        return status;
    *is = true;
    if (row) {
        explain_instruction(by, row);
        return KPROF_OK;
    }
    by->out->kind = "word";
    by->out->description = copy(by, meaning);
    return KPROF_OK;
}

static kprof_status explain_page_word(explainer *by, const char *word, bool *is)
{
    kprof_status status = look_up_page_word(by, word, is);
    const char *unit = strstr(word, " (");
    if (status == KPROF_OK && !*is && unit && kprof_ends_with(word, ")")) {
        word = kprof_pool_keep(&by->out->pool, kprof_strndup(word, (size_t)(unit - word)));
        status = look_up_page_word(by, word, is);
    }
    if (status == KPROF_OK && *is)
        add_meaning(by, word);
    return status;
}

kprof_status kprof_explain_label(const kprof_catalog *catalog, kprof_host *host, const char *label,
                                 kprof_explanation *out)
{
    explainer by = {.catalog = catalog, .host = host, .out = out};
    bool is;
    *out = (kprof_explanation){0};
    kprof_status status = explain_page_word(&by, label, &is);
    return status == KPROF_OK && !is ? KPROF_UNKNOWN_NAME : status;
}

kprof_status kprof_explain(const kprof_catalog *catalog, kprof_host *host, const char *word, kprof_explanation *out)
{
    explainer by = {.catalog = catalog, .host = host, .out = out};
    const kprof_alias *alias = kprof_catalog_find_alias(catalog, word);
    *out = (kprof_explanation){0};
    if (kprof_regex_pattern(word) || kprof_is_group(word))
        return kprof_fail(KPROF_USAGE,
                          "\"%s\" stands for several metrics; explain takes names, and kprof list metrics --metrics %s "
                          "lists those that it stands for",
                          word, word);
    if (alias)
        return explain_alias(&by, alias);
    const kprof_instruction_metric *row = kprof_instruction_of_word(word);
    if (!row && host && !kprof_host_has_metric(host, word)) /* findings name it so */
        row = kprof_instruction_metric_find(word);
    if (row && (!host || kprof_instruction_metric_on(host, row))) {
        explain_instruction(&by, row);
        return KPROF_OK;
    }
    const kprof_made_number *number = kprof_made_number_find(word);
    if (number) {
        explain_made_number(&by, number);
        return KPROF_OK;
    }
    const size_t section = kprof_catalog_find_section(catalog, word);
    if (section < catalog->section_count)
        return explain_section(&by, &catalog->sections[section]);
    for (size_t i = 0; i < catalog->finding_count; i++)
        if (strcmp(catalog->findings[i].id, word) == 0)
            return explain_finding(&by, &catalog->findings[i]);
    const bool may_be_on_pages = strlen(word) > 1 && !strstr(word, "__") &&
                                 kprof_catalog_find_set(catalog, word) == catalog->set_count &&
                                 (strchr(word, ' ') || !kprof_catalog_why_not(catalog, word));
    bool is_on_pages = false;
    kprof_status status = KPROF_OK;
    if (may_be_on_pages)
        status = explain_page_word(&by, word, &is_on_pages);
    if (is_on_pages || status != KPROF_OK)
        return status;
    for (size_t i = 0; i < catalog->finding_count; i++)
        if (kprof_finding_has_id(&catalog->findings[i], word) || is_same(catalog->findings[i].id, word))
            return explain_finding(&by, &catalog->findings[i]);
    for (size_t i = 0; i < catalog->section_count; i++)
        if (is_same(catalog->sections[i].id, word))
            return explain_section(&by, &catalog->sections[i]);
    out->metric = word;
    return explain_metric(&by, word);
}

void kprof_explanation_free(kprof_explanation *explanation)
{
    kprof_pool_free(&explanation->pool);
    KPROF_FREE_LISTS(&explanation->members, &explanation->closest, &explanation->sections, &explanation->sets);
    *explanation = (kprof_explanation){0};
}
