/* Reads the command line into kprof_options by the table in option_table.c. */
#include "cli/commands.h"
#include "core/config.h"
#include "core/log.h"
#include "core/regex.h"
#include "report/model/change.h"
#include "report/report.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The position of the parser. */
typedef struct cursor {
    char **word;
    kprof_options *options;
    const char *values[KPROF_OPTIONS_MAX];           /* by row: what was given before; NULL: nothing */
    bool idle[KPROF_NCU_OPTIONS_MAX];                /* by row of ncu's options: given, and without effect */
    const kprof_ncu_value *taken[KPROF_OPTIONS_MAX]; /* by row: the value of ncu that was taken for another; or NULL */
    bool is_lost;                                    /* what the next words belong to is not known */
} cursor;

/* What the argument of an option has to be, where its row does not say. */
static const char *const notes[] = {
    [KPROF_OPTION_NUMBER] = "a whole number",
    [KPROF_OPTION_SECONDS] = "a number above 0, without unit or exponent",
    [KPROF_OPTION_PERCENT] = "a number from 0, without unit",
    [KPROF_OPTION_BYTES] =
        "1 byte or more and less than 16 EiB, with K, M, G, T (powers of 1024) or KB, MB, GB, TB (powers of 1000)",
    [KPROF_OPTION_ALIAS] = NULL,
};

static kprof_status refuse_value(const kprof_option_row *row, const char *text)
{
    const char *hint = kprof_value_hint(row->name, text);
    const char *note = hint ? hint : row->note ? row->note : notes[row->type];
    char range[40];
    if (!note && row->type == KPROF_OPTION_COUNT) {
        snprintf(range, sizeof range, "N is from 1 to %d", row->value);
        note = range;
    }
    const char *words[16];
    size_t count = 0;
    for (const kprof_option_choice *choice = row->choices; choice && choice->word && count < 16; choice++)
        words[count++] = choice->word;
    const char *nearest = hint ? NULL : kprof_nearest(text, words, count);
    return kprof_fail(KPROF_USAGE, "--%s: \"%s\" is not valid, give %s%s%s%s%s%s", row->name, text, row->argument,
                      note ? ": " : "", note ? note : "", nearest ? "; did you mean " : "", nearest ? nearest : "",
                      nearest ? "?" : "");
}

static bool parse_number(const char *text, uint64_t *out)
{
    char *end;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
        return false;
    *out = strtoull(text, &end, 10);
    return true;
}

const char *kprof_option_word(const char *name, int value)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_choice *choice = kprof_option_rows[i].choices;
        for (; strcmp(kprof_option_rows[i].name, name) == 0 && choice && choice->word; choice++) {
            if (choice->value == value)
                return choice->word;
        }
    }
    return NULL;
}

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words && strcasecmp(*words, text) != 0)
        words++;
    return *words != NULL;
}

/* As in ncu, upper and lower case are the same, and so are its words for yes and no. */
static bool means(const char *text, const char *word)
{
    static const char *const no[] = {"no", "off", "0", "false", NULL}, *const yes[] = {"yes", "on", "1", "true", NULL};
    return strcasecmp(text, word) == 0 || (is_one_of(text, no) && is_one_of(word, no)) ||
           (is_one_of(text, yes) && is_one_of(word, yes));
}

static bool find_choice(const kprof_option_row *row, const char *text, int *value)
{
    for (const kprof_option_choice *choice = row->choices; choice && choice->word; choice++) {
        if (means(text, choice->word)) {
            *value = choice->value;
            return true;
        }
    }
    return false;
}

/* A number above 0, with or without decimals; `rest` is what follows it. */
static bool parse_decimal(const char *text, double *out, const char **rest)
{
    size_t whole = strspn(text, "0123456789");
    const char *fraction = text[whole] == '.' ? text + whole + 1 : text + whole;
    *rest = fraction + strspn(fraction, "0123456789");
    *out = strtod(text, NULL);
    return *out > 0;
}

static bool parse_seconds(const char *text, double *out)
{
    const char *rest;
    return strlen(text) <= 18 && parse_decimal(text, out, &rest) && *rest == '\0';
}

static bool parse_percent(const char *text, double *out)
{
    const char *rest;
    return strlen(text) <= 18 && text[strcspn(text, "0123456789")] && (parse_decimal(text, out, &rest) || *out == 0) &&
           *rest == '\0';
}

