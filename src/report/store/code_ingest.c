/* Stores what was measured of instructions: sums over launches of a kernel and shape, or a profile for each launch. */
#include "report/store/code_ingest.h"
#include "metricset/instruction.h"
#include "report/store/code_sums.h"
#include "report/store/limits.h"
#include "report/store/rows.h"

#include <math.h>
#include <string.h>

#define OFFSET_MAX ((double)(1u << 30)) /* bytes in a function */

#define NOT_READ "the run was cut short before kprof read the code"

typedef struct kprof_known_code {
    uint64_t crc;
    int64_t row;
} known_code;

void kprof_report_keep_launches_apart(kprof_report *report)
{
    report->source_per_launch = true;
}

/* Remember which file has a cubin. The first process that has kept it counts. */
static void keep_file(kprof_report *report, int64_t row, const char *file)
{
    for (size_t i = 0; i < report->code_count; i++)
        if (report->codes[i].id == row)
            return;
    *KPROF_POOL_ADD(&report->pool, report->codes, report->code_count) =
        (kprof_kept_code){row, kprof_pool_strdup(&report->pool, file)};
}

static known_code *find_code(const kprof_code_ingest *ingest, uint64_t crc)
{
    for (size_t i = ingest->code_count; i > 0; i--)
        if (ingest->codes[i - 1].crc == crc)
            return &ingest->codes[i - 1];
    return NULL;
}

/* The row of a cubin, which all processes that load it share. `state`: of a new one. */
static int64_t code_row(kprof_report *report, const kprof_code_record *record, const char *state)
{
    char key[48];
    snprintf(key, sizeof key, "%lu %lu", record->crc, record->bytes);
    const size_t known = kprof_names_find(&report->code_rows, key);
    if (known != KPROF_NAMES_NONE)
        return (int64_t)known;
    const int64_t row =
        kprof_store_add(report, KPROF_SQL_ADD_CODE, "iiss", (int64_t)record->crc, (int64_t)record->bytes, state, state);
    if (report->status == KPROF_OK)
        kprof_names_keep(&report->code_rows, key, (size_t)row);
    return row;
}

static kprof_status add_code(kprof_code_ingest *ingest, kprof_report *report, const kprof_code_record *record,
                             const char *state)
{
    const int64_t row = code_row(report, record, state);
    if (report->status != KPROF_OK)
        return report->status;
    *KPROF_POOL_ADD(ingest->pool, ingest->codes, ingest->code_count) = (known_code){record->crc, row};
    if (record->file && *record->file)
        keep_file(report, row, record->file);
    return KPROF_OK;
}

kprof_status kprof_code_ingest_code(kprof_code_ingest *ingest, const kprof_code_place *place,
                                    const kprof_code_record *record)
{
    if (find_code(ingest, record->crc))
        return kprof_store_bad_record("it describes a cubin twice:", record->crc);
    const bool is_kept = record->file && *record->file;
    return add_code(ingest, place->report, record,
                    is_kept ? NOT_READ : "the process could not keep its code for kprof");
}

/* The row of the function that a record is about; 0 after a failure. */
static int64_t function_row(kprof_code_ingest *ingest, kprof_report *report, const kprof_instructions_record *record)
{
    if (!find_code(ingest, record->crc) &&
        add_code(ingest, report, &(kprof_code_record){.crc = record->crc}, "CUPTI does not tell its code") != KPROF_OK)
        return 0;
    const int64_t code = find_code(ingest, record->crc)->row;
    const int64_t row = kprof_store_find(report, KPROF_SQL_FIND_FUNCTION, "is", code, record->function);
    if (row > 0)
        return row;
    KPROF_AUTO_FREE char *demangled = kprof_demangle(or_empty(record->function));
    return kprof_store_add(report, KPROF_SQL_ADD_FUNCTION, "iss", code, record->function, demangled);
}

/* Find or make the profile of a kernel, device and shape, or of the launch alone: its records need not follow each
 * other, as batches are sampled before they are counted. */
static void add_profile(kprof_code_ingest *ingest, const kprof_code_place *place, sqlite3_stmt *launch)
{
    kprof_report *report = place->report;
    char own[32];
    snprintf(own, sizeof own, "%ld", ingest->launch);
    const char *text = report->source_per_launch ? own : kprof_store_column(launch, 2);
    kprof_pool_free(ingest->of_launch);
    ingest->reason = kprof_pool_strdup(ingest->of_launch, kprof_store_column(launch, 3));
    const size_t number = kprof_names_find(&ingest->profiles, text);
    ingest->profile = number + 1;
    if (number != KPROF_NAMES_NONE)
        return;
    kprof_known_profile *added = KPROF_POOL_ADD(ingest->pool, ingest->known_profiles, ingest->profile_count);
    added->row =
        kprof_store_add(report, KPROF_SQL_ADD_PROFILE, "iiii", place->process, (int64_t)sqlite3_column_int64(launch, 0),
                        (int64_t)sqlite3_column_int64(launch, 1), ingest->launch);
    ingest->profile_count -= report->status != KPROF_OK;
    if (report->status != KPROF_OK)
        return;
    ingest->profile = ingest->profile_count;
    kprof_names_keep(&ingest->profiles, text, ingest->profile - 1);
}

static kprof_known_profile *profile_of(const kprof_code_ingest *ingest)
{
    return &ingest->known_profiles[ingest->profile - 1];
}

