/* Reads files of aliases, and finds what stands for an alias on a chip or in a report. */
#include "metricset/alias.h"

#include "core/log.h"

#include <string.h>

#define MAX_NAME 64

/* A name that no metric, pattern or group can have, so that an alias never hides one. */
static kprof_status check_name(const kprof_json_place *place, const char *name)
{
    const kprof_json_place *at = KPROF_JSON_KEY(place, "name");
    const size_t length = strlen(name);
    if (length == 0 || length > MAX_NAME || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != length)
        return kprof_json_fail(at, "must have small letters, digits, \"_\" and \".\" alone, and at most %d of them",
                               MAX_NAME);
    if (name[0] == '.' || name[length - 1] == '.')
        return kprof_json_fail(at, "must have no \".\" at an end");
    return KPROF_OK;
}

/* An expression has a name for its value: "derived__fp32_flops" of "fp32.flops". */
static char *value_name(const char *alias)
{
    char *name = kprof_strprintf("derived__%s", alias);
    for (char *at = name; (at = strchr(at, '.'));)
        *at = '_';
    return name;
}

static kprof_status read_meaning(const kprof_json_place *place, const cJSON *value, kprof_alias *alias)
{
    const bool is_expression = cJSON_HasObjectItem(value, "expression");
    const bool has_choice = is_expression || cJSON_HasObjectItem(value, "metric");
    kprof_status status = KPROF_OK;
    if (is_expression)
        alias->item.name = kprof_pool_keep(kprof_json_pool(place), value_name(alias->name));
    if (has_choice || !cJSON_HasObjectItem(value, "closest"))
        status = kprof_item_choices_read(place, value, &alias->item);
    if (status == KPROF_OK && has_choice && cJSON_HasObjectItem(value, "closest"))
        status = kprof_json_fail(KPROF_JSON_KEY(place, "closest"),
                                 "is for an alias that nothing stands for, but there is a choice");
    return status;
}

static kprof_status read_alias(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const kprof_json_field fields[] = {KPROF_JSON_FIELD(kprof_alias, "name", TEXT, name, .is_needed = true),
                                              KPROF_JSON_FIELD(kprof_alias, "help", TEXT, item.help),
                                              KPROF_JSON_FIELD(kprof_alias, "unit", TEXT, item.unit),
                                              KPROF_JSON_FIELD(kprof_alias, "optional", FLAG, item.optional),
                                              KPROF_JSON_FIELD(kprof_alias, "closest", TEXTS, closest),
                                              {.key = "metric", .kind = KPROF_JSON_OTHER},
                                              {.key = "expression", .kind = KPROF_JSON_OTHER},
                                              {.key = "alternatives", .kind = KPROF_JSON_OTHER},
                                              {.key = NULL}};
    kprof_alias *alias = element;
    kprof_status status = kprof_json_read(place, value, fields, alias);
    KPROF_THEN(status, check_name(place, alias->name));
    alias->item.label = alias->name;
    return KPROF_THEN(status, read_meaning(place, value, alias));
}

static kprof_status check_unique(const kprof_json_place *place, const kprof_alias_file *file)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < file->count; i++)
        kprof_strlist_add(&names, file->aliases[i].name);
    kprof_strlist_sort(&names);
    for (size_t i = 1; i < names.count; i++)
        if (strcmp(names.items[i - 1], names.items[i]) == 0)
            return kprof_json_fail(KPROF_JSON_KEY(place, "aliases"), "has \"%s\" twice", names.items[i]);
    return KPROF_OK;
}

kprof_status kprof_alias_file_read(const kprof_json_place *place, const cJSON *value, kprof_alias_file *out)
{
    struct whole {
        kprof_alias_file file;
        char *name, *help;
        bool is_foreign;
    } whole = {.name = NULL};
    static const kprof_json_field fields[] = {
        KPROF_JSON_FIELD(struct whole, "id", TEXT, file.id, .is_needed = true),
        KPROF_JSON_FIELD(struct whole, "name", TEXT, name, .is_needed = true),
        KPROF_JSON_FIELD(struct whole, "help", TEXT, help),
        KPROF_JSON_FIELD(struct whole, "foreign", FLAG, is_foreign),
        KPROF_JSON_LIST(struct whole, "aliases", file.aliases, file.count, read_alias, kprof_alias),
        {.key = NULL}};
    kprof_status status = kprof_json_check_texts(place, value); /* messages and lists show them as they are */
    KPROF_THEN(status, kprof_json_read(place, value, fields, &whole));
    *out = whole.file;
    KPROF_THEN(status, check_unique(place, out));
    for (size_t i = 0; i < out->count && status == KPROF_OK; i++) {
        if (!whole.is_foreign && strstr(out->aliases[i].name, "__")) /* other tools may have names like metrics' */
            status = kprof_json_fail(KPROF_JSON_KEY(KPROF_JSON_ELEMENT(KPROF_JSON_KEY(place, "aliases"), i), "name"),
                                     "must have no \"__\", which metrics have");
        out->aliases[i].is_foreign = whole.is_foreign;
        out->aliases[i].origin = whole.name;
    }
    return status;
}

