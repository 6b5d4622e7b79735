/* Reads code profiles: which there are, and the instructions of one with their values, lines and texts. */
#include "report/model/code.h"
#include "core/bisect.h"
#include "core/clean.h"
#include "report/store/limits.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define KPROF_CODE_VERSION 7                  /* of the schema: the first that has these tables */
#define KPROF_PTX_VERSION  9                  /* that has the lines of PTX */
#define FRAMES_MAX         256                /* functions inlined into each other */
#define REASONS_MAX        128                /* a GPU has 20 */
#define OFFSET_MAX         (INT64_C(1) << 40) /* bytes of a function */
/* An instruction costs as much work as WORK_OF_INSTRUCTION stored values, and one PART_OF_METRICS-th of those that it
 * could have. */
#define WORK_OF_INSTRUCTION 4
#define PART_OF_METRICS     8
#define LOADED_VALUES_MAX   ((size_t)32 << 20) /* of one profile: 256 MB */
#define CACHED_VALUES       ((size_t)16 << 20)

struct kprof_code_launch {
    int64_t launch;
    size_t profile;
};

struct kprof_code_cache {
    kprof_loaded_code **items; /* [count], the one asked for last at the end */
    size_t count;
    size_t values;   /* of all items */
    kprof_work work; /* of all that was read */
};

/* The place of an id among rows that begin with rising ids; NULL: no row has it. */
static void *find_id(const void *rows, size_t count, size_t size, int64_t id)
{
    size_t low;
    KPROF_BISECT(low, count, *(const int64_t *)((const char *)rows + middle * size) < id)
    const int64_t *found = low < count ? (const int64_t *)((const char *)rows + low * size) : NULL;
    return found && *found == id ? (void *)found : NULL;
}
#define FIND_ID(rows, count, id) find_id(rows, count, sizeof *(rows), id)

/* Take a text from the row at hand; the pool has it then. */
static char *text_of(const kprof_row_source *from, int column)
{
    return kprof_pool_keep(from->pool, kprof_store_text(from->report, from->columns, column));
}

static char *optional_text(const kprof_row_source *from, int column)
{
    return sqlite3_column_type(from->columns, column) == SQLITE_NULL ? NULL : text_of(from, column);
}

static kprof_status read_file(kprof_code_profiles *all, sqlite3_stmt *row)
{
    const int64_t id = sqlite3_column_int64(row, 0);
    if (all->file_count > 0 && id <= all->files[all->file_count - 1].id)
        return kprof_store_damaged(all->report, "code_file");
    const kprof_row_source from = {all->report, row, all->model->pool};
    kprof_code_file *file = KPROF_POOL_ADD(from.pool, all->files, all->file_count);
    *file = (kprof_code_file){.id = id,
                              .path = text_of(&from, 1),
                              .bytes = sqlite3_column_type(row, 2) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 2),
                              .hash = optional_text(&from, 3),
                              .has_content = sqlite3_column_int(row, 4) != 0};
    file->home = kprof_own_code_home(file->path);
    return KPROF_OK;
}

KPROF_BY_BOTH(by_last_part, kprof_code_file *const, strcmp((*a)->name, (*b)->name), strcmp((*a)->path, (*b)->path))

/* The end of what is longer than any file's name. */
static const char *short_name(const char *name)
{
    const size_t length = strlen(name);
    name += length > NAME_MAX ? length - NAME_MAX : 0;
    while (kprof_utf8_continues(*name))
        name++;
    return name;
}

