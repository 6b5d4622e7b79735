/* --complete: what a shell may continue a command line with. The words come from the tables of options and commands,
 * from the sets, chips and metrics that there are, and for --kernel-name from the report that the line names. */
#include "cli/commands.h"
#include "cli/paths.h"
#include "cli/plans.h"
#include "core/log.h"
#include "report/model/trace_stats.h"
#include "report/report.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The receiver of answers. */
typedef struct answers {
    FILE *out;
    const kprof_options *options; /* what the line says so far */
    const char *typed;            /* only words that begin so are offered, ... */
    int kept;                     /* ... less this many characters, which stand before them and are repeated */
    bool is_line;                 /* with descriptions and directives: for --complete line */
} answers;

static void offer(const answers *to, const char *word, const char *description)
{
    if (!kprof_begins_with(word, to->typed + to->kept))
        return;
    bool is_described = to->is_line && description && *description;
    fprintf(to->out, "%.*s%s%s%s\n", to->kept, to->typed, word, is_described ? "\t" : "",
            is_described ? description : "");
}

/* A line that begins with a colon asks the shell for something else. */
static void ask_for(const answers *to, const char *directive)
{
    if (to->is_line)
        fprintf(to->out, ":%s\n", directive);
}

static void offer_options(const answers *to, const kprof_command *command, bool with_argument)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        char letter[] = {'-', kprof_option_letter(row, command), '\0'}, name[64];
        bool is_taken = row->commands & command->mask || (!command->mask && row->commands == KPROF_IN_ALL);
        if (!is_taken || (with_argument && !row->argument))
            continue;
        snprintf(name, sizeof name, "--%s", row->name);
        if (letter[1])
            offer(to, letter, row->help);
        offer(to, name, row->help);
    }
}

static void offer_commands(const answers *to)
{
    for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++)
        offer(to, kprof_commands[i].name, kprof_commands[i].summary);
}

static void offer_sets(const answers *to, const kprof_catalog *catalog)
{
    for (size_t i = 0; i < kprof_catalog_set_count(catalog); i++) {
        const kprof_catalog_entry set = kprof_catalog_set(catalog, i);
        offer(to, set.id, set.name);
        for (const char *const *alias = set.aliases; alias && *alias; alias++)
            offer(to, *alias, set.name);
    }
}

/* Sections; `before` stands before each, such as "group:". */
static void offer_sections(const answers *to, const kprof_catalog *catalog, const char *before)
{
    for (size_t i = 0; i < kprof_catalog_section_count(catalog); i++) {
        const kprof_catalog_entry section = kprof_catalog_section(catalog, i);
        char word[256];
        snprintf(word, sizeof word, "%s%s", before, section.id);
        offer(to, word, section.name);
    }
}

static kprof_status offer_findings(const answers *to, const kprof_catalog *catalog)
{
    kprof_finding_list findings;
    kprof_status status = kprof_catalog_findings(catalog, &(kprof_strlist){NULL, 0, 0}, &findings);
    for (size_t i = 0; i < findings.count; i++)
        offer(to, findings.items[i]->id, findings.items[i]->name);
    free(findings.items);
    return status;
}

static kprof_status offer_chips(const answers *to)
{
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_chips(&chips);
    for (size_t i = 0; status == KPROF_OK && i < chips.count; i++) {
        const kprof_chip *chip = kprof_chip_find(chips.items[i]);
        offer(to, chips.items[i], chip ? chip->gpus : NULL);
    }
    return status;
}

static kprof_status offer_metric(void *user, const kprof_query_row *row)
{
    offer(user, row->name, row->description);
    return KPROF_OK;
}

static kprof_status offer_breakdown(void *user, const kprof_query_row *row)
{
    char word[256];
    snprintf(word, sizeof word, "breakdown:%s", row->name);
    if (strcmp(row->kind, "throughput") == 0)
        offer(user, word, row->description);
    return KPROF_OK;
}

