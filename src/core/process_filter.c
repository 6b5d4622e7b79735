/* Chooses processes of an application by the names of their programs. */
#include "core/process_filter.h"
#include "core/files.h"
#include "core/log.h"
#include "core/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char option[] = "--target-processes-filter", exclude[] = "exclude:", exclude_tree[] = "exclude-tree:";

/* A program has two names: that of its file, and the word that started it. "python3" may lead to "python3.11". */
typedef struct process_names {
    char file[256], word[256];
} process_names;

static void keep_last_part(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, size, "%s", slash ? slash + 1 : path);
}

static void read_names(pid_t pid, process_names *out)
{
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    const ssize_t length = readlink(path, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    keep_last_part(text, out->file, sizeof out->file);
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    kprof_read_text(path, text, sizeof text);
    keep_last_part(text, out->word, sizeof out->word);
}

static bool is_named(const process_names *names, const char *name)
{
    return strcmp(names->file, name) == 0 || strcmp(names->word, name) == 0;
}

/* A pattern that takes too long matches nothing. */
static bool is_matched(const process_names *names, const char *pattern)
{
    kprof_regex *regex;
    if (kprof_regex_new(option, pattern, &regex) != KPROF_OK)
        return false;
    const bool is = kprof_regex_match(regex, names->file) == KPROF_REGEX_YES ||
                    kprof_regex_match(regex, names->word) == KPROF_REGEX_YES;
    kprof_regex_free(regex);
    return is;
}

char *kprof_process_trees(const kprof_strlist *expressions)
{
    KPROF_AUTO(kprof_strbuf) trees = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < expressions->count; i++) {
        const char *name = kprof_after(expressions->items[i], exclude_tree);
        if (name && !strchr(name, '/'))
            kprof_strbuf_printf(&trees, "%s-%s", trees.length > 0 ? "/" : "", name);
    }
    return trees.length > 0 ? kprof_strbuf_take(&trees) : NULL;
}

/* Has the environment the mark of a process with this name that the calling process descends from? */
static bool is_marked(const char *name)
{
    const char *at = secure_getenv(KPROF_TREES_ENV);
    for (size_t length; at && *at; at += length + (at[length] == '/')) {
        length = strcspn(at, "/");
        if (*at == '+' && strlen(name) == length - 1 && strncmp(at + 1, name, length - 1) == 0)
            return true;
    }
    return false;
}

/* Is the process, or one that it descends from, named so? Those that have ended are known by their mark alone, those
 * that run without the preloaded library by their names alone. */
static bool descends_from(pid_t root, const char *name)
{
    if (is_marked(name))
        return true;
    enum { MOST_GENERATIONS = 1000 };
    uint64_t pid = (uint64_t)getpid();
    for (int i = 0; i < MOST_GENERATIONS && pid > 1; i++) {
        process_names names;
        char path[64];
        read_names((pid_t)pid, &names);
        if (is_named(&names, name))
            return true;
        snprintf(path, sizeof path, "/proc/%lu/status", pid);
        if (pid == (uint64_t)root || !kprof_proc_number(&(kprof_proc_file){"", path}, "PPid", 10, &pid))
            break;
    }
    return false;
}

/* Names of programs have a colon, too, but they hardly begin as these words do. A name alone includes. */
static kprof_status check_kind(const char *word)
{
    static const char *const kinds[] = {"regex", "exclude", "exclude-tree", "include"};
    const char *name = strchr(word, ':');
    KPROF_AUTO_FREE char *kind = name ? kprof_strndup(word, (size_t)(name - word)) : NULL;
    const char *nearest = kind ? kprof_nearest_spelling(kind, kinds, COUNT_OF(kinds)) : NULL;
    const bool includes = nearest && strcmp(nearest, "include") == 0;
    if (!nearest || (strcmp(nearest, kind) == 0 && !includes))
        return KPROF_OK;
    return kprof_fail(KPROF_USAGE,
                      "%s: \"%s\" begins with none of regex:, exclude: and exclude-tree:; did you mean %s%s?", option,
                      word, includes ? "" : nearest, includes ? name + 1 : name);
}

kprof_status kprof_process_filter_check(const kprof_strlist *expressions)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < expressions->count && status == KPROF_OK; i++) {
        const char *pattern = kprof_regex_pattern(expressions->items[i]);
        kprof_regex *regex = NULL;
        status = check_kind(expressions->items[i]);
        if (pattern && status == KPROF_OK)
            status = kprof_regex_new(option, pattern, &regex);
        kprof_regex_free(regex);
    }
    return status;
}

bool kprof_process_is_wanted(const kprof_strlist *expressions, pid_t root)
{
    process_names own;
    bool has_names = false;
    if (expressions->count == 0)
        return true;
    read_names(getpid(), &own);
    for (size_t i = 0; i < expressions->count; i++) {
        const char *word = expressions->items[i], *pattern = kprof_regex_pattern(word);
        const bool is_tree = kprof_begins_with(word, exclude_tree), is_one = kprof_begins_with(word, exclude);
        if (is_tree && descends_from(root, word + strlen(exclude_tree)))
            return false;
        if (is_one && is_named(&own, word + strlen(exclude)))
            return false;
        has_names |= !is_tree && !is_one;
        if (!is_tree && !is_one && (pattern ? is_matched(&own, pattern) : is_named(&own, word)))
            return true;
    }
    return !has_names;
}
