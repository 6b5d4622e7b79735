/* Sums up the rows of a census that belong together. */
#include "report/model/census.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Launches with one key are counted together. Caller frees. */
static char *make_key(kprof_census_parts parts, const kprof_census_total *of)
{
    const kprof_model_census *shape = of->shape;
    kprof_strbuf key = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&key, of->kernel->mangled);
    if (parts >= KPROF_CENSUS_OF_DEVICES)
        kprof_strbuf_printf(&key, "\n%s", of->device->name);
    if (parts == KPROF_CENSUS_OF_SHAPES)
        kprof_strbuf_printf(&key, "\n%u %u %u %u %u %u %u", shape->grid[0], shape->grid[1], shape->grid[2],
                            shape->block[0], shape->block[1], shape->block[2], shape->dynamic_smem_bytes);
    return kprof_strbuf_take(&key);
}

kprof_census_total *kprof_census_find(const kprof_census *census, const kprof_census_total *wanted)
{
    KPROF_AUTO_FREE char *key = make_key(census->parts, wanted);
    const size_t at = kprof_names_find(&census->keys, key);
    return at == KPROF_NAMES_NONE ? NULL : &census->items[at];
}

static int by_time(const void *a, const void *b)
{
    const kprof_census_total *left = a, *right = b;
    const int order = KPROF_COMPARE(right->total_ns, left->total_ns);
    return order ? order : strcmp(left->key, right->key);
}

void kprof_census_rank(kprof_census *census)
{
    if (census->count > 0)
        qsort(census->items, census->count, sizeof *census->items, by_time);
}

static kprof_status count_measured(void *user, const kprof_model_launch *launch)
{
    kprof_census *census = user;
    kprof_model_census shape = {.dynamic_smem_bytes = launch->record.dynamic_smem_bytes};
    memcpy(shape.grid, launch->record.grid, sizeof shape.grid);
    memcpy(shape.block, launch->record.block, sizeof shape.block);
    const kprof_census_total wanted = {.kernel = launch->kernel, .device = launch->device, .shape = &shape};
    kprof_census_total *found = launch->measured > 0 ? kprof_census_find(census, &wanted) : NULL;
    if (found)
        found->measured++;
    return KPROF_OK;
}

static void add_row(const kprof_model *model, const kprof_model_census *row, kprof_census *out)
{
    const kprof_census_total own = {
        .kernel = &model->kernels[row->kernel_id - 1], .device = &model->devices[row->device_id - 1], .shape = row};
    KPROF_AUTO_FREE char *key = make_key(out->parts, &own);
    size_t at;
    if (kprof_names_number(&out->keys, key, &at)) {
        kprof_census_total *added = KPROF_POOL_ADD(model->pool, out->items, out->count);
        *added = own;
        added->key = out->keys.copies.items[at];
        added->shortest_ns = (double)row->shortest_ns;
    }
    kprof_census_total *total = &out->items[at];
    total->launches += row->launches;
    total->total_ns += (double)row->total_ns;
    total->shortest_ns = fmin(total->shortest_ns, (double)row->shortest_ns);
    total->longest_ns = fmax(total->longest_ns, (double)row->longest_ns);
    out->launches += row->launches;
    out->total_ns += (double)row->total_ns;
}

kprof_status kprof_census_make(const kprof_model_walk *walk, kprof_census_parts parts, kprof_census *out)
{
    const kprof_model *model = walk->model;
    *out = (kprof_census){.parts = parts, .keys.pool = model->pool};
    if (model->census_count == 0)
        return KPROF_OK;
    KPROF_AUTO(kprof_names) kernels = {0};
    KPROF_AUTO_FREE bool *is_census = kprof_calloc(model->process_count + 1, sizeof *is_census);
    for (size_t i = 0; i < model->census_count; i++) {
        const kprof_model_census *row = &model->census[i];
        add_row(model, row, out);
        kprof_names_add(&kernels, model->kernels[row->kernel_id - 1].mangled, 0);
        is_census[row->process_id - 1] = true;
    }
    out->kernels = kernels.count;
    /* Launches that processes of the census say that they made. */
    out->counted =
        KPROF_SUM(i, model->process_count,
                  is_census[i] && model->processes[i].launches > 0 ? (uint64_t)model->processes[i].launches : 0);
    return kprof_model_launches(walk, count_measured, out);
}

/* Add up the shapes of the chosen kernels that lack measured launches, or the kernels without any, where a filter looks
 * at what is around launches. A row of several shapes together has no grid. */
static kprof_status find_missing(const kprof_model_walk *walk, const kprof_filter_spec *spec, kprof_census_choice *out)
{
    kprof_census shapes;
    const uint64_t wanted = spec->launch_count;
    /* The filter may leave out launches of a kernel: its shapes need not be measured then. */
    const bool by_kernel = kprof_filter_asks_nvtx(spec) || kprof_filter_asks_functions(spec) ||
                           spec->launch_skip + spec->launch_skip_before_match > 0;
    kprof_status status =
        kprof_census_make(walk, by_kernel ? KPROF_CENSUS_OF_KERNELS : KPROF_CENSUS_OF_SHAPES, &shapes);
    for (size_t i = 0; i < shapes.count && status == KPROF_OK; i++) {
        const kprof_census_total *total = &shapes.items[i];
        const bool has_all = total->measured >= (wanted < total->launches ? wanted : total->launches);
        if (has_all || (by_kernel && total->measured > 0) || (!by_kernel && total->shape->grid[0] == 0) ||
            !kprof_strlist_contains(&out->chosen, total->kernel->mangled))
            continue;
        out->missing_ns += total->total_ns;
        kprof_strlist_add_unique(&out->missing, total->kernel->mangled);
    }
    return status;
}

kprof_status kprof_report_choose(kprof_report *report, const kprof_filter_spec *spec, uint64_t most,
                                 kprof_census_choice *out)
{
    KPROF_AUTO(kprof_model) model = {0};
    kprof_census census = {0};
    kprof_filter *filter = NULL;
    *out = (kprof_census_choice){0};
    kprof_status status = kprof_model_load(report, &model);
    if (status != KPROF_OK)
        return status;
    const kprof_model_walk walk = {report, &model, NULL, false};
    status = kprof_filter_new(spec, &filter);
    KPROF_THEN(status, kprof_census_make(&walk, KPROF_CENSUS_OF_KERNELS, &census));
    kprof_census_rank(&census);
    out->kernels = census.kernels;
    out->launches = census.launches;
    out->total_ns = census.total_ns;
    for (size_t i = 0; i < census.count && status == KPROF_OK && (most == 0 || out->chosen.count < most); i++) {
        const kprof_census_total *total = &census.items[i];
        if (!kprof_filter_match_name(filter, total->kernel->mangled))
            continue;
        kprof_strlist_add(&out->chosen, total->kernel->mangled);
        out->chosen_ns += total->total_ns;
    }
    KPROF_THEN(status, find_missing(&walk, spec, out));
    kprof_filter_free(filter);
    return status;
}