/* Merged reports may have a path twice, with other texts: that takes no longer name. */
static void name_files(kprof_code_profiles *all)
{
    KPROF_AUTO_FREE kprof_code_file **sorted = kprof_calloc(all->file_count + 1, sizeof *sorted);
    for (size_t i = 0; i < all->file_count; i++) {
        sorted[i] = &all->files[i];
        all->files[i].name = kprof_path_last_part(all->files[i].path);
    }
    qsort(sorted, all->file_count, sizeof *sorted, by_last_part);
    for (size_t first = 0, end; first < all->file_count; first = end) {
        end = first + 1;
        while (end < all->file_count && strcmp(sorted[first]->name, sorted[end]->name) == 0)
            end++;
        const bool is_shared = strcmp(sorted[first]->path, sorted[end - 1]->path) != 0;
        for (size_t i = end; i-- > first && is_shared;) /* the others are compared with the first */
            sorted[i]->name = sorted[i]->path;
    }
    for (size_t i = 0; i < all->file_count; i++)
        all->files[i].name = short_name(all->files[i].name);
}

static uint64_t count_at(sqlite3_stmt *row, int column)
{
    const int64_t value = sqlite3_column_int64(row, column);
    return value > 0 ? (uint64_t)value : 0;
}

static kprof_status read_profile(kprof_code_profiles *all, sqlite3_stmt *row)
{
    const kprof_model *model = all->model;
    const int64_t id = sqlite3_column_int64(row, 0), process = sqlite3_column_int64(row, 1),
                  kernel = sqlite3_column_int64(row, 2), device = sqlite3_column_int64(row, 3);
    const bool rises = all->count == 0 || id > all->items[all->count - 1].id;
    if (!rises || process < 1 || process > (int64_t)model->process_count || kernel < 1 ||
        kernel > (int64_t)model->kernel_count || device < 1 || device > (int64_t)model->device_count)
        return kprof_store_damaged(all->report, "code_profile");
    kprof_code_profile *profile = KPROF_POOL_ADD(model->pool, all->items, all->count);
    *profile = (kprof_code_profile){.id = id,
                                    .process = &model->processes[process - 1],
                                    .kernel = &model->kernels[kernel - 1],
                                    .device = &model->devices[device - 1],
                                    .launch = sqlite3_column_int64(row, 4),
                                    .counted = count_at(row, 5),
                                    .sampled = count_at(row, 6),
                                    .period_cycles = count_at(row, 7),
                                    .dropped = count_at(row, 8),
                                    .reason = text_of(&(kprof_row_source){all->report, row, model->pool}, 9)};
    return KPROF_OK;
}

static kprof_status read_launch(kprof_code_profiles *all, sqlite3_stmt *row)
{
    const int64_t launch = sqlite3_column_int64(row, 0);
    const kprof_code_profile *profile = FIND_ID(all->items, all->count, sqlite3_column_int64(row, 1));
    if (!profile || (all->launch_count > 0 && launch <= all->launches[all->launch_count - 1].launch))
        return kprof_store_damaged(all->report, "launch_code_profile");
    struct kprof_code_launch *own = KPROF_POOL_ADD(all->model->pool, all->launches, all->launch_count);
    *own = (struct kprof_code_launch){launch, (size_t)(profile - all->items)};
    return KPROF_OK;
}

static struct kprof_code_cache *new_cache(kprof_report *report, const kprof_model *model)
{
    struct kprof_code_cache *cache = kprof_pool_calloc(model->pool, 1, sizeof *cache);
    cache->work.reports[0] = report;
    return cache;
}

const kprof_code_profiles *kprof_code_profiles_of_ptx(const kprof_code_profiles *profiles)
{
    kprof_code_profiles *of_ptx = kprof_pool_calloc(profiles->model->pool, 1, sizeof *of_ptx);
    *of_ptx = *profiles;
    of_ptx->takes_ptx = true;
    of_ptx->cache = new_cache(profiles->report, profiles->model);
    return of_ptx;
}

