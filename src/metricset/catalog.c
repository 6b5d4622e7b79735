/* Loads the set files: the JSON files in the folders sections, sets, findings, aliases and words of each folder, later
 * folders over earlier ones. */
#include "metricset/catalog.h"

#include "core/files.h"
#include "core/log.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 20, MAX_FILES = 1024, MAX_ALIASES = 8192, MAX_WORDS = 8192 };

/* Read a regular file; anything else might keep kprof waiting, or never end. */
static kprof_status read_file(const char *path, kprof_strbuf *out)
{
    KPROF_AUTO_CLOSE const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return kprof_fail(KPROF_BAD_METRICSET, "%s: cannot be opened: %s", path, strerror(errno));
    struct stat info;
    const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const bool is_read = is_file && kprof_read_whole(fd, MAX_FILE, out), is_long = errno == EFBIG;
    if (!is_file)
        return kprof_fail(KPROF_BAD_METRICSET, "%s: is not a regular file; remove it or give it another name", path);
    if (!is_read && is_long)
        return kprof_fail(KPROF_BAD_METRICSET, "%s: is longer than %d KB; split it into several sections", path,
                          MAX_FILE >> 10);
    return is_read ? KPROF_OK : kprof_fail(KPROF_BAD_METRICSET, "%s: cannot be read", path);
}

/* The id must be the file's name, so that users find the file by the id that --list-sections prints. */
static kprof_status check_id(const kprof_json_place *place, const char *id)
{
    const char *slash = strrchr(place->name, '/');
    const char *name = slash ? slash + 1 : place->name;
    size_t length = strlen(name) - strlen(".json");
    if (strlen(id) != length || strncmp(id, name, length) != 0)
        return kprof_json_fail(KPROF_JSON_KEY(place, "id"), "is \"%s\" but must be the file's name, \"%.*s\"", id,
                               (int)length, name);
    return KPROF_OK;
}

