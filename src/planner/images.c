/* Config images: made once, by CUPTI or packed into fewer passes, and then taken from disk; and where the counters of
 * each pass were placed, which an image does not tell. */
#include "planner/pack.h"

#include "core/cache.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

#define QUESTION "config image"

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

/* The cache keeps the placement (empty if there is none), its NUL, and the image. */
static bool unpack_image(const kprof_strbuf *kept, kprof_config_image *out)
{
    size_t placement = kept->length ? strnlen(kept->data, kept->length) : 0;
    if (placement + 1 >= kept->length)
        return false;
    out->size = kept->length - placement - 1;
    out->data = malloc(out->size);
    out->placement = placement ? strdup(kept->data) : NULL;
    if (!out->data || (placement && !out->placement))
        return false;
    memcpy(out->data, kept->data + placement + 1, out->size);
    return true;
}

/* The cache returns only the bytes that were put there: CUPTI crashes on bytes that are no image. */
bool kprof_host_recall_image(const kprof_host_question *question, kprof_config_image *out)
{
    kprof_strbuf kept = KPROF_STRBUF_INIT;
    kprof_config_image image = {0};
    bool found = kprof_host_recall(question, &kept) && unpack_image(&kept, &image);
    kprof_strbuf_free(&kept);
    found = found && kprof_host_count_passes(question->host, &image) == KPROF_OK && image.pass_count > 0;
    if (found)
        *out = image;
    else
        kprof_config_image_free(&image);
    return found;
}

void kprof_host_keep_image(const kprof_host_question *question, const kprof_config_image *image)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&bytes, image->placement ? image->placement : "");
    kprof_strbuf_append(&bytes, "", 1);
    kprof_strbuf_append(&bytes, image->data, image->size);
    if (!bytes.failed)
        kprof_host_keep(question, bytes.data, bytes.length);
    kprof_strbuf_free(&bytes);
}

static kprof_status get_image(kprof_host *host, const kprof_strlist *names, bool few_passes, kprof_config_image *out)
{
    kprof_host_question question = {host, few_passes ? QUESTION " few" : QUESTION, names};
    *out = (kprof_config_image){0};
    if (kprof_host_recall_image(&question, out))
        return KPROF_OK;
    kprof_status status = kprof_host_draft_image(host, names, out);
    if (status != KPROF_OK)
        return status;
    kprof_pack(host, names, few_passes, out);
    if (out->size > 0)
        kprof_host_keep_image(&question, out);
    return KPROF_OK;
}

kprof_status kprof_host_config_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return get_image(host, names, false, out);
}

kprof_status kprof_host_few_passes_image(kprof_host *host, const kprof_strlist *names, kprof_config_image *out)
{
    return get_image(host, names, true, out);
}

void kprof_config_image_free(kprof_config_image *image)
{
    free(image->data);
    free(image->placement);
    *image = (kprof_config_image){0};
}

/* Placements are text: a line for each pass; a word for each counter: its name, '@' and the number of its domain. */
void kprof_placement_put(kprof_strbuf *placement, const char *counter, uint32_t domain)
{
    kprof_strbuf_printf(placement, "%s@%u ", counter, domain);
}

void kprof_placement_end_pass(kprof_strbuf *placement)
{
    kprof_strbuf_puts(placement, "\n");
}

static const char *find_line(const char *text, size_t line)
{
    for (; text && line > 0; line--) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

static kprof_status read_word(const char *word, size_t length, kprof_placed_counters *out)
{
    const char *at = memchr(word, '@', length);
    char *name = at ? strndup(word, (size_t)(at - word)) : NULL;
    bool added = name && kprof_strlist_add(&out->names, name);
    free(name);
    if (!at)
        return kprof_fail(KPROF_INTERNAL, "reading a placement of counters: \"%.*s\" has no domain", (int)length, word);
    if (!added)
        return KPROF_NO_MEMORY;
    out->domains[out->names.count - 1] = (uint32_t)strtoul(at + 1, NULL, 10);
    return KPROF_OK;
}

static kprof_status read_line(const char *line, kprof_placed_counters *out)
{
    size_t length = strcspn(line, "\n");
    out->domains = calloc(length / 2 + 1, sizeof(*out->domains)); /* a word and its blank take two bytes at least */
    kprof_status status = out->domains ? KPROF_OK : KPROF_NO_MEMORY;
    for (const char *word = line, *end = line + length; word < end && status == KPROF_OK;) {
        size_t size = strcspn(word, " \n");
        status = read_word(word, size, out);
        word += size + strspn(word + size, " ");
    }
    return status;
}

kprof_status kprof_placed_counters_read(const kprof_config_image *image, size_t pass, kprof_placed_counters *out)
{
    *out = (kprof_placed_counters){KPROF_STRLIST_INIT, NULL};
    if (image->placement) {
        const char *line = find_line(image->placement, pass);
        return line ? read_line(line, out) : kprof_fail(KPROF_INTERNAL, "a placement of counters lacks pass %zu", pass);
    }
    kprof_status status = kprof_image_counters(image, pass, &out->names);
    if (status != KPROF_OK)
        return status;
    out->domains = calloc(out->names.count + 1, sizeof(*out->domains));
    return out->domains ? KPROF_OK : KPROF_NO_MEMORY;
}

void kprof_placed_counters_free(kprof_placed_counters *counters)
{
    kprof_strlist_free(&counters->names);
    free(counters->domains);
    *counters = (kprof_placed_counters){KPROF_STRLIST_INIT, NULL};
}
