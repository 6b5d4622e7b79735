/* Tells code of the user from that of packages, of Python itself and of the system, by the names of files. */
#include "report/store/own_code.h"

#include "core/filter.h"
#include "report/store/store.h"

#include <ctype.h>
#include <string.h>

/* Is one of these parts, with "|" between them, in the text? */
static bool has_one_of(const char *text, const char *parts)
{
    for (size_t length; *parts; parts += length + (parts[length] == '|')) {
        length = strcspn(parts, "|");
        if (memmem(text, strlen(text), parts, length))
            return true;
    }
    return false;
}

/* Does a part of a path spell a SHA-256 in base32, up to its first dot? PyTorch's Inductor names files so, and Triton
 * the folders of its cache, wherever the user lets them put these. */
static bool is_digest(const char *part)
{
    enum { DIGITS = 52 };
    return strcspn(part, "./") == DIGITS && (strspn(part, "abcdefghijklmnopqrstuvwxyz234567") == DIGITS ||
                                             strspn(part, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == DIGITS);
}

/* Is the file, or the folder that it is in, called so? */
static bool is_in_cache(const char *file)
{
    const char *name = kprof_path_last_part(file), *folder = name > file ? name - 1 : file;
    while (folder > file && folder[-1] != '/')
        folder--;
    return is_digest(name) || is_digest(folder);
}

/* A name in angle brackets is that of no file. Did the user type this code, or pack it with torch.package? */
static bool is_typed(const char *name)
{
    static const char *const begins[] = {
        "<stdin>",   "<python-input-", "<ipython-input-", "<bpython-input-", "<input>", "<console>",
        "<command-", "<cell ",         "<doctest ",       "<torch_package_", NULL};
    return kprof_begins_with_one(name, begins);
}

/* Is the code in this file installed, or made by a framework? */
static bool is_installed(const kprof_frame_place *frame)
{
    static const char any[] =
        "/site-packages/|/torchinductor_|/.triton/cache/|/__triton_launcher|/__autograph_generated_file";
    static const char python[] = "/dist-packages/|/lib/python3.|/lib64/python3.|.zip/|.whl/";
    static const char native[] = "/libcuda|/libcupti|/libnv|/libkprof|/lib64/|/usr/lib/|/libpython|/bin/python|"
                                 "/ld-linux|/lib/x86_64-linux-gnu/|linux-vdso|/lib-dynload/|/lib/aarch64-linux-gnu/";
    if (has_one_of(frame->file, any) || is_in_cache(frame->file))
        return true;
    if (frame->is_native)
        return !*frame->file || has_one_of(frame->file, native);
    return has_one_of(frame->file, python) || (*frame->file == '<' && !is_typed(frame->file));
}

#define STUB "__device_stub_"

/* Is native code of the program the runtime's, which nvcc links into it, NVTX's, which are headers, or nvcc's own,
 * which launches a kernel? */
static bool is_of_runtime(const kprof_frame_place *frames, size_t i)
{
    const kprof_frame_place *frame = &frames[i];
    const bool is_behind_stub = i > 0 && strstr(frames[i - 1].function, STUB);
    KPROF_AUTO_FREE char *base = kprof_name_function_base(frame->function);
    KPROF_AUTO_FREE char *inner = is_behind_stub ? kprof_name_function_base(frames[i - 1].function) : NULL;
    const char *name = base + strspn(base, "_"), *around = "__wrapper" STUB;
    /* The function of a kernel calls its stub, __device_stub__Z5scalePf, or what stands around that. */
    if (inner && strcmp(kprof_begins_with(inner, around) ? inner + strlen(around) : inner, base) == 0)
        return true;
    return frame->is_kernel || strstr(frame->function, STUB) || kprof_begins_with(name, "libcudart_static_") ||
           kprof_begins_with(name, "nvtx") || kprof_begins_with(name, "cudart") ||
           (kprof_begins_with(name, "cuda") && isupper((unsigned char)name[4]));
}

/* Is the frame the outermost one of Python, that of a script which somebody made to begin an installed program, such as
 * env/bin/serve of what is in env/lib, or of the command that multiprocessing starts? */
static bool is_made_script(const kprof_frame_place *frames, size_t i, size_t python)
{
    if (i == 0 || i + 1 != python)
        return false;
    const kprof_frame_place *frame = &frames[i], *called = &frames[i - 1];
    const char *slash = strrchr(frame->file, '/');
    const size_t folder = slash ? (size_t)(slash - frame->file) : 0, root = folder >= 4 ? folder - 4 : 0;
    if (strcmp(frame->function, "<module>") != 0)
        return false;
    if (strcmp(frame->file, "<string>") == 0)
        return strstr(called->file, "/multiprocessing/") != NULL;
    return folder >= 4 && !kprof_ends_with(frame->file, ".py") && strncmp(frame->file + root, "/bin", 4) == 0 &&
           strncmp(called->file, frame->file, root) == 0 && strncmp(called->file + root, "/lib", 4) == 0;
}

/* The name of the package that a file is installed with, and how long it is; 0: it is in none. */
static const char *find_package(const char *file, size_t *length)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    const char *name = NULL;
    for (size_t i = 0; i < 2 && !name; i++) {
        name = strstr(file, folders[i]);
        name = name ? name + strlen(folders[i]) : NULL;
    }
    *length = name ? strcspn(name, "/") : 0;
    return name;
}

