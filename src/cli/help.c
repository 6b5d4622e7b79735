/* --help and the words that shells complete, both made from the table of options and the table of commands. */
#include "cli/options.h"
#include "cli/paths.h"
#include "core/log.h"

#include <stddef.h>
#include <string.h>

#define HELP_COLUMN 36

static void print_row(const kprof_option_row *row, FILE *out)
{
    char left[128];
    int length =
        snprintf(left, sizeof left, "  %c%c%s--%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                 row->letter ? ", " : "  ", row->name, row->argument ? " " : "", row->argument ? row->argument : "");
    if (length >= HELP_COLUMN)
        fprintf(out, "%s\n%*s%s\n", left, HELP_COLUMN, "", row->help);
    else
        fprintf(out, "%-*s%s\n", HELP_COLUMN, left, row->help);
}

static void print_usage(const kprof_command *command, FILE *out)
{
    if (command->name[0] == '\0')
        fputs("usage: kprof [options] [--] application [arguments]\n", out);
    else if (command->mask == KPROF_IN_REPORT)
        fprintf(out, "usage: kprof %s FILE.kprof [options]\n", command->name);
    else
        fprintf(out, "usage: kprof %s%s\n", command->name, strcmp(command->name, "help") == 0 ? " [command]" : "");
    fprintf(out, "\n%s\n", command->summary);
}

static void print_commands(const kprof_command *commands, FILE *out)
{
    fputs("\ncommands:\n", out);
    for (const kprof_command *command = commands + 1; command->run; command++)
        fprintf(out, "  kprof %-27s %s\n", command->name, command->summary);
    fputs("  (kprof -- report profiles a program that is called like a command)\n", out);
}

static kprof_status fail_topic(const kprof_command *commands, const char *topic)
{
    const char *names[16];
    size_t count = 0;
    for (const kprof_command *command = commands + 1; command->run && count < sizeof names / sizeof *names; command++)
        names[count++] = command->name;
    const char *nearest = kprof_nearest(topic, names, count);
    return nearest ? kprof_fail(KPROF_USAGE, "help: there is no command %s; did you mean %s?", topic, nearest)
                   : kprof_fail(KPROF_USAGE, "help: there is no command %s; kprof --help lists them", topic);
}

/* The command that is asked about: the word after "help", or the one that --help was given to. */
static kprof_status find_topic(const kprof_options *options, const kprof_command **out)
{
    bool is_word = options->command->mask == 0 && options->argument;
    *out = options->command->mask ? options->command : options->commands;
    for (const kprof_command *command = options->commands; is_word && command->run; command++) {
        if (strcmp(command->name, options->argument) == 0) {
            *out = command;
            return KPROF_OK;
        }
    }
    return is_word ? fail_topic(options->commands, options->argument) : KPROF_OK;
}

kprof_status kprof_help_print(const kprof_options *options, FILE *out)
{
    const kprof_command *command;
    kprof_status status = find_topic(options, &command);
    if (status != KPROF_OK)
        return status;
    print_usage(command, out);
    if (command == options->commands)
        print_commands(options->commands, out);
    if (command->mask)
        fputs("\noptions (long ones may be shortened, and given as --option=value too):\n", out);
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (kprof_option_rows[i].commands & command->mask)
            print_row(&kprof_option_rows[i], out);
    }
    fprintf(out, "\nman kprof and man kprof-report say more, exit codes included.\n");
    return fflush(out) == 0 ? KPROF_OK : KPROF_OUTPUT;
}

/* Options of the command being completed, which the words before "--complete" name; or only those with an argument. */
static void complete_options(const kprof_options *options, FILE *out, bool with_argument)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (!(row->commands & options->command->mask) || (with_argument && !row->argument))
            continue;
        if (row->letter)
            fprintf(out, "-%c\n", row->letter);
        fprintf(out, "--%s\n", row->name);
    }
}

typedef size_t entry_count(const kprof_catalog *catalog);
typedef kprof_catalog_entry entry_at(const kprof_catalog *catalog, size_t index);

static kprof_status complete_catalog(const kprof_options *options, FILE *out, bool sets)
{
    entry_count *count = sets ? kprof_catalog_set_count : kprof_catalog_section_count;
    entry_at *entry = sets ? kprof_catalog_set : kprof_catalog_section;
    kprof_catalog *catalog = NULL;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    for (size_t i = 0; status == KPROF_OK && i < count(catalog); i++) {
        fprintf(out, "%s\n", entry(catalog, i).id);
        for (const char *const *alias = entry(catalog, i).aliases; alias && *alias; alias++)
            fprintf(out, "%s\n", *alias);
    }
    kprof_catalog_free(catalog);
    return status;
}

static kprof_status complete_chips(FILE *out)
{
    kprof_strlist chips = KPROF_STRLIST_INIT;
    kprof_status status = kprof_host_chips(&chips);
    for (size_t i = 0; status == KPROF_OK && i < chips.count; i++)
        fprintf(out, "%s\n", chips.items[i]);
    kprof_strlist_free(&chips);
    return status;
}

static const kprof_option_row *row_of_word(const char *word)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        bool is_letter = row->letter && word[0] == '-' && word[1] == row->letter && word[2] == '\0';
        if (is_letter || (strncmp(word, "--", 2) == 0 && strcmp(word + 2, row->name) == 0))
            return row;
    }
    return NULL;
}

static kprof_status complete_values(const kprof_options *options, FILE *out)
{
    const kprof_option_row *row = row_of_word(options->complete);
    if (!row)
        return kprof_fail(KPROF_USAGE, "--complete: \"%s\" is not commands, options, arguments or an option",
                          options->complete);
    for (const kprof_choice *choice = row->choices; choice && choice->word; choice++)
        fprintf(out, "%s\n", choice->word);
    if (row->field == offsetof(kprof_options, selection.sets))
        return complete_catalog(options, out, true);
    if (row->field == offsetof(kprof_options, selection.sections))
        return complete_catalog(options, out, false);
    if (row->field == offsetof(kprof_options, chips))
        return complete_chips(out);
    return KPROF_OK;
}

kprof_status kprof_complete(const kprof_options *options, FILE *out)
{
    if (strcmp(options->complete, "options") == 0) {
        complete_options(options, out, false);
        return KPROF_OK;
    }
    if (strcmp(options->complete, "arguments") == 0) {
        complete_options(options, out, true);
        return KPROF_OK;
    }
    if (strcmp(options->complete, "commands") != 0)
        return complete_values(options, out);
    for (const kprof_command *command = options->commands + 1; command->run; command++)
        fprintf(out, "%s\n", command->name);
    return KPROF_OK;
}
