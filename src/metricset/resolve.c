/* Makes the section of one chip from a definition: of each item the first choice whose metrics the chip can collect. */
#include "metricset/definition.h"
#include "metricset/metricset.h"
#include "metricset/select.h"

#include "core/log.h"

#include <string.h>

/* The context of resolving one section, passed to every depth. */
typedef struct resolver {
    kprof_pool *pool;
    kprof_host *host;          /* NULL: every first choice is taken */
    const kprof_strlist *only; /* sorted; NULL: whatever the chip can collect */
    kprof_strlist *collect;    /* NULL: nobody asks */
    const char *section;       /* its file or id, for messages */
} resolver;

static bool is_supplied(const resolver *r, const char *name)
{
    const kprof_strlist *only = r->only;
    return (!only || kprof_strlist_contains_sorted(only, name)) && kprof_host_can_collect(r->host, name);
}

static bool is_available(const resolver *r, const char *name)
{
    return kprof_launch_metric_find(name) || is_supplied(r, name);
}

static void collect_names(const resolver *r, const kprof_strlist *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        if (kprof_launch_metric_find(name) || !is_supplied(r, name))
            continue;
        kprof_strlist_add_unique(r->collect, name);
    }
}

/* A fallback replaces a metric that the chip lacks. Nothing replaces a metric that limits left out. */
static bool lost_to_limits(const resolver *r, const char *name)
{
    return r->only && !is_available(r, name) && kprof_host_can_collect(r->host, name);
}

/* Take the choice if the chip has every metric that it cannot do without, and the limits left none out. */
static bool try_choice(const resolver *r, const kprof_choice *choice)
{
    bool taken = true;
    if (!r->host)
        return true;
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    kprof_expr_operands(choice->compiled, &required, &optional);
    for (size_t i = 0; i < required.count && taken; i++)
        taken = is_available(r, required.items[i]);
    for (size_t i = 0; i < optional.count && taken; i++)
        taken = !lost_to_limits(r, optional.items[i]);
    if (taken) {
        collect_names(r, &required);
        collect_names(r, &optional);
    }
    KPROF_FREE_LISTS(&required, &optional);
    return taken;
}

kprof_item kprof_item_of(const kprof_item_definition *item, const kprof_choice *choice, const char *label)
{
    return (kprof_item){.name = item->name ? item->name : choice->text,
                        .label = item->label ? item->label : label,
                        .unit = item->unit,
                        .help = item->help,
                        .expression = item->name ? choice->text : NULL,
                        .compiled = choice->compiled};
}

/* The value by the first choice that serves; it is empty (name NULL) where none does. */
static kprof_item resolve_item(const resolver *r, const kprof_item_definition *from, const char *label)
{
    for (size_t i = 0; i < from->choice_count; i++)
        if (try_choice(r, &from->choices[i]))
            return kprof_item_of(from, &from->choices[i], label);
    return (kprof_item){0};
}

/* Anything may be missing once limits have cut the supply. */
static bool may_lack(const resolver *r, bool optional)
{
    return optional || r->only;
}

/* Say what the first choice lacks: a metric that the chip does not know, perhaps misspelled, or cannot collect. */
static kprof_status tell_lacking(const resolver *r, const kprof_choice *choice, kprof_strbuf *out)
{
    kprof_strlist required = KPROF_STRLIST_INIT, optional = KPROF_STRLIST_INIT;
    kprof_expr_operands(choice->compiled, &required, &optional);
    kprof_status status = KPROF_OK;
    const size_t i = KPROF_FIND(k, required.count, !is_available(r, required.items[k]));
    const char *lacking = i < required.count ? required.items[i] : NULL;
    if (lacking && kprof_host_has_metric(r->host, lacking))
        kprof_strbuf_printf(out, ": it cannot collect metric \"%s\" per kernel", lacking);
    else if (lacking) {
        kprof_strbuf_printf(out, ": it has no metric \"%s\"", lacking);
        status = kprof_tell_nearest_name(r->host, lacking, out);
    }
    KPROF_FREE_LISTS(&required, &optional);
    return status;
}

