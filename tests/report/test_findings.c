/* Findings evaluated: every shipped one with values that it is found in, values that it is not, and one missing; how
 * values are chosen; and the verdict. The cases of shipped findings are findings/<id>.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "report/model/findings.h"
#include "test.h"

#include <cjson/cJSON.h>
#include <math.h>

static kprof_pool pool, rules_pool; /* of the findings of one test, and of what evaluates them */

enum { MAX_METRICS = 256 };

/* A launch with a value for each member of an object; null: not measured. */
typedef struct made_launch {
    kprof_model model;
    kprof_model_metric metrics[MAX_METRICS];
    double values[MAX_METRICS];
} made_launch;

static void set_value(made_launch *launch, const char *name, double value)
{
    size_t index = kprof_names_find(&launch->model.metric_names, name);
    if (index == KPROF_NAMES_NONE) {
        index = launch->model.metric_count++;
        assert_true(index < MAX_METRICS);
        assert_true(kprof_names_add(&launch->model.metric_names, name, index));
    }
    const bool is_counted = strncmp(name, "derived__", 9) != 0 && strncmp(name, "launch__", 8) != 0;
    launch->model.metrics = launch->metrics;
    launch->metrics[index].kind = (char *)(is_counted ? "hardware" : "derived");
    launch->values[index] = value;
}

static void set_values(made_launch *launch, const cJSON *values)
{
    const cJSON *value;
    cJSON_ArrayForEach(value, values)
    {
        set_value(launch, value->string, cJSON_IsNull(value) ? NAN : value->valuedouble);
    }
}

static void free_launch(made_launch *launch)
{
    kprof_names_free(&launch->model.metric_names);
    *launch = (made_launch){0};
}

/* Evaluate; the rules live until rules_pool is freed. */
static const kprof_findings *apply(const kprof_finding_list *findings, const made_launch *launch, kprof_rules **rules)
{
    kprof_model model = launch->model;
    model.pool = &rules_pool;
    *rules = kprof_rules_new(findings, &model);
    return kprof_rules_apply(*rules, launch->values, NULL);
}

static void expect_found(const kprof_found *found, const cJSON *expected)
{
    const cJSON *gain = cJSON_GetObjectItem(expected, "gain");
    const char *says = cJSON_GetStringValue(cJSON_GetObjectItem(expected, "says"));
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    assert_int_equal(found->state, KPROF_FOUND);
    kprof_found_say(found, false, &text);
    if (!strstr(text.data, says))
        fail_msg("%s says \"%s\", not \"%s\"", found->finding->id, text.data, says);
    if (strstr(text.data, "n/a"))
        fail_msg("%s says \"%s\"", found->finding->id, text.data);
    assert_true(cJSON_IsNull(gain) == (found->finding->gain == NULL));
    if (!cJSON_IsNull(gain) && !(fabs(found->gain_pct - gain->valuedouble) < 1e-9))
        fail_msg("%s is worth %.15g, not %.15g", found->finding->id, found->gain_pct, gain->valuedouble);
}

/* Not evaluated, and told for want of what. */
static void expect_unknown(const kprof_finding_list *findings, const made_launch *launch, const char *missing)
{
    kprof_rules *rules;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    const kprof_found *found = &apply(findings, launch, &rules)->items[0];
    if (found->state != KPROF_FOUND_UNKNOWN)
        fail_msg("%s is evaluated without %s", found->finding->id, missing);
    kprof_found_missing(found, &names);
    if (!kprof_strlist_contains(&names, missing))
        fail_msg("%s does not tell that %s is missing", found->finding->id, missing);
    kprof_pool_free(&rules_pool);
}

static void check_unknown(const kprof_finding_list *findings, made_launch *launch, const cJSON *without)
{
    const cJSON *name;
    if (cJSON_IsString(without)) {
        set_value(launch, without->valuestring, NAN);
        expect_unknown(findings, launch, without->valuestring);
        return;
    }
    cJSON_ArrayForEach(name, without)
    {
        set_value(launch, name->valuestring, NAN);
    }
    expect_unknown(findings, launch, cJSON_GetArrayItem(without, 0)->valuestring);
}

