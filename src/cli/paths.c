/* Finds the injection library and the set files from the executable's own place, expands placeholders of files
 * to write, and finds the report that a name stands for. */
#include "cli/paths.h"
#include "core/files.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INJECTION_NAME   "libkprof-inject.so"
#define EXTENSION        ".kprof"
#define EXTENSION_OF_NCU ".ncu-rep"

/* The directory of the running executable, without a trailing slash. */
static kprof_status executable_dir(char dir[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", dir, PATH_MAX - 1);
    if (length <= 0)
        return kprof_fail(KPROF_INTERNAL, "cannot read /proc/self/exe: %m; kprof needs /proc to find its own files");
    dir[length] = '\0';
    *strrchr(dir, '/') = '\0';
    return KPROF_OK;
}

/* True for an executable that was not installed but runs where it was built. */
static bool is_build_tree(const char *dir)
{
    size_t length = strlen(KPROF_BUILD_DIR);
    return strncmp(dir, KPROF_BUILD_DIR, length) == 0 && (dir[length] == '/' || dir[length] == '\0');
}

/* The first of "base/candidate" that exists; NULL, and the places in `tried`, when there is none. */
static char *first_existing(const char *base, const char *const *candidates, kprof_strbuf *tried)
{
    for (; *candidates; candidates++) {
        char path[2 * PATH_MAX], resolved[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", (*candidates)[0] == '/' ? "" : base, *candidates);
        if (realpath(path, resolved))
            return kprof_strdup(resolved);
        if (!tried->data || !strstr(tried->data, path)) /* the two places of installed files may be one */
            kprof_strbuf_printf(tried, "%s%s", tried->length ? ", " : "", path);
    }
    return NULL;
}

static kprof_status locate(const char *const *installed, const char *const *built, const char *what, char **out)
{
    char dir[PATH_MAX];
    KPROF_AUTO(kprof_strbuf) tried = KPROF_STRBUF_INIT;
    kprof_status status = executable_dir(dir);
    if (status != KPROF_OK)
        return status;
    *out = first_existing(dir, is_build_tree(dir) ? built : installed, &tried);
    if (!*out)
        status = kprof_fail(KPROF_UNSUPPORTED,
                            "%s was not found; looked for %s; a link to an installed kprof finds what was installed "
                            "with it, and a copy does not",
                            what, tried.data);
    return status;
}

kprof_status kprof_injection_locate(const kprof_options *options, char **out)
{
    static const char *const installed[] = {"../lib/kprof/" INJECTION_NAME, "../" KPROF_LIBDIR "/kprof/" INJECTION_NAME,
                                            NULL};
    static const char *const built[] = {KPROF_BUILD_DIR "/src/inject/" INJECTION_NAME, NULL};
    if (!options->injection_path)
        return locate(installed, built, "the injection library (is this kprof a reporter alone, built without CUDA?)",
                      out);
    char magic[5] = "";
    *out = realpath(options->injection_path, NULL);
    if (!*out || access(*out, R_OK) != 0)
        return kprof_fail(KPROF_USAGE, "--injection-path %s: %m", options->injection_path);
    kprof_read_text(*out, magic, sizeof magic);
    return strcmp(magic, "\177ELF") == 0
               ? KPROF_OK
               : kprof_fail(KPROF_USAGE, "--injection-path %s: it is no library", options->injection_path);
}

static const char *const installed_sets[] = {"../share/kprof/metricsets", "../" KPROF_DATADIR "/kprof/metricsets",
                                             NULL};
static const char *const built_sets[] = {KPROF_METRICSETS_SOURCE, NULL};

bool kprof_catalog_is_there(void)
{
    char dir[PATH_MAX];
    KPROF_AUTO(kprof_strbuf) tried = KPROF_STRBUF_INIT;
    if (executable_dir(dir) != KPROF_OK)
        return false;
    KPROF_AUTO_FREE char *found = first_existing(dir, is_build_tree(dir) ? built_sets : installed_sets, &tried);
    return found != NULL;
}

kprof_status kprof_catalog_folders(const kprof_options *options, kprof_strlist *out)
{
    KPROF_AUTO_FREE char *shipped = NULL;
    kprof_status status = locate(installed_sets, built_sets, "the folder of metric sets", &shipped);
    if (status != KPROF_OK)
        return status;
    kprof_strlist_add(out, shipped);
    kprof_strlist_add_all(out, &options->section_folders);
    return KPROF_OK;
}

kprof_status kprof_catalog_locate(const kprof_options *options, kprof_catalog **out)
{
    KPROF_AUTO(kprof_strlist) folders = KPROF_STRLIST_INIT;
    kprof_status status = kprof_catalog_folders(options, &folders);
    return KPROF_THEN(status, kprof_catalog_load(&folders, out));
}

kprof_status kprof_findings_locate(const kprof_options *options, kprof_finding_source *out)
{
    const bool are_asked_for = options->rules.count > 0 || options->section_folders.count > 0;
    if (!options->apply_rules || (!are_asked_for && !kprof_catalog_is_there()))
        return KPROF_OK;
    kprof_status status = kprof_catalog_locate(options, &out->catalog);
    return KPROF_THEN(status, kprof_catalog_findings(out->catalog, &options->rules, &out->findings));
}

void kprof_findings_free(kprof_finding_source *source)
{
    free(source->findings.items);
    kprof_catalog_free(source->catalog);
}

static void add_library(const char *injection, const char *name, kprof_strbuf *out)
{
    const char *slash = strrchr(injection, '/');
    KPROF_AUTO(kprof_strbuf) path = KPROF_STRBUF_INIT;
    if (slash)
        kprof_strbuf_append(&path, injection, (size_t)(slash - injection) + 1);
    kprof_strbuf_puts(&path, name);
    if (access(path.data, R_OK) == 0 && !strpbrk(path.data, ": $")) /* these are the loader's */
        kprof_strbuf_printf(out, "%s%s", out->length ? ":" : "", path.data);
}

char *kprof_preloaded_find(const char *injection, bool starts_unarmed)
{
    KPROF_AUTO(kprof_strbuf) paths = KPROF_STRBUF_INIT;
    add_library(injection, "libkprof-exec.so", &paths);
    if (starts_unarmed)
        add_library(injection, "libkprof-guests.so", &paths);
    return paths.length > 0 ? kprof_strbuf_take(&paths) : NULL;
}

static kprof_status append_environment(const char *option, const char **at, kprof_strbuf *out)
{
    const char *end = strchr(*at, '}');
    if (**at != '{' || !end || end == *at + 1)
        return kprof_fail(KPROF_USAGE, "%s: %%q needs the name of a variable: %%q{NAME}", option);
    KPROF_AUTO_FREE char *name = kprof_strndup(*at + 1, (size_t)(end - *at - 1));
    const char *value = getenv(name);
    kprof_status status = KPROF_OK;
    if (value)
        kprof_strbuf_puts(out, value);
    else
        status = kprof_fail(KPROF_USAGE,
                            "%s: the environment has no %s, which %%q{%s} asks for; a launcher such as mpirun, "
                            "srun or torchrun sets its variables for what it starts: write kprof behind it, as in "
                            "torchrun --no-python kprof -o ...",
                            option, name, name);
    *at = end + 1;
    return status;
}

/* nsys has %n for what ncu calls %i. */
static bool is_number(char letter)
{
    return letter == 'i' || letter == 'n';
}

/* Expand the placeholder after a '%' and move past it. */
static kprof_status expand_one(const char *option, const char **at, unsigned number, kprof_strbuf *out)
{
    char letter = **at, host[256] = "";
    *at += letter != '\0';
    if (is_number(letter)) {
        kprof_strbuf_printf(out, "%u", number);
        return KPROF_OK;
    }
    switch (letter) {
    case 'h':
        kprof_strbuf_puts(out, gethostname(host, sizeof host - 1) == 0 ? host : "localhost");
        return KPROF_OK;
    case 'p':
        kprof_strbuf_printf(out, "%ld", (long)getpid());
        return KPROF_OK;
    case '%':
        kprof_strbuf_puts(out, "%");
        return KPROF_OK;
    case 'q':
        return append_environment(option, at, out);
    default:
        return kprof_fail(KPROF_USAGE, "%s: %%%.1s is no placeholder; there are %%h %%p %%q{NAME} %%i %%%%", option,
                          letter ? (char[]){letter, '\0'} : "");
    }
}

bool kprof_is_called_ncu(void)
{
    return strcmp(program_invocation_short_name, "ncu") == 0 ||
           strcmp(program_invocation_short_name, "nv-nsight-cu-cli") == 0;
}

bool kprof_has_extension(const char *path)
{
    return kprof_ends_with(path, EXTENSION);
}

size_t kprof_length_without_other_extension(const char *path)
{
    static const char *const extensions[] = {EXTENSION_OF_NCU, ".ncu-repz", ".nsight-cuprof-report", ".nsys-rep",
                                             ".qdrep"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < COUNT_OF(extensions); i++) {
        const size_t kept = length - strlen(extensions[i]);
        if (kept < length && kept > 0 && path[kept - 1] != '/' && strcmp(path + kept, extensions[i]) == 0)
            return kept;
    }
    return length;
}

/* kprof writes no report that ncu or nsys reads. */
static void cut_other_extension(kprof_strbuf *path)
{
    if (path->length > 0)
        path->data[path->length = kprof_length_without_other_extension(path->data)] = '\0';
}

static kprof_status fill(const char *option, const char *pattern, unsigned number, kprof_strbuf *out)
{
    kprof_status status = KPROF_OK;
    while (*pattern && status == KPROF_OK) {
        if (*pattern == '%') {
            pattern++;
            status = expand_one(option, &pattern, number, out);
        } else {
            kprof_strbuf_append(out, pattern++, 1);
        }
    }
    return status;
}

kprof_status kprof_name_expand(const char *option, const char *pattern, unsigned number, char **out)
{
    kprof_strbuf name = KPROF_STRBUF_INIT;
    kprof_status status = fill(option, pattern, number, &name);
    *out = kprof_strbuf_take(&name);
    if (status == KPROF_OK && !**out)
        status = kprof_fail(KPROF_USAGE, "%s %s: that leaves no name of a file", option, pattern);
    if (status != KPROF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

static kprof_status expand_report(const char *option, const char *given, unsigned number, char **out)
{
    kprof_strbuf path = KPROF_STRBUF_INIT;
    kprof_status status = fill(option, given, number, &path);
    const char *slash = path.length > 0 ? strrchr(path.data, '/') : NULL;
    const char *name = slash ? slash + 1 : path.length > 0 ? path.data : "";
    if (status == KPROF_OK && (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
        status = kprof_fail(KPROF_USAGE, "%s %s: that is a folder; add the name of a file", option, given);
    cut_other_extension(&path);
    if (path.length == 0 || !kprof_has_extension(path.data))
        kprof_strbuf_puts(&path, kprof_is_called_ncu() ? EXTENSION_OF_NCU : EXTENSION);
    *out = kprof_strbuf_take(&path);
    if (status != KPROF_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

bool kprof_name_is_numbered(const char *pattern)
{
    while ((pattern = strchr(pattern, '%')) && !is_number(pattern[1]) && pattern[1])
        pattern += 2; /* "%%i" has none */
    return pattern && pattern[1];
}

/* Several runs may look for a free number at once: the one that creates the file has it. */
static kprof_status claim(const char *path, bool *claimed)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    *claimed = fd >= 0;
    if (fd < 0)
        return errno == EEXIST ? KPROF_OK : kprof_fail_to_make(path, "%s: cannot create the report", path);
    close(fd);
    return KPROF_OK;
}

void kprof_export_path_quote(const char *path, kprof_strbuf *out)
{
    for (; *path; path++)
        kprof_strbuf_printf(out, *path == '%' ? "%%%%" : "%c", *path);
}

typedef kprof_status expander(const char *option, const char *pattern, unsigned number, char **out);

static kprof_status expand_to_new(expander *expand, const char *option, const char *pattern, char **out)
{
    struct stat found; /* a link that leads nowhere is no free name */
    for (unsigned number = 1;; number++) {
        kprof_status status = expand(option, pattern, number, out);
        if (status != KPROF_OK || !kprof_name_is_numbered(pattern) || lstat(*out, &found) != 0)
            return status;
        free(*out);
        *out = NULL;
    }
}

kprof_status kprof_name_expand_to_new(const char *option, const char *pattern, char **out)
{
    return expand_to_new(kprof_name_expand, option, pattern, out);
}

kprof_status kprof_export_path_expand(const char *pattern, char **out)
{
    return expand_to_new(expand_report, "--export", pattern, out);
}

kprof_status kprof_export_path_claim(const kprof_options *options, char **out, kprof_create_mode *mode)
{
    bool claimed = false;
    const bool numbered = kprof_name_is_numbered(options->export_path);
    for (;;) {
        kprof_status status = kprof_export_path_expand(options->export_path, out);
        if (status == KPROF_OK && numbered)
            status = claim(*out, &claimed);
        *mode = claimed ? KPROF_CREATE_CLAIMED : options->force_overwrite ? KPROF_CREATE_REPLACE : KPROF_CREATE_NEW;
        if (status == KPROF_OK && claimed == numbered)
            return KPROF_OK;
        free(*out);
        *out = NULL;
        if (status != KPROF_OK)
            return status;
    }
}

bool kprof_is_report(const char *path)
{
    static const char magic[16] = "SQLite format 3"; /* with its NUL */
    enum { LOG_AT = 18, APPLICATION_AT = 68, END = 72 };
    char start[END + 1];
    struct stat file;
    /* Reading a pipe would lose its first bytes. */
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    const size_t size = kprof_read_text(path, start, sizeof start);
    if (size < sizeof magic || memcmp(start, magic, sizeof magic) != 0)
        return false;
    /* SQLite files of others name another application. A report names kprof once its log is written into it. */
    return size < END || start[LOG_AT] == 2 || memcmp(start + APPLICATION_AT, "kprf", 4) == 0;
}

/* Find the report that has this name and an extension; NULL: there is none. */
static char *find_report(const char *base)
{
    const bool is_ncu = kprof_is_called_ncu(); /* then its own are first */
    const char *const extensions[] = {is_ncu ? EXTENSION_OF_NCU : EXTENSION, is_ncu ? EXTENSION : EXTENSION_OF_NCU};
    for (size_t i = 0; i < 2; i++) {
        char *path = kprof_strprintf("%s%s", base, extensions[i]);
        const bool may_be_of_ncu = extensions[i] != extensions[is_ncu];
        if (path && (may_be_of_ncu ? kprof_is_report(path) : access(path, F_OK) == 0))
            return path;
        free(path);
    }
    return NULL;
}

char *kprof_report_path(const char *name)
{
    struct stat file;
    const bool is_there = stat(name, &file) == 0;
    const bool is_other = is_there && !S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode); /* such as a pipe */
    KPROF_AUTO(kprof_strbuf) base = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&base, name);
    if (!is_there)
        cut_other_extension(&base); /* as where it was written */
    char *found = base.length == 0 || is_other || kprof_is_report(name) ? NULL : find_report(base.data);
    return found ? found : kprof_strdup(name);
}

kprof_status kprof_report_open_named(const char *name, kprof_report **out)
{
    KPROF_AUTO_FREE char *path = kprof_report_path(name), *log = kprof_strprintf("%s-wal", path);
    *out = NULL;
    const kprof_status status = kprof_report_open(path, out);
    if (status == KPROF_OK && kprof_report_is_unfinished(path) && access(log, F_OK) == 0) /* else that was told */
        kprof_log(KPROF_LOG_WARNING,
                  "%s: its run goes on, or was cut short: this is what it has stored so far; where it was cut short, "
                  "kprof recover makes a report of the rest, too",
                  path);
    return status;
}
