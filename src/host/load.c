/* Finds libcupti where CUDA toolkits put it, and fills tables of function pointers. A path is tried before the loader's
 * own search, because a program may have loaded another copy of the same name, and only absolute paths are tried. */
#include "host/load.h"

#include "core/log.h"
#include "host/answers.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUPTI_NAME  "libcupti.so.13"
#define NVPERF_NAME "libnvperf_host.so"

/* One library: what opening it gave, kept for every later call. */
typedef struct library {
    const char *name;
    const char *const *functions; /* in the order of the table; ends with NULL */
    void *table;                  /* of function pointers alone */
    pthread_once_t once;
    kprof_status status;
    char *error;           /* why status is not OK */
    char *path;            /* as the loader has it */
    kprof_strbuf identity; /* of its file */
    bool is_identified;
    atomic_bool is_loaded;
} library;

#define NAME(name) #name,
static const char *const cupti_functions[] = {KPROF_CUPTI_FUNCTIONS(NAME) NULL};
static const char *const nvperf_functions[] = {KPROF_NVPERF_FUNCTIONS(NAME) NULL};
static kprof_cupti_api cupti_api;
static kprof_nvperf_api nvperf_api;
static library cupti = {CUPTI_NAME, cupti_functions, &cupti_api, PTHREAD_ONCE_INIT, .status = KPROF_UNSUPPORTED};
static library nvperf = {NVPERF_NAME, nvperf_functions, &nvperf_api, PTHREAD_ONCE_INIT, .status = KPROF_UNSUPPORTED};

static bool shares; /* the copy that the application has loaded may serve */

/* Below a toolkit's folder; the two `targets` are x86-64 and Arm servers. */
static const char *const subfolders[] = {
    "lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib", "extras/CUPTI/lib",
};

static void list_places(kprof_strlist *places)
{
    const char *const roots[] = {KPROF_CUDA_ROOT,   secure_getenv("CUDA_HOME"), secure_getenv("CUDA_PATH"),
                                 "/usr/local/cuda", "/usr/local/cuda-13",       "/opt/cuda"};
    const size_t root_count = COUNT_OF(roots), count = COUNT_OF(subfolders);
    for (size_t i = 0; i < root_count * count; i++) {
        const char *root = roots[i / count];
        if (!root || root[0] != '/')
            continue; /* never below the current directory */
        (void)kprof_strlist_take_unique(places, kprof_strprintf("%s/%s", root, subfolders[i % count]));
    }
}

/* Open folder/name; with `folder` NULL let the loader search: LD_LIBRARY_PATH, its cache, or a copy that is loaded
 * already. Append each path to `tried`, with the reason if a file exists and does not open. */
static void *try_open(const char *folder, const char *name, kprof_strbuf *tried)
{
    KPROF_AUTO_FREE char *path = kprof_strprintf("%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    bool is_there = path && (!folder || access(path, F_OK) == 0);
    void *handle = is_there ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!handle && !folder)
        kprof_strbuf_printf(tried, "%sand the loader's own path (%s)", tried->length ? ", " : "", dlerror());
    else if (folder)
        kprof_strbuf_printf(tried, "%s%s", tried->length ? ", " : "", is_there && !handle ? dlerror() : folder);
    return handle;
}

static uint32_t version_of(void *handle)
{
    CUptiResult (*get_version)(uint32_t *);
    uint32_t version = 0;
    void *function = dlsym(handle, "cuptiGetVersion");
    memcpy(&get_version, &function, sizeof get_version);
    return function && get_version(&version) == CUPTI_SUCCESS ? version : 0;
}