const kprof_code_profiles *kprof_code_profiles_load(kprof_report *report, const kprof_model *model)
{
    static const struct {
        const char *sql;
        kprof_status (*read)(kprof_code_profiles *all, sqlite3_stmt *row);
    } steps[] = {
        {"SELECT id, path, bytes, hash, content IS NOT NULL FROM code_file ORDER BY id", read_file},
        {"SELECT id, process_id, kernel_id, device_id, launch_id, counted, sampled, period_cycles, dropped, reason "
         "FROM code_profile ORDER BY id",
         read_profile},
        {"SELECT launch_id, profile_id FROM launch_code_profile ORDER BY launch_id", read_launch},
    };
    if (*model->code)
        return *model->code;
    kprof_code_profiles *all = *model->code = kprof_pool_calloc(model->pool, 1, sizeof *all);
    *all = (kprof_code_profiles){.report = report, .model = model, .cache = new_cache(report, model)};
    for (size_t i = 0; i < COUNT_OF(steps) && report->version >= KPROF_CODE_VERSION; i++)
        KPROF_EACH_ROW(rows, report, steps[i].sql)
            steps[i].read(all, rows.row);
    name_files(all);
    return all;
}

kprof_code_profile *kprof_code_profile_of(const kprof_code_profiles *profiles, int64_t launch)
{
    const struct kprof_code_launch *own = FIND_ID(profiles->launches, profiles->launch_count, launch);
    return own ? &profiles->items[own->profile] : NULL;
}

/* A row of instruction_value. */
typedef struct value_row {
    int64_t function;
    uint64_t offset;
    size_t column;
    double value;
} value_row;

typedef struct code_loader {
    kprof_report *report;
    kprof_profiled_code *code;
    kprof_work *work;
    value_row *rows; /* [row_count], by function, offset and column */
    size_t row_count;
    kprof_profiled_function *function; /* being read */
} code_loader;

kprof_code_counter kprof_code_counter_find(const char *name)
{
    static const char *const counters[] = {
#define COUNTER_NAME(id, name, ...) name,
        KPROF_CODE_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
    };
    const size_t i = KPROF_FIND(k, KPROF_COUNTER_COUNT, strcmp(counters[k], name) == 0);
    return i < KPROF_COUNTER_COUNT ? (kprof_code_counter)i : KPROF_COUNTER_NONE;
}

bool kprof_code_counter_is_alone(const char *name)
{
    return kprof_code_counter_find(name) == KPROF_COUNTER_NONE &&
           strncmp(name, KPROF_SAMPLE_PREFIX, strlen(KPROF_SAMPLE_PREFIX)) != 0;
}

const char *kprof_profiled_lone_name(const kprof_profiled_code *code, size_t column)
{
    const char *name = code->profiles->model->metrics[code->metrics[column]].name;
    return kprof_code_counter_is_alone(name) ? name : NULL;
}

static void connect_metric(kprof_profiled_code *code, size_t column, const char *name)
{
    const size_t prefix = strlen(KPROF_STALL_PREFIX), suffix = strlen(KPROF_STALL_SUFFIX);
    const kprof_code_counter counter = kprof_code_counter_find(name);
    if (counter != KPROF_COUNTER_NONE)
        code->counters[counter] = column;
    if (strncmp(name, KPROF_STALL_PREFIX, prefix) != 0)
        return;
    size_t length = strlen(name += prefix);
    const bool is_unissued = length > suffix && strcmp(name + length - suffix, KPROF_STALL_SUFFIX) == 0;
    length -= is_unissued ? suffix : 0;
    const kprof_profiled_reason *reasons = code->reasons;
    const size_t at =
        KPROF_FIND(i, code->reason_count, reasons[i].length == length && memcmp(reasons[i].name, name, length) == 0);
    if (at == code->reason_count) /* there is one for each metric at most */
        code->reasons[code->reason_count++] =
            (kprof_profiled_reason){name, length, kprof_stall_reason_find(name, length), SIZE_MAX, SIZE_MAX};
    *(is_unissued ? &code->reasons[at].unissued : &code->reasons[at].all) = column;
}

