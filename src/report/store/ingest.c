/* Stores the records of one spool: maps the process' own kernel and device numbers to rows and computes the values of
 * each launch. A record is stored whole or not at all. */
#include "core/bisect.h"
#include "core/names.h"
#include "report/store/code_ingest.h"
#include "report/store/derived.h"
#include "report/store/launch_metrics.h"
#include "report/store/rows.h"
#include "report/store/stack_ingest.h"
#include "report/store/timeline_ingest.h"
#include "report/store/trace_ingest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A kernel or device that the process has named, under its own number for it. */
typedef struct known_kernel {
    int64_t row;
    kprof_kernel_record record; /* without its strings */
    uint64_t seen_before;       /* launches before those that are stored */
} known_kernel;

typedef struct known_device {
    int64_t row;
    kprof_device_record record; /* without its strings; its attributes are `attributes` */
    char *chip;
    double *attributes;
} known_device;

/* The metric rows of a chip's values, in the order of the values, and then those of the spreads of its witnesses. */
typedef struct known_metrics {
    char *chip;
    int64_t *rows; /* [count + witness_count] */
    size_t count, witness_count;
} known_metrics;

/* The values of the launch being stored, by metric row. */
typedef struct value_table {
    double *values;
    bool *present;
    size_t size; /* highest row + 1 */
    kprof_names names;
    bool measured; /* the launch has values from counters */
} value_table;

struct kprof_ingest {
    kprof_pool pool;
    kprof_report *report;
    int64_t process;
    known_kernel *kernels;
    size_t kernel_count;
    known_device *devices;
    size_t device_count;
    known_metrics *metrics;
    size_t metrics_count;
    kprof_code_ingest code;
    kprof_stack_ingest stacks;
    kprof_trace_ingest trace;
    kprof_armed_record armed;  /* as the process was armed last */
    kprof_armed_record chosen; /* launches of this plan, and from this turn on, are stored */
    int64_t *census;           /* [census_count]: the row of each of the process' own */
    size_t census_count;
    value_table table;
    bool table_is_current;                       /* no metric was added since it was filled */
    int64_t launch_rows[KPROF_LAUNCH_VALUE_MAX]; /* NO_ROW: nobody asked for this one */
};
#define NO_ROW (-1)

static const char *const replay_modes[] = {"none", "multiplex", "batch", "range"};
static const char *const log_levels[] = {"error", "warning", "info", "debug"};

kprof_ingest *kprof_ingest_new(kprof_report *report)
{
    kprof_ingest *ingest = kprof_calloc(1, sizeof *ingest);
    ingest->report = report;
    ingest->code.pool = ingest->code.profiles.pool = ingest->stacks.pool = ingest->trace.pool = &ingest->pool;
    ingest->code.of_launch = kprof_pool_child(&ingest->pool);
    for (size_t i = 0; i < 2; i++)
        ingest->code.known[i].pool = kprof_pool_child(&ingest->pool);
    return ingest;
}

static void table_free(value_table *table)
{
    KPROF_FREE(table->values, table->present);
    kprof_names_free(&table->names);
    memset(table, 0, sizeof *table);
}

void kprof_ingest_free(kprof_ingest *ingest)
{
    if (!ingest)
        return;
    kprof_stack_ingest_close(&ingest->stacks);
    kprof_pool_free(&ingest->pool);
    table_free(&ingest->table);
    free(ingest);
}

static void store_process(kprof_ingest *ingest, const kprof_process_record *process)
{
    const char *executable = or_empty(process->executable);
    const char *slash = strrchr(executable, '/');
    kprof_model_process row = {.record = *process, .name = slash ? slash + 1 : executable};
    row.wait_status = row.launches = row.matched = row.profiled = -1;
    ingest->process = kprof_rows_insert(ingest->report, KPROF_ROWS_PROCESS, &row, -1);
}

static known_device *find_device(const kprof_ingest *ingest, uint32_t number)
{
    return KPROF_FIRST(it, ingest->devices, ingest->device_count, it->record.device == number);
}

