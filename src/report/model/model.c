/* Reads the small tables of a report into memory, and answers small questions about them. */
#include "report/model/model.h"
#include "core/clean.h"
#include "report/store/limits.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct loader {
    kprof_report *report;
    kprof_model *model;
    int64_t last_seen[2]; /* process and kernel of the latest row of `seen` */
    size_t values;        /* of the sections of all chips */
    size_t formulas;      /* bytes of their expressions */
} loader;

/* The array of the model that holds the rows of a table. */
typedef struct row_list {
    const char *name;
    kprof_rows table;
    int since; /* the first version of the schema that has the table */
    size_t array, count, size;
} row_list;

#define LIST(NAME, name, since, array, count)                                                                          \
    {                                                                                                                  \
#name, KPROF_ROWS_##NAME, since, offsetof(kprof_model, array), offsetof(kprof_model, count),                   \
            sizeof *((kprof_model *)0)->array                                                                          \
    }

static const row_list lists[] = {
    LIST(PROCESS, process, 1, processes, process_count),   LIST(DEVICE, device, 1, devices, device_count),
    LIST(KERNEL, kernel, 1, kernels, kernel_count),        LIST(METRIC, metric, 1, metrics, metric_count),
    LIST(LEFT_OUT, left_out, 2, left_out, left_out_count), LIST(MESSAGE, message, 1, messages, message_count),
    LIST(CENSUS, census, 9, census, census_count),
};
#define LIST_COUNT COUNT_OF(lists)

/* Read all rows of a table. They are numbered from 1 without gaps. Checking that also ends the walk through a damaged
 * tree that has a loop. */
static void load_list(kprof_report *report, kprof_model *model, const row_list *list)
{
    char sql[64];
    size_t *count = (size_t *)((char *)model + list->count);
    snprintf(sql, sizeof sql, "SELECT * FROM %s ORDER BY id", list->name);
    KPROF_EACH_ROW(rows, report, sql) {
        if (sqlite3_column_int64(rows.row, 0) != (int64_t)*count + 1) {
            kprof_store_damaged(report, list->name);
            return;
        }
        void *row = kprof_pool_add(model->pool, (void **)((char *)model + list->array), count, list->size);
        kprof_rows_read(&(kprof_row_source){report, rows.row, model->pool}, list->table, row);
    }
}

/* The text of a column, which is the model's. */
static char *text_of(loader *load, sqlite3_stmt *row, int column)
{
    return kprof_pool_keep(load->model->pool, kprof_store_text(load->report, row, column));
}

/* "default, full" of the stored JSON array. */
static char *join_sets(const kprof_report *report, const char *json)
{
    cJSON *array = json && strlen(json) <= KPROF_SETS_BYTES ? cJSON_Parse(json) : NULL;
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (const cJSON *set = array ? array->child : NULL; set; set = set->next) {
        kprof_strbuf_puts(&joined, joined.length ? ", " : "");
        kprof_strbuf_puts(&joined, cJSON_IsString(set) ? set->valuestring : "?");
    }
    cJSON_Delete(array);
    char *text = kprof_strbuf_take(&joined);
    if (!text || report->keeps_text)
        return text;
    char *safe = kprof_clean_text(text);
    free(text);
    return safe;
}

static kprof_status load_stack(loader *load, sqlite3_stmt *row)
{
    kprof_model *model = load->model;
    if (sqlite3_column_int64(row, 0) != (int64_t)model->stack_count + 1)
        return kprof_store_damaged(load->report, "stack");
    *KPROF_POOL_ADD(model->pool, model->stacks, model->stack_count) =
        (kprof_model_stack){text_of(load, row, 1), text_of(load, row, 2)};
    return KPROF_OK;
}

const kprof_model_stack *kprof_model_stack_of(const kprof_model *model, const kprof_model_launch *launch)
{
    return launch->stack > 0 ? &model->stacks[launch->stack - 1] : NULL;
}

