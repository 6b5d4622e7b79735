/* kprof stats: print tables that sum up a trace. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/unfinished.h"
#include "core/log.h"
#include "report/model/trace_stats.h"
#include "report/model/trace_tables.h"
#include "report/page/page_stats.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One format of --format, with the end of a file's name, and the words that may follow it, each behind a colon. */
typedef struct stats_format {
    const char *word;
    int format;
    const char *ending, *arguments;
    kprof_table_style style; /* that the words make */
} stats_format;

static const stats_format formats[] = {
    {"column", KPROF_UNSET, "txt", "nohdr, nolimit, nofmt, WIDTH", {0}},
    {"table", KPROF_FORMAT_BOXES, "txt", "nohdr, nolimit, nofmt, WIDTH", {0}},
    {"csv", KPROF_FORMAT_CSV, "csv", "nohdr", {0}},
    {"tsv", KPROF_FORMAT_TSV, "tsv", "nohdr, esc", {0}},
    {"json", KPROF_FORMAT_JSON, "json", "", {0}},
    {"hdoc", KPROF_FORMAT_HDOC, "html", "title=TITLE, css=URL", {0}},
    {"htable", KPROF_FORMAT_HTABLE, "html", "", {0}},
    {"markdown", KPROF_FORMAT_MARKDOWN, "md", "", {0}},
    {"text", KPROF_UNSET, "txt", "nohdr, nolimit, nofmt, WIDTH", {0}},
};
#define FORMAT_COUNT COUNT_OF(formats)

/* A word ends at this mark, unless a backslash stands before the mark. */
static size_t word_length(const char *word, char mark)
{
    size_t i = 0;
    for (; word[i] && word[i] != mark; i++)
        i += word[i] == '\\' && word[i + 1];
    return i;
}

/* Return the word of this number, or the last one, of words between commas. Caller frees. */
static char *take_word(const char *words, size_t number)
{
    size_t length = word_length(words, ',');
    for (; number > 0 && words[length]; number--, length = word_length(words, ','))
        words += length + 1;
    return kprof_strndup(words, length);
}

/* Remove the backslashes that stand before a mark. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; *to++ = *text++)
        text += *text == '\\' && text[1] && strchr(",:\\", text[1]);
    *to = '\0';
}

/* Read the width of the next column; "." leaves it to the rows. False for another word. */
static bool read_width(const char *word, kprof_table_style *out)
{
    const size_t length = strlen(word);
    const bool is_usual = strcmp(word, ".") == 0;
    if (!is_usual && (length == 0 || length > 4 || strspn(word, "0123456789") != length))
        return false;
    if (out->width_count < KPROF_TABLE_WIDTHS)
        out->widths[out->width_count++] = is_usual ? -1 : atoi(word);
    return true;
}

/* Read what follows a format behind its colon; texts stay in `words`. */
static kprof_status read_style(char *words, stats_format *format)
{
    static const char *const known[] = {"nohdr", "nolimit", "nofmt", "esc", "title=", "css="};
    kprof_table_style *out = &format->style;
    for (char *word = words, *next; word; word = next) {
        const size_t length =
            kprof_begins_with(word, "css=") ? strlen(word) : word_length(word, ':'); /* an address has colons */
        next = word[length] ? word + length + 1 : NULL;
        word[length] = '\0';
        unescape(word);
        if (strstr(format->arguments, "WIDTH") && read_width(word, out))
            continue;
        const char *equals = strchr(word, '=');
        KPROF_AUTO_FREE char *name = kprof_strndup(word, equals ? (size_t)(equals - word) + 1 : strlen(word));
        if (!KPROF_ANY(i, COUNT_OF(known), strcmp(name, known[i]) == 0) || !strstr(format->arguments, name))
            return kprof_fail(KPROF_USAGE, "--format %s: \"%s\" is not valid behind it%s%s", format->word, word,
                              *format->arguments ? ", give " : ", leave it out", format->arguments);
        out->no_header = out->no_header || strcmp(name, "nohdr") == 0;
        out->no_limit = out->no_limit || strcmp(name, "nolimit") == 0;
        out->no_grouping = out->no_grouping || strcmp(name, "nofmt") == 0;
        out->title = strcmp(name, "title=") == 0 ? equals + 1 : out->title;
        out->css = strcmp(name, "css=") == 0 ? equals + 1 : out->css;
    }
    /* The usual columns fit the terminal, and have a header. */
    if (format->format == KPROF_UNSET && (out->no_header || out->no_grouping || out->width_count > 0)) {
        format->format = KPROF_FORMAT_BOXES;
        out->no_lines = true;
    }
    return KPROF_OK;
}

