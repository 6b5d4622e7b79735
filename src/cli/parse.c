/* Reads the words of the command line by the table of options, and by those of ncu's and of nsys's. */
#include "cli/parse.h"

#include "cli/commands.h"
#include "cli/idle.h"
#include "cli/paths.h"
#include "cli/words.h"
#include "core/config.h"
#include "core/log.h"
#include "core/regex.h"
#include "report/model/change.h"

#include <stdlib.h>
#include <string.h>

/* The position of the parser. */
typedef struct cursor {
    char **word;
    kprof_options *options;
    const char *values[KPROF_OPTION_ROWS]; /* by row: what was given before; NULL: nothing */
    kprof_strlist idle;                    /* options of other tools that have no effect, each before the reason */
    size_t files, words_of_files;          /* that words were taken from, and how many */
    kprof_line line;
    bool is_lost;  /* it is not clear what the next words belong to */
    bool is_typed; /* so go on all the same */
} cursor;

static bool takes_many(const kprof_option_row *row)
{
    return row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS || row->type == KPROF_OPTION_ORDINALS ||
           (row->type == KPROF_OPTION_CHOICE && row->value);
}

/* Refuse a second, different value of an option: nobody could tell which one counts. */
static kprof_status check_repeated(cursor *at, const kprof_option_row *row, const char *text)
{
    const char **place = &at->values[row - kprof_option_rows], *before = *place;
    *place = text;
    if (takes_many(row) || !before || strcmp(before, text) == 0)
        return KPROF_OK;
    return kprof_fail(KPROF_USAGE, "--%s is given as \"%s\" and as \"%s\"; give it once", row->name, before, text);
}

/* Arguments that begin with a dash: numbers below 0, and lists whose first item is "-". */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] && !strchr("0123456789.,", word[1]);
}

/* The argument of --complete, which is asked about, may look like an option. */
bool kprof_option_follows(const kprof_option_row *row, const char *word)
{
    return looks_like_option(word) && row->field != offsetof(kprof_options, complete);
}

/* Store an option that needs an argument, from `attached` (after "=" or the letter) or the next word. */
static kprof_status take_argument(cursor *at, const kprof_option_row *row, char *attached)
{
    const bool takes_text =
        row->type == KPROF_OPTION_STRING || row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS;
    if (!attached) {
        attached = at->word[1];
        at->line.wanting = attached ? NULL : row;
        if (!attached)
            return kprof_fail(KPROF_USAGE, "--%s needs an argument: %s", row->name, row->argument);
        if (kprof_option_follows(row, attached) && !takes_text)
            return kprof_fail(KPROF_USAGE, "--%s needs an argument: %s; \"%s\" looks like an option", row->name,
                              row->argument, attached);
        if (kprof_option_follows(row, attached))
            return kprof_fail(
                KPROF_USAGE,
                "--%s needs an argument: %s; \"%s\" looks like an option: give --%s=%s if it is the argument",
                row->name, row->argument, attached, row->name, attached);
        at->word++;
    }
    kprof_status status = check_repeated(at, row, attached);
    return KPROF_THEN(status, kprof_value_store(row, attached, at->options));
}

/* The options of one reason stand in one message. */
static void tell_idle(const kprof_strlist *idle)
{
    for (size_t i = 0; i < idle->count; i += 2) {
        KPROF_AUTO(kprof_strbuf) names = KPROF_STRBUF_INIT;
        size_t count = 0, first = idle->count;
        for (size_t k = 0; k < idle->count; k += 2) {
            if (strcmp(idle->items[k + 1], idle->items[i + 1]) != 0)
                continue;
            first = count == 0 ? k : first;
            kprof_strbuf_printf(&names, "%s--%s", count++ ? ", " : "", idle->items[k]);
        }
        if (first == i)
            kprof_log(KPROF_LOG_WARNING, "%s %s no effect: %s", names.data, count == 1 ? "has" : "have",
                      idle->items[i + 1]);
    }
}