static kprof_status load_run(loader *load, sqlite3_stmt *row)
{
    kprof_model *model = load->model;
    if (model->command_line)
        return kprof_store_damaged(load->report, "run");
    model->command_line = text_of(load, row, 0);
    model->working_directory = text_of(load, row, 1);
    model->kprof_version = text_of(load, row, 2);
    model->sets = kprof_pool_keep(model->pool, join_sets(load->report, (const char *)sqlite3_column_text(row, 3)));
    model->start_unix_ns = sqlite3_column_int64(row, 4);
    return KPROF_OK;
}

/* A process that calls exec has a row before and a row behind that. Processes of several sources may have one id. */
static void find_last_rows(kprof_report *report, kprof_model *model)
{
    const char *const sql =
        report->version >= 5 ? "SELECT max(id) FROM process LEFT JOIN process_source ON process_id=process.id GROUP BY "
                               "pid, host, source_id"
                             : "SELECT max(id) FROM process GROUP BY pid, host";
    for (size_t i = 0; i < model->process_count; i++)
        model->processes[i].goes_on = true;
    KPROF_EACH_ROW(rows, report, sql) {
        const int64_t id = sqlite3_column_int64(rows.row, 0);
        if (id > 0 && id <= (int64_t)model->process_count)
            model->processes[id - 1].goes_on = false;
    }
}

static size_t find_chip(const kprof_model *model, const char *name)
{
    const size_t at = KPROF_FIND(i, model->chip_count, strcmp(model->chips[i].name, name) == 0);
    return at < model->chip_count ? at : SIZE_MAX;
}

static kprof_status load_seen(loader *load, sqlite3_stmt *row)
{
    int64_t process = sqlite3_column_int64(row, 0), kernel = sqlite3_column_int64(row, 1);
    bool rises = process > load->last_seen[0] || (process == load->last_seen[0] && kernel > load->last_seen[1]);
    if (!rises || kernel < 1 || kernel > (int64_t)load->model->kernel_count)
        return kprof_store_damaged(load->report, "seen");
    load->last_seen[0] = process;
    load->last_seen[1] = kernel;
    load->model->kernels[kernel - 1].launches += (uint64_t)sqlite3_column_int64(row, 2);
    return KPROF_OK;
}

/* The chip that a column names, added when it is new; NULL: there are too many. */
static kprof_model_chip *chip_at(loader *load, sqlite3_stmt *row, int column)
{
    kprof_model *model = load->model;
    char *name = text_of(load, row, column);
    const size_t index = find_chip(model, name);
    if (index != SIZE_MAX)
        return &model->chips[index];
    if (model->chip_count == KPROF_CHIPS_MAX) {
        kprof_store_too_much(load->report, KPROF_CHIPS_MAX, "chips");
        return NULL;
    }
    kprof_model_chip *added = KPROF_POOL_ADD(model->pool, model->chips, model->chip_count);
    added->name = name;
    return added;
}

/* How many values a section shows for a launch. */
static size_t count_values(const kprof_section *section)
{
    return section->item_count +
           KPROF_SUM(i, section->table_count,
                     1 + section->tables[i].row_count * (1 + section->tables[i].column_count)) +
           KPROF_SUM(i, section->roofline_count, 2 + 4 * section->rooflines[i].roof_count);
}

static void count_formula(void *bytes, kprof_item *item, const char *column)
{
    (void)column;
    *(size_t *)bytes += item->expression ? strlen(item->expression) : 0;
}

static kprof_status load_section(loader *load, sqlite3_stmt *row)
{
    kprof_pool *pool = load->model->pool;
    const kprof_json_place file = {.name = load->report->path, .pool = pool, .cleans = !load->report->keeps_text};
    kprof_model_chip *chip = chip_at(load, row, 1);
    const char *definition = (const char *)sqlite3_column_text(row, 2);
    kprof_section section;
    if (!chip)
        return load->report->status;
    if (!definition || kprof_section_from_json(&file, definition, &section) != KPROF_OK)
        return kprof_store_damaged(load->report, "section");
    *KPROF_POOL_ADD(pool, chip->sections, chip->section_count) = section;
    chip->shown_count = chip->section_count;
    const size_t count = 1 + count_values(&section);
    chip->value_count += count;
    load->values += count;
    if (load->values > KPROF_VALUES_MAX)
        return kprof_store_too_much(load->report, KPROF_VALUES_MAX, "values in its sections");
    kprof_section_visit(&section, count_formula, &load->formulas);
    if (load->formulas > KPROF_FORMULA_BYTES)
        return kprof_store_too_much(load->report, KPROF_FORMULA_BYTES, "characters of expressions in its sections");
    return KPROF_OK;
}

