/* What was measured of instructions: sums by line, numbers, the texts of lines, and reports that somebody has changed.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "core/clean.h"
#include "core/log.h"
#include "fixture.h"
#include "log_capture.h"
#include "report/model/places.h"
#include "report/model/source_text.h"
#include "report/model/subset.h"
#include "test.h"

#define SOURCE_FOLDER KPROF_TESTS_DIR "/fixtures/source"

static char path[512], folder[512];
static log_capture said;

static void copy_fixture(void)
{
    size_t size;
    KPROF_AUTO_FREE char *content = fixture_read(SOURCE_FOLDER "/source.kprof", &size);
    FILE *file = fopen(path, "wb");
    assert_true(content && file);
    assert_int_equal(fwrite(content, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void execute(const char *sql)
{
    sqlite3 *db = NULL;
    char *error = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int set_up(void **state)
{
    snprintf(path, sizeof path, "%s", fixture_path("code.kprof"));
    snprintf(folder, sizeof folder, "%s", fixture_path("sources"));
    copy_fixture();
    assert_int_equal(mkdir(folder, 0700), 0);
    log_capture_start(&said);
    return 0;
}

static int tear_down(void **state)
{
    char command[600];
    unlink(path);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

/* A report with the instructions of one of its kernels. */
typedef struct opened {
    kprof_report *report;
    kprof_model model;
    const kprof_code_profiles *profiles;
    kprof_profiled_code code; /* of the profiles */
} opened;

static kprof_status open_code(size_t number, opened *out)
{
    *out = (opened){0};
    kprof_status status = kprof_report_open(path, &out->report);
    if (status == KPROF_OK)
        status = kprof_model_load(out->report, &out->model);
    if (status != KPROF_OK)
        return status;
    out->profiles = kprof_code_profiles_load(out->report, &out->model);
    if (out->report->status != KPROF_OK)
        return out->report->status;
    assert_true(number < out->profiles->count);
    const kprof_loaded_code *loaded = kprof_code_load(out->profiles, &out->profiles->items[number]);
    if (loaded)
        out->code = loaded->code;
    return out->report->status;
}

static void close_code(opened *of)
{
    kprof_model_free(&of->model);
    if (of->report)
        assert_int_equal(kprof_report_close(of->report), KPROF_OK);
}

enum { VECTOR_ADD, SOFTMAX, INCR, STRIPPED };

static double number(const opened *of, const double *values, kprof_code_number which)
{
    return kprof_profiled_number(&of->code, values, which);
}

TEST(test_numbers_of_an_instruction)
{
    opened of;
    double pct;
    char name[48];
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    assert_int_equal(of.code.instruction_count, 16);
    const double *load = kprof_profiled_values(&of.code, 4), *store = kprof_profiled_values(&of.code, 9);
    assert_string_equal(of.code.instructions[4].text, "LDG.E R4, desc[UR4][R2.64]");
    assert_string_equal(of.code.instructions[4].space, "Global");
    assert_int_equal(of.code.instructions[4].access_bits, 32);
    assert_float_equal(number(&of, load, KPROF_NUMBER_SAMPLES), 712, 0);
    assert_float_equal(number(&of, load, KPROF_NUMBER_EXCESS), 28672, 0);
    assert_float_equal(number(&of, load, KPROF_NUMBER_CONFLICTS), 0, 0);
    assert_float_equal(number(&of, store, KPROF_NUMBER_CONFLICTS), 7168, 0);
    assert_float_equal(number(&of, store, KPROF_NUMBER_WAYS), 8, 0);
    assert_float_equal(number(&of, of.code.totals, KPROF_NUMBER_ATOMICS), 1024, 0);
    assert_float_equal(number(&of, kprof_profiled_values(&of.code, 3), KPROF_NUMBER_ACTIVE), 20, 0);
    const kprof_profiled_reason *reason = kprof_profiled_stall(&of.code, load, 1, &pct);
    kprof_profiled_reason_name(reason, name, sizeof name);
    assert_string_equal(name, "Wait");
    assert_float_equal(pct, 100 * 12 / 712.0, 1e-9);
    assert_null(kprof_profiled_stall(&of.code, load, 2, &pct));
    assert_int_equal(of.code.instructions[5].wait_count, 1);
    assert_int_equal(of.code.waits[of.code.instructions[5].first_wait], 4);
    close_code(&of);
}

/* Nobody counted sectors, and took samples: that is not 0. */
TEST(test_what_was_not_measured)
{
    opened of;
    double pct;
    execute("DELETE FROM instruction_value WHERE metric_id IN (SELECT id FROM metric WHERE name LIKE '%sectors%' OR "
            "name LIKE '%pcsamp%'); DELETE FROM code_profile_metric WHERE metric_id IN (SELECT id FROM metric WHERE "
            "name LIKE '%sectors%' OR name LIKE '%pcsamp%'); UPDATE code_profile SET sampled=0");
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    assert_true(number(&of, of.code.totals, KPROF_NUMBER_SECTORS) != number(&of, of.code.totals, KPROF_NUMBER_SECTORS));
    assert_true(number(&of, of.code.totals, KPROF_NUMBER_EXCESS) != number(&of, of.code.totals, KPROF_NUMBER_EXCESS));
    assert_true(number(&of, of.code.totals, KPROF_NUMBER_SAMPLES) != number(&of, of.code.totals, KPROF_NUMBER_SAMPLES));
    assert_true(number(&of, of.code.totals, KPROF_NUMBER_INSTRUCTIONS) > 0);
    assert_null(kprof_profiled_stall(&of.code, of.code.totals, 0, &pct));
    close_code(&of);
}

/* Each instruction belongs to one line, so that lines add up to all, by inner and by outer lines. */
TEST(test_lines_add_up)
{
    for (int outer = 0; outer < 2; outer++) {
        opened of;
        kprof_profiled_lines lines;
        double samples = 0;
        size_t members = 0;
        assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
        kprof_profiled_lines_make(&of.code, outer ? KPROF_FRAME_OUTERMOST : KPROF_FRAME_OWN, &lines);
        for (size_t i = 0; i < lines.count; i++) {
            samples += number(&of, lines.items[i].values, KPROF_NUMBER_SAMPLES);
            members += lines.items[i].count;
        }
        assert_float_equal(samples, number(&of, of.code.totals, KPROF_NUMBER_SAMPLES), 0);
        assert_int_equal(members, of.code.instruction_count);
        assert_int_equal(lines.count, outer ? 7 : 8);
        for (size_t i = 0; i < lines.count && outer; i++)
            assert_string_equal(lines.items[i].file->name, "softmax.py");
        close_code(&of);
    }
}