static void read_metrics(code_loader *load)
{
    kprof_profiled_code *code = load->code;
    KPROF_EACH_ROW(rows, load->report,
                   "SELECT metric_id FROM code_profile_metric WHERE profile_id=? ORDER BY metric_id", "i",
                   code->profile->id) {
        const int64_t metric = sqlite3_column_int64(rows.row, 0);
        const bool rises = code->metric_count == 0 || metric - 1 > (int64_t)code->metrics[code->metric_count - 1];
        if (rises && metric >= 1 && metric <= (int64_t)code->profiles->model->metric_count)
            *KPROF_POOL_ADD(code->pool, code->metrics, code->metric_count) = (size_t)metric - 1;
        else
            kprof_store_damaged(load->report, "code_profile_metric");
    }
    code->reasons = kprof_pool_calloc(code->pool, code->metric_count + 1, sizeof *code->reasons);
    for (size_t i = 0; i < KPROF_COUNTER_COUNT; i++)
        code->counters[i] = SIZE_MAX;
    for (size_t i = 0; i < code->metric_count && load->report->status == KPROF_OK; i++) {
        connect_metric(code, i, code->profiles->model->metrics[code->metrics[i]].name);
        if (code->reason_count > REASONS_MAX)
            kprof_store_too_much(load->report, REASONS_MAX, "reasons of stalls");
    }
}

static size_t column_of(const kprof_profiled_code *code, int64_t metric)
{
    size_t low;
    KPROF_BISECT(low, code->metric_count, (int64_t)code->metrics[middle] + 1 < metric)
    return low < code->metric_count && (int64_t)code->metrics[low] + 1 == metric ? low : SIZE_MAX;
}

static bool comes_after(const value_row *row, const value_row *last)
{
    if (row->function != last->function)
        return row->function > last->function;
    return row->offset != last->offset ? row->offset > last->offset : row->column > last->column;
}

static kprof_status read_value(code_loader *load, sqlite3_stmt *columns)
{
    const int64_t offset = sqlite3_column_int64(columns, 1);
    const value_row row = {sqlite3_column_int64(columns, 0), (uint64_t)offset,
                           column_of(load->code, sqlite3_column_int64(columns, 2)), kprof_store_real(columns, 3)};
    if (offset < 0 || offset > OFFSET_MAX || row.column == SIZE_MAX ||
        !(row.value >= 0 && row.value <= KPROF_COUNTED_MAX) ||
        (load->row_count > 0 && !comes_after(&row, &load->rows[load->row_count - 1])))
        return kprof_store_damaged(load->report, "instruction_value");
    *KPROF_ADD(load->rows, load->row_count) = row;
    return kprof_work_charge(load->work, 1);
}

typedef kprof_status row_reader(code_loader *load, sqlite3_stmt *row);

/* The rows about what has this id. */
static void read_rows(code_loader *load, const char *sql, int64_t id, row_reader *read)
{
    KPROF_EACH_ROW(rows, load->report, sql, "i", id)
        read(load, rows.row);
}

static kprof_status read_function(code_loader *load, sqlite3_stmt *row)
{
    kprof_profiled_function *own = load->function;
    if (own->mangled)
        return kprof_store_damaged(load->report, "code_function");
    const kprof_row_source from = {load->report, row, load->code->pool};
    own->mangled = text_of(&from, 0);
    own->demangled = text_of(&from, 1);
    own->text_state = text_of(&from, 2);
    own->line_state = text_of(&from, 3);
    /* A compiler beside the program may make a kernel of one name and shape several times: "softmax_kernel (2)". */
    enum { COMPARED = 100 };
    const kprof_profiled_function *first = load->code->functions;
    size_t number = 1;
    for (size_t i = 0; &first[i] < own && i < COMPARED; i++)
        number += strcmp(first[i].mangled, own->mangled) == 0;
    if (number > 1)
        own->demangled = kprof_pool_keep(load->code->pool, kprof_strprintf("%s (%zu)", own->demangled, number));
    return KPROF_OK;
}

/* Append an instruction to the function that is being read. */
static kprof_profiled_instruction *add_instruction(code_loader *load, uint64_t offset)
{
    kprof_profiled_code *code = load->code;
    kprof_work_charge(load->work, WORK_OF_INSTRUCTION + code->metric_count / PART_OF_METRICS);
    kprof_profiled_instruction *added = KPROF_ADD(code->instructions, code->instruction_count);
    load->function->count++;
    *added = (kprof_profiled_instruction){.function = (size_t)(load->function - code->functions), .offset = offset};
    return added;
}