/* Find the launch that a record is about, and its profile. */
static kprof_status find_launch(kprof_code_ingest *ingest, const kprof_code_place *place, uint64_t position)
{
    kprof_report *report = place->report;
    if (ingest->profile > 0 && ingest->position == position)
        return KPROF_OK;
    ingest->profile = 0;
    ingest->told[0] = ingest->told[1] = false;
    ingest->position = position;
    ingest->launch = kprof_store_find_launch(report, place->process, position);
    if (ingest->launch < 0 && report->status == KPROF_OK)
        return kprof_store_bad_record("it tells of instructions of an unknown launch,", position);
    sqlite3_stmt *launch = kprof_store_statement(report, KPROF_SQL_READ_PROFILED_LAUNCH);
    sqlite3_bind_int64(launch, 1, ingest->launch);
    if (kprof_store_next(report, launch))
        add_profile(ingest, place, launch);
    else if (report->status == KPROF_OK)
        kprof_store_damaged(report, "launch");
    sqlite3_reset(launch);
    if (report->status == KPROF_OK)
        kprof_store_write(report, KPROF_SQL_ADD_LAUNCH_PROFILE, "ii", ingest->launch, profile_of(ingest)->row);
    return report->status;
}

/* Choose what the profile tells from now on of what is missing; NULL: what it has told. The reason of a launch that was
 * not to give any values counts only until another one gives some, or tells why it cannot. */
static const char *choose_reason(kprof_code_ingest *ingest, const kprof_instructions_record *record)
{
    kprof_known_profile *profile = profile_of(ingest);
    const size_t kind = record->sampled != 0;
    const char *reason = or_empty(record->reason);
    const bool lacked = profile->lacks[kind];
    if (record->name_count > 0) {
        profile->has[kind] = true;
        profile->lacks[kind] = false;
        return lacked ? "" : NULL;
    }
    const bool is_of_launch = strcmp(reason, KPROF_IN_ANOTHER) == 0 || strcmp(reason, ingest->reason) == 0;
    if (!*reason || (is_of_launch && (profile->has[kind] || profile->fails[0] || profile->fails[1])))
        return NULL;
    profile->lacks[0] = profile->lacks[1] = false;
    profile->lacks[kind] = is_of_launch;
    profile->fails[kind] = profile->fails[kind] || !is_of_launch;
    return reason;
}

/* Give the metrics of a record their rows. */
static void find_metrics(kprof_known_names *known, kprof_report *report, const kprof_instructions_record *record)
{
    if (known->rows && known->names.count == record->name_count &&
        KPROF_ALL(i, record->name_count, strcmp(known->names.items[i], or_empty(record->names[i])) == 0))
        return;
    kprof_pool_free(known->pool);
    known->names = (kprof_strlist)KPROF_STRLIST_INIT;
    known->rows = kprof_pool_calloc(known->pool, (size_t)record->name_count + 1, sizeof *known->rows);
    for (size_t i = 0; i < record->name_count; i++) {
        const char *name = or_empty(record->names[i]);
        const kprof_instruction_metric *told = kprof_instruction_metric_find(name);
        const kprof_model_metric row = {name, told ? told->unit : "", told ? told->help : "", KPROF_INSTRUCTION_KIND};
        *KPROF_POOL_ADD(known->pool, known->names.items, known->names.count) = kprof_pool_strdup(known->pool, name);
        known->rows[i] = kprof_instruction_is_of_launch(name) ? 0 : kprof_store_metric(report, &row);
    }
}

static bool is_row(const double *values, size_t count)
{
    bool fits = values[0] >= 0 && values[0] <= OFFSET_MAX && values[0] == floor(values[0]);
    for (size_t i = 1; i < count && fits; i++)
        fits = values[i] >= 0 && values[i] <= KPROF_COUNTED_MAX;
    return fits;
}

static kprof_status check_values(const kprof_instructions_record *record)
{
    const size_t columns = 1 + (size_t)record->name_count;
    if (record->value_count % columns != 0 || (record->value_count > 0 && record->name_count == 0))
        return kprof_store_bad_record("it has a wrong number of values of instructions,", record->launch);
    for (size_t i = 0; i < record->value_count; i += columns)
        if (!is_row(record->values + i, columns))
            return kprof_store_bad_record("it has impossible values of instructions; launch", record->launch);
    return KPROF_OK;
}

kprof_status kprof_code_ingest_instructions(kprof_code_ingest *ingest, const kprof_code_place *place,
                                            const kprof_instructions_record *record)
{
    const size_t kind = record->sampled != 0, columns = 1 + (size_t)record->name_count;
    kprof_known_names *known = &ingest->known[kind];
    kprof_report *report = place->report;
    kprof_status status = check_values(record);
    KPROF_THEN(status, find_launch(ingest, place, record->launch));
    if (status != KPROF_OK)
        return status;
    const bool is_first = record->name_count > 0 && !ingest->told[kind];
    ingest->told[kind] = ingest->told[kind] || is_first;
    const int64_t profile = profile_of(ingest)->row;
    const char *reason = choose_reason(ingest, record);
    kprof_store_write(report, KPROF_SQL_FILL_PROFILE, "iiiiisi", profile, (int64_t)(is_first && !kind),
                      (int64_t)(is_first && kind), (int64_t)record->period_cycles, (int64_t)record->dropped, reason,
                      (int64_t)(reason != NULL));
    if (record->name_count == 0)
        return report->status;
    find_metrics(known, report, record);
    for (size_t i = 0; i < known->names.count; i++)
        if (known->rows[i] > 0)
            kprof_store_write(report, KPROF_SQL_ADD_PROFILE_METRIC, "ii", profile, known->rows[i]);
    const int64_t function = function_row(ingest, report, record);
    if (report->status == KPROF_OK)
        kprof_code_sums_add(report, &(kprof_code_values){profile, function, known->rows, known->names.count,
                                                         record->values, record->value_count / columns});
    return report->status;
}
