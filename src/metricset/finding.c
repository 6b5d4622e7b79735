/* Reads the JSON of a finding, checks that its names mean something, and binds its expressions. */
#include "metricset/finding.h"

#include "core/log.h"
#include "metricset/instruction.h"

#include <stdint.h>
#include <string.h>

enum { MAX_THRESHOLDS = 32, MAX_VALUES = 64, MAX_OPTIONS = 64, MAX_NAME = 64, MAX_UNLESS = 32, MOST_PLACES = 3 };

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

#define OF_PHASE(n)                                                                                                    \
    {"timeline__phase" n "_end_pct", "%", "share of the time when phase " n " ends"},                                  \
        {"timeline__phase" n "_unit", "", "unit that is the busiest in phase " n},                                     \
    {                                                                                                                  \
        "timeline__phase" n "_pct", "%", "how busy it is, of its peak"                                                 \
    }
const kprof_made_number kprof_timeline_numbers[KPROF_TIMELINE_NUMBERS] = {
    {"timeline__ramp_up_pct", "%", "share of the time before the SMs are as busy as they get"},
    {"timeline__tail_pct", "%", "share of the time after the SMs were last as busy as they get"},
    {"timeline__tail_lost_pct", "%", "share of the time that SMs are idle in this tail"},
    {"timeline__dram_most_pct", "%", "DRAM throughput in the busiest sample"},
    {"timeline__dram_mean_pct", "%", "DRAM throughput over the samples"},
    {"timeline__phases", "", "parts of the time in which other units are the busiest"},
    OF_PHASE("1"),
    OF_PHASE("2"),
    OF_PHASE("3"),
};

#define OF_INSTRUCTIONS(id, name, unit, description) {name, unit, description},
static const kprof_made_number of_instructions[] = {KPROF_MADE_NUMBERS(OF_INSTRUCTIONS)};

static const kprof_made_number *find_number(const kprof_made_number *numbers, size_t count, const char *name)
{
    return KPROF_FIRST(it, numbers, count, strcmp(it->name, name) == 0);
}

const kprof_made_number *kprof_made_number_find(const char *name)
{
    const kprof_made_number *number = find_number(kprof_timeline_numbers, KPROF_TIMELINE_NUMBERS, name);
    return number ? number : find_number(of_instructions, COUNT_OF(of_instructions), name);
}

/* Names of the finding's own and of metrics must not be mistaken for each other: only metrics have "__". */
static kprof_status check_name(const kprof_json_place *place, const char *name)
{
    static const char *const taken[] = {"and", "or", "not", "if", "if_missing", "min", "max", "sum", "floor", "ceil"};
    const kprof_json_place *at = KPROF_JSON_KEY(place, "name");
    const bool is_word = name[0] >= 'a' && name[0] <= 'z' && name[strspn(name, name_letters)] == '\0';
    if (!is_word || strlen(name) > MAX_NAME || strstr(name, "__"))
        return kprof_json_fail(at, "must be a word of at most %d small letters, digits and single \"_\"", MAX_NAME);
    for (size_t i = 0; i < COUNT_OF(taken); i++)
        if (strcmp(name, taken[i]) == 0)
            return kprof_json_fail(at, "is a word of expressions; take another");
    return KPROF_OK;
}

static kprof_status read_expression(const kprof_json_place *place, const cJSON *value, void *out)
{
    char *text = NULL;
    kprof_status status = kprof_json_read_text(place, value, &text);
    KPROF_THEN(status, kprof_expr_parse(kprof_json_pool(place), text, out));
    return status == KPROF_BAD_METRICSET && cJSON_IsString(value) ? kprof_json_fail(place, "is not an expression")
                                                                  : status;
}

#define FIELD(type, word, kind, member, ...) KPROF_JSON_FIELD(kprof_finding##type, word, kind, member, __VA_ARGS__)
#define TEXT(type, member)                   FIELD(type, #member, TEXT, member)
#define NEEDED(type, member)                 FIELD(type, #member, TEXT, member, .is_needed = true)
#define EXPRESSION(type, word, member, ...)  FIELD(type, word, PART, member, .read = read_expression, __VA_ARGS__)
/* A part that is read into the whole finding. */
#define PART(word, reader)                                                                                             \
    {                                                                                                                  \
        .key = (word), .kind = KPROF_JSON_PART, .read = (reader)                                                       \
    }