static kprof_status read_instruction(code_loader *load, sqlite3_stmt *row)
{
    kprof_profiled_code *code = load->code;
    const int64_t offset = sqlite3_column_int64(row, 0);
    const kprof_profiled_instruction *last =
        load->function->count > 0 ? &code->instructions[code->instruction_count - 1] : NULL;
    if (offset < 0 || offset > OFFSET_MAX || (last && (uint64_t)offset <= last->offset))
        return kprof_store_damaged(load->report, "code_instruction");
    kprof_profiled_instruction *own = add_instruction(load, (uint64_t)offset);
    const kprof_row_source from = {load->report, row, code->pool};
    own->text = optional_text(&from, 1);
    own->space = optional_text(&from, 2);
    own->operation = optional_text(&from, 3);
    own->access_bits = (uint32_t)sqlite3_column_int64(row, 4);
    return KPROF_OK;
}

/* The instruction of the function at an offset, among its first `count`; NULL: there is none. */
static kprof_profiled_instruction *instruction_at(const code_loader *load, size_t count, uint64_t offset)
{
    kprof_profiled_instruction *first = count > 0 ? load->code->instructions + load->function->first : NULL;
    size_t low;
    KPROF_BISECT(low, count, first[middle].offset < offset)
    return low < count && first[low].offset == offset ? &first[low] : NULL;
}

KPROF_BY_NUMBER(by_offset, kprof_profiled_instruction, offset)

/* Instructions that have values but are not in the table, which has none where the code could not be kept. */
static void add_missing(code_loader *load, const value_row *rows, size_t count)
{
    kprof_profiled_function *function = load->function;
    const size_t known = function->count;
    for (size_t i = 0; i < count && load->report->status == KPROF_OK; i++) {
        const bool is_new = i == 0 || rows[i].offset != rows[i - 1].offset;
        if (is_new && !instruction_at(load, known, rows[i].offset))
            add_instruction(load, rows[i].offset);
    }
    if (function->count > known)
        qsort(load->code->instructions + function->first, function->count, sizeof *load->code->instructions, by_offset);
}

static kprof_status read_line(code_loader *load, sqlite3_stmt *row)
{
    kprof_profiled_code *code = load->code;
    const kprof_code_profiles *all = code->profiles;
    const int64_t offset = sqlite3_column_int64(row, 0), depth = sqlite3_column_int64(row, 1);
    const kprof_code_file *file = FIND_ID(all->files, all->file_count, sqlite3_column_int64(row, 2));
    const int64_t line = sqlite3_column_int64(row, 3);
    kprof_profiled_instruction *own = instruction_at(load, load->function->count, (uint64_t)offset);
    if (!own)
        return KPROF_OK;
    if (!file || line < 0 || line > UINT32_MAX || depth != (int64_t)own->frame_count || depth >= FRAMES_MAX ||
        (depth > 0 && own->first_frame + own->frame_count != code->frame_count))
        return kprof_store_damaged(load->report, "code_line");
    own->first_frame = depth == 0 ? code->frame_count : own->first_frame;
    own->frame_count++;
    *KPROF_ADD(code->frames, code->frame_count) = (kprof_profiled_frame){
        file, (uint32_t)line, optional_text(&(kprof_row_source){load->report, row, code->pool}, 4)};
    return kprof_work_charge(load->work, 1);
}

/* Find the frame that the line of each instruction of a function is of. */
static void choose_lines(const code_loader *load)
{
    kprof_profiled_instruction *own = load->code->instructions + load->function->first;
    for (size_t i = 0; i < load->function->count; i++) {
        const kprof_profiled_frame *frames = own[i].frame_count > 0 ? load->code->frames + own[i].first_frame : NULL;
        const kprof_code_file *kernel = frames ? frames[own[i].frame_count - 1].file : NULL;
        const size_t found =
            KPROF_FIND(k, own[i].frame_count,
                       (k == 0 || frames[k].line > 0) && /* line 0 is the compiler's own code */
                           kprof_own_code_has(frames[k].file->path, frames[k].file->home, kernel->path, kernel->home));
        own[i].own_frame = own[i].first_frame + (found < own[i].frame_count ? found : 0);
    }
}

