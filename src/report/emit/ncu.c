/* ncu's words for what kprof calls otherwise. And rooflines taken apart as ncu does, for programs that draw them from
 * its CSV: operations in a cycle, bytes in a cycle, and the clocks by which to multiply both. */
#include "report/emit/ncu.h"
#include "core/nvtx.h"
#include "report/model/number.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <string.h>

bool kprof_ncu_is_unknown(const kprof_emit_metric *metric)
{
    return kprof_ends_with(metric->name, KPROF_SPREAD_SUFFIX);
}

const char *kprof_ncu_base_unit(const kprof_emit_metric *metric)
{
    static const char dimension[] = "launch__block_dim_";
    return strncmp(metric->name, dimension, strlen(dimension)) == 0 ? "block" : metric->unit;
}

char *kprof_ncu_section_name(const char *name)
{
    static const char roofline[] = "Roofline";
    const char *found = strstr(name, roofline);
    const size_t length = found ? (size_t)(found - name) + strlen(roofline) : 0;
    return found ? kprof_strprintf("%.*s Chart%s", (int)length, name, name + length) : kprof_strdup(name);
}

static bool locale_has_commas(void)
{
    const locale_t locale = newlocale(LC_NUMERIC_MASK, "", (locale_t)0);
    if (!locale)
        return false;
    const bool has_commas =
        strcmp(nl_langinfo_l(THOUSEP, locale), ",") == 0 && strcmp(nl_langinfo_l(RADIXCHAR, locale), ".") == 0;
    freelocale(locale);
    return has_commas;
}

size_t kprof_ncu_number(char *out, double value, bool is_fixed)
{
    static int groups = -1; /* asking for each number takes longer than writing it */
    if (groups < 0)
        groups = locale_has_commas();
    return kprof_number_grouped(out, value, (kprof_number_style){.decimals = 2, .fixed = is_fixed, .plain = !groups});
}

/* "range/kernel"; NULL where no range was pushed. */
static char *name_in_range(const kprof_model_launch *launch, const char *kernel)
{
    const char *text = launch->record.nvtx;
    KPROF_AUTO_FREE char *innermost = kprof_strndup(text, kprof_nvtx_innermost_length(text));
    KPROF_AUTO(kprof_nvtx_parsed) ranges;
    kprof_nvtx_parse_text(innermost, &ranges);
    if (ranges.count == 0)
        return NULL;
    const kprof_nvtx_range *last = &ranges.items[ranges.count - 1];
    return last->is_started ? NULL : kprof_strprintf("%s/%s", last->name, kernel);
}

char *kprof_ncu_kernel_name(const kprof_emitter *emitter, const kprof_model_launch *launch, const char *kernel)
{
    const bool renames = emitter->options->nvtx_renames && !kprof_launch_is_graph(&launch->record);
    char *renamed = renames ? name_in_range(launch, kernel) : NULL;
    return renamed ? renamed : kprof_strdup(kernel);
}

const char *kprof_ncu_rule_type(const kprof_found *found)
{
    return !isnan(found->gain_pct) ? "OPT" : found->finding->verdict == KPROF_VERDICT_LIMIT ? "INF" : "WRN";
}

#define SM_CLOCK "sm__cycles_elapsed.avg.per_second"

/* The level of a roof, as kprof labels it, and ncu's labels for it. */
typedef struct level_words {
    const char *level, *bytes, *bytes_name, *clock, *clock_name, *other_clock_name, *traffic;
} level_words;
static const level_words levels[] = {
    {"DRAM", "Theoretical DRAM Bytes Accessible", "dram__bytes.sum.peak_sustained", "DRAM Frequency",
     "dram__cycles_elapsed.avg.per_second", "mcc__cycles_elapsed.avg.per_second", "DRAM Bandwidth"},
    {"L2", "Theoretical L2 Cache Bytes Accessible", "derived__lts__lts2xbar_bytes.sum.peak_sustained",
     "L2 Cache Frequency", "lts__cycles_elapsed.avg.per_second", NULL, "L2 Cache Bandwidth"},
    {"L1", "Theoretical L1/TEX Cache Bytes Accessible", "derived__l1tex__lsu_writeback_bytes.sum.peak_sustained",
     "L1/TEX Cache Frequency", "l1tex__cycles_elapsed.avg.per_second", NULL, "L1 Cache Bandwidth"},
};

/* The work of the ordinary pipes, whose instructions ncu counts by kind. The letter is that of SASS: FADD, DADD, HADD.
 */
typedef struct precision_words {
    const char *id, *title;
    char letter;
    int lanes; /* operations of an addition: HADD adds two numbers */
} precision_words;
static const precision_words precisions[] = {
    {"fp64", "Double Precision", 'D', 1}, {"fp32", "Single Precision", 'F', 1}, {"fp16", "Half Precision", 'H', 2}};

static double value_of(const kprof_ncu_writer *to, const char *name)
{
    return name ? kprof_model_value(to->emitter->launches.model, to->launch->values, name) : NAN;
}

static double clock_of(const kprof_ncu_writer *to, const level_words *level)
{
    const double clock = value_of(to, level->clock_name);
    return isnan(clock) ? value_of(to, level->other_clock_name) : clock;
}

/* `name`: of the metric, for those who want names. A value that was divided by 0 is none. */
static void put(const kprof_ncu_writer *to, kprof_ncu_row row, const char *name)
{
    const kprof_metric_title title = to->emitter->options->metric_title;
    KPROF_AUTO_FREE char *both = title == KPROF_TITLE_BOTH ? kprof_strprintf("%s (%s)", row.label, name) : NULL;
    row.value = isfinite(row.value) ? row.value : NAN;
    row.label = both ? both : title == KPROF_TITLE_NAME ? name : row.label;
    to->put(to->user, &row);
}