/* Does it launch kernels for others, so that its lines tell little? */
static bool is_of_kernels(const char *package, size_t length)
{
    static const char *const names[] = {"torch",  "functorch", "triton", "jax",        "jaxlib",
                                        "numpy",  "cupy",      "numba",  "numba_cuda", "tensorflow",
                                        "pycuda", "cuda",      "nvidia", "tensorrt",   "warp"};
    return KPROF_ANY(i, COUNT_OF(names), strlen(names[i]) == length && strncmp(names[i], package, length) == 0);
}

/* The package of the innermost frame that is in one; `of_others`: in one that launches no kernels for others. */
static const char *find_innermost(const kprof_frame_place *frames, size_t count, bool of_others, size_t *length)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = find_package(frames[i].file, length);
        if (name && !(of_others && is_of_kernels(name, *length)))
            return name;
    }
    return NULL;
}

/* Is this module in a package, and none of NVIDIA's libraries, by which all others launch? */
static bool is_of_package(const char *file)
{
    size_t length;
    const char *name = find_package(file, &length);
    return name && !(length == strlen("nvidia") && strncmp(name, "nvidia", length) == 0);
}

/* Mark the user's frames; the first `python` are of Python. Return whether one of these is marked. A program that makes
 * up code and runs it calls that as `python -c` calls what the user typed: it is the user's only if nothing else is. */
static bool mark_own(const kprof_frame_place *frames, size_t count, size_t python, bool *is_own)
{
    for (size_t i = 0; i < count; i++)
        is_own[i] = !is_installed(&frames[i]) && !(frames[i].is_native && is_of_runtime(frames, i)) &&
                    !is_made_script(frames, i, python);
    const bool has_own = KPROF_ANY(i, python, is_own[i]);
    for (size_t i = 0; i < python && !has_own; i++)
        is_own[i] = strcmp(frames[i].file, "<string>") == 0 && !is_made_script(frames, i, python);
    return KPROF_ANY(i, python, is_own[i]);
}

size_t kprof_own_code_find(const kprof_frame_place *frames, size_t count, bool *is_own, kprof_strbuf *package)
{
    size_t python = 0, home_length = 0, length;
    const char *home = NULL;
    while (python < count && !frames[python].is_native)
        python++;
    const bool has_own = mark_own(frames, count, python, is_own);
    if (!has_own)
        home = find_innermost(frames, python, true, &home_length);
    if (!has_own && !home)
        home = find_innermost(frames, python, false, &home_length);
    for (size_t i = 0; i < python && home; i++) {
        const char *name = find_package(frames[i].file, &length);
        is_own[i] = name && length == home_length && strncmp(name, home, length) == 0;
    }
    if (home)
        kprof_strbuf_append(package, home, home_length);
    const size_t told = python > 0 ? python : count, own = KPROF_FIND(i, told, is_own[i]);
    const size_t installed = KPROF_FIND(i, told, is_of_package(frames[i].file));
    return own < told ? own : python == 0 && installed < told ? installed : 0;
}

static size_t end_of(const char *path, const char *part)
{
    const char *found = strstr(path, part);
    return found ? (size_t)(found - path) + strlen(part) : 0;
}

/* A toolkit may lie anywhere: /usr/local/cuda-13.0, a folder of conda with targets/x86_64-linux, HPC SDK's cuda/12.5.
 */
static kprof_code_home home_of_header(const char *path)
{
    static const char *const always[] = {"/usr/include/", "/usr/lib/", "/usr/lib64/", "/usr/local/include/", NULL};
    static const char cccl[] = "/cccl/|/cccl-src/|/libcudacxx/include/|/include/cooperative_groups|/thrust/thrust/|"
                               "/cub/cub/|/cuda/std/";
    static const char *const toolkits[] = {"/cuda", "/targets/", "/hpc_sdk/"};
    const size_t include = end_of(path, "/include/");
    if (has_one_of(path, cccl) || KPROF_ANY(i, COUNT_OF(always) - 1, kprof_begins_with(path, always[i])))
        return (kprof_code_home){0, true};
    for (size_t i = 0; i < COUNT_OF(toolkits) && include > 0; i++) {
        const size_t end = end_of(path, toolkits[i]);
        if (end == 0 || end >= include)
            continue;
        const bool is_certain = kprof_begins_with(path, "/usr/") || kprof_begins_with(path, "/opt/");
        return (kprof_code_home){is_certain ? 0 : include - strlen("include/"), true};
    }
    return (kprof_code_home){0, false};
}

kprof_code_home kprof_own_code_home(const char *path)
{
    size_t length;
    const char *package = find_package(path, &length);
    return package ? (kprof_code_home){(size_t)(package - path) + length + 1, false} : home_of_header(path);
}

bool kprof_own_code_has(const char *path, kprof_code_home home, const char *kernel, kprof_code_home kernel_home)
{
    if (home.is_header && (home.length == 0 || kernel_home.is_header))
        return false;
    return strncmp(path, kernel, home.length) == 0;
}
