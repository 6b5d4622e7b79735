/* Finds groups by keys: texts of what their launches have in common. Each kind of match has its own key. Names stand in
 * keys as numbers, so that keys stay short. */
#include "report/diff/pairs.h"
#include "report/store/limits.h"

#include <stdlib.h>
#include <string.h>

/* The numbers of the names of a report: [kernel_count], [device_count]. */
typedef struct name_numbers {
    size_t *demangled, *functions, *devices;
} name_numbers;

typedef struct grouping {
    const kprof_model_walk *walk;
    const name_numbers *numbers;
    kprof_work *work;
    kprof_names keys; /* -> index of the group */
    kprof_launch_group **groups;
    size_t *count;
} grouping;

/* The number of a text, the same for equal ones. */
static size_t number_text(kprof_names *texts, const char *text)
{
    size_t number;
    kprof_names_number(texts, text, &number);
    return number;
}

static void number_names(kprof_names *texts, const kprof_model *model, name_numbers *out)
{
    out->demangled = kprof_calloc(model->kernel_count + 1, sizeof *out->demangled);
    out->functions = kprof_calloc(model->kernel_count + 1, sizeof *out->functions);
    out->devices = kprof_calloc(model->device_count + 1, sizeof *out->devices);
    for (size_t i = 0; i < model->kernel_count; i++) {
        out->demangled[i] = number_text(texts, model->kernels[i].demangled);
        out->functions[i] = number_text(texts, model->kernels[i].function);
    }
    for (size_t i = 0; i < model->device_count; i++)
        out->devices[i] = number_text(texts, model->devices[i].name);
}

/* Append "65536,1,1". */
static void put_shape(kprof_strbuf *key, const uint32_t shape[3])
{
    kprof_strbuf_printf(key, "%u,%u,%u\n", shape[0], shape[1], shape[2]);
}

/* Caller frees. */
static char *make_key(const kprof_launch_group *group, kprof_match match)
{
    const kprof_launch_record *shape = &group->shape;
    kprof_strbuf key = KPROF_STRBUF_INIT;
    put_shape(&key, shape->grid);
    put_shape(&key, shape->block);
    put_shape(&key, shape->cluster);
    if (match < KPROF_MATCH_SHARED)
        kprof_strbuf_printf(&key, "%u %u\n", shape->dynamic_smem_bytes, group->kernel->record.static_smem_bytes);
    kprof_strbuf_printf(&key, "%zu\n", match == KPROF_MATCH_SAME ? group->device_name : SIZE_MAX);
    kprof_strbuf_printf(&key, "%zu", match == KPROF_MATCH_RENAMED ? group->function : group->demangled);
    return kprof_strbuf_take(&key);
}

/* Find the group of a launch, or add it. */
static kprof_launch_group *group_of(grouping *to, const kprof_model_launch *launch)
{
    const kprof_model *model = to->walk->model;
    const size_t kernel = (size_t)(launch->kernel - model->kernels);
    kprof_launch_group group = {.kernel = launch->kernel,
                                .device = launch->device,
                                .device_name = to->numbers->devices[launch->device - model->devices],
                                .demangled = to->numbers->demangled[kernel],
                                .function = to->numbers->functions[kernel],
                                .shape = launch->record,
                                .partner = SIZE_MAX};
    KPROF_AUTO_FREE char *key = make_key(&group, KPROF_MATCH_SAME);
    size_t index;
    if (kprof_names_number(&to->keys, key, &index)) {
        *KPROF_POOL_ADD(to->walk->model->pool, *to->groups, *to->count) = group;
        const uint64_t bytes = strlen(group.kernel->demangled) + strlen(group.kernel->function);
        kprof_work_charge(to->work, KPROF_WORK_OF_GROUP + KPROF_WORK_OF_NAME_BYTE * bytes);
    }
    return &(*to->groups)[index];
}

/* Do not mix values of replayed launches with those of samples. */
static void add_id(kprof_pool *pool, kprof_launch_group *group, const kprof_model_launch *launch)
{
    if (kprof_model_is_multiplexed(launch)) {
        group->multiplexed++;
        if (group->replayed > 0)
            return;
    } else if (group->replayed++ == 0) {
        group->id_count = 0;
    }
    *KPROF_POOL_ADD(pool, group->ids, group->id_count) = launch->id;
}

static kprof_status add_launch(void *user, const kprof_model_launch *launch)
{
    grouping *to = user;
    kprof_launch_group *group = group_of(to, launch);
    group->launches++;
    if (launch->measured > 0)
        add_id(to->walk->model->pool, group, launch);
    return to->work->reports[0]->status; /* which notes too much work */
}