/* A row of the verdict is [its name, its text]. */
static void expect_line(const kprof_findings *findings, kprof_verdict_row row, const cJSON *expected, const char *why)
{
    kprof_verdict_text said = kprof_verdict_describe(findings, row, false);
    const char *name = cJSON_GetArrayItem(expected, 0)->valuestring;
    const char *text = cJSON_GetArrayItem(expected, 1)->valuestring;
    if (!said.name.length || strcmp(said.name.data, name) != 0)
        fail_msg("%s: %s is \"%s\", not \"%s\"", why, said.key, said.name.length ? said.name.data : "", name);
    if (strcmp(said.text.data, text) != 0)
        fail_msg("%s: %s is \"%s\", not \"%s\"", why, said.key, said.text.data, text);
    kprof_verdict_text_free(&said);
}

/* The row of the verdict that the finding tells. */
static kprof_verdict_row row_of(const kprof_finding *finding)
{
    return finding->verdict == KPROF_VERDICT_LIMIT   ? KPROF_ROW_LIMIT
           : finding->verdict == KPROF_VERDICT_STALL ? KPROF_ROW_STALL
                                                     : KPROF_ROW_OCCUPANCY;
}

static void check_text(const kprof_found *found, const cJSON *one, const char *why)
{
    const char *says = cJSON_GetStringValue(cJSON_GetObjectItem(one, "says"));
    const char *next = cJSON_GetStringValue(cJSON_GetObjectItem(one, "next"));
    const cJSON *gain = cJSON_GetObjectItem(one, "gain"), *missing = cJSON_GetObjectItem(one, "missing");
    const cJSON *severity = cJSON_GetObjectItem(one, "severity");
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT;
    kprof_found_say(found, false, &text);
    if (found->state == KPROF_FOUND && strstr(text.data, "n/a"))
        fail_msg("%s %s \"%s\"", found->finding->id, why, text.data);
    if (says && !strstr(text.data, says))
        fail_msg("%s %s \"%s\", not \"%s\"", found->finding->id, why, text.data, says);
    if (cJSON_IsNull(gain) ? !isnan(found->gain_pct) : gain && !(fabs(found->gain_pct - gain->valuedouble) < 1e-9))
        fail_msg("%s %s It is worth %.15g, not %.15g", found->finding->id, why, found->gain_pct, gain->valuedouble);
    if (severity && !(fabs(found->severity_pct - severity->valuedouble) < 1e-9))
        fail_msg("%s %s Its severity is %.15g, not %.15g", found->finding->id, why, found->severity_pct,
                 severity->valuedouble);
    const cJSON *symptom = cJSON_GetObjectItem(one, "symptom");
    if (symptom && found->is_symptom != cJSON_IsTrue(symptom))
        fail_msg("%s %s It is %s symptom", found->finding->id, why, found->is_symptom ? "a" : "no");
    if (found->state == KPROF_FOUND && found->finding->gain && found->finding->confidence == KPROF_CONFIDENCE_HIGH &&
        isnan(found->gain_pct) && isnan(found->severity_pct))
        fail_msg("%s %s It has neither gain nor severity, so that what matters less outranks it", found->finding->id,
                 why);
    if (next && strcmp(kprof_found_next(found), next) != 0)
        fail_msg("%s %s Next is %s, not %s", found->finding->id, why, kprof_found_next(found), next);
    kprof_found_missing(found, &names);
    if (missing && !kprof_strlist_contains(&names, missing->valuestring))
        fail_msg("%s %s It does not lack %s", found->finding->id, why, missing->valuestring);
}

/* One of `more`: the values of `found` with others in their place. */
static void check_one_more(const kprof_finding_list *findings, const cJSON *base, const cJSON *one)
{
    static const char *const states[] = {
        [KPROF_FOUND_UNKNOWN] = "not evaluated", [KPROF_FOUND_NOTHING] = "nothing", [KPROF_FOUND] = "found"};
    kprof_rules *rules;
    made_launch launch = {0};
    const char *why = cJSON_GetStringValue(cJSON_GetObjectItem(one, "why"));
    const char *state = cJSON_GetStringValue(cJSON_GetObjectItem(one, "state"));
    const cJSON *line = cJSON_GetObjectItem(one, "verdict");
    set_values(&launch, base);
    set_values(&launch, cJSON_GetObjectItem(one, "values"));
    const kprof_findings *all = apply(findings, &launch, &rules);
    if (strcmp(states[all->items->state], state ? state : "found") != 0)
        fail_msg("%s: %s It is %s", all->items->finding->id, why, states[all->items->state]);
    check_text(all->items, one, why);
    if (line)
        expect_line(all, row_of(all->items->finding), line, why);
    kprof_pool_free(&rules_pool);
    free_launch(&launch);
}

