/* Text of others made safe for people: what could steer a terminal, turn the text around or is no UTF-8 is spelled out.
 * Messages, the status line, lists and pages of reports go through here; JSON has escapes of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A copy (caller frees; NULL when out of memory) in which control characters, bytes that are no UTF-8 and characters
 * that reorder text are spelled out: "\n", "\x1b". NULL is taken as "". A text that was cleaned stays as it is. */
char *kprof_clean_text(const char *text);
/* Would kprof_clean_text change nothing? */
bool kprof_text_is_clean(const char *text);
/* End a clean text after `size` bytes at most, between two characters. */
void kprof_cut_text(char *text, size_t size);
/* Copy the characters of a clean text that fit into `size` bytes (at least 1) with a NUL behind them. */
void kprof_fit_text(char *out, size_t size, const char *text);

/* Length in bytes of the UTF-8 character at `text`, and its code point; 0 when it is not one (overlong, surrogate,
 * cut). Reads no further than the end of the string, whose NUL is a character of length 1. */
size_t kprof_utf8_decode(const char *text, uint32_t *code);
/* Is the byte one within such a character, behind its first? */
static inline bool kprof_utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}
/* Is it a control character, or one that changes the direction of the text around it? */
bool kprof_utf8_is_unsafe(uint32_t code);