static kprof_status load_pass(loader *load, sqlite3_stmt *row)
{
    kprof_model_chip *chip = chip_at(load, row, 0);
    if (!chip)
        return load->report->status;
    if (sqlite3_column_int64(row, 1) != (int64_t)chip->pass_count + 1 || chip->pass_count == KPROF_PASSES_MAX)
        return kprof_store_damaged(load->report, "pass");
    kprof_model_pass *pass = KPROF_POOL_ADD(load->model->pool, chip->passes, chip->pass_count);
    pass->counters = (uint32_t)sqlite3_column_int64(row, 2);
    pass->sm_side = sqlite3_column_int64(row, 3) != 0;
    return KPROF_OK;
}

/* The passes of a metric rise. Checking that also ends the walk through a damaged tree. */
static kprof_status load_schedule(loader *load, sqlite3_stmt *row)
{
    kprof_model_chip *chip = chip_at(load, row, 0);
    int64_t metric = sqlite3_column_int64(row, 1), pass = sqlite3_column_int64(row, 2);
    if (!chip)
        return load->report->status;
    if (metric < 1 || metric > (int64_t)load->model->metric_count || pass < 1 || pass > (int64_t)chip->pass_count)
        return kprof_store_damaged(load->report, "schedule");
    if (!chip->schedule)
        chip->schedule = kprof_pool_calloc(load->model->pool, load->model->metric_count, sizeof *chip->schedule);
    kprof_model_passes *passes = &chip->schedule[metric - 1];
    if (passes->count > 0 && pass <= passes->items[passes->count - 1])
        return kprof_store_damaged(load->report, "schedule");
    *KPROF_POOL_ADD(load->model->pool, passes->items, passes->count) = (uint32_t)pass;
    chip->scheduled++;
    return KPROF_OK;
}

/* "1-3 5" */
static char *passes_to_text(const kprof_model_passes *passes)
{
    kprof_strbuf text = KPROF_STRBUF_INIT;
    for (size_t i = 0, last; i < passes->count; i = last + 1) {
        last = i;
        while (last + 1 < passes->count && passes->items[last + 1] == passes->items[last] + 1)
            last++;
        kprof_strbuf_printf(&text, "%s%u", i ? " " : "", passes->items[i]);
        if (last > i)
            kprof_strbuf_printf(&text, "-%u", passes->items[last]);
    }
    return kprof_strbuf_take(&text);
}

static void name_passes(loader *load)
{
    kprof_model *model = load->model;
    for (size_t i = 0; i < model->chip_count; i++)
        for (size_t k = 0; model->chips[i].schedule && k < model->metric_count; k++) {
            kprof_model_passes *passes = &model->chips[i].schedule[k];
            passes->text = passes->count > 0 ? kprof_pool_keep(model->pool, passes_to_text(passes)) : NULL;
        }
}

/* Cut a text of a row off after `most` bytes, but not within a character. */
static void shorten(kprof_model *model, const char **text, size_t most)
{
    size_t length = most;
    if (strnlen(*text, most + 1) <= most)
        return;
    while (kprof_utf8_continues((*text)[length]))
        length--;
    *text = kprof_pool_keep(model->pool, kprof_strndup(*text, length));
}