/* -v is --version, as in ncu, but "kprof list sections -v" asks for more of the list; -f is that of nsys stats. */
char kprof_option_letter(const kprof_option_row *row, const kprof_command *command)
{
    if (command->mask == KPROF_IN(stats) && row->field == offsetof(kprof_options, stats_formats))
        return 'f';
    if (command->mask == KPROF_IN(stats) && row->field == offsetof(kprof_options, force_overwrite))
        return 0;
    if (command->operand != KPROF_OPERAND_WORD)
        return row->letter;
    if (row->field == offsetof(kprof_options, verbose))
        return 'v';
    return row->field == offsetof(kprof_options, version) ? 0 : row->letter;
}

static const kprof_option_row *find_letter(const kprof_options *options, char letter)
{
    return KPROF_FIRST(it, kprof_option_rows, KPROF_OPTION_ROWS, kprof_option_letter(it, options->command) == letter);
}

static kprof_status fail_unknown(const kprof_command *command, const char *name)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++)
        if (kprof_option_rows[i].commands & command->mask)
            kprof_strlist_add(&names, kprof_option_rows[i].name);
    kprof_nsys_names(command, &names);
    const char *nearest = kprof_nearest_spelling(name, (const char *const *)names.items, names.count);
    if (!nearest)
        nearest = kprof_ncu_option_spelled_like(name);
    const size_t longer = KPROF_FIND(i, names.count, !nearest && kprof_begins_with(names.items[i], name));
    nearest = longer < names.count ? names.items[longer] : nearest;
    return nearest ? kprof_fail(KPROF_USAGE, "unknown option --%s; did you mean --%s?", name, nearest)
                   : kprof_fail(KPROF_USAGE, "unknown option --%s; kprof %s%s--help lists the options", name,
                                command->name, *command->name ? " " : "");
}

static const kprof_option_row *find_whole(const char *name)
{
    return KPROF_FIRST(it, kprof_option_rows, KPROF_OPTION_ROWS, strcmp(it->name, name) == 0);
}

/* A long option is one of kprof's, or else of ncu's; if it is neither, nothing is set. */
typedef struct named {
    const kprof_option_row *row;
    const kprof_other_option *ncu;
} named;

static kprof_status fail_ambiguous(const char *beginning, const kprof_strlist *names)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < names->count; i++)
        kprof_strbuf_printf(&text, "%s--%s", i == 0 ? "" : i + 1 < names->count ? ", " : " or ", names->items[i]);
    return kprof_fail(KPROF_USAGE, "--%s could be %s", beginning, text.data);
}

/* A unique beginning of one: kprof's go before ncu's. */
static kprof_status find_beginning(const kprof_command *command, const char *name, named *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    *out = (named){NULL, NULL};
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++)
        if (kprof_begins_with(kprof_option_rows[i].name, name)) {
            out->row = &kprof_option_rows[i];
            kprof_strlist_add(&names, out->row->name);
        }
    const kprof_other_option *other = names.count == 0 ? kprof_ncu_option_next(name, NULL) : NULL;
    for (; other; other = kprof_ncu_option_next(name, other)) {
        out->ncu = kprof_ncu_option_find(other->name); /* its first row */
        kprof_strlist_add_unique(&names, other->name);
    }
    return names.count == 1 ? KPROF_OK : names.count ? fail_ambiguous(name, &names) : fail_unknown(command, name);
}

static kprof_status take_row(cursor *at, const kprof_option_row *row, char *value)
{
    kprof_status status;
    if (kprof_option_takes_argument(row))
        status = take_argument(at, row, value);
    else if (value)
        status = kprof_fail(KPROF_USAGE, "--%s takes no argument", row->name);
    else
        status = kprof_flag_store(row, at->options);
    if (status == KPROF_OK)
        at->options->given[row - kprof_option_rows] = true;
    return status;
}

/* Take kprof's options that stand for another tool's, parted by blanks. */
static kprof_status take_meant(cursor *at, const char *meant)
{
    kprof_status status = KPROF_OK;
    for (size_t length; *meant && status == KPROF_OK; meant += length) {
        length = strcspn(meant, " ");
        char *name = kprof_pool_keep(&at->options->made_words, kprof_strndup(meant, length));
        char *value = strchr(name, '=');
        if (value)
            *value++ = '\0';
        status = take_row(at, find_whole(name), value);
        length += meant[length] == ' ';
    }
    return status;
}

