/* The columns of ncu's source page. Addresses begin at 0, and not at the process' own: readers subtract. */
#include "report/emit/csv.h"
#include "report/model/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a column looks. */
typedef enum code_notation {
    AS_LINE,        /* its number; empty for an instruction below it */
    AS_SOURCE,      /* the text of the line */
    AS_ADDRESS,     /* hexadecimal; "-" for a line */
    AS_SASS,        /* with space for a predicate */
    AS_COUNT,       /* a whole number: ncu cuts averages */
    AS_OPTIONAL,    /* likewise; there is no column if it is 0 in all rows, and no instruction could have it */
    AS_SHARED,      /* likewise; there is no column if no instruction accesses shared memory */
    AS_BRANCH,      /* likewise; there is no column if no row branches */
    AS_REST,        /* what a whole number leaves of the 32 threads of a warp */
    AS_SPACE,       /* "Global"; "-" if there is none, empty where no thread executed the access */
    AS_OPERATION,   /* "Load"; "-" if there is none, and for a reduction; empty where the access never ran */
    AS_ACCESS_SIZE, /* "-" if there is none; empty where the access never ran */
    AS_POLICIES,    /* names of the next six that are not 0; "-" for an instruction that accesses no global memory */
} code_notation;

typedef struct code_column {
    const char *name, *key;
    code_notation notation;
} code_column;

#define STALL(name, label, column, unissued, notation, help) {"stall_" column, KPROF_STALL_PREFIX name, AS_##notation},
#define UNISSUED(name, label, column, unissued, notation, help)                                                        \
    {"stall_" unissued " (Not Issued)", KPROF_STALL_PREFIX name KPROF_STALL_SUFFIX, AS_##notation},

static const code_column columns[] = {
    {"Line No", "line", AS_LINE},
    {"Source", "source", AS_SOURCE},
    {"Address", "code_offset", AS_ADDRESS},
    {"Source", "instruction", AS_SASS},
    {"Warp Stall Sampling (All Samples)", "samples", AS_COUNT},
    {"Warp Stall Sampling (Not-issued Samples)", "samples_not_issued", AS_COUNT},
    {"# Samples", "samples", AS_COUNT},
    {"Instructions Executed", "instructions", AS_COUNT},
    {"Thread Instructions Executed", "thread_instructions", AS_COUNT},
    {"Predicated-On Thread Instructions Executed", "thread_instructions_on", AS_COUNT},
    {"Avg. Threads Executed", "threads_per_instruction", AS_COUNT},
    {"Avg. Predicated-On Threads Executed", "threads_on_per_instruction", AS_COUNT},
    {"Avg. Predicated-On Threads Unexecuted", "threads_on_per_instruction", AS_REST},
    {"Divergent Branches", "divergent_branches", AS_BRANCH},
    {"Address Space", "space", AS_SPACE},
    {"Access Operation", "operation", AS_OPERATION},
    {"Access Size", "access_bits", AS_ACCESS_SIZE},
    {"L1 Tag Requests Global", "l1_tag_requests", AS_COUNT},
    {"L1 Conflicts Shared N-Way", "shared_ways", AS_COUNT},
    {"L1 Wavefronts Shared Excessive", "shared_conflicts", AS_SHARED},
    {"L1 Wavefronts Shared", "shared_wavefronts", AS_SHARED},
    {"L1 Wavefronts Shared Ideal", "shared_wavefronts_ideal", AS_SHARED},
    {"L2 Theoretical Sectors Global Excessive", "excess_sectors", AS_COUNT},
    {"L2 Theoretical Sectors Global", "sectors", AS_COUNT},
    {"L2 Theoretical Sectors Global Ideal", "sectors_ideal", AS_COUNT},
    {"L2 Theoretical Sectors Local", "local_sectors", AS_OPTIONAL},
    {"L2 Explicit Evict Policies", "hit_evict_first", AS_POLICIES},
    {"L2 Explicit Hit Policy Evict First", "hit_evict_first", AS_OPTIONAL},
    {"L2 Explicit Hit Policy Evict Last", "hit_evict_last", AS_OPTIONAL},
    {"L2 Explicit Hit Policy Evict Normal", "hit_evict_normal", AS_OPTIONAL},
    {"L2 Explicit Hit Policy Evict Normal Demote", "hit_evict_normal_demote", AS_OPTIONAL},
    {"L2 Explicit Miss Policy Evict First", "miss_evict_first", AS_OPTIONAL},
    {"L2 Explicit Miss Policy Evict Normal", "miss_evict_normal", AS_OPTIONAL},
    KPROF_STALL_REASONS(STALL) KPROF_STALL_REASONS(UNISSUED)};
#define COLUMN_COUNT COUNT_OF(columns)

static const char *text_of(const kprof_emit_record *record, const char *key)
{
    const kprof_emit_field *field = kprof_record_find(record, key);
    return field && field->text ? field->text : "";
}

static double number_of(const kprof_emit_record *record, const char *key)
{
    const kprof_emit_field *field = kprof_record_find(record, key);
    return field ? field->real : NAN;
}

/* Keep a copy of a text in place of another one. */
static void keep(char **own, const char *text)
{
    free(*own);
    *own = kprof_strdup(text);
}

void kprof_csv_code_begin(kprof_csv_code *code, const kprof_emit_record *kernel)
{
    const char *view = text_of(kernel, "view");
    keep(&code->kernel, text_of(kernel, "kernel"));
    keep(&code->file, "");
    code->has_lines = strcmp(view, "sass") != 0;
    code->has_instructions = strstr(view, "sass") != NULL;
    code->is_open = false;
    if (!code->is_column)
        code->is_column = kprof_calloc(COLUMN_COUNT, sizeof *code->is_column);
}

/* Is a column left out for its zeros? */
static bool is_idle(code_notation notation, const kprof_emit_field *field, const kprof_emit_record *row)
{
    const char *key = notation == AS_SHARED   ? "shared_wavefronts"
                      : notation == AS_BRANCH ? "smsp__sass_branch_targets_threads_uniform"
                                              : NULL;
    const kprof_emit_field *whole = key ? kprof_record_find(row, key) : NULL;
    return (key || notation == AS_OPTIONAL || notation == AS_POLICIES) && field->is_idle && (!whole || whole->is_idle);
}

/* A metric that was not measured has no column. */
static bool is_column(const kprof_csv_code *code, const code_column *column, const kprof_emit_record *row)
{
    const kprof_emit_field *field = kprof_record_find(row, column->key);
    const code_notation as = column->notation;
    if (as == AS_LINE || as == AS_SOURCE)
        return code->has_lines;
    if (as == AS_ADDRESS || as == AS_SASS)
        return code->has_instructions;
    return as == AS_SPACE || as == AS_OPERATION || as == AS_ACCESS_SIZE ||
           (field && !kprof_field_is_missing(field) && !is_idle(as, field, row));
}

static void put_names(kprof_csv *csv, const char *title, const char *name)
{
    kprof_csv_text(&csv->row, title);
    kprof_csv_text(&csv->row, name);
    kprof_csv_put_comma(&csv->row);
    kprof_csv_end_row(csv);
}

static void open_table(kprof_csv *csv, kprof_csv_code *code, const kprof_emit_record *row)
{
    code->is_open = true;
    if (code->has_lines)
        put_names(csv, "File Path", code->file);
    put_names(csv, code->has_lines ? "Function Name" : "Kernel Name", code->kernel);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        code->is_column[i] = is_column(code, &columns[i], row);
        if (code->is_column[i])
            kprof_csv_text(&csv->row, columns[i].name);
    }
    kprof_csv_end_row(csv);
}

