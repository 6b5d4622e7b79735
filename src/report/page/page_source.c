/* The source page: the lines and instructions of each kernel whose instructions were measured, the hottest first. */
#include "core/clean.h"
#include "report/model/code.h"
#include "report/model/source_text.h"
#include "report/page/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A remark on a kernel, beside its rows. */
typedef struct source_note {
    const char *kernel, *short_name; /* of people; NULL: the same */
    char *text;
} source_note;

/* How a kernel gets lines: of PTX, or else by what its mangled name has. The last one is for all others. */
static const struct {
    const char *word, *text;
    bool is_plain; /* not for names of C++ */
} advices[] = {
    {NULL,
     "cubins have PTX where they have lines: of nvcc and NVRTC with -lineinfo, of Triton unless "
     "TRITON_DISABLE_LINE_INFO=1; kprof of older versions kept none",
     false},
    {"cudapy", "Numba: lines come with @cuda.jit(lineinfo=True)", false},
    {"cupy_", "CuPy: its own kernels have no lines; a RawKernel has them with options=('-lineinfo',)", false},
    {"triton_", "torch.compile: lines come unless TRITON_DISABLE_LINE_INFO=1", false},
    {"at6native",
     "PyTorch's own kernels have lines where PyTorch is built with nvcc -lineinfo; --call-stack tells who "
     "launches them",
     false},
    {"fusion", "XLA: its kernels have no lines; --call-stack tells who launches them", true},
    {"", "lines come with -lineinfo of nvcc and NVRTC; Triton has them unless TRITON_DISABLE_LINE_INFO=1", false},
};

typedef struct source_page {
    const kprof_page_context *context;
    const kprof_model *model;
    const kprof_code_profiles *profiles;
    kprof_emitter *emitter;
    kprof_source_text *texts; /* [file_count of the profiles] */
    bool *is_looked_for;      /* [file_count]: texts has it, and a row names the file */
    kprof_source_index index; /* of the folders with texts */
    size_t *metrics;          /* [metric_count]: all metrics of instructions, as columns of rows for programs */
    size_t metric_count;
    char **names; /* of kernels, for people; NULL: they see whole ones */
    source_note *notes;
    size_t note_count;
    bool is_advised[COUNT_OF(advices)]; /* some kernel lacks lines */
    kprof_emit_field *fields;           /* of a row; room for all */
} source_page;

/* A kernel that is being shown. */
typedef struct shown_code {
    source_page *page;
    const kprof_profiled_code *code;
    const kprof_profiled_lines *lines;
    kprof_source_view view;           /* never BEST */
    bool is_cold;                     /* no row has what they are sorted by */
    size_t *columns;                  /* [metric_count of the page]: where values have them; SIZE_MAX: not measured */
    bool is_idle[KPROF_NUMBER_COUNT]; /* 0 in all instructions, or not measured */
    bool has[KPROF_MEMORIES]; /* some instruction accesses such memory, whether or not it has run; or may say what L2 is
                                 to keep, also where texts are not known */
    bool diverges;            /* some instruction has warps without all of their threads */
    bool has_few;             /* so few counters that people see a column of each */
    double samples;           /* of all instructions; NaN: none were taken */
    kprof_code_number heat;   /* rows are sorted by this; COUNT: by the metric of heat_column */
    size_t heat_column;
} shown_code;

/* A row: a line, an instruction, or an instruction below its line. */
typedef struct shown_row {
    const kprof_profiled_line *line;               /* NULL: the row is an instruction */
    const kprof_profiled_instruction *instruction; /* NULL: the row is a line */
    const double *values;
    double heat;
    size_t order; /* in the program */
} shown_row;

static const char *name_of(const source_page *page, const kprof_code_profile *profile)
{
    return kprof_model_kernel_name(profile->kernel, page->context->options->kernel_base);
}

static const char *short_name_of(const source_page *page, const kprof_code_profile *profile)
{
    return page->names ? page->names[profile->kernel - page->model->kernels] : NULL;
}

/* Takes the text over. */
static source_note *add_note(source_page *page, const char *kernel, char *text)
{
    source_note *note = KPROF_POOL_ADD(page->model->pool, page->notes, page->note_count);
    *note = (source_note){.kernel = kernel, .text = kprof_pool_keep(page->model->pool, text)};
    return note;
}

static void note_kernel(source_page *page, const kprof_code_profile *profile, char *text)
{
    add_note(page, name_of(page, profile), text)->short_name = short_name_of(page, profile);
}

/* The text of a file, looked for once. */
static const kprof_source_text *text_of(source_page *page, const kprof_code_file *file)
{
    const size_t at = (size_t)(file - page->profiles->files);
    const kprof_print_options *options = page->context->options;
    const kprof_source_places places = {options->source_folders, options->source_files, &page->index};
    if (!page->is_looked_for[at]) {
        kprof_source_text_find(page->profiles, file, &places, &page->texts[at]);
        kprof_pool_keep(page->model->pool, page->texts[at].text);
        kprof_pool_keep(page->model->pool, page->texts[at].lines);
    }
    page->is_looked_for[at] = true;
    return &page->texts[at];
}

static double total_of(const shown_code *shown, size_t number)
{
    return kprof_profiled_number(shown->code, shown->code->totals, (kprof_code_number)number);
}

/* The column of the first such counter that counted something; SIZE_MAX: there is none. */
static size_t first_alone(const shown_code *shown, size_t *count)
{
    const kprof_profiled_code *code = shown->code;
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < code->metric_count; i++) {
        const bool is_one = kprof_profiled_lone_name(code, i) != NULL;
        *count += is_one;
        first = is_one && first == SIZE_MAX && code->totals[i] > 0 ? i : first;
    }
    return first;
}

