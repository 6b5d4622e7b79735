/* What kprof itself knows of chips, since CUPTI tells their names alone: their compute capabilities. */
#include "host/host.h"

#include "core/log.h"

#include <strings.h>

#define LEAST_CAPABILITY 75 /* that kprof supports; CUPTI has metrics of older chips, too */

typedef struct chip {
    const char *name;
    int capability; /* 90 is 9.0 */
} chip;

/* NVIDIA publishes the compute capabilities. A chip may be missing: then nothing is known of it. */
static const chip table[] = {
    {"GV100", 70},  {"GV11B", 72},  {"TU102", 75},  {"TU104", 75},  {"TU106", 75},  {"TU116", 75},
    {"TU117", 75},  {"GA100", 80},  {"GA102", 86},  {"GA103", 86},  {"GA104", 86},  {"GA106", 86},
    {"GA107", 86},  {"GA10B", 87},  {"GH100", 90},  {"AD102", 89},  {"AD103", 89},  {"AD104", 89},
    {"AD106", 89},  {"AD107", 89},  {"GB100", 100}, {"GB110", 103}, {"GB10B", 110}, {"GB202", 120},
    {"GB203", 120}, {"GB205", 120}, {"GB206", 120}, {"GB207", 120}, {"GB20B", 121},
};

static const chip *find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcasecmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

bool kprof_chip_is_too_old(const char *name)
{
    const chip *found = find(name);
    return found && found->capability < LEAST_CAPABILITY;
}

kprof_status kprof_chip_check(const char *name)
{
    const chip *found = find(name);
    if (!kprof_chip_is_too_old(name))
        return KPROF_OK;
    return kprof_fail(KPROF_UNSUPPORTED,
                      "chip %s has compute capability %d.%d, and kprof supports %d.%d and higher; kprof list chips "
                      "shows those that it supports",
                      found->name, found->capability / 10, found->capability % 10, LEAST_CAPABILITY / 10,
                      LEAST_CAPABILITY % 10);
}
