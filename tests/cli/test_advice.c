/* What the parser says of any option of a command, and of any two: it names the word that is wrong, and no option that
 * the command it speaks of lacks. */
#include "cli/commands.h"
#include "core/log.h"
#include "test.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 8, MOST_SAID = 1 << 16 };

static char said[MOST_SAID], line[1024];

static void keep(void *unused, kprof_log_level level, const char *message)
{
    const size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s\n", message);
}

/* A value that the option takes, and another one than it has anyway where that is known. */
static const char *value_of(const kprof_option_row *row)
{
    static const char *const own[][2] = {
        {"fail-on", "duration>5%"}, {"filter", "duration>1us"}, {"kernel-id", ":::1"},   {"launch", "1"},
        {"range-filter", ":1:"},    {"schedule", "0,0,0,1,1"},  {"filter-time", "1/2s"}, {"format", "csv"},
    };
    const size_t at = KPROF_FIND(i, COUNT_OF(own), strcmp(own[i][0], row->name) == 0);
    const char *word = at < COUNT_OF(own) ? own[at][1] : NULL;
    for (const kprof_option_choice *choice = row->choices; choice && choice->word; choice++)
        word = choice->word;
    if (word || !row->argument)
        return word;
    return row->type == KPROF_OPTION_STRING || row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS ? "x"
                                                                                                                 : "3";
}

static const char *operands_of(const kprof_command *command)
{
    switch (command->operand) {
    case KPROF_OPERAND_APPLICATION:
        return "app";
    case KPROF_OPERAND_REPORT:
        return "a.kprof";
    case KPROF_OPERAND_REPORTS:
        return "a.kprof b.kprof";
    case KPROF_OPERAND_MANY_REPORTS:
        return command->mask == KPROF_IN(merge) ? "a.kprof b.kprof" : "a.kprof";
    case KPROF_OPERAND_WORD:
        return "metrics";
    case KPROF_OPERAND_WORDS:
        return "status";
    case KPROF_OPERAND_METRICS:
        return "m";
    default:
        return "";
    }
}

/* Parse the line, in a copy, and keep what is said. */
static kprof_status parse(void)
{
    char copy[sizeof line], *rest = copy, *words[MOST_WORDS + 1];
    kprof_options options;
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word; (word = strsep(&rest, " ")) && count < MOST_WORDS;)
        if (*word)
            words[count++] = word;
    words[count] = NULL;
    said[0] = '\0';
    kprof_log_set_sink(keep, NULL);
    const kprof_status status = kprof_options_parse(words, &options);
    kprof_options_free(&options);
    return status;
}

static bool is_of(const kprof_command *command, const char *name, size_t length)
{
    const unsigned mask = command->mask | KPROF_IGNORED_IN(command->mask);
    return KPROF_ANY(i, KPROF_OPTION_ROWS,
                     kprof_option_rows[i].commands & mask && strlen(kprof_option_rows[i].name) == length &&
                         strncmp(kprof_option_rows[i].name, name, length) == 0);
}

/* The command that a message goes on to speak of, from "kprof NAME" or "a run" to the end of the clause; else the one
 * before. */
static const kprof_command *command_at(const char *text, const kprof_command *before)
{
    if (kprof_begins_with(text, "a run") || kprof_begins_with(text, "kprof -"))
        return kprof_commands;
    const char *name = kprof_after(text, "kprof ");
    const size_t at =
        KPROF_FIND(i, KPROF_COMMAND_COUNT - 1, name && kprof_begins_with(name, kprof_commands[i + 1].name));
    return at < KPROF_COMMAND_COUNT - 1 ? &kprof_commands[at + 1] : before;
}

static void check_mentions(const kprof_command *command)
{
    const kprof_command *spoken_of = command;
    for (const char *at = said; *at; at++) {
        spoken_of = strchr("\n,;", *at) ? command : command_at(at, spoken_of);
        if (strncmp(at, "--", 2) != 0 || !islower((unsigned char)at[2]) ||
            (at > said && isalnum((unsigned char)at[-1])))
            continue;
        const size_t length = strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-0123456789");
        KPROF_AUTO_FREE char *option = kprof_strndup(at, length + 2);
        if (!is_of(spoken_of, at + 2, length) && !strstr(line, option))
            fail_msg("\"%s\" is told of %s, which kprof %s lacks: %s", line, option, spoken_of->name, said);
        at += length + 1;
    }
}

static bool is_tried(const kprof_command *command, const kprof_option_row *row)
{
    static const char *const not [] = {"complete", "help", "version", "config-file-path", "import", NULL};
    return row->commands & command->mask && !KPROF_ANY(i, COUNT_OF(not ) - 1, strcmp(not [i], row -> name) == 0);
}

static void add_option(const kprof_option_row *row)
{
    const char *value = value_of(row);
    const size_t length = strlen(line);
    snprintf(line + length, sizeof line - length, " --%s%s%s", row->name, value ? "=" : "", value ? value : "");
}

static void begin_line(const kprof_command *command)
{
    snprintf(line, sizeof line, "kprof %s", command->name);
}

static void end_line(const kprof_command *command)
{
    const size_t length = strlen(line);
    snprintf(line + length, sizeof line - length, " %s", operands_of(command));
}

TEST(messages_about_two_options_mention_what_the_command_has)
{
    size_t told = 0;
    for (size_t c = 0; c < KPROF_COMMAND_COUNT; c++) {
        const kprof_command *command = &kprof_commands[c];
        for (size_t i = 0; i < KPROF_OPTION_ROWS; i++)
            for (size_t k = i; k < KPROF_OPTION_ROWS; k++) {
                if (!is_tried(command, &kprof_option_rows[i]) || !is_tried(command, &kprof_option_rows[k]))
                    continue;
                begin_line(command);
                add_option(&kprof_option_rows[i]);
                if (k != i)
                    add_option(&kprof_option_rows[k]);
                end_line(command);
                (void)!parse();
                check_mentions(command);
                told += *said != '\0';
            }
    }
    assert_true(told > 2000);
}

TEST(a_refusal_names_the_word)
{
    for (size_t c = 0; c < KPROF_COMMAND_COUNT; c++)
        for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
            const kprof_option_row *row = &kprof_option_rows[i];
            if (!is_tried(&kprof_commands[c], row) || !row->argument)
                continue;
            snprintf(line, sizeof line, "kprof %s --%s=zzz,yyy %s", kprof_commands[c].name, row->name,
                     operands_of(&kprof_commands[c]));
            const kprof_status status = parse();
            check_mentions(&kprof_commands[c]);
            if (status == KPROF_USAGE && (!strstr(said, "zzz") || !strstr(said, row->name)))
                fail_msg("\"%s\": %s", line, said);
        }
}
