/* Answers questions about a chip's metrics, if possible from answers that earlier runs kept: loading CUPTI's
 * libraries for a new answer takes 70 ms. */
#include "host/host.h"

#include "core/cache.h"
#include "host/nvpw.h"

#include <stdlib.h>
#include <string.h>

/* A kind of question: the letter that its answers are kept under, and the function that answers it. */
typedef struct kind {
    char letter;
    kprof_ask *ask;
} kind;
static const kind chips_known = {'x', kprof_ask_chips}, base_metrics = {'b', kprof_ask_base_metrics},
                  submetrics = {'s', kprof_ask_submetrics}, breakdown = {'t', kprof_ask_breakdown},
                  info = {'i', kprof_ask_info}, known = {'k', kprof_ask_known}, sampled = {'m', kprof_ask_sampled};
#define COLLECTABLE 'c' /* asked for many names at once */

/* A counter of the context that every chip has: NVLink and PCIe counters are taken alone, but not beside it. */
#define COMPANION "sm__cycles_elapsed.max"

/* Names that are tried together at first. A group of 128 counters of SMs takes five times as long as eight of 16 do. */
#define GROUP_COUNT 16

/* False where the library cannot be told from others: then nothing is kept. */
static bool make_key(const kprof_host_question *question, kprof_strbuf *key)
{
    const kprof_host *host = question->host;
    kprof_strbuf_printf(key, "%s\nhost %s\n", question->what, KPROF_HOST_SOURCES);
    if (!kprof_cupti_identify(key))
        return false;
    kprof_strbuf_printf(key, "%s\navailability %zu\n", host->chip, host->availability.size);
    kprof_strbuf_append(key, host->availability.image, host->availability.size);
    for (size_t i = 0; i < question->names->count; i++) {
        const char *name = question->names->items[i];
        kprof_strbuf_append(key, name, strlen(name) + 1); /* the NUL keeps names apart */
    }
    return true;
}

bool kprof_host_recall(const kprof_host_question *question, kprof_strbuf *out)
{
    KPROF_AUTO(kprof_strbuf) key = KPROF_STRBUF_INIT;
    return make_key(question, &key) && kprof_cache_get(&key, out);
}

void kprof_host_keep(const kprof_host_question *question, const void *answer, size_t size)
{
    KPROF_AUTO(kprof_strbuf) key = KPROF_STRBUF_INIT;
    if (make_key(question, &key))
        kprof_cache_put(&key, answer, size);
}

static const kprof_strlist no_names = KPROF_STRLIST_INIT;

/* True when answers are kept: then the chip is known, and its object has been opened once. */
static bool recall_answers(kprof_host *host, const char *what)
{
    KPROF_AUTO(kprof_strbuf) key = KPROF_STRBUF_INIT;
    return make_key(&(kprof_host_question){host, what, &no_names}, &key) && kprof_answers_read(host->answers, &key);
}

static void keep_answers(const kprof_host *host, const char *what)
{
    KPROF_AUTO(kprof_strbuf) bytes = KPROF_STRBUF_INIT;
    if (host->keeps_answers && kprof_answers_write(host->answers, &bytes))
        kprof_host_keep(&(kprof_host_question){host, what, &no_names}, bytes.data, bytes.length);
}

/* Append the answer to a question: one that is remembered, or else the library's. */
static kprof_status answer(kprof_host *host, const kind *of, const char *name, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) fresh = KPROF_STRLIST_INIT;
    if (kprof_answers_get(host->answers, of->letter, name, out))
        return KPROF_OK;
    kprof_status status = of->ask(host, name, &fresh);
    if (status != KPROF_OK)
        return status;
    kprof_answers_put(host->answers, of->letter, name, &fresh);
    kprof_strlist_add_all(out, &fresh);
    return KPROF_OK;
}