TEST(test_hottest_lines)
{
    opened of;
    kprof_hot_lines hot;
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    kprof_hot_lines_find(of.profiles, &of.profiles->items[SOFTMAX], &hot);
    assert_int_equal(of.report->status, KPROF_OK);
    assert_int_equal(hot.count, KPROF_HOT_LINES_MAX);
    assert_string_equal(hot.items[0].place, "softmax.py:7");
    assert_string_equal(hot.items[0].stall, "Long Scoreboard");
    assert_string_equal(hot.items[0].caller, ""); /* inlined, from the kernel's own file */
    assert_string_equal(hot.items[1].place, "standard.py:170");
    assert_string_equal(hot.items[1].caller, "softmax.py:16");
    assert_true(hot.items[0].pct > hot.items[1].pct && hot.items[1].pct > hot.items[2].pct);
    kprof_hot_lines_find(of.profiles, &of.profiles->items[STRIPPED], &hot);
    assert_int_equal(of.report->status, KPROF_OK);
    assert_string_equal(hot.items[0].place, "0x00c0");
    assert_null(hot.items[0].file);
    close_code(&of);
}

/* As on a GH100, whose counter CUPTI declines. */
TEST(test_doubles_are_told_by_their_texts)
{
    opened of;
    const char *const counted = "metric_id IN (SELECT id FROM metric WHERE name LIKE '%op_fp64_pred_on')";
    char sql[256];
    for (int i = 0; i < 2; i++) {
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s", i ? "instruction_value" : "code_profile_metric", counted);
        execute(sql);
    }
    execute("UPDATE code_instruction SET text='@P0  DFMA R4, R4, R6, R8' WHERE function_id=2 AND offset=0x50;"
            "UPDATE code_instruction SET text='DEPBAR.LE SB0, 0x0' WHERE function_id=2 AND offset=0x60");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const double *values = kprof_profiled_values(&of.code, 5), *others = kprof_profiled_values(&of.code, 6);
    const double threads = kprof_profiled_number(&of.code, values, KPROF_NUMBER_THREADS_ON);
    assert_true(threads > 0);
    assert_true(kprof_profiled_number(&of.code, values, KPROF_NUMBER_FP64) == threads);
    assert_true(kprof_profiled_number(&of.code, others, KPROF_NUMBER_FP64) == 0);
    assert_true(kprof_profiled_number(&of.code, of.code.totals, KPROF_NUMBER_FP64) == threads);
    close_code(&of);
    execute("UPDATE code_instruction SET text=NULL WHERE function_id=2");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    assert_true(isnan(kprof_profiled_number(&of.code, of.code.totals, KPROF_NUMBER_FP64)));
    close_code(&of);
}

/* What kprof makes of the third instruction of the kernel, in sum. */
static double made_of(const char *text, kprof_code_counter counter)
{
    opened of;
    char sql[256];
    snprintf(sql, sizeof sql, "UPDATE code_instruction SET text='%s' WHERE function_id=2 AND offset=0x20", text);
    execute(sql);
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const size_t column = of.code.counters[counter];
    assert_true(column != SIZE_MAX);
    const double own = kprof_profiled_values(&of.code, 2)[column];
    close_code(&of);
    return own;
}

static void count_third(const char *metric, int value)
{
    char sql[320];
    snprintf(sql, sizeof sql,
             "INSERT OR REPLACE INTO instruction_value SELECT id, 2, 0x20, (SELECT id FROM metric WHERE name="
             "'smsp__sass_%s'), %d FROM code_profile WHERE id=%d",
             metric, value, SOFTMAX + 1);
    execute(sql);
}

TEST(test_numbers_that_findings_read)
{
    count_third("thread_inst_executed", 64);
    count_third("thread_inst_executed_pred_on", 24);
    count_third("inst_executed_op_atom", 2);
    count_third("l1tex_tags_mem_global", 5);
    assert_true(made_of("F2F.F64.F32 R4, R6", KPROF_COUNTER_FP64_CONVERTED) == 24);
    assert_true(made_of("@!P1 F2F.F32.F64 R4, R6", KPROF_COUNTER_FP64_CONVERTED) == 24);
    assert_true(made_of("F2F.F16.F32 R4, R6", KPROF_COUNTER_FP64_CONVERTED) == 0);
    assert_true(made_of("@P0 FADD R4, R4, R6", KPROF_COUNTER_FP32) == 24);
    assert_true(made_of("FFMA R4, R4, R6, R4", KPROF_COUNTER_FP32) == 24);
    assert_true(made_of("DADD R4, R4, R6", KPROF_COUNTER_FP32) == 0);
    assert_true(made_of("@P0 FADD R4, R4, R6", KPROF_COUNTER_PREDICATED_OFF) == 40);
    assert_true(made_of("@P0 BRA 0x10", KPROF_COUNTER_PREDICATED_OFF) == 0);
    assert_true(made_of("ATOMG.E.ADD R4, [R2], R6", KPROF_COUNTER_ATOMIC_TAGS) == 5);
    count_third("inst_executed", 6);
    assert_true(made_of("@!P0 LDC.64 R2, c[0x3][R0+0x8]", KPROF_COUNTER_CONSTANTS) == 6);
    assert_true(made_of("LDC R11, c[0x0][RZ]", KPROF_COUNTER_CONSTANTS) == 0);
    assert_true(made_of("LDC R11, c[0x0][UR4]", KPROF_COUNTER_CONSTANTS) == 0);
    assert_true(made_of("LDC R11, c[0x0][0x28]", KPROF_COUNTER_CONSTANTS) == 0);
    assert_true(made_of("LDCU.64 UR4, c[0x3][R0]", KPROF_COUNTER_CONSTANTS) == 0);
    execute("INSERT OR REPLACE INTO instruction_value SELECT id, 2, 0x20, (SELECT id FROM metric WHERE name="
            "'smsp__pcsamp_warps_issue_stalled_lg_throttle'), 900 FROM code_profile");
    assert_true(made_of("ATOMG.E.ADD R4, [R2], R6", KPROF_COUNTER_ATOMIC_SAMPLES) == 960);
    count_third("l1tex_tags_mem_global", 0);
    assert_true(made_of("ATOMS.ADD R4, [R2], R6", KPROF_COUNTER_ATOMIC_SAMPLES) == 0);
    assert_true(made_of("ATOMS.ADD R4, [R2], R6", KPROF_COUNTER_ATOMIC_TAGS) == 0);
    count_third("l1tex_pipe_lsu_wavefronts_mem_shared", 9);
    count_third("l1tex_pipe_lsu_wavefronts_mem_shared_ideal", 2);
    assert_true(made_of("ATOMS.ADD R4, [R2], R6", KPROF_COUNTER_ATOMIC_CONFLICTS) == 7);
    execute("UPDATE metric SET name='other__' || name WHERE name LIKE 'smsp__pcsamp%'");
    assert_true(isnan(made_of("FADD R4, R4, R6", KPROF_COUNTER_ATOMIC_SAMPLES))); /* none were taken */
    count_third("inst_executed_op_atom", 0);
    assert_true(made_of("LDS R4, [R2]", KPROF_COUNTER_ATOMIC_CONFLICTS) == 0);
    count_third("l1tex_tags_mem_global", 5);
    assert_true(made_of("LDG.E R4, [R2]", KPROF_COUNTER_ATOMIC_TAGS) == 0);
}