/* Suffixes are those of GNU's tools. */
static bool parse_bytes(const char *text, uint64_t *out)
{
    static const struct {
        const char *suffix;
        double bytes;
    } units[] = {{"", 1},         {"K", 0x1p10},   {"KiB", 0x1p10}, {"KB", 1e3},     {"M", 0x1p20},
                 {"MiB", 0x1p20}, {"MB", 1e6},     {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},
                 {"T", 0x1p40},   {"TiB", 0x1p40}, {"TB", 1e12}};
    const char *suffix;
    double number, bytes = 0;
    if (!parse_decimal(text, &number, &suffix))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(units[i].suffix, suffix) == 0)
            bytes = number * units[i].bytes;
    }
    if (bytes < 1 || bytes >= 0x1p64)
        return false;
    *out = (uint64_t)bytes;
    return true;
}

static kprof_status store_count(const kprof_option_row *row, const char *text, uint32_t *field)
{
    uint64_t count = 0;
    int value;
    if (find_choice(row, text, &value)) {
        *field = (uint32_t)value;
        return KPROF_OK;
    }
    if (!parse_number(text, &count) || count == 0 || count > (uint64_t)row->value)
        return refuse_value(row, text);
    *field = (uint32_t)count;
    return KPROF_OK;
}

/* Append the items of a comma-separated list; commas inside brackets belong to the item. */
static bool split_list(const char *text, kprof_strlist *out)
{
    size_t depth = 0;
    const char *start = text;
    for (const char *at = text;; at++) {
        if (*at && strchr("([{", *at))
            depth++;
        else if (*at && strchr(")]}", *at) && depth > 0)
            depth--;
        if (*at != '\0' && (*at != ',' || depth > 0))
            continue;
        char *item = strndup(start, (size_t)(at - start));
        bool added = item && (item[0] == '\0' || kprof_strlist_add_unique(out, item));
        free(item);
        if (!added || *at == '\0')
            return added;
        start = at + 1;
    }
}

static kprof_status store_list(const kprof_option_row *row, const char *text, kprof_strlist *field)
{
    size_t before = field->count;
    bool added = row->type == KPROF_OPTION_PATHS ? kprof_strlist_add(field, text) : split_list(text, field);
    if (!added)
        return kprof_fail(KPROF_NO_MEMORY, "--%s: out of memory", row->name);
    return field->count > before || strspn(text, ",") < strlen(text) ? KPROF_OK : refuse_value(row, text);
}

static kprof_status store_ordinals(const kprof_option_row *row, const char *text, uint64_t *mask)
{
    kprof_strlist items = KPROF_STRLIST_INIT;
    kprof_status status = split_list(text, &items) ? KPROF_OK : KPROF_NO_MEMORY;
    if (status == KPROF_OK && items.count == 0)
        status = refuse_value(row, text);
    for (size_t i = 0; i < items.count && status == KPROF_OK; i++) {
        uint64_t ordinal;
        if (parse_number(items.items[i], &ordinal) && ordinal < 64)
            *mask |= UINT64_C(1) << ordinal;
        else
            status = refuse_value(row, items.items[i]);
    }
    kprof_strlist_free(&items);
    return status;
}

/* The name of the option whose row had set the same field before. */
static const char *given_for_field(const kprof_options *options, const kprof_option_row *row)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *other = &kprof_option_rows[i];
        if (other != row && other->field == row->field && options->given[i])
            return other->name;
    }
    return NULL;
}

static kprof_status fail_both(const char *other, const kprof_option_row *row)
{
    return kprof_fail(KPROF_USAGE, "--%s and --%s exclude each other", other, row->name);
}