/* The chips that the library knows are kept as the answer of a host of no chip. */
kprof_status kprof_host_chips(kprof_strlist *out)
{
    kprof_host any = {.chip = (char *)"", .answers = kprof_answers_new(), .keeps_answers = true};
    (void)recall_answers(&any, "chips");
    KPROF_AUTO(kprof_strlist) all = KPROF_STRLIST_INIT;
    kprof_status status = answer(&any, &chips_known, "", &all);
    for (size_t i = 0; i < all.count; i++)
        if (!kprof_chip_is_too_old(all.items[i]))
            kprof_strlist_add(out, all.items[i]);
    keep_answers(&any, "chips");
    kprof_answers_free(any.answers);
    return status;
}

/* The parts of a host that whoever opens it chooses. */
static kprof_status open_host(const char *chip, const kprof_availability *availability, const kprof_host *like,
                              kprof_host **out)
{
    const bool keeps_answers = like->keeps_answers;
    *out = NULL;
    kprof_host *host = calloc(1, sizeof(*host));
    if (!host)
        return KPROF_NO_MEMORY;
    *host = (kprof_host){.chip = kprof_strdup(chip), .answers = kprof_answers_new()};
    host->keeps_answers = keeps_answers;
    host->samples = like->samples;
    if (availability)
        host->availability = *availability;
    host->label = kprof_strprintf("chip %s", chip);
    kprof_status status = host->chip && host->label && host->answers ? KPROF_OK : KPROF_NO_MEMORY;
    bool is_known = status == KPROF_OK && keeps_answers && recall_answers(host, "answers");
    /* The library's own errors for a wrong chip name are not told apart from others, so the list decides. */
    KPROF_AUTO(kprof_strlist) chips = KPROF_STRLIST_INIT;
    if (status == KPROF_OK && !is_known && !availability) {
        status = keeps_answers ? kprof_host_chips(&chips) : kprof_ask_chips(host, "", &chips);
        KPROF_THEN(status, kprof_chip_check(chip, &chips));
    }
    if (status == KPROF_OK && !is_known)
        status = kprof_ask_open(host);
    if (status == KPROF_OK)
        *out = host;
    else
        kprof_host_close(host);
    return status;
}

kprof_status kprof_host_open(const char *chip, const kprof_availability *availability, kprof_host **out)
{
    return open_host(chip, availability, &(kprof_host){.keeps_answers = true}, out);
}

kprof_status kprof_host_open_apart(const char *chip, kprof_host **out)
{
    return open_host(chip, NULL, &(kprof_host){0}, out);
}

kprof_status kprof_host_open_sampler(const char *chip, kprof_host **out)
{
    return open_host(chip, NULL, &(kprof_host){.samples = true}, out);
}

void kprof_host_close(kprof_host *host)
{
    if (!host)
        return;
    if (host->answers)
        keep_answers(host, "answers");
    kprof_ask_close(host);
    kprof_answers_free(host->answers);
    KPROF_FREE(host->chip, host->label, host);
}

const char *kprof_host_chip(const kprof_host *host)
{
    return host->chip;
}

const char *kprof_host_label(const kprof_host *host)
{
    return host->label;
}

kprof_status kprof_host_base_metrics(kprof_host *host, kprof_metric_type type, kprof_strlist *out)
{
    const char number[] = {(char)('0' + type), '\0'};
    return answer(host, &base_metrics, number, out);
}

kprof_status kprof_host_submetrics(kprof_host *host, const char *base, kprof_strlist *out)
{
    return answer(host, &submetrics, base, out);
}

kprof_status kprof_host_breakdown(kprof_host *host, const char *throughput, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strlist) members = KPROF_STRLIST_INIT;
    kprof_status status = answer(host, &breakdown, throughput, &members);
    kprof_strlist_add_all_unique(out, &members);
    return status;
}

