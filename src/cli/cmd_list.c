/* kprof list: the sets, sections, chips and metrics to collect, the findings and the aliases. It needs no GPU. */
#include "cli/commands.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "core/log.h"
#include "report/model/findings.h"

#include <stdlib.h>
#include <string.h>

static char *join(const char *const *words)
{
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (size_t i = 0; words && words[i]; i++)
        kprof_strbuf_printf(&joined, "%s%s", i ? " " : "", words[i]);
    return kprof_strbuf_take(&joined);
}

/* Adds the rows of a chip to a list. */
typedef kprof_status chip_lister(const kprof_options *options, const kprof_catalog *catalog, const char *chip,
                                 kprof_listing *listing);

static kprof_status list_for_chips(const kprof_options *options, chip_lister *list, kprof_listing *listing)
{
    kprof_chips chips = {0};
    kprof_catalog *catalog = NULL;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    KPROF_THEN(status, kprof_chips_named(options, &chips));
    for (size_t i = 0; i < chips.names.count && status == KPROF_OK; i++)
        status = list(options, catalog, chips.names.items[i], listing);
    kprof_strlist_free(&chips.names);
    kprof_catalog_free(catalog);
    return status;
}

/* List the sets alone if the chip's metrics cannot be known. */
static kprof_status add_sets(const kprof_options *options, const kprof_catalog *catalog, const char *chip,
                             kprof_listing *listing)
{
    kprof_host *host = NULL;
    kprof_status status = kprof_chip_open(chip, &host);
    (void)options;
    for (size_t i = 0; i < kprof_catalog_set_count(catalog) && status == KPROF_OK; i++) {
        kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        kprof_listing_add(listing, set.id);
        kprof_strlist_take(&listing->cells, join(set.aliases));
        kprof_listing_add(listing, chip);
        kprof_set_cost cost;
        if (!host) {
            KPROF_LISTING_ADD(listing, "", "", ""); /* metrics, passes, the share of instructions */
        } else if ((status = kprof_set_cost_on(catalog, set.id, host, &cost)) == KPROF_OK) {
            kprof_listing_add_number(listing, cost.metric_count);
            kprof_listing_add_number(listing, cost.pass_count);
            kprof_listing_add_number(listing, (size_t)(cost.instruction_pct + 0.5));
        }
        kprof_strlist_take(&listing->cells, join(set.section_ids));
    }
    kprof_host_close(host);
    return status;
}

