/* Finds chips without needing a GPU. */
#include "cli/chips.h"
#include "cli/plans.h"
#include "core/log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CHIP "GH100"

static void discard(void *user, kprof_log_level level, const char *message)
{
    (void)user;
    (void)level;
    (void)message;
}

/* The chips of the GPUs that are present; that there is none is no error here. */
static void add_present_chips(uint64_t device_mask, kprof_chips *out)
{
    kprof_probe probe = {0};
    kprof_log_set_sink(discard, NULL);
    if (kprof_probe_devices(&probe) != KPROF_OK || kprof_probe_chips(&probe, device_mask, &out->names) != KPROF_OK)
        kprof_log(KPROF_LOG_DEBUG, "no chip found");
    out->device_bytes = kprof_probe_memory(&probe, device_mask);
    kprof_log_set_sink(NULL, NULL);
    kprof_probe_free(&probe);
}

/* Chips have capitals; ncu's users write them small. */
static bool add_chip(const char *name, kprof_strlist *chips)
{
    char *chip = strdup(name);
    for (char *c = chip; c && *c; c++)
        *c = (char)(toupper)((unsigned char)*c);
    bool added = chip && kprof_strlist_add_unique(chips, chip);
    free(chip);
    return added;
}

kprof_status kprof_chips_named(const kprof_options *options, kprof_chips *out)
{
    bool added = true;
    *out = (kprof_chips){0};
    for (size_t i = 0; i < options->chips.count && added; i++)
        added = add_chip(options->chips.items[i], &out->names);
    if (out->names.count == 0)
        add_present_chips(options->filter.device_mask, out);
    if (out->names.count == 0) {
        kprof_log(KPROF_LOG_INFO, "no GPU found that kprof can use: taking %s; --chips names others", DEFAULT_CHIP);
        added = kprof_strlist_add(&out->names, DEFAULT_CHIP);
    }
    return added ? KPROF_OK : kprof_fail(KPROF_NO_MEMORY, "out of memory");
}