static kprof_status read_threshold(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, NEEDED(_threshold, name), FIELD(_threshold, "value", REAL, value, .is_needed = true),
                      TEXT(_threshold, unit), TEXT(_threshold, source));
    kprof_finding_threshold *threshold = element;
    threshold->unit = "";
    kprof_status status = kprof_json_read(place, value, fields, threshold);
    return KPROF_THEN(status, check_name(place, threshold->name));
}

/* Averages of instructions cannot be added up over a line. */
static kprof_status check_place_metric(const kprof_json_place *at, const char *name)
{
    const kprof_instruction_metric *metric = kprof_instruction_metric_find(name);
    if (find_number(of_instructions, COUNT_OF(of_instructions), name))
        return KPROF_OK;
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
    KPROF_JSON_FIELDS(fields, NEEDED(_option, name), TEXT(_option, text), TEXT(_option, place),
                      EXPRESSION(_option, "value", value), EXPRESSION(_option, "when", when));
    const kprof_finding_option *option = element;
    kprof_status status = kprof_json_read(place, value, fields, element);
    return status == KPROF_OK && option->place ? check_place_metric(KPROF_JSON_KEY(place, "place"), option->place)
                                               : status;
}

/* The options of a value, below the key that says how it is chosen. */
static kprof_status read_options(const kprof_json_place *place, const cJSON *json, kprof_finding_value *value)
{
    static const char *const picks[] = {
        [KPROF_PICK_LARGEST] = "largest", [KPROF_PICK_SMALLEST] = "smallest", [KPROF_PICK_FIRST] = "first"};
    kprof_json_place at = {.parent = place};
    for (kprof_pick pick = KPROF_PICK_LARGEST; pick <= KPROF_PICK_FIRST; pick++) {
        if (!cJSON_HasObjectItem(json, picks[pick]))
            continue;
        at.name = picks[pick];
        if (value->pick != KPROF_PICK_NONE || value->expression)
            return kprof_json_fail(&at, "is one way too many to get the value");
        value->pick = pick;
        const kprof_json_field options[] = {
            KPROF_JSON_LIST(kprof_finding_value, picks[pick], options, option_count, read_option, kprof_finding_option),
            {.key = NULL}};
        kprof_status status = kprof_json_read_members(place, json, options, value);
        if (status != KPROF_OK)
            return status;
    }
    if (value->pick == KPROF_PICK_NONE)
        return value->expression ? KPROF_OK
                                 : kprof_json_fail(place, "needs an \"expression\", or options below \"largest\", "
                                                          "\"smallest\" or \"first\"");
    if (value->option_count < 1 || value->option_count > MAX_OPTIONS)
        return kprof_json_fail(&at, "must have 1 to %d options", MAX_OPTIONS);
    for (size_t i = 0; i < value->option_count; i++)
        if (!value->options[i].value && value->pick != KPROF_PICK_FIRST)
            return kprof_json_fail(KPROF_JSON_KEY(KPROF_JSON_ELEMENT(&at, i), "value"), "is missing");
    return KPROF_OK;
}

static kprof_status read_value(const kprof_json_place *place, const cJSON *json, void *element)
{
    KPROF_JSON_FIELDS(fields, NEEDED(_value, name), TEXT(_value, label), TEXT(_value, unit),
                      EXPRESSION(_value, "expression", expression), {.key = "largest", .kind = KPROF_JSON_OTHER},
                      {.key = "smallest", .kind = KPROF_JSON_OTHER}, {.key = "first", .kind = KPROF_JSON_OTHER});
    kprof_finding_value *value = element;
    value->unit = "";
    kprof_status status = kprof_json_read(place, json, fields, value);
    KPROF_THEN(status, check_name(place, value->name));
    return KPROF_THEN(status, read_options(place, json, value));
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
    else if (is_picked && kprof_begins_with(end, ".name}"))
        part.kind = KPROF_PART_NAME;
    else if (is_picked && kprof_begins_with(end, ".text}"))
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
    const size_t i = KPROF_FIND(k, finding->operands.count, strcmp(finding->operands.items[k], name) == 0);
    if (i == finding->operands.count) {
        kprof_pool *pool = kprof_json_pool(bind->place);
        *KPROF_POOL_ADD(pool, finding->operands.items, finding->operands.count) = kprof_pool_strdup(pool, name);
    }
    *slot = finding->threshold_count + finding->value_count + i;
    return KPROF_OK;
}