static void put_clock(const kprof_ncu_writer *to, const char *item)
{
    put(to, (kprof_ncu_row){item, "SM Frequency", "cycle/second", value_of(to, SM_CLOCK)}, SM_CLOCK);
}

/* The instructions of one kind: "add", "mul" or "fma". A fma does two operations a lane. */
static void put_instructions(const kprof_ncu_writer *to, const char *item, const precision_words *precision,
                             const char *kind)
{
    const int factor = precision->lanes * (strcmp(kind, "fma") == 0 ? 2 : 1);
    const char lower = (char)(precision->letter + 'a' - 'A');
    KPROF_AUTO_FREE char *counter = kprof_strprintf("smsp__sass_thread_inst_executed_op_%c%s_pred_on", lower, kind);
    KPROF_AUTO_FREE char *sum = kprof_strprintf("%s.sum", counter);
    KPROF_AUTO_FREE char *name = factor == 1 ? kprof_strprintf("%s.per_cycle_elapsed", sum)
                                             : kprof_strprintf("derived__%s_x%d", counter, factor);
    KPROF_AUTO_FREE char *label =
        kprof_strprintf(factor == 1 ? "Predicated-On %c%c%c%c Thread Instructions Executed Per Cycle"
                                    : "Predicated-On %c%c%c%c Operations Per Cycle",
                        precision->letter, kind[0] + 'A' - 'a', kind[1] + 'A' - 'a', kind[2] + 'A' - 'a');
    const double cycles = value_of(to, "gpu__time_duration.sum") * value_of(to, SM_CLOCK) / 1e9;
    put(to, (kprof_ncu_row){item, label, factor == 1 ? "inst/cycle" : "inst", factor * value_of(to, sum) / cycles},
        name);
}

static void put_roof(const kprof_ncu_writer *to, const char *item, const precision_words *precision,
                     const kprof_emit_roofline *roofline)
{
    const char letter = precision ? precision->letter : 0, lower = (char)(letter + 'a' - 'A');
    KPROF_AUTO_FREE char *label = precision ? kprof_strprintf("Theoretical Predicated-On %cFMA Operations", letter)
                                            : kprof_strdup("Theoretical Tensor Operations");
    KPROF_AUTO_FREE char *name = precision
                                     ? kprof_strprintf("derived__sm__sass_thread_inst_executed_op_%cfma_pred_on_x%d",
                                                       lower, 2 * precision->lanes)
                                     : kprof_strdup(roofline->peak->name);
    const double in_cycle = roofline->peak->value / value_of(to, SM_CLOCK);
    put(to, (kprof_ncu_row){item, label, precision ? "inst" : "op/cycle", in_cycle}, name);
    put_clock(to, item);
}

static void put_work(const kprof_ncu_writer *to, const char *item, const precision_words *precision,
                     const kprof_emit_roofline *roofline)
{
    static const char *const kinds[] = {"add", "mul", "fma"};
    for (size_t i = 0; precision && i < COUNT_OF(kinds); i++)
        put_instructions(to, item, precision, kinds[i]);
    if (!precision)
        put(to,
            (kprof_ncu_row){item, "Tensor Operations Per Cycle", "op/cycle",
                            roofline->work->value / value_of(to, SM_CLOCK)},
            roofline->work->name);
    put_clock(to, item);
}

/* A roof is called by its precision where it is the only one, and else by its level. Roofs stand before points. */
static void put_level(const kprof_ncu_writer *to, const kprof_emit_roofline *roofline, const kprof_emit_point *point,
                      bool is_roof)
{
    const precision_words *precision = NULL;
    const level_words *words = NULL;
    for (size_t i = 0; i < COUNT_OF(precisions); i++)
        precision = strcmp(precisions[i].id, roofline->id) == 0 ? &precisions[i] : precision;
    for (size_t i = 0; i < COUNT_OF(levels); i++)
        words = strcmp(levels[i].level, point->level) == 0 ? &levels[i] : words;
    if (!words)
        return;
    const char *what = is_roof ? "Roofline" : "Achieved Value";
    const char *of = precision && roofline->point_count == 1 ? precision->title : point->level;
    KPROF_AUTO_FREE char *item =
        precision ? kprof_strprintf("%s %s", of, what) : kprof_strprintf("%s %s (%s)", of, what, roofline->label);
    if (is_roof) {
        put_roof(to, item, precision, roofline);
        put(to, (kprof_ncu_row){item, words->bytes, "byte/cycle", point->peak->value / clock_of(to, words)},
            words->bytes_name);
        put(to, (kprof_ncu_row){item, words->clock, "cycle/second", clock_of(to, words)}, words->clock_name);
    } else {
        put_work(to, item, precision, roofline);
        put(to, (kprof_ncu_row){item, words->traffic, "byte/second", point->traffic->value}, point->traffic->name);
    }
}

void kprof_ncu_rooflines(const kprof_ncu_writer *to, const kprof_emit_roofline *rooflines, size_t count)
{
    for (size_t i = 0; i < count && to->emitter->options->with_tables; i++)
        for (size_t k = 0; k < 2 * rooflines[i].point_count; k++) {
            const bool is_roof = k < rooflines[i].point_count;
            put_level(to, &rooflines[i], &rooflines[i].points[k % rooflines[i].point_count], is_roof);
        }
}

void kprof_ncu_table(kprof_emitter *emitter, const kprof_emit_table *table)
{
    if (emitter->options->with_tables)
        kprof_emit_cells(emitter, table);
}