static kprof_status list_sets(const kprof_options *options, kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {
        {.key = "set", .label = "Set"},
        {.key = "alias", .label = "Alias"},
        {.key = "chip", .label = "Chip"},
        {.key = "metrics", .label = "Metrics", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
        {.key = "passes", .label = "Passes", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
        {.key = "instruction_pct", .label = "Time for instructions, %", .type = KPROF_FIELD_INTEGER, .missing = "n/a"},
        {.key = "sections", .label = "Sections", .folds = true},
        {0},
    };
    listing->columns = columns;
    return list_for_chips(options, add_sets, listing);
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

static void add_section(const kprof_catalog *catalog, size_t index, bool with_help, kprof_listing *listing)
{
    kprof_catalog_entry section = kprof_catalog_section(catalog, index);
    KPROF_LISTING_ADD(listing, section.id, section.name);
    kprof_strlist_take(&listing->cells, sets_with(catalog, section.id));
    if (!with_help)
        return;
    KPROF_LISTING_ADD(listing, "", section.help);
    kprof_catalog_section_helps(catalog, index, add_help, &(help_lister){listing, section.id});
}

/* With --verbose also what sections are about, and below each its values that it explains. */
static kprof_status list_sections(const kprof_options *options, kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {
        {.key = "section", .label = "Section"},
        {.key = "name", .label = "Name", .folds = true},
        {.key = "sets", .label = "Sets"},
        {0},
    };
    static const kprof_listing_column verbose_columns[] = {
        {.key = "section", .label = "Section"},
        {.key = "name", .label = "Name"},
        {.key = "sets", .label = "Sets", .missing = "-"},
        {.key = "metric", .label = "Metric", .missing = "-", .folds = true},
        {.key = "help", .label = "Help", .folds = true},
        {0},
    };
    kprof_catalog *catalog = NULL;
    listing->columns = options->verbose ? verbose_columns : columns;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    for (size_t i = 0; status == KPROF_OK && i < kprof_catalog_section_count(catalog); i++)
        add_section(catalog, i, options->verbose, listing);
    kprof_catalog_free(catalog);
    return status;
}

static kprof_status list_findings(const kprof_options *options, kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {
        {.key = "finding", .label = "Finding"},
        {.key = "name", .label = "Name", .folds = true},
        {.key = "section", .label = "Section"},
        {.key = "confidence", .label = "Confidence"},
        {.key = "help", .label = "When it is found", .folds = true},
        {0},
    };
    kprof_catalog *catalog = NULL;
    kprof_finding_list findings = {NULL, 0};
    listing->columns = columns;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    KPROF_THEN(status, kprof_catalog_findings(catalog, &options->rules, &findings));
    for (size_t i = 0; i < findings.count; i++) {
        const kprof_finding *finding = findings.items[i];
        KPROF_LISTING_ADD(listing, finding->id, finding->name, finding->sections[0],
                          kprof_confidence_name(finding->confidence), finding->help);
    }
    free(findings.items);
    kprof_catalog_free(catalog);
    return status;
}

/* `host` NULL: the chip's metrics cannot be known here, and the first choice is listed. */
static void add_alias(kprof_listing *listing, const kprof_alias *alias, const char *chip, kprof_host *host)
{
    const kprof_alias_entry entry = kprof_alias_describe(alias);
    const char *stands_for = host ? kprof_alias_on(alias, host) : entry.stands_for;
    KPROF_LISTING_ADD(listing, entry.name, entry.origin, host ? chip : "", entry.help, stands_for);
}

static kprof_status add_aliases(const kprof_options *options, const kprof_catalog *catalog, const char *chip,
                                kprof_listing *listing)
{
    kprof_host *host = NULL;
    kprof_status status = kprof_chip_open(chip, &host);
    (void)options;
    if (status == KPROF_OK && host)
        status = kprof_catalog_check_aliases(catalog, host);
    for (size_t i = 0; i < kprof_catalog_alias_count(catalog) && status == KPROF_OK; i++)
        add_alias(listing, kprof_catalog_alias(catalog, i), chip, host);
    kprof_host_close(host);
    return status;
}

static kprof_status list_aliases(const kprof_options *options, kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {
        {.key = "alias", .label = "Alias"},
        {.key = "of", .label = "Of"},
        {.key = "chip", .label = "Chip", .missing = "any"},
        {.key = "help", .label = "Help", .missing = "-", .folds = true},
        {.key = "metric", .label = "Metric", .missing = "n/a", .folds = true},
        {0},
    };
    listing->columns = columns;
    return list_for_chips(options, add_aliases, listing);
}

static void add_chip(kprof_listing *listing, const char *name)
{
    const kprof_chip *chip = kprof_chip_find(name);
    char capability[32] = "";
    if (chip)
        snprintf(capability, sizeof capability, "%d.%d", chip->capability / 10, chip->capability % 10);
    KPROF_LISTING_ADD(listing, name, capability, chip ? chip->gpus : "");
}

static kprof_status list_chips(const kprof_options *options, kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {
        {.key = "chip", .label = "Chip"},
        {.key = "compute_capability", .label = "CC", .missing = "-"},
        {.key = "gpus", .label = "GPUs such as", .missing = "-", .folds = true},
        {0},
    };
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    (void)options;
    listing->columns = columns;
    kprof_status status = kprof_host_chips(&chips);
    for (size_t i = 0; status == KPROF_OK && i < chips.count; i++)
        add_chip(listing, chips.items[i]);
    return status;
}

/* The listing that gets the metrics of one chip. */
typedef struct metric_lister {
    kprof_listing *listing;
    const char *chip;
} metric_lister;

static kprof_status add_metric(void *user, const kprof_query_row *row)
{
    const metric_lister *to = user;
    KPROF_LISTING_ADD(to->listing, row->name, row->kind, row->unit, to->chip, row->description);
    return KPROF_OK;
}

static kprof_status query_chip(const kprof_options *options, const kprof_catalog *catalog, const char *chip,
                               kprof_listing *listing)
{
    kprof_host *host = NULL;
    metric_lister to = {listing, chip};
    kprof_query query = {catalog, (kprof_query_mode)options->query_mode, &options->selection.metrics, add_metric, &to};
    kprof_status status = kprof_host_open(chip, NULL, &host);
    KPROF_THEN(status, kprof_query_metrics(host, &query));
    kprof_host_close(host);
    return status;
}

static const kprof_listing_column metric_columns[] = {
    {.key = "metric", .label = "Metric"}, /* first, as in ncu's lists: scripts take the first word of a line */
    {.key = "kind", .label = "Kind"},
    {.key = "unit", .label = "Unit", .missing = "-"},
    {.key = "chip", .label = "Chip"},
    {.key = "description", .label = "Description", .folds = true},
    {0},
};

static kprof_status query_metrics(const kprof_options *options, kprof_listing *listing)
{
    if (options->query_mode == KPROF_QUERY_SUFFIX && options->selection.metrics.count == 0)
        return kprof_fail(KPROF_USAGE, "--query-metrics-mode suffix needs base names: --metrics NAME[,NAME]; "
                                       "all lists every full name");
    listing->columns = metric_columns;
    return list_for_chips(options, query_chip, listing);
}

/* List the full names of all metrics that a run with these sets, sections and metrics collects. */
static kprof_status list_collected(const kprof_options *options, kprof_listing *listing)
{
    kprof_chips chips = {0};
    KPROF_AUTO(kprof_plans) plans = {0};
    listing->columns = metric_columns;
    kprof_status status = kprof_chips_named(options, &chips);
    KPROF_THEN(status, kprof_plans_make_for(options, &chips.names, chips.device_bytes, &plans));
    for (size_t i = 0; i < plans.count && status == KPROF_OK; i++) {
        metric_lister to = {listing, plans.chips[i].plan.chip};
        const kprof_query query = {.visit = add_metric, .user = &to};
        status = kprof_query_collected(plans.chips[i].host, &plans.chips[i].plan, &query);
    }
    kprof_strlist_free(&chips.names);
    return status;
}

/* A list for each word in the row of the command. */
typedef struct list_row {
    const char *word;
    kprof_status (*fill)(const kprof_options *options, kprof_listing *listing);
    const char *summary, *used_by;
} list_row;
static const list_row lists[] = {
    {"sets", list_sets, "groups of sections, with their passes on each chip", "--set"},
    {"sections", list_sections, "groups of metrics that pages show together", "--section"},
    {"findings", list_findings, "what kprof looks for in a launch", "--rule"},
    {"chips", list_chips, "the chips that kprof supports", "--chips"},
    {"metrics", query_metrics, "what a chip can count", "--metrics"},
    {"collected", list_collected, "the metrics that a run collects", "--set, --section"},
    {"aliases", list_aliases, "short names of metrics", "--metrics"},
};

/* "kprof list" alone: what can be listed. */
static void list_lists(kprof_listing *listing)
{
    static const kprof_listing_column columns[] = {{.key = "list", .label = "kprof list ..."},
                                                   {.key = "summary", .label = "Shows"},
                                                   {.key = "used_by", .label = "For"},
                                                   {0}};
    listing->columns = columns;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        KPROF_LISTING_ADD(listing, lists[i].word, lists[i].summary, lists[i].used_by);
}

/* Chips are checked first: not every list is about them. */
static kprof_status fill(const kprof_options *options, kprof_listing *listing)
{
    kprof_chips chips = {0};
    kprof_status status = options->chips.count > 0 ? kprof_chips_named(options, &chips) : KPROF_OK;
    kprof_strlist_free(&chips.names);
    if (status != KPROF_OK)
        return status;
    if (!options->argument) {
        list_lists(listing);
        return KPROF_OK;
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(options->argument, lists[i].word) == 0)
            return lists[i].fill(options, listing);
    return kprof_fail(KPROF_INTERNAL, "there is no list of %s", options->argument);
}

int kprof_cmd_list(const kprof_options *options)
{
    KPROF_AUTO(kprof_listing) listing = {0};
    kprof_status status = fill(options, &listing);
    KPROF_THEN(status, kprof_results_show(options, &kprof_listing_page, &(kprof_page_input){.content = &listing}));
    return kprof_status_exit_code(status);
}