static void check_shipped(const kprof_finding *finding)
{
    char path[512];
    kprof_rules *rules;
    made_launch launch = {0};
    const kprof_finding *items[] = {finding};
    const kprof_finding_list findings = {items, 1};
    snprintf(path, sizeof path, KPROF_TESTS_DIR "/report/findings/%s.json", finding->id);
    KPROF_AUTO_FREE char *text = fixture_read(path, NULL);
    cJSON *cases = text ? cJSON_Parse(text) : NULL;
    if (!cases)
        fail_msg("%s: a finding without cases", path);
    const cJSON *found = cJSON_GetObjectItem(cases, "found"), *nothing = cJSON_GetObjectItem(cases, "nothing");
    set_values(&launch, cJSON_GetObjectItem(found, "values"));
    expect_found(&apply(&findings, &launch, &rules)->items[0], found);
    kprof_pool_free(&rules_pool);
    if (!cJSON_IsNull(nothing)) { /* else it is always found */
        set_values(&launch, nothing);
        if (apply(&findings, &launch, &rules)->items[0].state != KPROF_FOUND_NOTHING)
            fail_msg("%s is found, or not evaluated, where there is nothing", finding->id);
        kprof_pool_free(&rules_pool);
    }
    set_values(&launch, cJSON_GetObjectItem(found, "values"));
    check_unknown(&findings, &launch, cJSON_GetObjectItem(cases, "unknown"));
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(cases, "more"))
    {
        check_one_more(&findings, cJSON_GetObjectItem(found, "values"), one);
    }
    free_launch(&launch);
    cJSON_Delete(cases);
}

TEST(shipped_findings)
{
    kprof_finding_list findings;
    kprof_catalog *catalog = fixture_findings_load(true, &findings);
    assert_true(findings.count >= 20);
    for (size_t i = 0; i < findings.count; i++)
        check_shipped(findings.items[i]);
    free(findings.items);
    kprof_catalog_free(catalog);
}

static void check_launch(const kprof_finding_list *list, const cJSON *made)
{
    static const char *const keys[] = {[KPROF_ROW_LIMIT] = "limit",
                                       [KPROF_ROW_STALL] = "stall",
                                       [KPROF_ROW_OCCUPANCY] = "occupancy",
                                       [KPROF_ROW_BEST] = "finding",
                                       [KPROF_ROW_NEXT] = "next"};
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(made, "name"));
    const cJSON *found = cJSON_GetObjectItem(made, "found"), *rows = cJSON_GetObjectItem(made, "rows"), *id;
    KPROF_AUTO(kprof_strlist) ids = KPROF_STRLIST_INIT;
    kprof_rules *rules;
    made_launch launch = {0};
    set_values(&launch, cJSON_GetObjectItem(made, "values"));
    const kprof_findings *all = apply(list, &launch, &rules);
    for (size_t i = 0; i < all->count; i++) {
        if (all->items[i].state == KPROF_FOUND)
            assert_true(kprof_strlist_add(&ids, all->items[i].finding->id));
    }
    cJSON_ArrayForEach(id, found)
    {
        if (!kprof_strlist_contains(&ids, id->valuestring))
            fail_msg("%s: %s is not found", name, id->valuestring);
    }
    for (size_t i = 0; i < ids.count; i++) {
        bool is_expected = false;
        cJSON_ArrayForEach(id, found)
        {
            is_expected = is_expected || strcmp(id->valuestring, ids.items[i]) == 0;
        }
        if (!is_expected)
            fail_msg("%s: %s is found", name, ids.items[i]);
    }
    for (kprof_verdict_row row = 0; row < KPROF_VERDICT_ROWS; row++) {
        if (cJSON_GetObjectItem(rows, keys[row]))
            expect_line(all, row, cJSON_GetObjectItem(rows, keys[row]), name);
    }
    kprof_pool_free(&rules_pool);
    free_launch(&launch);
}

/* A whole launch has exactly these findings, and these rows of the verdict. */
TEST(shipped_verdicts)
{
    kprof_finding_list list;
    kprof_catalog *catalog = fixture_findings_load(true, &list);
    KPROF_AUTO_FREE char *text = fixture_read(KPROF_TESTS_DIR "/report/verdicts.json", NULL);
    cJSON *launches = cJSON_Parse(text);
    const cJSON *made;
    assert_true(cJSON_GetArraySize(launches) > 0);
    cJSON_ArrayForEach(made, launches)
    {
        check_launch(&list, made);
    }
    cJSON_Delete(launches);
    free(list.items);
    kprof_catalog_free(catalog);
}