static kprof_status fail_item(const resolver *r, const kprof_item_definition *item)
{
    KPROF_AUTO(kprof_strbuf) reason = KPROF_STRBUF_INIT;
    kprof_status status = tell_lacking(r, &item->choices[0], &reason);
    if (status == KPROF_OK)
        status = kprof_fail(KPROF_UNKNOWN_NAME, "%s: chip %s can collect none of the choices of \"%s\"%s", r->section,
                            kprof_host_chip(r->host), item->label ? item->label : "an item",
                            reason.length ? reason.data : "");
    return status;
}

static kprof_status resolve_items(const resolver *r, const kprof_section_definition *from, kprof_section *out)
{
    out->items = kprof_pool_calloc(r->pool, from->item_count + 1, sizeof(*out->items));
    for (size_t i = 0; i < from->item_count; i++) {
        const kprof_item item = resolve_item(r, &from->items[i], NULL);
        if (item.name)
            out->items[out->item_count++] = item;
        else if (!may_lack(r, from->items[i].optional))
            return fail_item(r, &from->items[i]);
    }
    return KPROF_OK;
}

/* A row is left out when it is optional and the chip has none of its cells. */
static kprof_status resolve_row(const resolver *r, const kprof_row_definition *from, kprof_table *out)
{
    kprof_item *cells = kprof_pool_calloc(r->pool, out->column_count, sizeof *cells);
    size_t found = 0;
    for (size_t i = 0; i < from->cell_count; i++) {
        const kprof_item_definition *cell = &from->cells[i];
        cells[i] = resolve_item(r, cell, from->label);
        found += cells[i].name != NULL;
        if (!cells[i].name && cell->choice_count > 0 && !may_lack(r, cell->optional || from->optional))
            return fail_item(r, cell);
    }
    if (found > 0 || !may_lack(r, from->optional))
        out->rows[out->row_count++] = (kprof_table_row){from->label, cells};
    return KPROF_OK;
}

static bool is_acronym(const char *word, size_t length)
{
    static const char *const acronyms[] = {"lsu", "tex", "alu", "fma", "xu",    "adu", "cbu",  "fp64", "fp16",
                                           "tma", "ipa", "mio", "pq",  "l1tex", "lts", "xbar", "rf",   "idc"};
    return KPROF_ANY(i, COUNT_OF(acronyms), strlen(acronyms[i]) == length && strncmp(acronyms[i], word, length) == 0);
}

static void put_upper(kprof_strbuf *label, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
        kprof_strbuf_append(label, &c, 1);
    }
}

/* "sm__inst_executed_pipe_lsu.avg..." reads as "SM: Inst Executed Pipe LSU". */
static char *label_of_metric(const char *name)
{
    kprof_strbuf label = KPROF_STRBUF_INIT;
    size_t unit = strcspn(name, "_");
    put_upper(&label, name, unit);
    kprof_strbuf_puts(&label, ":");
    for (const char *word = name + unit; *word == '_';) {
        word += strspn(word, "_");
        size_t length = strcspn(word, "_.");
        size_t upper = is_acronym(word, length) ? length : length > 0;
        kprof_strbuf_puts(&label, " ");
        put_upper(&label, word, upper);
        kprof_strbuf_append(&label, word + upper, length - upper);
        word += length;
    }
    return kprof_strbuf_take(&label);
}

static bool is_to_collect(const kprof_table_definition *table, const char *metric)
{
    const size_t length = kprof_metric_base_length(metric);
    for (char **base = table->uncollected; base && *base; base++)
        if (strlen(*base) == length && strncmp(*base, metric, length) == 0)
            return false;
    return true;
}

/* A part of a throughput. One that is not collected keeps its row, without a value: it may be the part that the
 * throughput is limited by. */