static kprof_status read_wait(code_loader *load, sqlite3_stmt *row)
{
    kprof_profiled_code *code = load->code;
    const size_t count = load->function->count;
    kprof_profiled_instruction *own = instruction_at(load, count, (uint64_t)sqlite3_column_int64(row, 0));
    const kprof_profiled_instruction *producer = instruction_at(load, count, (uint64_t)sqlite3_column_int64(row, 1));
    if (!own || !producer)
        return KPROF_OK;
    if (own->wait_count > 0 && own->first_wait + own->wait_count != code->wait_count)
        return kprof_store_damaged(load->report, "code_wait");
    own->first_wait = own->wait_count == 0 ? code->wait_count : own->first_wait;
    own->wait_count++;
    *KPROF_ADD(code->waits, code->wait_count) = (size_t)(producer - code->instructions);
    return kprof_work_charge(load->work, 1);
}

#define SQL_OF_LINES                                                                                                   \
    "SELECT offset, depth, file_id, line, function FROM code_line WHERE function_id=? ORDER BY offset, depth"
#define SQL_OF_PTX "SELECT offset, 0, file_id, line, NULL FROM code_ptx WHERE function_id=? ORDER BY offset"
#define SQL_OF_WAITS                                                                                                   \
    "SELECT offset, producer_offset FROM code_wait WHERE function_id=? ORDER BY offset, producer_offset"

/* Behind the function before it, as far as instructions are known. */
static void place_function(code_loader *load)
{
    enum { INSTRUCTION_BYTES = 16 };
    const kprof_profiled_code *code = load->code;
    kprof_profiled_function *own = load->function;
    if (own == code->functions)
        return;
    own->base = own[-1].base + code->instructions[own->first - 1].offset + INSTRUCTION_BYTES;
}

/* Read a function; rows[count] are its values. */
static void load_function(code_loader *load, const value_row *rows, size_t count)
{
    kprof_profiled_code *code = load->code;
    const int64_t id = rows->function;
    load->function = KPROF_POOL_ADD(code->pool, code->functions, code->function_count);
    *load->function = (kprof_profiled_function){.id = id, .first = code->instruction_count};
    read_rows(load,
              "SELECT mangled, demangled, text_state, line_state FROM code_function JOIN code ON code.id=code_id "
              "WHERE code_function.id=?",
              id, read_function);
    if (load->report->status == KPROF_OK && !load->function->mangled)
        kprof_store_damaged(load->report, "code_function");
    read_rows(load,
              "SELECT offset, text, space, operation, access_bits FROM code_instruction WHERE function_id=? "
              "ORDER BY offset",
              id, read_instruction);
    add_missing(load, rows, count);
    if (load->report->status != KPROF_OK) /* there may be no instruction then */
        return;
    const bool takes_ptx = code->profiles->takes_ptx;
    if (!takes_ptx || load->report->version >= KPROF_PTX_VERSION)
        read_rows(load, takes_ptx ? SQL_OF_PTX : SQL_OF_LINES, id, read_line);
    choose_lines(load);
    read_rows(load, SQL_OF_WAITS, id, read_wait);
    place_function(load);
}

