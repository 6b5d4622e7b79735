/* kprof help, kprof version, --help and --version: made from the table of options and the table of commands. */
#include "cli/commands.h"
#include "cli/output.h"
#include "core/log.h"

#include <string.h>

#define HELP_COLUMN 36
#define HELP_WIDTH  100

/* Print words from HELP_COLUMN on, in lines of at most HELP_WIDTH columns; `at` is the column where the line stands. */
static void print_wrapped(const char *text, int at, FILE *out)
{
    for (const char *word = text; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        bool is_first = word == text;
        if ((is_first ? at >= HELP_COLUMN : at + 1 + length > HELP_WIDTH)) {
            fputc('\n', out);
            at = 0;
        }
        int gap = at < HELP_COLUMN ? HELP_COLUMN - at : !is_first;
        at += fprintf(out, "%*s%.*s", gap, "", length, word);
        word += length;
    }
    fputc('\n', out);
}

/* Print an argument after `column` columns; a long list of words is broken. Return the columns of the line then. */
static int print_argument(const char *argument, int column, FILE *out)
{
    enum { INDENT = 8, WIDTH = 98 };
    for (int length; *argument; argument += length) {
        length = (int)strcspn(argument, "|");
        length += argument[length] != '\0';
        if (column + length > WIDTH)
            column = fprintf(out, "\n%*s", INDENT, "") - 1;
        column += fprintf(out, "%.*s", length, argument);
    }
    return column;
}

static void print_option(const kprof_option_row *row, const kprof_command *topic, FILE *out)
{
    char letter[] = {'-', kprof_option_letter(row, topic), ',', ' ', '\0'};
    int length = fprintf(out, "  %4s--%s ", letter[1] ? letter : "", row->name);
    length = print_argument(row->argument ? row->argument : "", length, out);
    print_wrapped(row->help, length, out);
}

/* A run has most options; here are the others. */
static void print_other_options(FILE *out)
{
    fputs("\noptions of other commands:\n", out);
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (!(kprof_option_rows[i].commands & kprof_commands[0].mask))
            print_option(&kprof_option_rows[i], kprof_commands, out);
    }
}

void kprof_help_print(const kprof_options *options, FILE *out)
{
    const kprof_command *topic = options->topic;
    if (!topic && options->argument)
        topic = kprof_command_find(options->argument);
    else if (!topic || !topic->mask) /* "help" alone, or --help given to a command that has no options */
        topic = kprof_commands;
    /* A program's options are its own, so kprof's stand before it. */
    bool has_options = topic->mask && topic->operand != KPROF_OPERAND_APPLICATION;
    fprintf(out, "usage: kprof%s%s%s%s%s\n\n%s\n", *topic->name ? " " : "", topic->name, *topic->usage ? " " : "",
            topic->usage, has_options ? " [options]" : "", topic->summary);
    if (topic == kprof_commands) {
        fputs("\ncommands:\n", out);
        for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++)
            fprintf(out, "  kprof %-*s%s\n", HELP_COLUMN - 8, kprof_commands[i].name, kprof_commands[i].summary);
        fputs("  (kprof -- report profiles a program that is called like a command)\n", out);
    }
    if (topic->mask)
        fputs("\noptions (long ones may be shortened, and given as --option=value too):\n", out);
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (kprof_option_rows[i].commands & topic->mask)
            print_option(&kprof_option_rows[i], topic, out);
    }
    if (topic == kprof_commands)
        print_other_options(out);
    fprintf(out, "\nman %s says more%s.\n", topic->manual,
            topic == kprof_commands ? ", exit codes included; each command has a page too, such as kprof-report" : "");
}

int kprof_cmd_help(const kprof_options *options)
{
    kprof_help_print(options, stdout);
    return kprof_status_exit_code(kprof_results_close(options, stdout, KPROF_OK));
}

int kprof_cmd_version(const kprof_options *options)
{
    printf("kprof %s\n", KPROF_VERSION);
    return kprof_status_exit_code(kprof_results_close(options, stdout, KPROF_OK));
}
