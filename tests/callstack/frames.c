/* A module whose functions have other frames in each of its builds, at the same offsets: FRAME_BYTES of them. Each
 * calls back, and does something after that, so that its frame stays. */
#include <alloca.h>
#include <string.h>

typedef void called(void *user);
__attribute__((visibility("default"))) void through_plain(called *back, void *user);
__attribute__((visibility("default"))) void through_sized(called *back, void *user, size_t bytes);
__attribute__((visibility("default"))) void through_aligned(called *back, void *user, size_t bytes);

void through_plain(called *back, void *user)
{
    volatile char kept[FRAME_BYTES];
    kept[0] = 1;
    back(user);
    kept[1] = kept[0];
}

/* The frame's size is known when it runs. */
void through_sized(called *back, void *user, size_t bytes)
{
    volatile char *kept = alloca(bytes + 1);
    kept[bytes] = 1;
    back(user);
    kept[0] = kept[bytes];
}

/* The frame begins where the stack has been aligned. */
void through_aligned(called *back, void *user, size_t bytes)
{
    volatile char aligned[FRAME_BYTES] __attribute__((aligned(128)));
    volatile char *kept = alloca(bytes + 1);
    kept[bytes] = aligned[FRAME_BYTES - 1] = 1;
    back(user);
    aligned[0] = kept[bytes];
}
