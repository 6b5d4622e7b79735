/* Finds a program as the shell does, and tells why one cannot be started. */
#include "cli/program.h"
#include "cli/commands.h"
#include "cli/paths.h"
#include "core/files.h"
#include "core/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    for (char *dir; !found && (dir = strsep(&rest, ":"));) {
        KPROF_AUTO(kprof_strbuf) file = KPROF_STRBUF_INIT;
        kprof_strbuf_printf(&file, "%s/%s", *dir ? dir : ".", name);
        if (is_program(file.data))
            found = kprof_strbuf_take(&file);
    }
    free(copy);
    return found;
}

/* Return what the user may mean by a name that no program has. Caller frees. */
static char *make_hint(const char *name, int reason)
{
    struct stat file;
    const bool is_there = stat(name, &file) == 0;
    if (kprof_word_is_among("nsys|profile|launch|analyze|recipe", name, strlen(name)))
        return kprof_strdup("; write kprof trace for nsys profile, and kprof stats for nsys stats");
    if (kprof_word_is_among("start|stop|cancel|sessions", name, strlen(name)))
        return kprof_strdup("; kprof ctl start, stop and status are about runs with --armed no");
    if (strcmp(name, "ncu") == 0)
        return kprof_strdup("; kprof takes the options of ncu itself: leave this word out");
    if (is_there && S_ISREG(file.st_mode) && kprof_ends_with(name, ".py"))
        return kprof_strprintf("; did you mean kprof python %s?", name);
    if (is_there && reason == EACCES)
        return kprof_strdup(S_ISDIR(file.st_mode) ? "; it is a folder" : "; it is not executable: see chmod +x");
    return kprof_strdup(reason == ENOENT && !strchr(name, '/') ? "; no folder of PATH has it" : "");
}

kprof_status kprof_program_fail(const char *name, int reason)
{
    KPROF_AUTO_FREE char *program = reason == ENOENT || reason == EACCES ? kprof_program_find(name) : NULL;
    char line[256] = "";
    if (program)
        kprof_read_text(program, line, sizeof line);
    char *interpreter = kprof_begins_with(line, "#!") ? line + 2 + strspn(line + 2, " \t") : line + strlen(line);
    interpreter[strcspn(interpreter, " \t\n")] = '\0';
    errno = reason;
    if (program && interpreter[0] == '\0') /* it names none, or cannot be read */
        return kprof_fail(KPROF_NO_APPLICATION,
                          "cannot start %s: %m: it is there, but not the loader that it was linked for", name);
    if (program)
        return kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: its first line names the interpreter \"%s\": %m%s",
                          name, interpreter,
                          strchr(interpreter, '\r') ? "; the line ends with a carriage return, as in files of Windows"
                                                    : "");
    if (reason == ENOENT && !strchr(name, '/') && is_program(name))
        return kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: it is not in PATH; did you mean ./%s?", name, name);
    KPROF_AUTO_FREE char *hint = make_hint(name, reason);
    errno = reason; /* not why there is no program of that name here */
    return kprof_fail(KPROF_NO_APPLICATION, "cannot start %s: %m%s", *name ? name : "\"\"", hint);
}

/* A set or a section may be what the user means. *option: the option that takes it, or NULL. */
static kprof_status look_among_sets(const kprof_options *options, const char *name, const char **option)
{
    kprof_catalog *catalog = NULL;
    kprof_status status = kprof_catalog_locate(options, &catalog);
    if (status == KPROF_OK)
        *option = kprof_catalog_set_id(catalog, name)       ? "set"
                  : kprof_catalog_section_id(catalog, name) ? "section"
                                                            : NULL;
    kprof_catalog_free(catalog);
    return status;
}

kprof_status kprof_program_word_check(const kprof_options *options)
{
    const char *name = options->application[0], *before = options->application[-1], *option = NULL;
    if (kprof_ends_with(before, ",") || kprof_ends_with(name, ",") || (strstr(name, "__") && !strchr(name, '/')))
        return kprof_fail(KPROF_NO_APPLICATION, "there is no program %s; lists have no blanks: --metrics A,B", name);
    kprof_status status = look_among_sets(options, name, &option);
    if (option)
        return kprof_fail(KPROF_NO_APPLICATION, "there is no program %s; did you mean --%s %s?", name, option, name);
    const char *meant = kprof_command_nearest(name);
    if (meant)
        return kprof_fail(KPROF_NO_APPLICATION, "there is no program %s; did you mean kprof %s?", name, meant);
    if (status != KPROF_OK || !kprof_ends_with(name, ".ncu-rep"))
        return status;
    kprof_report *report = NULL; /* opening it tells why not, as kprof report does */
    status = kprof_report_open(name, &report);
    (void)!kprof_report_close(report);
    KPROF_THEN(status, kprof_fail(KPROF_NO_APPLICATION, "%s is no program; did you mean kprof report %s?", name, name));
    return status;
}

kprof_status kprof_program_check(const char *name)
{
    struct stat file;
    KPROF_AUTO_FREE char *program = kprof_program_find(name);
    int reason = 0;
    if (!program)
        reason = !strchr(name, '/')        ? ENOENT
                 : stat(name, &file) != 0  ? errno
                 : access(name, X_OK) != 0 ? errno
                                           : EACCES;
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