static kprof_status store_value(const kprof_option_row *row, char *text, kprof_options *options)
{
    void *field = (char *)options + row->field;
    switch (row->type) {
    case KPROF_OPTION_CHOICE:
        return given_for_field(options, row)   ? fail_both(given_for_field(options, row), row)
               : find_choice(row, text, field) ? KPROF_OK
                                               : refuse_value(row, text);
    case KPROF_OPTION_LIST:
    case KPROF_OPTION_PATHS:
        return store_list(row, text, field);
    case KPROF_OPTION_NUMBER:
        return parse_number(text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_COUNT:
        return store_count(row, text, field);
    case KPROF_OPTION_SECONDS:
        return parse_seconds(text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_PERCENT:
        return parse_percent(text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_BYTES:
        return parse_bytes(text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_ORDINALS:
        return store_ordinals(row, text, field);
    default:
        *(char **)field = text;
        return text[0] ? KPROF_OK : refuse_value(row, text);
    }
}

static bool takes_argument(const kprof_option_row *row)
{
    return row->type != KPROF_OPTION_FLAG && row->type != KPROF_OPTION_SET && row->type != KPROF_OPTION_ALIAS;
}

static kprof_status store_flag(const kprof_option_row *row, kprof_options *options)
{
    void *field = (char *)options + row->field;
    if (row->type == KPROF_OPTION_FLAG) {
        *(bool *)field = true;
        return KPROF_OK;
    }
    const char *other = given_for_field(options, row);
    if (other)
        return fail_both(other, row);
    if (row->type == KPROF_OPTION_ALIAS)
        options->alias = row;
    else
        *(int *)field = row->value;
    return KPROF_OK;
}

/* An option of one value is refused if it is given another one: which one counts is anybody's guess. */
static kprof_status check_repeated(cursor *at, const kprof_option_row *row, const char *text)
{
    const bool is_list =
        row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS || row->type == KPROF_OPTION_ORDINALS;
    const char **place = &at->values[row - kprof_option_rows], *before = *place;
    *place = text;
    if (is_list || !before || strcmp(before, text) == 0)
        return KPROF_OK;
    return kprof_fail(KPROF_USAGE, "--%s is given as \"%s\" and as \"%s\"; give it once", row->name, before, text);
}

/* An argument begins with a dash only if it is a number below 0, or what --complete asks about. */
bool kprof_option_follows(const kprof_option_row *row, const char *word)
{
    return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]) &&
           row->field != offsetof(kprof_options, complete);
}

static kprof_status refuse_option(const kprof_option_row *row, const char *word)
{
    const bool takes_text =
        row->type == KPROF_OPTION_STRING || row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS;
    if (!takes_text)
        return kprof_fail(KPROF_USAGE, "--%s needs an argument: %s; \"%s\" looks like an option", row->name,
                          row->argument, word);
    return kprof_fail(KPROF_USAGE,
                      "--%s needs an argument: %s; \"%s\" looks like an option: give --%s=%s if it is the argument",
                      row->name, row->argument, word, row->name, word);
}

/* Store an option that needs an argument, from `attached` (after "=" or the letter) or the next word. */
static kprof_status take_argument(cursor *at, const kprof_option_row *row, char *attached)
{
    if (!attached) {
        attached = at->word[1];
        if (!attached)
            return kprof_fail(KPROF_USAGE, "--%s needs an argument: %s", row->name, row->argument);
        if (kprof_option_follows(row, attached))
            return refuse_option(row, attached);
        at->word++;
    }
    const kprof_ncu_value *taken = kprof_ncu_value_find(row->name, attached);
    at->taken[row - kprof_option_rows] = taken;
    kprof_status status = check_repeated(at, row, attached);
    return status == KPROF_OK ? store_value(row, taken ? (char *)taken->means : attached, at->options) : status;
}

static void mark_given(kprof_options *options, const kprof_option_row *row)
{
    options->given[row - kprof_option_rows] = true;
}

/* `given`: as on the command line. `attached`: what follows "=" or the letter, or NULL. */
static kprof_status take_ncu(cursor *at, const char *given, const kprof_ncu_option *option, char *attached)
{
    if (attached && !option->takes_argument)
        return kprof_fail(KPROF_USAGE, "--%s takes no argument", option->name);
    if (!attached && option->takes_argument) {
        attached = at->word[1];
        if (!attached || (attached[0] == '-' && attached[1] && !strchr("0123456789.", attached[1])))
            return kprof_fail(KPROF_USAGE, "--%s needs an argument", option->name);
        at->word++;
    }
    if (kprof_ncu_asks_for_same(option, attached))
        return KPROF_OK;
    const bool is_whole = strcmp(given + strspn(given, "-"), option->name) == 0;
    switch (option->effect) {
    case KPROF_NCU_IDLE:
        at->idle[kprof_ncu_option_index(option)] = true;
        return KPROF_OK;
    case KPROF_NCU_KEPT:
        *(char **)((char *)at->options + option->field) = attached;
        return KPROF_OK;
    default:
        return kprof_fail(KPROF_USAGE, "%s%s%s%s%s%s: this option of ncu is not supported; %s", given,
                          is_whole ? "" : " (--", is_whole ? "" : option->name, is_whole ? "" : ")",
                          attached && option->same ? " " : "", attached && option->same ? attached : "", option->hint);
    }
}

/* -v is --version, as in ncu, but "kprof list sections -v" asks for more of the list. */
char kprof_option_letter(const kprof_option_row *row, const kprof_command *command)
{
    if (command->operand != KPROF_OPERAND_WORD)
        return row->letter;
    if (row->field == offsetof(kprof_options, verbose))
        return 'v';
    return row->field == offsetof(kprof_options, version) ? 0 : row->letter;
}

static const kprof_option_row *find_letter(const kprof_options *options, char letter)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (kprof_option_letter(&kprof_option_rows[i], options->command) == letter)
            return &kprof_option_rows[i];
    }
    return NULL;
}

