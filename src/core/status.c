/* The table behind kprof_status: names, messages and exit codes, all from the one list in status.h. */
#include "core/status.h"

typedef struct status_info {
    const char *name;
    const char *message;
    int exit_code;
} status_info;

static const status_info *find(kprof_status status)
{
#define STATUS_ROW(name, exit_code, message) {#name, message, exit_code},
    static const status_info table[] = {KPROF_STATUS_MAP(STATUS_ROW){"?", "?", 100}};
#undef STATUS_ROW
    return &table[(unsigned)status < KPROF_STATUS_COUNT ? status : KPROF_STATUS_COUNT];
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