static void examine(shown_code *shown)
{
    enum { FEW = 6 };
    const kprof_profiled_code *code = shown->code;
    size_t measured = 0;
    memset(shown->is_idle, true, sizeof shown->is_idle);
    shown->has[KPROF_OF_L2] = !kprof_profiled_has_text(code);
    for (size_t i = 0; i < code->instruction_count; i++) {
        const char *space = or_empty(code->instructions[i].space), *text = or_empty(code->instructions[i].text);
        shown->has[KPROF_OF_LOCAL] = shown->has[KPROF_OF_LOCAL] || strcmp(space, "Local") == 0;
        shown->has[KPROF_OF_SHARED] = shown->has[KPROF_OF_SHARED] || strcmp(space, "Shared") == 0;
        shown->has[KPROF_OF_L2] = shown->has[KPROF_OF_L2] || strstr(text, " desc[");
        const double *values = kprof_profiled_values(code, i);
        const double threads = kprof_profiled_number(code, values, KPROF_NUMBER_ACTIVE);
        shown->diverges = shown->diverges || (threads > 0 && threads < 31.995);
        for (size_t k = 0; k < KPROF_NUMBER_COUNT; k++)
            shown->is_idle[k] = shown->is_idle[k] && !(kprof_profiled_number(code, values, (kprof_code_number)k) > 0);
    }
    shown->samples = total_of(shown, KPROF_NUMBER_SAMPLES);
    shown->heat_column = first_alone(shown, &measured);
    measured += KPROF_SUM(i, KPROF_NUMBER_COUNT - KPROF_NUMBER_INSTRUCTIONS,
                          !isnan(total_of(shown, KPROF_NUMBER_INSTRUCTIONS + i)));
    shown->has_few = measured <= FEW;
}

/* The first number that is anywhere more than 0, or else that was measured at all. */
static kprof_code_number first_number(const shown_code *shown)
{
    const size_t first = KPROF_FIND(i, KPROF_NUMBER_COUNT, total_of(shown, i) > 0),
                 measured = KPROF_FIND(i, KPROF_NUMBER_COUNT, !isnan(total_of(shown, i)));
    if (first < KPROF_NUMBER_COUNT || shown->heat_column != SIZE_MAX)
        return (kprof_code_number)first;
    return measured < KPROF_NUMBER_COUNT ? (kprof_code_number)measured : KPROF_NUMBER_INSTRUCTIONS;
}

static kprof_code_number heat_of(const source_page *page, const shown_code *shown)
{
    static const kprof_code_number of[] = {[KPROF_SORT_INSTRUCTIONS] = KPROF_NUMBER_INSTRUCTIONS,
                                           [KPROF_SORT_SECTORS] = KPROF_NUMBER_EXCESS,
                                           [KPROF_SORT_CONFLICTS] = KPROF_NUMBER_CONFLICTS,
                                           [KPROF_SORT_LOCAL] = KPROF_NUMBER_LOCAL,
                                           [KPROF_SORT_DIVERGENCE] = KPROF_NUMBER_DIVERGENT};
    const kprof_sort_key sort = page->context->options->sort;
    return sort >= KPROF_SORT_INSTRUCTIONS && sort < COUNT_OF(of) ? of[sort] : first_number(shown);
}

/* The texts that a row is made of. */
typedef struct row_texts {
    char location[512], address[24], waits[512], library[512], caller[512];
    char callers[560];       /* what people see of the caller: a line may have several */
    char below[256];         /* an instruction below its line */
    char short_location[48]; /* empty: the whole one is short */
    kprof_strbuf stalls, costs;
    char stall_names[3][48];
    double stall_pcts[3];
    char *source;
    char source_start[200];      /* what people see of it */
    const kprof_code_file *file; /* NULL: not known */
    uint32_t line;
} row_texts;

static const kprof_profiled_frame *place_of(const shown_code *shown, const kprof_profiled_instruction *instruction)
{
    return instruction ? kprof_profiled_place(shown->code, (size_t)(instruction - shown->code->instructions)) : NULL;
}

/* The instruction of a row, or the one of a line that most samples are of; SIZE_MAX: no sample is of any. */
static size_t hottest_of(const shown_code *shown, const shown_row *row)
{
    if (row->instruction)
        return (size_t)(row->instruction - shown->code->instructions);
    return kprof_profiled_hottest(shown->code, shown->lines->members + row->line->first, row->line->count);
}

/* "LDG.E R4 at 0x0040, softmax.py:14": what the instruction waits for. A warp that has ended waits for its stores. */
static void describe_wait(const shown_code *shown, size_t awaited, char *out, size_t size)
{
    const kprof_profiled_instruction *producer = &shown->code->instructions[awaited];
    const kprof_profiled_frame *frame = place_of(shown, producer);
    const char *text = producer->text ? producer->text : "the instruction", *end = strstr(text, "EXIT");
    char place[256] = "";
    if (frame)
        kprof_code_put_place(place, sizeof place, frame->file, frame->line);
    snprintf(out, size, "%s%s at 0x%04lx%s%s", end && !end[strlen("EXIT")] ? "stores before " : "", text,
             producer->offset, *place ? ", " : "", place);
}

/* The kernel's own frame that calls the inlined function; NULL: the instruction is of none. */
static const kprof_profiled_frame *outer_caller(const shown_code *shown, const kprof_profiled_instruction *instruction)
{
    const size_t outermost = instruction->first_frame + instruction->frame_count - 1;
    const bool is_inlined = instruction->frame_count > 0 && outermost > instruction->own_frame;
    return is_inlined && shown->code->frames[outermost].line > 0 ? &shown->code->frames[outermost] : NULL;
}

KPROF_BY_BOTH(by_place, kprof_profiled_frame *const, KPROF_COMPARE((*a)->file, (*b)->file),
              KPROF_COMPARE((*a)->line, (*b)->line))

/* How many lines of the kernel call what the line is of: its instructions are of several calls. */
static size_t count_callers(const shown_code *shown, const kprof_profiled_line *line)
{
    KPROF_AUTO_FREE const kprof_profiled_frame **callers = kprof_calloc(line->count + 1, sizeof *callers);
    size_t count = 0;
    for (size_t i = 0; i < line->count; i++) {
        const size_t member = shown->lines->members[line->first + i];
        const kprof_profiled_frame *caller = outer_caller(shown, &shown->code->instructions[member]);
        if (caller)
            callers[count++] = caller;
    }
    qsort(callers, count, sizeof *callers, by_place);
    return KPROF_SUM(i, count, i == 0 || by_place(&callers[i - 1], &callers[i]) != 0);
}

