/* kprof list: the sets, sections, chips and metrics to collect, the findings and the aliases. It needs no GPU. */
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "core/log.h"
#include "report/model/findings.h"
#include "report/model/trace_stats.h"

#include <stdlib.h>
#include <string.h>

/* A list that is being made. */
typedef struct request {
    const kprof_options *options;
    const kprof_catalog *catalog;
    const char *chip; /* NULL: the list is not about chips */
    kprof_listing *listing;
} request;

static char *join(const char *const *words)
{
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (size_t i = 0; words && words[i]; i++)
        kprof_strbuf_printf(&joined, "%s%s", i ? " " : "", words[i]);
    return kprof_strbuf_take(&joined);
}

/* List the sets alone if the chip's metrics cannot be known. */
static kprof_status list_sets(const request *of)
{
    kprof_host *host = NULL;
    kprof_status status = kprof_chip_open(of->chip, &host);
    for (size_t i = 0; i < kprof_catalog_set_count(of->catalog) && status == KPROF_OK; i++) {
        kprof_catalog_entry set = kprof_catalog_set(of->catalog, i);
        kprof_strlist_add(&of->listing->cells, set.id);
        kprof_strlist_take(&of->listing->cells, join(set.aliases));
        kprof_strlist_add(&of->listing->cells, of->chip);
        kprof_set_cost cost;
        if (!host) {
            KPROF_LISTING_ADD(of->listing, "", "", ""); /* metrics, passes, the share of instructions */
        } else if ((status = kprof_set_cost_on(of->catalog, set.id, host, &cost)) == KPROF_OK) {
            kprof_listing_add_number(of->listing, cost.metric_count);
            kprof_listing_add_number(of->listing, cost.pass_count);
            kprof_listing_add_number(of->listing, (size_t)(cost.instruction_pct + 0.5));
        }
        kprof_strlist_take(&of->listing->cells, join(set.section_ids));
    }
    kprof_host_close(host);
    return status;
}

/* The sets that a section is in. */
static char *sets_with(const kprof_catalog *catalog, const char *section)
{
    kprof_strbuf sets = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < kprof_catalog_set_count(catalog); i++) {
        kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        for (const char *const *id = set.section_ids; *id; id++)
            if (strcmp(*id, section) == 0)
                kprof_strbuf_printf(&sets, "%s%s", sets.length ? " " : "", set.id);
    }
    return kprof_strbuf_take(&sets);
}

/* A value that a section explains, in the list of sections with their helps. */
typedef struct help_lister {
    kprof_listing *listing;
    const char *section;
} help_lister;

static void add_help(void *user, const kprof_value_help *value)
{
    const help_lister *to = user;
    KPROF_LISTING_ADD(to->listing, to->section, value->label, "", value->metric, value->help);
}

/* With --verbose also what sections are about, and below each its values that it explains. */
static kprof_status list_sections(const request *of)
{
    static const kprof_listing_column verbose_columns[] = {
        {.key = "section", .label = "Section"},
        {.key = "name", .label = "Name"},
        {.key = "sets", .label = "Sets", .missing = "-"},
        {.key = "metric", .label = "Metric", .missing = "-", .folds = true},
        {.key = "help", .label = "Help", .folds = true},
        {0},
    };
    if (of->options->verbose)
        of->listing->columns = verbose_columns;
    for (size_t i = 0; i < kprof_catalog_section_count(of->catalog); i++) {
        kprof_catalog_entry section = kprof_catalog_section(of->catalog, i);
        KPROF_LISTING_ADD(of->listing, section.id, section.name);
        kprof_strlist_take(&of->listing->cells, sets_with(of->catalog, section.id));
        if (!of->options->verbose)
            continue;
        KPROF_LISTING_ADD(of->listing, "", section.help);
        kprof_catalog_section_helps(of->catalog, i, add_help, &(help_lister){of->listing, section.id});
    }
    return KPROF_OK;
}

static kprof_status list_findings(const request *of)
{
    kprof_finding_list findings = {NULL, 0};
    const kprof_status status = kprof_catalog_findings(of->catalog, &of->options->rules, &findings);
    for (size_t i = 0; i < findings.count; i++) {
        const kprof_finding *finding = findings.items[i];
        KPROF_LISTING_ADD(of->listing, finding->id, finding->name, finding->sections[0],
                          kprof_confidence_name(finding->confidence), finding->help);
    }
    free(findings.items);
    return status;
}

