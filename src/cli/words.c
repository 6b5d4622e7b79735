/* Joins and splits command lines, and reads files of options: response files, which have words as a shell takes them,
 * and ncu's configuration, which has lines "OPTION = VALUE" below headings. */
#include "cli/words.h"

#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CONFIG_NAME "config.ncu-cfg"

enum { MOST_BYTES = 1 << 20 };

static kprof_status read_text(const char *path, const char *advice, char **out)
{
    FILE *file = fopen(path, "re");
    *out = kprof_calloc(MOST_BYTES + 1, 1);
    const size_t size = file ? fread(*out, 1, MOST_BYTES + 1, file) : 0;
    kprof_status status = KPROF_OK;
    if (!file || ferror(file))
        status =
            kprof_fail(errno == ENOMEM ? KPROF_NO_MEMORY : KPROF_USAGE, "reading options from %s: %m%s", path, advice);
    else if (size > MOST_BYTES || memchr(*out, '\0', size))
        status =
            kprof_fail(KPROF_USAGE, "%s is no file of options: it is longer than 1 MiB, or no text%s", path, advice);
    if (file)
        fclose(file);
    return status;
}

char *kprof_words_join(char *const *words)
{
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (char *const *word = words; *word; word++) {
        kprof_strbuf_puts(&joined, word == words ? "" : " ");
        kprof_strbuf_quote(&joined, *word);
    }
    return kprof_strbuf_take(&joined);
}

void kprof_words_split(const char *text, kprof_strlist *out)
{
    for (text += strspn(text, " \t\r\n"); *text; text += strspn(text, " \t\r\n")) {
        kprof_strbuf word = KPROF_STRBUF_INIT;
        for (char quote = 0; *text && (quote || !strchr(" \t\r\n", *text)); text++) {
            const bool is_quote = quote ? *text == quote : *text == '\'' || *text == '"';
            if (is_quote)
                quote = quote ? 0 : *text;
            else if (*text == '\\' && quote != '\'' && text[1])
                kprof_strbuf_append(&word, ++text, 1);
            else
                kprof_strbuf_append(&word, text, 1);
        }
        kprof_strlist_take(out, kprof_strbuf_take(&word));
    }
}

char **kprof_words_replace(kprof_pool *pool, char **line, kprof_word_span removed, const kprof_strlist *words)
{
    const size_t at = removed.at, rest = at + removed.count;
    size_t count = rest;
    while (line[count])
        count++;
    char **all = kprof_pool_calloc(pool, count - removed.count + words->count + 1, sizeof *all);
    memcpy(all, line, at * sizeof *all);
    for (size_t i = 0; i < words->count; i++)
        all[at + i] = kprof_pool_strdup(pool, words->items[i]);
    memcpy(all + at + words->count, line + rest, (count - rest) * sizeof *all);
    return all;
}

kprof_status kprof_words_read(const char *path, kprof_strlist *out)
{
    KPROF_AUTO_FREE char *text = NULL;
    kprof_status status = read_text(path, "; \"-- @FILE\" starts a program whose name begins so", &text);
    if (status == KPROF_OK)
        kprof_words_split(text, out);
    return status;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    for (size_t length = strlen(text); length > 0 && strchr(" \t\r", text[length - 1]); length--)
        text[length - 1] = '\0';
    return text;
}

/* Does the inside of a heading, which commas part, name the mode? */
static bool has_mode(const char *heading, const char *mode)
{
    for (const char *at = heading + strspn(heading, ", \t");; at += strspn(at, ", \t")) {
        const size_t length = strcspn(at, ", \t");
        if (length == 0)
            return false;
        if (length == strlen(mode) && strncasecmp(at, mode, length) == 0)
            return true;
        at += length;
    }
}

/* "--name = value" becomes "--name=value", and "-c = 1" "-c1". */
static char *join_option(char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        return kprof_strdup(line);
    *value++ = '\0';
    const char *name = trim(line);
    return kprof_strprintf("%s%s%s", name, kprof_begins_with(name, "--") ? "=" : "", trim(value));
}

kprof_status kprof_config_read(const char *path, const char *mode, kprof_strlist *out)
{
    KPROF_AUTO_FREE char *text = NULL;
    char *rest = NULL;
    bool has_heading = false, is_of_mode = false;
    kprof_status status = read_text(path, "", &text);
    char *line = status == KPROF_OK ? strtok_r(text, "\n", &rest) : NULL;
    for (; line; line = strtok_r(NULL, "\n", &rest)) {
        line = trim(line);
        const size_t length = strlen(line);
        if (strchr(";#", *line)) /* an empty line, too */
            continue;
        if (*line == '[' && line[length - 1] == ']') {
            line[length - 1] = '\0';
            has_heading = true;
            is_of_mode = has_mode(line + 1, mode);
        } else if (*line != '-' || !has_heading) {
            return kprof_fail(KPROF_USAGE,
                              "%s: \"%s\" is no option below a heading; write [Launch-and-attach], and "
                              "below it lines such as --section = Occupancy",
                              path, line);
        } else if (is_of_mode) {
            kprof_strlist_take(out, join_option(line));
        }
    }
    return status;
}

char *kprof_config_find(bool of_folder)
{
    const char *home = secure_getenv("HOME");
    const bool is_here = access(CONFIG_NAME, R_OK) == 0;
    if (is_here && of_folder)
        return kprof_strdup(CONFIG_NAME);
    if (is_here)
        kprof_log(KPROF_LOG_WARNING, CONFIG_NAME " of this folder is not read; --config-file yes reads it");
    char *path = kprof_strprintf("%s/.config/NVIDIA Corporation/" CONFIG_NAME, home ? home : "");
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}