static kprof_status store_device(kprof_ingest *ingest, const kprof_device_record *device)
{
    if (find_device(ingest, device->device))
        return kprof_store_bad_record("it describes a device twice:", device->device);
    known_device *known = KPROF_POOL_ADD(&ingest->pool, ingest->devices, ingest->device_count);
    /* All processes that use a device share its row. */
    known->row = kprof_store_find(ingest->report, KPROF_SQL_FIND_DEVICE, "siss", device->uuid, (int64_t)device->device,
                                  device->name, device->chip);
    if (known->row == 0)
        known->row = kprof_rows_insert(ingest->report, KPROF_ROWS_DEVICE, &(kprof_model_device){.record = *device}, -1);
    kprof_store_write(ingest->report, KPROF_SQL_ADD_PROCESS_DEVICE, "ii", ingest->process, known->row);
    const size_t attribute_bytes = device->attribute_count * sizeof *known->attributes;
    known->chip = kprof_pool_strdup(&ingest->pool, or_empty(device->chip));
    known->attributes = kprof_pool_calloc(&ingest->pool, 1, attribute_bytes + 1);
    if (attribute_bytes > 0)
        memcpy(known->attributes, device->attributes, attribute_bytes);
    known->record = *device;
    known->record.attributes = known->attributes;
    known->record.name = known->record.chip = known->record.uuid = NULL;
    ingest->device_count -= ingest->report->status != KPROF_OK;
    return ingest->report->status;
}

static known_metrics *find_metrics(const kprof_ingest *ingest, const char *chip)
{
    return KPROF_FIRST(it, ingest->metrics, ingest->metrics_count, strcmp(it->chip, chip) == 0);
}

static kprof_status store_metrics(kprof_ingest *ingest, const kprof_metrics_record *metrics)
{
    if (find_metrics(ingest, or_empty(metrics->chip)) && ingest->armed.turn > 0)
        return KPROF_OK; /* the process has this plan once more */
    if (find_metrics(ingest, or_empty(metrics->chip)))
        return kprof_store_bad_record("it names the metrics of a chip twice; count", metrics->count);
    known_metrics *known = KPROF_POOL_ADD(&ingest->pool, ingest->metrics, ingest->metrics_count);
    ingest->table_is_current = false;
    known->chip = kprof_pool_strdup(&ingest->pool, or_empty(metrics->chip));
    known->rows =
        kprof_pool_calloc(&ingest->pool, (size_t)metrics->count + metrics->witness_count + 1, sizeof *known->rows);
    known->count = metrics->count;
    known->witness_count = metrics->witness_count;
    for (size_t i = 0; i < known->count; i++)
        known->rows[i] =
            kprof_store_metric(ingest->report, &(kprof_model_metric){metrics->names[i], "", "", "hardware"});
    for (size_t i = 0; i < known->witness_count; i++)
        known->rows[known->count + i] = kprof_store_witness(ingest->report, metrics->witnesses[i]);
    ingest->metrics_count -= ingest->report->status != KPROF_OK;
    return ingest->report->status;
}

/* Return the index at which a kernel stands, or belongs, in the array, which is sorted by number. */
static size_t kernel_place(const kprof_ingest *ingest, uint32_t number)
{
    size_t place;
    KPROF_BISECT(place, ingest->kernel_count, ingest->kernels[middle].record.kernel < number)
    return place;
}

static known_kernel *find_kernel(const kprof_ingest *ingest, uint32_t number)
{
    size_t place = kernel_place(ingest, number);
    return place < ingest->kernel_count && ingest->kernels[place].record.kernel == number ? &ingest->kernels[place]
                                                                                          : NULL;
}