/* The format of a table, which `word` names. Without --format, and for ".", it is that of the other options, or what
 * nsys writes there. */
static kprof_status find_format(const kprof_options *options, char *word, bool to_file, stats_format *out)
{
    char *colon = strchr(word, ':');
    if (colon)
        *colon++ = '\0';
    const bool is_usual = strcmp(word, ".") == 0;
    *out = (stats_format){
        "", options->format == KPROF_UNSET && to_file ? KPROF_FORMAT_CSV : options->format, "csv", "", {0}};
    const size_t at =
        KPROF_FIND(i, FORMAT_COUNT, is_usual ? formats[i].format == out->format : strcmp(formats[i].word, word) == 0);
    if (at == FORMAT_COUNT)
        return is_usual ? KPROF_OK
                        : kprof_fail(KPROF_USAGE,
                                     "--format: \"%s\" is not valid, give column, table, csv, tsv, json, hdoc, htable "
                                     "or markdown%s",
                                     word,
                                     strstr(options->stats_formats, "title=") ? "; a comma in a title is \"\\,\"" : "");
    *out = formats[at];
    return read_style(colon, out);
}

/* Find where a table goes: "-", or what its file's name is made of, with this number for %i. Caller frees *out. */
static kprof_status find_place(const kprof_options *options, size_t table, unsigned number, char **out)
{
    KPROF_AUTO_FREE char *word = take_word(options->export_path ? options->export_path : "-", table);
    unescape(word);
    return kprof_name_expand("--export", word, number, out);
}

/* Check the format of each table before any is printed, and formats that are given for more tables than there are. */
static kprof_status check_formats(const kprof_options *options, size_t tables)
{
    kprof_status status = KPROF_OK;
    const char *at = options->stats_formats;
    for (size_t i = 0; at && (*at || i < tables) && status == KPROF_OK; i++) {
        stats_format format;
        KPROF_AUTO_FREE char *word = take_word(options->stats_formats, i), *to = NULL;
        status = find_place(options, i, 1, &to);
        KPROF_THEN(status, find_format(options, word, strcmp(to, "-") != 0, &format));
        at += word_length(at, ',');
        at += *at == ',';
    }
    return status;
}

/* The report's own name, without what kprof, or nsys, adds to it. */
static size_t stem_length(const char *report)
{
    return kprof_has_extension(report) ? strlen(report) - strlen(".kprof")
                                       : kprof_length_without_other_extension(report);
}

/* The file of a table, as nsys names it. `to` is what -o says: the beginning of its name, "." for that of the report,
 * or a folder. */
static char *name_file(const char *report, const char *to, const char *table, const char *ending)
{
    struct stat status;
    const char *slash = strrchr(report, '/');
    KPROF_AUTO(kprof_strbuf) name = KPROF_STRBUF_INIT;
    if (strcmp(to, ".") == 0)
        kprof_strbuf_append(&name, report, stem_length(report));
    else if (stat(to, &status) == 0 && S_ISDIR(status.st_mode))
        kprof_strbuf_printf(&name, "%s/%.*s", to, (int)stem_length(slash ? slash + 1 : report),
                            slash ? slash + 1 : report);
    else
        kprof_strbuf_puts(&name, to);
    kprof_strbuf_printf(&name, "_%s.%s", table, ending);
    for (char *at = name.data + name.length - strlen(table) - strlen(ending) - 1; (at = strchr(at, ':'));)
        *at = '_';
    return kprof_strbuf_take(&name);
}

static kprof_status show(const kprof_options *options, kprof_report *report, const kprof_stats_content *content)
{
    kprof_report *reports[] = {report};
    return kprof_results_show(options, &kprof_stats_page, &(kprof_page_input){reports, 1, content});
}

/* Tables that are shown each by itself. */
typedef struct tables_apart {
    const kprof_options *options;
    kprof_report *report;
    const kprof_stats_content *all;
    unsigned number; /* for %i */
} tables_apart;

/* How one of them is shown, and where. */
typedef struct place {
    char *words; /* of its format, which has parts of them; owned */
    stats_format format;
    char *file; /* owned; NULL: stdout */
} place;

static void place_free(place *it)
{
    KPROF_FREE(it->words, it->file);
}