static kprof_status fail_unknown(const char *name)
{
    const char *names[KPROF_OPTIONS_MAX];
    for (size_t i = 0; i < kprof_option_row_count; i++)
        names[i] = kprof_option_rows[i].name;
    const char *nearest = kprof_nearest_spelling(name, names, kprof_option_row_count);
    if (!nearest)
        nearest = kprof_ncu_option_spelled_like(name);
    return nearest ? kprof_fail(KPROF_USAGE, "unknown option --%s; did you mean --%s?", name, nearest)
                   : kprof_fail(KPROF_USAGE, "unknown option --%s; kprof --help lists the options", name);
}

static const kprof_option_row *find_whole(const char *name)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (strcmp(kprof_option_rows[i].name, name) == 0)
            return &kprof_option_rows[i];
    }
    return NULL;
}

/* What a long option names: an option of kprof, or else of ncu; neither is set: none. */
typedef struct named {
    const kprof_option_row *row;
    const kprof_ncu_option *ncu;
} named;

/* A whole name, an old one, or a letter with two dashes. */
static named find_name(const kprof_options *options, const char *name)
{
    const char *other = kprof_ncu_other_name(name);
    named found = {find_whole(other ? other : name), kprof_ncu_option_find(name)};
    if (!found.row && !found.ncu && name[0] && !name[1])
        found = (named){find_letter(options, name[0]), kprof_ncu_option_of_letter(name[0])};
    return found;
}

/* A unique beginning of one: kprof's go before ncu's. */
static kprof_status find_beginning(const char *name, named *out)
{
    *out = (named){NULL, NULL};
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (strncmp(row->name, name, strlen(name)) != 0)
            continue;
        if (out->row)
            return kprof_fail(KPROF_USAGE, "--%s could be --%s or --%s", name, out->row->name, row->name);
        out->row = row;
    }
    if (out->row)
        return KPROF_OK;
    out->ncu = kprof_ncu_option_next(name, NULL);
    const kprof_ncu_option *second = out->ncu ? kprof_ncu_option_next(name, out->ncu) : NULL;
    if (second)
        return kprof_fail(KPROF_USAGE, "--%s could be --%s or --%s", name, out->ncu->name, second->name);
    return out->ncu ? KPROF_OK : fail_unknown(name);
}

static kprof_status take_row(cursor *at, const kprof_option_row *row, char *value)
{
    kprof_status status;
    if (takes_argument(row))
        status = take_argument(at, row, value);
    else if (value)
        status = kprof_fail(KPROF_USAGE, "--%s takes no argument", row->name);
    else
        status = store_flag(row, at->options);
    if (status == KPROF_OK)
        mark_given(at->options, row);
    return status;
}

static kprof_status parse_long(cursor *at)
{
    char *word = *at->word, *value = strchr(word, '=');
    char *name = strndup(word + 2, value ? (size_t)(value - word - 2) : strlen(word + 2));
    kprof_status status = KPROF_OK;
    if (!name)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", word);
    named found = find_name(at->options, name);
    if (!found.row && !found.ncu)
        status = find_beginning(name, &found);
    at->is_lost = status != KPROF_OK && !value;
    if (status == KPROF_OK && found.row)
        status = take_row(at, found.row, value ? value + 1 : NULL);
    else if (status == KPROF_OK) {
        kprof_strbuf given = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&given, "--%s", name);
        status = take_ncu(at, given.data ? given.data : word, found.ncu, value ? value + 1 : NULL);
        kprof_strbuf_free(&given);
    }
    free(name);
    return status;
}

/* "-k NAME", "-kNAME", "-fq". */
static kprof_status parse_letters(cursor *at)
{
    char *letter = *at->word + 1;
    kprof_status status = KPROF_OK;
    for (bool done = false; *letter && !done && status == KPROF_OK; letter++) {
        const kprof_option_row *row = find_letter(at->options, *letter);
        const kprof_ncu_option *ncu = row ? NULL : kprof_ncu_option_of_letter(*letter);
        if (ncu)
            return take_ncu(at, (char[]){'-', *letter, '\0'}, ncu, letter[1] ? letter + 1 : NULL);
        at->is_lost = !row;
        if (!row)
            return kprof_fail(KPROF_USAGE, "unknown option -%c; kprof --help lists the options", *letter);
        done = takes_argument(row);
        status = done ? take_argument(at, row, letter[1] ? letter + 1 : NULL) : store_flag(row, at->options);
        mark_given(at->options, row);
    }
    return status;
}