/* What the softmax makes needlessly is all of one load: what other lines do is not in these sums. */
TEST(test_sums_that_findings_read)
{
    opened of;
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    KPROF_AUTO_FREE double *measured = calloc(of.model.metric_count, sizeof *measured);
    kprof_place_finder *finder = kprof_place_finder_new(of.profiles);
    const kprof_place_values sums = kprof_places_values(finder, of.code.profile, measured);
    const double *load = kprof_profiled_values(&of.code, 4);
    assert_float_equal(sums.counters[KPROF_COUNTER_WORST_EXCESS], number(&of, load, KPROF_NUMBER_EXCESS), 0);
    assert_float_equal(sums.counters[KPROF_COUNTER_WORST_SECTORS], number(&of, load, KPROF_NUMBER_SECTORS), 0);
    assert_float_equal(sums.counters[KPROF_COUNTER_SAMPLES], number(&of, of.code.totals, KPROF_NUMBER_SAMPLES), 0);
    assert_float_equal(sums.counters[KPROF_COUNTER_SAMPLES_UNISSUED],
                       number(&of, of.code.totals, KPROF_NUMBER_UNISSUED), 0);
    close_code(&of);
}

/* Names of generated files are long: what is cut of one is not the line, and no character is cut apart. */
TEST(test_places_of_files_with_long_names)
{
    opened of;
    kprof_hot_lines hot;
    execute("UPDATE code_file SET path='/tmp/a'||replace(hex(zeroblob(30)), '00', char(0x4e16, 0x754c))||id||'.py'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    kprof_hot_lines_find(of.profiles, &of.profiles->items[SOFTMAX], &hot);
    assert_int_equal(of.report->status, KPROF_OK);
    assert_non_null(strstr(hot.items[0].place, ":7"));
    assert_non_null(strstr(hot.items[1].place, ":170"));
    assert_non_null(strstr(hot.items[1].caller, ":16"));
    assert_true(kprof_text_is_clean(hot.items[1].place) && kprof_text_is_clean(hot.items[1].caller));
    close_code(&of);
}

/* An instruction behind the barrier at 0xa0, or this one itself. */
static size_t cause_with(const char *text, uint64_t offset)
{
    opened of;
    char sql[160];
    const char *const behind = "UPDATE code_instruction SET text=%s WHERE function_id=2 AND offset=0xb0";
    snprintf(sql, sizeof sql, behind, text);
    execute(sql);
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const size_t cause = kprof_stall_cause(&of.code, kprof_stall_cause_opcode("barrier", 7), offset / 16);
    const uint64_t found = of.code.instructions[cause].offset;
    close_code(&of);
    return found;
}

TEST(test_numbers_have_meanings)
{
    for (size_t i = 0; i < KPROF_NUMBER_COUNT; i++)
        assert_non_null(kprof_instruction_label_help(kprof_code_numbers[i].label));
    assert_null(kprof_instruction_label_help("Numbers"));
}

TEST(test_causes_of_waits)
{
    assert_string_equal(kprof_stall_cause_opcode("sleeping", 8), "NANOSLEEP");
    assert_null(kprof_stall_cause_opcode("wait", 4));
    assert_null(kprof_stall_cause_opcode("barrier", 6));
    assert_int_equal(cause_with("'LDS R6, [R3]'", 0xa0), 0xa0);
    assert_int_equal(cause_with("'LDS R6, [R3]'", 0xc0), 0xa0);
    assert_int_equal(cause_with("'@!P0 BRA 0x10'", 0xb0), 0xa0); /* the wait is told at the branch */
    assert_int_equal(cause_with("'@!P0 BRA 0x10'", 0xc0), 0xc0);
    assert_int_equal(cause_with("'@P0  BRA 0x10'", 0xc0), 0xc0);
    assert_int_equal(cause_with("'@!UP0 BAR.RED.OR 0x0'", 0xc0), 0xb0);
    assert_int_equal(cause_with("'BAR.ARV 0x0, 0x20'", 0xc0), 0xa0); /* it arrives, and does not wait */
    assert_int_equal(cause_with("'BARRIER'", 0xc0), 0xa0);
    assert_int_equal(cause_with("NULL", 0xc0), 0xc0);
    assert_int_equal(cause_with("'LDS R6, [R3]'", 0x90), 0x90); /* none before it, up to a branch */
    assert_int_equal(cause_with("'LDS R6, [R3]'", 0x00), 0x00);
}

typedef struct made_producer {
    uint64_t offset;
    const char *text, *space;
    bool is_alone; /* the load at 0x40 is none */
} made_producer;

/* What FADD at 0x50 waits for with samples of this reason; 0xffff: nothing. */
static uint64_t awaited_with(const char *reason, const made_producer *other)
{
    opened of;
    char sql[800];
    snprintf(sql, sizeof sql,
             "INSERT INTO metric SELECT max(id)+1, 'smsp__pcsamp_warps_issue_stalled_gmma', '', '', 'instruction' FROM "
             "metric; INSERT INTO code_profile_metric SELECT 2, max(id) FROM metric; DELETE FROM code_wait WHERE "
             "function_id=2 AND offset=0x50 AND %d; INSERT INTO code_wait "
             "VALUES(2, 0x50, "
             "%llu); UPDATE code_instruction SET text='%s', space=%s WHERE function_id=2 AND offset=%llu; UPDATE "
             "instruction_value SET value=0 WHERE function_id=2 AND offset=0x50; INSERT OR REPLACE INTO "
             "instruction_value SELECT 2, 2, 0x50, id, 9 FROM metric WHERE name='smsp__pcsamp_warps_issue_stalled_%s'",
             other->is_alone, (unsigned long long)other->offset, other->text, other->space,
             (unsigned long long)other->offset, reason);
    copy_fixture();
    execute(sql);
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const size_t found = kprof_profiled_awaited(&of.code, 5);
    if (strcmp(reason, "gmma") != 0)
        assert_int_equal(kprof_profiled_producer(&of.code, 5), found);
    const uint64_t offset = found == SIZE_MAX ? 0xffff : of.code.instructions[found].offset;
    close_code(&of);
    return offset;
}

TEST(test_values_that_are_waited_for_by_reason)
{
    static const struct {
        made_producer other;
        uint64_t by_long, by_short, by_matrix; /* what is waited for */
    } cases[] = {{{0x30, "S2R R4, SR_TID.X", "NULL", false}, 0x40, 0x30, 0xffff},
                 {{0x70, "S2R R4, SR_TID.X", "NULL", false}, 0x40, 0x70, 0xffff},
                 {{0x90, "STS [R3], R5", "'Shared'", false}, 0x40, 0x90, 0xffff},
                 {{0x90, "LDL R5, [R1]", "'Local'", false}, 0x90, 0xffff, 0xffff},
                 {{0x90, "LDS R6, [R3]", "'Shared'", true}, 0xffff, 0x90, 0xffff},
                 {{0x70, "UTMALDG.2D [UR8], [UR10]", "NULL", true}, 0x70, 0x70, 0xffff},
                 {{0x70, "@P1 HGMMA.64x8x16.F32 R24, gdesc[UR4], R24", "NULL", false}, 0x40, 0xffff, 0x70}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(awaited_with("long_scoreboard", &cases[i].other), cases[i].by_long);
        assert_int_equal(awaited_with("short_scoreboard", &cases[i].other), cases[i].by_short);
        assert_int_equal(awaited_with("gmma", &cases[i].other), cases[i].by_matrix);
    }
}

/* Of a reason only the stalls may have been collected: samples of all warps are none then. */
TEST(test_reason_with_stalls_alone)
{
    opened of;
    execute("INSERT INTO code_wait VALUES(2, 0x50, 0x30); UPDATE code_instruction SET text='LDS R6, [R3]', "
            "space='Shared' WHERE function_id=2 AND offset=0x30; INSERT OR REPLACE INTO instruction_value SELECT 2, 2, "
            "0x40, id, 1000 FROM metric WHERE kind='instruction'; UPDATE metric SET name='smsp__pcsamp_other' WHERE "
            "name='smsp__pcsamp_warps_issue_stalled_long_scoreboard'; INSERT OR REPLACE INTO instruction_value SELECT "
            "2, 2, 0x50, id, 9 FROM metric WHERE name='smsp__pcsamp_warps_issue_stalled_short_scoreboard'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    assert_int_equal(of.code.instructions[kprof_profiled_producer(&of.code, 5)].offset, 0x30);
    close_code(&of);
}

TEST(test_hot_line_of_a_wait_that_is_told_later)
{
    opened of;
    kprof_hot_lines hot;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    execute("UPDATE instruction_value SET value=0 WHERE function_id=2 AND offset=0xc0");
    execute("INSERT OR REPLACE INTO instruction_value SELECT profile_id, 2, 0xc0, metric_id, 100000 FROM "
            "instruction_value JOIN metric ON metric.id=metric_id WHERE function_id=2 AND offset=0xa0 AND "
            "name='smsp__pcsamp_warps_issue_stalled_barrier'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    kprof_hot_lines_find(of.profiles, &of.profiles->items[SOFTMAX], &hot);
    assert_int_equal(of.report->status, KPROF_OK);
    assert_string_equal(hot.items[0].place, "softmax.py:17");
    assert_string_equal(hot.items[0].caused_at, "standard.py:170");
    kprof_hot_line_describe(&hot.items[0], &text);
    assert_non_null(strstr(text.data, "of the samples (Barrier at standard.py:170)"));
    assert_string_equal(hot.items[1].caused_at, "");
    close_code(&of);
}

/* Files of the same last part are told apart by their paths. */
TEST(test_names_of_files)
{
    opened of;
    execute("UPDATE code_file SET path='/other/softmax.py' WHERE path LIKE '%standard.py'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    assert_string_equal(of.profiles->files[0].name, "vectorAdd.cu");
    assert_string_equal(of.profiles->files[1].name, "/home/user/project/softmax.py");
    assert_string_equal(of.profiles->files[2].name, "/other/softmax.py");
    close_code(&of);
    execute("UPDATE code_file SET path='/'||replace(hex(zeroblob(999)), '00', char(0x4e16))||id||'.py'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const char *name = of.profiles->files[1].name; /* that of no file */
    assert_true(strlen(name) <= NAME_MAX && kprof_ends_with(name, "2.py") && kprof_text_is_clean(name));
    close_code(&of);
}

/* Rows that kprof would not write. */
TEST(test_damaged_rows)
{
    static const char *const changes[] = {
        "UPDATE code_profile SET kernel_id=99",
        "UPDATE code_profile SET process_id=0",
        "UPDATE code_profile SET device_id=-1",
        "UPDATE launch_code_profile SET profile_id=77",
        "UPDATE code_profile_metric SET metric_id=metric_id+100000",
        "INSERT INTO instruction_value VALUES(1, 1, 0, 1, 5)",
        "UPDATE instruction_value SET offset=-16 WHERE offset=0",
        "UPDATE instruction_value SET value=9e999 WHERE offset=0",
        "UPDATE instruction_value SET value=1e300 WHERE offset=0",
        "UPDATE instruction_value SET value=-1 WHERE offset=0",
        "UPDATE instruction_value SET offset=9000000000000000000 WHERE offset=0",
        "UPDATE instruction_value SET function_id=900 WHERE function_id=1",
        "UPDATE code_line SET file_id=42",
        "UPDATE code_line SET line=-1",
        "UPDATE code_line SET line=4294967296",
        "UPDATE code_line SET depth=depth+100",
        "UPDATE code_line SET depth=7 WHERE depth=1",
        "UPDATE code_instruction SET offset=-offset",
        "DELETE FROM code_function",
        "DELETE FROM code",
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        opened of;
        sqlite3 *db = NULL;
        copy_fixture();
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        (void)sqlite3_exec(db, changes[i], NULL, NULL, NULL);
        const bool has_changed = sqlite3_total_changes(db) > 0;
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        kprof_status status = has_changed ? open_code(SOFTMAX, &of) : KPROF_BAD_REPORT;
        if (has_changed && status == KPROF_OK) { /* only another kernel is concerned */
            close_code(&of);
            status = open_code(VECTOR_ADD, &of);
        }
        if (has_changed)
            close_code(&of);
        if (!has_changed || status != KPROF_BAD_REPORT)
            fail_msg("%s: %s", changes[i], has_changed ? "is taken" : "changes nothing");
    }
}

/* Texts of any kind reach no terminal as they are. */
TEST(test_texts_are_cleaned)
{
    opened of;
    execute("UPDATE code_file SET path='/a/'||char(27)||'[2J'||id; UPDATE code_instruction SET text=char(7)||text;"
            "UPDATE code_line SET function=char(27)||function; UPDATE code_profile SET reason=char(155)||'x'");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    for (int i = 0; i < KPROF_FORMAT_COUNT; i++) {
        const kprof_print_options options = {.page = KPROF_PAGE_SOURCE, .format = (kprof_format)i};
        kprof_status status;
        char *text = fixture_print(of.report, &options, &status);
        assert_int_equal(status, KPROF_OK);
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
            assert_true(*c >= 0x20 || *c == '\n' || (*c == '\t' && i == KPROF_FORMAT_TSV));
        free(text);
    }
    close_code(&of);
}

/* Launches have no values of these metrics, so that their pages leave them out; ncu's raw page has their sums. */
TEST(test_pages_of_launches)
{
    static const kprof_format formats[] = {KPROF_FORMAT_TEXT, KPROF_FORMAT_CSV, KPROF_FORMAT_CSV_WIDE,
                                           KPROF_FORMAT_CSV_NCU, KPROF_FORMAT_JSON};
    char *words[] = {(char *)"smsp__sass_sectors_mem_global"};
    const kprof_strlist none = KPROF_STRLIST_INIT, metrics = {words, 1, 1};
    const kprof_subset part = {.sections = &none, .sections_of_set = &none, .metrics = &metrics};
    opened of;
    kprof_status status;
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const kprof_print_options options = {.page = KPROF_PAGE_RAW, .format = formats[i]};
        char *text = fixture_print(of.report, &options, &status);
        assert_int_equal(status, KPROF_OK);
        assert_int_equal(strstr(text, "smsp__pcsamp") != NULL, formats[i] == KPROF_FORMAT_CSV_NCU);
        assert_null(strstr(text, words[0]));
        free(text);
    }
    const kprof_print_options options = {.page = KPROF_PAGE_RAW, .part = &part};
    free(fixture_print(of.report, &options, &status));
    assert_int_equal(status, KPROF_UNKNOWN_NAME);
    assert_non_null(strstr(said.last, "--page source shows"));
    close_code(&of);
}

/* Rows that are sorted by what none has are not shown, which a note tells. */
TEST(test_rows_without_heat)
{
    opened of;
    kprof_status status;
    static char vector_add[] = "vectorAdd";
    const kprof_filter_spec filter = {.kernel = vector_add};
    const kprof_print_options options = {
        .page = KPROF_PAGE_SOURCE, .top = 3, .sort = KPROF_SORT_CONFLICTS, .filter = &filter};
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    KPROF_AUTO_FREE char *text = fixture_print(of.report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(text, "that they are sorted by is 0 in all of them: Bank conflicts"));
    close_code(&of);
}

/* A kernel calls another function: its instructions follow, under addresses of their own. */
TEST(test_two_functions)
{
    execute("INSERT INTO instruction_value SELECT 1, 3, offset, metric_id, value FROM instruction_value WHERE "
            "profile_id=3");
    opened of;
    kprof_status status;
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    assert_int_equal(of.code.function_count, 2);
    assert_int_equal(of.code.functions[0].base, 0);
    assert_int_equal(of.code.functions[1].base, 0x200);
    static char vector_add[] = "vectorAdd";
    const kprof_filter_spec filter = {.kernel = vector_add};
    const kprof_print_options options = {.page = KPROF_PAGE_SOURCE,
                                         .format = KPROF_FORMAT_CSV_NCU,
                                         .source_view = KPROF_VIEW_SASS,
                                         .all_rows = true,
                                         .filter = &filter};
    KPROF_AUTO_FREE char *text = fixture_print(of.report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    const char *last = strstr(text, "\n\"0x1f0\","), *next = strstr(text, "\n\"0x200\","),
               *far = strstr(text, "\n\"0x210\",");
    assert_true(last && next > last && far > next);
    close_code(&of);
}

/* A profile of thousands of reasons, of which each would be compared with each. */
TEST(test_too_many_reasons)
{
    opened of;
    execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<3000) "
            "INSERT INTO metric SELECT NULL, 'smsp__pcsamp_warps_issue_stalled_r'||i, '', '', 'instruction' FROM n;"
            "INSERT INTO code_profile_metric SELECT 1, id FROM metric WHERE name LIKE '%stalled_r%'");
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_BAD_REPORT);
    close_code(&of);
}

/* A small file cannot ask for minutes of work by naming one function again and again. */
static void test_too_many_profiles(void **state)
{
    execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) "
            "INSERT OR IGNORE INTO code_instruction SELECT 1, 16*i, NULL, NULL, NULL, NULL FROM n;"
            "WITH RECURSIVE n(i) AS (SELECT 5 UNION ALL SELECT i+1 FROM n WHERE i<1000) "
            "INSERT INTO code_profile SELECT i, 1, 1, 1, i+100, 1, 0, 0, 0, '' FROM n;"
            "INSERT INTO code_profile_metric SELECT id, (SELECT max(id) FROM metric) FROM code_profile WHERE id>4;"
            "INSERT INTO instruction_value SELECT id, 1, 0, (SELECT max(id) FROM metric), 1 FROM code_profile WHERE "
            "id>4");
    opened of;
    assert_int_equal(open_code(INCR, &of), KPROF_OK);
    size_t read = 0;
    while (4 + read < of.profiles->count && kprof_code_load(of.profiles, &of.profiles->items[4 + read]))
        read++;
    assert_int_equal(of.report->status, KPROF_BAD_REPORT);
    assert_true(read > 50 && read < 900);
    assert_non_null(strstr(said.last, "choose fewer launches"));
    close_code(&of);
}