static kprof_status add_breakdown_row(const resolver *r, const kprof_table_definition *from, const char *metric,
                                      kprof_table *out)
{
    kprof_choice choice = {kprof_pool_strdup(r->pool, metric), NULL};
    const char *label = kprof_pool_keep(r->pool, label_of_metric(metric));
    kprof_item *cell = kprof_pool_calloc(r->pool, 1, sizeof *cell);
    kprof_status status = kprof_expr_parse(r->pool, metric, &choice.compiled);
    if (status == KPROF_OK && is_to_collect(from, metric))
        (void)try_choice(r, &choice);
    *cell = kprof_item_of(&(kprof_item_definition){0}, &choice, label);
    out->rows[out->row_count++] = (kprof_table_row){label, cell};
    return status;
}

static kprof_status list_breakdowns(const resolver *r, const kprof_table_definition *from, kprof_strlist *out)
{
    kprof_status status = KPROF_OK;
    for (char **name = from->breakdowns; name && *name && status == KPROF_OK && r->host; name++)
        status = kprof_host_breakdown(r->host, *name, out);
    return status;
}

static kprof_status resolve_table(const resolver *r, const kprof_table_definition *from, kprof_section *section)
{
    KPROF_AUTO(kprof_strlist) members = KPROF_STRLIST_INIT;
    kprof_table table = {.id = from->id,
                         .title = from->title,
                         .sorted = from->sorted,
                         .column_labels = from->column_labels,
                         .column_count = kprof_strings_count(from->column_labels)};
    kprof_status status = list_breakdowns(r, from, &members);
    table.rows = kprof_pool_calloc(r->pool, from->row_count + members.count + 1, sizeof(*table.rows));
    for (size_t i = 0; i < from->row_count && status == KPROF_OK; i++)
        status = resolve_row(r, &from->rows[i], &table);
    /* The parts of a throughput, if any of them is collected. */
    bool found = false;
    for (size_t i = 0; i < members.count && status == KPROF_OK && !found; i++)
        found = is_to_collect(from, members.items[i]) && is_available(r, members.items[i]);
    for (size_t i = 0; i < members.count && found && status == KPROF_OK; i++)
        status = add_breakdown_row(r, from, members.items[i], &table);
    if (table.row_count > 0)
        section->tables[section->table_count++] = table;
    return status;
}

static kprof_status resolve_roof(const resolver *r, const kprof_roof_definition *from, kprof_roofline *out)
{
    kprof_roof roof = {.label = from->label};
    roof.traffic = resolve_item(r, &from->traffic, from->label);
    roof.peak = resolve_item(r, &from->peak, from->label);
    if (!roof.traffic.name || !roof.peak.name)
        return may_lack(r, from->optional) ? KPROF_OK : fail_item(r, roof.traffic.name ? &from->peak : &from->traffic);
    out->roofs[out->roof_count++] = roof;
    return KPROF_OK;
}

static kprof_status resolve_roofline(const resolver *r, const kprof_roofline_definition *from, kprof_section *out)
{
    kprof_roofline line = {.id = from->id, .label = from->label};
    kprof_status status = KPROF_OK;
    line.work = resolve_item(r, &from->work, from->label);
    line.peak = resolve_item(r, &from->peak, from->label);
    if (!line.work.name || !line.peak.name)
        return may_lack(r, from->optional) ? KPROF_OK : fail_item(r, line.work.name ? &from->peak : &from->work);
    line.roofs = kprof_pool_calloc(r->pool, from->roof_count + 1, sizeof(*line.roofs));
    for (size_t i = 0; i < from->roof_count && status == KPROF_OK; i++)
        status = resolve_roof(r, &from->roofs[i], &line);
    if (line.roof_count > 0)
        out->rooflines[out->roofline_count++] = line;
    return status;
}

const kprof_choice *kprof_item_sampled(const kprof_item_definition *item, kprof_host *host)
{
    return KPROF_FIRST(it, item->choices, item->choice_count, !host || kprof_host_can_sample(host, it->text));
}

