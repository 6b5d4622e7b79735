/* What is kept on disk: answers of CUPTI, and config images, which are made once, by CUPTI or packed into fewer passes.
 * And where the counters of each pass were placed, which an image does not tell. */
#include "planner/pack.h"

#include "core/bytes.h"
#include "core/cache.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* False where the library cannot be told from others: then nothing is kept. */
static bool make_key(const kprof_host_question *question, kprof_strbuf *key)
{
    const kprof_host *host = question->host;
    kprof_strbuf_printf(key, "%s\nplanner %s\n", question->what, KPROF_PLANNER_SOURCES);
    if (!kprof_cupti_identify(key))
        return false;
    kprof_strbuf_printf(key, "%s\navailability %zu\n", host->chip, host->availability.size);
    kprof_strbuf_append(key, host->availability.image, host->availability.size);
    for (size_t i = 0; i < question->names->count; i++) {
        const char *name = question->names->items[i];
        kprof_strbuf_append(key, name, strlen(name) + 1); /* the NUL keeps names apart */
    }
    return !key->failed;
}

bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    bool found = make_key(question, &key) && kprof_cache_get(&key, out);
    kprof_strbuf_free(&key);
    return found;
}

void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    if (make_key(question, &key))
        kprof_cache_put(&key, answer, size);
    kprof_strbuf_free(&key);
}

static bool get_image(kprof_bytes *in, kprof_config_image *out)
{
    size_t size = kprof_get_u64(in);
    const void *data = kprof_get_block(in, size);
    const char *placement = kprof_get_string(in);
    if (in->failed || size == 0)
        return !in->failed;
    *out = (kprof_config_image){.data = malloc(size), .size = size};
    out->placement = placement[0] ? strdup(placement) : NULL;
    if (!out->data || (placement[0] && !out->placement))
        return false;
    memcpy(out->data, data, size);
    return true;
}

/* The cache returns only the bytes that were put there: CUPTI crashes on bytes that are no image. */
bool kprof_host_recall_images(const kprof_host_question *question, const kprof_image_answer *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    bool found = kprof_host_recall(question, &kept);
    kprof_bytes in = {(const uint8_t *)kept.data, kept.length, false};
    for (size_t i = 0; i < 2 && found; i++)
        kprof_get_strings(&in, &out->names[i]);
    for (size_t i = 0; i < out->image_count && found; i++) {
        kprof_config_image *image = &out->images[i];
        found =
            get_image(&in, image) &&
            (image->size == 0 || (kprof_host_count_passes(question->host, image) == KPROF_OK && image->pass_count > 0));
    }
    found = found && in.left == 0;
    for (size_t i = 0; i < 2 && !found; i++)
        kprof_strlist_free(&out->names[i]);
    for (size_t i = 0; i < out->image_count && !found; i++)
        kprof_config_image_free(&out->images[i]);
    kprof_strbuf_free(&kept);
    return found;
}

void kprof_host_keep_images(const kprof_host_question *question, const kprof_image_answer *answer)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < 2; i++)
        kprof_put_strings(&bytes, &answer->names[i]);
    for (size_t i = 0; i < answer->image_count; i++) {
        kprof_put_u64(&bytes, answer->images[i].size);
        kprof_strbuf_append(&bytes, answer->images[i].data, answer->images[i].size);
        kprof_put_string(&bytes, answer->images[i].placement);
    }
    if (!bytes.failed)
        kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

kprof_status kprof_host_config_image(kprof_host *host, const kprof_strlist *names, bool few_passes,
                                     kprof_config_image *out)
{
    kprof_host_question question = {host, few_passes ? "config image few" : "config image", names};
    kprof_strlist none[2] = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
    kprof_image_answer answer = {none, out, 1};
    *out = (kprof_config_image){0};
    if (kprof_host_recall_images(&question, &answer))
        return KPROF_OK;
    kprof_status status = kprof_host_draft_image(host, names, out);
    if (status != KPROF_OK)
        return status;
    kprof_pack(host, names, few_passes, out);
    if (out->size > 0)
        kprof_host_keep_images(&question, &answer);
    return KPROF_OK;
}

/* Placements are text: a line for each pass; a word for each counter: its name, '@' and the number of its domain. */
void kprof_placement_put(kprof_strbuf *placement, const kprof_placed_counter *counters, size_t count)
{
    for (size_t i = 0; i < count; i++)
        kprof_strbuf_printf(placement, "%s@%u ", counters[i].name, counters[i].domain);
    kprof_strbuf_puts(placement, "\n");
}

kprof_status kprof_placed_counters_make(kprof_placed_counters *counters)
{
    counters->items = calloc(counters->names.count + 1, sizeof(*counters->items));
    if (!counters->items)
        return KPROF_NO_MEMORY;
    for (size_t i = 0; i < counters->names.count; i++)
        counters->items[i].name = counters->names.items[i];
    return KPROF_OK;
}

/* Read a line of a placement: the names, and then the domain behind each. */
static kprof_status read_line(const char *line, kprof_placed_counters *out)
{
    const char *end = line + strcspn(line, "\n");
    for (const char *word = line; word < end; word += strcspn(word, " \n"), word += strspn(word, " ")) {
        size_t length = strcspn(word, "@ \n");
        char *name = strndup(word, length);
        bool added = name && kprof_strlist_add(&out->names, name);
        free(name);
        if (!added)
            return KPROF_NO_MEMORY;
        if (word[length] != '@')
            return kprof_fail(KPROF_INTERNAL, "reading a placement of counters: \"%.*s\" has no domain", (int)length,
                              word);
    }
    kprof_status status = kprof_placed_counters_make(out);
    for (size_t i = 0; i < out->names.count && status == KPROF_OK; i++) {
        line = strchr(line, '@') + 1;
        out->items[i].domain = (uint32_t)strtoul(line, NULL, 10);
    }
    return status;
}

kprof_status kprof_placed_counters_read(const kprof_config_image *image, size_t pass, kprof_placed_counters *out)
{
    const char *line = image->placement;
    *out = (kprof_placed_counters){NULL, KPROF_STRLIST_INIT};
    if (!line) {
        kprof_status status = kprof_image_counters(image, pass, &out->names);
        return status == KPROF_OK ? kprof_placed_counters_make(out) : status;
    }
    for (size_t i = 0; i < pass && line; i++) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line ? read_line(line, out) : kprof_fail(KPROF_INTERNAL, "a placement of counters lacks pass %zu", pass);
}

void kprof_placed_counters_free(kprof_placed_counters *counters)
{
    kprof_strlist_free(&counters->names);
    free(counters->items);
    *counters = (kprof_placed_counters){NULL, KPROF_STRLIST_INIT};
}