static void *open_cupti(kprof_strbuf *tried)
{
    KPROF_AUTO(kprof_strlist) places = KPROF_STRLIST_INIT;
    list_places(&places);
    void *handle = NULL;
    for (size_t i = 0; i < places.count && !handle; i++)
        handle = try_open(places.items[i], CUPTI_NAME, tried);
    if (!handle)
        return try_open(NULL, CUPTI_NAME, tried);
    /* The application's copy, if it may stand for this one: configurations were made with that version. */
    void *loaded = shares ? dlopen(CUPTI_NAME, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    const uint32_t version = loaded ? version_of(handle) : 0;
    return version && version == version_of(loaded) ? loaded : handle;
}

static void *open_nvperf(kprof_strbuf *tried)
{
    const char *slash = cupti.path ? strrchr(cupti.path, '/') : NULL;
    KPROF_AUTO_FREE char *folder =
        slash && cupti.path[0] == '/' ? kprof_strndup(cupti.path, (size_t)(slash - cupti.path)) : NULL;
    void *handle = folder ? try_open(folder, NVPERF_NAME, tried) : NULL;
    return handle ? handle : try_open(NULL, NVPERF_NAME, tried);
}

/* Append what tells this file from another one in its place. False when it does not exist. */
static bool identify_file(const char *path, kprof_strbuf *out)
{
    struct stat info;
    if (!path || stat(path, &info) != 0)
        return false;
    kprof_strbuf_printf(out, "%s %ld %ld.%09ld %ld.%09ld\n", path, info.st_size, info.st_mtim.tv_sec,
                        info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    return !out->failed;
}

/* Fill the table of an opened library. The copy through bytes is how POSIX hands out function pointers. */
static void bind_library(library *lib, void *handle, kprof_strbuf *message)
{
    Dl_info info;
    for (size_t i = 0; lib->functions[i]; i++) {
        void *function = dlsym(handle, lib->functions[i]);
        if (!function) {
            const char *reason = dlerror();
            kprof_strbuf_printf(message, "the library lacks %s (%s); kprof needs the CUPTI of CUDA 13.0 or later",
                                lib->functions[i], reason ? reason : "no reason given");
            return;
        }
        memcpy((char *)lib->table + i * sizeof(function), &function, sizeof(function));
        if (i == 0 && dladdr(function, &info) && info.dli_fname)
            lib->path = realpath(info.dli_fname, NULL);
    }
    lib->is_identified = identify_file(lib->path, &lib->identity);
    lib->status = KPROF_OK;
    atomic_store(&lib->is_loaded, true);
}

static void load_library(library *lib)
{
    KPROF_AUTO(kprof_strbuf) tried = KPROF_STRBUF_INIT, message = KPROF_STRBUF_INIT;
    void *handle = lib == &cupti ? open_cupti(&tried) : open_nvperf(&tried);
    if (handle)
        bind_library(lib, handle, &message);
    else
        kprof_strbuf_printf(&message, "%s is not found; looked in %s; install CUPTI of CUDA 13 or set CUDA_HOME",
                            lib->name, tried.data ? tried.data : "no folder");
    lib->error = kprof_strbuf_take(&message);
    if (!lib->error)
        lib->status = KPROF_NO_MEMORY;
}

static void load_cupti(void)
{
    load_library(&cupti);
}

static void load_nvperf(void)
{
    load_library(&nvperf);
}

static kprof_status get_library(library *lib, void (*load)(void))
{
    pthread_once(&lib->once, load);
    if (lib->status == KPROF_OK)
        return KPROF_OK;
    return kprof_fail(lib->status, "%s", lib->error ? lib->error : kprof_status_message(lib->status));
}

kprof_status kprof_cupti_load(const kprof_cupti_api **out)
{
    *out = &cupti_api;
    return get_library(&cupti, load_cupti);
}

kprof_status kprof_nvperf_load(const kprof_nvperf_api **out)
{
    const kprof_cupti_api *unused;
    kprof_status status = kprof_cupti_load(&unused); /* says where to look */
    *out = &nvperf_api;
    return KPROF_THEN(status, get_library(&nvperf, load_nvperf));
}

void kprof_cupti_share(void)
{
    shares = true;
}

void kprof_libraries_preload(void)
{
    KPROF_AUTO(kprof_strbuf) tried = KPROF_STRBUF_INIT;
    pthread_once(&cupti.once, load_cupti); /* says where to look */
    (void)open_nvperf(&tried);
}

static bool find_file(const char *folder, const char *name, char *real_path)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof(path) && realpath(path, real_path);
}

/* Append both files that are there to be opened. False where only the loader can tell which it finds. */
static bool foresee_libraries(kprof_strbuf *out)
{
    char path[PATH_MAX], beside[PATH_MAX];
    KPROF_AUTO(kprof_strlist) places = KPROF_STRLIST_INIT;
    list_places(&places);
    const bool found =
        KPROF_ANY(i, places.count, find_file(places.items[i], CUPTI_NAME, path)) && identify_file(path, out);
    if (found)
        *strrchr(path, '/') = '\0';
    return found && find_file(path, NVPERF_NAME, beside) && identify_file(beside, out);
}

/* If the first file found does not open, the library in use is another one, and kept answers are not found. */
bool kprof_cupti_identify(kprof_strbuf *out)
{
    const kprof_nvperf_api *unused;
    KPROF_AUTO(kprof_strbuf) files = KPROF_STRBUF_INIT;
    bool identified = !atomic_load(&cupti.is_loaded) && foresee_libraries(&files);
    if (!identified && kprof_nvperf_load(&unused) == KPROF_OK && cupti.is_identified && nvperf.is_identified) {
        kprof_strbuf_clear(&files);
        kprof_strbuf_printf(&files, "%s%s", cupti.identity.data, nvperf.identity.data);
        identified = true;
    }
    if (identified)
        kprof_strbuf_printf(out, "CUPTI %d\n%s", CUPTI_API_VERSION, files.data);
    return identified && !out->failed;
}