static void add_idle(cursor *at, const kprof_other_option *option, const char *value)
{
    KPROF_AUTO_FREE char *words = kprof_other_words(option, value);
    KPROF_AUTO_FREE char *name = kprof_strprintf("%s%s%s", option->name, words ? " " : "", words ? words : "");
    for (size_t i = 0; i < at->idle.count; i += 2)
        if (strcmp(at->idle.items[i], name) == 0)
            return;
    kprof_strlist_add(&at->idle, name);
    kprof_strlist_add(&at->idle, option->text);
}

/* `value`: NULL: it takes none. */
static kprof_status follow_other(cursor *at, const kprof_other_option *option, char *value)
{
    switch (option->effect) {
    case KPROF_EFFECT_IDLE:
        add_idle(at, option, value);
        return KPROF_OK;
    case KPROF_EFFECT_KEPT:
        *(char **)((char *)at->options + option->field) = value ? value : *at->word;
        return KPROF_OK;
    case KPROF_EFFECT_MEANS:
        return take_meant(at, option->text);
    default:
        return kprof_fail(KPROF_USAGE, "--%s%s%s: this option of %s is not supported; %s", option->name,
                          value ? " " : "", value ? value : "", option->tool, option->text);
    }
}

/* An option that another tool has, as given: kprof's own of that name or letter, or NULL, and what is attached to it by
 * "=" or behind the letter, or NULL. */
typedef struct other_given {
    const kprof_other_option *first;
    const kprof_option_row *own;
    char *attached;
} other_given;

/* Take the option if it is the other tool's: where kprof has its own, if one of the values follows that the tool has,
 * and behind that the application, which may have such a name. Else *is_taken is false. */
static kprof_status take_other(cursor *at, const other_given *given, bool *is_taken)
{
    const kprof_command *command = at->options->command;
    const bool takes_value = given->first->takes_argument;
    char *value = given->attached ? given->attached : takes_value ? at->word[1] : NULL;
    bool is_same = false;
    const kprof_other_option *row = kprof_other_answer(given->first, value, &is_same);
    const bool is_own = given->own && (given->own->commands & command->mask);
    const bool is_last = !given->attached && command->operand == KPROF_OPERAND_APPLICATION && value && !at->word[2];
    *is_taken = !is_own || (value && row && !is_last && (is_same || !kprof_values_have(row->others, NULL)));
    if (!*is_taken)
        return KPROF_OK;
    if (given->attached && !takes_value && given->first->effect != KPROF_EFFECT_REFUSED)
        return kprof_fail(KPROF_USAGE, "--%s takes no argument", given->first->name);
    if (takes_value && (!value || (!given->attached && looks_like_option(value))))
        return kprof_fail(KPROF_USAGE, "--%s needs an argument", given->first->name);
    if (!row)
        return kprof_other_refuse(given->first, value);
    at->word += takes_value && !given->attached;
    return is_same ? KPROF_OK : follow_other(at, row, value);
}

/* Find what a long option means, by its whole name, another tool's name for it, its letter, or a beginning. */
static kprof_status find_named(const kprof_options *options, const char *name, named *out)
{
    const char *other = kprof_ncu_other_name(name);
    *out = (named){find_whole(other ? other : name), kprof_ncu_option_find(name)};
    if (!out->row && !out->ncu && name[0] && !name[1]) /* a letter with two dashes */
        *out = (named){find_letter(options, name[0]), kprof_ncu_option_of_letter(name[0])};
    return out->row || out->ncu ? KPROF_OK : find_beginning(options->command, name, out);
}