/* A word that is no option: the command, the application (which takes all the rest) or the command's operand. */
static kprof_status take_word(cursor *at, bool may_be_command, bool *done)
{
    kprof_options *options = at->options;
    bool is_first = options->command == kprof_commands && may_be_command;
    const kprof_command *command = is_first ? kprof_command_find(*at->word) : NULL;
    if (command) {
        options->command = command;
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_APPLICATION) {
        options->application = at->word;
        *done = true;
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_REPORTS && !options->baseline) {
        options->baseline = *at->word;
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_METRICS)
        return split_list(*at->word, &options->selection.metrics) ? KPROF_OK
                                                                  : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    if (options->command->operand == KPROF_OPERAND_MANY_REPORTS) {
        options->argument = options->argument ? options->argument : *at->word;
        return kprof_strlist_add(&options->reports, *at->word) ? KPROF_OK
                                                               : kprof_fail(KPROF_NO_MEMORY, "out of memory");
    }
    if (options->argument || options->command->operand == KPROF_OPERAND_NONE)
        return kprof_fail(KPROF_USAGE, "%s: \"%s\" is one word too many", options->command->name, *at->word);
    options->argument = *at->word;
    return KPROF_OK;
}

/* All that is refused is told, as long as it is clear which words belong to what. */
static kprof_status parse_words(cursor *at)
{
    kprof_status result = KPROF_OK;
    bool only_words = false, done = false;
    for (; *at->word && !done && !at->is_lost; at->word++) {
        kprof_status status = KPROF_OK;
        if (only_words || (*at->word)[0] != '-' || (*at->word)[1] == '\0') {
            status = take_word(at, !only_words, &done);
            at->is_lost = status != KPROF_OK;
        } else if (strcmp(*at->word, "--") == 0) {
            only_words = true;
        } else if ((*at->word)[1] == '-') {
            status = parse_long(at);
        } else {
            status = parse_letters(at);
        }
        result = status != KPROF_OK ? status : result;
        at->is_lost = at->is_lost || status == KPROF_NO_MEMORY;
    }
    return result;
}

/* The ranges that ncu replays are those of NVTX that are chosen, or those between cudaProfilerStart and
 * cudaProfilerStop. */
static void choose_ranges(const cursor *at)
{
    kprof_options *options = at->options;
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const bool has_ranges = at->taken[i] && strcmp(at->taken[i]->warning, KPROF_NCU_RANGES) == 0;
        if (has_ranges && options->filter.nvtx_include.count == 0 && options->profile_from_start == KPROF_UNSET)
            options->profile_from_start = 0;
    }
}

/* "A*" is a name, and no pattern. */
static void tell_plain_ranges(const kprof_strlist *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        const char *text = texts->items[i];
        bool has_star = false;
        for (const char *at = text; *at; at++) {
            at += *at == '\\' && at[1];
            const bool is_gap = (at == text || at[-1] == '/') && (at[1] == '/' || !at[1]);
            has_star = has_star || (strchr("*+", *at) && !is_gap && (at == text || at[-1] != '\\'));
        }
        if (has_star && !kprof_regex_pattern(text))
            kprof_log(KPROF_LOG_WARNING, "NVTX range \"%s\" is taken as it stands; a pattern is written \"regex:%s\"",
                      text, text);
    }
}

/* What was taken for something else, or has no effect, is told once the whole line is right. */
static void tell_ncu(const cursor *at)
{
    kprof_ncu_tell(at->idle);
    tell_plain_ranges(&at->options->filter.nvtx_include);
    tell_plain_ranges(&at->options->filter.nvtx_exclude);
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_ncu_value *taken = at->taken[i];
        if (taken)
            kprof_log(KPROF_LOG_WARNING, "--%s %s: %s", taken->option, taken->value, taken->warning);
    }
}

/* --import makes the default command a report; the file may also be the report command's argument. */
static kprof_status settle_import(kprof_options *options)
{
    if (!options->import_path)
        return KPROF_OK;
    if (options->application)
        return kprof_fail(KPROF_USAGE, "--import reads a report: it takes no application (%s)",
                          options->application[0]);
    if (options->argument)
        return kprof_fail(KPROF_USAGE, "report: give the file once, not both %s and %s", options->import_path,
                          options->argument);
    if (options->command == kprof_commands)
        options->command = kprof_command_find("report");
    options->argument = options->import_path;
    return kprof_strlist_add(&options->reports, options->import_path) ? KPROF_OK
                                                                      : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

/* "--list-sets" is "list sets". */
static kprof_status settle_alias(kprof_options *options)
{
    const kprof_option_row *alias = options->alias;
    if (!alias)
        return KPROF_OK;
    const char *word;
    const kprof_command *command = kprof_command_of_alias(alias, &word);
    if (options->command != kprof_commands && options->command != command)
        return kprof_fail(KPROF_USAGE, "--%s is no option of kprof %s; it is the command kprof %s%s%s", alias->name,
                          options->command->name, command->name, word ? " " : "", word ? word : "");
    options->command = command;
    options->argument = word;
    return KPROF_OK;
}

static kprof_status fail_use(const kprof_option_row *row, const kprof_options *options)
{
    kprof_strbuf owners = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < KPROF_COMMAND_COUNT; i++) {
        const char *name = kprof_commands[i].name;
        if (row->commands & kprof_commands[i].mask)
            kprof_strbuf_printf(&owners, "%s%s%s", owners.length ? ", " : "", *name ? "kprof " : "a run", name);
    }
    const char *name = options->command->name;
    kprof_status status = kprof_fail(KPROF_USAGE, "--%s is no option of %s%s; it belongs to: %s", row->name,
                                     *name ? "kprof " : "a run", name, owners.data ? owners.data : "");
    kprof_strbuf_free(&owners);
    return status;
}

