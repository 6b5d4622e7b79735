/* Gives a harness the inputs of files and folders, for builds without libFuzzer: each must end without a fault. */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static size_t played;

static void play_file(const char *path)
{
    size_t size;
    KPROF_AUTO_FREE uint8_t *data = fuzz_read_file(path, &size);
    printf("%s\n", path);
    (void)fflush(stdout); /* the last line tells which input has ended the process */
    (void)LLVMFuzzerTestOneInput(data, size);
    played++;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void play_folder(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_visible, alphasort);
    FUZZ_CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        play_file(file);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        struct stat info;
        FUZZ_CHECK(stat(argv[i], &info) == 0);
        if (S_ISDIR(info.st_mode))
            play_folder(argv[i]);
        else
            play_file(argv[i]);
    }
    printf("%zu inputs\n", played);
    return played > 0 ? 0 : 1;
}
