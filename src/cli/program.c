/* Finds a program as the shell does, and suggests one when the one to start does not exist. */
#include "cli/launch.h"
#include "core/log.h"
#include "core/strbuf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_NAMES 20000 /* a $PATH may be huge, and a suggestion is only a courtesy */

static void add_programs(const char *path, kprof_strlist *names)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; names->count < MAX_NAMES && (entry = readdir(dir));) {
        if (entry->d_name[0] != '.' && faccessat(dirfd(dir), entry->d_name, X_OK, 0) == 0 &&
            !kprof_strlist_add(names, entry->d_name))
            break;
    }
    closedir(dir);
}

char *kprof_program_nearest(const char *name)
{
    kprof_strlist names = KPROF_STRLIST_INIT;
    kprof_strbuf found = KPROF_STRBUF_INIT;
    const char *slash = strrchr(name, '/');
    if (slash) {
        kprof_strbuf_append(&found, name, (size_t)(slash - name) + 1);
        if (!found.failed)
            add_programs(found.data, &names);
    } else {
        const char *path = getenv("PATH");
        char *copy = kprof_strdup(path ? path : ""), *rest = copy;
        for (char *dir; copy && (dir = strsep(&rest, ":"));)
            add_programs(dir, &names);
        free(copy);
    }
    const char *const *items = (const char *const *)names.items;
    /* $PATH has thousands of programs: something in it is always a little like the name. */
    const char *nearest =
        slash ? kprof_nearest(slash + 1, items, names.count) : kprof_nearest_spelling(name, items, names.count);
    char *result = NULL;
    if (nearest) {
        kprof_strbuf_puts(&found, nearest);
        result = kprof_strbuf_take(&found);
    }
    kprof_strbuf_free(&found);
    kprof_strlist_free(&names);
    return result;
}

static bool is_program(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

char *kprof_program_find(const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? kprof_strdup(name) : NULL;
    const char *path = getenv("PATH");
    char *copy = kprof_strdup(path ? path : "/bin:/usr/bin"), *rest = copy, *found = NULL; /* as execvpe does */
    for (char *dir; copy && !found && (dir = strsep(&rest, ":"));) {
        kprof_strbuf file = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&file, "%s/%s", *dir ? dir : ".", name);
        if (!file.failed && is_program(file.data))
            found = kprof_strbuf_take(&file);
        kprof_strbuf_free(&file);
    }
    free(copy);
    return found;
}

/* Read the interpreter that the program's first line, "#!/bin/sh", names: empty if there is no such line, or if the
 * file cannot be read. */
static void read_interpreter(const char *program, char *out, size_t size)
{
    char line[256] = "";
    FILE *file = fopen(program, "re");
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    const char *start = strncmp(line, "#!", 2) == 0 ? line + 2 + strspn(line + 2, " \t") : "";
    snprintf(out, size, "%.*s", (int)strcspn(start, " \t\n"), start);
}

/* The program is there, but what is to run it is not. */
static kprof_status fail_interpreter(const char *name, const char *program, int reason)
{
    char interpreter[256];
    read_interpreter(program, interpreter, sizeof interpreter);
    errno = reason;
    if (interpreter[0] == '\0')
        return kprof_fail(KPROF_NO_APPLICATION,
                          "cannot start %s: %m: it is there, but not the loader that it was linked for", name);
    const bool has_return = strchr(interpreter, '\r') != NULL;
    return kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: its first line names the interpreter \"%s\": %m%s", name,
                      interpreter, has_return ? "; the line ends with a carriage return, as in files of Windows" : "");
}

kprof_status kprof_program_fail(const char *name, int reason)
{
    char *program = reason == ENOENT || reason == EACCES ? kprof_program_find(name) : NULL;
    if (program) {
        kprof_status failed = fail_interpreter(name, program, reason);
        free(program);
        return failed;
    }
    char *nearest = reason == ENOENT ? kprof_program_nearest(name) : NULL;
    errno = reason;
    kprof_status status = nearest
                              ? kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: %m; did you mean %s?", name, nearest)
                              : kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: %m", name);
    free(nearest);
    return status;
}

kprof_status kprof_program_check(const char *name)
{
    struct stat file;
    char *program = kprof_program_find(name);
    int reason = 0;
    if (!program)
        reason = !strchr(name, '/')        ? ENOENT
                 : stat(name, &file) != 0  ? errno
                 : access(name, X_OK) != 0 ? errno
                                           : EACCES;
    free(program);
    return reason ? kprof_program_fail(name, reason) : KPROF_OK;
}

kprof_status kprof_nvdisasm_check(const char *path)
{
    struct stat file;
    if (!path)
        return KPROF_OK;
    if (stat(path, &file) != 0 || access(path, X_OK) != 0)
        return kprof_fail(KPROF_USAGE, "--nvdisasm %s: %s", path, strerror(errno));
    return S_ISREG(file.st_mode) ? KPROF_OK : kprof_fail(KPROF_USAGE, "--nvdisasm %s: it is no program", path);
}
