/* PCRE2 with a bound on the work. PCRE2's own limit begins anew at each character of the text and does not see how far
 * `a*` runs, so that n characters may take n * n steps. A callout before each item of the pattern counts both. */
#include "core/regex.h"
#include "core/log.h"

#include <pcre2.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PREFIX "regex:"

#define MAX_PATTERN_BYTES (16 * 1024)
#define HEAP_LIMIT_KIB    (64 * 1024)
/* A callout takes as long as running over this many characters. */
#define WORK_OF_ITEM 16
/* One text may take this much: tens of milliseconds. */
#define WORK_MAX ((uint64_t)1 << 24)
/* All names that a search is asked about may take this much: seconds. */
#define SEARCH_WORK_MAX ((uint64_t)1 << 30)

struct kprof_regex {
    const char *option;
    pcre2_code *code;
    _Atomic uint64_t work;
};

typedef struct effort {
    uint64_t work;
    size_t position;
} effort;

const char *kprof_regex_pattern(const char *word)
{
    return kprof_after(word, PREFIX);
}

/* A whole text in which each `*` stands for anything. */
static char *pattern_of_glob(const char *glob)
{
    kprof_strbuf pattern = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&pattern, "^");
    for (const char *at = glob; *at; at++) {
        if (*at == '*')
            kprof_strbuf_puts(&pattern, ".*");
        else
            kprof_regex_quote(at, 1, &pattern);
    }
    kprof_strbuf_puts(&pattern, "$");
    return kprof_strbuf_take(&pattern);
}

/* Names of C++ have most other signs of patterns, and those with parameters have stars, too. So have template arguments
 * that are pointers: "f<int*>". */
char *kprof_regex_meant(const char *word)
{
    static const char *const spelled[] = {"regex:", "regexp:", "regex=", "regexp=", "re:"}; /* "re::f" is a name */
    const size_t i = KPROF_FIND(k, COUNT_OF(spelled), strncasecmp(word, spelled[k], strlen(spelled[k])) == 0);
    if (i < COUNT_OF(spelled) && !kprof_regex_pattern(word) && word[strlen(spelled[i])] != ':')
        return kprof_strdup(word + strlen(spelled[i]));
    bool is_pattern = *word == '^', has_star = false;
    for (const char *at = word; *at && !kprof_regex_pattern(word); at++) {
        if (*at == '\\' && at[1]) {
            at++;
            continue;
        }
        is_pattern = is_pattern || *at == '|' || (*at == '$' && !at[1]) || kprof_begins_with(at, ".*") ||
                     kprof_begins_with(at, ".+");
        const bool is_pointer = (at[1] == '>' || at[1] == ',') && at > word && at[-1] != '<';
        has_star = has_star || (*at == '*' && !is_pointer);
    }
    return is_pattern ? kprof_strdup(word) : has_star && !strpbrk(word, "([]\\") ? pattern_of_glob(word) : NULL;
}

void kprof_regex_quote(const char *text, size_t length, kprof_strbuf *out)
{
    for (size_t i = 0; i < length; i++) {
        const bool is_special = strchr("\\^.|?*+()[]{}", text[i]) != NULL;
        const unsigned char byte = (unsigned char)text[i];
        if (byte < ' ' || byte == 0x7f) /* which lines and tables show as something else */
            kprof_strbuf_printf(out, "\\x%02x", byte);
        else if (text[i] == '$') /* which a shell reads behind a backslash */
            kprof_strbuf_puts(out, "[$]");
        else
            kprof_strbuf_printf(out, "%s%c", is_special ? "\\" : "", text[i]);
    }
}

kprof_status kprof_regex_new(const char *option, const char *pattern, kprof_regex **out)
{
    int code = 0;
    PCRE2_SIZE offset = 0;
    *out = NULL;
    if (strlen(pattern) > MAX_PATTERN_BYTES)
        return kprof_fail(KPROF_USAGE, "%s: the pattern is longer than %d bytes", option, MAX_PATTERN_BYTES);
    kprof_regex *regex = kprof_calloc(1, sizeof *regex);
    if (!regex)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", option);
    regex->option = option;
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &code, &offset, NULL);
    if (!regex->code) {
        char reason[256];
        KPROF_AUTO_FREE char *glob = *pattern == '*' ? pattern_of_glob(pattern) : NULL; /* no pattern begins so */
        free(regex);
        if (code == PCRE2_ERROR_HEAP_FAILED)
            kprof_memory_note_lack();
        (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
        size_t length = strlen(pattern);
        offset = offset < length ? offset : length;
        return kprof_fail(KPROF_USAGE, "%s: %s at character %zu of the pattern: %.*s <-- here %s%s%s%s", option, reason,
                          offset + 1, (int)offset, pattern, pattern + offset, glob ? "; did you mean \"regex:" : "",
                          glob ? glob : "", glob ? "\"?" : "");
    }
    *out = regex;
    return KPROF_OK;
}

/* Compile the pattern by itself first, so that an error shows the user's own text. */
kprof_status kprof_regex_new_whole(const char *option, const char *pattern, kprof_regex **out)
{
    KPROF_AUTO_FREE char *whole = kprof_strprintf("^(?:%s)$", pattern);
    kprof_status status = kprof_regex_new(option, pattern, out);
    kprof_regex_free(*out);
    *out = NULL;
    KPROF_THEN(status,
               whole ? kprof_regex_new(option, whole, out) : kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", option));
    return status;
}

void kprof_regex_free(kprof_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    free(regex);
}

static int count_item(pcre2_callout_block *block, void *user)
{
    effort *spent = user;
    size_t at = block->current_position, before = spent->position;
    spent->work += WORK_OF_ITEM + (at > before ? at - before : before - at);
    spent->position = at;
    return spent->work > WORK_MAX ? PCRE2_ERROR_MATCHLIMIT : 0;
}

kprof_regex_result kprof_regex_match(kprof_regex *regex, const char *text)
{
    effort spent = {0, 0};
    int result = PCRE2_ERROR_NOMEMORY;
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (match && limits) {
        pcre2_set_heap_limit(limits, HEAP_LIMIT_KIB);
        pcre2_set_callout(limits, count_item, &spent);
        result = pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, match, limits);
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    atomic_fetch_add_explicit(&regex->work, spent.work, memory_order_relaxed);
    if (result == PCRE2_ERROR_NOMEMORY)
        kprof_memory_note_lack();
    if (result >= 0)
        return KPROF_REGEX_YES;
    return result == PCRE2_ERROR_NOMATCH ? KPROF_REGEX_NO : KPROF_REGEX_TOO_LONG;
}

kprof_status kprof_regex_search(kprof_regex *regex, const char *text, bool *found)
{
    kprof_regex_result match = kprof_regex_match(regex, text);
    *found = match == KPROF_REGEX_YES;
    if (match != KPROF_REGEX_TOO_LONG && kprof_regex_work(regex) <= SEARCH_WORK_MAX)
        return KPROF_OK;
    return kprof_fail(KPROF_USAGE, "%s: the pattern takes too long on \"%.200s\"; simplify repetitions", regex->option,
                      text);
}

uint64_t kprof_regex_work(const kprof_regex *regex)
{
    return atomic_load_explicit(&regex->work, memory_order_relaxed);
}