/* Every option given must be one of the command, or at least be ignored there. */
static kprof_status check_commands(const kprof_options *options)
{
    unsigned mask = options->command->mask;
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        bool is_taken = mask ? row->commands & (mask | KPROF_IGNORED_IN(mask)) : row->commands == KPROF_IN_ALL;
        if (options->given[i] && !is_taken && row != options->alias)
            return fail_use(row, options);
    }
    return KPROF_OK;
}

static kprof_status refuse_operand(const kprof_command *command, const char *given, const kprof_strlist *words)
{
    const char *nearest = kprof_nearest(given, (const char *const *)words->items, words->count);
    kprof_strbuf known = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < words->count; i++)
        kprof_strbuf_printf(&known, "%s%s", i ? ", " : "", words->items[i]);
    kprof_status status = kprof_fail(KPROF_USAGE, "kprof %s: \"%s\" is none of %s%s%s%s", command->name, given,
                                     known.data ? known.data : "", nearest ? "; did you mean " : "",
                                     nearest ? nearest : "", nearest ? "?" : "");
    kprof_strbuf_free(&known);
    return status;
}

/* A command that takes a word says which words it takes. */
static kprof_status check_operand(const kprof_options *options)
{
    const kprof_command *command = options->command;
    const char *given = options->argument;
    kprof_strlist words = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    if (!kprof_command_words(command, &words))
        status = kprof_fail(KPROF_NO_MEMORY, "kprof %s: out of memory", command->name);
    else if (words.count > 0 && given && !kprof_strlist_contains(&words, given))
        status = refuse_operand(command, given, &words);
    kprof_strlist_free(&words);
    return status;
}

