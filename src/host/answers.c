/* Answers are in a tree, by their keys, and in the order in which they were given. They stay as they are kept, and are
 * decoded when somebody asks: a run needs few of them. */
#include "host/answers.h"

#include "core/bytes.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Planning the full set takes 3,000 answers. A listing of all metrics asks far more than is worth reading at each
 * start. */
#define MOST_KEPT 8192
/* More than any run needs again. */
#define MOST_REMEMBERED (8 * MOST_KEPT)

typedef struct answer {
    const char *key;  /* a kind and a name */
    kprof_bytes list; /* as kprof_put_strings writes it */
    struct answer *next;
} answer;

struct kprof_answers {
    void *tree;
    answer *first, *last;
    size_t count, read_count; /* of those, the first ones, which were read */
};

static int compare_answers(const void *a, const void *b)
{
    return strcmp(((const answer *)a)->key, ((const answer *)b)->key);
}

kprof_answers *kprof_answers_new(void)
{
    return calloc(1, sizeof(kprof_answers));
}

void kprof_answers_free(kprof_answers *answers)
{
    if (answers)
        tdestroy(answers->tree, free);
    free(answers);
}

bool kprof_answers_get(const kprof_answers *answers, char kind, const char *name, kprof_strlist *out)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&key, "%c%s", kind, name);
    answer *const *found = key.failed ? NULL : tfind(&(answer){.key = key.data}, &answers->tree, compare_answers);
    kprof_bytes in = found ? (*found)->list : (kprof_bytes){.failed = true};
    const size_t before = out->count;
    kprof_get_strings(&in, out);
    while (in.failed && out->count > before)
        free(out->items[--out->count]);
    kprof_strbuf_free(&key);
    return !in.failed;
}

/* Add a copy, unless there is an answer of that key. */
static void add(kprof_answers *answers, const char *key, const void *list, size_t size)
{
    const size_t key_size = strlen(key) + 1;
    answer *one = answers->count < MOST_REMEMBERED ? malloc(sizeof(*one) + size + key_size) : NULL;
    if (!one)
        return;
    uint8_t *data = (uint8_t *)(one + 1);
    memcpy(data, list, size);
    *one = (answer){memcpy(data + size, key, key_size), {data, size, false}, NULL};
    answer *const *there = tsearch(one, &answers->tree, compare_answers);
    if (!there || *there != one) {
        free(one);
        return;
    }
    *(answers->last ? &answers->last->next : &answers->first) = one;
    answers->last = one;
    answers->count++;
}

void kprof_answers_put(kprof_answers *answers, char kind, const char *name, const kprof_strlist *texts)
{
    kprof_strbuf key = KPROF_STRBUF_INIT, list = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&key, "%c%s", kind, name);
    kprof_put_strings(&list, texts);
    if (!key.failed && !list.failed)
        add(answers, key.data, list.data, list.length);
    kprof_strbuf_free(&key);
    kprof_strbuf_free(&list);
}

bool kprof_answers_write(const kprof_answers *answers, kprof_strbuf *out)
{
    const size_t new_count = answers->count - answers->read_count;
    size_t skipped = answers->count > MOST_KEPT ? answers->count - MOST_KEPT : 0;
    if (new_count == 0 || new_count > MOST_KEPT)
        return false;
    for (const answer *one = answers->first; one; one = one->next) {
        if (skipped > 0) {
            skipped--;
            continue;
        }
        kprof_put_string(out, one->key);
        kprof_put_u64(out, one->list.left);
        kprof_strbuf_append(out, one->list.data, one->list.left);
    }
    return !out->failed;
}

static bool is_list(kprof_bytes in)
{
    for (uint32_t count = kprof_get_u32(&in); count > 0 && !in.failed; count--)
        (void)kprof_get_string(&in);
    return !in.failed && in.left == 0;
}

bool kprof_answers_read(kprof_answers *answers, const kprof_strbuf *bytes)
{
    for (int adds = 0; adds <= 1; adds++) { /* look at all first */
        kprof_bytes in = {(const uint8_t *)bytes->data, bytes->length, false};
        while (in.left > 0) {
            const char *key = kprof_get_string(&in);
            kprof_bytes list = {.left = kprof_get_u64(&in)};
            list.data = kprof_get_block(&in, list.left);
            if (in.failed || !is_list(list))
                return false;
            if (adds)
                add(answers, key, list.data, list.left);
        }
    }
    answers->read_count = answers->count;
    return true;
}
