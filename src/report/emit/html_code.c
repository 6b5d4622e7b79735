/* The code of a kernel as JSON: its lines and instructions as arrays, and once what they share. Numbers that are 0
 * everywhere are named, and left out. */
#include "report/emit/json_text.h"

#include <string.h>

/* Has it values of a counter that no number is made of? */
static bool is_lone_column(const kprof_profiled_code *code, size_t column)
{
    return code->totals[column] > 0 && kprof_profiled_lone_name(code, column);
}

/* Write what lines and instructions share: their numbers, and [reason, samples, ...] of what warps waited for. */
static void append_values(cJSON *array, const kprof_emit_code *emitted, const double *values)
{
    const kprof_profiled_code *code = emitted->code;
    cJSON *numbers = cJSON_CreateArray(), *stalls = cJSON_CreateArray();
    append(array, numbers);
    append(array, stalls);
    for (size_t i = 0; i < KPROF_NUMBER_COUNT; i++)
        if (!emitted->is_idle[i])
            append(numbers, kprof_json_number(kprof_profiled_number(code, values, (kprof_code_number)i)));
    for (size_t i = 0; i < code->metric_count; i++)
        if (is_lone_column(code, i))
            append(numbers, kprof_json_number(values[i]));
    for (size_t i = 0; i < code->reason_count; i++) {
        const size_t column = code->reasons[i].all;
        const kprof_stall_reason *reason = code->reasons[i].known;
        const bool waits = !reason || strcmp(reason->name, "selected") != 0;
        if (!waits || column == SIZE_MAX || !(values[column] > 0))
            continue;
        append(stalls, kprof_json_integer(i));
        append(stalls, kprof_json_number(values[column]));
    }
}

/* [what a row waits for], or [] */
static cJSON *waits_array(const kprof_profiled_code *code, const double *values, size_t hottest)
{
    const size_t awaited = kprof_profiled_row_awaited(code, values, hottest);
    cJSON *waits = cJSON_CreateArray();
    if (awaited != SIZE_MAX)
        append(waits, kprof_json_integer(awaited));
    return waits;
}

/* The line that leads to that of an instruction: of the PTX's the line that it was compiled of, else the kernel's own
 * that called the inlined function; NULL: there is none. */
static const kprof_profiled_frame *origin_of(const kprof_emit_code *emitted, size_t number, bool is_ptx)
{
    const kprof_profiled_instruction *instruction = &emitted->code->instructions[number];
    const size_t frame = instruction->first_frame + instruction->frame_count - 1;
    if (is_ptx)
        return kprof_profiled_place(emitted->code, number);
    return instruction->frame_count > 0 && frame > instruction->own_frame ? &emitted->code->frames[frame] : NULL;
}

static void append_frame(cJSON *array, const kprof_emit_code *emitted, const kprof_profiled_frame *frame)
{
    const bool is_known = frame && frame->line > 0;
    append(array, known(is_known, is_known ? frame->file - emitted->profiles->files : 0));
    append(array, known(is_known, is_known ? frame->line : 0));
}

/* Write the file and line of an instruction's origin, and of the place in a library; nothing where it has neither. */
static void append_frames(cJSON *array, const kprof_emit_code *emitted, size_t number, bool is_ptx)
{
    const kprof_profiled_frame *origin = origin_of(emitted, number, is_ptx),
                               *library = is_ptx ? NULL : kprof_profiled_library(emitted->code, number);
    if (origin || library)
        append_frame(array, emitted, origin);
    if (library)
        append_frame(array, emitted, library);
}

/* [function, offset, text, file, line, [the instruction that it waits for], numbers, stalls, and its frames] */
static cJSON *instruction_array(const kprof_emit_code *emitted, size_t number)
{
    const kprof_profiled_code *code = emitted->code;
    const kprof_profiled_instruction *instruction = &code->instructions[number];
    const kprof_profiled_frame *frame = kprof_profiled_place(code, number);
    cJSON *array = KPROF_JSON_ARRAY(
        kprof_json_integer(instruction->function), kprof_json_integer(instruction->offset), text_of(instruction->text),
        known(frame != NULL, frame ? frame->file - emitted->profiles->files : 0),
        known(frame != NULL, frame ? frame->line : 0), waits_array(code, kprof_profiled_values(code, number), number));
    append_values(array, emitted, kprof_profiled_values(code, number));
    append_frames(array, emitted, number, false);
    return array;
}

/* [file, line, function, text, instructions, [what the hottest waits for], numbers, stalls, and frames of the hottest
 * instruction] */
