/* Answers of earlier runs stay as they were read, one block of bytes in the order of their keys, and are decoded when
 * somebody asks; a run needs a few of thousands. Those of this run are in a tree. */
#include "planner/answers.h"

#include "core/bytes.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A run with the set full asks about 2,000 things. A listing of all metrics asks far more than is worth reading at each
 * start. */
#define MOST_ANSWERS 8192
#define MOST_BYTES   ((size_t)1 << 20)
/* More than any run needs again. */
#define MOST_REMEMBERED ((size_t)8 * MOST_ANSWERS)

/* A key is a kind and a name. */
typedef struct answer {
    const char *key;
    kprof_bytes list; /* as kprof_put_strings writes it */
} answer;

typedef struct fresh_answer {
    answer is;
    struct fresh_answer *next;
} fresh_answer;

struct kprof_answers {
    kprof_strbuf bytes; /* of the answers that were read */
    answer *read;       /* [read_count], by key */
    size_t read_count;
    void *fresh_tree;
    fresh_answer *fresh; /* all in the tree */
    size_t fresh_count, fresh_bytes;
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
    if (!answers)
        return;
    tdestroy(answers->fresh_tree, free);
    kprof_strbuf_free(&answers->bytes);
    free(answers->read);
    free(answers);
}

static const answer *find(const kprof_answers *answers, const char *key)
{
    const answer wanted = {.key = key};
    answer *const *fresh = tfind(&wanted, &answers->fresh_tree, compare_answers);
    if (fresh || answers->read_count == 0)
        return fresh ? *fresh : NULL;
    return bsearch(&wanted, answers->read, answers->read_count, sizeof(wanted), compare_answers);
}

bool kprof_answers_get(const kprof_answers *answers, char kind, const char *name, kprof_strlist *out)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&key, "%c%s", kind, name);
    const answer *found = key.failed ? NULL : find(answers, key.data);
    kprof_bytes in = found ? found->list : (kprof_bytes){.failed = true};
    const size_t before = out->count;
    kprof_get_strings(&in, out);
    const bool is_whole = !in.failed && in.left == 0;
    while (!is_whole && out->count > before)
        free(out->items[--out->count]);
    kprof_strbuf_free(&key);
    return is_whole;
}

void kprof_answers_put(kprof_answers *answers, char kind, const char *name, const kprof_strlist *list)
{
    kprof_strbuf bytes = KPROF_STRBUF_INIT;
    kprof_put_strings(&bytes, list);
    const size_t key_size = strlen(name) + 2;
    fresh_answer *entry = bytes.failed || answers->fresh_count >= MOST_REMEMBERED
                              ? NULL
                              : malloc(sizeof(*entry) + bytes.length + key_size);
    if (entry) {
        char *data = (char *)(entry + 1), *key = data + bytes.length;
        memcpy(data, bytes.data, bytes.length);
        key[0] = kind;
        memcpy(key + 1, name, key_size - 1);
        *entry = (fresh_answer){{key, {(const uint8_t *)data, bytes.length, false}}, answers->fresh};
        fresh_answer *const *there = tsearch(entry, &answers->fresh_tree, compare_answers);
        if (there && *there == entry) {
            answers->fresh = entry;
            answers->fresh_count++;
            answers->fresh_bytes += bytes.length + key_size;
        } else {
            free(entry);
        }
    }
    kprof_strbuf_free(&bytes);
}

bool kprof_answers_write(const kprof_answers *answers, kprof_strbuf *out)
{
    const size_t all = answers->read_count + answers->fresh_count;
    const bool fits = all <= MOST_ANSWERS && answers->bytes.length + answers->fresh_bytes <= MOST_BYTES;
    const size_t read_count = fits ? answers->read_count : 0, count = read_count + answers->fresh_count;
    if (answers->fresh_count == 0 || answers->fresh_count > MOST_ANSWERS || answers->fresh_bytes > MOST_BYTES)
        return false;
    answer *sorted = calloc(count, sizeof(*sorted));
    if (!sorted)
        return false;
    if (read_count > 0)
        memcpy(sorted, answers->read, read_count * sizeof(*sorted));
    size_t filled = read_count;
    for (const fresh_answer *entry = answers->fresh; entry; entry = entry->next)
        sorted[filled++] = entry->is;
    qsort(sorted, count, sizeof(*sorted), compare_answers);
    for (size_t i = 0; i < count; i++) {
        kprof_put_string(out, sorted[i].key);
        kprof_put_u64(out, sorted[i].list.left);
        kprof_strbuf_append(out, sorted[i].list.data, sorted[i].list.left);
    }
    free(sorted);
    return !out->failed;
}

/* Read the answers one by one, into an array that holds `most`. */
static bool read_answers(kprof_answers *answers, size_t most)
{
    kprof_bytes in = {(const uint8_t *)answers->bytes.data, answers->bytes.length, false};
    while (in.left > 0 && answers->read_count < most) {
        answer one = {.key = kprof_get_string(&in)};
        one.list.left = kprof_get_u64(&in);
        one.list.data = kprof_get_block(&in, one.list.left);
        if (in.failed || !one.key[0] ||
            (answers->read_count > 0 && strcmp(answers->read[answers->read_count - 1].key, one.key) >= 0))
            return false;
        answers->read[answers->read_count++] = one;
    }
    return in.left == 0;
}

bool kprof_answers_read(kprof_answers *answers, kprof_strbuf *bytes)
{
    answers->bytes = *bytes;
    *bytes = (kprof_strbuf)KPROF_STRBUF_INIT;
    answers->read = calloc(MOST_ANSWERS, sizeof(*answers->read));
    if (answers->read && read_answers(answers, MOST_ANSWERS))
        return true;
    answers->read_count = 0;
    return false;
}
