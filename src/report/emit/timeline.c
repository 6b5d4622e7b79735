/* Shows what a launch has over time as records. */
#include "report/emit/emit.h"

#include <math.h>

#define MOST_PARTS (KPROF_TIMELINE_SIZE - 3) /* without what is around them */
#define BESIDE     140                       /* columns of a line with room for the drawing behind numbers */

/* Is the format one that people read? */
static bool is_for_people(const kprof_emitter *emitter)
{
    return emitter->options->format == KPROF_FORMAT_TEXT || emitter->options->format == KPROF_FORMAT_MARKDOWN;
}

/* The line goes from 0, or the least value below it, to the most. */
void kprof_timeline_draw(const kprof_launch_timeline *timeline, const kprof_timeline_series *series, size_t width,
                         char out[KPROF_TIMELINE_SIZE])
{
    const double low = series->least < 0 ? series->least : 0, height = series->most - low;
    const size_t count = width >= KPROF_TIMELINE_SIZE ? MOST_PARTS : width > 3 ? width - 2 : 1;
    double parts[MOST_PARTS];
    kprof_timeline_resample(timeline, series, parts, count);
    for (size_t i = 0; i < count; i++) {
        const double share = height > 0 ? (parts[i] - low) / height : 0;
        out[1 + i] = kprof_timeline_shade(isnan(parts[i]) ? NAN : share);
    }
    out[0] = out[count + 1] = '|';
    out[count + 2] = '\0';
}

/* A row of people's table; where lines are short, the drawing stands below the numbers. */
static void show_series(kprof_emitter *emitter, const kprof_launch_timeline *timeline,
                        const kprof_timeline_series *series)
{
    enum { AROUND = 4 }; /* columns before what stands below a row */
    char line[KPROF_TIMELINE_SIZE];
    const size_t width = emitter->options->width ? emitter->options->width : SIZE_MAX;
    const bool is_beside = width >= BESIDE;
    kprof_timeline_draw(timeline, series, is_beside || width < AROUND ? SIZE_MAX : width - AROUND, line);
    const kprof_emit_field fields[] = {
        kprof_field_text("label", "Metric", series->label),
        kprof_field_value("minimum", "Least", series->least, series->unit),
        kprof_field_value("mean", "Mean", series->mean, series->unit),
        kprof_field_value("maximum", "Most", series->most, series->unit),
        kprof_field_text("line", "From begin to end", line, .plain = !is_beside,
                         .role = is_beside ? KPROF_ROLE_SHOWN : KPROF_ROLE_NOTE),
    };
    emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
}

static void show_rows(kprof_emitter *emitter, const kprof_launch_timeline *timeline)
{
    if (!is_for_people(emitter))
        emitter->ops->rows_begin(emitter, "samples");
    for (size_t i = 0; i < timeline->series_count; i++) {
        const kprof_timeline_series *series = &timeline->series[i];
        if (is_for_people(emitter))
            show_series(emitter, timeline, series);
        for (size_t k = series->first; k < series->first + series->count && !is_for_people(emitter); k++) {
            const kprof_emit_field fields[] = {
                kprof_field_text("metric", "Metric", series->metric->name),
                kprof_field_text("label", "Label", series->label),
                kprof_field_text("unit", "Unit", series->unit),
                kprof_field_integer("start_ns", "Start", timeline->samples[k].start_ns),
                kprof_field_integer("duration_ns", "Duration", timeline->samples[k].duration_ns),
                kprof_field_real("value", "Value", timeline->samples[k].value),
            };
            emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
        }
    }
}

void kprof_emit_timeline(kprof_emitter *emitter, const kprof_model_launch *launch,
                         const kprof_launch_timeline *timeline)
{
    KPROF_AUTO(kprof_launch_texts) texts = kprof_emitter_texts(emitter, launch);
    const double end_ns = timeline->series_count > 0 ? (double)timeline->end_ns : NAN;
    const double interval_ns = timeline->series_count > 0 ? (double)timeline->interval_ns : NAN;
    const kprof_emit_field fields[] = {
        kprof_field_text("kernel", "Kernel", texts.kernel, .plain = true),
        kprof_field_integer("launch", "Launch", launch->id),
        kprof_field_ns("sampled_ns", "Sampled", end_ns),
        kprof_field_ns("interval_ns", "Every", interval_ns),
        kprof_field_amount("laid_over", "Mean of launches", timeline->laid_over,
                           .role = timeline->laid_over > 1 ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
        kprof_field_text("reason", "Note", timeline->reason,
                         .role = timeline->reason ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
    };
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    show_rows(emitter, timeline);
    emitter->ops->record_end(emitter);
}
