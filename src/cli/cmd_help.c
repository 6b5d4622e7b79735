/* kprof help, kprof version, --help and --version: made from the table of options and the table of commands. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"

#include <string.h>

#define HELP_COLUMN 36
#define LEAST_WIDTH 64 /* fewer columns leave no room behind HELP_COLUMN */
#define MOST_WIDTH  100

/* A file for help, and the columns that it may take. */
typedef struct help_stream {
    FILE *file;
    int width;
} help_stream;

/* Print words from HELP_COLUMN on; `at` is the column where the line stands. */
static void print_wrapped(const char *text, int at, const help_stream *out)
{
    for (const char *word = text; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");
        bool is_first = word == text;
        if ((is_first ? at >= HELP_COLUMN : at + 1 + length > out->width)) {
            fputc('\n', out->file);
            at = 0;
        }
        int gap = at < HELP_COLUMN ? HELP_COLUMN - at : !is_first;
        at += fprintf(out->file, "%*s%.*s", gap, "", length, word);
        word += length;
    }
    fputc('\n', out->file);
}

/* Print an argument after `column` columns; a long list of words is broken. Return the columns of the line then. */
static int print_argument(const char *argument, int column, const help_stream *out)
{
    enum { INDENT = 8 };
    for (int length; *argument; argument += length) {
        length = (int)strcspn(argument, "|");
        length += argument[length] != '\0';
        if (column + length > out->width - 2)
            column = fprintf(out->file, "\n%*s", INDENT, "") - 1;
        column += fprintf(out->file, "%.*s", length, argument);
    }
    return column;
}

static void print_option(const kprof_option_row *row, const kprof_command *topic, const help_stream *out)
{
    char letter[] = {'-', kprof_option_letter(row, topic), ',', ' ', '\0'};
    int length = fprintf(out->file, "  %4s--%s%s", letter[1] ? letter : "", row->name, row->argument ? " " : "");
    if (row->argument)
        length = print_argument(row->argument, length, out);
    print_wrapped(row->help, length, out);
}

void kprof_help_print(const kprof_options *options, FILE *file)
{
    const unsigned asked = kprof_results_width(options, file);
    const int width = asked == 0 || asked > MOST_WIDTH ? MOST_WIDTH : asked < LEAST_WIDTH ? LEAST_WIDTH : (int)asked;
    const help_stream *out = &(help_stream){file, width};
    const kprof_command *topic = options->topic;
    if (!topic && options->argument)
        topic = kprof_command_find(options->argument);
    else if (!topic || !topic->mask) /* "help" alone, or --help given to a command that has no options */
        topic = kprof_commands;
    /* A program's options are its own, so kprof's stand before it. */
    bool has_options = topic->mask && topic->operand != KPROF_OPERAND_APPLICATION;
    fprintf(file, "usage: kprof%s%s%s%s%s\n\n%s\n", *topic->name ? " " : "", topic->name, *topic->usage ? " " : "",
            topic->usage, has_options ? " [options]" : "", topic->summary);
    if (topic == kprof_commands)
        fputs("\ncommands:\n", file);
    for (size_t i = 1; i < KPROF_COMMAND_COUNT && topic == kprof_commands; i++)
        print_wrapped(kprof_commands[i].summary, fprintf(file, "  kprof %s", kprof_commands[i].name), out);
    if (topic == kprof_commands)
        fputs("  (kprof -- report profiles a program called report)\n", file);
    if (topic->mask)
        fputs("\noptions (long ones may be shortened; --option=value, too):\n", file);
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++)
        if (kprof_option_rows[i].commands & topic->mask)
            print_option(&kprof_option_rows[i], topic, out);
    if (topic == kprof_commands) /* a run has most options; here are the others */
        fputs("\noptions of other commands:\n", file);
    for (size_t i = 0; i < KPROF_OPTION_ROWS && topic == kprof_commands; i++)
        if (!(kprof_option_rows[i].commands & topic->mask))
            print_option(&kprof_option_rows[i], topic, out);
    fprintf(file, "\nman %s says more%s.\n", topic->manual,
            topic == kprof_commands ? ", exit codes included;\neach command has a page too, such as kprof-report" : "");
}

int kprof_cmd_help(const kprof_options *options)
{
    kprof_help_print(options, stdout);
    return kprof_status_exit_code(kprof_results_close(options, stdout, KPROF_OK));
}

int kprof_cmd_version(const kprof_options *options)
{
    printf("kprof %s\n", KPROF_VERSION);
    if (kprof_is_called_ncu()) /* scripts look for the word */
        printf("Version %s\n", KPROF_VERSION);
    return kprof_status_exit_code(kprof_results_close(options, stdout, KPROF_OK));
}