/* Modules may hold kernels with the same name but different code, so a row is a name with its attributes. */
static int64_t kernel_row(kprof_report *report, const kprof_kernel_record *k)
{
    kprof_model_kernel kernel = {.record = *k};
    const int64_t row = kprof_rows_find_kernel(report, &kernel);
    if (row)
        return row;
    KPROF_AUTO_FREE char *demangled = kprof_demangle(or_empty(k->mangled));
    KPROF_AUTO_FREE char *function = kprof_name_function(or_empty(k->mangled));
    kernel.demangled = demangled;
    kernel.function = function;
    return kprof_rows_insert(report, KPROF_ROWS_KERNEL, &kernel, -1);
}

static kprof_status store_kernel(kprof_ingest *ingest, const kprof_kernel_record *kernel)
{
    known_kernel known = {0, *kernel, 0};
    known.record.mangled = NULL;
    if (find_kernel(ingest, kernel->kernel))
        return kprof_store_bad_record("it describes a kernel twice:", kernel->kernel);
    kprof_stack_ingest_kernel(&ingest->stacks, or_empty(kernel->mangled));
    known.row = kernel_row(ingest->report, kernel);
    if (ingest->report->status != KPROF_OK)
        return ingest->report->status;
    const size_t place = kernel_place(ingest, kernel->kernel), behind = ingest->kernel_count - place;
    KPROF_POOL_ADD(&ingest->pool, ingest->kernels, ingest->kernel_count);
    memmove(&ingest->kernels[place + 1], &ingest->kernels[place], behind * sizeof *ingest->kernels);
    ingest->kernels[place] = known;
    return KPROF_OK;
}

static kprof_status find_launch_rows(kprof_ingest *ingest)
{
    static const kprof_launch_record launch;
    static const kprof_kernel_record kernel;
    static const kprof_device_record device;
    kprof_launch_value values[KPROF_LAUNCH_VALUE_MAX];
    size_t count = kprof_launch_values(&(kprof_launch_facts){&launch, &kernel, &device, 0}, values);
    for (size_t i = 0; i < count; i++) {
        size_t row = kprof_names_find(&ingest->table.names, values[i].name);
        const kprof_launch_metric *metric = row == KPROF_NAMES_NONE ? kprof_launch_metric_find(values[i].name) : NULL;
        if (row == KPROF_NAMES_NONE && !(metric && metric->on_request))
            return kprof_fail(KPROF_INTERNAL, "%s: metric %s has no row", ingest->report->path, values[i].name);
        ingest->launch_rows[i] = row == KPROF_NAMES_NONE ? NO_ROW : (int64_t)row;
    }
    return KPROF_OK;
}

/* Make room for a value of every metric row that there is now. */
static kprof_status prepare_table(kprof_ingest *ingest)
{
    if (ingest->table_is_current)
        return KPROF_OK;
    kprof_report *report = ingest->report;
    value_table *table = &ingest->table;
    table_free(table);
    table->size = (size_t)kprof_store_integer(report, "SELECT max(id)+1 FROM metric");
    table->values = kprof_calloc(table->size + 1, sizeof *table->values);
    table->present = kprof_calloc(table->size + 1, sizeof *table->present);
    KPROF_EACH_ROW(rows, report, "SELECT id, name FROM metric")
        kprof_names_keep(&table->names, kprof_store_column(rows.row, 1), (size_t)sqlite3_column_int64(rows.row, 0));
    kprof_status status = report->status;
    KPROF_THEN(status, find_launch_rows(ingest));
    ingest->table_is_current = status == KPROF_OK;
    return status;
}

static void table_put(value_table *table, int64_t row, double value)
{
    table->values[row] = value;
    table->present[row] = true;
}

static double look_up(void *user, const char *name)
{
    const value_table *table = user;
    size_t row = kprof_names_find(&table->names, name);
    return row == KPROF_NAMES_NONE || !table->present[row] ? NAN : table->values[row];
}

/* A launch that was not measured gets no rows for derived values, except those that depend on the launch alone. */
static void put_derived(void *user, int64_t row, double value)
{
    value_table *table = user;
    if (table->measured || !isnan(value))
        table_put(table, row, value);
}