/* "CONTEXT:STREAM:NAME:N", of which NAME and N may be empty. A name may have colons of its own. */
static kprof_status settle_kernel_id(kprof_options *options)
{
    static const char format[] = "write ::NAME:N, such as ::gemm:2 for the second launch of kernel gemm";
    const char *id = options->kernel_id, *stream = strchr(id, ':'), *name = stream ? strchr(stream + 1, ':') : NULL;
    const char *number = name ? strrchr(name + 1, ':') : NULL;
    if (options->filter.kernel || options->kernel_regex || options->kernel_regex_exclude)
        return kprof_fail(KPROF_USAGE,
                          "--kernel-id and --kernel-name exclude each other; -s and -c choose launches too");
    if (!number)
        return kprof_fail(KPROF_USAGE, "--kernel-id %s: %s", id, format);
    if (stream > id || name > stream + 1)
        return kprof_fail(KPROF_USAGE, "--kernel-id %s: kprof does not choose by context or stream; write ::%s", id,
                          name + 1);
    if (number[1] && (!parse_number(number + 1, &options->filter.invocation) || options->filter.invocation == 0))
        return kprof_fail(KPROF_USAGE, "--kernel-id %s: \"%s\" is no number from 1; %s", id, number + 1, format);
    if (number == name + 1)
        return KPROF_OK;
    options->filter.kernel = options->kernel_made = strndup(name + 1, (size_t)(number - name - 1));
    return options->kernel_made ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

/* Old options of ncu give a pattern: one that names have, or one that they do not have. */
static kprof_status settle_kernel(kprof_options *options)
{
    if (options->kernel_id)
        return settle_kernel_id(options);
    const char *pattern = options->kernel_regex, *without = options->kernel_regex_exclude;
    kprof_strbuf made = KPROF_STRBUF_INIT;
    if (!pattern && !without)
        return KPROF_OK;
    if (options->filter.kernel || (pattern && without))
        return kprof_fail(KPROF_USAGE, "--kernel-name, --kernel-regex and --kernel-regex-exclude exclude each other; "
                                       "one pattern does for all: -k \"regex:^(?!.*NOT)(.*AND)\"");
    kprof_strbuf_printf(&made, without ? "regex:^(?!.*(?:%s))" : "regex:%s", without ? without : pattern);
    options->filter.kernel = options->kernel_made = kprof_strbuf_take(&made);
    return options->kernel_made ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}

static kprof_status settle_profiler_calls(kprof_options *options)
{
    if (options->profile_from_start == 0 && options->ignores_profiler_calls)
        return kprof_fail(KPROF_USAGE, "--profile-from-start off waits for a call that --disable-profiler-start-stop "
                                       "ignores; leave one of them out");
    options->filter.profiler_calls = options->ignores_profiler_calls    ? KPROF_PROFILER_CALLS_IGNORED
                                     : options->profile_from_start == 0 ? KPROF_FROM_A_START_CALL
                                                                        : KPROF_FROM_THE_START;
    return KPROF_OK;
}

/* Settle what to do, and whether all that was given goes with it. */
static kprof_status settle_command(kprof_options *options)
{
    kprof_status status = settle_import(options);
    if (status == KPROF_OK)
        status = settle_alias(options);
    if (status != KPROF_OK || options->complete)
        return status;
    if (options->help || options->version) { /* they are answered whatever else was asked for */
        options->topic = options->command;
        options->command = kprof_command_find(options->help ? "help" : "version");
        return KPROF_OK;
    }
    status = check_commands(options);
    if (status == KPROF_OK)
        status = check_operand(options);
    if (status == KPROF_OK)
        status = settle_kernel(options);
    if (status == KPROF_OK)
        status = settle_profiler_calls(options);
    return status;
}

#define FORMAT_NAME(id, name, ...) [KPROF_FORMAT_##id] = #name,
static const char *const format_names[] = {KPROF_FORMATS(FORMAT_NAME, FORMAT_NAME)};

/* Wrong conditions are found before an application is started. */
static kprof_status settle_conditions(kprof_options *options)
{
    kprof_status status = KPROF_OK;
    const bool has_launches = options->page != KPROF_PAGE_SESSION && options->page != KPROF_PAGE_SOURCES;
    if (options->filters.count > 0 && !has_launches)
        return kprof_fail(KPROF_USAGE, "--filter chooses launches for the pages details, raw, summary, statistics and "
                                       "brief; leave it out of --page session and --page sources");
    options->conditions = calloc(options->filters.count + 1, sizeof *options->conditions);
    if (!options->conditions)
        return kprof_fail(KPROF_NO_MEMORY, "--filter: out of memory");
    for (size_t i = 0; i < options->filters.count && status == KPROF_OK; i++)
        status = kprof_condition_parse_filter(options->filters.items[i], &options->conditions[i]);
    return status;
}

/* A document for each kernel is what JSON lines are. A run collects what the page tells, unless it is told what. */
static kprof_status settle_brief(kprof_options *options)
{
    kprof_selection *selection = &options->selection;
    const bool is_chosen = selection->sets.count + selection->sections.count + selection->metrics.count > 0;
    const bool collects = (options->command->mask & (KPROF_IN(profile) | KPROF_IN(plan))) != 0;
    const bool is_table = options->format == KPROF_FORMAT_CSV || options->format == KPROF_FORMAT_CSV_WIDE ||
                          options->format == KPROF_FORMAT_CSV_NCU;
    if (options->page != KPROF_PAGE_BRIEF)
        return KPROF_OK;
    if (is_table)
        return kprof_fail(KPROF_USAGE, "the brief page is no table; give --json, or --page summary --csv");
    if (options->format == KPROF_FORMAT_JSON)
        options->format = KPROF_FORMAT_JSONL;
    if (!is_chosen && collects && !kprof_strlist_add(&selection->sets, "agent"))
        return kprof_fail(KPROF_NO_MEMORY, "--brief: out of memory");
    return KPROF_OK;
}

/* Rows of kernels are in some pages only, and some of these rank them. */
static kprof_status check_rows(const kprof_options *options)
{
    const bool ranks = options->page == KPROF_PAGE_SUMMARY || options->page == KPROF_PAGE_BRIEF;
    const char *order = options->top ? "top" : options->sort != KPROF_UNSET ? "sort" : NULL;
    const char *name = order ? order : options->group_by != KPROF_UNSET ? "group-by" : NULL;
    const bool prints = (options->command->mask & (KPROF_IN(profile) | KPROF_IN(report))) != 0;
    if (!name || ranks || !prints || (options->page == KPROF_PAGE_STATISTICS && !order))
        return KPROF_OK;
    if (options->html_path)
        return kprof_fail(
            KPROF_USAGE,
            "--%s is about rows of text: leave it out, as the page of --html has all kernels and launches "
            "and sorts them itself",
            name);
    if (options->page == KPROF_PAGE_STATISTICS)
        return kprof_fail(KPROF_USAGE, "--%s is about the summary and brief pages, which rank kernels; leave it out",
                          name);
    return kprof_fail(KPROF_USAGE, "--%s is about rows of kernels: give --page summary%s or brief too", name,
                      order ? "" : ", statistics");
}

static kprof_status settle_format(kprof_options *options)
{
    if (options->csv_layout != KPROF_UNSET) {
        if (options->format != KPROF_UNSET && options->format != KPROF_FORMAT_CSV)
            return kprof_fail(KPROF_USAGE, "--csv-layout and --%s exclude each other", format_names[options->format]);
        options->format = options->csv_layout;
    }
    if (options->html_path) {
        if (options->format != KPROF_UNSET || options->page != KPROF_UNSET || options->print_summary ||
            options->log_file)
            return kprof_fail(KPROF_USAGE, "--html writes all pages to its own file; leave --page, --log-file and "
                                           "other formats out");
        options->format = KPROF_FORMAT_HTML;
    }
    if (options->print_summary) {
        options->page = KPROF_PAGE_STATISTICS;
        options->group_by = options->group_by == KPROF_UNSET ? options->print_summary - 1 : options->group_by;
    }
    return KPROF_OK;
}

static kprof_status settle_pages(kprof_options *options)
{
    kprof_status status = settle_format(options);
    if (status == KPROF_OK)
        status = check_rows(options);
    options->sort = options->sort == KPROF_UNSET ? KPROF_SORT_GAIN : options->sort;
    options->group_by = options->group_by == KPROF_UNSET ? KPROF_GROUP_KERNEL : options->group_by;
    if (status == KPROF_OK)
        status = settle_brief(options);
    return status == KPROF_OK ? settle_conditions(options) : status;
}

static bool is_given(const kprof_options *options, size_t field)
{
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        if (kprof_option_rows[i].field == field && options->given[i])
            return true;
    }
    return false;
}