/* An array of the catalog. Its elements begin with their id. */
typedef struct kept_list {
    void **items;
    size_t *count, size;
} kept_list;
#define LIST_OF(catalog, name)                                                                                         \
    (&(kept_list){(void **)&(catalog)->name##s, &(catalog)->name##_count, sizeof *(catalog)->name##s})

/* Check the id of an item that was read, and add the item, or replace the one of its id. */
static kprof_status keep(kprof_status status, const kprof_json_place *place, const kept_list *list, const void *item)
{
    const char *id = *(char *const *)item;
    KPROF_THEN(status, check_id(place, id));
    if (status != KPROF_OK)
        return status;
    char *kept = *list->items;
    const size_t i = KPROF_FIND(k, *list->count, strcmp(*(char **)(kept + k * list->size), id) == 0);
    memcpy(i < *list->count ? kept + i * list->size
                            : kprof_pool_add(kprof_json_pool(place), list->items, list->count, list->size),
           item, list->size);
    return KPROF_OK;
}

static kprof_status load_set(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value)
{
#define SET(kind, member, ...) KPROF_JSON_FIELD(kprof_set_definition, #member, kind, member, __VA_ARGS__)
    KPROF_JSON_FIELDS(fields, SET(TEXT, id, .is_needed = true), SET(TEXT, name, .is_needed = true), SET(TEXT, help),
                      SET(TEXTS, aliases), SET(WHOLE, order), SET(TEXTS, sections));
#undef SET
    kprof_set_definition set = {0};
    kprof_status status = kprof_json_read(place, value, fields, &set);
    if (status == KPROF_OK && kprof_strings_count(set.sections) == 0)
        status = kprof_json_fail(KPROF_JSON_KEY(place, "sections"), "must name at least one section");
    return keep(status, place, LIST_OF(catalog, set), &set);
}

static kprof_status load_section(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value)
{
    kprof_section_definition section;
    const kprof_status status = kprof_section_definition_read(place, value, &section);
    section.path = kprof_pool_strdup(&catalog->pool, place->name);
    return keep(status, place, LIST_OF(catalog, section), &section);
}

static kprof_status load_finding(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value)
{
    kprof_finding finding = {0};
    kprof_status status = kprof_json_check_texts(place, value); /* pages show them as they are */
    KPROF_THEN(status, kprof_finding_read(place, value, &finding));
    return keep(status, place, LIST_OF(catalog, finding), &finding);
}

static size_t find_alias(const kprof_catalog *catalog, const char *name)
{
    return KPROF_FIND(k, catalog->alias_count, strcmp(catalog->aliases[k].name, name) == 0);
}

/* Add the aliases of a file, over those of the same name. */
static kprof_status load_aliases(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value)
{
    kprof_alias_file file;
    kprof_status status = kprof_alias_file_read(place, value, &file);
    KPROF_THEN(status, check_id(place, file.id));
    if (status == KPROF_OK && catalog->alias_count + file.count > MAX_ALIASES)
        status =
            kprof_fail(KPROF_BAD_METRICSET, "aliases/%s.json: there are more than %d aliases", file.id, MAX_ALIASES);
    for (size_t i = 0; i < file.count && status == KPROF_OK; i++) {
        const size_t place_of = find_alias(catalog, file.aliases[i].name);
        if (place_of == catalog->alias_count)
            KPROF_POOL_ADD(&catalog->pool, catalog->aliases, catalog->alias_count);
        catalog->aliases[place_of] = file.aliases[i];
    }
    return status;
}

static kprof_status read_word(const kprof_json_place *place, const cJSON *value, void *element)
{
    KPROF_JSON_FIELDS(fields, KPROF_JSON_FIELD(kprof_page_word, "words", TEXTS, words, .is_needed = true),
                      KPROF_JSON_FIELD(kprof_page_word, "meaning", TEXT, meaning, .is_needed = true));
    return kprof_json_read(place, value, fields, element);
}

static kprof_status load_words(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value)
{
    struct whole {
        char *id, *name, *help;
        bool of_names;
        kprof_page_word *words;
        size_t count;
    } file = {.words = NULL};
    KPROF_JSON_FIELDS(fields, KPROF_JSON_FIELD(struct whole, "id", TEXT, id, .is_needed = true),
                      KPROF_JSON_FIELD(struct whole, "name", TEXT, name, .is_needed = true),
                      KPROF_JSON_FIELD(struct whole, "help", TEXT, help),
                      KPROF_JSON_FIELD(struct whole, "of_names", FLAG, of_names),
                      KPROF_JSON_LIST(struct whole, "words", words, count, read_word, kprof_page_word));
    kprof_status status = kprof_json_check_texts(place, value); /* pages show them as they are */
    KPROF_THEN(status, kprof_json_read(place, value, fields, &file));
    KPROF_THEN(status, check_id(place, file.id));
    if (status == KPROF_OK && catalog->word_count + file.count > MAX_WORDS)
        status = kprof_fail(KPROF_BAD_METRICSET, "words/%s.json: there are more than %d words", file.id, MAX_WORDS);
    for (size_t i = 0; i < file.count && status == KPROF_OK; i++) {
        file.words[i].of_names = file.of_names;
        *KPROF_POOL_ADD(&catalog->pool, catalog->words, catalog->word_count) = file.words[i];
    }
    return status;
}

typedef kprof_status file_loader(kprof_catalog *catalog, const kprof_json_place *place, const cJSON *value);

static kprof_status load_file(kprof_catalog *catalog, const char *path, file_loader *load)
{
    const kprof_json_place place = {.name = path, .pool = &catalog->pool};
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    cJSON *value = NULL;
    kprof_status status = read_file(path, &text);
    KPROF_THEN(status, kprof_json_parse(&place, text.data ? text.data : "", text.length, &value));
    KPROF_THEN(status, load(catalog, &place, value));
    cJSON_Delete(value);
    return status;
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

/* The folders of each kind of file. */
static const struct kind {
    const char *folder;
    file_loader *load;
} kinds[] = {{"sections", load_section},
             {"sets", load_set},
             {"findings", load_finding},
             {"aliases", load_aliases},
             {"words", load_words}};
enum { KIND_COUNT = COUNT_OF(kinds) };

bool kprof_catalog_reads(const char *folder)
{
    return KPROF_ANY(i, KIND_COUNT, strcmp(kinds[i].folder, folder) == 0);
}

/* Load every *.json of folder/kind, in alphabetical order; *found says whether there is such a folder. */
static kprof_status load_kind(kprof_catalog *catalog, const char *folder, const struct kind *kind, bool *found)
{
    KPROF_AUTO(kprof_strbuf) path = KPROF_STRBUF_INIT;
    KPROF_AUTO_FREE struct dirent **entries = NULL;
    kprof_strbuf_printf(&path, "%s/%s", folder, kind->folder);
    errno = 0;
    int count = scandir(path.data, &entries, is_json, alphasort);
    kprof_status status = KPROF_OK;
    if (count < 0 && errno == ENOMEM)
        status = KPROF_NO_MEMORY;
    else if (count < 0 && errno != ENOENT && errno != ENOTDIR)
        status = kprof_fail(KPROF_BAD_METRICSET, "%s: cannot be read: %s", path.data, strerror(errno));
    if (count >= 0)
        *found = true;
    if (count > MAX_FILES)
        status = kprof_fail(KPROF_BAD_METRICSET, "%s: holds more than %d files", path.data, MAX_FILES);
    for (int i = 0; i < count; i++) {
        KPROF_AUTO_FREE char *file = kprof_strprintf("%s/%s", path.data, entries[i]->d_name);
        KPROF_THEN(status, load_file(catalog, file, kind->load));
        free(entries[i]);
    }
    return status;
}

static kprof_status load_folder(kprof_catalog *catalog, const char *folder)
{
    bool found = false;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < KIND_COUNT && status == KPROF_OK; i++)
        status = load_kind(catalog, folder, &kinds[i], &found);
    if (status == KPROF_OK && !found)
        status = kprof_fail(KPROF_BAD_METRICSET,
                            "%s: has no folder \"sets\", \"sections\", \"findings\", \"aliases\" or \"words\" that can "
                            "be read; kprof's are JSON files",
                            folder);
    return status;
}

static kprof_status check_sections(const kprof_catalog *catalog, const char *kind, const char *owner, char **sections)
{
    for (char **id = sections; *id; id++)
        if (kprof_catalog_find_section(catalog, *id) == catalog->section_count)
            return kprof_fail(KPROF_BAD_METRICSET, "%s %s: sections: there is no section \"%s\"", kind, owner, *id);
    return KPROF_OK;
}

/* The section to look at, or those that are the names of a value's options. */
static kprof_status check_next(const kprof_catalog *catalog, const kprof_finding *finding)
{
    const char *text = finding->next, *wrong = NULL;
    if (!text)
        return KPROF_OK;
    const kprof_text_part part = kprof_finding_text_part(finding, &text);
    if (part.kind == KPROF_PART_TEXT)
        wrong = kprof_catalog_find_section(catalog, finding->next) == catalog->section_count ? finding->next : NULL;
    else if (part.kind != KPROF_PART_NAME || *text)
        wrong = finding->next;
    for (size_t i = 0; !wrong && part.kind == KPROF_PART_NAME; i++) {
        const kprof_finding_value *value = &finding->values[part.local - finding->threshold_count];
        if (i == value->option_count)
            break;
        if (kprof_catalog_find_section(catalog, value->options[i].name) == catalog->section_count)
            wrong = value->options[i].name;
    }
    return wrong ? kprof_fail(KPROF_BAD_METRICSET, "finding %s: next: there is no section \"%s\"", finding->id, wrong)
                 : KPROF_OK;
}

static kprof_status check_places(const kprof_catalog *catalog, const kprof_finding *finding)
{
    kprof_status status = check_sections(catalog, "finding", finding->id, finding->sections);
    KPROF_THEN(status, check_next(catalog, finding));
    for (char *const *id = finding->unless; id && *id && status == KPROF_OK; id++) {
        const size_t i = KPROF_FIND(k, catalog->finding_count, strcmp(catalog->findings[k].id, *id) == 0);
        if (i == catalog->finding_count)
            status =
                kprof_fail(KPROF_BAD_METRICSET, "finding %s: unless: there is no finding \"%s\"", finding->id, *id);
    }
    return status;
}

/* Items begin with their id; `order_offset`: where their order is. */
static int compare_items(const void *a, const void *b, void *order_offset)
{
    const size_t at = *(const size_t *)order_offset;
    const int left = *(const int *)((const char *)a + at), right = *(const int *)((const char *)b + at);
    return left != right ? KPROF_COMPARE(left, right) : strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_items(void *items, size_t count, size_t size, size_t order_offset)
{
    if (count > 0)
        qsort_r(items, count, size, compare_items, &order_offset);
}

kprof_status kprof_catalog_load(const kprof_strlist *folders, kprof_catalog **out)
{
    *out = NULL;
    kprof_catalog *catalog = kprof_calloc(1, sizeof(*catalog));
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < folders->count && status == KPROF_OK; i++)
        status = load_folder(catalog, folders->items[i]);
    for (size_t i = 0; i < catalog->set_count && status == KPROF_OK; i++)
        status = check_sections(catalog, "set", catalog->sets[i].id, catalog->sets[i].sections);
    for (size_t i = 0; i < catalog->finding_count && status == KPROF_OK; i++)
        status = check_places(catalog, &catalog->findings[i]);
    if (status != KPROF_OK) {
        kprof_catalog_free(catalog);
        return status;
    }
    sort_items(catalog->sets, catalog->set_count, sizeof *catalog->sets, offsetof(kprof_set_definition, order));
    sort_items(catalog->sections, catalog->section_count, sizeof *catalog->sections,
               offsetof(kprof_section_definition, order));
    sort_items(catalog->findings, catalog->finding_count, sizeof *catalog->findings, offsetof(kprof_finding, order));
    *out = catalog;
    return KPROF_OK;
}

void kprof_catalog_free(kprof_catalog *catalog)
{
    if (catalog)
        kprof_pool_free(&catalog->pool);
    free(catalog);
}

static bool goes_by(const char *id, char *const *aliases, const char *name)
{
    if (strcmp(id, name) == 0)
        return true;
    for (; aliases && *aliases; aliases++)
        if (strcmp(*aliases, name) == 0)
            return true;
    return false;
}

size_t kprof_catalog_find_set(const kprof_catalog *catalog, const char *name)
{
    return KPROF_FIND(k, catalog->set_count, goes_by(catalog->sets[k].id, catalog->sets[k].aliases, name));
}

size_t kprof_catalog_find_section(const kprof_catalog *catalog, const char *name)
{
    return KPROF_FIND(k, catalog->section_count, goes_by(catalog->sections[k].id, catalog->sections[k].aliases, name));
}

size_t kprof_catalog_alias_count(const kprof_catalog *catalog)
{
    return catalog->alias_count;
}

const kprof_alias *kprof_catalog_alias(const kprof_catalog *catalog, size_t index)
{
    return &catalog->aliases[index];
}

const kprof_alias *kprof_catalog_find_alias(const kprof_catalog *catalog, const char *name)
{
    const size_t index = find_alias(catalog, name);
    return index < catalog->alias_count ? &catalog->aliases[index] : NULL;
}

const char *kprof_catalog_why_not(const kprof_catalog *catalog, const char *word)
{
    for (size_t i = 0; i < catalog->alias_count; i++) {
        const kprof_alias *alias = &catalog->aliases[i];
        const size_t length = strlen(alias->name);
        if (alias->item.choice_count == 0 && strncasecmp(word, alias->name, length) == 0 &&
            !isalpha((unsigned char)word[length])) /* "pcie" is "pcie__read_bytes", but "all" is not "allocated" */
            return alias->item.help;
    }
    return NULL;
}

const char *kprof_catalog_set_id(const kprof_catalog *catalog, const char *id_or_alias)
{
    const size_t index = kprof_catalog_find_set(catalog, id_or_alias);
    return index < catalog->set_count ? catalog->sets[index].id : NULL;
}

const char *kprof_catalog_section_id(const kprof_catalog *catalog, const char *id_or_alias)
{
    const size_t index = kprof_catalog_find_section(catalog, id_or_alias);
    return index < catalog->section_count ? catalog->sections[index].id : NULL;
}

char *const *kprof_catalog_held_by(const kprof_catalog *catalog, const char *section_id)
{
    const size_t index = kprof_catalog_find_section(catalog, section_id);
    return index < catalog->section_count ? catalog->sections[index].held_by : NULL;
}

size_t kprof_catalog_set_count(const kprof_catalog *catalog)
{
    return catalog->set_count;
}

size_t kprof_catalog_section_count(const kprof_catalog *catalog)
{
    return catalog->section_count;
}

const char *kprof_catalog_nearest_section(const kprof_catalog *catalog, const char *name)
{
    KPROF_AUTO_FREE const char **ids = kprof_calloc(catalog->section_count + 1, sizeof *ids);
    for (size_t i = 0; i < catalog->section_count; i++)
        ids[i] = catalog->sections[i].id;
    return kprof_nearest(name, ids, catalog->section_count);
}

static kprof_status check_finding_id(const kprof_catalog *catalog, const char *id)
{
    KPROF_AUTO(kprof_strlist) ids = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < catalog->finding_count; i++) {
        if (kprof_finding_has_id(&catalog->findings[i], id))
            return KPROF_OK;
        (void)kprof_strlist_add(&ids, catalog->findings[i].id);
        for (char *const *rule = catalog->findings[i].ncu; rule && *rule; rule++)
            (void)kprof_strlist_add(&ids, *rule);
    }
    const char *nearest = kprof_nearest(id, (const char *const *)ids.items, ids.count);
    return kprof_fail(KPROF_UNKNOWN_NAME, "there is no finding \"%s\"%s%s%s", id,
                      nearest ? "; did you mean \"" : "; kprof list findings shows them", nearest ? nearest : "",
                      nearest ? "\"?" : "");
}

kprof_status kprof_catalog_findings(const kprof_catalog *catalog, const kprof_strlist *ids, kprof_finding_list *out)
{
    kprof_status status = KPROF_OK;
    *out = (kprof_finding_list){NULL, 0};
    for (size_t i = 0; i < ids->count; i++) { /* name all that are unknown */
        const kprof_status found = check_finding_id(catalog, ids->items[i]);
        status = status == KPROF_OK ? found : status;
    }
    if (status != KPROF_OK)
        return status;
    out->items = kprof_calloc(catalog->finding_count + 1, sizeof *out->items);
    for (size_t i = 0; i < catalog->finding_count; i++)
        if (ids->count == 0 || KPROF_ANY(k, ids->count, kprof_finding_has_id(&catalog->findings[i], ids->items[k])))
            out->items[out->count++] = &catalog->findings[i];
    return KPROF_OK;
}

static const char *const no_strings[] = {NULL};

static const char *const *strings_or_none(char *const *strings)
{
    return strings ? (const char *const *)strings : no_strings;
}

kprof_catalog_entry kprof_catalog_set(const kprof_catalog *catalog, size_t index)
{
    const kprof_set_definition *set = &catalog->sets[index];
    return (kprof_catalog_entry){set->id, set->name, set->help ? set->help : "", strings_or_none(set->aliases),
                                 strings_or_none(set->sections)};
}

kprof_catalog_entry kprof_catalog_section(const kprof_catalog *catalog, size_t index)
{
    const kprof_section_definition *section = &catalog->sections[index];
    return (kprof_catalog_entry){section->id, section->name, section->help ? section->help : "",
                                 strings_or_none(section->aliases), NULL};
}

static void tell_help(const kprof_item_definition *item, const char *row, kprof_value_help_visit *visit, void *user)
{
    if (!item->help || item->choice_count == 0)
        return;
    visit(user, &(kprof_value_help){item->label ? item->label : row, item->name ? item->name : item->choices[0].text,
                                    item->help});
}

void kprof_catalog_section_helps(const kprof_catalog *catalog, size_t index, kprof_value_help_visit *visit, void *user)
{
    const kprof_section_definition *section = &catalog->sections[index];
    for (size_t i = 0; i < section->item_count; i++)
        tell_help(&section->items[i], "", visit, user);
    for (size_t i = 0; i < section->table_count; i++) {
        const kprof_table_definition *table = &section->tables[i];
        for (size_t k = 0; k < table->row_count; k++) {
            const kprof_row_definition *row = &table->rows[k];
            for (size_t n = 0; n < row->cell_count; n++)
                tell_help(&row->cells[n], row->label, visit, user);
        }
    }
}

kprof_status kprof_catalog_check_aliases(const kprof_catalog *catalog, kprof_host *host)
{
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    for (size_t i = 0; i < catalog->alias_count; i++)
        kprof_alias_candidates(&catalog->aliases[i], &candidates);
    return kprof_host_check(host, &candidates);
}

kprof_status kprof_catalog_check_sections(const kprof_catalog *catalog, const bool *wanted, kprof_host *host)
{
    KPROF_AUTO(kprof_strlist) candidates = KPROF_STRLIST_INIT;
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < catalog->section_count && status == KPROF_OK; i++)
        if (!wanted || wanted[i])
            status = kprof_section_candidates(&catalog->sections[i], host, &candidates);
    return KPROF_THEN(status, kprof_host_check(host, &candidates));
}
