/* Checks printed pages as their readers would: a terminal, a spreadsheet, a JSON parser. */
#include "output_check.h"

#include "core/clean.h"
#include "fuzz.h"

#include <cjson/cJSON.h>
#include <string.h>

/* Take out the sequences that set colors. */
static void strip_colors(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        size_t length = strncmp(from, "\033[", 2) == 0 ? 2 + strspn(from + 2, "0123456789;") : 0;
        if (length > 0 && from[length] == 'm')
            from += length + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
}

/* Fields of a line of CSV. */
static size_t count_fields(const char *line)
{
    size_t count = 1;
    bool is_quoted = false;
    for (; *line; line++) {
        is_quoted = is_quoted != (*line == '"');
        count += *line == ',' && !is_quoted;
    }
    FUZZ_CHECK(!is_quoted);
    return count;
}

/* Put commas for the tabs between the fields of a line. */
static void separate_by_commas(char *line)
{
    bool is_quoted = false;
    for (; *line; line++) {
        is_quoted = is_quoted != (*line == '"');
        if (*line == '\t' && !is_quoted)
            *line = ',';
    }
}

static bool is_csv(kprof_format format)
{
    return format == KPROF_FORMAT_CSV || format == KPROF_FORMAT_CSV_WIDE || format == KPROF_FORMAT_CSV_NCU;
}

void fuzz_check_output(const kprof_print_options *options, char *text)
{
    cJSON *value = options->format == KPROF_FORMAT_JSON ? cJSON_ParseWithOpts(text, NULL, true) : NULL;
    FUZZ_CHECK(value || options->format != KPROF_FORMAT_JSON);
    cJSON_Delete(value);
    if (options->color)
        strip_colors(text);
    /* ncu's source page has tables of different columns. */
    const bool has_tables = options->page == KPROF_PAGE_SOURCE && options->format == KPROF_FORMAT_CSV_NCU;
    size_t columns = 0;
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        FUZZ_CHECK(*end == '\n'); /* the last line has an end, too */
        *end++ = '\0';
        if (options->format == KPROF_FORMAT_TSV)
            separate_by_commas(line);
        if (!kprof_text_is_clean(line))
            fprintf(stderr, "format %d: %s\n", options->format, line);
        FUZZ_CHECK(kprof_text_is_clean(line));
        size_t fields = is_csv(options->format) && !has_tables ? count_fields(line) : 0;
        FUZZ_CHECK(columns == 0 || fields == columns);
        columns = fields;
    }
}
