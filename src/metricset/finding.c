/* Reads the JSON of a finding, checks that its names mean something, and binds its expressions. */
#include "metricset/finding.h"

#include "core/log.h"
#include "metricset/instruction.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THRESHOLDS = 32, MAX_VALUES = 64, MAX_OPTIONS = 64, MAX_NAME = 64, MAX_UNLESS = 32, MOST_PLACES = 3 };

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

/* Names of the finding's own and of metrics must not be mistaken for each other: only metrics have "__". */
static kprof_status check_name(const kprof_json_place *place, const char *name)
{
    static const char *const taken[] = {"and", "or", "not", "if", "if_missing", "min", "max", "sum", "floor", "ceil"};
    kprof_json_place at = {place, "name", 0};
    const bool is_word = name[0] >= 'a' && name[0] <= 'z' && name[strspn(name, name_letters)] == '\0';
    if (!is_word || strlen(name) > MAX_NAME || strstr(name, "__"))
        return kprof_json_fail(&at, "must be a word of at most %d small letters, digits and single \"_\"", MAX_NAME);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(name, taken[i]) == 0)
            return kprof_json_fail(&at, "is a word of expressions; take another");
    }
    return KPROF_OK;
}

static kprof_status read_expression(const kprof_json_place *place, const cJSON *value, const char *key,
                                    kprof_expr **out)
{
    char *text = NULL;
    kprof_json_place at = {place, key, 0};
    kprof_status status = kprof_json_get_string(place, value, key, &text);
    if (status == KPROF_OK && text)
        status = kprof_expr_parse(text, out);
    if (status == KPROF_BAD_METRICSET)
        status = kprof_json_fail(&at, "is not an expression");
    free(text);
    return status;
}

/* An empty text if there is none. */
static kprof_status read_unit(const kprof_json_place *place, const cJSON *value, char **out)
{
    kprof_status status = kprof_json_get_string(place, value, "unit", out);
    if (status == KPROF_OK && !*out)
        *out = kprof_strdup("");
    return status == KPROF_OK && !*out ? KPROF_NO_MEMORY : status;
}

static kprof_status read_threshold(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"name", "value", "unit", "source", NULL};
    kprof_finding_threshold *threshold = element;
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = kprof_json_require_string(place, value, "name", &threshold->name);
    if (status == KPROF_OK)
        status = check_name(place, threshold->name);
    if (status == KPROF_OK)
        status = kprof_json_require_number(place, value, "value", &threshold->value);
    if (status == KPROF_OK)
        status = read_unit(place, value, &threshold->unit);
    return status == KPROF_OK ? kprof_json_get_string(place, value, "source", &threshold->source) : status;
}

/* Averages of instructions cannot be added up over a line. */
static kprof_status check_place_metric(const kprof_json_place *at, const char *name)
{
    const kprof_instruction_metric *metric = kprof_instruction_metric_find(name);
    if (!metric || strcmp(metric->name, name) != 0)
        return kprof_json_fail(at,
                               "is \"%s\", which is no metric of instructions; kprof list metrics --metrics "
                               "\"regex:^(source:|smsp__pcsamp_)\" shows them",
                               name);
    return kprof_instruction_can_add(metric)
               ? KPROF_OK
               : kprof_json_fail(at, "is \"%s\", which cannot be added up over the instructions of a line", name);
}

static kprof_status read_option(const kprof_json_place *place, const cJSON *value, void *element)
{
    static const char *const keys[] = {"name", "text", "place", "value", "when", NULL};
    const kprof_json_place where = {place, "place", 0};
    kprof_finding_option *option = element;
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = kprof_json_require_string(place, value, "name", &option->name);
    if (status == KPROF_OK)
        status = kprof_json_get_string(place, value, "text", &option->text);
    if (status == KPROF_OK)
        status = kprof_json_get_string(place, value, "place", &option->place);
    if (status == KPROF_OK && option->place)
        status = check_place_metric(&where, option->place);
    if (status == KPROF_OK)
        status = read_expression(place, value, "value", &option->value);
    return status == KPROF_OK ? read_expression(place, value, "when", &option->when) : status;
}