static void put_number(kprof_csv_line *line, double value)
{
    char number[KPROF_NUMBER_SIZE];
    if (isfinite(value) && fabs(value) < 1e15)
        kprof_number_integer(number, (int64_t)floor(value));
    else
        kprof_number_grouped(number, value, (kprof_number_style){.decimals = 2});
    kprof_csv_text(line, number);
}

/* ncu leaves six columns for a predicate, and does not tell that a register is used again. */
static void put_sass(kprof_csv_line *line, const char *text)
{
    static const char reuse[] = ".reuse";
    const size_t predicate = *text == '@' ? strcspn(text, " ") : 0;
    const char *rest = text + predicate + strspn(text + predicate, " ");
    kprof_strbuf padded = KPROF_STRBUF_INIT;
    if (*text)
        kprof_strbuf_printf(&padded, "%-6.*s", (int)predicate, text);
    for (const char *end = strstr(rest, reuse); end; end = strstr(rest, reuse)) {
        kprof_strbuf_printf(&padded, "%.*s", (int)(end - rest), rest);
        rest = end + sizeof reuse - 1;
    }
    kprof_strbuf_puts(&padded, rest);
    kprof_csv_take(line, &padded);
}

static void put_policies(kprof_csv_line *line, const code_column *column, const kprof_emit_record *row)
{
    enum { POLICIES = 6, PREFIX = sizeof "L2 Explicit " - 1 };
    kprof_strbuf names = KPROF_STRBUF_INIT;
    for (size_t i = 1; i <= POLICIES; i++)
        if (number_of(row, column[i].key) > 0)
            kprof_strbuf_printf(&names, "%s%s", names.length > 0 ? ", " : "", column[i].name + PREFIX);
    const char *space = text_of(row, "space");
    const bool is_other = !*space || strcmp(space, "Shared") == 0 || strcmp(space, "Local") == 0;
    if (names.length == 0 && is_other)
        kprof_strbuf_puts(&names, "-");
    kprof_csv_take(line, &names);
}

static void put_word(kprof_csv_line *line, const char *text)
{
    char word[32];
    snprintf(word, sizeof word, "%s", *text ? text : "-");
    if (word[0] >= 'a' && word[0] <= 'z')
        word[0] = (char)(word[0] - 'a' + 'A');
    kprof_csv_text(line, word);
}

