/* Holds the facts about chips that CUPTI, which tells their names alone, does not. */
#include "host/host.h"

#include "core/log.h"

#include <strings.h>

#define LEAST_CAPABILITY 75 /* that kprof supports; CUPTI has metrics of older chips, too */

/* NVIDIA publishes these. A chip may be missing: then nothing is known of it. */
static const kprof_chip table[] = {
    {"GV100", 70, "V100, TITAN V"},
    {"GV11B", 72, "Jetson AGX Xavier"},
    {"TU102", 75, "Quadro RTX 6000, RTX 2080 Ti"},
    {"TU104", 75, "T4, RTX 2080"},
    {"TU106", 75, "RTX 2070, RTX 2060"},
    {"TU116", 75, "GTX 1660"},
    {"TU117", 75, "GTX 1650"},
    {"GA100", 80, "A100, A30"},
    {"GA102", 86, "A40, A10, RTX A6000, RTX 3090"},
    {"GA103", 86, "RTX 3080 Ti Laptop"},
    {"GA104", 86, "RTX A4000, RTX 3070"},
    {"GA106", 86, "RTX A2000, RTX 3060"},
    {"GA107", 86, "A16, A2"},
    {"GA10B", 87, "Jetson AGX Orin"},
    {"GH100", 90, "H100, H200, GH200"},
    {"AD102", 89, "L40, L40S, RTX 4090"},
    {"AD103", 89, "RTX 4080"},
    {"AD104", 89, "L4, RTX 4070"},
    {"AD106", 89, "RTX 4060 Ti"},
    {"AD107", 89, "RTX 4060"},
    {"GB100", 100, "B200, GB200"},
    {"GB110", 103, "B300, GB300"},
    {"GB10B", 110, "Jetson AGX Thor"},
    {"GB202", 120, "RTX PRO 6000 Blackwell, RTX 5090"},
    {"GB203", 120, "RTX 5080"},
    {"GB205", 120, "RTX 5070"},
    {"GB206", 120, "RTX 5060 Ti"},
    {"GB207", 120, "RTX 5050"},
    {"GB20B", 121, "GB10, DGX Spark"},
};

const kprof_chip *kprof_chip_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcasecmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

bool kprof_chip_is_too_old(const char *name)
{
    const kprof_chip *found = kprof_chip_find(name);
    return found && found->capability < LEAST_CAPABILITY;
}

kprof_status kprof_chip_check(const char *name)
{
    const kprof_chip *found = kprof_chip_find(name);
    if (!kprof_chip_is_too_old(name))
        return KPROF_OK;
    return kprof_fail(KPROF_UNSUPPORTED,
                      "chip %s has compute capability %d.%d, and kprof supports %d.%d and higher; kprof list chips "
                      "shows those that it supports",
                      found->name, found->capability / 10, found->capability % 10, LEAST_CAPABILITY / 10,
                      LEAST_CAPABILITY % 10);
}

const char *kprof_chip_of_gpu(const char *gpu)
{
    const size_t length = strlen(gpu);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (const char *at = table[i].gpus; *at; at += strspn(at, ", ")) {
            const size_t here = strcspn(at, ",");
            if (here == length && strncasecmp(at, gpu, length) == 0)
                return table[i].name;
            at += here;
        }
    }
    return NULL;
}
