/* Sums up the rows of a census: sorts them so that those which belong together are neighbours, and joins these. */
#include "report/model/census.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int comparison(const kprof_census_total *a, const kprof_census_total *b);

static int compare_kernels(const kprof_census_total *a, const kprof_census_total *b)
{
    return strcmp(a->kernel->mangled, b->kernel->mangled);
}

static int compare_devices(const kprof_census_total *a, const kprof_census_total *b)
{
    const int kernels = compare_kernels(a, b);
    return kernels ? kernels : strcmp(a->device->name, b->device->name);
}

static int compare_numbers(const uint32_t *a, const uint32_t *b, size_t count)
{
    int order = 0;
    for (size_t i = 0; i < count && order == 0; i++)
        order = KPROF_COMPARE(a[i], b[i]);
    return order;
}

static int compare_shapes(const kprof_census_total *a, const kprof_census_total *b)
{
    const kprof_model_census *left = a->shape, *right = b->shape;
    int result = compare_devices(a, b);
    if (result == 0)
        result = compare_numbers(left->grid, right->grid, 3);
    if (result == 0)
        result = compare_numbers(left->block, right->block, 3);
    return result ? result : compare_numbers(&left->dynamic_smem_bytes, &right->dynamic_smem_bytes, 1);
}

static comparison *const comparisons[] = {compare_kernels, compare_devices, compare_shapes};

static int by_parts(const void *a, const void *b, void *parts)
{
    return comparisons[*(const kprof_census_parts *)parts](a, b);
}

KPROF_BY_BOTH(by_time, kprof_census_total, KPROF_COMPARE(b->total_ns, a->total_ns), compare_shapes(a, b))

kprof_census_total *kprof_census_find(const kprof_census *census, const kprof_census_total *wanted)
{
    size_t low = 0, high = census->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = comparisons[census->parts](wanted, &census->items[middle]);
        if (order == 0)
            return &census->items[middle];
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
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

static void sum_up(const kprof_model *model, comparison *compare, kprof_census *out)
{
    size_t count = 0;
    for (size_t i = 0; i < out->count; i++) {
        const kprof_census_total *own = &out->items[i];
        kprof_census_total *last = count > 0 ? &out->items[count - 1] : NULL;
        out->kernels += !last || compare_kernels(last, own) != 0;
        out->launches += own->launches;
        out->total_ns += own->total_ns;
        if (last && compare(last, own) == 0) {
            last->launches += own->launches;
            last->total_ns += own->total_ns;
            last->shortest_ns = fmin(last->shortest_ns, own->shortest_ns);
            last->longest_ns = fmax(last->longest_ns, own->longest_ns);
        } else {
            out->items[count++] = *own;
        }
    }
    out->count = count;
    KPROF_AUTO_FREE bool *is_census = kprof_calloc(model->process_count + 1, sizeof *is_census);
    for (size_t i = 0; i < model->census_count; i++)
        is_census[model->census[i].process_id - 1] = true;
    /* Launches that processes of the census say that they made. */
    out->counted =
        KPROF_SUM(i, model->process_count,
                  is_census[i] && model->processes[i].launches > 0 ? (uint64_t)model->processes[i].launches : 0);
}

kprof_status kprof_census_make(const kprof_model_walk *walk, kprof_census_parts parts, kprof_census *out)
{
    const kprof_model *model = walk->model;
    *out = (kprof_census){.parts = parts, .count = model->census_count};
    if (model->census_count == 0)
        return KPROF_OK;
    out->items = kprof_pool_calloc(model->pool, model->census_count, sizeof *out->items);
    for (size_t i = 0; i < model->census_count; i++) {
        const kprof_model_census *row = &model->census[i];
        out->items[i] = (kprof_census_total){.kernel = &model->kernels[row->kernel_id - 1],
                                             .device = &model->devices[row->device_id - 1],
                                             .shape = row,
                                             .launches = row->launches,
                                             .total_ns = (double)row->total_ns,
                                             .shortest_ns = (double)row->shortest_ns,
                                             .longest_ns = (double)row->longest_ns};
    }
    qsort_r(out->items, out->count, sizeof *out->items, by_parts, &parts);
    sum_up(model, comparisons[parts], out);
    return kprof_model_launches(walk, count_measured, out);
}

/* May the filter leave out some launches of a kernel, whose shapes then need not be measured? */
static bool leaves_some_out(const kprof_filter_spec *spec)
{
    return kprof_filter_asks_nvtx(spec) || kprof_filter_asks_functions(spec) ||
           spec->launch_skip + spec->launch_skip_before_match > 0;
}

/* Add up the shapes of the chosen kernels that lack measured launches, or the kernels without any, where a filter looks
 * at what is around launches. A row of several shapes together has no grid. */
static kprof_status find_missing(const kprof_model_walk *walk, const kprof_filter_spec *spec, kprof_census_choice *out)
{
    kprof_census shapes;
    const uint64_t wanted = spec->launch_count;
    const bool by_kernel = leaves_some_out(spec);
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
