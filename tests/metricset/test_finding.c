/* Reading findings: what is refused and why, and files that are cut off or have the wrong types anywhere. */
#include "log_capture.h"
#include "metricset/metricset.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kprof_pool pool; /* of the findings of one test */

/* A finding without its last brace. */
#define HEAD                                                                                                           \
    "{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"sections\":[\"S\"],\"confidence\":\"high\",\"when\":\"a__b > 1\""
#define MESSAGE HEAD ",\"message\":\"M\""
#define LIMIT                                                                                                          \
    ",\"values\":[{\"name\":\"v\",\"expression\":\"1\"}],\"verdict\":{\"line\":\"limit\",\"name\":\"n\",\"text\":"     \
    "\"t\","
#define EIGHT_IDS      "\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\""
#define THIRTY_TWO_IDS EIGHT_IDS "," EIGHT_IDS "," EIGHT_IDS "," EIGHT_IDS

static kprof_status read_finding(const char *text, kprof_finding *out)
{
    const kprof_json_place place = {.name = "F.json", .pool = &pool};
    cJSON *value = NULL;
    *out = (kprof_finding){0};
    kprof_status status = kprof_json_parse(&place, text, strlen(text), &value);
    if (status == KPROF_OK)
        status = kprof_finding_read(&place, value, out);
    cJSON_Delete(value);
    return status;
}

static void assert_refused(const char *text, const char *reason)
{
    log_capture capture;
    kprof_finding finding;
    log_capture_start(&capture);
    assert_int_equal(read_finding(text, &finding), KPROF_BAD_METRICSET);
    kprof_pool_free(&pool);
    if (!strstr(capture.last, reason))
        fail_msg("%s\ngives \"%s\", not \"%s\"", text, capture.last, reason);
    kprof_log_set_sink(NULL, NULL);
}

TEST(refuses_what_is_missing_or_wrong)
{
    assert_refused("[]", "must be an object");
    assert_refused(HEAD "}", "message: is missing");
    assert_refused(MESSAGE ",\"massage\":\"M\"}", "did you mean \"message\"");
    assert_refused(
        "{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"message\":\"M\",\"confidence\":\"low\",\"when\":\"1 > 0\"}",
        "sections: must name the section");
    assert_refused("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"message\":\"M\",\"sections\":[\"S\"]}",
                   "confidence: is missing");
    assert_refused("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"message\":\"M\",\"sections\":[\"S\"],"
                   "\"confidence\":\"sure\"}",
                   "confidence: must be one of \"low\", \"medium\", \"high\"");
    assert_refused("{\"id\":\"F\",\"name\":\"N\",\"help\":\"H\",\"message\":\"M\",\"sections\":[\"S\"],"
                   "\"confidence\":\"low\"}",
                   "when: is missing");
    assert_refused(MESSAGE ",\"thresholds\":[{\"name\":\"t\"}]}", "thresholds[0].value: is missing");
    assert_refused(MESSAGE ",\"thresholds\":[{\"name\":\"t\",\"value\":\"1\"}]}", "value: must be a number");
    assert_refused(MESSAGE ",\"thresholds\":[{\"name\":\"t\",\"value\":1},{\"name\":\"t\",\"value\":2}]}",
                   "thresholds[1].name: is taken");
    assert_refused(MESSAGE ",\"speedup\":{\"formula\":\"x\"}}", "speedup.expression: is missing");
    assert_refused(MESSAGE ",\"speedup\":{\"expression\":\"1\"}}", "speedup.formula: is missing");
    assert_refused(MESSAGE ",\"speedup\":{\"expression\":\"1\",\"formula\":\"x\",\"scope\":\"all\"}}",
                   "speedup.scope: must be one of \"global\", \"local\"");
    assert_refused(MESSAGE ",\"speedup\":{\"expression\":\"1\",\"formula\":\"x\",\"at_most\":\"100 -\"}}",
                   "speedup.at_most: is not an expression");
    assert_refused(MESSAGE ",\"speedup\":{\"expression\":\"1\",\"formula\":\"x\",\"at_most\":\"left\"}}",
                   "speedup.at_most: \"left\" is neither");
    assert_refused(MESSAGE ",\"speedup\":{\"expression\":\"1\",\"formula\":\"x\",\"severity\":\"share\"}}",
                   "speedup.severity: \"share\" is neither");
    assert_refused(MESSAGE ",\"unless\":\"F\"}", "unless: must be a list");
    assert_refused(MESSAGE ",\"unless\":[" THIRTY_TWO_IDS ",\"a\"]}", "unless: has more than 32 elements");
    assert_refused(MESSAGE ",\"verdict\":{\"name\":\"n\",\"text\":\"t\"}}", "verdict.line: must be");
    assert_refused(MESSAGE ",\"verdict\":{\"line\":\"limit\",\"name\":\"n\"}}", "verdict.text: is missing");
    assert_refused(MESSAGE ",\"verdict\":{\"line\":\"limit\",\"name\":\"n\",\"text\":\"t\",\"value\":\"v\"}}",
                   "verdict.value: must be the name of a value");
}

