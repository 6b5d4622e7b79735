/* Words of --metrics, --section and --set, and of `kprof list metrics`, on a chip that is made up. The first byte has
 * the limits; the first letter of each line says what the word is for. */
#include "fuzz.h"

#include "metricset/metricset.h"

static kprof_catalog *catalog;
static kprof_host *host;

void fuzz_set_up(void)
{
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    FUZZ_CHECK(kprof_strlist_add(&folders, KPROF_METRICSETS_DIR));
    FUZZ_CHECK(kprof_catalog_load(&folders, &catalog) == KPROF_OK);
    FUZZ_CHECK(kprof_host_open("GH100", NULL, &host) == KPROF_OK);
}

static kprof_status count_row(void *user, const kprof_query_row *row)
{
    size_t *count = user;
    FUZZ_CHECK(row->name && row->unit && row->description && row->kind);
    ++*count;
    return KPROF_OK;
}

static void query(const kprof_strlist *names, kprof_query_mode mode)
{
    size_t count = 0;
    kprof_query request = {catalog, mode, names, count_row, &count};
    FUZZ_CHECK(kprof_query_metrics(host, &request) != KPROF_OK || count > 0);
}

static void add_word(kprof_selection *selection, const char *line)
{
    kprof_strlist *list = *line == 's' ? &selection->sections : *line == 'S' ? &selection->sets : &selection->metrics;
    FUZZ_CHECK(kprof_strlist_add(list, *line ? line + 1 : ""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    kprof_selection selection = {0};
    kprof_plan plan;
    selection.limits.max_passes = fuzz_take_byte(&input) % 8;
    for (char *line; (line = fuzz_take_line(&input));) {
        if (selection.metrics.count + selection.sections.count + selection.sets.count < 8)
            add_word(&selection, line);
        free(line);
    }
    bool is_known = kprof_selection_check(catalog, &selection) == KPROF_OK;
    if (kprof_plan_make(catalog, &selection, host, &plan) == KPROF_OK) {
        FUZZ_CHECK(is_known);
        kprof_plan_free(&plan);
    }
    if (selection.metrics.count > 0)
        query(&selection.metrics, (kprof_query_mode)(size % (KPROF_QUERY_ALL + 1)));
    kprof_strlist_free(&selection.metrics);
    kprof_strlist_free(&selection.sections);
    kprof_strlist_free(&selection.sets);
    return 0;
}