void kprof_alias_candidates(const kprof_alias *alias, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < alias->item.choice_count; i++)
        kprof_expr_names(alias->item.choices[i].compiled, &names);
    for (size_t i = 0; i < names.count; i++)
        if (!kprof_launch_metric_find(names.items[i]))
            kprof_strlist_add_unique(out, names.items[i]);
}

kprof_alias_entry kprof_alias_describe(const kprof_alias *alias)
{
    static const char *const none[] = {NULL};
    const kprof_item_definition *item = &alias->item;
    return (kprof_alias_entry){
        .name = alias->name,
        .origin = alias->origin,
        .help = item->help ? item->help : "",
        .stands_for = item->choice_count ? item->choices[0].text : NULL,
        .is_formula = item->name != NULL,
        .closest = alias->closest ? (const char *const *)alias->closest : none,
    };
}

static const kprof_choice *choose(const kprof_alias *alias, const kprof_name_supply *supply)
{
    for (size_t i = 0; i < alias->item.choice_count; i++) {
        KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
        kprof_expr_names(alias->item.choices[i].compiled, &names);
        const bool taken = KPROF_ALL(k, names.count, supply->has(supply->user, names.items[k]));
        if (taken)
            return &alias->item.choices[i];
    }
    return NULL;
}

void kprof_alias_choose(const kprof_alias *alias, const kprof_name_supply *supply, kprof_strlist *out)
{
    const char *value = alias->item.name; /* an expression whose value is there under its own name */
    if (value && supply->has(supply->user, value)) {
        kprof_strlist_add_unique(out, value);
        return;
    }
    const kprof_choice *choice = choose(alias, supply);
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    if (choice)
        kprof_expr_names(choice->compiled, &names);
    kprof_strlist_add_all_unique(out, &names);
}

static bool host_has(void *user, const char *name)
{
    return kprof_launch_metric_find(name) || kprof_host_can_collect(user, name);
}

const char *kprof_alias_on(const kprof_alias *alias, kprof_host *host)
{
    const kprof_choice *choice = choose(alias, &(kprof_name_supply){host_has, host});
    return choice ? choice->text : NULL;
}

static kprof_status fail_without(const kprof_alias *alias, kprof_host *host)
{
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    const kprof_item_definition *item = &alias->item;
    if (item->choice_count > 0)
        kprof_strbuf_printf(&text, "metric \"%s\" of %s is not available on %s, which cannot count %s", alias->name,
                            alias->origin, kprof_host_label(host), item->choices[0].text);
    else
        kprof_strbuf_printf(&text,
                            alias->is_foreign ? "metric \"%s\" of %s has no counterpart: %s"
                                              : "metric \"%s\" of %s cannot be collected: %s",
                            alias->name, alias->origin, item->help ? item->help : "nothing counts the same");
    const char *before = " What comes closest: ";
    for (char **name = alias->closest; name && *name; name++) {
        if (!kprof_host_has_metric(host, *name))
            continue;
        kprof_strbuf_printf(&text, "%s%s", before, *name);
        before = ", ";
    }
    return kprof_fail(KPROF_UNKNOWN_NAME, "%s", text.data);
}

kprof_status kprof_alias_resolve(const kprof_alias *alias, kprof_host *host, kprof_strlist *metrics, kprof_item *item)
{
    const kprof_name_supply supply = {host_has, host};
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    kprof_alias_candidates(alias, &candidates);
    kprof_status status = candidates.count > 0 ? kprof_host_check(host, &candidates) : KPROF_OK;
    if (status != KPROF_OK)
        return status;
    const kprof_choice *choice = choose(alias, &supply);
    if (!choice)
        return fail_without(alias, host);
    kprof_expr_names(choice->compiled, metrics);
    *item = kprof_item_of(&alias->item, choice, NULL);
    item->label = alias->item.name ? item->label : choice->text;
    return KPROF_OK;
}

kprof_status kprof_alias_select(const kprof_alias *alias, kprof_host *host, kprof_strlist *out)
{
    kprof_item item;
    return kprof_alias_resolve(alias, host, out, &item);
}