static void fill_table(kprof_ingest *ingest, const kprof_launch_facts *facts, const known_device *device)
{
    value_table *table = &ingest->table;
    memset(table->present, 0, table->size * sizeof *table->present);
    kprof_launch_value values[KPROF_LAUNCH_VALUE_MAX];
    size_t count = kprof_launch_values(facts, values);
    for (size_t i = 0; i < count; i++)
        if (ingest->launch_rows[i] != NO_ROW)
            table_put(table, ingest->launch_rows[i], values[i].value);
    const known_metrics *metrics = find_metrics(ingest, device->chip);
    table->measured = facts->launch->value_count > 0;
    for (size_t i = 0; i < facts->launch->value_count; i++)
        table_put(table, metrics->rows[i], facts->launch->values[i]);
    for (size_t i = 0; table->measured && i < metrics->witness_count; i++)
        table_put(table, metrics->rows[metrics->count + i],
                  facts->launch->witness_count ? facts->launch->witness_spreads_pct[i] : NAN);
    kprof_derived_sink sink = {look_up, put_derived, table};
    kprof_derived_evaluate(ingest->report, device->chip, &sink);
}

/* SQLite stores NaN as NULL: asked for, but not measured. */
static void store_values(kprof_ingest *ingest, int64_t launch)
{
    const value_table *table = &ingest->table;
    sqlite3_stmt *insert = kprof_store_statement(ingest->report, KPROF_SQL_ADD_VALUE);
    for (size_t row = 0; row < table->size; row++) {
        if (table->present[row])
            kprof_store_run(ingest->report, insert, "iid", launch, (int64_t)row, table->values[row]);
    }
}

static kprof_status check_launch(const kprof_ingest *ingest, const kprof_launch_record *launch)
{
    const known_device *device = find_device(ingest, launch->device);
    if (!device)
        return kprof_store_bad_record("a launch is on an unknown device,", launch->device);
    if (!find_kernel(ingest, launch->kernel))
        return kprof_store_bad_record("a launch is of an unknown kernel,", launch->kernel);
    const known_metrics *metrics = find_metrics(ingest, device->chip);
    if (!kprof_stack_ingest_knows(&ingest->stacks, launch))
        return kprof_store_bad_record("a launch has an unknown call stack,", launch->stack);
    if (launch->value_count && (!metrics || metrics->count != launch->value_count))
        return kprof_store_bad_record("a launch has a wrong number of values,", launch->value_count);
    if (launch->witness_count && (!metrics || metrics->witness_count != launch->witness_count))
        return kprof_store_bad_record("a launch has a wrong number of witnesses,", launch->witness_count);
    return KPROF_OK;
}

static kprof_status store_launch(kprof_ingest *ingest, const kprof_launch_record *launch)
{
    kprof_status status = check_launch(ingest, launch);
    KPROF_THEN(status, prepare_table(ingest));
    if (status != KPROF_OK)
        return status;
    const known_device *device = find_device(ingest, launch->device);
    const known_kernel *kernel = find_kernel(ingest, launch->kernel);
    fill_table(ingest, &(kprof_launch_facts){launch, &kernel->record, &device->record, 0}, device);
    kprof_report *report = ingest->report;
    const int64_t id = report->next_launch;
    const size_t measured = KPROF_SUM(i, launch->value_count, !isnan(launch->values[i]));
    const unsigned mode = launch->mode;
    const kprof_launch_row row = {
        .record = *launch,
        .process_id = ingest->process,
        .kernel_id = kernel->row,
        .device_id = device->row,
        .replay_mode = replay_modes[mode < COUNT_OF(replay_modes) ? mode : KPROF_REPLAY_NONE],
        .measured = measured,
    };
    kprof_rows_insert(report, KPROF_ROWS_LAUNCH, &row, id);
    if (launch->graph_node)
        kprof_store_write(report, KPROF_SQL_ADD_GRAPH_NODE, "ii", id, (int64_t)launch->graph_node);
    if (launch->nvtx && *launch->nvtx)
        kprof_store_write(report, KPROF_SQL_ADD_NVTX, "is", id, launch->nvtx);
    kprof_stack_ingest_launch(&ingest->stacks, report, launch, id);
    store_values(ingest, id);
    report->next_launch += report->status == KPROF_OK;
    return report->status;
}

