/* A number by itself is compared; answers of a pattern are kept, as each kernel of a program asks about the same. */
#include "core/numbers.h"
#include "core/log.h"
#include "core/regex.h"
#include "core/strbuf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_ANSWERS 65536

struct kprof_numbers {
    uint64_t number;                             /* where there is no pattern */
    kprof_regex *regex;                          /* or NULL */
    _Atomic unsigned char answers[KEPT_ANSWERS]; /* by number: 0 not known yet, 1 no, 2 yes */
};

/* Does it match no number? A letter is in none, but behind a \ it has another meaning; and without any character that
 * has a meaning in patterns, text that is no number stands for itself, such as "1,2". */
static bool is_no_pattern(const char *text)
{
    if (!strpbrk(text, "\\.[]()*+?{}^$|"))
        return true;
    for (; *text; text++) {
        if (*text == '\\' && text[1])
            text++;
        else if (isalpha((unsigned char)*text))
            return true;
    }
    return false;
}

kprof_status kprof_numbers_new(const char *option, const char *text, kprof_numbers **out)
{
    const bool is_plain = text[strspn(text, "0123456789")] == '\0';
    *out = NULL;
    kprof_numbers *numbers = kprof_calloc(1, sizeof *numbers);
    if (!numbers)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", option);
    kprof_status status = KPROF_OK;
    errno = 0;
    if (is_plain)
        numbers->number = strtoull(text, NULL, 10);
    if (is_plain ? numbers->number == 0 || errno != 0 : is_no_pattern(text))
        status = kprof_fail(KPROF_USAGE,
                            "%s: \"%s\" is no number from 1, and no pattern of numbers; write 3, \"2|5\" or \"[2-4]\"",
                            option, text);
    else if (!is_plain)
        status = kprof_regex_new_whole(option, text, &numbers->regex);
    if (status == KPROF_OK)
        *out = numbers;
    else
        kprof_numbers_free(numbers);
    return status;
}

void kprof_numbers_free(kprof_numbers *numbers)
{
    if (!numbers)
        return;
    kprof_regex_free(numbers->regex);
    free(numbers);
}

bool kprof_numbers_have(kprof_numbers *numbers, uint64_t number)
{
    char text[24];
    if (!numbers->regex)
        return number == numbers->number;
    _Atomic unsigned char *answer = number < KEPT_ANSWERS ? &numbers->answers[number] : NULL;
    const unsigned char known = answer ? atomic_load_explicit(answer, memory_order_relaxed) : 0;
    if (known)
        return known == 2;
    snprintf(text, sizeof text, "%" PRIu64, number);
    const bool is_match = kprof_regex_match(numbers->regex, text) == KPROF_REGEX_YES;
    if (answer)
        atomic_store_explicit(answer, is_match ? 2 : 1, memory_order_relaxed);
    return is_match;
}
