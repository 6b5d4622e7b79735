/* Looks in absolute folders only, to run nothing of the current one, and asks no interpreter for its packages. */
#include "code/nvdisasm.h"

#include "core/clean.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_REASON_BYTES = 200 };

static bool is_program(const char *path)
{
    struct stat file;
    return path[0] == '/' && stat(path, &file) == 0 && S_ISREG(file.st_mode) && access(path, X_OK) == 0;
}

/* Add FOLDER/NAME if it is a program. */
static void add_program(const char *folder, size_t length, const char *name, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strbuf) path = KPROF_STRBUF_INIT;
    kprof_strbuf_append(&path, folder, length);
    kprof_strbuf_puts(&path, name);
    if (is_program(path.data))
        kprof_strlist_add_unique(out, path.data);
}

static void add_from_path(const char *folders, kprof_strlist *out)
{
    for (const char *at = folders; at && *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        if (length > 0)
            add_program(at, length, "/nvdisasm", out);
        at += length;
    }
}

/* Add what packages below PREFIX/lib/python3* brought. Characters of the prefix stand for themselves. */
static void add_from_packages(const char *prefix, kprof_strlist *out)
{
    KPROF_AUTO(kprof_strbuf) pattern = KPROF_STRBUF_INIT;
    for (const char *at = prefix; *at; at++)
        kprof_strbuf_printf(&pattern, strchr("*?[]{}~\\", *at) ? "\\%c" : "%c", *at);
    kprof_strbuf_puts(&pattern, "/lib/python3*/{site,dist}-packages/{triton/backends/nvidia/bin,nvidia/cu13/bin,nvidia/"
                                "cuda_nvdisasm/bin,nvidia/cuda_nvcc/bin}/nvdisasm");
    glob_t found = {0};
    if (glob(pattern.data, GLOB_BRACE, NULL, &found) == GLOB_NOSPACE)
        kprof_memory_note_lack();
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_program(found.gl_pathv[i], strlen(found.gl_pathv[i]), "", out);
    globfree(&found);
}

/* The packages of the Python that PATH has, which an environment of its own may bring: PREFIX/bin/python3. */
static void add_from_python(const char *folders, kprof_strlist *out)
{
    for (const char *at = folders; at && *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        KPROF_AUTO(kprof_strlist) python = KPROF_STRLIST_INIT;
        add_program(at, length, "/python3", &python);
        if (python.count > 0 && length > strlen("/bin") && kprof_begins_with(at + length - strlen("/bin"), "/bin")) {
            KPROF_AUTO_FREE char *prefix = kprof_strndup(at, length - strlen("/bin"));
            add_from_packages(prefix, out);
        }
        at += length;
    }
}

void kprof_nvdisasm_find(kprof_strlist *out)
{
    const char *path = getenv("PATH");
    add_from_path(path, out);
    static const char *const toolkits[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < COUNT_OF(toolkits); i++) {
        const char *folder = secure_getenv(toolkits[i]);
        if (folder)
            add_program(folder, strlen(folder), "/bin/nvdisasm", out);
    }
    add_from_path("/usr/local/cuda/bin:/opt/cuda/bin", out);
    static const char *const environments[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; i < COUNT_OF(environments); i++) {
        const char *folder = secure_getenv(environments[i]);
        if (folder && folder[0] == '/')
            add_from_packages(folder, out);
    }
    add_from_python(path, out);
    const char *home = secure_getenv("HOME");
    KPROF_AUTO_FREE char *user = kprof_strprintf("%s/.local", home ? home : "");
    if (user[0] == '/')
        add_from_packages(user, out);
    add_from_packages("/usr", out);
    add_from_packages("/usr/local", out);
}

/* The first line of what it said, or how it ended. */
static void tell_failure(const kprof_strbuf *errors, int status, kprof_strbuf *reason)
{
    char line[MOST_REASON_BYTES + 1] = "";
    const char *words = errors->data ? errors->data + strspn(errors->data, " \t\n") : "";
    snprintf(line, sizeof line, "%.*s", (int)strcspn(words, "\n"), words);
    KPROF_AUTO_FREE char *clean = kprof_clean_text(line);
    if (clean && *clean)
        kprof_strbuf_puts(reason, clean);
    else if (WIFSIGNALED(status))
        kprof_strbuf_printf(reason, "signal %d ended it", WTERMSIG(status));
    else
        kprof_strbuf_printf(reason, "it ended with status %d", WEXITSTATUS(status));
}

kprof_status kprof_nvdisasm_run(char *const *arguments, const kprof_child_limits *limits, kprof_strbuf *out,
                                kprof_strbuf *reason)
{
    kprof_child child = {.out = *out};
    const char *ended = kprof_child_run(arguments, limits, &child);
    *out = child.out; /* which it has appended to */
    if (ended)
        kprof_strbuf_puts(reason, ended);
    else if (!WIFEXITED(child.status) || WEXITSTATUS(child.status) != 0)
        tell_failure(&child.errors, child.status, reason);
    kprof_strbuf_free(&child.errors);
    return ended ? KPROF_UNSUPPORTED : reason->length == 0 ? KPROF_OK : KPROF_INTERNAL;
}