/* "softmax.py:16 and 2 other lines" */
static void describe_callers(const shown_code *shown, const shown_row *row, row_texts *texts)
{
    const size_t count = row->line && *texts->caller ? count_callers(shown, row->line) : 0;
    if (count > 1)
        snprintf(texts->callers, sizeof texts->callers, "%s and %zu other line%s", texts->caller, count - 1,
                 kprof_ending(count - 1, "s"));
}

/* "softmax.py:16": where the kernel itself calls the inlined function, and "standard.py:166": where in a library an
 * instruction is. */
static void describe_frames(const shown_code *shown, const kprof_profiled_instruction *instruction, row_texts *out)
{
    const kprof_profiled_frame *caller = outer_caller(shown, instruction);
    const kprof_profiled_frame *library =
        kprof_profiled_library(shown->code, (size_t)(instruction - shown->code->instructions));
    if (caller)
        kprof_code_put_place(out->caller, sizeof out->caller, caller->file, caller->line);
    if (library)
        kprof_code_put_place(out->library, sizeof out->library, library->file, library->line);
}

/* Numbers that should be 0, where they are not: "28,672 of 32,768 sectors in excess, 96 divergent branches". */
static void describe_costs(const shown_code *shown, const shown_row *row, kprof_strbuf *out)
{
    static const struct {
        kprof_code_number number, of; /* the same: of nothing */
        const char *one, *of_several, *about;
    } costs[] = {
        {KPROF_NUMBER_EXCESS, KPROF_NUMBER_SECTORS, "sector", "s", " in excess"},
        {KPROF_NUMBER_CONFLICTS, KPROF_NUMBER_WAVEFRONTS, "wavefront", "s", " in excess (bank conflicts)"},
        {KPROF_NUMBER_LOCAL, KPROF_NUMBER_LOCAL, "sector", "s", " of local memory (spills, arrays)"},
        {KPROF_NUMBER_DIVERGENT, KPROF_NUMBER_DIVERGENT, "divergent branch", "es", ""},
        {KPROF_NUMBER_ATOMICS, KPROF_NUMBER_ATOMICS, "atomic operation", "s", ""},
    };
    for (size_t i = 0; i < COUNT_OF(costs); i++) {
        const double value = kprof_profiled_number(shown->code, row->values, costs[i].number);
        const double all = kprof_profiled_number(shown->code, row->values, costs[i].of);
        char number[KPROF_NUMBER_SIZE], whole[KPROF_NUMBER_SIZE];
        if (!(value > 0))
            continue;
        kprof_number_grouped(number, value, (kprof_number_style){0});
        kprof_number_grouped(whole, all, (kprof_number_style){0});
        const bool is_part = costs[i].of != costs[i].number;
        kprof_strbuf_printf(out, "%s%s%s%s %s%s%s", out->length ? ", " : "", number, is_part ? " of " : "",
                            is_part ? whole : "", costs[i].one, kprof_ending((uint64_t)all, costs[i].of_several),
                            costs[i].about);
    }
}

/* The first one says enough of an instruction below its line. */
static void describe_stalls(const shown_code *shown, const shown_row *row, row_texts *out)
{
    enum { LEAST_PCT = 1 };
    const size_t told = row->line || shown->view != KPROF_VIEW_BOTH ? 3 : 1;
    for (size_t i = 0; i < 3; i++) {
        const kprof_profiled_reason *reason = kprof_profiled_stall(shown->code, row->values, i, &out->stall_pcts[i]);
        out->stall_names[i][0] = '\0';
        if (!reason)
            continue;
        kprof_profiled_reason_name(reason, out->stall_names[i], sizeof out->stall_names[i]);
        if (i < told && (i == 0 || out->stall_pcts[i] >= LEAST_PCT))
            kprof_strbuf_printf(&out->stalls, "%s%s %.0f %%", i ? ", " : "", out->stall_names[i], out->stall_pcts[i]);
    }
}

/* A file that a compiler named by a hash would leave its table no room: "9ceafe2987...83.cubin.cu:11". The whole name
 * stands below all kernels. */
static void shorten_location(row_texts *texts)
{
    enum { MOST = 36, START = 10, END = 14 };
    size_t start = START, end = strlen(texts->location);
    if (end <= MOST)
        return;
    for (end -= END; kprof_utf8_continues(texts->location[end]);)
        end++;
    while (kprof_utf8_continues(texts->location[start]))
        start--;
    snprintf(texts->short_location, sizeof texts->short_location, "%.*s...%s", (int)start, texts->location,
             texts->location + end);
}

static void describe_row(const shown_code *shown, const shown_row *row, row_texts *out)
{
    const kprof_profiled_instruction *instruction = row->instruction;
    const kprof_profiled_frame *frame = place_of(shown, instruction);
    const size_t hottest = hottest_of(shown, row);
    const size_t awaited = kprof_profiled_row_awaited(shown->code, row->values, hottest);
    const kprof_profiled_instruction *called = hottest == SIZE_MAX ? NULL : &shown->code->instructions[hottest];
    *out = (row_texts){.stalls = KPROF_STRBUF_INIT, .costs = KPROF_STRBUF_INIT};
    out->file = row->line ? row->line->file : frame ? frame->file : NULL;
    out->line = row->line ? row->line->line : frame ? frame->line : 0;
    if (out->file)
        kprof_code_put_place(out->location, sizeof out->location, out->file, out->line);
    else if (row->line)
        snprintf(out->location, sizeof out->location, "no line");
    shorten_location(out);
    if (instruction)
        snprintf(out->address, sizeof out->address, "0x%04lx", instruction->offset);
    if (instruction)
        snprintf(out->below, sizeof out->below, "  %s  %s", out->address, instruction->text ? instruction->text : "");
    if (awaited != SIZE_MAX)
        describe_wait(shown, awaited, out->waits, sizeof out->waits);
    const bool is_callee =
        row->line ? shown->page->context->options->inlined == KPROF_INLINED_CALLEE : shown->view != KPROF_VIEW_BOTH;
    if (called && called->frame_count > 1 && is_callee)
        describe_frames(shown, called, out);
    describe_callers(shown, row, out);
    describe_stalls(shown, row, out);
    describe_costs(shown, row, &out->costs);
    if (row->line && out->file)
        out->source = kprof_source_text_line(text_of(shown->page, out->file), out->line);
}