/* The options of a value, below the key that says how it is chosen. */
static kprof_status read_options(const kprof_json_place *place, const cJSON *json, kprof_finding_value *value)
{
    static const char *const picks[] = {
        [KPROF_PICK_LARGEST] = "largest", [KPROF_PICK_SMALLEST] = "smallest", [KPROF_PICK_FIRST] = "first"};
    kprof_json_list list = {NULL, 0};
    kprof_json_place at = {place, NULL, 0};
    for (kprof_pick pick = KPROF_PICK_LARGEST; pick <= KPROF_PICK_FIRST; pick++) {
        if (!cJSON_HasObjectItem(json, picks[pick]))
            continue;
        at.name = picks[pick];
        if (value->pick != KPROF_PICK_NONE || value->expression)
            return kprof_json_fail(&at, "is one way too many to get the value");
        value->pick = pick;
        kprof_json_array options = {picks[pick], sizeof(kprof_finding_option), read_option};
        kprof_status status = kprof_json_get_array(place, json, &options, &list);
        value->options = list.elements;
        value->option_count = list.count;
        if (status != KPROF_OK)
            return status;
    }
    if (value->pick == KPROF_PICK_NONE)
        return value->expression ? KPROF_OK
                                 : kprof_json_fail(place, "needs an \"expression\", or options below \"largest\", "
                                                          "\"smallest\" or \"first\"");
    if (value->option_count < 1 || value->option_count > MAX_OPTIONS)
        return kprof_json_fail(&at, "must have 1 to %d options", MAX_OPTIONS);
    for (size_t i = 0; i < value->option_count; i++) {
        kprof_json_place option = {&at, NULL, i}, missing = {&option, "value", 0};
        if (!value->options[i].value && value->pick != KPROF_PICK_FIRST)
            return kprof_json_fail(&missing, "is missing");
    }
    return KPROF_OK;
}

static kprof_status read_value(const kprof_json_place *place, const cJSON *json, void *element)
{
    static const char *const keys[] = {"name", "label", "unit", "expression", "largest", "smallest", "first", NULL};
    kprof_finding_value *value = element;
    kprof_status status = kprof_json_check_object(place, json, keys);
    if (status == KPROF_OK)
        status = kprof_json_require_string(place, json, "name", &value->name);
    if (status == KPROF_OK)
        status = check_name(place, value->name);
    if (status == KPROF_OK)
        status = kprof_json_get_string(place, json, "label", &value->label);
    if (status == KPROF_OK)
        status = read_unit(place, json, &value->unit);
    if (status == KPROF_OK)
        status = read_expression(place, json, "expression", &value->expression);
    return status == KPROF_OK ? read_options(place, json, value) : status;
}

/* The place of a local name before `limit`, thresholds first; SIZE_MAX when there is none. */
static size_t find_local(const kprof_finding *finding, const char *name, size_t length, size_t limit)
{
    for (size_t i = 0; i < limit; i++) {
        const char *local = i < finding->threshold_count ? finding->thresholds[i].name
                                                         : finding->values[i - finding->threshold_count].name;
        if (strlen(local) == length && strncmp(local, name, length) == 0)
            return i;
    }
    return SIZE_MAX;
}

kprof_text_part kprof_finding_text_part(const kprof_finding *finding, const char **text)
{
    const char *start = *text, *brace = strchr(start, '{');
    if (!*start)
        return (kprof_text_part){KPROF_PART_END, start, 0, SIZE_MAX};
    if (!brace || brace > start) {
        const size_t length = brace ? (size_t)(brace - start) : strlen(start);
        *text = start + length;
        return (kprof_text_part){KPROF_PART_TEXT, start, length, SIZE_MAX};
    }
    const char *name = start + 1, *end = name + strspn(name, name_letters), *close = strchr(name, '}');
    *text = close ? close + 1 : start + strlen(start);
    kprof_text_part part = {KPROF_PART_UNKNOWN, start, (size_t)(*text - start), SIZE_MAX};
    part.local = find_local(finding, name, (size_t)(end - name), finding->threshold_count + finding->value_count);
    if (!close || part.local == SIZE_MAX)
        return part;
    const bool is_picked = part.local >= finding->threshold_count &&
                           finding->values[part.local - finding->threshold_count].pick != KPROF_PICK_NONE;
    if (end == close)
        part.kind = KPROF_PART_NUMBER;
    else if (is_picked && strncmp(end, ".name}", 6) == 0)
        part.kind = KPROF_PART_NAME;
    else if (is_picked && strncmp(end, ".text}", 6) == 0)
        part.kind = KPROF_PART_OPTION_TEXT;
    return part;
}