static kprof_status bind_expression(binder bind, const char *key, kprof_expr *expression)
{
    bind.place = KPROF_JSON_KEY(bind.place, key);
    return expression ? kprof_expr_bind(expression, place_name, &bind) : KPROF_OK;
}

/* The texts of an option may have numbers up to that of its value, and names from before it. */
static kprof_status check_text(binder bind, const char *key, const char *text, size_t names)
{
    while (text && *text) {
        kprof_text_part part = kprof_finding_text_part(bind.finding, &text);
        const size_t limit = part.kind == KPROF_PART_NUMBER ? bind.limit : names;
        if (part.kind == KPROF_PART_UNKNOWN || (part.kind != KPROF_PART_TEXT && part.local >= limit))
            return kprof_json_fail(KPROF_JSON_KEY(bind.place, key), "%.*s does not stand for a value here",
                                   (int)part.length, part.text);
    }
    return KPROF_OK;
}

static kprof_status bind_option(binder bind, const kprof_finding_option *option)
{
    kprof_status status = bind_expression(bind, "value", option->value);
    KPROF_THEN(status, bind_expression(bind, "when", option->when));
    bind.limit++;
    KPROF_THEN(status, check_text(bind, "name", option->name, bind.limit - 1));
    return KPROF_THEN(status, check_text(bind, "text", option->text, bind.limit - 1));
}

/* Values in their order: each may use those before it. */
static kprof_status bind_values(const kprof_json_place *place, kprof_finding *finding)
{
    static const char *const picks[] = {"", "largest", "smallest", "first"};
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < finding->value_count && status == KPROF_OK; i++) {
        const kprof_finding_value *value = &finding->values[i];
        const kprof_json_place *at = KPROF_JSON_ELEMENT(KPROF_JSON_KEY(place, "values"), i);
        binder bind = {finding, at, finding->threshold_count + i};
        if (find_local(finding, value->name, strlen(value->name), bind.limit) != SIZE_MAX)
            return kprof_json_fail(KPROF_JSON_KEY(at, "name"), "is taken");
        status = bind_expression(bind, "expression", value->expression);
        for (size_t k = 0; k < value->option_count && status == KPROF_OK; k++) {
            bind.place = KPROF_JSON_ELEMENT(KPROF_JSON_KEY(at, picks[value->pick]), k);
            status = bind_option(bind, &value->options[k]);
        }
    }
    return status;
}

static kprof_status bind_finding(const kprof_json_place *place, kprof_finding *finding)
{
    const size_t locals = finding->threshold_count + finding->value_count;
    const kprof_json_place *verdict = KPROF_JSON_KEY(place, "verdict");
    const binder bind = {finding, place, locals}, gain = {finding, KPROF_JSON_KEY(place, "speedup"), locals};
    const binder line = {finding, verdict, locals}, near = {finding, KPROF_JSON_KEY(verdict, "near"), locals};
    kprof_status status = bind_values(place, finding);
    KPROF_THEN(status, bind_expression(bind, "when", finding->when));
    KPROF_THEN(status, bind_expression(bind, "symptom", finding->symptom));
    KPROF_THEN(status, bind_expression(gain, "expression", finding->gain));
    KPROF_THEN(status, bind_expression(gain, "at_most", finding->gain_bound));
    KPROF_THEN(status, bind_expression(gain, "severity", finding->severity));
    KPROF_THEN(status, check_text(bind, "message", finding->message, locals));
    KPROF_THEN(status, check_text(bind, "advice", finding->advice, locals));
    KPROF_THEN(status, check_text(bind, "next", finding->next, locals));
    KPROF_THEN(status, check_text(line, "name", finding->verdict_name, locals));
    KPROF_THEN(status, check_text(line, "text", finding->verdict_text, locals));
    KPROF_THEN(status, bind_expression(near, "when", finding->near));
    return KPROF_THEN(status, check_text(near, "text", finding->near_text, locals));
}