static kprof_status store_seen(kprof_ingest *ingest, const kprof_seen_record *seen)
{
    known_kernel *kernel = find_kernel(ingest, seen->kernel);
    if (!kernel)
        return kprof_store_bad_record("it counts an unknown kernel,", seen->kernel);
    if (ingest->armed.turn < ingest->chosen.turn)
        kernel->seen_before = seen->launches;
    if (seen->launches > kernel->seen_before)
        kprof_store_write(ingest->report, KPROF_SQL_SET_SEEN, "iii", ingest->process, kernel->row,
                          (int64_t)(seen->launches - kernel->seen_before));
    return KPROF_OK;
}

static void store_message(kprof_ingest *ingest, const kprof_message_record *message)
{
    const unsigned level = message->level;
    const kprof_model_message row = {
        .process_id = ingest->process,
        .level = log_levels[level < COUNT_OF(log_levels) ? level : KPROF_LOG_INFO],
        .status = kprof_status_name(message->status),
        .text = message->text,
    };
    kprof_rows_insert(ingest->report, KPROF_ROWS_MESSAGE, &row, -1);
}

void kprof_ingest_choose(kprof_ingest *ingest, uint32_t plan, uint32_t first_turn)
{
    ingest->chosen = (kprof_armed_record){first_turn, plan};
}

/* Every type stands here, so that the compiler tells of a new one: what belongs to a launch is left out with it. */
static bool is_left_out(const kprof_ingest *ingest, kprof_record_type type)
{
    const bool is_other_plan = ingest->armed.plan != ingest->chosen.plan;
    const bool is_early = ingest->armed.turn < ingest->chosen.turn;
    switch (type) {
    case KPROF_RECORD_METRICS:
        return is_other_plan;
    case KPROF_RECORD_LAUNCH:
    case KPROF_RECORD_INSTRUCTIONS:
    case KPROF_RECORD_TIMELINE:
        return is_other_plan || is_early;
    case KPROF_RECORD_MESSAGE:
        return is_early;
    case KPROF_RECORD_PROCESS:
    case KPROF_RECORD_DEVICE:
    case KPROF_RECORD_KERNEL:
    case KPROF_RECORD_SEEN:
    case KPROF_RECORD_END:
    case KPROF_RECORD_PROGRESS:
    case KPROF_RECORD_CODE:
    case KPROF_RECORD_FRAME:
    case KPROF_RECORD_STACK:
    case KPROF_RECORD_TRACE:
    case KPROF_RECORD_NAME:
    case KPROF_RECORD_ACTIVITIES:
    case KPROF_RECORD_TRACED:
    case KPROF_RECORD_ARMED:
    case KPROF_RECORD_CENSUS:
        return false;
    }
    return false;
}

/* A row is written again as it grows. */
static kprof_status store_census(kprof_ingest *ingest, const kprof_census_record *census)
{
    const known_kernel *kernel = find_kernel(ingest, census->kernel);
    const known_device *device = find_device(ingest, census->device);
    if (!kernel || !device)
        return kprof_store_bad_record("its census has an unknown kernel or device, row", census->row);
    if (census->row == 0 || census->row > ingest->census_count + 1)
        return kprof_store_bad_record("its census has a row out of order,", census->row);
    if (census->launches == 0)
        return kprof_store_bad_record("its census has a row without launches,", census->row);
    if (census->row <= ingest->census_count) {
        kprof_store_write(ingest->report, KPROF_SQL_SET_CENSUS, "iiiii", ingest->census[census->row - 1],
                          (int64_t)census->launches, (int64_t)census->total_ns, (int64_t)census->shortest_ns,
                          (int64_t)census->longest_ns);
        return KPROF_OK;
    }
    const kprof_model_census row = {
        .record = *census, .process_id = ingest->process, .kernel_id = kernel->row, .device_id = device->row};
    const bool is_early = ingest->armed.turn < ingest->chosen.turn; /* its place is kept, as rows have numbers */
    const int64_t id = is_early ? -1 : kprof_rows_insert(ingest->report, KPROF_ROWS_CENSUS, &row, -1);
    if (ingest->report->status == KPROF_OK)
        *KPROF_POOL_ADD(&ingest->pool, ingest->census, ingest->census_count) = id;
    return KPROF_OK;
}