/* A reference from an expression or a text. */
typedef struct binder {
    kprof_finding *finding;
    const kprof_json_place *place;
    size_t limit; /* locals before it may be used */
} binder;

static kprof_status place_name(void *user, const char *name, size_t *slot)
{
    const binder *bind = user;
    kprof_finding *finding = bind->finding;
    if (!strstr(name, "__")) {
        *slot = find_local(finding, name, strlen(name), bind->limit);
        return *slot != SIZE_MAX
                   ? KPROF_OK
                   : kprof_json_fail(bind->place, "\"%s\" is neither a threshold, nor a value before it, nor a metric",
                                     name);
    }
    if (!kprof_strlist_add_unique(&finding->operands, name))
        return KPROF_NO_MEMORY;
    size_t i = 0;
    while (strcmp(finding->operands.items[i], name) != 0)
        i++;
    *slot = finding->threshold_count + finding->value_count + i;
    return KPROF_OK;
}

static kprof_status bind_expression(binder bind, const char *key, kprof_expr *expression)
{
    kprof_json_place at = {bind.place, key, 0};
    bind.place = &at;
    return expression ? kprof_expr_bind(expression, place_name, &bind) : KPROF_OK;
}

/* The texts of an option may have numbers up to that of its value, and names from before it. */
static kprof_status check_text(binder bind, const char *key, const char *text, size_t names)
{
    kprof_json_place at = {bind.place, key, 0};
    while (text && *text) {
        kprof_text_part part = kprof_finding_text_part(bind.finding, &text);
        const size_t limit = part.kind == KPROF_PART_NUMBER ? bind.limit : names;
        if (part.kind == KPROF_PART_UNKNOWN || (part.kind != KPROF_PART_TEXT && part.local >= limit))
            return kprof_json_fail(&at, "%.*s does not stand for a value here", (int)part.length, part.text);
    }
    return KPROF_OK;
}

static kprof_status bind_option(binder bind, const kprof_finding_option *option)
{
    kprof_status status = bind_expression(bind, "value", option->value);
    if (status == KPROF_OK)
        status = bind_expression(bind, "when", option->when);
    bind.limit++;
    if (status == KPROF_OK)
        status = check_text(bind, "name", option->name, bind.limit - 1);
    return status == KPROF_OK ? check_text(bind, "text", option->text, bind.limit - 1) : status;
}

/* Values in their order: each may use those before it. */
static kprof_status bind_values(const kprof_json_place *place, kprof_finding *finding)
{
    static const char *const picks[] = {"", "largest", "smallest", "first"};
    kprof_json_place list = {place, "values", 0};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < finding->value_count && status == KPROF_OK; i++) {
        const kprof_finding_value *value = &finding->values[i];
        kprof_json_place at = {&list, NULL, i}, name = {&at, "name", 0}, options = {&at, picks[value->pick], 0};
        binder bind = {finding, &at, finding->threshold_count + i};
        if (find_local(finding, value->name, strlen(value->name), bind.limit) != SIZE_MAX)
            return kprof_json_fail(&name, "is taken");
        status = bind_expression(bind, "expression", value->expression);
        for (size_t k = 0; k < value->option_count && status == KPROF_OK; k++) {
            kprof_json_place option = {&options, NULL, k};
            bind.place = &option;
            status = bind_option(bind, &value->options[k]);
        }
    }
    return status;
}

static kprof_status bind_finding(const kprof_json_place *place, kprof_finding *finding)
{
    const size_t locals = finding->threshold_count + finding->value_count;
    kprof_json_place speedup = {place, "speedup", 0}, verdict = {place, "verdict", 0}, close = {&verdict, "near", 0};
    binder bind = {finding, place, locals}, gain = {finding, &speedup, locals}, line = {finding, &verdict, locals};
    binder near = {finding, &close, locals};
    kprof_status status = bind_values(place, finding);
    if (status == KPROF_OK)
        status = bind_expression(bind, "when", finding->when);
    if (status == KPROF_OK)
        status = bind_expression(gain, "expression", finding->gain);
    if (status == KPROF_OK)
        status = bind_expression(gain, "at_most", finding->gain_bound);
    if (status == KPROF_OK)
        status = check_text(bind, "message", finding->message, locals);
    if (status == KPROF_OK)
        status = check_text(bind, "advice", finding->advice, locals);
    if (status == KPROF_OK)
        status = check_text(bind, "next", finding->next, locals);
    if (status == KPROF_OK)
        status = check_text(line, "name", finding->verdict_name, locals);
    if (status == KPROF_OK)
        status = check_text(line, "text", finding->verdict_text, locals);
    if (status == KPROF_OK)
        status = bind_expression(near, "when", finding->near);
    return status == KPROF_OK ? check_text(near, "text", finding->near_text, locals) : status;
}

