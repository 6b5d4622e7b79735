/* The manual pages say what the tables say: every command and its words, every option, its choices, every page of a
 * report, and every exit code with its meaning. */

#include "cli/commands.h"
#include "report/report.h"
#include "test.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The page without roff's backslashes and font changes; caller frees. */
static char *read_page(const char *name)
{
    char path[4096];
    char *text = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/../docs/man/%s.1", KPROF_TESTS_DIR, name);
    FILE *page = fopen(path, "r");
    if (!page)
        fail_msg("a command names %s(1), and docs/man has no such page", name);
    FILE *out = open_memstream(&text, &size);
    for (int c; (c = getc(page)) != EOF;) {
        if (c != '\\')
            putc(c, out);
        else if ((c = getc(page)) == 'f')
            (void)getc(page);
        else
            putc(c, out);
    }
    fclose(page);
    fclose(out);
    return text;
}

/* The head of the option's paragraph, or NULL. Options are ended by something that is no letter or dash. */
static const char *head_of(const char *page, const kprof_option_row *row)
{
    char word[64];
    int length = snprintf(word, sizeof word, "--%s", row->name);
    for (const char *at = page; (at = strstr(at, "\n.TP\n"));) {
        at += 5;
        const char *end = strchr(at, '\n'), *found = strstr(at, word);
        if (found && found < end && !isalpha((unsigned char)found[length]) && found[length] != '-')
            return at;
    }
    return NULL;
}

/* The head has the option's letter in this command, or none if it has none. */
static void check_letter(const char *head, const kprof_option_row *row, const kprof_command *command)
{
    char word[] = {'-', kprof_option_letter(row, command), '\0'}, line[160];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(head, "\n"), head);
    const char *dash = strchr(line, '-');
    if (word[1] ? !dash || strncmp(dash, word, 2) != 0 : dash && isalpha((unsigned char)dash[1]))
        fail_msg("%s(1): --%s should have %s", command->manual, row->name, word[1] ? word : "no letter");
}

static void check_page(const kprof_command *command, unsigned mask)
{
    const char *name = command->manual;
    KPROF_AUTO_FREE char *page = read_page(name);
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        const char *head = head_of(page, row);
        if ((head != NULL) != ((row->commands & mask) != 0))
            fail_msg("%s: --%s is %s", name, row->name, row->commands & mask ? "missing" : "no option of this command");
        if ((row->commands & mask) && row->argument && !strstr(page, row->argument))
            fail_msg("%s: --%s should name its argument as \"%s\"", name, row->name, row->argument);
        if (head)
            check_letter(head, row, command);
    }
}

/* Options of all commands that a page documents. */
static unsigned mask_of_page(const char *manual)
{
    unsigned mask = 0;
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++)
        mask |= strcmp(kprof_commands[i].manual, manual) == 0 ? kprof_commands[i].mask : 0;
    return mask;
}

TEST(every_option_has_a_paragraph)
{
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++)
        check_page(&kprof_commands[i], mask_of_page(kprof_commands[i].manual));
}

static void check_words(const kprof_command *command, const char *page)
{
    char head[64];
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    kprof_command_words(command, &words);
    for (size_t i = 0; i < words.count && command->operand == KPROF_OPERAND_WORD; i++) {
        snprintf(head, sizeof head, "\n.TP\n.B %s\n", words.items[i]);
        if (!strstr(page, head))
            fail_msg("%s(1): there is no paragraph on \"%s\"", command->manual, words.items[i]);
    }
}

/* Its name stands in the synopsis, and each of its words heads a paragraph. */
static void check_command(const kprof_command *command)
{
    KPROF_AUTO_FREE char *page = read_page(command->manual);
    char name[64];
    snprintf(name, sizeof name, ".TH %s 1", command->manual);
    assert_int_equal(strncasecmp(page, name, strlen(name)), 0);
    const char *synopsis = strstr(page, ".SH SYNOPSIS"), *end = strstr(page, ".SH DESCRIPTION");
    if (!synopsis || !end)
        fail_msg("%s(1): needs the headings SYNOPSIS and DESCRIPTION", command->manual);
    snprintf(name, sizeof name, ".B kprof%s%s\n", *command->name ? " " : "", command->name);
    if (!memmem(synopsis, (size_t)(end - synopsis), name, strlen(name)))
        fail_msg("%s(1): the synopsis should have \"kprof %s\"", command->manual, command->name);
    check_words(command, page);
}

TEST(every_command_has_a_page)
{
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++)
        check_command(&kprof_commands[i]);
}

TEST(the_description_names_every_command)
{
    KPROF_AUTO_FREE char *page = read_page("kprof");
    char word[64];
    char *list = strstr(page, "is a command if it is\n.BR "),
         *end = list ? strstr(list, "\nand else the application") : NULL;
    assert_true(list && end);
    *end = '\0';
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++) {
        snprintf(word, sizeof word, " %s ", kprof_commands[i].name);
        if (*kprof_commands[i].name && !strstr(list, word))
            fail_msg("kprof(1): \"%s\" is not among the commands of the description", kprof_commands[i].name);
    }
}

static void check_pages_of_reports(const char *manual)
{
#define PAGE_HEAD(id, name, reports) "\n.TP\n.B " #name "\n",
    static const char *const heads[] = {KPROF_PAGES(PAGE_HEAD)};
    KPROF_AUTO_FREE char *page = read_page(manual);
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (!strstr(page, heads[i]))
            fail_msg("%s(1) has no paragraph on a page:%s", manual, heads[i]);
    }
}

TEST(every_page_of_a_report_has_a_paragraph)
{
    check_pages_of_reports("kprof");
    check_pages_of_reports("kprof-report");
}

/* The paragraph of an exit code, or NULL; *length is its size. */
static const char *code_paragraph(const char *section, int code, size_t *length)
{
    char head[32];
    snprintf(head, sizeof head, "\n.B %d\n", code);
    const char *start = strstr(section, head);
    if (!start)
        return NULL;
    start += strlen(head);
    const char *tag = strstr(start, "\n.TP"), *next = strstr(start, "\n.SH");
    *length = (size_t)((tag && tag < next ? tag : next) - start);
    return start;
}

TEST(every_exit_code_is_explained)
{
    KPROF_AUTO_FREE char *page = read_page("kprof");
    const char *section = strstr(page, ".SH EXIT STATUS");
    assert_non_null(section);
    for (int status = 0; status < KPROF_STATUS_COUNT; status++) {
        size_t length = 0;
        const char *text = code_paragraph(section, kprof_status_exit_code((kprof_status)status), &length);
        const char *message = kprof_status_message((kprof_status)status);
        if (!text || !memmem(text, length, message, strlen(message)))
            fail_msg("kprof.1: exit code %d should say \"%s\"", kprof_status_exit_code((kprof_status)status), message);
    }
}

static bool is_code_of_a_status(long code)
{
    for (int status = 0; status < KPROF_STATUS_COUNT; status++) {
        if (kprof_status_exit_code((kprof_status)status) == code)
            return true;
    }
    return false;
}

TEST(no_exit_code_is_invented)
{
    KPROF_AUTO_FREE char *page = read_page("kprof");
    const char *end = strstr(page, ".SH ENVIRONMENT");
    for (const char *at = strstr(page, ".SH EXIT STATUS"); (at = strstr(at, "\n.B ")) && at < end;) {
        at += 4;
        if (isdigit((unsigned char)*at))
            assert_true(is_code_of_a_status(strtol(at, NULL, 10)));
    }
}