static const char *text_or_null(const char *text)
{
    return text && *text ? text : NULL;
}

/* People see a line without its indent, and not more of it than is of use. */
static const char *start_of_source(row_texts *texts)
{
    static const char gap[] = "...";
    const char *text = texts->source ? texts->source + strspn(texts->source, " ") : NULL;
    size_t length = sizeof texts->source_start - sizeof gap;
    if (!text || strlen(text) < sizeof texts->source_start)
        return text;
    while (length > 0 && kprof_utf8_continues(text[length]))
        length--;
    snprintf(texts->source_start, sizeof texts->source_start, "%.*s%s", (int)length, text, gap);
    return texts->source_start;
}

static kprof_emit_field optional_integer(const char *key, const char *label, bool is_there, uint64_t value)
{
    return kprof_field_real(key, label, is_there ? (double)value : NAN);
}

/* The row's place in the code. */
static size_t put_place_fields(const shown_code *shown, const shown_row *row, const row_texts *texts,
                               kprof_emit_field *out)
{
    const kprof_profiled_instruction *instruction = row->instruction;
    const kprof_profiled_frame *frame = place_of(shown, instruction);
    const char *of_kernel = instruction ? shown->code->functions[instruction->function].demangled : NULL;
    const char *function = row->line ? row->line->function : frame && frame->function ? frame->function : of_kernel;
    const bool has_lines = kprof_profiled_has_lines(shown->code);
    const bool is_below = shown->view == KPROF_VIEW_BOTH && instruction;
    const uint64_t base = instruction ? shown->code->functions[instruction->function].base : 0;
    const uint64_t in_code = instruction ? base + instruction->offset : 0;
    size_t count = 0;
    kprof_emit_field location = kprof_field_text("location", "Line", text_or_null(texts->location));
    location.short_text = is_below ? texts->below : text_or_null(texts->short_location);
    kprof_emit_field address = kprof_field_text("address", "Address", text_or_null(texts->address));
    kprof_emit_field text = kprof_field_text("instruction", "Instruction", instruction ? instruction->text : NULL);
    address.missing = text.missing = "";
    location.missing = is_below ? texts->below : "";
    out[count++] = shown_if(location, has_lines);
    out[count++] = machine(kprof_field_text("file", "File", texts->file ? texts->file->path : NULL));
    out[count++] = machine(optional_integer("line", "Line", texts->line > 0, texts->line));
    out[count++] =
        shown_if(kprof_field_text("function", "Function", function, .folds = true), shown->code->function_count > 1);
    out[count++] = shown_if(address, shown->view == KPROF_VIEW_SASS);
    out[count++] =
        machine(optional_integer("offset", "Offset", instruction != NULL, instruction ? instruction->offset : 0));
    out[count++] = machine(optional_integer("code_offset", "Offset in the code", instruction != NULL, in_code));
    out[count++] = shown_if(text, shown->view == KPROF_VIEW_SASS && kprof_profiled_has_text(shown->code));
    if (shown->view == KPROF_VIEW_BOTH) /* for formats that show no short texts */
        out[count++] =
            kprof_field_text("below", "Instruction", instruction ? texts->below + strspn(texts->below, " ") : "",
                             .role = KPROF_ROLE_PEOPLE);
    out[count++] = machine(kprof_field_text("space", "Space", instruction ? instruction->space : NULL));
    out[count++] = machine(kprof_field_text("operation", "Operation", instruction ? instruction->operation : NULL));
    out[count++] = machine(optional_integer("access_bits", "Access size", instruction && instruction->space,
                                            instruction ? instruction->access_bits : 0));
    return count;
}

static size_t put_sample_fields(const shown_code *shown, const shown_row *row, const row_texts *texts,
                                kprof_emit_field *out)
{
    static const char *const keys[][2] = {
        {"stall_1", "stall_1_pct"}, {"stall_2", "stall_2_pct"}, {"stall_3", "stall_3_pct"}};
    const double samples = kprof_profiled_number(shown->code, row->values, KPROF_NUMBER_SAMPLES);
    const bool was_sampled = shown->samples > 0;
    size_t count = 0;
    const kprof_emit_field stalls =
        or_nothing(kprof_field_text("stalls", "Top stalls", kprof_strbuf_or_null(&texts->stalls), .folds = true));
    out[count++] = shown_if(
        kprof_field_pct("samples_pct", "Samples", was_sampled ? 100 * samples / shown->samples : NAN), was_sampled);
    out[count++] = shown_if(stalls, was_sampled);
    for (size_t i = 0; i < 3; i++) {
        out[count++] = machine(kprof_field_text(keys[i][0], "Stall", text_or_null(texts->stall_names[i])));
        out[count++] = machine(kprof_field_pct(keys[i][1], "Of samples", texts->stall_pcts[i]));
    }
    return count;
}

/* Do people see a column of this number? */
static bool is_column(const shown_code *shown, kprof_code_number number)
{
    if (number == KPROF_NUMBER_SAMPLES || number == KPROF_NUMBER_UNISSUED)
        return false;
    if (number == KPROF_NUMBER_ACTIVE)
        return shown->diverges;
    return (shown->has_few || number == KPROF_NUMBER_INSTRUCTIONS) && !shown->is_idle[number];
}