static kprof_status read_thresholds(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const kprof_json_array array = {"thresholds", sizeof(kprof_finding_threshold), read_threshold};
    kprof_json_list list;
    kprof_json_place at = {place, "thresholds", 0};
    kprof_status status = kprof_json_get_array(place, value, &array, &list);
    out->thresholds = list.elements;
    out->threshold_count = list.count;
    if (status == KPROF_OK && list.count > MAX_THRESHOLDS)
        return kprof_json_fail(&at, "has more than %d elements", MAX_THRESHOLDS);
    for (size_t i = 0; i < list.count && status == KPROF_OK; i++) {
        kprof_json_place element = {&at, NULL, i}, name = {&element, "name", 0};
        const char *text = out->thresholds[i].name;
        if (find_local(out, text, strlen(text), i) != SIZE_MAX)
            status = kprof_json_fail(&name, "is taken");
    }
    return status;
}

static kprof_status read_values(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const kprof_json_array array = {"values", sizeof(kprof_finding_value), read_value};
    kprof_json_list list;
    kprof_json_place at = {place, "values", 0};
    kprof_status status = kprof_json_get_array(place, value, &array, &list);
    out->values = list.elements;
    out->value_count = list.count;
    if (status == KPROF_OK && list.count > MAX_VALUES)
        return kprof_json_fail(&at, "has more than %d elements", MAX_VALUES);
    return status;
}

static kprof_status read_speedup(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const keys[] = {"expression", "at_most", "formula", "source", "scope", NULL};
    static const char *const scopes[] = {"global", "local"};
    const cJSON *speedup = cJSON_GetObjectItemCaseSensitive(value, "speedup");
    kprof_json_place at = {place, "speedup", 0}, missing = {&at, "expression", 0};
    int scope = 0;
    if (!speedup)
        return KPROF_OK;
    kprof_status status = kprof_json_check_object(&at, speedup, keys);
    if (status == KPROF_OK)
        status = read_expression(&at, speedup, "expression", &out->gain);
    if (status == KPROF_OK && !out->gain)
        status = kprof_json_fail(&missing, "is missing");
    if (status == KPROF_OK)
        status = read_expression(&at, speedup, "at_most", &out->gain_bound);
    if (status == KPROF_OK)
        status = kprof_json_require_string(&at, speedup, "formula", &out->gain_formula);
    if (status == KPROF_OK)
        status = kprof_json_get_string(&at, speedup, "source", &out->gain_source);
    if (status == KPROF_OK)
        status = kprof_json_get_word(&at, speedup, "scope", &(kprof_json_words){scopes, 2, &scope});
    out->gain_is_local = scope == 1;
    return status;
}

static kprof_status read_verdict_value(const kprof_json_place *place, const cJSON *verdict, kprof_finding *out)
{
    char *name = NULL;
    kprof_json_place at = {place, "value", 0};
    kprof_status status = kprof_json_get_string(place, verdict, "value", &name);
    if (status != KPROF_OK || !name)
        return status;
    const size_t locals = out->threshold_count + out->value_count;
    const size_t local = find_local(out, name, strlen(name), locals);
    if (local == SIZE_MAX || local < out->threshold_count)
        status = kprof_json_fail(&at, "must be the name of a value");
    else
        out->verdict_value = local - out->threshold_count;
    free(name);
    return status;
}

/* When the kernel is near its limit, and what to say then. */
static kprof_status read_near(const kprof_json_place *place, const cJSON *verdict, kprof_finding *out)
{
    static const char *const keys[] = {"when", "text", NULL};
    const cJSON *near = cJSON_GetObjectItemCaseSensitive(verdict, "near");
    kprof_json_place at = {place, "near", 0}, missing = {&at, "when", 0};
    if (!near)
        return KPROF_OK;
    if (out->verdict != KPROF_VERDICT_LIMIT || out->verdict_value == SIZE_MAX)
        return kprof_json_fail(&at, "is only for the line \"limit\" with a value");
    kprof_status status = kprof_json_check_object(&at, near, keys);
    if (status == KPROF_OK)
        status = read_expression(&at, near, "when", &out->near);
    if (status == KPROF_OK && !out->near)
        status = kprof_json_fail(&missing, "is missing");
    return status == KPROF_OK ? kprof_json_require_string(&at, near, "text", &out->near_text) : status;
}