/* ncu tells nothing of an access that never ran, and no space of one that no thread made. */
static bool is_access_untold(const code_column *column, const kprof_emit_record *row)
{
    const char *key = column->notation == AS_SPACE ? "thread_instructions_on" : "instructions";
    return *text_of(row, "space") && number_of(row, key) == 0;
}

/* A copy from global to shared memory accesses both. */
static bool is_copy(const kprof_emit_record *row)
{
    static const char copy[] = "LDGSTS";
    const char *text = text_of(row, "instruction");
    text += *text == '@' ? strcspn(text, " ") : 0;
    return strncmp(text + strspn(text, " "), copy, sizeof copy - 1) == 0;
}

/* ncu tells which memory the addresses of a generic access were in. */
static void put_space(kprof_csv_line *line, const kprof_emit_record *row)
{
    static const char *const spaces[][2] = {
        {"Global", "sectors"}, {"Local", "local_sectors"}, {"Shared", "shared_wavefronts"}};
    const char *space = text_of(row, "space");
    kprof_strbuf names = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < COUNT_OF(spaces) && strcmp(space, "Generic") == 0; i++)
        if (number_of(row, spaces[i][1]) > 0)
            kprof_strbuf_printf(&names, "%s%s", names.length > 0 ? "," : "", spaces[i][0]);
    if (names.length == 0)
        kprof_strbuf_puts(&names, is_copy(row) ? "Global,Shared" : *space ? space : "-");
    kprof_csv_take(line, &names);
}

static void put_access(kprof_csv_line *line, const code_column *column, const kprof_emit_record *row)
{
    const bool is_size = column->notation == AS_ACCESS_SIZE;
    const bool is_reduction = column->notation == AS_OPERATION && strcmp(text_of(row, column->key), "Reduction") == 0;
    if (is_access_untold(column, row))
        kprof_csv_text(line, "");
    else if (column->notation == AS_SPACE)
        put_space(line, row);
    else if (column->notation == AS_OPERATION && is_copy(row))
        kprof_csv_text(line, "Load,Store");
    else if (is_size && !isnan(number_of(row, column->key)))
        put_number(line, number_of(row, column->key));
    else
        put_word(line, is_size || is_reduction ? "" : text_of(row, column->key));
}

/* Instructions that fill the space behind a function's code: a jump to itself, and instructions that do nothing. */
static bool is_filler(const kprof_emit_record *row)
{
    static const char jump[] = "BRA 0x";
    const char *text = text_of(row, "instruction");
    return strncmp(text, "NOP", 3) == 0 ||
           (strncmp(text, jump, sizeof jump - 1) == 0 &&
            (double)strtoull(text + sizeof jump - 1, NULL, 16) == number_of(row, "code_offset"));
}

/* All threads where none has executed it, but for what is no part of the program. */
static double threads_off(const code_column *column, const kprof_emit_record *row)
{
    enum { THREADS = 32 };
    if (number_of(row, "instructions") > 0)
        return THREADS - floor(number_of(row, column->key));
    return isnan(number_of(row, "offset")) || is_filler(row) ? 0 : THREADS;
}

static void put_cell(kprof_csv_line *line, const code_column *column, const kprof_emit_record *row)
{
    const bool is_instruction = !isnan(number_of(row, "offset"));
    char address[24];
    const code_notation as = column->notation;
    if (as == AS_SOURCE)
        kprof_csv_text(line, text_of(row, column->key));
    else if (as == AS_LINE && is_instruction)
        kprof_csv_text(line, "");
    else if ((as == AS_ADDRESS || as == AS_SASS) && !is_instruction)
        kprof_csv_text(line, "-");
    else if (as == AS_ADDRESS) {
        snprintf(address, sizeof address, "0x%lx", (uint64_t)number_of(row, column->key));
        kprof_csv_text(line, address);
    } else if (as == AS_SASS)
        put_sass(line, text_of(row, column->key));
    else if (as == AS_SPACE || as == AS_OPERATION || as == AS_ACCESS_SIZE)
        put_access(line, column, row);
    else if (as == AS_POLICIES)
        put_policies(line, column, row);
    else
        put_number(line, as == AS_REST ? threads_off(column, row) : number_of(row, column->key));
}

/* Instructions without a line are in no file. */
void kprof_csv_code_row(kprof_csv *csv, kprof_csv_code *code, const kprof_emit_record *row)
{
    const char *file = text_of(row, "file");
    if (code->has_lines && !*file)
        return;
    const bool is_line = isnan(number_of(row, "offset"));
    if (code->has_lines && is_line && strcmp(file, code->file) != 0) {
        keep(&code->file, file);
        code->is_open = false;
    }
    if (!code->is_open)
        open_table(csv, code, row);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (code->is_column[i])
            put_cell(&csv->row, &columns[i], row);
    kprof_csv_end_row(csv);
}

void kprof_csv_code_free(kprof_csv_code *code)
{
    KPROF_FREE(code->kernel, code->file, code->is_column);
}