static kprof_status parse_long(cursor *at)
{
    char *word = *at->word, *value = strchr(word, '=');
    KPROF_AUTO_FREE char *name = kprof_strndup(word + 2, value ? (size_t)(value - word - 2) : strlen(word + 2));
    kprof_status status = KPROF_OK;
    if (!*name)
        return kprof_fail(KPROF_USAGE, "\"%s\" names no option", word);
    const kprof_other_option *nsys = kprof_nsys_find(at->options->command, name, 0);
    bool is_taken = false;
    char *attached = value ? value + 1 : NULL;
    if (nsys)
        status = take_other(at, &(other_given){nsys, find_whole(name), attached}, &is_taken);
    if (is_taken)
        return status;
    named found = {NULL, NULL};
    status = find_named(at->options, name, &found);
    at->is_lost = status != KPROF_OK && !value;
    if (status != KPROF_OK)
        return status;
    return found.row ? take_row(at, found.row, attached)
                     : take_other(at, &(other_given){found.ncu, NULL, attached}, &is_taken);
}

/* "-k NAME", "-kNAME", "-fq". */
static kprof_status parse_letters(cursor *at)
{
    char *letter = *at->word + 1;
    kprof_status status = KPROF_OK;
    KPROF_AUTO_FREE char *whole = kprof_strndup(letter, strcspn(letter, "="));
    const bool is_known = find_whole(whole) || kprof_ncu_other_name(whole) || kprof_ncu_option_find(whole);
    if (whole[0] && whole[1] && is_known) {
        at->is_lost = true;
        return kprof_fail(KPROF_USAGE, "-%s: long options have two dashes; write --%s", whole, whole);
    }
    for (bool done = false; *letter && !done && status == KPROF_OK; letter++) {
        const kprof_option_row *row = find_letter(at->options, *letter);
        const kprof_other_option *other = kprof_nsys_find(at->options->command, NULL, *letter);
        bool is_taken = false;
        if (!other && !row)
            other = kprof_ncu_option_of_letter(*letter);
        if (letter[1] == '=' && (other ? other->takes_argument : row && kprof_option_takes_argument(row)))
            return kprof_fail(KPROF_USAGE, "%s: no \"=\" follows a letter; write -%c %s", *at->word, *letter,
                              letter + 2);
        if (other)
            status = take_other(at, &(other_given){other, row, letter[1] ? letter + 1 : NULL}, &is_taken);
        if (is_taken)
            return status;
        at->is_lost = !row;
        if (!row)
            return kprof_fail(KPROF_USAGE, "unknown option -%c; kprof %s%s--help lists the options", *letter,
                              at->options->command->name, *at->options->command->name ? " " : "");
        done = kprof_option_takes_argument(row);
        status = take_row(at, row, done && letter[1] ? letter + 1 : NULL);
    }
    return status;
}

/* A word that is no option: the command, the application (which takes all the rest) or the command's operand. */
static kprof_status take_word(cursor *at, bool may_be_command, bool *done)
{
    kprof_options *options = at->options;
    bool is_first = options->command == kprof_commands && may_be_command && !at->line.has_run;
    at->line.has_run = at->line.has_run || (is_first && strcmp(*at->word, KPROF_COMMAND_RUN) == 0);
    if (is_first && at->line.has_run)
        return KPROF_OK;
    const kprof_command *command = is_first ? kprof_command_find(*at->word) : NULL;
    if (command) {
        options->command = command;
        return KPROF_OK;
    }
    at->line.operands++;
    if (options->command->operand == KPROF_OPERAND_APPLICATION) {
        options->application = at->word;
        *done = true;
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_REPORTS && !options->baseline) {
        options->baseline = *at->word;
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_METRICS) {
        /* Labels of pages, such as "DRAM, of its peak", have no underscore; names of metrics have one. */
        const bool is_label = strstr(*at->word, ", ") && !strchr(*at->word, '_');
        kprof_strlist *words = &options->selection.metrics;
        kprof_strlist_add(&options->reports, *at->word); /* several may be one label */
        if (is_label)
            kprof_strlist_add(words, *at->word);
        else
            kprof_value_list(*at->word, words);
        return KPROF_OK;
    }
    if (options->command->operand == KPROF_OPERAND_MANY_REPORTS || options->command->operand == KPROF_OPERAND_WORDS) {
        options->argument = options->argument ? options->argument : *at->word;
        kprof_strlist_add(&options->reports, *at->word);
        return KPROF_OK;
    }
    const char *name = options->command->name;
    if (options->argument && options->command->mask == KPROF_IN(list) && strcmp(options->argument, "metrics") == 0)
        return kprof_fail(KPROF_USAGE,
                          "kprof list: \"%s\" is one word too many; give names and regex:PATTERN with --metrics",
                          *at->word);
    if (options->argument || options->command->operand == KPROF_OPERAND_NONE)
        return kprof_fail(KPROF_USAGE, "kprof %s: \"%s\" is one word too many; kprof help %s tells what it takes", name,
                          *at->word, name);
    options->argument = *at->word;
    return KPROF_OK;
}