static kprof_status read_verdict(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const keys[] = {"line", "name", "text", "value", "near", NULL};
    static const char *const lines[] = {"", "limit", "stall", "occupancy"};
    const cJSON *verdict = cJSON_GetObjectItemCaseSensitive(value, "verdict");
    kprof_json_place at = {place, "verdict", 0}, missing = {&at, "line", 0};
    int line = KPROF_VERDICT_NONE;
    out->verdict_value = SIZE_MAX;
    if (!verdict)
        return KPROF_OK;
    kprof_status status = kprof_json_check_object(&at, verdict, keys);
    if (status == KPROF_OK)
        status = kprof_json_get_word(&at, verdict, "line", &(kprof_json_words){lines, KPROF_VERDICT_LINES, &line});
    out->verdict = (kprof_verdict_line)line;
    if (status == KPROF_OK && out->verdict == KPROF_VERDICT_NONE)
        status = kprof_json_fail(&missing, "must be \"limit\", \"stall\" or \"occupancy\"");
    if (status == KPROF_OK)
        status = kprof_json_require_string(&at, verdict, "name", &out->verdict_name);
    if (status == KPROF_OK)
        status = kprof_json_require_string(&at, verdict, "text", &out->verdict_text);
    if (status == KPROF_OK)
        status = read_verdict_value(&at, verdict, out);
    return status == KPROF_OK ? read_near(&at, verdict, out) : status;
}

static kprof_status read_place_metrics(const kprof_json_place *place, const cJSON *value, kprof_finding_places *out)
{
    const kprof_json_place list = {place, "metrics", 0};
    kprof_status status = kprof_json_get_strings(place, value, "metrics", &out->metrics);
    if (status == KPROF_OK && kprof_strings_count(out->metrics) > KPROF_MOST_PLACE_METRICS)
        return kprof_json_fail(&list, "has more than %d elements", KPROF_MOST_PLACE_METRICS);
    for (char **name = out->metrics; name && *name && status == KPROF_OK; name++)
        status = check_place_metric(&(kprof_json_place){&list, NULL, (size_t)(name - out->metrics)}, *name);
    return status;
}

static kprof_status read_place_value(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    const kprof_json_place at = {place, "of", 0};
    char *name = NULL;
    kprof_status status = kprof_json_get_string(place, value, "of", &name);
    const size_t locals = out->threshold_count + out->value_count;
    const size_t local = name ? find_local(out, name, strlen(name), locals) : SIZE_MAX;
    const bool has_options = local != SIZE_MAX && local >= out->threshold_count &&
                             out->values[local - out->threshold_count].option_count > 0;
    if (status == KPROF_OK && name && !has_options)
        status = kprof_json_fail(&at, "must be the name of a value with options");
    out->places.of = has_options ? local - out->threshold_count : SIZE_MAX;
    free(name);
    return status;
}

static kprof_status read_places(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const keys[] = {"metrics", "of", "most", NULL};
    const cJSON *json = cJSON_GetObjectItemCaseSensitive(value, "places");
    const kprof_json_place at = {place, "places", 0}, most = {&at, "most", 0};
    kprof_finding_places *places = &out->places;
    *places = (kprof_finding_places){NULL, SIZE_MAX, MOST_PLACES};
    if (!json)
        return KPROF_OK;
    kprof_status status = kprof_json_check_object(&at, json, keys);
    if (status == KPROF_OK)
        status = read_place_metrics(&at, json, places);
    if (status == KPROF_OK)
        status = read_place_value(&at, json, out);
    if (status == KPROF_OK && (kprof_strings_count(places->metrics) > 0) == (places->of != SIZE_MAX))
        status = kprof_json_fail(&at, "must have either \"metrics\" or \"of\"");
    if (status == KPROF_OK)
        status = kprof_json_get_int(&at, json, "most", &places->most);
    return status == KPROF_OK && (places->most < 1 || places->most > MOST_PLACES)
               ? kprof_json_fail(&most, "must be from 1 to %d", MOST_PLACES)
               : status;
}