static void show_row(shown_code *shown, const shown_row *row)
{
    source_page *page = shown->page;
    kprof_emit_field *fields = page->fields;
    row_texts texts;
    describe_row(shown, row, &texts);
    size_t count = put_place_fields(shown, row, &texts, fields);
    count += put_sample_fields(shown, row, &texts, fields + count);
    for (size_t i = 0; i < KPROF_NUMBER_COUNT; i++) {
        const double value = kprof_profiled_number(shown->code, row->values, (kprof_code_number)i);
        kprof_emit_field field = kprof_field_real(kprof_code_numbers[i].key, kprof_code_numbers[i].label, value);
        field.is_idle = shown->is_idle[i] && !shown->has[kprof_code_numbers[i].memory]; /* no row can have it */
        fields[count++] = shown_if(field, is_column(shown, (kprof_code_number)i));
    }
    kprof_emit_field source = kprof_field_text("source", "Source", texts.source, .plain = true);
    source.short_text = start_of_source(&texts);
    fields[count++] = note(source);
    fields[count++] = note(kprof_field_text("in_library", "In", text_or_null(texts.library)));
    fields[count++] = note(kprof_field_text("called_from", "Called from", text_or_null(texts.caller),
                                            .short_text = text_or_null(texts.callers)));
    fields[count++] = note(kprof_field_text("waits_for", "Waits for", text_or_null(texts.waits)));
    fields[count++] = note(kprof_field_text("costs", "Costs", kprof_strbuf_or_null(&texts.costs)));
    for (size_t i = 0; i < page->metric_count; i++) {
        const double value = shown->columns[i] == SIZE_MAX ? NAN : row->values[shown->columns[i]];
        const char *name = page->model->metrics[page->metrics[i]].name;
        const bool is_idle = isnan(value) || !(shown->code->totals[shown->columns[i]] > 0);
        fields[count] = shown_if(kprof_field_real(name, name, value),
                                 shown->has_few && !is_idle && kprof_code_counter_is_alone(name));
        fields[count++].is_idle = is_idle;
    }
    page->emitter->ops->row(page->emitter, &(kprof_emit_record){fields, count});
    KPROF_FREE_TEXTS(&texts.stalls, &texts.costs);
    free(texts.source);
}

KPROF_BY_BOTH(by_heat, shown_row, KPROF_COMPARE(b->heat, a->heat), KPROF_COMPARE(a->order, b->order))

static size_t make_rows(const shown_code *shown, shown_row *rows)
{
    const kprof_profiled_code *code = shown->code;
    const bool are_lines = shown->view != KPROF_VIEW_SASS;
    const size_t count = are_lines ? shown->lines->count : code->instruction_count;
    for (size_t i = 0; i < count; i++) {
        const kprof_profiled_line *line = are_lines ? &shown->lines->items[i] : NULL;
        const double *values = line ? line->values : kprof_profiled_values(code, i);
        const double heat = shown->heat == KPROF_NUMBER_COUNT ? values[shown->heat_column]
                                                              : kprof_profiled_number(code, values, shown->heat);
        rows[i] = (shown_row){line, line ? NULL : &code->instructions[i], values, isnan(heat) ? 0 : heat, i};
    }
    return count;
}

static void show_rows(shown_code *shown)
{
    const kprof_print_options *options = shown->page->context->options;
    kprof_emitter *emitter = shown->page->emitter;
    const size_t most = shown->lines->count + shown->code->instruction_count;
    KPROF_AUTO_FREE shown_row *rows = kprof_calloc(most + 1, sizeof *rows);
    const size_t count = make_rows(shown, rows);
    const bool is_sorted = !options->all_rows || options->sort >= KPROF_SORT_SAMPLES;
    if (is_sorted && count > 1)
        qsort(rows, count, sizeof *rows, by_heat);
    for (size_t i = 0; i < count && kprof_emitter_status(emitter) == KPROF_OK; i++) {
        const bool is_cold = !options->all_rows && options->top > 0 && (i >= options->top || !(rows[i].heat > 0));
        if (is_cold)
            break;
        show_row(shown, &rows[i]);
        for (size_t k = 0; shown->view == KPROF_VIEW_BOTH && k < rows[i].line->count; k++) {
            const size_t number = shown->lines->members[rows[i].line->first + k];
            show_row(shown, &(shown_row){.instruction = &shown->code->instructions[number],
                                         .values = kprof_profiled_values(shown->code, number)});
        }
    }
    shown->is_cold = count > 0 && !(rows[0].heat > 0) && !options->all_rows && options->top > 0;
}

/* As in merged reports. */
static bool has_several_processes(const kprof_code_profiles *profiles)
{
    return KPROF_ANY(i, profiles->count, profiles->items[i].process != profiles->items[0].process);
}

/* "7,182 samples of 1 launch, one every 256 cycles; counters of 1 launch". */
static void describe_profile(const shown_code *shown, kprof_strbuf *out)
{
    const kprof_code_profile *profile = shown->code->profile;
    char samples[KPROF_NUMBER_SIZE];
    if (profile->sampled > 0) {
        kprof_number_grouped(samples, shown->samples, (kprof_number_style){0});
        kprof_strbuf_printf(out, "%s samples of %lu launch%s", samples, profile->sampled,
                            kprof_ending(profile->sampled, "es"));
        if (profile->period_cycles > 0)
            kprof_strbuf_printf(out, ", one every %lu cycles", profile->period_cycles);
        else
            kprof_strbuf_puts(out, ", at several intervals");
    }
    if (profile->dropped > 0)
        kprof_strbuf_printf(out, ", %lu dropped", profile->dropped);
    if (profile->counted > 0)
        kprof_strbuf_printf(out, "%scounters of %lu launch%s", out->length > 0 ? "; " : "", profile->counted,
                            kprof_ending(profile->counted, "es"));
}

/* Are its values those of one launch, and does the report keep other launches of the kernel apart? */
static bool is_one_of_several(const source_page *page, const kprof_code_profile *profile)
{
    return profile->counted <= 1 && profile->sampled <= 1 &&
           KPROF_ANY(i, page->profiles->count,
                     page->profiles->items[i].kernel == profile->kernel && page->profiles->items[i].id != profile->id);
}