TEST(refuses_a_symptom_of_nothing)
{
    assert_refused(MESSAGE ",\"symptom\":1}", "symptom: must be a string");
    assert_refused(MESSAGE ",\"symptom\":\"w > 0\"}", "symptom: \"w\" is neither");
}

TEST(refuses_a_limit_that_is_never_near)
{
    assert_refused(MESSAGE LIMIT "\"near\":{\"when\":\"1 > 0\",\"text\":\"t\"}}}",
                   "near: is only for the line \"limit\"");
    assert_refused(MESSAGE LIMIT "\"value\":\"v\",\"near\":{\"text\":\"t\"}}}", "near.when: is missing");
    assert_refused(MESSAGE LIMIT "\"value\":\"v\",\"near\":{\"when\":\"v > 0\"}}}", "near.text: is missing");
    assert_refused(MESSAGE LIMIT "\"value\":\"v\",\"near\":{\"when\":\"w > 0\",\"text\":\"t\"}}}",
                   "near.when: \"w\" is neither");
    assert_refused(MESSAGE LIMIT "\"value\":\"v\",\"near\":{\"when\":\"v > 0\",\"text\":\"{w}\"}}}",
                   "near.text: {w} does not stand");
}

TEST(refuses_values_that_mean_nothing)
{
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\"}]}", "values[0]: needs an \"expression\"");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v__w\",\"expression\":\"1\"}]}", "name: must be a word");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"Vee\",\"expression\":\"1\"}]}", "name: must be a word");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"max\",\"expression\":\"1\"}]}", "is a word of expressions");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"expression\":\"1 +\"}]}",
                   "values[0].expression: is not an expression");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"expression\":\"w\"},{\"name\":\"w\",\"expression\":\"1\"}]}",
                   "values[0].expression: \"w\" is neither a threshold");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"expression\":\"v\"}]}", "\"v\" is neither a threshold");
    assert_refused(MESSAGE ",\"thresholds\":[{\"name\":\"v\",\"value\":1}],"
                           "\"values\":[{\"name\":\"v\",\"expression\":\"1\"}]}",
                   "values[0].name: is taken");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"largest\":[]}]}", "largest: must have 1 to");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"largest\":[{\"name\":\"o\"}]}]}",
                   "values[0].largest[0].value: is missing");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"expression\":\"1\",\"first\":[{\"name\":\"o\"}]}]}",
                   "first: is one way too many");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"o\",\"when\":\"x > 1\"}]}]}",
                   "values[0].first[0].when: \"x\" is neither");
}

TEST(refuses_texts_that_place_nothing)
{
    assert_refused(HEAD ",\"message\":\"{v}\"}", "message: {v} does not stand for a value");
    assert_refused(HEAD ",\"message\":\"open {\"}", "does not stand for a value");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"expression\":\"1\"}],\"advice\":\"{v.name}\"}",
                   "advice: {v.name} does not stand");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"{v.name}\"}]}]}",
                   "first[0].name: {v.name} does not stand");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"o\",\"text\":\"{w}\"}]},"
                           "{\"name\":\"w\",\"expression\":\"1\"}]}",
                   "first[0].text: {w} does not stand");
    assert_refused(MESSAGE ",\"next\":\"{x.name}\"}", "next: {x.name} does not stand");
}