static kprof_status store_record(kprof_ingest *ingest, const kprof_record *record)
{
    const kprof_code_place place = {ingest->report, ingest->process};
    if (is_left_out(ingest, record->type))
        return KPROF_OK;
    switch (record->type) {
    case KPROF_RECORD_PROCESS:
        store_process(ingest, &record->process);
        return KPROF_OK;
    case KPROF_RECORD_DEVICE:
        return store_device(ingest, &record->device);
    case KPROF_RECORD_METRICS:
        return store_metrics(ingest, &record->metrics);
    case KPROF_RECORD_KERNEL:
        return store_kernel(ingest, &record->kernel);
    case KPROF_RECORD_LAUNCH:
        return store_launch(ingest, &record->launch);
    case KPROF_RECORD_SEEN:
        return store_seen(ingest, &record->seen);
    case KPROF_RECORD_MESSAGE:
        store_message(ingest, &record->message);
        return KPROF_OK;
    case KPROF_RECORD_END:
        kprof_store_write(ingest->report, KPROF_SQL_END_PROCESS, "iiii", ingest->process, (int64_t)record->end.launches,
                          (int64_t)record->end.matched, (int64_t)record->end.profiled);
        return KPROF_OK;
    case KPROF_RECORD_CODE:
        return kprof_code_ingest_code(&ingest->code, &place, &record->code);
    case KPROF_RECORD_INSTRUCTIONS:
        return kprof_code_ingest_instructions(&ingest->code, &place, &record->instructions);
    case KPROF_RECORD_FRAME:
        return kprof_stack_ingest_frame(&ingest->stacks, &record->frame);
    case KPROF_RECORD_STACK:
        return kprof_stack_ingest_stack(&ingest->stacks, ingest->report, &record->stack);
    case KPROF_RECORD_TRACE:
    case KPROF_RECORD_NAME:
    case KPROF_RECORD_ACTIVITIES:
    case KPROF_RECORD_TRACED:
        ingest->trace.report = ingest->report;
        ingest->trace.process = ingest->process;
        ingest->trace.stacks = &ingest->stacks;
        return kprof_trace_ingest_record(&ingest->trace, record);
    case KPROF_RECORD_ARMED:
        ingest->armed = record->armed;
        return KPROF_OK;
    case KPROF_RECORD_CENSUS:
        return store_census(ingest, &record->census);
    case KPROF_RECORD_TIMELINE:
        return kprof_timeline_ingest(ingest->report, ingest->process, &record->timeline);
    case KPROF_RECORD_PROGRESS:
        return KPROF_OK;
    }
    return KPROF_OK;
}

kprof_status kprof_ingest_record(kprof_ingest *ingest, const kprof_record *record)
{
    if (ingest->report->broken)
        return KPROF_OUTPUT;
    if (!ingest->process != (record->type == KPROF_RECORD_PROCESS))
        return kprof_store_bad_record("its first record, and no other, is to be that of the process; found type",
                                      record->type);
    kprof_store_write(ingest->report, KPROF_SQL_SAVEPOINT, "");
    if (ingest->report->status == KPROF_OK)
        kprof_store_note(ingest->report, store_record(ingest, record));
    return kprof_store_release(ingest->report);
}