static kprof_status check_lists(const kprof_json_place *place, const kprof_finding *finding)
{
    const kprof_json_place *thresholds = KPROF_JSON_KEY(place, "thresholds");
    if (kprof_strings_count(finding->sections) == 0)
        return kprof_json_fail(KPROF_JSON_KEY(place, "sections"), "must name the section in which the finding stands");
    if (kprof_strings_count(finding->unless) > MAX_UNLESS)
        return kprof_json_fail(KPROF_JSON_KEY(place, "unless"), "has more than %d elements", MAX_UNLESS);
    if (finding->threshold_count > MAX_THRESHOLDS)
        return kprof_json_fail(thresholds, "has more than %d elements", MAX_THRESHOLDS);
    if (finding->value_count > MAX_VALUES)
        return kprof_json_fail(KPROF_JSON_KEY(place, "values"), "has more than %d elements", MAX_VALUES);
    for (size_t i = 0; i < finding->threshold_count; i++) {
        const char *text = finding->thresholds[i].name;
        if (find_local(finding, text, strlen(text), i) != SIZE_MAX)
            return kprof_json_fail(KPROF_JSON_KEY(KPROF_JSON_ELEMENT(thresholds, i), "name"), "is taken");
    }
    return KPROF_OK;
}

static kprof_status read_scope(const kprof_json_place *place, const cJSON *value, void *is_local)
{
    static const char *const scopes[] = {"global", "local", NULL};
    int scope = 0;
    kprof_status status = kprof_json_read_word(place, value, scopes, &scope);
    *(bool *)is_local = scope == 1;
    return status;
}

static kprof_status read_speedup(const kprof_json_place *place, const cJSON *value, void *finding)
{
    KPROF_JSON_FIELDS(fields, EXPRESSION(, "expression", gain, .is_needed = true), EXPRESSION(, "at_most", gain_bound),
                      EXPRESSION(, "severity", severity), FIELD(, "formula", TEXT, gain_formula, .is_needed = true),
                      FIELD(, "source", TEXT, gain_source), FIELD(, "scope", PART, gain_is_local, .read = read_scope));
    return kprof_json_read(place, value, fields, finding);
}

/* The name of a value becomes its number; SIZE_MAX: it is none. */
static kprof_status read_value_name(const kprof_json_place *place, const cJSON *json, const kprof_finding *finding,
                                    size_t *out)
{
    char *name = NULL;
    const kprof_status status = kprof_json_read_text(place, json, &name);
    const size_t locals = finding->threshold_count + finding->value_count;
    const size_t local = name ? find_local(finding, name, strlen(name), locals) : SIZE_MAX;
    *out = local != SIZE_MAX && local >= finding->threshold_count ? local - finding->threshold_count : SIZE_MAX;
    return status;
}

static kprof_status read_verdict_value(const kprof_json_place *place, const cJSON *json, void *finding)
{
    kprof_finding *out = finding;
    const kprof_status status = read_value_name(place, json, out, &out->verdict_value);
    return status == KPROF_OK && out->verdict_value == SIZE_MAX ? kprof_json_fail(place, "must be the name of a value")
                                                                : status;
}

/* When the kernel is near its limit, and what to say then. */
static kprof_status read_near(const kprof_json_place *place, const cJSON *value, void *finding)
{
    KPROF_JSON_FIELDS(fields, EXPRESSION(, "when", near, .is_needed = true),
                      FIELD(, "text", TEXT, near_text, .is_needed = true));
    const kprof_finding *out = finding;
    if (out->verdict != KPROF_VERDICT_LIMIT || out->verdict_value == SIZE_MAX)
        return kprof_json_fail(place, "is only for the line \"limit\" with a value");
    return kprof_json_read(place, value, fields, finding);
}

static kprof_status read_verdict(const kprof_json_place *place, const cJSON *value, void *finding)
{
    static const char *const lines[] = {"", "limit", "stall", "occupancy", NULL};
    KPROF_JSON_FIELDS(fields, FIELD(, "line", WORD, verdict, .words = lines),
                      FIELD(, "name", TEXT, verdict_name, .is_needed = true),
                      FIELD(, "text", TEXT, verdict_text, .is_needed = true), PART("value", read_verdict_value),
                      PART("near", read_near));
    kprof_status status = kprof_json_read(place, value, fields, finding);
    return status == KPROF_OK && ((kprof_finding *)finding)->verdict == KPROF_VERDICT_NONE
               ? kprof_json_fail(KPROF_JSON_KEY(place, "line"), "must be \"limit\", \"stall\" or \"occupancy\"")
               : status;
}

static kprof_status read_option_value(const kprof_json_place *place, const cJSON *json, const kprof_finding *finding,
                                      size_t *out)
{
    const kprof_status status = read_value_name(place, json, finding, out);
    return status == KPROF_OK && (*out == SIZE_MAX || finding->values[*out].option_count == 0)
               ? kprof_json_fail(place, "must be the name of a value with options")
               : status;
}