/* Read what stands in a finding beside its lists. */
static kprof_status read_head(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const words[] = {"low", "medium", "high"};
    int confidence = -1;
    kprof_json_place sections = {place, "sections", 0}, confident = {place, "confidence", 0}, when = {place, "when", 0};
    kprof_json_place unless = {place, "unless", 0};
    const struct {
        const char *key;
        char **out;
        bool required;
    } texts[] = {{"id", &out->id, true},           {"name", &out->name, true},      {"help", &out->help, true},
                 {"message", &out->message, true}, {"advice", &out->advice, false}, {"next", &out->next, false}};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && status == KPROF_OK; i++)
        status = (texts[i].required ? kprof_json_require_string : kprof_json_get_string)(place, value, texts[i].key,
                                                                                         texts[i].out);
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "sections", &out->sections);
    if (status == KPROF_OK && kprof_strings_count(out->sections) == 0)
        status = kprof_json_fail(&sections, "must name the section in which the finding stands");
    if (status == KPROF_OK)
        status = kprof_json_get_strings(place, value, "unless", &out->unless);
    if (status == KPROF_OK && kprof_strings_count(out->unless) > MAX_UNLESS)
        status = kprof_json_fail(&unless, "has more than %d elements", MAX_UNLESS);
    if (status == KPROF_OK)
        status = kprof_json_get_int(place, value, "order", &out->order);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "optional", &out->optional);
    if (status == KPROF_OK)
        status = kprof_json_get_bool(place, value, "symptom", &out->is_symptom);
    if (status == KPROF_OK)
        status = kprof_json_get_word(place, value, "confidence", &(kprof_json_words){words, 3, &confidence});
    if (status == KPROF_OK && confidence < 0)
        status = kprof_json_fail(&confident, "is missing");
    out->confidence = (kprof_confidence)confidence;
    if (status == KPROF_OK)
        status = read_expression(place, value, "when", &out->when);
    return status == KPROF_OK && !out->when ? kprof_json_fail(&when, "is missing") : status;
}

kprof_status kprof_finding_read(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const keys[] = {
        "id",      "name",   "help", "sections", "order",   "optional", "confidence", "when",   "thresholds", "values",
        "message", "advice", "next", "speedup",  "verdict", "unless",   "symptom",    "places", NULL};
    *out = (kprof_finding){0};
    kprof_status status = kprof_json_check_object(place, value, keys);
    if (status == KPROF_OK)
        status = read_head(place, value, out);
    if (status == KPROF_OK)
        status = read_thresholds(place, value, out);
    if (status == KPROF_OK)
        status = read_values(place, value, out);
    if (status == KPROF_OK)
        status = read_speedup(place, value, out);
    if (status == KPROF_OK)
        status = read_verdict(place, value, out);
    if (status == KPROF_OK)
        status = read_places(place, value, out);
    return status == KPROF_OK ? bind_finding(place, out) : status;
}

static void free_value(kprof_finding_value *value)
{
    for (size_t i = 0; i < value->option_count; i++) {
        free(value->options[i].name);
        free(value->options[i].text);
        free(value->options[i].place);
        kprof_expr_free(value->options[i].value);
        kprof_expr_free(value->options[i].when);
    }
    free(value->options);
    kprof_expr_free(value->expression);
    free(value->name);
    free(value->label);
    free(value->unit);
}

void kprof_finding_free(kprof_finding *finding)
{
    for (size_t i = 0; i < finding->threshold_count; i++) {
        free(finding->thresholds[i].name);
        free(finding->thresholds[i].unit);
        free(finding->thresholds[i].source);
    }
    for (size_t i = 0; i < finding->value_count; i++)
        free_value(&finding->values[i]);
    free(finding->thresholds);
    free(finding->values);
    char *texts[] = {finding->id,           finding->name,         finding->help,        finding->message,
                     finding->advice,       finding->gain_formula, finding->gain_source, finding->next,
                     finding->verdict_name, finding->verdict_text, finding->near_text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    kprof_strings_free(finding->sections);
    kprof_strings_free(finding->unless);
    kprof_strings_free(finding->places.metrics);
    kprof_strlist_free(&finding->operands);
    kprof_expr_free(finding->when);
    kprof_expr_free(finding->gain);
    kprof_expr_free(finding->gain_bound);
    kprof_expr_free(finding->near);
    *finding = (kprof_finding){0};
}
