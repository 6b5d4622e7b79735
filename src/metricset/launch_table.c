/* The names that describe a launch without any counter: what the driver and the launch call know, under the names that
 * ncu's users know them by. They stand with the fields of the records; the report computes the values. */
#include "core/fields.h"
#include "metricset/metricset.h"

#include <stdlib.h>

#define VALUE(name, unit, help)      {name, unit, help, false},
#define ON_REQUEST(name, unit, help) {name, unit, help, true},
#define OF_RANGES                    ON_REQUEST
#define KNOWN                        VALUE
#define PLACE                        VALUE
#define NONE()
#define DIMENSIONS(name, unit, before, after)                                                                          \
    {name "_x", unit, before "x" after, false}, {name "_y", unit, before "y" after, false},                            \
        {name "_z", unit, before "z" after, false},

#define FIELD(kind, member, column, since, attribute, ...) KPROF_METRIC_OF(__VA_ARGS__)
#define SPOOL(kind, member, ...)                           KPROF_METRIC_OF(__VA_ARGS__)
#define REPORT(...)
#define COMPUTED(value, ...)                   KPROF_METRIC_OF(__VA_ARGS__)
#define ATTRIBUTE(name, attribute, unit, help) ON_REQUEST("device__attribute_" #name, unit, help)

static kprof_launch_metric rows[] = {
    KPROF_DEVICE_FIELDS(FIELD, SPOOL, REPORT) KPROF_KERNEL_FIELDS(FIELD, SPOOL, REPORT)
        KPROF_LAUNCH_FIELDS(FIELD, SPOOL, REPORT) KPROF_COMPUTED_METRICS(COMPUTED)
            KPROF_DEVICE_ATTRIBUTES(ATTRIBUTE){NULL, NULL, NULL, false},
};
#define ROW_COUNT (COUNT_OF(rows) - 1)

const kprof_launch_metric *const kprof_launch_metrics = rows;

KPROF_BY_TEXT(by_name, kprof_launch_metric, name)

/* Before anybody looks: lists and reports have these names in alphabetical order. */
__attribute__((constructor)) static void sort_rows(void)
{
    qsort(rows, ROW_COUNT, sizeof *rows, by_name);
}

const kprof_launch_metric *kprof_launch_metric_find(const char *name)
{
    return bsearch(&(kprof_launch_metric){.name = name}, rows, ROW_COUNT, sizeof *rows, by_name);
}
