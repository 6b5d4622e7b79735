/* Joins and splits words with single quotes. */
#include "cli/words.h"

#include <string.h>

char *kprof_words_join(char *const *words)
{
    /* No shell changes a word of these. */
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=+%@";
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (char *const *word = words; *word; word++) {
        kprof_strbuf_puts(&joined, word == words ? "" : " ");
        if (**word && (*word)[strspn(*word, plain)] == '\0') {
            kprof_strbuf_puts(&joined, *word);
            continue;
        }
        kprof_strbuf_puts(&joined, "'");
        for (const char *c = *word; *c; c++)
            kprof_strbuf_append(&joined, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
        kprof_strbuf_puts(&joined, "'");
    }
    return kprof_strbuf_take(&joined);
}

void kprof_words_split(const char *text, kprof_strlist *out)
{
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        kprof_strbuf word = KPROF_STRBUF_INIT;
        bool is_quoted = false;
        for (; *text && (is_quoted || *text != ' '); text++) {
            if (*text == '\'')
                is_quoted = !is_quoted;
            else if (*text == '\\' && !is_quoted && text[1])
                kprof_strbuf_append(&word, ++text, 1);
            else
                kprof_strbuf_append(&word, text, 1);
        }
        kprof_strlist_take(out, kprof_strbuf_take(&word));
    }
}