/* "@FILE" in the place of an option stands for the words of a file. */
static bool may_be_file(const cursor *at)
{
    const char *word = *at->word;
    return word[0] == '@' && word[1] && at->options->command->operand == KPROF_OPERAND_APPLICATION;
}

static kprof_status insert_file(cursor *at)
{
    enum { MOST_FILES = 64, MOST_WORDS = 1 << 16 };
    if (at->files++ == MOST_FILES)
        return kprof_fail(KPROF_USAGE, "%s: options from more than %d files; does a file name itself?", *at->word,
                          MOST_FILES);
    kprof_options *options = at->options;
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    kprof_status status = kprof_words_read(*at->word + 1, &words);
    at->words_of_files += words.count;
    if (status != KPROF_OK)
        return status; /* with the word in its place: the parser goes on behind it */
    if (at->words_of_files > MOST_WORDS)
        return kprof_fail(KPROF_USAGE, "%s: files have more than %d words", *at->word, MOST_WORDS);
    const size_t place = (size_t)(at->word - options->words);
    options->words = kprof_words_replace(&options->made_words, options->words, (kprof_word_span){place, 1}, &words);
    at->word = options->words + place;
    return KPROF_OK;
}

/* Report every error, as long as it is clear which option each word belongs to. */
static kprof_status parse_words(cursor *at)
{
    kprof_status result = KPROF_OK;
    bool *only_words = &at->line.only_words, done = false;
    *only_words = false;
    while (*at->word && !done && (at->is_typed || !at->is_lost)) {
        kprof_status status = KPROF_OK;
        if (!*only_words && may_be_file(at)) {
            status = insert_file(at);
            if (status == KPROF_OK)
                continue;
            at->is_lost = true;
        } else if (*only_words || (*at->word)[0] != '-' || (*at->word)[1] == '\0') {
            status = take_word(at, !*only_words, &done);
            at->is_lost = status != KPROF_OK;
        } else if (strcmp(*at->word, "--") == 0) {
            *only_words = true;
        } else if ((*at->word)[1] == '-') {
            status = parse_long(at);
        } else {
            status = parse_letters(at);
        }
        result = status != KPROF_OK ? status : result;
        at->word++;
    }
    return result;
}

/* The heading of ncu's configuration that is about such a line; NULL: none is. */
static const char *mode_of(const kprof_options *options)
{
    const unsigned command = options->command->mask;
    if (options->import_path || command & KPROF_IN(report))
        return "Import";
    if (KPROF_IS_GIVEN(options, query_mode) || (options->alias && strcmp(options->alias->name, "query-metrics") == 0))
        return "Query";
    const bool plans = command & KPROF_IN(plan) || (options->alias && strcmp(options->alias->name, "plan") == 0);
    if ((options->alias && !plans) || command & KPROF_IN(list))
        return "List";
    return plans || command & KPROF_IN(profile) ? "Launch-and-attach" : NULL;
}

/* Only the line itself says what the program does. */
static bool may_be_configured(const kprof_option_row *row)
{
    static const size_t never[] = {offsetof(kprof_options, help),         offsetof(kprof_options, version),
                                   offsetof(kprof_options, complete),     offsetof(kprof_options, import_path),
                                   offsetof(kprof_options, reads_config), offsetof(kprof_options, config_path)};
    return row->type != KPROF_OPTION_ALIAS && !KPROF_ANY(i, COUNT_OF(never), row->field == never[i]);
}