static const char chooser[] =
    "{\"id\":\"Chooser\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"S\"],\"confidence\":\"low\",\"when\":\"most >= "
    "0\","
    "\"values\":[{\"name\":\"most\",\"unit\":\"%\",\"largest\":[{\"name\":\"A\",\"value\":\"a__x\"},"
    "{\"name\":\"B\",\"value\":\"b__x\"},{\"name\":\"never\",\"value\":\"1000\",\"when\":\"a__x < 0\"}]},"
    "{\"name\":\"least\",\"smallest\":[{\"name\":\"A\",\"value\":\"a__x\"},{\"name\":\"B\",\"value\":\"b__x\"}]},"
    "{\"name\":\"turn\",\"first\":[{\"name\":\"high\",\"when\":\"b__x > 50\"},{\"name\":\"low {most.name}\","
    "\"text\":\"at {most} \"}]}],"
    "\"message\":\"{most.name} {least.name} {turn.name} {turn.text}{turn}\","
    "\"speedup\":{\"expression\":\"a__x * 10 - 5\",\"formula\":\"f\"}}";

static void expect_choice(kprof_finding *finding, double a, double b, const char *expected)
{
    kprof_rules *rules;
    made_launch launch = {0};
    const kprof_finding *items[] = {finding};
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    set_value(&launch, "a__x", a);
    set_value(&launch, "b__x", b);
    const kprof_found *found = &apply(&(kprof_finding_list){items, 1}, &launch, &rules)->items[0];
    kprof_found_say(found, false, &text);
    assert_string_equal(text.data, expected);
    kprof_pool_free(&rules_pool);
    free_launch(&launch);
}

/* An option without a value does not count; where options are asked in turn, one that is open ends it. */
TEST(options_are_chosen)
{
    kprof_finding finding;
    cJSON *json = cJSON_Parse(chooser);
    assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, json, &finding), KPROF_OK);
    expect_choice(&finding, 4, 60, "B A high 1");
    expect_choice(&finding, 4, 3, "A B low A at 4 % 2");
    expect_choice(&finding, 4, 4, "A A low A at 4 % 2");
    expect_choice(&finding, NAN, 3, "B B low B at 3 % 2");
    expect_choice(&finding, 4, NAN, "A A n/a n/an/a");
    kprof_pool_free(&pool);
    cJSON_Delete(json);
}

/* Each text has the one before it twice, and each value those before it: neither is followed without end. */
TEST(growing_texts_are_cut)
{
    enum { LEVELS = 60 };
    kprof_finding finding;
    kprof_rules *rules;
    made_launch launch = {0};
    const kprof_finding *items[] = {&finding};
    KPROF_AUTO(kprof_strbuf) json = KPROF_STRBUF_INIT, text = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
    kprof_strbuf_puts(&json, "{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"S\"],\"confidence\":\"low\","
                             "\"values\":[{\"name\":\"v0\",\"first\":[{\"name\":\"o\",\"text\":\"ab\"}]},"
                             "{\"name\":\"w0\",\"expression\":\"a__x\"}");
    for (int i = 1; i < LEVELS / 2; i++)
        kprof_strbuf_printf(&json,
                            ",{\"name\":\"v%d\",\"first\":[{\"name\":\"o\",\"text\":\"{v%d.text}{v%d.text}\"}]},"
                            "{\"name\":\"w%d\",\"expression\":\"w%d + w%d\"}",
                            i, i - 1, i - 1, i, i - 1, i - 1);
    kprof_strbuf_printf(&json, "],\"when\":\"w%d > 0\",\"message\":\"{v%d.text}\"}", LEVELS / 2 - 1, LEVELS / 2 - 1);
    cJSON *value = cJSON_Parse(json.data);
    assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, value, &finding), KPROF_OK);
    const kprof_found *found = &apply(&(kprof_finding_list){items, 1}, &launch, &rules)->items[0];
    kprof_found_say(found, false, &text);
    assert_in_range(text.length, 100, 2000);
    kprof_found_missing(found, &missing);
    assert_int_equal(missing.count, 1);
    kprof_pool_free(&rules_pool);
    kprof_pool_free(&pool);
    cJSON_Delete(value);
}

