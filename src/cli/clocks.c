/* Reads the CSV that nvidia-smi prints for the fields that are asked for. */
#include "cli/clocks.h"

#include "cli/program.h"
#include "core/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LIMIT_NS   INT64_C(3000000000)
#define MOST_BYTES ((size_t)64 << 10)

enum { PERSISTENCE, CLOCK, MOST_CLOCK, FIRST_REASON, FIELDS = FIRST_REASON + 4 };

#define QUERY                                                                                                          \
    "--query-gpu=persistence_mode,clocks.sm,clocks.max.sm,clocks_event_reasons.hw_thermal_slowdown,"                   \
    "clocks_event_reasons.sw_thermal_slowdown,clocks_event_reasons.hw_power_brake_slowdown,"                           \
    "clocks_event_reasons.hw_slowdown"

/* In the order of the query. */
static const char *const reasons[] = {"heat", "heat", "its power supply", "heat or its power supply"};

/* "A, B" -> its fields; false when they are others than were asked for. */
static bool split(char *line, char *fields[FIELDS])
{
    size_t count = 0;
    for (char *at = line, *comma; at && count < FIELDS; at = comma ? comma + 1 : NULL) {
        comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        fields[count++] = at + strspn(at, " ");
    }
    return count == FIELDS;
}

static void take_gpu(char *fields[FIELDS], int gpu, kprof_clocks *out)
{
    for (int i = 0; i < FIELDS - FIRST_REASON && out->slowed < 0; i++)
        if (strcmp(fields[FIRST_REASON + i], "Active") == 0) {
            out->slowed = gpu;
            out->slowed_by = reasons[i];
        }
    if (out->not_persistent < 0 && strcmp(fields[PERSISTENCE], "Disabled") == 0)
        out->not_persistent = gpu;
    if (gpu > 0)
        return;
    out->mhz = strtol(fields[CLOCK], NULL, 10);
    out->most_mhz = strtol(fields[MOST_CLOCK], NULL, 10);
}

void kprof_clocks_parse(const char *text, kprof_clocks *out)
{
    char line[512], *fields[FIELDS];
    int gpu = 0;
    *out = (kprof_clocks){.slowed = -1, .not_persistent = -1};
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        if (length < sizeof line && split(line, fields))
            take_gpu(fields, gpu++, out);
    }
    out->is_known = gpu > 0;
    if (!out->is_known)
        snprintf(out->why_not, sizeof out->why_not, "nvidia-smi does not tell them");
}

void kprof_clocks_look(kprof_clocks *out)
{
    char *program = kprof_program_find("nvidia-smi"), query[] = QUERY, format[] = "--format=csv,noheader,nounits";
    char *arguments[] = {program, query, format, NULL};
    KPROF_AUTO(kprof_child) child = {0};
    const kprof_child_limits limits = {.most_bytes = MOST_BYTES, .limit_ns = LIMIT_NS};
    const char *failed = program ? kprof_child_run(arguments, &limits, &child) : "there is no nvidia-smi in PATH";
    const bool is_well = !failed && WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0 && child.out.data;
    kprof_clocks_parse(is_well ? child.out.data : "", out);
    if (failed)
        snprintf(out->why_not, sizeof out->why_not, "%s%s", program ? "nvidia-smi: " : "", failed);
    free(program);
}
