/* Gives all harnesses quiet messages, a scratch folder in memory, and the parts of an input. */
#include "fuzz.h"

#include "core/clean.h"
#include "core/log.h"

#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[128];
static pid_t owner;

_Noreturn void fuzz_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

static void discard(void *user, kprof_log_level level, const char *message)
{
    FUZZ_CHECK(kprof_text_is_clean(message));
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    return remove(path);
}

static void remove_folder(void)
{
    if (getpid() == owner)
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

__attribute__((weak)) void fuzz_set_up(void) {}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *base = getenv("TMPDIR");
    base = base ? base : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    FUZZ_CHECK((size_t)snprintf(folder, sizeof folder, "%s/kprof-fuzz-XXXXXX", base) < sizeof folder);
    FUZZ_CHECK(mkdtemp(folder) != NULL);
    owner = getpid();
    (void)atexit(remove_folder);
    kprof_log_set_sink(discard, NULL);
    kprof_log_set_level(KPROF_LOG_DEBUG);
    fuzz_set_up();
    return 0;
}

uint8_t fuzz_take_byte(fuzz_input *input)
{
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->data++;
}

char *fuzz_take_text(fuzz_input *input, size_t size)
{
    size = size < input->left ? size : input->left;
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    if (size > 0)
        memcpy(text, input->data, size);
    text[size] = '\0';
    input->data += size;
    input->left -= size;
    return text;
}

char *fuzz_take_line(fuzz_input *input)
{
    if (input->left == 0)
        return NULL;
    const uint8_t *end = memchr(input->data, '\n', input->left);
    char *line = fuzz_take_text(input, end ? (size_t)(end - input->data) : input->left);
    (void)fuzz_take_byte(input);
    return line;
}

const char *fuzz_path(const char *name)
{
    static char path[256];
    FUZZ_CHECK((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path);
    return path;
}

void fuzz_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    FUZZ_CHECK(file != NULL);
    FUZZ_CHECK(size == 0 || fwrite(data, size, 1, file) == 1);
    FUZZ_CHECK(fclose(file) == 0);
}

uint8_t *fuzz_read_file(const char *path, size_t *size)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file != NULL && fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode));
    *size = (size_t)info.st_size;
    uint8_t *data = malloc(*size + 1);
    FUZZ_CHECK(data != NULL && fread(data, 1, *size, file) == *size);
    fclose(file);
    return data;
}

FILE *fuzz_nowhere(void)
{
    static FILE *nowhere;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    FUZZ_CHECK(nowhere != NULL);
    return nowhere;
}
