/* The table of commands, made from the rows in commands.h. */
#include "cli/commands.h"

#include <string.h>

#define ROW(function, name, has_options, operand, usage, manual, summary)                                              \
    {name, has_options ? KPROF_IN(function) : 0, kprof_cmd_##function, KPROF_OPERAND_##operand, usage, manual, summary},

const kprof_command kprof_commands[] = {KPROF_COMMANDS(ROW)};

const kprof_command *kprof_command_find(const char *name)
{
    for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++)
        if (strcmp(kprof_commands[i].name, name) == 0)
            return &kprof_commands[i];
    return NULL;
}

const char *kprof_command_nearest(const char *word)
{
    const char *names[KPROF_COMMAND_COUNT];
    for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++)
        names[i - 1] = kprof_commands[i].name;
    return kprof_nearest_spelling(word, names, KPROF_COMMAND_COUNT - 1);
}

const kprof_command *kprof_command_of_alias(const kprof_option_row *alias, const char **word)
{
    const char *line = alias->note, *space = strchr(line, ' ');
    size_t length = space ? (size_t)(space - line) : strlen(line);
    *word = space ? space + 1 : NULL;
    for (size_t i = 1; i < KPROF_COMMAND_COUNT; i++) {
        const char *name = kprof_commands[i].name;
        if (strlen(name) == length && memcmp(name, line, length) == 0)
            return &kprof_commands[i];
    }
    return NULL;
}

bool kprof_command_reads_reports(const kprof_command *command)
{
    return command->operand == KPROF_OPERAND_REPORT || command->operand == KPROF_OPERAND_REPORTS ||
           command->operand == KPROF_OPERAND_MANY_REPORTS;
}

void kprof_command_words(const kprof_command *command, kprof_strlist *out)
{
    for (size_t i = 1; command->operand == KPROF_OPERAND_COMMAND && i < KPROF_COMMAND_COUNT; i++)
        kprof_strlist_add(out, kprof_commands[i].name);
    if (command->operand != KPROF_OPERAND_WORD && command->operand != KPROF_OPERAND_WORDS)
        return;
    KPROF_AUTO_FREE char *words = kprof_strndup(command->usage, strcspn(command->usage, " "));
    char *rest = words;
    for (char *word; (word = strsep(&rest, "|"));)
        kprof_strlist_add(out, word);
}
