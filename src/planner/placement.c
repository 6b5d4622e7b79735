/* A line for each pass; a word for each counter: its name, '@' and the number of its domain. */
#include "planner/placement.h"

#include "core/log.h"
#include "planner/raw_config.h"

#include <stdlib.h>
#include <string.h>

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
