/* The table of the columns of launches, and what stands in them. */
#include "report/emit/columns.h"
#include "report/model/witness.h"

#include <string.h>

#define COLUMN(kind, id, title, is_there, value, ...) [KPROF_COLUMN_##id] = {#id, KPROF_CELL_##kind, __VA_ARGS__},
const kprof_column kprof_launch_columns[] = {KPROF_LAUNCH_COLUMNS(COLUMN)};

#define OF_METRIC(name, type)                                                                                          \
    {                                                                                                                  \
        .id = (name), .kind = KPROF_CELL_##type                                                                        \
    }
const kprof_column kprof_metric_columns[KPROF_METRIC_COLUMN_COUNT] = {
    OF_METRIC("section", TEXT), OF_METRIC("metric", TEXT),     OF_METRIC("unit", TEXT),
    OF_METRIC("value", REAL),   OF_METRIC("passes", TEXT),     OF_METRIC("samples", WHOLE),
    OF_METRIC("mad", REAL),     OF_METRIC("confidence", TEXT), OF_METRIC("message", TEXT),
};

/* "train.py:57 in step", and whose stack that is where it is not the launch's own. */
static void describe_stack(const kprof_model *model, const kprof_model_launch *launch, kprof_strbuf *out)
{
    const kprof_model_stack *stack = kprof_model_stack_of(model, launch);
    if (!stack)
        return;
    kprof_strbuf_puts(out, stack->line);
    if (strcmp(launch->stack_origin, "graph") == 0)
        kprof_strbuf_puts(out, ", the launch of its graph");
    else if (strcmp(launch->stack_origin, "capture") == 0)
        kprof_strbuf_puts(out, ", which made its graph's node");
    else if (strcmp(launch->stack_origin, "forward") == 0)
        kprof_strbuf_puts(out, ", whose backward pass this is");
}

kprof_launch_texts kprof_launch_texts_make(const kprof_model *model, const kprof_model_launch *launch,
                                           const char *kernel_base)
{
    kprof_launch_texts out = {.launch = launch, .kernel = kprof_model_kernel_name(launch->kernel, kernel_base)};
    if (launch->samples)
        kprof_samples_note(model, launch->samples, &out.samples_note);
    out.line = kprof_model_stack_of(model, launch) ? kprof_model_stack_of(model, launch)->line : "";
    describe_stack(model, launch, &out.launched_from);
    kprof_disagreements_describe(model, launch, &out.disagreements);
    return out;
}

void kprof_launch_texts_free(kprof_launch_texts *texts)
{
    KPROF_FREE_TEXTS(&texts->disagreements, &texts->samples_note, &texts->launched_from);
}

#define SET_WHOLE(value)  cell.whole = (int64_t)(value)
#define SET_TEXT(value)   cell.text = (value)
#define SET_DIGITS(value) cell.text = (value)
#define SET_SHAPE(value)  cell.shape = (value)
#define CELL(kind, id, name, there, value, ...)                                                                        \
    case KPROF_COLUMN_##id:                                                                                            \
        cell.title = (name);                                                                                           \
        cell.is_there = (there);                                                                                       \
        SET_##kind(value);                                                                                             \
        break;

kprof_cell kprof_launch_cell(const kprof_launch_texts *texts, kprof_column_id column)
{
    const kprof_model_launch *launch = texts->launch;
    const kprof_launch_record *record = &launch->record;
    const kprof_model_samples *samples = launch->samples;
    kprof_cell cell = {.text = ""};
    switch (column) {
        KPROF_LAUNCH_COLUMNS(CELL)
    case KPROF_COLUMN_COUNT:
        break;
    }
    cell.text = cell.text ? cell.text : ""; /* a buffer that nothing was put into */
    return cell;
}
