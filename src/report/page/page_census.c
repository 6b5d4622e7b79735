/* The census page: how often each kernel was launched and how long that took, measured or not. */
#include "report/model/census.h"
#include "report/page/page.h"

#include <math.h>
#include <string.h>

/* Else the census stands beside what was measured. */
static bool is_page(const kprof_page_context *context)
{
    return strcmp(context->name, "census") == 0;
}

/* All rows share these. */
typedef struct shown_census {
    const kprof_page_context *context;
    const kprof_page_names *names;
    double all_ns; /* of all that was counted; NaN: none */
} shown_census;

/* All shapes of a kernel beyond those that a census tells apart have none. */
static kprof_emit_field shape_field(const char *key, const char *label, const uint32_t shape[3], char text[48])
{
    snprintf(text, 48, "(%u, %u, %u)", shape[0], shape[1], shape[2]);
    return kprof_field_text(key, label, shape[0] ? text : "other");
}

static void show_total(kprof_emitter *emitter, const shown_census *shown, const kprof_census_total *total)
{
    char grid[48], block[48];
    const bool has_shape = shown->context->options->group_by == KPROF_GROUP_CONFIG;
    const kprof_emit_field fields[] = {
        kprof_page_name_field(shown->context, shown->names, total->kernel),
        machine(kprof_field_text("function", "Function", total->kernel->function)),
        machine(kprof_field_text("device_name", "Device", total->device->name)),
        kprof_field_amount("launches", "Launches", total->launches),
        kprof_field_amount("measured", "Measured", total->measured),
        kprof_field_ns("time", "GPU time", total->total_ns),
        kprof_field_pct("time_share_pct", "Of time", 100 * total->total_ns / shown->all_ns),
        kprof_field_ns("mean", "Mean", total->total_ns / (double)total->launches),
        kprof_field_ns("minimum", "Shortest", total->shortest_ns),
        kprof_field_ns("maximum", "Longest", total->longest_ns),
        shape_field("grid", "Grid", total->shape->grid, grid),
        shape_field("block", "Block", total->shape->block, block),
        KPROF_FIELD("dynamic_smem", "Dynamic smem", .unit = "byte", .type = KPROF_FIELD_INTEGER,
                    .integer = total->shape->dynamic_smem_bytes),
    };
    kprof_show_record(emitter, fields, has_shape ? COUNT_OF(fields) : COUNT_OF(fields) - 3);
}

/* The share of the whole that is measured. */
static void show_coverage(kprof_emitter *emitter, const kprof_census *census)
{
    char coverage[128];
    const kprof_census_total *rows = census->items;
    const size_t measured = KPROF_SUM(i, census->count, rows[i].measured > 0);
    const double measured_ns = KPROF_SUM(i, census->count, rows[i].measured > 0 ? rows[i].total_ns : 0);
    const uint64_t untimed = census->counted > census->launches ? census->counted - census->launches : 0;
    const double share_pct = census->total_ns > 0 ? 100 * measured_ns / census->total_ns : NAN;
    const bool has_shapes = census->parts == KPROF_CENSUS_OF_SHAPES;
    snprintf(coverage, sizeof coverage, "%zu of %zu kernels%s, %.4g %% of GPU time", measured, census->count,
             has_shapes ? " and shapes" : "", share_pct);
    const kprof_emit_field fields[] = {
        kprof_field_amount("kernels", "Kernels", census->kernels),
        kprof_field_amount("launches", "Launches", census->launches),
        kprof_field_amount("untimed", "Launches not timed", untimed,
                           .role = untimed ? KPROF_ROLE_SHOWN : KPROF_ROLE_MACHINE),
        kprof_field_ns("time", "GPU time", census->total_ns),
        machine(kprof_field_amount("rows", "Rows", census->count)),
        machine(kprof_field_amount("measured_rows", "Rows with measured launches", measured)),
        machine(kprof_field_pct("measured_share_pct", "Their share of GPU time", share_pct)),
        kprof_field_text("coverage", "Measured", coverage, .role = KPROF_ROLE_PEOPLE),
    };
    kprof_list_begin(emitter, "census_total", "Census of all launches", KPROF_LIST_BLOCKS, true);
    kprof_show_record(emitter, fields, COUNT_OF(fields));
    emitter->ops->list_end(emitter);
}

static void show(kprof_emitter *emitter, const kprof_page_context *context, const kprof_census *census,
                 const kprof_page_names *names)
{
    const size_t most = context->options->top ? context->options->top : SIZE_MAX;
    const shown_census all = {context, names, census->total_ns > 0 ? census->total_ns : NAN};
    const size_t shown = census->count < most ? census->count : most;
    show_coverage(emitter, census);
    kprof_list_begin(emitter, "census", "Census", is_page(context) ? KPROF_LIST_MAIN : KPROF_LIST_TABLE,
                     !is_page(context));
    for (size_t i = 0; i < shown; i++)
        show_total(emitter, &all, &census->items[i]);
    emitter->ops->list_end(emitter);
    kprof_page_rest rest = {.rows = census->count - shown, .all_ns = all.all_ns};
    for (size_t i = shown; i < census->count; i++) {
        rest.time_ns += census->items[i].total_ns;
        rest.launches += census->items[i].launches;
    }
    kprof_page_show_rest(emitter,
                         &(kprof_emit_list){"census_left_out", "Left out of the census", KPROF_LIST_TABLE, true},
                         "GPU time", &rest);
}

kprof_status kprof_page_show_census(kprof_emitter *emitter, const kprof_page_context *context)
{
    const kprof_page_report *report = context->reports;
    const kprof_model_walk walk = {report->file, &report->model, context->options->filter, false};
    const bool has_shape = context->options->group_by == KPROF_GROUP_CONFIG;
    kprof_census census;
    kprof_page_names names;
    kprof_status status =
        kprof_census_make(&walk, has_shape ? KPROF_CENSUS_OF_SHAPES : KPROF_CENSUS_OF_DEVICES, &census);
    kprof_census_rank(&census);
    if (status == KPROF_OK && census.count > 0)
        kprof_page_names_new(context, &names);
    if (status == KPROF_OK && (census.count > 0 || is_page(context)))
        show(emitter, context, &census, &names);
    return status;
}

kprof_status kprof_page_census(const kprof_page_context *context)
{
    kprof_emitter *emitter = kprof_page_begin(context);
    return kprof_page_end(emitter, kprof_page_show_census(emitter, context));
}
