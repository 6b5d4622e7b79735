/* Reads the values of options into their fields. */
#include "cli/parse.h"

#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Messages say that an argument has to be this, unless the option's row tells. */
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
    const bool is_number = text[0] && text[strspn(text, "0123456789")] == '\0';
    const char *nearest = hint || is_number ? NULL : kprof_nearest(text, words, count);
    return kprof_fail(KPROF_USAGE, "--%s: \"%s\" is not valid, give %s%s%s%s%s%s", row->name, text, row->argument,
                      note ? ": " : "", note ? note : "", nearest ? "; did you mean " : "", nearest ? nearest : "",
                      nearest ? "?" : "");
}

/* A whole number of at most 18 digits. */
static bool parse_whole(const char *text, uint64_t *out)
{
    char *end;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
        return false;
    *out = strtoull(text, &end, 10);
    return true;
}

const char *kprof_option_word(const char *name, int value)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_choice *choice = kprof_option_rows[i].choices;
        for (; strcmp(kprof_option_rows[i].name, name) == 0 && choice && choice->word; choice++)
            if (choice->value == value)
                return choice->word;
    }
    return NULL;
}

/* As in ncu, upper and lower case are the same, and so are its words for yes and no. */
static bool find_choice(const kprof_option_row *row, const char *text, int *value)
{
    const int answer = kprof_yes_or_no(text);
    for (const kprof_option_choice *choice = row->choices; choice && choice->word; choice++) {
        if (strcasecmp(text, choice->word) == 0 || (answer >= 0 && kprof_yes_or_no(choice->word) == answer)) {
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

/* A number without a suffix: above 0, or from 0. */
static bool parse_plain(const char *text, bool may_be_0, double *out)
{
    const char *rest;
    const bool has_digit = text[strcspn(text, "0123456789")] != '\0';
    return has_digit && strlen(text) <= 18 && (parse_decimal(text, out, &rest) || (may_be_0 && *out == 0)) && !*rest;
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
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (strcasecmp(units[i].suffix, suffix) == 0)
            bytes = number * units[i].bytes;
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
    if (!parse_whole(text, &count) || count == 0 || count > (uint64_t)row->value)
        return refuse_value(row, text);
    *field = (uint32_t)count;
    return KPROF_OK;
}

#define BLANKS " \t\r\n" /* scripts part lists over lines */

void kprof_value_list(const char *text, kprof_strlist *out)
{
    size_t depth = 0;
    const char *start = text + strspn(text, BLANKS);
    for (const char *at = text;; at++) {
        if (*at && strchr("([{", *at))
            depth++;
        else if (*at && strchr(")]}", *at) && depth > 0)
            depth--;
        if (*at != '\0' && (*at != ',' || depth > 0))
            continue;
        size_t length = at > start ? (size_t)(at - start) : 0;
        while (length > 0 && strchr(BLANKS, start[length - 1]))
            length--;
        KPROF_AUTO_FREE char *item = kprof_strndup(start, length);
        if (*item)
            kprof_strlist_add_unique(out, item);
        if (*at == '\0')
            return;
        start = at + 1 + strspn(at + 1, BLANKS);
    }
}

static kprof_status store_list(const kprof_option_row *row, const char *text, kprof_strlist *field)
{
    size_t before = field->count;
    if (row->type == KPROF_OPTION_PATHS)
        kprof_strlist_add(field, text);
    else
        kprof_value_list(text, field);
    return field->count > before || text[strspn(text, "," BLANKS)] ? KPROF_OK : refuse_value(row, text);
}

static kprof_status store_ordinals(const kprof_option_row *row, const char *text, uint64_t *mask)
{
    KPROF_AUTO(kprof_strlist) items = KPROF_STRLIST_INIT;
    kprof_value_list(text, &items);
    kprof_status status = KPROF_OK;
    if (items.count == 0)
        status = refuse_value(row, text);
    for (size_t i = 0; i < items.count && status == KPROF_OK; i++) {
        uint64_t ordinal;
        if (parse_whole(items.items[i], &ordinal) && ordinal < 64)
            *mask |= UINT64_C(1) << ordinal;
        else
            status = refuse_value(row, items.items[i]);
    }
    return status;
}

/* Add the values of a list of choices to those that were given before. */
static kprof_status store_bits(const kprof_option_row *row, const char *text, kprof_options *options)
{
    int *field = (int *)((char *)options + row->field);
    bool is_given = options->given[row - kprof_option_rows];
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    kprof_value_list(text, &words);
    for (size_t i = 0; i < words.count; i++) {
        int value = 0;
        if (!find_choice(row, words.items[i], &value))
            return refuse_value(row, words.items[i]);
        if (is_given && (value == 0) != (*field == 0))
            return kprof_fail(KPROF_USAGE, "--%s: %s excludes the others", row->name, kprof_option_word(row->name, 0));
        *field |= value;
        is_given = true;
    }
    return words.count > 0 ? KPROF_OK : refuse_value(row, text);
}

/* The name of the option whose row had set the same field before. */
static const char *given_for_field(const kprof_options *options, const kprof_option_row *row)
{
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
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

kprof_status kprof_value_store(const kprof_option_row *row, char *text, kprof_options *options)
{
    void *field = (char *)options + row->field;
    int choice;
    switch (row->type) {
    case KPROF_OPTION_CHOICE:
        if (given_for_field(options, row))
            return fail_both(given_for_field(options, row), row);
        if (row->value)
            return store_bits(row, text, options);
        return find_choice(row, text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_LIST:
    case KPROF_OPTION_PATHS:
        return store_list(row, text, field);
    case KPROF_OPTION_NUMBER:
        return parse_whole(text, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_COUNT:
        return store_count(row, text, field);
    case KPROF_OPTION_SECONDS:
    case KPROF_OPTION_PERCENT:
        return parse_plain(text, row->type == KPROF_OPTION_PERCENT, field) ? KPROF_OK : refuse_value(row, text);
    case KPROF_OPTION_BYTES:
        if (find_choice(row, text, &choice))
            *(uint64_t *)field = (uint64_t)choice;
        else if (!parse_bytes(text, field))
            return refuse_value(row, text);
        return KPROF_OK;
    case KPROF_OPTION_ORDINALS:
        return store_ordinals(row, text, field);
    default:
        *(char **)field = text;
        return text[0] ? KPROF_OK : refuse_value(row, text);
    }
}

bool kprof_option_takes_argument(const kprof_option_row *row)
{
    return row->type != KPROF_OPTION_FLAG && row->type != KPROF_OPTION_SET && row->type != KPROF_OPTION_ALIAS;
}

kprof_status kprof_flag_store(const kprof_option_row *row, kprof_options *options)
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