/* Count the launches of each kernel that a report omits. There are `texts` names. */
static void find_untold(const grouping *to, size_t texts)
{
    const kprof_model *model = to->walk->model;
    kprof_launch_group *groups = *to->groups;
    KPROF_AUTO_FREE uint64_t *untold = kprof_calloc(texts + 1, sizeof *untold);
    for (size_t i = 0; i < model->kernel_count; i++)
        untold[to->numbers->demangled[i]] += model->kernels[i].launches;
    for (size_t i = 0; i < *to->count; i++) {
        uint64_t *of = &untold[groups[i].demangled];
        *of -= *of < groups[i].launches ? *of : groups[i].launches;
    }
    for (size_t i = 0; i < *to->count; i++)
        groups[i].untold = untold[groups[i].demangled];
}

/* Find the groups of both reports. */
static kprof_status find_all_groups(const kprof_model_walk walks[KPROF_SIDES], kprof_work *work,
                                    kprof_launch_pairs *out)
{
    name_numbers numbers[KPROF_SIDES] = {{NULL, NULL, NULL}, {NULL, NULL, NULL}};
    KPROF_AUTO(kprof_names) texts = {0};
    kprof_status status = KPROF_OK;
    for (int side = 0; side < KPROF_SIDES && status == KPROF_OK; side++) {
        grouping to = {&walks[side], &numbers[side], work, {0}, &out->groups[side], &out->group_counts[side]};
        kprof_model_walk without_values = walks[side];
        without_values.values = false;
        number_names(&texts, walks[side].model, &numbers[side]);
        status = kprof_model_launches(&without_values, add_launch, &to);
        find_untold(&to, texts.count);
        kprof_names_free(&to.keys);
    }
    for (int side = 0; side < KPROF_SIDES; side++)
        KPROF_FREE(numbers[side].demangled, numbers[side].functions, numbers[side].devices);
    return status;
}

/* Map the keys of the groups that have no partner yet; a key of several groups is marked at the first of them. */
static void map_keys(const kprof_launch_pairs *pairs, int side, kprof_match match, kprof_names *keys)
{
    kprof_launch_group *groups = pairs->groups[side];
    for (size_t i = 0; i < pairs->group_counts[side]; i++) {
        if (groups[i].partner != SIZE_MAX)
            continue;
        groups[i].is_one_of_several = false;
        groups[i].key = kprof_pool_keep(pairs->pool, make_key(&groups[i], match));
        size_t first = kprof_names_find(keys, groups[i].key);
        if (first != KPROF_NAMES_NONE)
            groups[first].is_one_of_several = true;
        else
            kprof_names_add(keys, groups[i].key, i);
    }
}

static void match_groups(kprof_launch_pairs *to, kprof_match match)
{
    kprof_names keys[KPROF_SIDES] = {{0}, {0}};
    kprof_launch_group *baseline = to->groups[KPROF_BASELINE], *newer = to->groups[KPROF_NEW];
    for (int side = 0; side < KPROF_SIDES; side++)
        map_keys(to, side, match, &keys[side]);
    for (size_t i = 0; i < to->group_counts[KPROF_NEW]; i++) {
        if (newer[i].partner != SIZE_MAX || newer[i].is_one_of_several ||
            kprof_names_find(&keys[KPROF_NEW], newer[i].key) != i)
            continue;
        size_t found = kprof_names_find(&keys[KPROF_BASELINE], newer[i].key);
        if (found == KPROF_NAMES_NONE || baseline[found].is_one_of_several)
            continue;
        baseline[found].partner = newer[i].partner = to->count;
        *KPROF_POOL_ADD(to->pool, to->pairs, to->count) = (kprof_launch_pair){{&baseline[found], &newer[i]}, match};
    }
    for (int side = 0; side < KPROF_SIDES; side++)
        kprof_names_free(&keys[side]);
}

static int by_new_group(const void *a, const void *b)
{
    const kprof_launch_pair *left = a, *right = b;
    return left->sides[KPROF_NEW] < right->sides[KPROF_NEW] ? -1 : 1;
}

kprof_status kprof_launch_pairs_find(const kprof_model_walk walks[KPROF_SIDES], kprof_work *work,
                                     kprof_launch_pairs *out)
{
    *out = (kprof_launch_pairs){.pool = walks[KPROF_BASELINE].model->pool};
    kprof_status status = find_all_groups(walks, work, out);
    for (kprof_match match = KPROF_MATCH_SAME; match < KPROF_MATCH_COUNT && status == KPROF_OK; match++)
        match_groups(out, match);
    if (out->count > 1)
        qsort(out->pairs, out->count, sizeof *out->pairs, by_new_group);
    for (size_t i = 0; i < out->count; i++)
        out->pairs[i].sides[KPROF_BASELINE]->partner = out->pairs[i].sides[KPROF_NEW]->partner = i;
    return status;
}