static cJSON *line_array(const kprof_emit_code *emitted, size_t number, bool is_ptx)
{
    const kprof_profiled_lines *lines = is_ptx ? emitted->ptx : emitted->lines;
    const kprof_profiled_line *line = &lines->items[number];
    const kprof_profiled_code *code = emitted->code;
    const size_t *members = lines->members + line->first;
    const size_t hottest = kprof_profiled_hottest(code, members, line->count);
    cJSON *instructions = KPROF_JSON_EACH(i, line->count, kprof_json_integer(members[i]));
    cJSON *array = KPROF_JSON_ARRAY(known(line->file != NULL, line->file ? line->file - emitted->profiles->files : 0),
                                    known(line->file != NULL, line->line), text_of(line->function),
                                    text_of((is_ptx ? emitted->ptx_sources : emitted->sources)[number]), instructions,
                                    waits_array(code, line->values, hottest));
    append_values(array, emitted, line->values);
    append_frames(array, emitted, hottest == SIZE_MAX ? members[0] : hottest, is_ptx);
    return array;
}

static void add_columns(cJSON *object, const kprof_emit_code *emitted)
{
    cJSON *columns = add_array(object, "columns"), *zeros = add_array(object, "zeros");
    for (size_t i = 0; i < KPROF_NUMBER_COUNT; i++) {
        const double all = kprof_profiled_number(emitted->code, emitted->code->totals, (kprof_code_number)i);
        if (emitted->is_idle[i] && all == 0)
            append(zeros, cJSON_CreateString(kprof_code_numbers[i].label));
        if (!emitted->is_idle[i])
            append(columns,
                   KPROF_JSON_OBJECT({"key", text_of(kprof_code_numbers[i].key)},
                                     {"label", text_of(kprof_code_numbers[i].label)},
                                     {"help", text_of(kprof_instruction_label_help(kprof_code_numbers[i].label))},
                                     {"total", kprof_json_number(all)}));
    }
    for (size_t i = 0; i < emitted->code->metric_count; i++) {
        const char *name = kprof_profiled_lone_name(emitted->code, i);
        if (is_lone_column(emitted->code, i))
            append(columns, KPROF_JSON_OBJECT({"key", text_of(name)}, {"label", text_of(name)}, {"help", text_of(NULL)},
                                              {"total", kprof_json_number(emitted->code->totals[i])}));
    }
}

static cJSON *reasons_of(const kprof_profiled_code *code)
{
    cJSON *reasons = cJSON_CreateArray();
    for (size_t i = 0; i < code->reason_count; i++) {
        char name[128];
        kprof_profiled_reason_name(&code->reasons[i], name, sizeof name);
        append(reasons, cJSON_CreateString(name));
    }
    return reasons;
}

cJSON *kprof_html_code_files(const kprof_code_profiles *profiles)
{
    const kprof_code_file *files = profiles->files;
    return KPROF_JSON_OBJECT({"part", text_of("files")},
                             {"files", KPROF_JSON_EACH(i, profiles->file_count,
                                                       KPROF_JSON_OBJECT({"name", text_of(files[i].name)},
                                                                         {"path", text_of(files[i].path)}))});
}

/* `view`: the rows that the reader sees first. */
cJSON *kprof_html_code(const kprof_emit_code *emitted, kprof_source_view view)
{
    const kprof_profiled_code *code = emitted->code;
    const size_t lines = kprof_profiled_has_lines(code) ? emitted->lines->count : 0;
    const size_t ptx_lines = emitted->ptx ? emitted->ptx->count : 0;
    cJSON *object =
        KPROF_JSON_OBJECT({"part", text_of("code")}, {"id", kprof_json_integer(code->profile->id)},
                          {"kernel", text_of(emitted->kernel)}, {"shape", text_of(emitted->shape)},
                          {"device", text_of(code->profile->device->name)}, {"measured", text_of(emitted->measured)},
                          {"rows", text_of(view == KPROF_VIEW_SASS  ? "instructions"
                                           : view == KPROF_VIEW_PTX ? "ptx"
                                                                    : "lines")},
                          {"notes", cJSON_CreateStringArray(emitted->notes, (int)emitted->note_count)});
    add_columns(object, emitted);
    return KPROF_JSON_ADD(
        object, {"reasons", reasons_of(code)},
        {"functions", KPROF_JSON_EACH(i, code->function_count, text_of(code->functions[i].demangled))},
        {"lines", KPROF_JSON_EACH(i, lines, line_array(emitted, i, false))},
        {"ptx", KPROF_JSON_EACH(i, ptx_lines, line_array(emitted, i, true))},
        {"instructions", KPROF_JSON_EACH(i, code->instruction_count, instruction_array(emitted, i))});
}
