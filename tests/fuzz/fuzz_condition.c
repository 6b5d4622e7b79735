/* Conditions of --fail-on, and whether changes meet them. */
#include "fuzz.h"

#include "report/model/change.h"
#include "report/model/units.h"

#include <math.h>
#include <string.h>

static void check(const kprof_condition *condition, double before, double after)
{
    double sides[2][7];
    for (size_t i = 0; i < 7; i++) {
        sides[0][i] = before + (double)i;
        sides[1][i] = after - (double)i;
    }
    for (int class = KPROF_CLASS_EXACT; class <= KPROF_CLASS_NOISY; class ++) {
        kprof_changed_values values = {(kprof_metric_class) class, {{sides[0], 7}, {sides[1], 7}}, true};
        kprof_tolerances tolerances = {KPROF_TIME_TOLERANCE_PCT, KPROF_TRAFFIC_TOLERANCE_PCT};
        kprof_change change;
        kprof_change_of(&values, &tolerances, &change);
        kprof_gate gate = kprof_condition_check(condition, &change, 0.01);
        FUZZ_CHECK(gate >= KPROF_GATE_PASSED && gate <= KPROF_GATE_INCONCLUSIVE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double levels[] = {0, -1, 100, 1e308, -1e308, 5e-324, INFINITY, NAN};
    fuzz_input input = {data, size};
    KPROF_AUTO_FREE char *text = fuzz_take_text(&input, size);
    kprof_condition condition = {0};
    if (kprof_condition_parse(text, &condition) == KPROF_OK) {
        FUZZ_CHECK(condition.metric && condition.metric[0] && isfinite(condition.limit));
        for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
            check(&condition, levels[i], levels[(i * 3 + 1) % (sizeof levels / sizeof *levels)]);
    }
    kprof_condition_free(&condition);
    if (kprof_condition_parse_filter(text, &condition) == KPROF_OK) {
        double factor;
        FUZZ_CHECK(strlen(condition.unit) < sizeof condition.unit && !condition.is_pct);
        FUZZ_CHECK(!kprof_units_parse(condition.unit, "byte/second", &factor) || factor >= 1);
        FUZZ_CHECK(!kprof_condition_is_met(&condition, NAN));
    }
    kprof_condition_free(&condition);
    return 0;
}
