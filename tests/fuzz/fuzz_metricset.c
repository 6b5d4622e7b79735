/* Files of sets, sections, findings and aliases. The first byte says which, or that the text is a section as a report
 * stores it. A section that reads is resolved and stored as JSON, which must read again; a finding that reads is
 * evaluated. */
#include "fuzz.h"

#include "metricset/catalog.h"
#include "report_input.h"

#include <string.h>
#include <sys/stat.h>

static kprof_report *report; /* that findings are evaluated on */
static char set_folder[256]; /* of a catalog with one section and the set */

void fuzz_set_up(void)
{
    static const char section[] = "{\"id\":\"s\",\"name\":\"S\",\"items\":[{\"metric\":\"a__b.sum\",\"label\":\"L\"}]}";
    size_t size;
    KPROF_AUTO_FREE uint8_t *fixture = fuzz_read_fixture(false, &size);
    char path[300];
    snprintf(path, sizeof path, "%s", fuzz_path("report.kprof"));
    fuzz_write_file(path, fixture, size);
    FUZZ_CHECK(kprof_report_open(path, &report) == KPROF_OK);
    snprintf(set_folder, sizeof set_folder, "%s", fuzz_path("catalog"));
    FUZZ_CHECK(mkdir(set_folder, 0700) == 0);
    FUZZ_CHECK(mkdir(fuzz_path("catalog/sets"), 0700) == 0);
    FUZZ_CHECK(mkdir(fuzz_path("catalog/sections"), 0700) == 0);
    fuzz_write_file(fuzz_path("catalog/sections/s.json"), section, strlen(section));
}

static void visit_help(void *user, const kprof_value_help *value)
{
    FUZZ_CHECK(value->label && value->metric && value->help);
}

static void load_catalog(const char *kind, const char *text, size_t size)
{
    kprof_catalog *catalog = NULL;
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    char path[400];
    snprintf(path, sizeof path, "%s/%s/s.json", set_folder, kind);
    fuzz_write_file(path, text, size);
    FUZZ_CHECK(kprof_strlist_add(&folders, set_folder));
    if (kprof_catalog_load(&folders, &catalog) == KPROF_OK) {
        kprof_selection selection = {.sets = {(char *[]){(char *)"s"}, 1, 1}};
        FUZZ_CHECK(kprof_selection_check(catalog, &selection) == KPROF_OK);
        for (size_t i = 0; i < kprof_catalog_section_count(catalog); i++)
            kprof_catalog_section_helps(catalog, i, visit_help, NULL);
    }
    kprof_catalog_free(catalog);
}

static void store_section(const kprof_section *section)
{
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_section again = {0};
    KPROF_AUTO_FREE char *json = kprof_section_to_json(section);
    FUZZ_CHECK(json != NULL);
    kprof_status status = kprof_section_from_json(&(kprof_json_place){.name = "a", .pool = &pool}, json, &again);
    FUZZ_CHECK(status == KPROF_OK);
    KPROF_AUTO_FREE char *second = kprof_section_to_json(&again);
    FUZZ_CHECK(second != NULL && strcmp(json, second) == 0);
}

static void read_section(const kprof_json_place *place, const cJSON *value)
{
    kprof_section_definition definition;
    kprof_section section = {0};
    const kprof_supply supply = {.pool = place->pool};
    if (kprof_section_definition_read(place, value, &definition) == KPROF_OK) {
        FUZZ_CHECK(kprof_section_resolve(&definition, &supply, NULL, &section) == KPROF_OK);
        store_section(&section);
    }
}

static void read_finding(const kprof_json_place *place, const cJSON *value)
{
    kprof_finding finding;
    if (kprof_json_check_texts(place, value) != KPROF_OK) /* as a catalog does */
        return;
    if (kprof_finding_read(place, value, &finding) == KPROF_OK)
        FUZZ_CHECK(fuzz_print_finding(report, &finding) == KPROF_OK);
}

static bool has_anything(void *user, const char *name)
{
    return strlen(name) % 2 == 0;
}

static void read_aliases(const kprof_json_place *place, const cJSON *value)
{
    kprof_alias_file file;
    const kprof_name_supply supply = {has_anything, NULL};
    const bool is_read = kprof_alias_file_read(place, value, &file) == KPROF_OK;
    for (size_t i = 0; i < file.count && is_read; i++) {
        kprof_strlist chosen = KPROF_STRLIST_INIT;
        FUZZ_CHECK(kprof_alias_describe(&file.aliases[i]).name != NULL);
        kprof_alias_choose(&file.aliases[i], &supply, &chosen);
        kprof_strlist_free(&chosen);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    KPROF_AUTO(kprof_pool) pool = {0};
    const kprof_json_place place = {.name = "x.json", .pool = &pool};
    cJSON *value = NULL;
    kprof_section section = {0};
    fuzz_input input = {data, size};
    uint8_t kind = fuzz_take_byte(&input);
    size_t length = input.left;
    KPROF_AUTO_FREE char *text = fuzz_take_text(&input, length);
    if (kind == 'S') {
        load_catalog("sets", text, length);
    } else if (kind == 'J') {
        if (kprof_section_from_json(&place, text, &section) == KPROF_OK)
            store_section(&section);
    } else if (kprof_json_parse(&place, text, length, &value) == KPROF_OK) {
        if (kind == 'F')
            read_finding(&place, value);
        else if (kind == 'A')
            read_aliases(&place, value);
        else
            read_section(&place, value);
    }
    cJSON_Delete(value);
    return 0;
}