/* Aliases and base names; once a base name is whole, its full names; and what follows "group:" and "breakdown:". */
static kprof_status offer_metrics(const answers *to, const kprof_catalog *catalog)
{
    static const char *const prefixes[] = {"regex:", "group:", "breakdown:"};
    const char *typed = to->typed + to->kept, *dot = strstr(typed, "__") ? strrchr(typed, '.') : NULL;
    bool is_breakdown = kprof_begins_with(typed, "breakdown:");
    if (kprof_begins_with(typed, "regex:"))
        return KPROF_OK;
    if (kprof_begins_with(typed, "group:")) {
        offer_sections(to, catalog, "group:");
        return KPROF_OK;
    }
    const bool takes_names_only = to->options->command->operand == KPROF_OPERAND_METRICS;
    for (size_t i = 0; i < COUNT_OF(prefixes) && !takes_names_only; i++)
        offer(to, prefixes[i], NULL);
    for (size_t i = 0; i < kprof_catalog_alias_count(catalog); i++) {
        const kprof_alias_entry alias = kprof_alias_describe(kprof_catalog_alias(catalog, i));
        if (alias.stands_for)
            offer(to, alias.name, *alias.help ? alias.help : alias.stands_for);
    }
    kprof_chips chips = {0};
    kprof_host *host = NULL;
    KPROF_AUTO(kprof_strlist) base = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    if (takes_names_only) {
        offer_sections(to, catalog, "");
        status = offer_findings(to, catalog);
    }
    KPROF_THEN(status, kprof_chips_named(to->options, &chips));
    KPROF_THEN(status, kprof_host_open(chips.names.items[0], NULL, &host));
    if (status == KPROF_OK && dot && !is_breakdown) {
        char *name = kprof_strndup(typed, kprof_metric_base_length(typed));
        kprof_strlist_take(&base, name);
    }
    kprof_query query = {catalog, base.count ? KPROF_QUERY_SUFFIX : KPROF_QUERY_BASE, &base,
                         is_breakdown ? offer_breakdown : offer_metric, (void *)to};
    KPROF_THEN(status, kprof_query_metrics(host, &query));
    kprof_strlist_free(&chips.names);
    kprof_host_close(host);
    return status;
}

static kprof_status offer_from_catalog(const answers *to, const kprof_option_row *row)
{
    kprof_catalog *catalog = NULL;
    kprof_status status = kprof_catalog_locate(to->options, &catalog);
    if (status != KPROF_OK)
        return status;
    switch (row->field) {
    case offsetof(kprof_options, selection.sets):
        offer_sets(to, catalog);
        break;
    case offsetof(kprof_options, selection.sections):
    case offsetof(kprof_options, selection.excluded):
        offer_sections(to, catalog, "");
        break;
    case offsetof(kprof_options, rules):
        status = offer_findings(to, catalog);
        break;
    default:
        status = offer_metrics(to, catalog);
    }
    kprof_catalog_free(catalog);
    return status;
}

/* The kernels of the report that the line names, spelled as --kernel-name compares them. */
static kprof_status offer_kernels(const answers *to)
{
    const kprof_options *options = to->options;
    const char *name = options->argument ? options->argument : options->baseline, *home = secure_getenv("HOME");
    if (!kprof_command_reads_reports(options->command) || !name)
        return KPROF_OK;
    const bool is_below_home = home && kprof_begins_with(name, "~/"); /* a shell that completes does not expand "~" */
    KPROF_AUTO_FREE char *typed = kprof_strprintf("%s%s", is_below_home ? home : "", is_below_home ? name + 1 : name);
    KPROF_AUTO_FREE char *path = kprof_report_path(typed);
    kprof_report *report = NULL;
    kprof_seen_kernel *kernels = NULL;
    size_t count = 0;
    kprof_status status = kprof_report_open(path, &report);
    KPROF_THEN(status, kprof_report_seen(report, &kernels, &count));
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < count && status == KPROF_OK; i++) {
        const char *const bases[] = {[KPROF_NAME_FUNCTION] = kernels[i].function,
                                     [KPROF_NAME_DEMANGLED] = kernels[i].demangled,
                                     [KPROF_NAME_MANGLED] = kernels[i].mangled};
        kprof_strlist_add_unique(&names, bases[options->filter.name_base]);
    }
    for (size_t i = 0; i < names.count; i++)
        offer(to, names.items[i], NULL);
    kprof_seen_free(kernels, count);
    (void)!kprof_report_close(report);
    return status;
}

/* Files, if an option's argument or a command's operand is described as such. */
static void ask_for_files(const answers *to, const char *described)
{
    if (strcmp(described, "FILE.kprof") == 0)
        ask_for(to, "files .kprof");
    else if (strcmp(described, "FILE") == 0)
        ask_for(to, "files");
    else if (strcmp(described, "DIR") == 0)
        ask_for(to, "folders");
}

static kprof_status offer_values(const answers *to, const kprof_option_row *row)
{
    answers item = *to;
    const bool is_list = row->type == KPROF_OPTION_LIST || (row->type == KPROF_OPTION_CHOICE && row->value);
    const char *comma = is_list ? strrchr(to->typed + to->kept, ',') : NULL;
    if (comma)
        item.kept = (int)(comma + 1 - to->typed);
    for (const kprof_option_choice *choice = row->choices; choice && choice->word; choice++)
        offer(&item, choice->word, NULL);
    ask_for_files(&item, row->argument ? row->argument : "");
    switch (row->field) {
    case offsetof(kprof_options, chips):
        return offer_chips(&item);
    case offsetof(kprof_options, filter.kernel):
        return offer_kernels(&item);
    case offsetof(kprof_options, stats_reports):
        for (size_t i = 0; i < kprof_trace_stats_count; i++)
            if (!kprof_trace_stats_tables[i].why_none)
                offer(&item, kprof_trace_stats_tables[i].name, kprof_trace_stats_tables[i].title);
        return KPROF_OK;
    case offsetof(kprof_options, selection.sets):
    case offsetof(kprof_options, selection.sections):
    case offsetof(kprof_options, selection.excluded):
    case offsetof(kprof_options, selection.metrics):
    case offsetof(kprof_options, rules):
        return offer_from_catalog(&item, row);
    default:
        return KPROF_OK;
    }
}

