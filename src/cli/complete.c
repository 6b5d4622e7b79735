/* --complete: the words that shells offer, from the table of options and the table of commands. */
#include "cli/commands.h"
#include "cli/paths.h"
#include "core/log.h"

#include <stddef.h>
#include <string.h>

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
    for (size_t i = 1; i < kprof_command_count; i++)
        fprintf(out, "%s\n", kprof_commands[i].name);
    return KPROF_OK;
}