static void write_text(const char *name, const char *text)
{
    char file_path[700];
    snprintf(file_path, sizeof file_path, "%s/%s", folder, name);
    FILE *file = fopen(file_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static kprof_source_state find_text(const opened *of, const kprof_source_places *places, char **line)
{
    kprof_source_text text;
    kprof_source_text_find(of->profiles, &of->profiles->files[0], places, &text);
    const kprof_source_state state = text.state;
    *line = kprof_source_text_line(&text, 8);
    assert_null(kprof_source_text_line(&text, 0));
    assert_null(kprof_source_text_line(&text, 17));
    kprof_source_text_free(&text);
    return state;
}

static void expect_text(kprof_source_state expected, const kprof_source_places *places)
{
    opened of;
    char *line;
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    assert_int_equal(find_text(&of, places, &line), expected);
    const bool has_text = expected < KPROF_SOURCE_CHANGED;
    if (has_text)
        assert_string_equal(line, "        c[i] = a[i] + b[i];");
    else
        assert_null(line);
    free(line);
    close_code(&of);
}

TEST(test_texts_of_files)
{
    char *folders[] = {folder}, file_path[700], target[] = SOURCE_FOLDER "/vectorAdd.cu", *files[] = {target};
    const kprof_strlist folder_list = {folders, 1, 1}, file_list = {files, 1, 1};
    const kprof_source_places nowhere = {NULL, NULL, NULL}, below = {&folder_list, NULL, NULL},
                              named = {NULL, &file_list, NULL};
    expect_text(KPROF_SOURCE_MISSING, &nowhere);
    expect_text(KPROF_SOURCE_MISSING, &below);
    expect_text(KPROF_SOURCE_FOUND, &named);
    snprintf(file_path, sizeof file_path, "%s/vectorAdd.cu", folder);
    assert_int_equal(symlink(target, file_path), 0); /* is followed only where the user names it */
    expect_text(KPROF_SOURCE_LINK, &below);
    char *links[] = {file_path};
    const kprof_strlist link_list = {links, 1, 1};
    expect_text(KPROF_SOURCE_FOUND, &(kprof_source_places){NULL, &link_list, NULL});
    assert_int_equal(unlink(file_path), 0);
    assert_int_equal(mkfifo(file_path, 0600), 0); /* nobody writes into it */
    const int opens = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(opens, file_path, IN_OPEN) >= 0);
    expect_text(KPROF_SOURCE_MISSING, &below);
    char event[sizeof(struct inotify_event) + NAME_MAX + 1];
    assert_int_equal(read(opens, event, sizeof event), -1); /* opening is an act: of a pipe it lets a writer go on */
    close(opens);
    assert_int_equal(unlink(file_path), 0);
    write_text("vectorAdd.cu", "another one\n");
    expect_text(KPROF_SOURCE_CHANGED, &below);
    KPROF_AUTO_FREE char *text = fixture_read(target, NULL);
    snprintf(file_path, sizeof file_path, "%s/deep", folder);
    assert_int_equal(mkdir(file_path, 0700), 0);
    write_text("deep/vectorAdd.cu", text);
    expect_text(KPROF_SOURCE_FOUND, &below);
    text[strlen(text) - 3] = '?'; /* of the same size */
    write_text("deep/vectorAdd.cu", text);
    expect_text(KPROF_SOURCE_CHANGED, &below);
}

/* Of files of one name in several folders comes first the one whose folders are called as where it was compiled. */
TEST(test_files_of_one_name)
{
    char *folders[] = {folder}, place[700];
    const kprof_strlist folder_list = {folders, 1, 1};
    kprof_source_index index = {.is_built = false};
    const kprof_source_places below = {&folder_list, NULL, &index};
    static const char *const names[] = {"a", "z", "z/fast", "fast", "m"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(place, sizeof place, "%s/%s", folder, names[i]);
        assert_int_equal(mkdir(place, 0700), 0);
        char text[64], name[64];
        snprintf(text, sizeof text, "%s\n", names[i]);
        snprintf(name, sizeof name, "%s/util.cuh", names[i]);
        write_text(name, text);
    }
    static const char *const wanted[][2] = {{"/home/u/p/m/util.cuh", "m"},
                                            {"/home/u/p/z/fast/util.cuh", "z/fast"},
                                            {"/home/u/p/q/fast/util.cuh", NULL},
                                            {"/home/u/p/z/util.cuh", "z"},
                                            {"util.cuh", NULL},
                                            {"/home/u/p/fast/util.cuh/", NULL}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char sql[256];
        snprintf(sql, sizeof sql, "UPDATE code_file SET path='%s', hash=NULL, bytes=NULL WHERE id=1", wanted[i][0]);
        execute(sql);
        opened of;
        kprof_source_text text;
        assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
        kprof_source_text_find(of.profiles, &of.profiles->files[0], &below, &text);
        char *line = kprof_source_text_line(&text, 1);
        if (wanted[i][1])
            assert_string_equal(line, wanted[i][1]);
        assert_int_equal(line != NULL, !kprof_ends_with(wanted[i][0], "/"));
        free(line);
        kprof_source_text_free(&text);
        close_code(&of);
    }
    kprof_source_index_free(&index);
    assert_int_equal(kprof_source_same_end("/x/a/u.h", "/y/a/u.h"), 2);
    assert_int_equal(kprof_source_same_end("u.h", "/y/a/u.h"), 1);
    assert_int_equal(kprof_source_same_end("a/u.h", "/y/a/u.h"), 2);
    assert_int_equal(kprof_source_same_end("/y/au.h", "/y/a/u.h"), 0);
    assert_int_equal(kprof_source_same_end("", "/y/a/u.h"), 0);
    assert_int_equal(kprof_source_same_end("/y//a///u.h", "/z/a/u.h"), 2);
    assert_int_equal(kprof_source_same_end("//u.h", "/u.h"), 1);
}

/* Take the first file: its line of at most 15 bytes. */
static bool take_line(void *line, int in, const char *name)
{
    size_t size = 0;
    const int file = kprof_source_open(in, name, 15, &size);
    assert_true(file >= 0 && read(file, line, size) == (ssize_t)size);
    ((char *)line)[size] = '\0';
    close(file);
    return false;
}

/* A folder is the same with slashes behind its name. */
TEST(test_slashes_behind_a_folder)
{
    char folders[2][700], *given[] = {folders[0], folders[1]}, line[16] = "";
    const kprof_strlist list = {given, 2, 2};
    for (size_t i = 0; i < 2; i++) {
        snprintf(folders[i], sizeof folders[i], "%s/%c", folder, "az"[i]);
        assert_int_equal(mkdir(folders[i], 0700), 0);
        write_text(i ? "z/util.cuh" : "a/util.cuh", i ? "z" : "a");
    }
    strcat(folders[1], "//");
    kprof_source_search(&(kprof_source_places){&list, NULL, NULL}, "/home/u/p/z/util.cuh", take_line, line);
    assert_string_equal(line, "z");
}

/* Folders count as files do: nobody else bounds what kprof remembers of them. */
TEST(test_too_many_folders)
{
    char *given[] = {folder}, place[700];
    const kprof_strlist list = {given, 1, 1};
    kprof_source_index index = {.looked_at = KPROF_SOURCE_ENTRIES_MAX - 10};
    for (int i = 0; i < 20; i++) {
        snprintf(place, sizeof place, "%s/%d", folder, i);
        assert_int_equal(mkdir(place, 0700), 0);
    }
    kprof_source_search(&(kprof_source_places){&list, NULL, &index}, "util.cuh", take_line, place);
    assert_true(index.is_cut);
    assert_int_equal(index.folder_count, 1);
    assert_non_null(strstr(said.last, "more than 1000000 files and folders"));
    kprof_source_index_free(&index);
}

/* What kprof does not look into is told: folders that are too deep, or closed to this user. */
TEST(test_folders_that_are_passed_over)
{
    char *given[] = {folder}, place[1200], line[16] = "";
    const kprof_strlist list = {given, 1, 1};
    const kprof_source_places below = {&list, NULL, NULL};
    int length = snprintf(place, sizeof place, "%s", folder);
    for (int i = 0; i < 33; i++) {
        length += snprintf(place + length, sizeof place - (size_t)length, "/d");
        assert_int_equal(mkdir(place, 0700), 0);
    }
    kprof_source_search(&below, "util.cuh", take_line, line);
    assert_non_null(strstr(said.last, "did not look into 1 folder, the first is d/d/"));
    assert_non_null(strstr(said.last, "/d/: more than 32 levels deep;"));
    snprintf(place, sizeof place, "%s/closed", folder);
    assert_int_equal(mkdir(place, 0), 0);
    kprof_source_search(&below, "util.cuh", take_line, line);
    assert_non_null(strstr(said.last, geteuid() == 0 ? "1 folder," : "2 folders,")); /* root may look into all */
}

/* No link is followed. One that leads to folders where kprof looks anyway is not told. */
TEST(test_links_to_folders)
{
    char given_folder[600], *given[] = {given_folder}, place[700], line[16] = "";
    const kprof_strlist list = {given, 1, 1};
    const kprof_source_places below = {&list, NULL, NULL};
    snprintf(given_folder, sizeof given_folder, "%s/given", folder);
    assert_int_equal(mkdir(given_folder, 0700), 0);
    snprintf(place, sizeof place, "%s/given/own", folder);
    assert_int_equal(mkdir(place, 0700), 0);
    write_text("util.cuh", "other");
    static const char *const inside[][2] = {
        {"own", "latest"}, {".", "again"}, {"../util.cuh", "own/file"}, {"nonesuch", "own/gone"}};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        snprintf(place, sizeof place, "%s/%s", given_folder, inside[i][1]);
        assert_int_equal(symlink(inside[i][0], place), 0);
    }
    *said.last = '\0';
    kprof_source_search(&below, "util.cuh", take_line, line);
    assert_string_equal(said.last, "");
    snprintf(place, sizeof place, "%s/own/deps", given_folder);
    assert_int_equal(symlink(folder, place), 0);
    kprof_source_search(&below, "util.cuh", take_line, line);
    assert_non_null(strstr(said.last, "did not look into 1 folder, the first is own/deps: a link to "));
    assert_non_null(strstr(said.last, folder));
    assert_string_equal(line, "");
    strcat(given_folder, "/own/deps"); /* which the user names */
    kprof_source_search(&below, "util.cuh", take_line, line);
    assert_string_equal(line, "other");
}