/* Print a report by one finding, which `text` has as JSON. The page has `wanted`. */
static void assert_tells(const char *text, kprof_print_options options, const char *wanted)
{
    kprof_finding finding;
    kprof_report *report = NULL;
    kprof_status status;
    char path[512];
    cJSON *json = cJSON_Parse(text);
    assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, json, &finding), KPROF_OK);
    snprintf(path, sizeof path, "%s", fixture_path("one-finding.kprof"));
    fixture_write(path);
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    const kprof_finding *items[] = {&finding};
    options.findings = &(kprof_finding_list){items, 1};
    KPROF_AUTO_FREE char *page = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(page, wanted));
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    unlink(path);
    kprof_pool_free(&pool);
    cJSON_Delete(json);
}

/* They have no placeholders, whatever they look like. */
TEST(estimates_are_told_as_they_are)
{
    assert_tells(
        "{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"SpeedOfLight\"],\"confidence\":\"low\","
        "\"when\":\"1 > 0\",\"message\":\"M\",\"advice\":\"\",\"values\":[{\"name\":\"v\",\"expression\":\"1\"}],"
        "\"speedup\":{\"expression\":\"5\",\"formula\":\"a {x} {v}\",\"source\":\"b {v.text}\"}}",
        (kprof_print_options){.details_help = true}, "      Estimate: a {x} {v}\n      Estimate from: b {v.text}\n");
    assert_tells("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"SpeedOfLight\"],\"confidence\":\"low\","
                 "\"when\":\"1 > 0\",\"message\":\"M\","
                 "\"speedup\":{\"expression\":\"0\",\"formula\":\"a\",\"source\":\"b\"}}",
                 (kprof_print_options){0}, "    ! N: no gain, low confidence\n");
}

/* A share of 0 has no value, though no metric is missing. */
TEST(what_divides_by_0_misses_no_metric)
{
    assert_tells("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"SpeedOfLight\"],\"confidence\":\"low\","
                 "\"when\":\"1 / 0 > 1\",\"message\":\"M\"}",
                 (kprof_print_options){.format = KPROF_FORMAT_JSONL},
                 "\"not_evaluated\":[{\"id\":\"F\",\"missing\":[]}]");
}

static void expect_gain(kprof_finding *finding, double a, double expected)
{
    kprof_rules *rules;
    made_launch launch = {0};
    const kprof_finding *items[] = {finding};
    set_value(&launch, "a__x", a);
    assert_true(apply(&(kprof_finding_list){items, 1}, &launch, &rules)->items[0].gain_pct == expected);
    kprof_pool_free(&rules_pool);
    free_launch(&launch);
}

TEST(gains_are_shares)
{
    kprof_finding finding;
    cJSON *json = cJSON_Parse(chooser);
    assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, json, &finding), KPROF_OK);
    expect_gain(&finding, 4, 35);
    expect_gain(&finding, 40, 100);
    expect_gain(&finding, 0, 0);
    kprof_pool_free(&pool);
    cJSON_Delete(json);
}

