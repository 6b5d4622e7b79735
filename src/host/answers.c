/* Answers of this run are in a tree, by their keys, and in the order in which they were given. Those of earlier runs
 * stay on disk, behind each other and followed by an index, which is read at once; each is read when somebody asks. */
#include "host/answers.h"

#include "core/bytes.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Planning the full set takes 3,000 answers. A listing of all metrics asks far more than is worth keeping. */
#define MOST_KEPT 8192
/* More than any run needs again. */
#define MOST_REMEMBERED (8 * MOST_KEPT)

typedef struct answer {
    kprof_strbuf record; /* a kind, a name, a NUL, and what kprof_put_strings writes */
    struct answer *next;
} answer;

/* A row of the index: where a record is. Rows are sorted by `hash`, and their number follows them. */
typedef struct place {
    uint64_t hash, checksum; /* of the record up to the NUL, and of all of it */
    uint32_t offset, size;
} place;
#define COUNT_BYTES 8

struct kprof_answers {
    kprof_cache_entry kept;
    kprof_strbuf index; /* of what is kept */
    void *tree;
    answer *first, *last;
    size_t count;
};

KPROF_BY_TEXT(compare_answers, answer, record.data)

KPROF_BY_NUMBER(compare_hashes, place, hash)

KPROF_BY_NUMBER(compare_offsets, place, offset)

kprof_answers *kprof_answers_new(void)
{
    kprof_answers *answers = kprof_calloc(1, sizeof(*answers));
    if (answers)
        answers->kept.fd = -1;
    return answers;
}

static void free_answer(void *data)
{
    kprof_strbuf_free(&((answer *)data)->record);
    free(data);
}

void kprof_answers_free(kprof_answers *answers)
{
    if (!answers)
        return;
    tdestroy(answers->tree, free_answer);
    kprof_strbuf_free(&answers->index);
    kprof_cache_close(&answers->kept);
    free(answers);
}

/* The beginning of a record. */
static kprof_strbuf make_key(char kind, const char *name)
{
    kprof_strbuf key = KPROF_STRBUF_INIT;
    kprof_strbuf_printf(&key, "%c%s", kind, name);
    kprof_strbuf_append(&key, "", 1);
    return key;
}

/* False when it was damaged. */
static bool read_record(const kprof_answers *answers, const place *at, kprof_strbuf *out)
{
    kprof_strbuf_clear(out);
    return kprof_cache_read(&answers->kept, at->offset, at->size, out) &&
           at->checksum == kprof_hash(KPROF_HASH_START, out->data, out->length);
}

/* Take a record into the tree; NULL when its key is there. */
static answer *add(kprof_answers *answers, kprof_strbuf record)
{
    answer *one = kprof_calloc(1, sizeof(*one));
    one->record = record;
    answer *const *there = tsearch(one, &answers->tree, compare_answers);
    if (there && *there == one)
        return one;
    free_answer(one);
    return NULL;
}

/* Read an answer of an earlier run, once; NULL when there is none. */
static answer *recall(kprof_answers *answers, const kprof_strbuf *key)
{
    const place wanted = {.hash = kprof_hash(KPROF_HASH_START, key->data, key->length)};
    const kprof_strbuf *index = &answers->index;
    const place *at =
        index->data ? bsearch(&wanted, index->data, index->length / sizeof(*at), sizeof(*at), compare_hashes) : NULL;
    kprof_strbuf record = KPROF_STRBUF_INIT;
    if (at && read_record(answers, at, &record) && strcmp(record.data, key->data) == 0)
        return add(answers, record);
    kprof_strbuf_free(&record);
    return NULL;
}

bool kprof_answers_get(kprof_answers *answers, char kind, const char *name, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strbuf) key = make_key(kind, name);
    answer *const *found = tfind(&(answer){.record = key}, &answers->tree, compare_answers);
    const answer *one = found ? *found : recall(answers, &key);
    kprof_bytes in = {one ? (const uint8_t *)one->record.data : NULL, one ? one->record.length : 0, !one};
    const size_t before = out->count;
    (void)kprof_get_block(&in, key.length);
    kprof_get_strings(&in, out);
    while (in.failed && out->count > before)
        free(out->items[--out->count]);
    return !in.failed;
}

void kprof_answers_put(kprof_answers *answers, char kind, const char *name, const kprof_strlist *texts)
{
    if (answers->count >= MOST_REMEMBERED)
        return;
    kprof_strbuf record = make_key(kind, name);
    kprof_put_strings(&record, texts);
    answer *one = add(answers, record);
    if (!one)
        return;
    *(answers->last ? &answers->last->next : &answers->first) = one;
    answers->last = one;
    answers->count++;
}

static void write_record(const kprof_strbuf *record, place *at, kprof_strbuf *out)
{
    const uint64_t hash = kprof_hash(KPROF_HASH_START, record->data, strlen(record->data) + 1);
    const uint64_t checksum = kprof_hash(KPROF_HASH_START, record->data, record->length);
    *at = (place){hash, checksum, (uint32_t)out->length, (uint32_t)record->length};
    kprof_strbuf_append(out, record->data, record->length);
}

bool kprof_answers_write(const kprof_answers *answers, kprof_strbuf *out)
{
    const size_t kept_count = answers->index.length / sizeof(place), total = kept_count + answers->count;
    KPROF_AUTO_FREE place *places =
        answers->count > 0 && answers->count <= MOST_KEPT ? kprof_calloc(total, sizeof(*places)) : NULL;
    if (!places)
        return false;
    KPROF_AUTO(kprof_strbuf) record = KPROF_STRBUF_INIT;
    size_t count = 0;
    if (kept_count > 0)
        memcpy(places, answers->index.data, answers->index.length);
    qsort(places, kept_count, sizeof(*places), compare_offsets);
    for (size_t i = total > MOST_KEPT ? total - MOST_KEPT : 0; i < kept_count; i++)
        if (read_record(answers, &places[i], &record))
            write_record(&record, &places[count++], out);
    for (const answer *one = answers->first; one; one = one->next)
        write_record(&one->record, &places[count++], out);
    qsort(places, count, sizeof(*places), compare_hashes);
    kprof_strbuf_append(out, places, count * sizeof(*places));
    kprof_put_u64(out, count);
    return true;
}

bool kprof_answers_read(kprof_answers *answers, const kprof_strbuf *key)
{
    kprof_cache_entry *kept = &answers->kept;
    kprof_strbuf *index = &answers->index;
    bool good = kprof_cache_open(key, kept) && kprof_cache_read(kept, kept->size - COUNT_BYTES, COUNT_BYTES, index);
    kprof_bytes end = {(const uint8_t *)index->data, index->length, !good};
    const uint64_t count = kprof_get_u64(&end), size = count * sizeof(place);
    kprof_strbuf_clear(index);
    good = good && count <= MOST_KEPT && kprof_cache_read(kept, kept->size - COUNT_BYTES - size, size, index);
    if (!good)
        kprof_strbuf_free(index);
    return good;
}