/* List the first choice of each alias where the chip's metrics cannot be known. */
static kprof_status list_aliases(const request *of)
{
    kprof_host *host = NULL;
    kprof_status status = kprof_chip_open(of->chip, &host);
    if (status == KPROF_OK && host)
        status = kprof_catalog_check_aliases(of->catalog, host);
    for (size_t i = 0; i < kprof_catalog_alias_count(of->catalog) && status == KPROF_OK; i++) {
        const kprof_alias *alias = kprof_catalog_alias(of->catalog, i);
        const kprof_alias_entry entry = kprof_alias_describe(alias);
        KPROF_LISTING_ADD(of->listing, entry.name, entry.origin, host ? of->chip : "", entry.help,
                          host ? kprof_alias_on(alias, host) : entry.stands_for);
    }
    kprof_host_close(host);
    return status;
}

static kprof_status list_chips(const request *of)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_chips(&chips);
    for (size_t i = 0; status == KPROF_OK && i < chips.count; i++) {
        const kprof_chip *chip = kprof_chip_find(chips.items[i]);
        char capability[32] = "";
        if (chip)
            snprintf(capability, sizeof capability, "%d.%d", chip->capability / 10, chip->capability % 10);
        KPROF_LISTING_ADD(of->listing, chips.items[i], capability, chip ? chip->gpus : "");
    }
    return status;
}

static kprof_status add_metric(void *user, const kprof_query_row *row)
{
    const request *of = user;
    KPROF_LISTING_ADD(of->listing, row->name, row->kind, row->unit, of->chip, row->description);
    return KPROF_OK;
}

static kprof_status list_metrics(const request *of)
{
    const kprof_strlist *names = &of->options->selection.metrics;
    kprof_host *host = NULL;
    const kprof_query query = {of->catalog, (kprof_query_mode)of->options->query_mode, names, add_metric, (void *)of};
    kprof_status status = kprof_host_open(of->chip, NULL, &host);
    KPROF_THEN(status, kprof_query_metrics(host, &query));
    kprof_host_close(host);
    return status;
}

/* List the full names of all metrics that a run with these sets, sections and metrics collects. */
static kprof_status list_collected(const request *of)
{
    kprof_chips chips = {0};
    KPROF_AUTO(kprof_plans) plans = {0};
    kprof_status status = kprof_chips_named(of->options, &chips);
    KPROF_THEN(status, kprof_plans_make_for(of->options, &chips.names, chips.device_bytes, &plans));
    for (size_t i = 0; i < plans.count && status == KPROF_OK; i++) {
        request to = {.listing = of->listing, .chip = plans.chips[i].plan.chip};
        const kprof_query query = {.visit = add_metric, .user = &to};
        status = kprof_query_collected(plans.chips[i].host, &plans.chips[i].plan, &query);
    }
    kprof_strlist_free(&chips.names);
    return status;
}

static kprof_status list_tables(const request *of)
{
    for (size_t i = 0; i < kprof_trace_stats_count; i++) {
        const kprof_trace_stats *table = &kprof_trace_stats_tables[i];
        if (!table->why_none)
            KPROF_LISTING_ADD(of->listing, table->name, table->title, table->old_name ? table->old_name : "");
    }
    return KPROF_OK;
}

