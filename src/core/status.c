/* The tables behind kprof_status: names, messages and exit codes, all from the one list in status.h. */
#include "core/status.h"

#include <stddef.h>

typedef struct status_info {
    const char *name;
    const char *message;
    int exit_code;
} status_info;

static const status_info table[] = {
#define STATUS_ROW(name, exit_code, message) {#name, message, exit_code},
    KPROF_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const status_info unknown = {"?", "?", 100};

static const status_info *find(kprof_status status)
{
    return (size_t)status < KPROF_STATUS_COUNT ? &table[status] : &unknown;
}

const char *kprof_status_name(kprof_status status)
{
    return find(status)->name;
}

const char *kprof_status_message(kprof_status status)
{
    return find(status)->message;
}

int kprof_status_exit_code(kprof_status status)
{
    return find(status)->exit_code;
}
