/* An entry of the cache of plans. Its checksum would refuse nearly every input, so each is also tried as the content of
 * a whole entry, as that of a plan, and as that of answers about a chip. */
#include "fuzz.h"

#include "core/cache.h"
#ifdef KPROF_HAVE_CUDA
#include "host/answers.h"
#include "planner/pack.h"
#endif

#include <dirent.h>
#include <string.h>

static char entry[512];

/* The one file of the folder is the entry; its name is a hash of the key. */
void fuzz_set_up(void)
{
    char folder[256];
    FUZZ_CHECK(setenv("XDG_CACHE_HOME", fuzz_path(""), 1) == 0);
    (void)unsetenv("KPROF_CACHE");
    kprof_strbuf key = {(char *)"key", 3, 4, false};
    kprof_cache_put(&key, "", 0);
    snprintf(folder, sizeof folder, "%s", fuzz_path("kprof"));
    DIR *names = opendir(folder);
    FUZZ_CHECK(names != NULL);
    for (struct dirent *name; (name = readdir(names));) {
        if (name->d_name[0] != '.')
            snprintf(entry, sizeof entry, "%s/%s", folder, name->d_name);
    }
    closedir(names);
    FUZZ_CHECK(entry[0]);
}

static void read_plan(const uint8_t *data, size_t size)
{
#ifdef KPROF_HAVE_CUDA
    kprof_bytes in = {data, size, false};
    kprof_planned planned;
    if (kprof_planned_decode(&in, &planned))
        kprof_planned_free(&planned);
#else
#endif
}

/* The reader can ask for all that the entry has, and write it again. */
static void read_answers(const kprof_strbuf *key)
{
#ifdef KPROF_HAVE_CUDA
    kprof_answers *answers = kprof_answers_new();
    KPROF_AUTO(kprof_strbuf) out = KPROF_STRBUF_INIT;
    KPROF_AUTO(kprof_strlist) list = KPROF_STRLIST_INIT;
    bool is_read = kprof_answers_read(answers, key);
    (void)kprof_answers_get(answers, 'k', "dram__bytes.sum", &list);
    FUZZ_CHECK(is_read || list.count == 0);
    kprof_answers_put(answers, 'c', "sm__cycles_active.avg", &list);
    FUZZ_CHECK(kprof_answers_get(answers, 'c', "sm__cycles_active.avg", &list));
    (void)kprof_answers_write(answers, &out);
    kprof_answers_free(answers);
#else
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kprof_strbuf key = {(char *)"key", 3, 4, false}, out = KPROF_STRBUF_INIT;
    fuzz_write_file(entry, data, size);
    bool found = kprof_cache_get(&key, &out);
    FUZZ_CHECK(!found || out.length < size);
    kprof_strbuf_free(&out);
    kprof_cache_put(&key, data, size);
    found = kprof_cache_get(&key, &out);
    FUZZ_CHECK(found && out.length == size && (size == 0 || memcmp(out.data, data, size) == 0));
    kprof_strbuf_free(&out);
    read_plan(data, size);
    read_answers(&key);
    return 0;
}