/* Only a file whose size and hash are known is looked for where the report says. */
TEST(test_recorded_paths)
{
    char sql[1024], *files[] = {(char *)SOURCE_FOLDER "/vectorAdd.cu"};
    const kprof_strlist file_list = {files, 1, 1};
    const kprof_source_places nowhere = {NULL, NULL, NULL}, named = {NULL, &file_list, NULL};
    snprintf(sql, sizeof sql, "UPDATE code_file SET path='%s/vectorAdd.cu' WHERE id=1", SOURCE_FOLDER);
    execute(sql);
    expect_text(KPROF_SOURCE_FOUND, &nowhere);
    execute("UPDATE code_file SET hash=NULL WHERE id=1");
    expect_text(KPROF_SOURCE_UNKNOWN, &nowhere);
    execute("UPDATE code_file SET bytes=NULL WHERE id=1");
    expect_text(KPROF_SOURCE_UNKNOWN, &nowhere);
    expect_text(KPROF_SOURCE_UNCHECKED, &named);
    execute("UPDATE code_file SET path='../../..', hash='0', bytes=0 WHERE id=1");
    expect_text(KPROF_SOURCE_MISSING, &nowhere);
    expect_text(KPROF_SOURCE_MISSING, &named);
    char link[700];
    snprintf(link, sizeof link, "%s/vectorAdd.cu", folder);
    snprintf(sql, sizeof sql, "UPDATE code_file SET path='%s', hash=NULL, bytes=NULL WHERE id=1", link);
    assert_int_equal(symlink(files[0], link), 0);
    execute(sql);
    expect_text(KPROF_SOURCE_LINK, &nowhere);
    files[0] = link;
    expect_text(KPROF_SOURCE_UNCHECKED, &named);
}

