/* The tables of commands and of options, made from the rows in commands.h and option_rows.h. */
#include "cli/commands.h"
#include "core/config.h"
#include "report/report.h"

#include <stddef.h>
#include <string.h>

#define ROW(function, name, has_options, operand, usage, manual, summary)                                              \
    {name, has_options ? KPROF_IN(function) : 0, kprof_cmd_##function, KPROF_OPERAND_##operand, usage, manual, summary},

const kprof_command kprof_commands[] = {KPROF_COMMANDS(ROW)};

const kprof_command *kprof_command_find(const char *name)
{
    return KPROF_FIRST(it, kprof_commands + 1, KPROF_COMMAND_COUNT - 1, strcmp(it->name, name) == 0);
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

#define RUN    KPROF_IN(profile)
#define REPORT KPROF_IN(report)
#define PLAN   KPROF_IN(plan)
#define LIST   KPROF_IN(list)
#define TELL   KPROF_IN(explain)
#define SAVE   KPROF_IN(recover)
#define DIFF   KPROF_IN(diff)
#define MERGE  KPROF_IN(merge)
#define DOCTOR KPROF_IN(doctor)
#define CTL    KPROF_IN(ctl)
#define EXPORT KPROF_IN(export)
#define TRACE  KPROF_IN(trace)
#define STATS  KPROF_IN(stats)
#define ALL    KPROF_IN_ALL
/* The commands that print in a format of the user's choice: kprof merge prints nothing, and kprof export writes what
 * --to says. */
#define FORMATTING   (ALL & ~(MERGE | EXPORT))
#define OTHER_FORMAT (FORMATTING | KPROF_IGNORED_IN(EXPORT)) /* its message names --to */
/* Users add --plan or a list to a whole line; most of its options change nothing there. */
#define RUNNING  (RUN | KPROF_IGNORED_IN(PLAN | LIST))
#define PLANNING (RUN | PLAN | KPROF_IGNORED_IN(LIST))
#define SHOWING  (RUN | REPORT | KPROF_IGNORED_IN(PLAN | LIST))
#define PRINTING (SHOWING | DIFF)
#define CHOOSING (PRINTING | EXPORT)

#define PAGE_CHOICE(id, name, reports) {#name, KPROF_PAGE_##id},
#define PAGE_WORD(id, name, reports)   "|" #name
#define PAGE_WORDS                     &(KPROF_PAGES(PAGE_WORD))[1]
static const kprof_option_choice pages[] = {KPROF_PAGES(PAGE_CHOICE){NULL, 0}};

const kprof_option_row kprof_option_rows[KPROF_OPTION_ROWS] = {
#define OPTION(place, option_type, option_field, option_name, in, option_help, ...)                                    \
    {.name = option_name,                                                                                              \
     .type = KPROF_OPTION_##option_type,                                                                               \
     .field = offsetof(kprof_options, KPROF_PATH_##place(option_field)),                                               \
     .commands = in,                                                                                                   \
     .help = option_help,                                                                                              \
     __VA_ARGS__},
#include "cli/option_rows.h"
#undef OPTION
};