/* A value that no launch can have is no evidence, and a gain of nothing is not worth most. */
/* "a share of 587,498 % is impossible", in place of the verdict and of the finding; some hundred per cent are told. */
TEST(impossible_shares_are_no_evidence)
{
    static const char text[] =
        "{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"S\"],\"confidence\":\"low\","
        "\"values\":[{\"name\":\"share\",\"label\":\"Share\",\"unit\":\"%\",\"expression\":\"100 * part__count.sum\"},"
        "{\"name\":\"text\",\"first\":[{\"name\":\"n\",\"text\":\"{share} of it\"}]}],"
        "\"when\":\"share > 5\",\"message\":\"It is {text.text}.\","
        "\"verdict\":{\"line\":\"limit\",\"name\":\"n\",\"text\":\"{text.text}\"},"
        "\"speedup\":{\"expression\":\"share\",\"formula\":\"f\",\"source\":\"s\"}}";
    for (int is_impossible = 0; is_impossible < 2; is_impossible++) {
        kprof_rules *rules;
        kprof_finding finding;
        made_launch launch = {0};
        KPROF_AUTO(kprof_strbuf) why = KPROF_STRBUF_INIT;
        KPROF_AUTO(kprof_strlist) missing = KPROF_STRLIST_INIT;
        cJSON *json = cJSON_Parse(text);
        assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, json, &finding), KPROF_OK);
        const kprof_finding *items[] = {&finding};
        set_value(&launch, "part__count.sum", is_impossible ? 5874.98 : 12.5);
        const kprof_findings *findings = apply(&(kprof_finding_list){items, 1}, &launch, &rules);
        const kprof_found *found = &findings->items[0];
        KPROF_AUTO(kprof_verdict_text) row = kprof_verdict_describe(findings, KPROF_ROW_LIMIT, false);
        assert_int_equal(found->state, is_impossible ? KPROF_FOUND_UNKNOWN : KPROF_FOUND);
        assert_int_equal(isnan(found->gain_pct), is_impossible);
        assert_string_equal(row.text.data,
                            is_impossible ? "not known: a share of 587,498 % is impossible" : "1,250 % of it");
        kprof_found_missing(found, &missing);
        assert_int_equal(missing.count, 0);
        kprof_found_why_not(found, &why);
        assert_string_equal(kprof_strbuf_text(&why), is_impossible ? "a share of 587,498 % is impossible" : "");
        kprof_pool_free(&rules_pool);
        kprof_pool_free(&pool);
        free_launch(&launch);
        cJSON_Delete(json);
    }
}