/* The row that "-k", "--kernel-name", "--kernel-na" or "--kernel-name=..." is about. */
static const kprof_option_row *row_of_word(const char *word)
{
    const kprof_option_row *found = NULL;
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (row->letter && word[0] == '-' && word[1] == row->letter && word[2] == '\0')
            return row;
        if (length <= 2 || !kprof_begins_with(word, "--") || strncmp(row->name, word + 2, length - 2) != 0)
            continue;
        if (strlen(row->name) == length - 2)
            return row;
        found = found ? found : row;
    }
    return found;
}

static kprof_status offer_operands(const answers *to, const kprof_line *at)
{
    const kprof_command *command = to->options->command;
    if (command->operand == KPROF_OPERAND_METRICS) { /* words are like the values of --metrics */
        const kprof_option_row *row = kprof_option_rows;
        while (row->field != offsetof(kprof_options, selection.metrics))
            row++;
        return offer_values(to, row);
    }
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    kprof_command_words(command, &words);
    for (size_t i = 0; i < words.count && at->operands == 0; i++)
        offer(to, words.items[i], NULL);
    if (command == kprof_commands && !at->only_words && !at->has_run)
        offer_commands(to);
    /* All programs of a machine would bury the words above. */
    const bool may_be_option = to->typed[0] == '\0' && !at->only_words;
    if (command->operand == KPROF_OPERAND_APPLICATION && may_be_option)
        offer_options(to, command, false);
    else if (command->operand == KPROF_OPERAND_APPLICATION)
        ask_for(to, "programs");
    else if (command->operand == KPROF_OPERAND_FOLDER && at->operands == 0)
        ask_for(to, "folders");
    else if (command->operand == KPROF_OPERAND_WORDS)
        return KPROF_OK; /* process ids */
    else if (at->operands < (command->operand == KPROF_OPERAND_REPORTS ? 2 : 1) ||
             command->operand == KPROF_OPERAND_MANY_REPORTS)
        ask_for_files(to, kprof_command_reads_reports(command) ? "FILE.kprof" : "");
    return KPROF_OK;
}

static kprof_status offer_next(const answers *to, const kprof_line *at)
{
    answers value = *to;
    const char *equals = strchr(to->typed, '=');
    if (at->wanting)
        return offer_values(to, at->wanting);
    if (at->only_words || to->typed[0] != '-')
        return offer_operands(to, at);
    if (!equals) {
        offer_options(to, to->options->command, false);
        return KPROF_OK;
    }
    const kprof_option_row *row = row_of_word(to->typed);
    value.kept = (int)(equals + 1 - to->typed);
    return row && row->argument ? offer_values(&value, row) : KPROF_OK;
}

/* `words` is a command line after "kprof"; its last word is to be completed. */
static kprof_status complete_line(char **words, FILE *out)
{
    size_t count = 0, left = 0;
    while (words[count])
        count++;
    KPROF_AUTO_FREE char **line = kprof_calloc(count + 1, sizeof *line);
    line[0] = (char *)"kprof";
    memcpy(line + 1, words, (count - 1) * sizeof *line);
    kprof_options options;
    kprof_log_set_level(KPROF_LOG_ERROR);
    const kprof_line at = KPROF_MUTE(kprof_options_read(line, &options));
    while (options.application && options.application[left])
        left++;
    const answers to = {out, &options, words[count - 1], 0, true};
    kprof_status status = KPROF_OK;
    if (left > 0 && left < count) /* else a file of words names the application, and the line has none of its words */
        fprintf(out, ":application %zu\n", count - left);
    else if (left == 0)
        status = KPROF_MUTE(offer_next(&to, &at));
    kprof_options_free(&options);
    return status;
}

kprof_status kprof_complete(const kprof_options *options, FILE *out)
{
    const answers to = {out, options, "", 0, false};
    const char *what = options->complete;
    const kprof_option_row *row = row_of_word(what);
    if (strcmp(what, "line") == 0 && options->application)
        return complete_line(options->application, out);
    if (strcmp(what, "options") == 0 || strcmp(what, "arguments") == 0)
        offer_options(&to, options->command, what[0] == 'a');
    else if (strcmp(what, "commands") == 0)
        offer_commands(&to);
    else if (row)
        return offer_values(&to, row);
    else
        return kprof_fail(KPROF_USAGE,
                          "--complete: \"%s\" is not commands, options, arguments, an option, or line -- WORDS", what);
    return KPROF_OK;
}
