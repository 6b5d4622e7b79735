/* kprof explain: tells in words what a metric, a section or a finding is, and which sets and sections have it. It needs
 * no GPU, and without CUDA it tells what the set files know. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "core/log.h"
#include "metricset/explain.h"
#include "report/page/page.h"

/* One metric on one chip. */
typedef struct answer {
    const char *word; /* as asked for */
    const char *chip; /* NULL: not known here */
    kprof_explanation explanation;
} answer;

typedef struct answers {
    kprof_catalog *catalog;
    kprof_chips chips;
    char *joined;  /* all words as one; NULL: there is one */
    answer *items; /* [count] */
    size_t count;
} answers;

static char *join(const kprof_strlist *words)
{
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < words->count; i++)
        kprof_strbuf_printf(&joined, "%s%s", i ? " " : "", words->items[i]);
    return words->count ? kprof_strbuf_take(&joined) : NULL;
}

/* People see only what there is; programs get every key. */
static kprof_emit_field if_any(const char *key, const char *label, const char *text)
{
    return kprof_field_with_role(kprof_field_text(key, label, text), text ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE);
}

/* The metrics of instructions that tell where a finding is worst. Caller frees; NULL: none do. */
static char *join_places(const kprof_finding *finding)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (char **name = finding ? finding->places.metrics : NULL; name && *name; name++)
        kprof_strlist_add(&names, *name);
    const size_t none = SIZE_MAX,
                 values[] = {finding ? finding->places.of : none, finding ? finding->places.beside : none};
    for (size_t k = 0; k < COUNT_OF(values); k++) {
        const kprof_finding_value *value = values[k] == none ? NULL : &finding->values[values[k]];
        for (size_t i = 0; value && i < value->option_count; i++)
            if (value->options[i].place && !kprof_strlist_contains(&names, value->options[i].place))
                kprof_strlist_add(&names, value->options[i].place);
    }
    return join(&names);
}