TEST(takes_a_whole_one)
{
    kprof_finding finding;
    assert_int_equal(read_finding(MESSAGE ",\"thresholds\":[{\"name\":\"t\",\"value\":-2.5,\"unit\":\"%\"}],"
                                          "\"values\":[{\"name\":\"v\",\"label\":\"V\",\"smallest\":["
                                          "{\"name\":\"one\",\"value\":\"a__b * t\",\"text\":\"{t} {v}\"}]}]}",
                                  &finding),
                     KPROF_OK);
    assert_int_equal(finding.confidence, KPROF_CONFIDENCE_HIGH);
    assert_int_equal(finding.values[0].pick, KPROF_PICK_SMALLEST);
    assert_int_equal(finding.operands.count, 1);
    assert_string_equal(finding.operands.items[0], "a__b");
    assert_string_equal(finding.values[0].unit, "");
    assert_int_equal(finding.verdict, KPROF_VERDICT_NONE);
    kprof_pool_free(&pool);
}

/* More than a finding may have. */
TEST(bounds_what_it_reads)
{
    enum { COUNT = 100 };
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&text, MESSAGE ",\"values\":[");
    for (int i = 0; i < COUNT; i++)
        kprof_strbuf_printf(&text, "%s{\"name\":\"v%d\",\"expression\":\"1\"}", i ? "," : "", i);
    kprof_strbuf_puts(&text, "]}");
    assert_refused(text.data, "values: has more than 64 elements");
    kprof_strbuf_clear(&text);
    kprof_strbuf_puts(&text, MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[");
    for (int i = 0; i < COUNT; i++)
        kprof_strbuf_printf(&text, "%s{\"name\":\"o\"}", i ? "," : "");
    kprof_strbuf_puts(&text, "]}]}");
    assert_refused(text.data, "first: must have 1 to 64 options");
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    kprof_strbuf text = KPROF_STRBUF_INIT;
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;)
        kprof_strbuf_append(&text, chunk, got);
    fclose(file);
    return kprof_strbuf_take(&text);
}

static void ignore_message(void *user, kprof_log_level level, const char *message) {}

/* Put `value` in the place of element `index`, which is deleted. */
static void put_at(cJSON *parent, int index, cJSON *value)
{
    if (!cJSON_IsObject(parent)) {
        assert_true(cJSON_ReplaceItemInArray(parent, index, value));
        return;
    }
    KPROF_AUTO_FREE char *key = strdup(cJSON_GetArrayItem(parent, index)->string);
    assert_true(cJSON_ReplaceItemInObjectCaseSensitive(parent, key, value));
}

/* Put `replacement` in the place of every value below `parent`, one after the other, and read the finding each time. */
static void replace_each(cJSON *root, cJSON *parent, const char *replacement)
{
    const kprof_json_place place = {.name = "F.json", .pool = &pool};
    for (int i = 0; i < cJSON_GetArraySize(parent); i++) {
        kprof_finding finding;
        replace_each(root, cJSON_GetArrayItem(parent, i), replacement);
        cJSON *kept = cJSON_Duplicate(cJSON_GetArrayItem(parent, i), true);
        put_at(parent, i, cJSON_Parse(replacement));
        kprof_status status = kprof_finding_read(&place, root, &finding);
        assert_true(status == KPROF_OK || status == KPROF_BAD_METRICSET);
        kprof_pool_free(&pool);
        put_at(parent, i, kept);
    }
}