kprof_status kprof_host_metric_info(kprof_host *host, const char *name, kprof_metric_info *out)
{
    kprof_strlist texts = KPROF_STRLIST_INIT;
    kprof_status status = answer(host, &info, name, &texts);
    *out = (kprof_metric_info){0};
    const bool is_info =
        texts.count == 4 && texts.items[0][0] >= '0' && texts.items[0][0] <= '0' + KPROF_METRIC_THROUGHPUT;
    if (status == KPROF_OK && !is_info) {
        kprof_strlist_free(&texts);
        status = kprof_ask_info(host, name, &texts);
    }
    if (status == KPROF_OK) {
        *out = (kprof_metric_info){.name = kprof_strndup(name, kprof_metric_base_length(name)),
                                   .description = texts.items[1],
                                   .hw_unit = texts.items[2],
                                   .unit = texts.items[3],
                                   .type = (kprof_metric_type)(texts.items[0][0] - '0')};
        texts.count = 1; /* the others are given away */
    }
    kprof_strlist_free(&texts);
    return status;
}

/* Keep nothing for later runs once a question has failed: what follows from the failure need not hold for them. */
static bool is_so(kprof_host *host, const kind *of, const char *name)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    kprof_status status = answer(host, of, name, &found);
    bool has = status == KPROF_OK && found.count > 0;
    host->keeps_answers = host->keeps_answers && status == KPROF_OK;
    return has;
}

bool kprof_host_has_metric(kprof_host *host, const char *name)
{
    return is_so(host, &known, name);
}

bool kprof_host_can_sample(kprof_host *host, const char *name)
{
    return is_so(host, &sampled, name);
}

/* Set *can to the remembered answer; false when there is none. */
static bool recall_collectable(const kprof_host *host, const char *name, bool *can)
{
    KPROF_AUTO(kprof_strlist) found = KPROF_STRLIST_INIT;
    bool is_remembered = kprof_answers_get(host->answers, COLLECTABLE, name, &found);
    *can = found.count > 0;
    return is_remembered;
}

static void remember_collectable(kprof_host *host, const char *name, bool can)
{
    char *items[] = {(char *)"yes"};
    kprof_answers_put(host->answers, COLLECTABLE, name, &(kprof_strlist){items, can, can});
}

/* CUPTI tells by taking or refusing a whole list of names, at about a millisecond a call. So names are tried in groups,
 * and a refused group is halved until every name is known; `names` has room for the companion in front. Depth is the
 * logarithm of the count. */
static void check_group(kprof_host *host, const char **names, size_t count)
{
    const char *saved = names[-1];
    names[-1] = COMPANION;
    bool certain = true, taken = kprof_ask_takes(host, names - 1, count + 1, &certain);
    names[-1] = saved;
    host->keeps_answers = host->keeps_answers && certain;
    if (taken || count == 1) {
        for (size_t i = 0; i < count; i++)
            remember_collectable(host, names[i], taken);
        return;
    }
    check_group(host, names, count / 2);
    check_group(host, names + count / 2, count - count / 2);
}

kprof_status kprof_host_check(kprof_host *host, const kprof_strlist *names)
{
    KPROF_AUTO_FREE const char **group =
        kprof_calloc(names->count + 1, sizeof(*group)); /* with room for the companion in front */
    if (!group)
        return KPROF_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        bool unused;
        if (recall_collectable(host, name, &unused))
            continue;
        if (name[kprof_metric_base_length(name)] && kprof_host_has_metric(host, name))
            group[1 + count++] = name;
        else
            remember_collectable(host, name, false); /* a base name alone has properties but is no value */
    }
    for (size_t i = 0; i < count; i += GROUP_COUNT)
        check_group(host, group + 1 + i, count - i < GROUP_COUNT ? count - i : GROUP_COUNT);
    return KPROF_OK;
}

bool kprof_host_can_collect(kprof_host *host, const char *name)
{
    char *items[] = {(char *)name};
    bool can = false;
    if (!recall_collectable(host, name, &can) && kprof_host_check(host, &(kprof_strlist){items, 1, 1}) == KPROF_OK)
        (void)recall_collectable(host, name, &can);
    return can;
}