static kprof_status settle(kprof_options *options)
{
    kprof_status status = settle_command(options);
    if (status != KPROF_OK || options->complete || options->topic) /* help is given whatever else was asked for */
        return status;
    uint64_t launches = options->filter.launch_count;
    options->nvtx = options->nvtx || options->nvtx_of_process ||
                    options->filter.nvtx_include.count + options->filter.nvtx_exclude.count > 0;
    kprof_workload *workload = &options->selection.limits.workload;
    workload->launches = launches ? launches : KPROF_ASSUMED_LAUNCHES;
    workload->batch = options->replay_batch;
    workload->cache_control = (kprof_cache_control)options->cache_control;
    if (is_given(options, offsetof(kprof_options, multiplex_samples)) && options->replay_choice == KPROF_REPLAY_ONLY)
        return kprof_fail(KPROF_USAGE, "--multiplex-samples is about launches that are not repeated: leave it out, or "
                                       "give --replay-mode auto or multiplex");
    return settle_pages(options);
}

kprof_status kprof_options_parse(char **argv, kprof_options *out)
{
    *out = (kprof_options){
        .command = kprof_commands,
        .words = argv,
        .format = KPROF_UNSET,
        .time_tolerance_pct = KPROF_TIME_TOLERANCE_PCT,
        .bytes_tolerance_pct = KPROF_TRAFFIC_TOLERANCE_PCT,
    };
    for (size_t i = 0; i < kprof_option_row_count; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (row->type == KPROF_OPTION_CHOICE || row->type == KPROF_OPTION_COUNT)
            *(int *)((char *)out + row->field) = row->initial;
    }
    if (!argv[0]) /* execve can leave out even the program's name */
        return kprof_fail(KPROF_USAGE, "the command line is empty");
    cursor at = {.word = argv + 1, .options = out};
    kprof_status status = parse_words(&at);
    choose_ranges(&at);
    if (status == KPROF_OK)
        status = settle(out);
    if (status == KPROF_OK && !out->complete)
        tell_ncu(&at);
    return status;
}

void kprof_options_free(kprof_options *options)
{
    free(options->kernel_made);
    kprof_selection_free(&options->selection);
    kprof_strlist_free(&options->section_folders);
    kprof_strlist_free(&options->rules);
    kprof_strlist_free(&options->chips);
    kprof_strlist_free(&options->fail_on);
    for (size_t i = 0; options->conditions && i < options->filters.count; i++)
        kprof_condition_free(&options->conditions[i]);
    free(options->conditions);
    kprof_strlist_free(&options->filters);
    kprof_strlist_free(&options->filter.nvtx_include);
    kprof_strlist_free(&options->filter.nvtx_exclude);
    kprof_strlist_free(&options->reports);
    kprof_strlist_free(&options->launches);
}