TEST(impossible_values_are_none)
{
    static const struct {
        const char *name;
        double value;
        kprof_found_state state;
    } rows[] = {
        {"gpu__time_duration.sum", 3, KPROF_FOUND},
        {"gpu__time_duration.sum", 0, KPROF_FOUND_UNKNOWN},
        {"gpu__time_duration.sum", -3, KPROF_FOUND_UNKNOWN},
        {"gpc__cycles_elapsed.avg.per_second", 0, KPROF_FOUND_UNKNOWN},
        {"sm__cycles_active.avg", 0, KPROF_FOUND},
        {"sm__cycles_active.avg", -1, KPROF_FOUND_UNKNOWN},
        {"sm__cycles_active.avg", -INFINITY, KPROF_FOUND_UNKNOWN},
        {"derived__difference.sum", -1, KPROF_FOUND},
        {"derived__difference.sum", -INFINITY, KPROF_FOUND_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kprof_rules *rules;
        kprof_finding finding;
        made_launch launch = {0};
        KPROF_AUTO_FREE char *text =
            kprof_strprintf("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"S\"],\"confidence\":\"low\","
                            "\"when\":\"%s < 5\","
                            "\"message\":\"M\",\"speedup\":{\"expression\":\"0\",\"formula\":\"f\",\"source\":\"s\"}}",
                            rows[i].name);
        cJSON *json = cJSON_Parse(text);
        assert_int_equal(kprof_finding_read(&(kprof_json_place){.name = "F", .pool = &pool}, json, &finding), KPROF_OK);
        const kprof_finding *items[] = {&finding};
        set_value(&launch, rows[i].name, rows[i].value);
        const kprof_findings *findings = apply(&(kprof_finding_list){items, 1}, &launch, &rules);
        assert_int_equal(findings->items[0].state, rows[i].state);
        assert_null(findings->verdict.best);
        kprof_pool_free(&rules_pool);
        kprof_pool_free(&pool);
        free_launch(&launch);
        cJSON_Delete(json);
    }
}

static void expect_row(const kprof_findings *findings, kprof_verdict_row row, const char *name, const char *text)
{
    kprof_verdict_text said = kprof_verdict_describe(findings, row, false);
    assert_string_equal(said.name.length ? said.name.data : "", name);
    assert_string_equal(said.text.length ? said.text.data : "", text);
    assert_int_equal(said.is_known, *name != '\0');
    kprof_verdict_text_free(&said);
}

#define PCT ".avg.pct_of_peak_sustained_elapsed"

TEST(verdict_tells_what_is_known)
{
    kprof_rules *rules;
    made_launch launch = {0};
    kprof_finding_list list;
    kprof_catalog *catalog = fixture_findings_load(false, &list);
    const kprof_findings *findings = apply(&list, &launch, &rules);
    expect_row(findings, KPROF_ROW_LIMIT, "", "not known; collect --section SpeedOfLight");
    expect_row(findings, KPROF_ROW_BEST, "", "no finding; --set full looks for 2 more findings");
    expect_row(findings, KPROF_ROW_NEXT, "", "");
    kprof_pool_free(&rules_pool);
    set_value(&launch, "sm__throughput" PCT, 20);
    set_value(&launch, "gpu__compute_memory_throughput" PCT, 60);
    set_value(&launch, "gpu__dram_throughput" PCT, 60);
    set_value(&launch, "sm__warps_active.avg.pct_of_peak_sustained_active", 10);
    set_value(&launch, "launch__occupancy_limit_registers", 3);
    findings = apply(&list, &launch, &rules);
    expect_row(findings, KPROF_ROW_LIMIT, "DRAM bandwidth", "DRAM bandwidth, at 60 % of its peak");
    expect_row(findings, KPROF_ROW_STALL, "", "not known; collect --section WarpStateStats");
    expect_row(findings, KPROF_ROW_OCCUPANCY, "registers", "10 % achieved; limited by registers");
    expect_row(findings, KPROF_ROW_BEST, "Waves",
               "Warp slots are empty: up to 90 % of the time of that part; --set full looks for 1 more finding");
    expect_row(findings, KPROF_ROW_NEXT, "Occupancy", "section Occupancy");
    kprof_pool_free(&rules_pool);
    /* A gain of the kernel's time comes before a greater one of a part. */
    set_value(&launch, "l1tex__t_sector_hit_rate.pct", 30);
    set_value(&launch, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1000);
    findings = apply(&list, &launch, &rules);
    expect_row(findings, KPROF_ROW_BEST, "Sectors", "L1 misses: up to 12 % of the time");
    expect_row(findings, KPROF_ROW_NEXT, "MemoryWorkloadAnalysis", "section MemoryWorkloadAnalysis");
    kprof_pool_free(&rules_pool);
    free_launch(&launch);
    free(list.items);
    kprof_catalog_free(catalog);
}

/* Each of these is worth more than all behind it. */
TEST(findings_are_ranked)
{
    static kprof_finding low = {.confidence = KPROF_CONFIDENCE_LOW}, high = {.confidence = KPROF_CONFIDENCE_HIGH},
                         local = {.gain_is_local = true};
    static const kprof_found ranked[] = {
        {&low, .gain_pct = 40, .unbounded_pct = 60, .severity_pct = NAN},
        {&low, .gain_pct = 40, .unbounded_pct = 40, .severity_pct = NAN},
        {&high, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = 39},
        {&high, .gain_pct = 12, .unbounded_pct = 12, .severity_pct = NAN},
        {&high, .gain_pct = 33, .unbounded_pct = 33, .severity_pct = NAN, .is_symptom = true},
        {&high, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = 90, .is_symptom = true},
        {&high, .gain_pct = 9, .unbounded_pct = 9, .severity_pct = NAN},
        {&low, .gain_pct = 26, .unbounded_pct = 26, .severity_pct = NAN, .is_symptom = true},
        {&low, .gain_pct = 3, .unbounded_pct = 3, .severity_pct = NAN},
        {&high, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = 9},
        {&local, .gain_pct = 80, .unbounded_pct = 80, .severity_pct = NAN},
        {&high, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = NAN},
        {&low, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = NAN},
        {&high, .gain_pct = NAN, .unbounded_pct = NAN, .severity_pct = NAN, .is_symptom = true},
        {&high, .gain_pct = 0, .unbounded_pct = 0, .severity_pct = NAN},
    };
    for (size_t i = 0; i < COUNT_OF(ranked); i++)
        for (size_t k = 0; k < COUNT_OF(ranked); k++)
            assert_int_equal(kprof_found_is_worth_more(&ranked[i], &ranked[k]), i < k);
}

/* Every id of an unknown finding is an error that names the nearest. */
TEST(findings_are_chosen_by_id)
{
    static char *ids[] = {(char *)"WarpStall", (char *)"TailEffect"}, *wrong[] = {(char *)"WarpStal"};
    kprof_finding_list all, list;
    kprof_catalog *catalog = fixture_findings_load(true, &all);
    assert_int_equal(kprof_catalog_findings(catalog, &(kprof_strlist){ids, 2, 2}, &list), KPROF_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0]->id, "WarpStall"); /* in display order */
    free(list.items);
    assert_int_equal(kprof_catalog_findings(catalog, &(kprof_strlist){wrong, 1, 1}, &list), KPROF_UNKNOWN_NAME);
    free(all.items);
    kprof_catalog_free(catalog);
}
