/* A counter data image that kprof kept with --counter-data on a GPU, evaluated here without one: the values must be
 * those of the report that was recorded beside it, to six digits. usage: test_recorded IMAGE VALUES; VALUES has "name
 * value" lines. */
#include "planner_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_image(const char *path, kprof_strbuf *out)
{
    FILE *file = fopen(path, "rb");
    char chunk[65536];
    size_t size = 0;
    while (file && (size = fread(chunk, 1, sizeof chunk, file)) > 0)
        kprof_strbuf_append(out, chunk, size);
    if (file)
        fclose(file);
    return file && !out->failed && out->length > 0;
}

static bool read_values(const char *path, kprof_strlist *names, kprof_strlist *texts)
{
    FILE *file = fopen(path, "r");
    char name[256], text[64];
    bool added = file != NULL;
    while (file && added && fscanf(file, "%255s %63s", name, text) == 2)
        added = kprof_strlist_add(names, name) && kprof_strlist_add(texts, text);
    if (file)
        fclose(file);
    return added && names->count > 0;
}

static size_t count_different(const kprof_strlist *names, const kprof_strlist *texts, const double *values)
{
    size_t different = 0;
    for (size_t i = 0; i < names->count; i++) {
        char text[64];
        snprintf(text, sizeof text, "%g", values[i]);
        if (strcmp(text, texts->items[i]) == 0)
            continue;
        fprintf(stderr, "%s is %s, not %s\n", names->items[i], text, texts->items[i]);
        different++;
    }
    return different;
}

int main(int argc, char **argv)
{
    KPROF_AUTO(kprof_strbuf) image = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strlist) names = KPROF_STRLIST_INIT, texts = KPROF_STRLIST_INIT;
    kprof_host *host = NULL;
    if (!cupti_is_here())
        return SKIPPED;
    if (argc != 3 || !read_image(argv[1], &image) || !read_values(argv[2], &names, &texts)) {
        fprintf(stderr, "usage: test_recorded IMAGE VALUES\n");
        return 2;
    }
    KPROF_AUTO_FREE double *values = calloc(names.count, sizeof *values);
    kprof_counter_data counters = {(const uint8_t *)image.data, image.length, 0};
    bool evaluated = values && kprof_host_open("GH100", NULL, &host) == KPROF_OK &&
                     kprof_host_evaluate(host, &counters, &names, values) == KPROF_OK;
    size_t different = evaluated ? count_different(&names, &texts, values) : names.count;
    printf("%zu values, %zu different\n", names.count, different);
    kprof_host_close(host);
    return different == 0 ? 0 : 1;
}
