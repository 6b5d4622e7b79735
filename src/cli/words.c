/* Joins and splits command lines, and reads files of options: response files, which have words as a shell takes them,
 * and ncu's configuration, which has lines "OPTION = VALUE" below headings. */
#include "cli/words.h"

#include "core/files.h"
#include "core/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_NAME "config.ncu-cfg"
#define BLANKS      " \t\r\n"

enum { MOST_BYTES = 1 << 20 };

/* A pipe is read where somebody writes to it, as in "@<(command)", and no device is. */
static FILE *open_text(const char *path, mode_t *mode)
{
    struct stat info = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    *mode = fstat(fd, &info) == 0 ? info.st_mode : 0;
    (void)fcntl(fd, F_SETFL, 0); /* wait for what is written */
    return fdopen(fd, "r");
}

static kprof_status read_text(const char *path, const char *advice, char **out)
{
    mode_t mode = 0;
    KPROF_AUTO_FCLOSE FILE *file = open_text(path, &mode);
    *out = kprof_calloc(MOST_BYTES + 1, 1);
    const bool is_device = (S_ISCHR(mode) || S_ISBLK(mode)) && strcmp(path, "/dev/null") != 0; /* which is empty */
    const size_t size = file && !is_device ? fread(*out, 1, MOST_BYTES + 1, file) : 0;
    if (!file || ferror(file))
        return kprof_fail(errno == ENOMEM ? KPROF_NO_MEMORY : KPROF_USAGE, "reading options from %s: %m%s", path,
                          advice);
    if (is_device || size > MOST_BYTES || memchr(*out, '\0', size))
        return kprof_fail(KPROF_USAGE, "%s is no file of options: it is longer than 1 MiB, or no text%s", path, advice);
    if (S_ISFIFO(mode) && size == 0)
        return kprof_fail(KPROF_USAGE, "%s is a pipe to which nobody writes%s", path, advice);
    return KPROF_OK;
}

char *kprof_words_join(char *const *words, char *const *application)
{
    kprof_strbuf joined = KPROF_STRBUF_INIT;
    for (char *const *word = words; *word; word++) {
        const bool begins_application = word == application && word > words && strcmp(word[-1], "--") != 0;
        kprof_strbuf_puts(&joined, word == words ? "" : begins_application ? " -- " : " ");
        kprof_strbuf_quote(&joined, *word);
    }
    return kprof_strbuf_take(&joined);
}

/* Within double quotes a backslash stands for itself unless one of these follows. */
static bool is_escaped(const char *at, char quote)
{
    return *at == '\\' && quote != '\'' && at[1] && (!quote || strchr("\"\\$`\n", at[1]));
}

/* Append the word at `text`, and return what follows it. */
static const char *split_word(const char *text, kprof_strlist *out, bool *is_open)
{
    kprof_strbuf word = KPROF_STRBUF_INIT;
    char quote = 0;
    for (; *text && (quote || !strchr(BLANKS, *text)); text++) {
        const bool is_quote = quote ? *text == quote : *text == '\'' || *text == '"';
        if (is_quote)
            quote = quote ? 0 : *text;
        else if (!is_escaped(text, quote))
            kprof_strbuf_append(&word, text, 1);
        else if (*++text != '\n') /* else the line goes on */
            kprof_strbuf_append(&word, text, 1);
    }
    kprof_strlist_take(out, kprof_strbuf_take(&word));
    *is_open = quote != 0;
    return text;
}

bool kprof_words_split(const char *text, kprof_strlist *out)
{
    bool is_open = false;
    for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS)) {
        if (*text == '#')
            text += strcspn(text, "\n");
        else
            text = split_word(text, out, &is_open);
    }
    return !is_open;
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
    if (status == KPROF_OK && !kprof_words_split(text, out))
        status = kprof_fail(KPROF_USAGE, "%s: a quote does not end", path);
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

/* "--name = value" becomes "--name=value", and "-c = 1" "-c1". Quotes around the value are none of it. */
static char *join_option(char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        return kprof_strdup(line);
    *value++ = '\0';
    const char *name = trim(line);
    value = trim(value);
    const size_t length = strlen(value);
    if (length > 1 && strchr("'\"", *value) && value[length - 1] == *value) {
        value[length - 1] = '\0';
        value++;
    }
    return kprof_strprintf("%s%s%s", name, kprof_begins_with(name, "--") ? "=" : "", value);
}

static bool is_option(const char *line)
{
    const size_t dashes = strspn(line, "-");
    return (dashes == 1 || dashes == 2) && isalnum((unsigned char)line[dashes]);
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
        } else if (!is_option(line) || !has_heading) {
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