kprof_status kprof_section_resolve(const kprof_section_definition *from, const kprof_supply *supply,
                                   kprof_strlist *collect, kprof_section *out)
{
    const resolver r = {supply->pool, supply->host, supply->only, collect, from->path ? from->path : from->id};
    *out = (kprof_section){.id = from->id, .name = from->name, .help = from->help, .order = from->order};
    kprof_status status = resolve_items(&r, from, out);
    out->tables = kprof_pool_calloc(r.pool, from->table_count + 1, sizeof(*out->tables));
    out->rooflines = kprof_pool_calloc(r.pool, from->roofline_count + 1, sizeof(*out->rooflines));
    for (size_t i = 0; i < from->table_count && status == KPROF_OK; i++)
        status = resolve_table(&r, &from->tables[i], out);
    for (size_t i = 0; i < from->roofline_count && status == KPROF_OK; i++)
        status = resolve_roofline(&r, &from->rooflines[i], out);
    /* A chip that has none of the choices leaves the item out. */
    out->timeline = kprof_pool_calloc(r.pool, from->timeline_count + 1, sizeof *out->timeline);
    for (size_t i = 0; i < from->timeline_count; i++) {
        const kprof_choice *chosen = kprof_item_sampled(&from->timeline[i], r.host);
        if (chosen)
            out->timeline[out->timeline_count++] = kprof_item_of(&from->timeline[i], chosen, NULL);
    }
    return status;
}

void kprof_item_collect(const kprof_item_definition *item, kprof_host *host, kprof_strlist *collect)
{
    (void)resolve_item(&(resolver){.host = host, .collect = collect}, item, NULL);
}

static kprof_status list_item(const kprof_item_definition *item, kprof_strlist *out)
{
    for (size_t i = 0; i < item->choice_count; i++)
        kprof_expr_names(item->choices[i].compiled, out);
    return out->count > KPROF_MOST_CANDIDATES ? kprof_fail(KPROF_BAD_METRICSET,
                                                           "the sections name more than the %d metrics that kprof "
                                                           "looks up at once; choose fewer sections, or split them",
                                                           KPROF_MOST_CANDIDATES)
                                              : KPROF_OK;
}

static kprof_status list_roofline(const kprof_roofline_definition *line, kprof_strlist *out)
{
    kprof_status status = list_item(&line->work, out);
    KPROF_THEN(status, list_item(&line->peak, out));
    for (size_t i = 0; i < line->roof_count && status == KPROF_OK; i++) {
        status = list_item(&line->roofs[i].traffic, out);
        KPROF_THEN(status, list_item(&line->roofs[i].peak, out));
    }
    return status;
}

kprof_status kprof_section_candidates(const kprof_section_definition *definition, kprof_host *host, kprof_strlist *out)
{
    resolver r = {.host = host, .section = definition->id};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < definition->item_count && status == KPROF_OK; i++)
        status = list_item(&definition->items[i], out);
    for (size_t i = 0; i < definition->table_count && status == KPROF_OK; i++) {
        const kprof_table_definition *table = &definition->tables[i];
        for (size_t row = 0; row < table->row_count; row++)
            for (size_t k = 0; k < table->rows[row].cell_count && status == KPROF_OK; k++)
                status = list_item(&table->rows[row].cells[k], out);
        KPROF_THEN(status, list_breakdowns(&r, table, out));
    }
    for (size_t i = 0; i < definition->roofline_count && status == KPROF_OK; i++)
        status = list_roofline(&definition->rooflines[i], out);
    return status;
}

kprof_status kprof_section_from_json(const kprof_json_place *file, const char *json, kprof_section *out)
{
    kprof_section_definition definition = {0};
    cJSON *value;
    kprof_status status = kprof_json_parse(file, json, strlen(json), &value);
    KPROF_THEN(status, kprof_section_definition_read(file, value, &definition));
    cJSON_Delete(value);
    *out = (kprof_section){0};
    return KPROF_THEN(status, kprof_section_resolve(&definition, &(kprof_supply){.pool = file->pool}, NULL, out));
}