/* Names of devices and processes stand above each launch. */
static void shorten_names(kprof_model *model)
{
    for (size_t i = 0; i < model->device_count; i++) {
        shorten(model, &model->devices[i].name, KPROF_NAME_BYTES);
        shorten(model, &model->devices[i].chip, KPROF_NAME_BYTES);
    }
    for (size_t i = 0; i < model->process_count; i++) {
        shorten(model, &model->processes[i].name, KPROF_NAME_BYTES);
        shorten(model, &model->processes[i].host, KPROF_NAME_BYTES);
    }
}

/* Resolve the references between rows of the tables, and list the witnesses among the metrics. */
static kprof_status connect(loader *load)
{
    kprof_model *model = load->model;
    shorten_names(model);
    for (size_t i = 0; i < model->device_count; i++) {
        kprof_model_device *device = &model->devices[i];
        device->chip_index = find_chip(model, device->chip);
        snprintf(device->cc, sizeof device->cc, "%u.%u", device->record.cc_major, device->record.cc_minor);
    }
    for (size_t i = 0; i < model->message_count; i++) {
        int64_t process = model->messages[i].process_id;
        if (process < 1 || process > (int64_t)model->process_count)
            return kprof_store_damaged(load->report, "message");
        model->messages[i].process = (size_t)process - 1;
    }
    for (size_t i = 0; i < model->census_count; i++) {
        const kprof_model_census *row = &model->census[i];
        if (row->process_id < 1 || row->process_id > (int64_t)model->process_count || row->kernel_id < 1 ||
            row->kernel_id > (int64_t)model->kernel_count || row->device_id < 1 ||
            row->device_id > (int64_t)model->device_count || row->launches == 0)
            return kprof_store_damaged(load->report, "census");
    }
    for (size_t i = 0; i < model->metric_count; i++) {
        kprof_model_metric *metric = &model->metrics[i];
        /* Older versions stored CUPTI's unit unchanged. A long text is no unit, and would be printed beside each value.
         */
        kprof_names_add(&model->metric_names, metric->name, i);
        metric->unit = kprof_metric_unit(metric->name, metric->unit);
        shorten(model, &metric->unit, KPROF_UNIT_BYTES);
        if (strcmp(model->metrics[i].kind, KPROF_WITNESS_KIND) != 0)
            continue;
        if (model->witness_count == KPROF_WITNESSES_MAX)
            return kprof_store_too_much(load->report, KPROF_WITNESSES_MAX, "witnesses");
        *KPROF_POOL_ADD(model->pool, model->witnesses, model->witness_count) = i;
    }
    return KPROF_OK;
}

typedef struct load_step {
    int since; /* the first version of the schema that has the table */
    const char *sql;
    kprof_status (*row)(loader *load, sqlite3_stmt *row);
} load_step;

/* After load_rows, since these refer to its tables. */
static const load_step steps[] = {
    {1, "SELECT command_line, working_directory, kprof_version, sets, start_unix_ns FROM run", load_run},
    {1, "SELECT id, chip, definition FROM section ORDER BY id", load_section},
    {2, "SELECT * FROM pass ORDER BY chip, pass", load_pass},
    {2, "SELECT * FROM schedule ORDER BY chip, metric_id, pass", load_schedule},
    {1, "SELECT * FROM seen ORDER BY process_id, kernel_id", load_seen},
    {8, "SELECT id, line, module FROM stack ORDER BY id", load_stack},
};