/* A file that cannot be read is another thing than none. */
TEST(test_files_that_cannot_be_read)
{
    char *folders[] = {folder}, place[700];
    const kprof_strlist folder_list = {folders, 1, 1};
    const kprof_source_places below = {&folder_list, NULL, NULL};
    snprintf(place, sizeof place, "%s/vectorAdd.cu", folder);
    write_text("vectorAdd.cu", "");
    assert_int_equal(truncate(place, (off_t)KPROF_SOURCE_MOST_BYTES + 1), 0);
    expect_text(KPROF_SOURCE_TOO_LARGE, &below);
    assert_int_equal(truncate(place, 0), 0);
    assert_int_equal(chmod(place, 0), 0);
    if (geteuid() != 0) /* who may read all */
        expect_text(KPROF_SOURCE_DENIED, &below);
    assert_int_equal(chmod(place, 0600), 0);
}

TEST(test_stored_text)
{
    const kprof_source_places nowhere = {NULL, NULL, NULL};
    execute("UPDATE code_file SET content='1\n2\n3\n4\n5\n6\n7\n\tc[i] = a[i] + b[i];\r\n9' WHERE id=1");
    opened of;
    char *line;
    assert_int_equal(open_code(VECTOR_ADD, &of), KPROF_OK);
    assert_int_equal(find_text(&of, &nowhere, &line), KPROF_SOURCE_STORED);
    assert_string_equal(line, "    c[i] = a[i] + b[i];");
    free(line);
    close_code(&of);
}