/* Values come in the order of the instructions. */
static void place_values(code_loader *load)
{
    kprof_profiled_code *code = load->code;
    code->column_count = code->metric_count;
    kprof_profiled_add_made(code);
    if (code->instruction_count > LOADED_VALUES_MAX / (code->column_count + 1)) {
        kprof_store_too_much(load->report, LOADED_VALUES_MAX, "values of the instructions of a kernel");
        return;
    }
    code->values =
        kprof_pool_calloc(code->pool, code->instruction_count * code->column_count + 1, sizeof *code->values);
    code->totals = kprof_pool_calloc(code->pool, code->column_count + 1, sizeof *code->totals);
    for (size_t i = 0, at = 0; i < load->row_count; i++) {
        const value_row *row = &load->rows[i];
        while (code->functions[code->instructions[at].function].id != row->function ||
               code->instructions[at].offset != row->offset)
            at++;
        code->values[at * code->column_count + row->column] = row->value;
        code->totals[row->column] += row->value;
    }
    kprof_profiled_make(code);
}

static size_t values_of(const kprof_loaded_code *loaded)
{
    enum { OTHER_VALUES = 16 }; /* that a row has beside its metrics */
    return (loaded->code.instruction_count + loaded->lines.count) * (loaded->code.column_count + OTHER_VALUES);
}

static kprof_status read_code(const kprof_code_profiles *profiles, const kprof_code_profile *profile,
                              kprof_loaded_code *out)
{
    code_loader load = {.report = profiles->report, .code = &out->code, .work = &profiles->cache->work};
    out->code.profiles = profiles;
    out->code.profile = profile;
    read_metrics(&load);
    read_rows(&load,
              "SELECT function_id, offset, metric_id, value FROM instruction_value WHERE profile_id=? ORDER BY "
              "function_id, offset, metric_id",
              profile->id, read_value);
    for (size_t i = 0, end; i < load.row_count && load.report->status == KPROF_OK; i = end) {
        for (end = i + 1; end < load.row_count && load.rows[end].function == load.rows[i].function;)
            end++;
        load_function(&load, &load.rows[i], end - i);
    }
    if (load.report->status == KPROF_OK)
        place_values(&load);
    free(load.rows);
    kprof_pool_keep(out->code.pool, out->code.instructions); /* full now */
    kprof_pool_keep(out->code.pool, out->code.frames);
    kprof_pool_keep(out->code.pool, out->code.waits);
    if (load.report->status == KPROF_OK)
        kprof_profiled_lines_make(&out->code, KPROF_FRAME_OWN, &out->lines);
    return load.report->status;
}

const kprof_loaded_code *kprof_code_load(const kprof_code_profiles *profiles, const kprof_code_profile *profile)
{
    struct kprof_code_cache *cache = profiles->cache;
    for (size_t i = 0; i < cache->count; i++) {
        kprof_loaded_code *found = cache->items[i];
        if (found->code.profile != profile)
            continue;
        memmove(&cache->items[i], &cache->items[i + 1], (cache->count - i - 1) * sizeof(kprof_loaded_code *));
        return cache->items[cache->count - 1] = found;
    }
    kprof_pool *pool = kprof_pool_child(profiles->model->pool);
    kprof_loaded_code *loaded = kprof_pool_calloc(pool, 1, sizeof *loaded);
    loaded->code.pool = pool;
    if (read_code(profiles, profile, loaded) != KPROF_OK)
        return NULL;
    /* Drop what was not asked for the longest time, until `values` more have space. */
    while (cache->count > 0 && cache->values + values_of(loaded) > CACHED_VALUES) {
        kprof_loaded_code *oldest = cache->items[0];
        cache->values -= values_of(oldest);
        cache->count--;
        memmove(cache->items, cache->items + 1, cache->count * sizeof(kprof_loaded_code *));
        kprof_pool_free(oldest->code.pool);
    }
    cache->values += values_of(loaded);
    return *KPROF_POOL_ADD(profiles->model->pool, cache->items, cache->count) = loaded;
}

bool kprof_profiled_has_ptx(const kprof_profiled_code *code)
{
    kprof_report *report = code->profiles->report;
    return report->version >= KPROF_PTX_VERSION &&
           KPROF_ANY(i, code->function_count,
                     kprof_store_ask(report, "SELECT EXISTS(SELECT 1 FROM code_ptx WHERE function_id=?)", "i",
                                     code->functions[i].id));
}