static kprof_status settle(const tables_apart *of, size_t at, place *out)
{
    const kprof_options *options = of->options;
    KPROF_AUTO_FREE char *to = NULL;
    *out = (place){.words = take_word(options->stats_formats ? options->stats_formats : ".", at)};
    kprof_status status = find_place(options, at, of->number, &to);
    const bool to_file = to && strcmp(to, "-") != 0;
    KPROF_THEN(status, find_format(options, out->words, to_file, &out->format));
    if (status == KPROF_OK && to[0] == '@')
        return kprof_fail(KPROF_USAGE, "-o %s: kprof starts no command; write to -, and pipe that to it", to);
    if (status == KPROF_OK && to_file)
        out->file = name_file(options->argument, to, of->all->tables->items[at], out->format.ending);
    return status;
}

/* Take the lowest number that no file has yet: all tables of a line have the same one. */
static kprof_status find_number(tables_apart *of)
{
    struct stat found;
    const char *names = of->options->export_path;
    kprof_status status = KPROF_OK;
    of->number = 1;
    for (size_t i = 0; i < of->all->tables->count && status == KPROF_OK && names; i++) {
        place to;
        KPROF_AUTO_FREE char *word = take_word(names, i);
        status = settle(of, i, &to);
        if (status == KPROF_OK && to.file && kprof_name_is_numbered(word) && lstat(to.file, &found) == 0) {
            of->number++;
            i = SIZE_MAX; /* all again */
        }
        place_free(&to);
    }
    return status;
}

/* Show one table by itself, in its format, where it is to go. */
static kprof_status show_apart(const tables_apart *of, size_t at, const place *to)
{
    const kprof_options *options = of->options;
    const kprof_stats_content *all = of->all;
    kprof_options one = *options;
    char *name = all->tables->items[at];
    char *file = to->file;
    const kprof_stats_content content = {&(kprof_strlist){&name, 1, 1}, all->are_asked_for, all->findings,
                                         to->format.format == KPROF_UNSET, all->time_unit};
    one.format = to->format.format;
    one.table_style = to->format.style;
    one.table_style.has_title = !file;
    if (!file) {
        if (at > 0 && !options->log_file)
            puts("");
        return show(&one, of->report, &content);
    }
    one.log_file = file;
    if (!options->force_overwrite && access(file, F_OK) == 0)
        return kprof_fail(KPROF_OUTPUT, "%s exists; give --force-overwrite to replace it", file);
    kprof_unfinished_begin(file, NULL);
    kprof_status status = show(&one, of->report, &content);
    if (status == KPROF_OK)
        kprof_log(KPROF_LOG_INFO, "table: %s", file);
    else
        (void)unlink(file);
    kprof_unfinished_end();
    return status;
}

static kprof_status show_each(tables_apart *of)
{
    kprof_status status = find_number(of);
    for (size_t i = 0; i < of->all->tables->count && status == KPROF_OK; i++) {
        place to;
        status = settle(of, i, &to);
        KPROF_THEN(status, show_apart(of, i, &to));
        place_free(&to);
    }
    return status;
}

int kprof_cmd_stats(const kprof_options *options)
{
    KPROF_AUTO(kprof_strlist) tables = KPROF_STRLIST_INIT;
    kprof_finding_source rules = {NULL, {NULL, 0}};
    kprof_report *report = NULL;
    const bool are_apart = options->stats_formats || options->export_path;
    kprof_status status = kprof_stats_choose(&options->stats_reports, &tables);
    if (status == KPROF_OK && !options->argument)
        status = kprof_fail(KPROF_USAGE, "which report? usage: kprof stats FILE.kprof [options]");
    if (status == KPROF_OK && options->stats_formats && options->format != KPROF_UNSET)
        status = kprof_fail(KPROF_USAGE, "--format %s and --csv, --json or --markdown exclude each other",
                            options->stats_formats);
    KPROF_THEN(status, check_formats(options, tables.count));
    KPROF_THEN(status, kprof_report_open_named(options->argument, &report));
    KPROF_THEN(status, kprof_findings_locate(options, &rules));
    if (options->filter_time || options->filter_nvtx)
        KPROF_THEN(status, kprof_trace_choose_time(report, options->filter_time, options->filter_nvtx));
    if (are_apart || options->stats_reports.count > 0)
        KPROF_THEN(status, kprof_stats_leave_out(report, options->stats_reports.count > 0, &tables));
    const kprof_stats_content content = {&tables, options->stats_reports.count > 0,
                                         rules.catalog ? &rules.findings : NULL, false, options->time_unit};
    KPROF_THEN(status,
               are_apart ? show_each(&(tables_apart){options, report, &content, 0}) : show(options, report, &content));
    KPROF_THEN(status, kprof_trace_tell_missing(report, KPROF_TRACE_TABLES));
    (void)!kprof_report_close(report);
    kprof_findings_free(&rules);
    return kprof_status_exit_code(status);
}