/* Append to `out` an option of the configuration, unless the line has given it. A list has what either gives; where a
 * line would repeat an option, the configuration has one with commas. */
static kprof_status choose_configured(const cursor *at, const char *word, kprof_strlist *out)
{
    const bool is_long = kprof_begins_with(word, "--");
    const size_t length = strcspn(word, "=");
    KPROF_AUTO_FREE char *name = is_long ? kprof_strndup(word + 2, length - 2) : NULL;
    named found = {is_long ? NULL : find_letter(at->options, word[1]), NULL};
    kprof_status status = is_long ? find_named(at->options, name, &found) : KPROF_OK;
    const kprof_option_row *row = found.row;
    if (row && !may_be_configured(row))
        return kprof_fail(KPROF_USAGE, "--%s is for the command line alone", row->name);
    if (status != KPROF_OK || (row && !takes_many(row) && at->options->given[row - kprof_option_rows]))
        return status;
    KPROF_AUTO(kprof_strlist) values = KPROF_STRLIST_INIT;
    if (row && row->type == KPROF_OPTION_PATHS && word[length])
        kprof_value_list(word + length + 1, &values);
    for (size_t i = 0; i < values.count; i++)
        kprof_strlist_take(out, kprof_strprintf("%.*s=%s", (int)length, word, values.items[i]));
    if (values.count == 0)
        kprof_strlist_add(out, word);
    return status;
}

/* Take these options as if they stood in front of the line. */
static kprof_status take_words(cursor *at, const kprof_strlist *words)
{
    kprof_options *options = at->options;
    const size_t application = options->application ? (size_t)(options->application - options->words) : 0;
    options->words = kprof_words_replace(&options->made_words, options->words, (kprof_word_span){1, 0}, words);
    if (application)
        options->application = options->words + application + words->count;
    char *rest = options->words[1 + words->count];
    options->words[1 + words->count] = NULL;
    at->word = options->words + 1;
    kprof_status status = parse_words(at);
    options->words[1 + words->count] = rest;
    return status;
}

/* ncu reads its configuration unless told not to. Under kprof's own name somebody has to ask for it, and under that of
 * ncu for one of the working folder. */
static kprof_status take_configuration(cursor *at)
{
    kprof_options *options = at->options;
    const char *mode = mode_of(options);
    const bool is_asked_for = options->reads_config == 1;
    if (!mode || options->help || options->version || options->complete || options->reads_config == 0)
        return KPROF_OK;
    const bool is_wanted = !options->config_path && (is_asked_for || kprof_is_called_ncu());
    KPROF_AUTO_FREE char *found = is_wanted ? kprof_config_find(is_asked_for) : NULL;
    const char *path = options->config_path ? options->config_path : found;
    KPROF_AUTO(kprof_strlist) words = KPROF_STRLIST_INIT;
    KPROF_AUTO(kprof_strlist) taken = KPROF_STRLIST_INIT;
    kprof_status status = path ? kprof_config_read(path, mode, &words) : KPROF_OK;
    for (size_t i = 0; i < words.count && status == KPROF_OK; i++)
        status = choose_configured(at, words.items[i], &taken);
    if (status == KPROF_OK && taken.count > 0)
        status = take_words(at, &taken);
    if (words.count > 0 && status != KPROF_OK)
        return kprof_fail(status, "%s has that under [%s]", path, mode);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < taken.count && !options->quiet; i++) {
        kprof_strbuf_puts(&text, " ");
        kprof_strbuf_quote(&text, taken.items[i]);
    }
    if (text.length > 0)
        kprof_log(KPROF_LOG_INFO, "%s adds to the command line:%s", path, text.data);
    return status;
}