static void show_metric(kprof_emitter *emitter, const answer *asked)
{
    const kprof_explanation *of = &asked->explanation;
    char *sections = join(&of->sections), *sets = join(&of->sets), *closest = join(&of->closest);
    KPROF_AUTO_FREE char *places = join_places(of->finding);
    const bool is_metric = of->metric || !of->kind;
    const bool has_passes = is_metric || of->finding || of->sections.count == 1;
    const bool is_value = !of->finding && strcmp(of->kind ? of->kind : "", "instruction") != 0 &&
                          (of->place_count > 0 || of->sections.count == 0);
    kprof_emit_field fields[] = {
        kprof_field_text("name", "Name", asked->word),
        is_metric ? kprof_field_text("metric", "Metric", of->metric) : if_any("metric", "Metric", NULL),
        if_any("chip", "Chip", asked->chip),
        kprof_field_text("kind", "Kind", of->kind),
        if_any("unit", "Unit", of->unit),
        if_any("description", "Description", of->description),
        if_any("formula", "Formula", of->formula),
        if_any("help", "Help", of->help),
        kprof_field_with_role(of->has_passes ? kprof_field_integer("passes", "Passes", of->pass_count)
                                             : kprof_field_text("passes", "Passes", NULL),
                              has_passes ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
        if_any("closest", "Closest", closest),
        kprof_field_text("sections", "Sections", sections, .role = is_value ? KPROF_ROLE_MACHINE : KPROF_ROLE_SHOWN),
        if_any("sets", "Sets", sets),
        if_any("places", "Lines by", places),
    };
    kprof_show_record(emitter, fields, COUNT_OF(fields));
    KPROF_FREE(sections, sets, closest);
}

/* A row below the metrics. Where there is one metric, people need not read its name in each row. */
typedef struct row_maker {
    kprof_emitter *emitter;
    const answers *of;
} row_maker;

enum { OWNER_FIELDS = 2, MAX_ROW_FIELDS = 6 };

static void show_row(const row_maker *by, const answer *owner, const kprof_emit_field *own, size_t count)
{
    kprof_emit_field fields[MAX_ROW_FIELDS] = {
        kprof_field_text("name", "Name", owner->word,
                         .role = by->of->count > 1 ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
        kprof_field_text("chip", "Chip", owner->chip,
                         .role = by->of->chips.names.count > 1 ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
    };
    for (size_t i = 0; i < count; i++)
        fields[OWNER_FIELDS + i] = own[i];
    kprof_show_record(by->emitter, fields, OWNER_FIELDS + count);
}

static void show_parts(const row_maker *by, const answer *of)
{
    for (size_t i = 0; i < of->explanation.part_count; i++) {
        const kprof_name_part *part = &of->explanation.parts[i];
        const kprof_emit_field fields[] = {kprof_field_text("part", "Part", part->part),
                                           kprof_field_text("meaning", "Meaning", part->meaning)};
        show_row(by, of, fields, COUNT_OF(fields));
    }
}

static void show_full_names(const row_maker *by, const answer *of)
{
    for (size_t i = 0; i < of->explanation.full_name_count; i++) {
        const kprof_full_name *name = &of->explanation.full_names[i];
        const kprof_emit_field fields[] = {kprof_field_text("metric", "Metric", name->name),
                                           kprof_field_text("unit", "Unit", name->unit, .missing = "-")};
        show_row(by, of, fields, COUNT_OF(fields));
    }
}

static void show_members(const row_maker *by, const answer *of)
{
    const kprof_strlist *members = &of->explanation.members;
    for (size_t i = 0; i < members->count; i++) {
        const kprof_emit_field field = kprof_field_text("metric", "Metric", members->items[i]);
        show_row(by, of, &field, 1);
    }
}

static void show_thresholds(const row_maker *by, const answer *of)
{
    const kprof_finding *finding = of->explanation.finding;
    for (size_t i = 0; finding && i < finding->threshold_count; i++) {
        const kprof_finding_threshold *threshold = &finding->thresholds[i];
        const kprof_emit_field fields[] = {kprof_field_text("threshold", "Threshold", threshold->name),
                                           kprof_field_value("value", "Value", threshold->value, threshold->unit),
                                           machine(kprof_field_text("unit", "Unit", threshold->unit)),
                                           kprof_field_text("source", "Source", threshold->source, .missing = "-")};
        show_row(by, of, fields, COUNT_OF(fields));
    }
}

static void show_places(const row_maker *by, const answer *of)
{
    for (size_t i = 0; i < of->explanation.place_count; i++) {
        const kprof_explained_place *place = &of->explanation.places[i];
        const kprof_emit_field fields[] = {
            kprof_field_text("section", "Section", place->section), kprof_field_text("label", "Label", place->label),
            kprof_field_text("value", "Value", place->value), machine(kprof_field_text("help", "Help", place->help))};
        show_row(by, of, fields, COUNT_OF(fields));
    }
}

static void show_aliases(const row_maker *by, const answer *of)
{
    for (size_t i = 0; i < of->explanation.alias_count; i++) {
        const kprof_alias_entry alias = kprof_alias_describe(of->explanation.aliases[i]);
        const kprof_emit_field fields[] = {
            kprof_field_text("alias", "Alias", alias.name), kprof_field_text("of", "Of", alias.origin),
            kprof_field_text("help", "Help", *alias.help ? alias.help : NULL, .missing = "-")};
        show_row(by, of, fields, COUNT_OF(fields));
    }
}

static kprof_status print_answers(const kprof_page_context *context)
{
    static const struct {
        kprof_emit_list list;
        void (*show)(const row_maker *by, const answer *of);
    } lists[] = {
        {{"parts", "The name", KPROF_LIST_TABLE, true}, show_parts},
        {{"full_names", "Full names", KPROF_LIST_TABLE, true}, show_full_names},
        {{"members", "Made of", KPROF_LIST_TABLE, true}, show_members},
        {{"thresholds", "Thresholds", KPROF_LIST_TABLE, true}, show_thresholds},
        {{"shown", "Shown in", KPROF_LIST_TABLE, true}, show_places},
        {{"aliases", "Other names", KPROF_LIST_TABLE, true}, show_aliases},
    };
    const answers *all = context->content;
    kprof_emitter *emitter = kprof_page_begin(context);
    kprof_list_begin(emitter, "metrics", "Metric", KPROF_LIST_BLOCKS, false);
    for (size_t i = 0; i < all->count; i++)
        show_metric(emitter, &all->items[i]);
    emitter->ops->list_end(emitter);
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        emitter->ops->list_begin(emitter, &lists[i].list);
        for (size_t k = 0; k < all->count; k++)
            lists[i].show(&(row_maker){emitter, all}, &all->items[k]);
        emitter->ops->list_end(emitter);
    }
    return kprof_page_end(emitter, KPROF_OK);
}

typedef __typeof__(kprof_explain) explainer;

/* The chip that is asked. */
typedef struct asked {
    const char *chip;
    kprof_host *host; /* NULL: there is none to ask */
} asked;

static kprof_status explain_word(explainer *explain, const char *word, asked of, answers *out)
{
    answer *item = &out->items[out->count];
    *item = (answer){.word = word, .chip = of.host ? of.chip : NULL};
    kprof_status status = explain(out->catalog, of.host, word, &item->explanation);
    if (status == KPROF_OK)
        out->count++;
    else
        kprof_explanation_free(&item->explanation);
    return status;
}

/* Explain each word that kprof knows, and log each other one. Return the status of the last unknown word. */
static kprof_status explain_all(const kprof_strlist *words, const char *chip, answers *out)
{
    asked of = {.chip = chip};
    kprof_status result = kprof_chip_open(chip, &of.host);
    if (result != KPROF_OK)
        return result;
    /* Several words that a shell parted may be one label: "Long Scoreboard". */
    const kprof_status as_one =
        out->joined ? explain_word(kprof_explain_label, out->joined, of, out) : KPROF_UNKNOWN_NAME;
    result = as_one == KPROF_UNKNOWN_NAME ? KPROF_OK : as_one;
    for (size_t i = 0; i < words->count && as_one == KPROF_UNKNOWN_NAME; i++)
        KPROF_ALSO(result, explain_word(kprof_explain, words->items[i], of, out));
    kprof_host_close(of.host);
    return result;
}

static kprof_status make_answers(const kprof_options *options, answers *out)
{
    const kprof_strlist *words = &options->selection.metrics;
    if (words->count == 0)
        return kprof_fail(KPROF_USAGE, "which metric? usage: kprof explain METRIC..., such as dram__bytes.sum or "
                                       "gld_efficiency; kprof list aliases and kprof list metrics have names");
    kprof_status status = kprof_catalog_locate(options, &out->catalog);
    KPROF_THEN(status, kprof_chips_named(options, &out->chips));
    if (options->reports.count > 1)
        out->joined = join(&options->reports);
    if (status == KPROF_OK)
        out->items = kprof_calloc(words->count * out->chips.names.count, sizeof *out->items);
    for (size_t i = 0; i < out->chips.names.count && out->items; i++)
        KPROF_ALSO(status, explain_all(words, out->chips.names.items[i], out));
    return status;
}

int kprof_cmd_explain(const kprof_options *options)
{
    static const kprof_page_row page = {"explain", 0, print_answers, NULL};
    answers all = {0};
    kprof_status status = make_answers(options, &all);
    if (all.count > 0)
        KPROF_ALSO(status, kprof_results_show(options, &page, &(kprof_page_input){.content = &all}));
    for (size_t i = 0; i < all.count; i++)
        kprof_explanation_free(&all.items[i].explanation);
    KPROF_FREE(all.items, all.joined);
    kprof_strlist_free(&all.chips.names);
    kprof_catalog_free(all.catalog);
    return kprof_status_exit_code(status);
}