static kprof_status read_place_value(const kprof_json_place *place, const cJSON *json, void *finding)
{
    return read_option_value(place, json, finding, &((kprof_finding *)finding)->places.of);
}

static kprof_status read_beside(const kprof_json_place *place, const cJSON *json, void *finding)
{
    return read_option_value(place, json, finding, &((kprof_finding *)finding)->places.beside);
}

static kprof_status check_places(const kprof_json_place *place, const kprof_finding_places *places)
{
    const kprof_json_place *list = KPROF_JSON_KEY(place, "metrics");
    const size_t count = kprof_strings_count(places->metrics);
    kprof_status status = KPROF_OK;
    if (count > KPROF_MOST_PLACE_METRICS)
        return kprof_json_fail(list, "has more than %d elements", KPROF_MOST_PLACE_METRICS);
    for (size_t i = 0; i < count && status == KPROF_OK; i++)
        status = check_place_metric(KPROF_JSON_ELEMENT(list, i), places->metrics[i]);
    if (status == KPROF_OK && (count > 0) == (places->of != SIZE_MAX))
        status = kprof_json_fail(place, "must have either \"metrics\" or \"of\"");
    if (status == KPROF_OK && places->beside != SIZE_MAX && places->of == SIZE_MAX)
        status = kprof_json_fail(KPROF_JSON_KEY(place, "beside"), "is only for places with \"of\"");
    return status == KPROF_OK && (places->most < 1 || places->most > MOST_PLACES)
               ? kprof_json_fail(KPROF_JSON_KEY(place, "most"), "must be from 1 to %d", MOST_PLACES)
               : status;
}

static kprof_status read_places(const kprof_json_place *place, const cJSON *value, void *finding)
{
    KPROF_JSON_FIELDS(fields, FIELD(, "metrics", TEXTS, places.metrics), PART("of", read_place_value),
                      PART("beside", read_beside), FIELD(, "most", WHOLE, places.most));
    kprof_status status = kprof_json_read(place, value, fields, finding);
    return KPROF_THEN(status, check_places(place, &((kprof_finding *)finding)->places));
}

/* true, false or a condition. */
static kprof_status read_symptom(const kprof_json_place *place, const cJSON *value, void *finding)
{
    kprof_finding *out = finding;
    out->is_symptom = cJSON_IsTrue(value);
    return cJSON_IsBool(value) ? KPROF_OK : read_expression(place, value, &out->symptom);
}

kprof_status kprof_finding_read(const kprof_json_place *place, const cJSON *value, kprof_finding *out)
{
    static const char *const confidences[] = {"low", "medium", "high", NULL};
    static const kprof_json_field fields[] = {
        NEEDED(, id),
        NEEDED(, name),
        NEEDED(, help),
        NEEDED(, message),
        TEXT(, advice),
        TEXT(, next),
        FIELD(, "sections", TEXTS, sections),
        FIELD(, "unless", TEXTS, unless),
        FIELD(, "ncu", TEXTS, ncu),
        FIELD(, "order", WHOLE, order),
        FIELD(, "optional", FLAG, optional),
        PART("symptom", read_symptom),
        FIELD(, "confidence", WORD, confidence, .is_needed = true, .words = confidences),
        EXPRESSION(, "when", when, .is_needed = true),
        KPROF_JSON_LIST(kprof_finding, "thresholds", thresholds, threshold_count, read_threshold,
                        kprof_finding_threshold),
        KPROF_JSON_LIST(kprof_finding, "values", values, value_count, read_value, kprof_finding_value),
        PART("speedup", read_speedup),
        PART("verdict", read_verdict),
        PART("places", read_places),
        {.key = NULL}};
    *out = (kprof_finding){.verdict_value = SIZE_MAX, .places = {NULL, SIZE_MAX, SIZE_MAX, MOST_PLACES}};
    kprof_status status = kprof_json_read(place, value, fields, out);
    KPROF_THEN(status, check_lists(place, out));
    return KPROF_THEN(status, bind_finding(place, out));
}

bool kprof_finding_has_id(const kprof_finding *finding, const char *id)
{
    return strcmp(finding->id, id) == 0 ||
           KPROF_ANY(i, kprof_strings_count(finding->ncu), strcmp(finding->ncu[i], id) == 0);
}

const char *kprof_finding_ncu_rule(const kprof_finding *finding)
{
    return kprof_strings_count(finding->ncu) > 0 ? finding->ncu[0] : finding->id;
}
