/* A library that tells of having been loaded: it creates the file that a variable names. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void sing(void)
{
    const char *path = getenv("KPROF_TEST_CANARY");
    int file = path ? open(path, O_CREAT | O_WRONLY, 0600) : -1;
    if (file >= 0)
        close(file);
}