/* "A*" is a name, and no pattern; a star between two slashes stands for ranges. */
static void tell_plain(const char *what, const char *text)
{
    KPROF_AUTO(kprof_strbuf) pattern = KPROF_STRBUF_INIT;
    bool is_meant = false;
    for (const char *at = text; !kprof_regex_pattern(text); at++) {
        KPROF_AUTO_FREE char *part = kprof_strndup(at, strcspn(at, "/"));
        KPROF_AUTO_FREE char *meant = strcmp(part, "*") == 0 ? NULL : kprof_regex_meant(part);
        is_meant = is_meant || meant;
        at += strlen(part);
        kprof_strbuf_printf(&pattern, "%s%s", meant ? meant : part, *at ? "/" : "");
        if (!*at)
            break;
    }
    if (is_meant)
        kprof_log(KPROF_LOG_WARNING, "%s \"%s\"" KPROF_REGEX_TAKEN_PLAIN "\"regex:%s\"", what, text, pattern.data);
}

static void tell_plain_names(const kprof_filter_spec *filter)
{
    const struct {
        const char *what;
        const kprof_strlist *names;
    } lists[] = {
        {"NVTX range", &filter->nvtx_include}, {"NVTX range", &filter->nvtx_exclude},
        {"function", &filter->python_include}, {"function", &filter->python_exclude},
        {"function", &filter->native_include}, {"function", &filter->native_exclude},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        for (size_t k = 0; k < lists[i].names->count; k++)
            tell_plain(lists[i].what, lists[i].names->items[k]);
    if (filter->step)
        tell_plain("NVTX range", filter->step);
}

/* Nothing is given yet. */
static void begin(char **argv, kprof_options *out)
{
    *out = (kprof_options){
        .command = kprof_commands,
        .words = argv,
        .format = KPROF_UNSET,
        .time_tolerance_pct = KPROF_TIME_TOLERANCE_PCT,
        .bytes_tolerance_pct = KPROF_TRAFFIC_TOLERANCE_PCT,
    };
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (row->type == KPROF_OPTION_CHOICE || row->type == KPROF_OPTION_COUNT)
            *(int *)((char *)out + row->field) = row->initial;
    }
}

kprof_line kprof_options_read(char **argv, kprof_options *out)
{
    begin(argv, out);
    cursor at = {.word = argv + 1, .options = out, .is_typed = true};
    (void)!parse_words(&at);
    if (out->import_path && out->command == kprof_commands)
        out->command = kprof_command_find("report");
    if (out->alias)
        out->command = kprof_command_of_alias(out->alias, &out->argument);
    else if (!out->argument)
        out->argument = out->import_path;
    kprof_strlist_free(&at.idle);
    return at.line;
}

kprof_status kprof_options_parse(char **argv, kprof_options *out)
{
    begin(argv, out);
    if (!argv[0]) /* execve can leave out even the program's name */
        return kprof_fail(KPROF_USAGE, "the command line is empty");
    cursor at = {.word = argv + 1, .options = out};
    kprof_status status = parse_words(&at);
    KPROF_THEN(status, take_configuration(&at));
    KPROF_THEN(status, kprof_options_settle(out));
    if (status == KPROF_OK && !out->complete) { /* the whole line is right: warn of options that have no effect */
        kprof_idle_tell(out, NULL);
        tell_idle(&at.idle);
        tell_plain_names(&out->filter);
    }
    kprof_strlist_free(&at.idle);
    return status;
}

void kprof_options_free(kprof_options *options)
{
    KPROF_FREE(options->kernel_made, options->schedule_made, options->step_made);
    for (size_t i = 0; options->conditions && i < options->filters.count; i++)
        kprof_condition_free(&options->conditions[i]);
    free(options->conditions);
    kprof_selection_free(&options->selection);
    for (size_t i = 0; i < KPROF_OPTION_ROWS; i++) {
        const kprof_option_row *row = &kprof_option_rows[i];
        if (row->type == KPROF_OPTION_LIST || row->type == KPROF_OPTION_PATHS)
            kprof_strlist_free((kprof_strlist *)((char *)options + row->field));
    }
    kprof_strlist_free(&options->reports);
    kprof_pool_free(&options->made_words);
}