static void show_heading(shown_code *shown)
{
    const kprof_code_profile *profile = shown->code->profile;
    kprof_emitter *emitter = shown->page->emitter;
    static const char *const views[] = {[KPROF_VIEW_SASS] = "sass",
                                        [KPROF_VIEW_CUDA] = "cuda",
                                        [KPROF_VIEW_BOTH] = "cuda,sass",
                                        [KPROF_VIEW_PTX] = "ptx"};
    char room[96];
    const char *shape = text_or_null(kprof_shapes_text(&profile->shape, room));
    KPROF_AUTO(kprof_strbuf) measured = KPROF_STRBUF_INIT;
    describe_profile(shown, &measured);
    const kprof_emit_field fields[] = {
        kprof_field_text("kernel", "Kernel", name_of(shown->page, profile), .plain = true,
                         .short_text = short_name_of(shown->page, profile)),
        machine(kprof_field_text("kernel_function", "Function", profile->kernel->function)),
        shown_if(kprof_field_integer("process_id", "Process", profile->process->pid),
                 has_several_processes(shown->page->profiles)),
        shown_if(kprof_field_text("shape", "Shape", shape, .plain = true), shape != NULL),
        kprof_field_text("device_name", "Device", profile->device->name, .plain = true),
        shown_if(kprof_field_integer("launch", "Launch", profile->launch), is_one_of_several(shown->page, profile)),
        machine(kprof_field_integer("launches_counted", "Counted", profile->counted)),
        machine(kprof_field_integer("launches_sampled", "Sampled", profile->sampled)),
        machine(kprof_field_real("samples_of_kernel", "Samples", shown->samples)),
        machine(kprof_field_integer("period_cycles", "Period", profile->period_cycles)),
        machine(kprof_field_integer("samples_dropped", "Dropped", profile->dropped)),
        machine(kprof_field_text("reason", "Reason", text_or_null(profile->reason))),
        machine(kprof_field_text("view", "View", views[shown->view])),
        kprof_field_text("measured", "Measured", measured.length > 0 ? measured.data : "nothing", .plain = true),
    };
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

static size_t find_advice(const source_page *page, const char *mangled)
{
    size_t i = page->profiles->takes_ptx ? 0 : 1;
    const bool is_cpp = strncmp(mangled, "_Z", 2) == 0;
    while (i > 0 && (!strstr(mangled, advices[i].word) || (advices[i].is_plain && is_cpp)))
        i++;
    return i;
}

/* Tell once how the kernels so far get lines. */
static void note_advice(source_page *page, const char *kernel)
{
    for (size_t i = 0; i < COUNT_OF(advices); i++) {
        if (page->is_advised[i])
            add_note(page, kernel, kprof_strdup(advices[i].text));
        page->is_advised[i] = false;
    }
}

/* Code that a compiler made of PTX without lines has those of the PTX at least. */
static void note_lines(source_page *page, const kprof_profiled_code *code, const char *state)
{
    const bool is_ptx = page->profiles->takes_ptx, has_ptx = !is_ptx && kprof_profiled_has_ptx(code);
    state = is_ptx ? "" : state;
    if (!has_ptx)
        page->is_advised[find_advice(page, code->profile->kernel->mangled)] = true;
    note_kernel(page, code->profile,
                kprof_strprintf("the lines%s of its instructions are not known%s%s%s", is_ptx ? " of PTX" : "",
                                *state ? ": " : "", state,
                                has_ptx ? "; those of its PTX are (--print-source ptx)" : ""));
}

/* The values of several codes of one name and shape add up. */
static void note_codes(const shown_code *shown)
{
    const kprof_profiled_code *code = shown->code;
    const size_t count =
        KPROF_SUM(i, code->function_count, strcmp(code->functions[i].mangled, code->profile->kernel->mangled) == 0);
    if (count >= 2)
        note_kernel(
            shown->page, code->profile,
            kprof_strprintf("%zu codes of this name ran in this shape, as where it is compiled while the program "
                            "runs: their lines add up, and each has its own addresses",
                            count));
}

/* Why are there no lines, and no texts? */
static void note_missing(shown_code *shown)
{
    const kprof_profiled_code *code = shown->code;
    source_page *page = shown->page;
    const kprof_profiled_function *function = code->function_count > 0 ? code->functions : NULL;
    note_codes(shown);
    if (*code->profile->reason)
        note_kernel(page, code->profile, kprof_strdup(code->profile->reason));
    if (function && !kprof_profiled_has_lines(code))
        note_lines(page, code, function->line_state);
    if (function && !kprof_profiled_has_text(code)) {
        const char *state = function->text_state;
        note_kernel(page, code->profile,
                    kprof_strprintf("its instructions have no text%s%s", *state ? ": " : "", state));
    }
}

static void show_code(shown_code *shown)
{
    const kprof_print_options *options = shown->page->context->options;
    const kprof_profiled_code *code = shown->code;
    source_page *page = shown->page;
    const bool has_lines = kprof_profiled_has_lines(code);
    const kprof_source_view best = has_lines ? KPROF_VIEW_CUDA : KPROF_VIEW_SASS;
    shown->view = options->source_view == KPROF_VIEW_BEST || !has_lines ? best : options->source_view;
    examine(shown);
    shown->heat = heat_of(page, shown);
    for (size_t i = 0; i < page->metric_count; i++)
        shown->columns[i] = SIZE_MAX;
    for (size_t i = 0, k = 0; i < code->metric_count; i++) { /* both rise */
        while (k < page->metric_count && page->metrics[k] < code->metrics[i])
            k++;
        if (k < page->metric_count && page->metrics[k] == code->metrics[i])
            shown->columns[k] = i;
    }
    show_heading(shown);
    show_rows(shown);
    page->emitter->ops->record_end(page->emitter);
    if (shown->is_cold && shown->heat < KPROF_NUMBER_COUNT) {
        /* No row is shown, since none has what they are sorted by. */
        const bool is_missing = isnan(total_of(shown, shown->heat));
        note_kernel(shown->page, shown->code->profile,
                    kprof_strprintf("none of its rows is shown, since the number that they are sorted by %s: %s",
                                    is_missing ? "was not measured" : "is 0 in all of them",
                                    kprof_code_numbers[shown->heat].label));
    }
    note_missing(shown);
}

static void show_profile(source_page *page, const kprof_code_profile *profile)
{
    kprof_profiled_lines lines = {0};
    const kprof_loaded_code *loaded = kprof_code_load(page->profiles, profile);
    if (!loaded)
        return;
    shown_code shown = {.page = page, .code = &loaded->code, .lines = &loaded->lines};
    const bool is_outer = page->context->options->inlined == KPROF_INLINED_CALLER;
    if (is_outer || kprof_format_is_of_ncu(page->context->options)) {
        kprof_profiled_lines_make(&loaded->code, is_outer ? KPROF_FRAME_OUTERMOST : KPROF_FRAME_INNERMOST, &lines);
        shown.lines = &lines;
    }
    shown.columns = kprof_pool_calloc(loaded->code.pool, page->metric_count + 1, sizeof *shown.columns);
    show_code(&shown);
}

static const char *const file_states[] = {
    [KPROF_SOURCE_STORED] = "text from the report",
    [KPROF_SOURCE_FOUND] = "text from this machine",
    [KPROF_SOURCE_UNCHECKED] = "text from this machine; the report does not tell whether it is the same",
    [KPROF_SOURCE_CHANGED] =
        "no text: the file here is not the one that was compiled; --source-folders DIR tells where that is",
    [KPROF_SOURCE_LINK] = "no text: a link, which is not followed; --resolve-source-file FILE names the file",
    [KPROF_SOURCE_UNKNOWN] =
        "no text: nobody knows whether the file here is the one that was compiled; --resolve-source-file shows it",
    [KPROF_SOURCE_DENIED] = "no text: you may not read the file; --source-folders DIR tells where another one is",
    [KPROF_SOURCE_TOO_LARGE] = "no text: the file here is larger than any that kprof reads",
    [KPROF_SOURCE_MISSING] = "no text: not found; --source-folders DIR tells where it is",
};

/* Tell of each file that rows name where its text comes from. */
static void show_files(source_page *page)
{
    kprof_emitter *emitter = page->emitter;
    kprof_list_begin(emitter, "files", "Source files", KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < page->profiles->file_count; i++) {
        if (!page->is_looked_for[i])
            continue;
        const kprof_code_file *file = &page->profiles->files[i];
        const kprof_emit_field fields[] = {
            kprof_field_text("path", "File", file->path),
            machine(optional_integer("bytes", "Bytes", file->bytes >= 0, (uint64_t)file->bytes)),
            machine(kprof_field_text("hash", "Hash", file->hash)),
            kprof_field_text("state", "Text", file_states[page->texts[i].state]),
        };
        kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

/* Has the note an equal one before it, of the kernel or of any? */
static bool is_told_before(const source_page *page, const source_note *note, bool of_any)
{
    const source_note *other = page->notes;
    while (other < note && (strcmp(other->text, note->text) != 0 ||
                            (!of_any && (!other->kernel || !note->kernel || strcmp(other->kernel, note->kernel) != 0))))
        other++;
    return other < note;
}

/* The further kernels with this note. */
static size_t count_others(const source_page *page, const source_note *note)
{
    const size_t behind = page->note_count - (size_t)(note - page->notes) - 1;
    return KPROF_SUM(i, behind,
                     strcmp(note[i + 1].text, note->text) == 0 && !is_told_before(page, &note[i + 1], false));
}

/* The notes are all that the page has where nothing was measured. People see a note once that is the same for many
 * kernels. */
static void show_notes(source_page *page)
{
    kprof_emitter *emitter = page->emitter;
    const bool has_others = KPROF_ANY(i, page->note_count, count_others(page, &page->notes[i]) > 0);
    kprof_list_begin(emitter, "notes", "Notes", KPROF_LIST_TABLE, true);
    for (size_t i = 0; i < page->note_count; i++) {
        const source_note *note = &page->notes[i];
        const bool is_first = !is_told_before(page, note, true);
        const size_t count = is_first ? count_others(page, note) : 0;
        const kprof_emit_field others = or_nothing(optional_integer("others", "Others", count > 0, count));
        const kprof_emit_field fields[] = {
            shown_if(kprof_field_text("kernel", "Kernel", note->kernel, .short_text = note->short_name),
                     is_first && note->kernel != NULL),
            shown_if(others, is_first && has_others),
            shown_if(kprof_field_text("note", "Note", note->text), is_first),
        };
        if (!is_told_before(page, note, false))
            kprof_show_record(emitter, fields, COUNT_OF(fields));
    }
    emitter->ops->list_end(emitter);
}

static kprof_status take_launch(void *user, const kprof_model_launch *launch)
{
    source_page *page = user;
    kprof_code_profile *profile = kprof_code_profile_of(page->profiles, launch->id);
    if (profile && profile->taken++ == 0)
        profile->shape = launch->record;
    return KPROF_OK;
}

static kprof_status take_launches(source_page *page)
{
    const kprof_print_options *options = page->context->options;
    const kprof_model_walk walk = {page->profiles->report, page->model, options->filter, false};
    return options->condition_count > 0 ? kprof_page_walk(page->context, take_launch, page)
                                        : kprof_model_launches(&walk, take_launch, page);
}

/* Find the columns of rows, and get room for them. */
static void prepare(source_page *page)
{
    enum { OTHER_FIELDS = 32 };
    const kprof_model *model = page->model;
    page->metrics = kprof_pool_calloc(model->pool, model->metric_count + 1, sizeof *page->metrics);
    page->texts = kprof_pool_calloc(model->pool, page->profiles->file_count + 1, sizeof *page->texts);
    page->is_looked_for = kprof_pool_calloc(model->pool, page->profiles->file_count + 1, sizeof *page->is_looked_for);
    for (size_t i = 0; i < model->metric_count; i++)
        if (strcmp(model->metrics[i].kind, KPROF_INSTRUCTION_KIND) == 0 &&
            !kprof_instruction_is_of_launch(model->metrics[i].name)) /* older reports have such */
            page->metrics[page->metric_count++] = i;
    page->fields =
        kprof_pool_calloc(model->pool, OTHER_FIELDS + KPROF_NUMBER_COUNT + page->metric_count, sizeof *page->fields);
}

/* Tell which files of the lines have a text in this state: "softmax.py, standard.py: no text: not found". */
static void note_files(const shown_code *shown, kprof_source_state state)
{
    enum { TOLD = 5 };
    size_t count = 0;
    KPROF_AUTO(kprof_strbuf) names = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < shown->lines->count; i++) {
        const kprof_code_file *file = shown->lines->items[i].file;
        const bool is_next = file && (i == 0 || file != shown->lines->items[i - 1].file);
        if (!is_next || text_of(shown->page, file)->state != state)
            continue;
        if (count++ < TOLD)
            kprof_strbuf_printf(&names, "%s%s", count > 1 ? ", " : "", file->name);
    }
    if (count > TOLD)
        kprof_strbuf_printf(&names, " and %zu more", count - TOLD);
    if (count > 0)
        add_note(shown->page, NULL, kprof_strprintf("%s: %s", kprof_strbuf_text(&names), file_states[state]));
}

/* The texts of lines, and lines of the PTX with theirs. */
typedef struct whole_code {
    char **sources, **ptx_sources;
    const kprof_profiled_lines *ptx; /* NULL: not known */
} whole_code;

/* Give the emitter the code with the texts of its lines. */
static void emit_code(shown_code *shown, const whole_code *whole)
{
    source_page *page = shown->page;
    const kprof_code_profile *profile = shown->code->profile;
    const size_t first_note = page->note_count;
    char room[96];
    KPROF_AUTO(kprof_strbuf) measured = KPROF_STRBUF_INIT;
    examine(shown);
    describe_profile(shown, &measured);
    if (has_several_processes(page->profiles))
        kprof_strbuf_printf(&measured, "%s; process %ld", measured.length > 0 ? "" : "nothing", profile->process->pid);
    memset(page->is_advised, 0, sizeof page->is_advised);
    note_missing(shown);
    note_advice(page, NULL);
    for (kprof_source_state state = KPROF_SOURCE_CHANGED; state <= KPROF_SOURCE_MISSING; state++)
        note_files(shown, state);
    const size_t note_count = page->note_count - first_note;
    KPROF_AUTO_FREE const char **notes = kprof_calloc(note_count + 1, sizeof *notes);
    for (size_t i = 0; i < note_count; i++)
        notes[i] = page->notes[first_note + i].text;
    page->emitter->ops->code(page->emitter, &(kprof_emit_code){
                                                .profiles = page->profiles,
                                                .code = shown->code,
                                                .lines = shown->lines,
                                                .ptx = whole->ptx,
                                                .kernel = name_of(page, profile),
                                                .shape = text_or_null(kprof_shapes_text(&profile->shape, room)),
                                                .measured = measured.length > 0 ? measured.data : "nothing",
                                                .sources = whole->sources,
                                                .ptx_sources = whole->ptx_sources,
                                                .is_idle = shown->is_idle,
                                                .notes = notes,
                                                .note_count = note_count,
                                            });
}

/* The text of each line; NULL where there is none. */
static char **texts_of_lines(source_page *page, const kprof_loaded_code *loaded)
{
    const kprof_profiled_lines *lines = &loaded->lines;
    kprof_pool *pool = loaded->code.pool;
    char **texts = kprof_pool_calloc(pool, lines->count + 1, sizeof *texts);
    for (size_t i = 0; i < lines->count; i++)
        if (lines->items[i].file)
            texts[i] = kprof_pool_keep(
                pool, kprof_source_text_line(text_of(page, lines->items[i].file), lines->items[i].line));
    return texts;
}

static void show_whole_code(source_page *page, const kprof_code_profiles *of_ptx, const kprof_code_profile *profile)
{
    const kprof_loaded_code *loaded = kprof_code_load(page->profiles, profile);
    if (!loaded)
        return;
    const kprof_loaded_code *by_ptx = kprof_profiled_has_ptx(&loaded->code) ? kprof_code_load(of_ptx, profile) : NULL;
    shown_code shown = {.page = page, .code = &loaded->code, .lines = &loaded->lines, .view = KPROF_VIEW_BOTH};
    const whole_code whole = {.sources = texts_of_lines(page, loaded),
                              .ptx_sources = by_ptx ? texts_of_lines(page, by_ptx) : NULL,
                              .ptx = by_ptx ? &by_ptx->lines : NULL};
    emit_code(&shown, &whole);
}

/* Warn of files that the user has named and that no line of the report comes from. */
static void tell_strangers(const source_page *page)
{
    const kprof_strlist *files = page->context->options->source_files;
    const kprof_code_profiles *profiles = page->profiles;
    for (size_t i = 0; files && i < files->count; i++)
        if (!KPROF_ANY(k, profiles->file_count, kprof_source_same_end(profiles->files[k].path, files->items[i]) > 0))
            kprof_log(KPROF_LOG_WARNING, "--resolve-source-file %s: no line of the report is of a file of this name",
                      files->items[i]);
}

static void open_page(const kprof_page_context *context, bool takes_ptx, source_page *out)
{
    const kprof_model *model = &context->reports->model;
    const kprof_code_profiles *profiles = kprof_code_profiles_load(context->reports->file, model);
    *out = (source_page){
        .context = context, .model = model, .profiles = takes_ptx ? kprof_code_profiles_of_ptx(profiles) : profiles};
    out->names = kprof_page_whole_names(context->options, model);
    tell_strangers(out);
    prepare(out);
}

kprof_status kprof_page_show_code(kprof_emitter *emitter, const kprof_page_context *context)
{
    source_page page;
    open_page(context, false, &page);
    page.emitter = emitter;
    const kprof_code_profiles *profiles = page.profiles, *of_ptx = kprof_code_profiles_of_ptx(profiles);
    const kprof_status status = profiles->count > 0 ? take_launches(&page) : KPROF_OK;
    for (size_t i = 0; i < profiles->count && status == KPROF_OK; i++)
        if (profiles->items[i].taken > 0)
            show_whole_code(&page, of_ptx, &profiles->items[i]);
    kprof_source_index_free(&page.index);
    return status;
}

kprof_status kprof_page_source(const kprof_page_context *context)
{
    source_page page;
    open_page(context, context->options->source_view == KPROF_VIEW_PTX, &page);
    kprof_status status = take_launches(&page);
    if (status == KPROF_OK && !KPROF_ANY(i, page.profiles->count, page.profiles->items[i].taken > 0))
        status = kprof_fail(KPROF_NO_MATCH, "the instructions of these launches were not measured: kprof --set source "
                                            "-k KERNEL APPLICATION measures them, where it repeats launches");
    if (status != KPROF_OK)
        return status;
    page.emitter = kprof_page_begin(context);
    kprof_emitter *emitter = page.emitter;
    kprof_list_begin(emitter, "kernels", "Kernels", KPROF_LIST_CODE, false);
    for (size_t i = 0; i < page.profiles->count; i++)
        if (page.profiles->items[i].taken > 0)
            show_profile(&page, &page.profiles->items[i]);
    emitter->ops->list_end(emitter);
    note_advice(&page, "");
    show_files(&page);
    show_notes(&page);
    kprof_source_index_free(&page.index);
    return kprof_page_end(page.emitter, KPROF_OK);
}