static const kprof_listing_column set_columns[] = {
    {.key = "set", .label = "Set"},
    {.key = "alias", .label = "Alias"},
    {.key = "chip", .label = "Chip"},
    {.key = "metrics", .label = "Metrics", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
    {.key = "passes", .label = "Passes", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
    {.key = "instruction_pct", .label = "Time for instructions, %", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
    {.key = "sections", .label = "Sections", .folds = true},
    {0},
};
static const kprof_listing_column section_columns[] = {
    {.key = "section", .label = "Section"},
    {.key = "name", .label = "Name", .folds = true},
    {.key = "sets", .label = "Sets"},
    {0},
};
static const kprof_listing_column finding_columns[] = {
    {.key = "finding", .label = "Finding"},
    {.key = "name", .label = "Name", .folds = true},
    {.key = "section", .label = "Section"},
    {.key = "confidence", .label = "Confidence"},
    {.key = "help", .label = "When it is found", .folds = true},
    {0},
};
static const kprof_listing_column chip_columns[] = {
    {.key = "chip", .label = "Chip"},
    {.key = "compute_capability", .label = "CC", .missing = "-"},
    {.key = "gpus", .label = "GPUs such as", .missing = "-", .folds = true},
    {0},
};
static const kprof_listing_column metric_columns[] = {
    {.key = "metric", .label = "Metric"}, /* first, as in ncu's lists: scripts take the first word of a line */
    {.key = "kind", .label = "Kind"},
    {.key = "unit", .label = "Unit", .missing = "-"},
    {.key = "chip", .label = "Chip"},
    {.key = "description", .label = "Description", .folds = true},
    {0},
};
static const kprof_listing_column alias_columns[] = {
    {.key = "alias", .label = "Alias"},
    {.key = "of", .label = "Of"},
    {.key = "chip", .label = "Chip", .missing = "any"},
    {.key = "help", .label = "Help", .missing = "-", .folds = true},
    {.key = "metric", .label = "Metric", .missing = "n/a", .folds = true},
    {0},
};

static const kprof_listing_column table_columns[] = {
    {.key = "table", .label = "Table"},
    {.key = "title", .label = "Title"},
    {.key = "old_name", .label = "Also", .missing = "-"},
    {0},
};

/* A list for each word in the row of the command. */
static const struct list_row {
    const char *word;
    enum {
        ALONE,
        OF_CATALOG,
        OF_CHIPS
    } kind; /* OF_CATALOG: it needs set files; OF_CHIPS: also one list for each chip */
    kprof_status (*list)(const request *of);
    const kprof_listing_column *columns;
    const char *summary, *used_by;
} lists[] = {
    {"sets", OF_CHIPS, list_sets, set_columns, "groups of sections, with their passes on each chip", "--set"},
    {"sections", OF_CATALOG, list_sections, section_columns, "groups of metrics that pages show together", "--section"},
    {"findings", OF_CATALOG, list_findings, finding_columns, "what kprof looks for in a launch", "--rule"},
    {"chips", ALONE, list_chips, chip_columns, "the chips that kprof supports", "--chips"},
    {"metrics", OF_CHIPS, list_metrics, metric_columns, "what a chip can count", "--metrics"},
    {"collected", ALONE, list_collected, metric_columns, "the metrics that a run collects", "--set, --section"},
    {"aliases", OF_CHIPS, list_aliases, alias_columns, "short names of metrics", "--metrics"},
    {"tables", ALONE, list_tables, table_columns, "what sums up a trace", "kprof stats --report"},
};
#define LISTS_END (lists + COUNT_OF(lists))

static kprof_status fill(const kprof_options *options, const struct list_row *row, kprof_listing *listing)
{
    kprof_chips chips = {0};
    kprof_catalog *catalog = NULL;
    listing->columns = row->columns;
    if (row->list == list_metrics && options->query_mode == KPROF_QUERY_SUFFIX && options->selection.metrics.count == 0)
        return kprof_fail(KPROF_USAGE, "--query-metrics-mode suffix needs base names: --metrics NAME[,NAME]; "
                                       "all lists every full name");
    kprof_status status = row->kind != ALONE ? kprof_catalog_locate(options, &catalog) : KPROF_OK;
    if (row->kind == OF_CHIPS)
        KPROF_THEN(status, kprof_chips_named(options, &chips));
    if (status == KPROF_OK && row->kind != OF_CHIPS)
        status = row->list(&(request){options, catalog, NULL, listing});
    for (size_t i = 0; i < chips.names.count && status == KPROF_OK; i++)
        status = row->list(&(request){options, catalog, chips.names.items[i], listing});
    kprof_strlist_free(&chips.names);
    kprof_catalog_free(catalog);
    return status;
}

int kprof_cmd_list(const kprof_options *options)
{
    static const kprof_listing_column columns[] = {{.key = "list", .label = "kprof list ..."},
                                                   {.key = "summary", .label = "Shows"},
                                                   {.key = "used_by", .label = "For"},
                                                   {0}};
    KPROF_AUTO(kprof_listing) listing = {.columns = columns};
    kprof_chips chips = {0};
    /* Check the chips first, since not every list looks at them. */
    kprof_status status = options->chips.count > 0 ? kprof_chips_named(options, &chips) : KPROF_OK;
    kprof_strlist_free(&chips.names);
    for (const struct list_row *row = lists; row < LISTS_END && status == KPROF_OK; row++) {
        if (!options->argument)
            KPROF_LISTING_ADD(&listing, row->word, row->summary, row->used_by);
        else if (strcmp(options->argument, row->word) == 0)
            status = fill(options, row, &listing);
    }
    KPROF_THEN(status, kprof_results_show(options, &kprof_listing_page, &(kprof_page_input){.content = &listing}));
    return kprof_status_exit_code(status);
}
