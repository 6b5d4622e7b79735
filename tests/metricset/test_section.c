/* Resolved sections as JSON: the round trip, and texts from a report that somebody tampered with. */
#include "log_capture.h"
#include "metricset/metricset.h"
#include "metricset/section.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static kprof_pool pool;
static const kprof_json_place stored = {.name = "stored section", .pool = &pool};

static const char whole[] =
    "{\"id\":\"Demo\",\"name\":\"A demonstration\",\"help\":\"What it is.\",\"order\":7,"
    "\"items\":[{\"metric\":\"gpu__time_duration.sum\",\"label\":\"Duration\"},"
    "{\"name\":\"derived__x.ratio\",\"expression\":\"a.sum / 2\",\"label\":\"X\",\"unit\":\"\",\"help\":\"Half.\"}],"
    "\"tables\":[{\"id\":\"t\",\"title\":\"T\",\"sorted\":true,\"columns\":[\"One\",\"Two\"],"
    "\"rows\":[{\"label\":\"R\",\"cells\":[{\"metric\":\"b.avg\",\"label\":\"R\"},null]}]}],"
    "\"rooflines\":[{\"id\":\"fp32\",\"label\":\"FP32\",\"work\":{\"metric\":\"w.sum\",\"label\":\"FP32\"},"
    "\"peak\":{\"metric\":\"p.sum\",\"label\":\"FP32\"},\"roofs\":[{\"label\":\"DRAM\","
    "\"traffic\":{\"metric\":\"t.sum\",\"label\":\"DRAM\"},\"peak\":{\"metric\":\"q.sum\",\"label\":\"DRAM\"}}]}]}";

TEST(test_round_trip)
{
    kprof_section section;
    assert_int_equal(kprof_section_from_json(&stored, whole, &section), KPROF_OK);
    assert_string_equal(section.id, "Demo");
    assert_int_equal(section.order, 7);
    assert_int_equal(section.item_count, 2);
    assert_null(section.items[0].expression);
    assert_null(section.items[0].unit);
    assert_non_null(section.items[0].compiled);
    assert_string_equal(section.items[1].expression, "a.sum / 2");
    assert_true(section.tables[0].sorted);
    assert_int_equal(section.tables[0].column_count, 2);
    assert_null(section.tables[0].rows[0].cells[1].name);
    assert_string_equal(section.rooflines[0].roofs[0].traffic.name, "t.sum");
    KPROF_AUTO_FREE char *again = kprof_section_to_json(&section);
    assert_string_equal(again, whole);
    kprof_pool_free(&pool);
}

static void assert_refused(const char *json, const char *reason)
{
    log_capture capture;
    log_capture_start(&capture);
    kprof_section section;
    assert_int_equal(kprof_section_from_json(&stored, json, &section), KPROF_BAD_METRICSET);
    if (!strstr(capture.last, reason))
        fail_msg("%.80s\ngives \"%s\", not \"%s\"", json, capture.last, reason);
    kprof_pool_free(&pool);
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_refused)
{
    assert_refused("", "not valid JSON");
    assert_refused("{\"id\":\"A\",", "not valid JSON");
    assert_refused("[]", "must be an object");
    assert_refused("{\"name\":\"N\"}", "id: is missing");
    assert_refused("{\"id\":7,\"name\":\"N\"}", "id: must be a string");
    assert_refused("{\"id\":\"\",\"name\":\"N\"}", "id: must not be empty");
    assert_refused("{\"id\":\"A\\u0007\",\"name\":\"N\"}", "control character");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"order\":1e300}", "order: must be a whole number");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"order\":1.5}", "order: must be a whole number");
    assert_refused("{\"id\":\"A\",\"id\":\"B\",\"name\":\"N\"}", "id: is given twice");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":{}}", "items: must be a list");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"samples\":1}", "samples: must be true or false");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"instructions\":[\"inst_executed\"]}",
                   "instructions[0]: is \"inst_executed\", which is no counter of instructions");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"instructions\":[\"smsp__pcsamp_sample_count\"]}",
                   "which is no counter of instructions");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[3]}", "items[0]: must be an object");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[{\"metric\":\"m.sum\"}]}", "items[0].label: is missing");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[{\"label\":\"L\"}]}", "items[0].metric: is missing");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[{\"label\":\"L\",\"metrik\":\"m\"}]}",
                   "did you mean \"metric\"");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[{\"label\":\"L\",\"metric\":\"a + b\"}]}",
                   "items[0].metric: must be the name of a metric");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"items\":[{\"label\":\"L\",\"expression\":\"a\"}]}",
                   "items[0].expression: needs a \"name\"");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"tables\":[{\"id\":\"t\",\"title\":\"T\",\"columns\":[]}]}",
                   "tables[0].columns: must name 1 to");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"tables\":[{\"id\":\"t\",\"title\":\"T\",\"columns\":[\"C\"],"
                   "\"rows\":[{\"label\":\"R\",\"cells\":[\"a.sum\",\"b.sum\"]}]}]}",
                   "tables[0].rows[0]: has 2 cells, but the table has 1 columns");
    assert_refused("{\"id\":\"A\",\"name\":\"N\",\"rooflines\":[{\"id\":\"r\",\"label\":\"R\",\"peak\":\"p\"}]}",
                   "rooflines[0].work: is missing");
}

/* No prefix of a good text and no byte of it turned over may crash; most are errors. */
TEST(test_damaged)
{
    log_capture capture;
    log_capture_start(&capture);
    char copy[sizeof(whole)];
    kprof_section section;
    for (size_t i = 0; i + 1 < sizeof(whole); i++) {
        memcpy(copy, whole, sizeof(whole));
        copy[i] = '\0';
        assert_int_equal(kprof_section_from_json(&stored, copy, &section), KPROF_BAD_METRICSET);
        memcpy(copy, whole, sizeof(whole));
        copy[i] ^= 0x15;
        (void)!kprof_section_from_json(&stored, copy, &section);
        kprof_pool_free(&pool);
    }
    kprof_log_set_sink(NULL, NULL);
}

TEST(test_bounded)
{
    enum { DEEP = 100000, LONG = 9 << 20 };
    KPROF_AUTO_FREE char *text = malloc(LONG + 1);
    assert_non_null(text);
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    assert_refused(text, "not valid JSON");
    memset(text, ' ', LONG);
    text[LONG] = '\0';
    assert_refused(text, "longer than");
    strcpy(text, "{\"id\":\"");
    memset(text + strlen("{\"id\":\""), 'a', 10000);
    strcpy(text + strlen("{\"id\":\"") + 10000, "\",\"name\":\"N\"}");
    assert_refused(text, "id: is longer than");
}