/* The brief in JSON; freed by the caller. */
static char *print_page(kprof_page page, kprof_format format)
{
    kprof_finding_list findings;
    kprof_catalog *catalog = fixture_findings_load(true, &findings);
    kprof_report *report = NULL;
    kprof_status status;
    const kprof_print_options options = {
        .page = page, .format = format, .findings = &findings, .group_by = KPROF_GROUP_PROCESS};
    assert_int_equal(kprof_report_open(path, &report), KPROF_OK);
    char *text = fixture_print(report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_int_equal(kprof_report_close(report), KPROF_OK);
    free(findings.items);
    kprof_catalog_free(catalog);
    return text;
}

/* The brief stays a document of 2 KB, and has as many lines as it has room for. */
TEST(test_brief_stays_small)
{
    execute("UPDATE kernel SET demangled=replace(hex(zeroblob(999)), '00', char(1)), function=demangled;"
            "UPDATE device SET name=(SELECT demangled FROM kernel);"
            "UPDATE process SET name=(SELECT demangled FROM kernel);"
            "UPDATE code_file SET path='/'||id||replace(hex(zeroblob(999)), '00', char(34))");
    char *text = print_page(KPROF_PAGE_BRIEF, KPROF_FORMAT_JSONL);
    assert_non_null(strstr(text, "\"hot_lines\":[{"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 2048);
    free(text);
}

/* A name that the document has no room for takes none from the lines. */
TEST(test_brief_with_a_long_name_has_lines)
{
    execute("UPDATE kernel SET function=replace(hex(zeroblob(100)), '00', 'softmax_')");
    KPROF_AUTO_FREE char *text = print_page(KPROF_PAGE_BRIEF, KPROF_FORMAT_JSONL);
    assert_non_null(strstr(text, "\"function\":null"));
    assert_non_null(strstr(text, "{\"at\":\"softmax.py:14\""));
}

TEST(test_brief_has_whole_names_where_there_is_room)
{
    execute("UPDATE code_file SET path='/tmp/ab/'||replace(hex(zeroblob(12)), '00', 'name')||id||'.py'");
    char *text = print_page(KPROF_PAGE_BRIEF, KPROF_FORMAT_JSONL);
    assert_non_null(strstr(text, "\"at\":\"namenamenamenamenamenamenamenamenamenamenamename2.py:7\""));
    free(text);
    execute("UPDATE code_file SET path='/tmp/ab/'||replace(hex(zeroblob(24)), '00', char(233))||id||'.py'");
    text = print_page(KPROF_PAGE_BRIEF, KPROF_FORMAT_JSONL);
    assert_non_null(strstr(text, "\xc3\xa9\xc3\xa9"
                                 "2.py:7\""));
    assert_null(strstr(text, "..."));
    free(text);
}

/* Of a function that a kernel calls from two lines, the slow call is named, though it is not the first. */
TEST(test_calls_of_a_function_are_told_apart)
{
    execute("UPDATE code_line SET depth=1 WHERE function_id=1 AND line>=6;"
            "INSERT INTO code_line SELECT 1, offset, 0, 3, 50, 'add' FROM code_line WHERE function_id=1 AND depth=1");
    KPROF_AUTO_FREE char *text = print_page(KPROF_PAGE_DETAILS, KPROF_FORMAT_JSON);
    assert_non_null(strstr(text, "\"line\":50,\"called_from\":\"vectorAdd.cu:8\",\"waits_for\":"));
    assert_null(strstr(text, "\"called_from\":\"vectorAdd.cu:6\""));
}

/* What a line of the user's calls in a library counts for that line, which is named first. */
TEST(test_lines_in_libraries)
{
    static const struct {
        const char *kernel, *called; /* folders */
        bool is_library;
    } cases[] = {
        {"/home/user/project", "/usr/lib/python3/dist-packages/triton/language", true},
        {"/home/user/env/lib/python3.12/site-packages/vllm/kernels",
         "/home/user/env/lib/python3.12/site-packages/triton/language", true},
        {"/home/user/env/lib/python3.12/site-packages/vllm/kernels",
         "/home/user/env/lib/python3.12/site-packages/vllm/ops", false},
        {"/home/user/project", "/home/user/project/ops", false},
        {"/home/user/project", "/usr/local/cuda-13.0/include/cccl/thrust/system", true},
        {"/home/user/project", "/usr/local/cuda/bin/../targets/x86_64-linux/include/cooperative_groups/details", true},
        {"/home/user/project", "/home/user/conda/targets/x86_64-linux/include", true},
        {"/home/user/project", "/home/user/project/build/_deps/cccl-src/cub/cub/block", true},
        {"/home/user/project", "/usr/include/c++/12/bits", true},
        {"/home/user/cuda/src", "/home/user/cuda/include", false},
        {"/home/user/project", "/home/user/project/cub", false},
        {"/home/user/project", "/home/user/project/cutlass/include/cute", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        opened of;
        kprof_hot_lines hot;
        KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
        KPROF_AUTO_FREE char *sql = kprof_strprintf("UPDATE code_file SET path='%s/softmax.py' WHERE id=2;"
                                                    "UPDATE code_file SET path='%s/standard.py' WHERE id=3",
                                                    cases[i].kernel, cases[i].called);
        execute(sql);
        assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
        kprof_hot_lines_find(of.profiles, &of.profiles->items[SOFTMAX], &hot);
        assert_string_equal(hot.items[1].place, cases[i].is_library ? "softmax.py:16" : "standard.py:170");
        assert_string_equal(hot.items[1].library, cases[i].is_library ? "standard.py:170" : "");
        assert_string_equal(hot.items[1].caller, cases[i].is_library ? "" : "softmax.py:16");
        kprof_hot_line_describe(&hot.items[1], &text);
        assert_true(kprof_begins_with(text.data, cases[i].is_library
                                                     ? "line softmax.py:16, in standard.py:170, "
                                                     : "line standard.py:170, called from softmax.py:16, "));
        close_code(&of);
    }
    execute("UPDATE code_file SET path='/usr/include/'||id");
    KPROF_AUTO_FREE char *text = print_page(KPROF_PAGE_BRIEF, KPROF_FORMAT_JSONL);
    assert_non_null(
        strstr(text, "\"at\":\"3:170\"")); /* the innermost, where all are in libraries, and the outermost */
    assert_non_null(strstr(text, "\"called_from\":\"2:16\""));
}

/* A call of the compiler's own, of line 0, does not hide the line of what it calls. */
TEST(test_lines_in_libraries_without_a_call)
{
    opened of;
    kprof_hot_lines hot;
    execute("UPDATE code_file SET path='/usr/include/standard.h' WHERE id=3;"
            "UPDATE code_line SET line=0 WHERE file_id=2 AND depth>0");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    kprof_hot_lines_find(of.profiles, &of.profiles->items[SOFTMAX], &hot);
    assert_string_equal(hot.items[1].place, "standard.h:170");
    assert_string_equal(hot.items[1].library, "");
    assert_string_equal(hot.items[1].caller, "");
    close_code(&of);
}

/* Findings and rows of the source page name the same line. */
TEST(test_places_in_libraries)
{
    execute("UPDATE code_file SET path='/usr/local/cuda/include/cub/block.cuh' WHERE id=3;"
            "UPDATE code_line SET depth=1 WHERE function_id=1 AND line>=6;"
            "INSERT INTO code_line SELECT 1, offset, 0, 3, 50, 'add' FROM code_line WHERE function_id=1 AND depth=1");
    KPROF_AUTO_FREE char *details = print_page(KPROF_PAGE_DETAILS, KPROF_FORMAT_JSON);
    assert_non_null(strstr(details, "\"line\":8,\"in_library\":\"block.cuh:50\",\"called_from\":null"));
    KPROF_AUTO_FREE char *source = print_page(KPROF_PAGE_SOURCE, KPROF_FORMAT_CSV);
    assert_non_null(strstr(source, "block.cuh:50"));
    KPROF_AUTO_FREE char *text = print_page(KPROF_PAGE_DETAILS, KPROF_FORMAT_TEXT);
    assert_non_null(strstr(text, "vectorAdd.cu:8, in block.cuh:50"));
}

/* ncu has a line of the library. */
TEST(test_lines_in_libraries_for_ncu)
{
    opened of;
    kprof_status status;
    execute("UPDATE code_file SET path='/usr/local/cuda/include/cub/block.cuh' WHERE id=3");
    assert_int_equal(open_code(SOFTMAX, &of), KPROF_OK);
    const kprof_print_options options = {
        .page = KPROF_PAGE_SOURCE, .format = KPROF_FORMAT_CSV_NCU, .source_view = KPROF_VIEW_CUDA, .all_rows = true};
    KPROF_AUTO_FREE char *text = fixture_print(of.report, &options, &status);
    assert_int_equal(status, KPROF_OK);
    assert_non_null(strstr(text, "\"File Path\",\"/usr/local/cuda/include/cub/block.cuh\""));
    close_code(&of);
}

/* Compilers say line 0 of what is of no line: no page names that. */
TEST(test_line_zero)
{
    execute("UPDATE code_line SET line=0");
    KPROF_AUTO_FREE char *text = print_page(KPROF_PAGE_SOURCE, KPROF_FORMAT_CSV);
    assert_non_null(strstr(text, "no line"));
    assert_non_null(strstr(text, "LDG.E R4, desc[UR4][R2.64] at 0x0040"));
    assert_null(strstr(text, ".py:0"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest more[] = {cmocka_unit_test_setup_teardown(test_too_many_profiles, set_up, tear_down)};
    if (argc > 1 && strcmp(argv[1], "more") == 0)
        return cmocka_run_group_tests(more, NULL, NULL);
    around_each(set_up, tear_down);
    return run_all_tests();
}