static void hurt(const char *text)
{
    static const char *const others[] = {"null", "true", "-1e308", "\"\"", "\"{\"", "[]", "{}", "[[\"x\"]]"};
    kprof_finding finding;
    KPROF_AUTO_FREE char *cut = strdup(text);
    for (size_t length = strlen(text) - 2; length > 0; length -= length > 40 ? 37 : 1) {
        cut[length] = '\0';
        assert_int_equal(read_finding(cut, &finding), KPROF_BAD_METRICSET);
        kprof_pool_free(&pool);
    }
    cJSON *root = cJSON_Parse(text);
    assert_non_null(root);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        replace_each(root, root, others[i]);
    const kprof_json_place place = {.name = "F.json", .pool = &pool};
    assert_int_equal(kprof_finding_read(&place, root, &finding), KPROF_OK); /* it is whole again */
    kprof_pool_free(&pool);
    cJSON_Delete(root);
}

TEST(survives_broken_files)
{
    static const char *const names[] = {"Bottleneck", "TheoreticalOccupancy", "UncoalescedGlobal", "IssueSlots"};
    kprof_log_set_sink(ignore_message, NULL);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, KPROF_METRICSETS_DIR "/findings/%s.json", names[i]);
        char *text = read_file(path);
        hurt(text);
        free(text);
    }
    kprof_log_set_sink(NULL, NULL);
}

/* Where a finding is worst is told by counts of instructions. */
TEST(reads_places)
{
    static const char wait[] = "smsp__pcsamp_warps_issue_stalled_wait";
    kprof_finding finding;
    assert_int_equal(read_finding(MESSAGE "}", &finding), KPROF_OK);
    assert_null(finding.places.metrics);
    assert_int_equal(finding.places.of, SIZE_MAX);
    kprof_pool_free(&pool);
    assert_int_equal(read_finding(MESSAGE
                                  ",\"places\":{\"metrics\":[\"smsp__sass_sectors_mem_local\",\"derived__memory_l1_"
                                  "wavefronts_shared_excessive\"],\"most\":2}}",
                                  &finding),
                     KPROF_OK);
    assert_string_equal(finding.places.metrics[1], "derived__memory_l1_wavefronts_shared_excessive");
    assert_int_equal(finding.places.most, 2);
    kprof_pool_free(&pool);
    assert_int_equal(read_finding(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"x\",\"place\":\"smsp__"
                                          "pcsamp_warps_issue_stalled_wait\"}]}],\"places\":{\"of\":\"v\"}}",
                                  &finding),
                     KPROF_OK);
    assert_int_equal(finding.places.of, 0);
    assert_int_equal(finding.places.most, 3);
    assert_string_equal(finding.values[0].options[0].place, wait);
    assert_int_equal(finding.places.beside, SIZE_MAX);
    kprof_pool_free(&pool);
    assert_int_equal(read_finding(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"x\"}]},{\"name\":\"w\","
                                          "\"first\":[{\"name\":\"y\"}]}],\"places\":{\"of\":\"v\",\"beside\":\"w\"}}",
                                  &finding),
                     KPROF_OK);
    assert_int_equal(finding.places.beside, 1);
    kprof_pool_free(&pool);
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[\"smsp__sass_inst_executed\"],\"beside\":\"v\"}}",
                   "beside: must be the name of a value with options");
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[" EIGHT_IDS ",\"a\"]}}", "metrics: has more than 8 elements");
    assert_refused(MESSAGE ",\"places\":{}}", "places: must have either \"metrics\" or \"of\"");
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[\"gpu__time_duration.sum\"]}}", "is no metric of instructions");
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[\"inst_executed\"]}}", "is no metric of instructions");
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[\"derived__avg_thread_executed\"]}}", "cannot be added up");
    assert_refused(MESSAGE ",\"places\":{\"metrics\":[\"smsp__sass_inst_executed\"],\"most\":4}}",
                   "must be from 1 to 3");
    assert_refused(MESSAGE ",\"places\":{\"of\":\"v\"}}", "of: must be the name of a value with options");
    assert_refused(MESSAGE ",\"places\":{\"metric\":\"x\"}}", "did you mean \"metrics\"");
    assert_refused(MESSAGE ",\"values\":[{\"name\":\"v\",\"first\":[{\"name\":\"x\",\"place\":\"y\"}]}]}",
                   "place: is \"y\", which is no metric of instructions");
}
