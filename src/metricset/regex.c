/* Regular expressions over names: PCRE2, matching anywhere in the text, as ncu's "regex:" does. */
#include "metricset/select.h"

#include "core/log.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

struct kprof_regex {
    pcre2_code *code;
    pcre2_match_data *match;
};

const char *kprof_regex_pattern(const char *word)
{
    static const char prefix[] = "regex:";
    return strncmp(word, prefix, sizeof(prefix) - 1) == 0 ? word + sizeof(prefix) - 1 : NULL;
}

kprof_status kprof_regex_new(const char *pattern, kprof_regex **out)
{
    int error;
    PCRE2_SIZE offset;
    *out = NULL;
    kprof_regex *regex = calloc(1, sizeof(*regex));
    if (!regex)
        return KPROF_NO_MEMORY;
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &error, &offset, NULL);
    if (!regex->code) {
        char text[256];
        (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
        kprof_regex_free(regex);
        return kprof_fail(KPROF_USAGE, "regex:%s, character %zu: %s", pattern, (size_t)offset + 1, text);
    }
    regex->match = pcre2_match_data_create_from_pattern(regex->code, NULL);
    if (!regex->match) {
        kprof_regex_free(regex);
        return KPROF_NO_MEMORY;
    }
    *out = regex;
    return KPROF_OK;
}

bool kprof_regex_matches(const kprof_regex *regex, const char *text)
{
    return pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, regex->match, NULL) >= 0;
}

void kprof_regex_free(kprof_regex *regex)
{
    if (!regex)
        return;
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    free(regex);
}