kprof_status kprof_model_load(kprof_report *report, kprof_model *out)
{
    loader load = {report, out, {0, 0}, 0, 0};
    *out = (kprof_model){.pool = kprof_calloc(1, sizeof *out->pool)};
    out->metric_names.pool = out->pool;
    out->code = kprof_pool_calloc(out->pool, 1, sizeof(struct kprof_code_profiles *));
    for (size_t i = 0; i < LIST_COUNT; i++)
        if (report->version >= lists[i].since)
            load_list(report, out, &lists[i]);
    find_last_rows(report, out);
    if (out->metric_count > KPROF_METRICS_MAX && report->status == KPROF_OK)
        kprof_store_too_much(report, KPROF_METRICS_MAX, "metrics");
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (report->version < steps[i].since)
            continue;
        KPROF_EACH_ROW(rows, report, steps[i].sql)
            steps[i].row(&load, rows.row);
    }
    out->has_nvtx = report->version >= 6 && kprof_store_integer(report, "SELECT EXISTS (SELECT 1 FROM nvtx)");
    if (report->version >= 5) /* a damaged table may have rows without end */
        out->has_other_sets = kprof_store_integer(report, "SELECT count(DISTINCT sets || ' ' || command_line) > 1 FROM "
                                                          "(SELECT sets, command_line FROM source LIMIT 65536)");
    if (report->status == KPROF_OK)
        connect(&load);
    /* Each launch has values that need no counters, so that a report without any would print nothing. */
    if (out->metric_count > 0 && kprof_store_integer(report, "SELECT NOT EXISTS (SELECT 1 FROM value) AND EXISTS "
                                                             "(SELECT 1 FROM launch WHERE measured>0)"))
        kprof_store_damaged(report, "value");
    name_passes(&load);
    if (report->status == KPROF_OK && !out->command_line)
        kprof_store_damaged(report, "run");
    if (report->status != KPROF_OK)
        kprof_model_free(out);
    return report->status;
}

size_t kprof_model_tell_cut_short(const kprof_model *model, const char *path)
{
    const size_t count = KPROF_SUM(i, model->process_count, !model->processes[i].ended && !model->processes[i].goes_on);
    if (count > 0 && path)
        kprof_log(KPROF_LOG_WARNING, "%s: processes cut short: %zu; what they did last is missing", path, count);
    return count;
}

void kprof_model_free(kprof_model *model)
{
    if (model->pool)
        kprof_pool_free(model->pool);
    free(model->pool);
    *model = (kprof_model){0};
}

bool kprof_model_is_multiplexed(const kprof_model_launch *launch)
{
    return strcmp(launch->replay_mode, "multiplex") == 0;
}

bool kprof_model_begins_early(const kprof_model *model)
{
    return kprof_names_find(&model->metric_names, KPROF_RANGE_LEAD) == KPROF_NAMES_NONE;
}

bool kprof_model_is_missing(const kprof_model_launch *launch)
{
    return launch->measured == 0 && *launch->reason && !kprof_model_is_multiplexed(launch);
}

const char *kprof_model_kernel_name(const kprof_model_kernel *kernel, const char *base)
{
    if (base && strcmp(base, "function") == 0)
        return kernel->function;
    if (base && strcmp(base, "mangled") == 0)
        return kernel->mangled;
    return kernel->demangled;
}

kprof_model_passes kprof_model_passes_of(const kprof_model_device *device, const kprof_model *model, size_t metric)
{
    const kprof_model_chip *chip = device->chip_index == SIZE_MAX ? NULL : &model->chips[device->chip_index];
    return chip && chip->schedule ? chip->schedule[metric] : (kprof_model_passes){0};
}

double kprof_model_value(const kprof_model *model, const double *values, const char *name)
{
    const size_t metric = kprof_names_find(&model->metric_names, name);
    return metric == KPROF_NAMES_NONE ? NAN : values[metric];
}

kprof_status kprof_work_charge(kprof_work *work, uint64_t values)
{
    const kprof_report *first = work->reports[0], *second = work->reports[1];
    uint64_t most = 0;
    for (size_t i = 0; i < 2 && work->reports[i]; i++)
        most += KPROF_WORK_BASE + KPROF_WORK_PER_FILE_BYTE * (uint64_t)work->reports[i]->size_bytes;
    if (values <= most && work->done <= most - values) {
        work->done += values;
        return KPROF_OK;
    }
    const kprof_status status =
        kprof_fail(KPROF_BAD_REPORT,
                   "%s%s%s: showing these launches takes more than %lu values, the most that kprof works out for "
                   "%s of this size; choose fewer launches with -k, -s and -c, or read %s with sqlite3",
                   first->path, second ? " and " : "", second ? second->path : "", most, second ? "files" : "a file",
                   second ? "them" : "it");
    return kprof_store_note(work->reports[0], status);
}
