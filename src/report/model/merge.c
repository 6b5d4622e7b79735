/* Merges reports. Small tables go through the model, which checks them, and get new ids; SQLite copies launches and
 * values itself, with ids shifted behind those that are there, so that both are read and written in order. */
#include "report/model/merge.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "report/model/merge.sql.h"
#include "report/model/model.h"
#include "report/store/rows.h"
#include "report/store/trace_ingest.h"

#include <stdlib.h>
#include <string.h>

struct kprof_merge {
    kprof_report *into;
    kprof_names processes, kernels, devices; /* texts that are in the report already -> ids of their rows */
    kprof_names sections;                    /* by chip and identifier, numbered from 1 */
    kprof_strlist definitions;               /* of these */
    kprof_strlist brought_by; /* by process, from id 1 on: the report that it came with, as that was named */
    int64_t process_count, source_count, launch_count; /* ids of what is added follow these */
    size_t report_count;
    const kprof_subset *subset; /* of the report that is being added; NULL: all of it */
};

kprof_merge *kprof_merge_new(kprof_report *into)
{
    kprof_merge *merge = kprof_calloc(1, sizeof *merge);
    merge->into = into;
    kprof_store_exec(into, TABLES);
    return merge;
}

void kprof_merge_free(kprof_merge *merge)
{
    if (!merge)
        return;
    kprof_names_free(&merge->processes);
    kprof_names_free(&merge->kernels);
    kprof_names_free(&merge->devices);
    kprof_names_free(&merge->sections);
    KPROF_FREE_LISTS(&merge->definitions, &merge->brought_by);
    free(merge);
}

/* Note how a step ended: those behind a failure do nothing. */
static void note(kprof_merge *merge, kprof_status status)
{
    kprof_store_note(merge->into, status);
}

/* Run a statement with numbers for its parameters; it need not have all of them. */
static void run(kprof_merge *merge, const char *sql, const int64_t *numbers, int count)
{
    kprof_report *into = merge->into;
    while (*sql && into->status == KPROF_OK) {
        const char *const own = sql;
        sqlite3_stmt *statement = NULL;
        int rc = sqlite3_prepare_v2(into->db, own, -1, &statement, &sql);
        for (int i = 0; i < count && i < sqlite3_bind_parameter_count(statement); i++)
            sqlite3_bind_int64(statement, i + 1, numbers[i]);
        rc = rc != SQLITE_OK ? rc : statement ? sqlite3_step(statement) : SQLITE_DONE;
        if (rc == SQLITE_CONSTRAINT)
            note(merge, kprof_fail(KPROF_BAD_REPORT, "a report to be merged is damaged: rows refer to others that are "
                                                     "not there" KPROF_DAMAGED_ADVICE));
        else if (rc != SQLITE_DONE && rc != SQLITE_ROW)
            note(merge, kprof_store_fail(into, own));
        sqlite3_finalize(statement);
    }
}

/* The id of the row with this text; 0: there is none, and the text is remembered. */
static int64_t know(kprof_names *known, const char *text, int64_t new_id)
{
    const size_t number = kprof_names_find(known, text);
    if (number == KPROF_NAMES_NONE)
        kprof_names_keep(known, text, (size_t)new_id);
    return number == KPROF_NAMES_NONE ? 0 : (int64_t)number;
}

/* A device or kernel gets one row, even when several reports have it. */
static void add_shared(kprof_merge *merge, kprof_rows table, const void *row, int64_t old)
{
    const bool is_kernel = table == KPROF_ROWS_KERNEL;
    kprof_names *known = is_kernel ? &merge->kernels : &merge->devices;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    const int64_t new_id = (int64_t)known->count + 1;
    kprof_rows_describe(table, row, &text);
    int64_t id = know(known, text.data, new_id);
    if (id == 0) {
        id = new_id;
        kprof_rows_insert(merge->into, table, row, id);
    }
    run(merge, is_kernel ? "INSERT INTO new_kernel VALUES(?,?)" : "INSERT INTO new_device VALUES(?,?)",
        (const int64_t[]){old, id}, 2);
}

static void add_small_tables(kprof_merge *merge, const kprof_model *model)
{
    kprof_store_exec(merge->into, "DELETE FROM new_kernel; DELETE FROM new_device; DELETE FROM new_metric; DELETE FROM "
                                  "taken");
    for (size_t i = 0; i < model->kernel_count; i++)
        add_shared(merge, KPROF_ROWS_KERNEL, &model->kernels[i], (int64_t)i + 1);
    for (size_t i = 0; i < model->device_count; i++)
        add_shared(merge, KPROF_ROWS_DEVICE, &model->devices[i], (int64_t)i + 1);
    for (size_t i = 0; i < model->metric_count; i++) {
        if (model->is_kept && !model->is_kept[i])
            continue;
        const int64_t id = kprof_store_metric(merge->into, &model->metrics[i]);
        run(merge, "INSERT INTO new_metric VALUES(?,?)", (const int64_t[]){(int64_t)i + 1, id}, 2);
    }
}

/* Name the earlier report that has the process of this id, and the report that it was merged from. */
static kprof_status fail_twice(kprof_merge *merge, const kprof_model_process *process, int64_t id, const char *path)
{
    KPROF_AUTO(kprof_cursor) rows = kprof_cursor_new(merge->into, NAME_OF_SOURCE, "i", id);
    const char *other = merge->brought_by.items[id - 1];
    const char *source = kprof_cursor_next(&rows) ? kprof_store_column(rows.row, 0) : other;
    const bool is_merged = strcmp(source, other) != 0;
    return kprof_fail(KPROF_USAGE,
                      "%s: process %ld of %s, started at the same time, is in %s%s%s%s already, so "
                      "both have the same run: leave one of them out",
                      path, process->pid, process->host, other, is_merged ? " (from " : "", is_merged ? source : "",
                      is_merged ? ")" : "");
}

/* Processes are the same when machine, pid and start are: no run counts twice. */
static void add_processes(kprof_merge *merge, const kprof_model *model, const char *path, const char *name)
{
    for (size_t i = 0; i < model->process_count && merge->into->status == KPROF_OK; i++) {
        const kprof_model_process *process = &model->processes[i];
        KPROF_AUTO_FREE char *text = kprof_strprintf("%ld %ld %s", process->pid, process->start_unix_ns, process->host);
        const int64_t id = merge->process_count + (int64_t)i + 1;
        const int64_t there = know(&merge->processes, text, id);
        if (there > 0)
            note(merge, fail_twice(merge, process, there, path));
        else
            kprof_rows_insert(merge->into, KPROF_ROWS_PROCESS, process, id);
        kprof_strlist_add(&merge->brought_by, name);
    }
}

/* Note which process sees which GPUs. An older report tells it only where one GPU alone has a number. */
static void add_process_devices(kprof_merge *merge, int version)
{
    static const char copied[] = "INSERT OR IGNORE INTO main.process_device SELECT process_id+?1, new_device.id FROM "
                                 "source.process_device JOIN new_device ON old=device_id";
    static const char guessed[] =
        "INSERT OR IGNORE INTO main.process_device SELECT p.id+?1, new_device.id FROM source.process p CROSS JOIN "
        "source.device d JOIN new_device ON old=d.id GROUP BY p.id, d.ordinal HAVING count(*)=1";
    run(merge, version >= KPROF_PROCESS_DEVICES_SINCE ? copied : guessed, &merge->process_count, 1);
}

/* A report that was merged brings its own sources along. */
static void add_sources(kprof_merge *merge, const char *name, int version)
{
    const int64_t numbers[] = {merge->process_count, merge->source_count};
    const int64_t sources = version >= 5 ? kprof_store_integer(merge->into, "SELECT count(*) FROM source.source") : 0;
    if (sources > 0) {
        run(merge, SOURCES, &merge->source_count, 1);
        run(merge, "INSERT INTO main.process_source SELECT process_id+?1, source_id+?2 FROM source.process_source",
            numbers, 2);
        merge->source_count += sources;
        return;
    }
    kprof_store_ask(merge->into, SOURCE_OF_RUN, "is", merge->source_count, name);
    run(merge, "INSERT INTO main.process_source SELECT id+?1, ?2+1 FROM source.process", numbers, 2);
    merge->source_count++;
}

/* Both definitions are of one section. `own`: that of the new report. */
static kprof_status join_definition(const char *path, char **own, const kprof_section *section)
{
    KPROF_AUTO(kprof_pool) pool = {0};
    kprof_section whole;
    const kprof_status status = kprof_section_from_json(&(kprof_json_place){.name = path, .pool = &pool}, *own, &whole);
    if (status != KPROF_OK)
        return status;
    const char *other_name = kprof_section_join(&whole, section, &pool);
    if (other_name)
        return kprof_fail(KPROF_BAD_REPORT,
                          "%s: its section %s computes %s in another way than the reports before it, as another "
                          "version of kprof does, or other files of sections: merge runs that had the same, or "
                          "compare the two with kprof diff",
                          path, section->id, other_name);
    free(*own);
    *own = kprof_section_to_json(&whole);
    return KPROF_OK;
}

/* Add a section to those of a chip. Another version of kprof may have given one that is there other values. */
static void add_section(kprof_merge *merge, const char *chip, const kprof_section *section, const char *path)
{
    KPROF_AUTO_FREE char *key = kprof_strprintf("%s\n%s", chip, section->id);
    KPROF_AUTO_FREE char *json = kprof_section_to_json(section);
    const size_t number = kprof_names_find(&merge->sections, key);
    char **own = number == KPROF_NAMES_NONE ? NULL : &merge->definitions.items[number - 1];
    if (!own) {
        kprof_strlist_add(&merge->definitions, json);
        kprof_names_keep(&merge->sections, key, merge->definitions.count);
        kprof_store_write(merge->into, KPROF_SQL_ADD_SECTION, "ssss", chip, section->id, section->name, json);
    } else if (strcmp(*own, json) != 0) {
        note(merge, join_definition(path, own, section));
        kprof_store_ask(merge->into, CHANGE_SECTION, "sss", chip, section->id, *own);
    }
}

/* Runs may have had other sets. A chip has the sections of all, and the passes of a plan that differs follow those that
 * are there; a metric has the passes of the first plan with it. */
static void add_passes(kprof_merge *merge, const char *chip)
{
    if (kprof_store_ask(merge->into, DIFFERS, "s", chip)) {
        kprof_store_ask(merge->into, COPY_SCHEDULE, "s", chip);
        kprof_store_ask(merge->into, COPY_PASSES, "s", chip);
    }
    kprof_store_ask(merge->into, COPY_LEFT_OUT, "s", chip);
}

/* "id+?1, process_id+?2, (the new kernel), ..., position, context": the columns of a launch with its new ids. */
static char *launch_query(int version)
{
    kprof_strbuf sql = KPROF_STRBUF_INIT;
    kprof_strbuf_puts(&sql, COPY_LAUNCHES);
    kprof_rows_list_plain(KPROF_ROWS_LAUNCH, version, &sql);
    kprof_strbuf_puts(&sql, " FROM source.launch WHERE id IN (SELECT launch FROM taken) OR ?3=0 ORDER BY launch.id");
    return kprof_strbuf_take(&sql);
}

/* Numbers of the statements that copy code: ?1 to ?5 are what ids of launches, processes, files, codes with functions
 * and profiles grow by, ?6 is 0 where all launches are taken. */
enum { CODE_NUMBERS = 6 };

/* Give files, codes and functions their new ids: those of what is the same in a report before. A code is that of
 * another report if it has the same cubin, and its functions that both have the same instructions, lines and waits. */
static void share_code(kprof_merge *merge, const int64_t *numbers, bool has_ptx)
{
    const char *const files = has_ptx ? NEW_FILES(" UNION " USED_BY("code_ptx")) : NEW_FILES("");
    run(merge, FORGET_SHARED, numbers, CODE_NUMBERS);
    run(merge, files, numbers, CODE_NUMBERS);
    run(merge, SHARE, numbers, CODE_NUMBERS);
}

/* Code and what was measured of it. A part has the whole profiles of its launches, as far as it has metrics of them,
 * and the code of these. Ids of code, files, functions and profiles follow those that are there. */
static void add_code(kprof_merge *merge, const kprof_report *from)
{
    const bool has_ptx = from->version >= 9;
    kprof_report *into = merge->into;
    if (from->version < 7) /* it has none of these tables */
        return;
    const int64_t numbers[CODE_NUMBERS] = {
        merge->launch_count,
        merge->process_count,
        kprof_store_integer(into, "SELECT coalesce(max(id), 0) FROM main.code_file"),
        /* Codes and functions get ids of one range. */
        kprof_store_integer(into, "SELECT max((SELECT coalesce(max(id), 0) FROM main.code), (SELECT coalesce(max(id), "
                                  "0) FROM main.code_function))"),
        kprof_store_integer(into, "SELECT coalesce(max(id), 0) FROM main.code_profile"),
        merge->subset != NULL,
    };
    /* Choose the profiles of the launches that are taken, and the functions with values of these. A profile without a
     * metric tells why nothing was measured. */
    run(merge, CHOOSE, numbers, CODE_NUMBERS);
    share_code(merge, numbers, has_ptx);
    run(merge, COPY_CODE, numbers, CODE_NUMBERS);
    if (has_ptx) /* reports of older versions have none */
        run(merge, COPY_PTX, numbers, CODE_NUMBERS);
}

/* Run statements that copy rows of launches: ?1 and ?2 are what ids of launches and processes grow by, ?3 is 0 where
 * all launches are taken. */
static void copy_of_launches(kprof_merge *merge, const char *sql)
{
    const int64_t numbers[] = {merge->launch_count, merge->process_count, merge->subset != NULL};
    run(merge, sql, numbers, 3);
}

/* A part of a report has no trace: it is chosen by launches. */
static void add_trace(kprof_merge *merge, const kprof_report *from)
{
    if (from->version < 9 || merge->subset)
        return;
    kprof_store_exec(merge->into, COPY_NAMES);
    run(merge, COPY_TRACES, &merge->process_count, 1);
    for (unsigned kind = 1; kind < KPROF_ACTIVITY_KINDS; kind++) {
        if (from->version < KPROF_TRACE_SINCE(kind))
            continue;
        KPROF_AUTO_FREE char *sql = kprof_trace_copy_statement((kprof_activity_kind)kind);
        run(merge, sql, &merge->process_count, 1);
    }
}

/* A census is of all launches, so a part of a report keeps it as it is. */
static void add_census(kprof_merge *merge, const kprof_report *from)
{
    const int64_t numbers[] = {merge->launch_count, merge->process_count};
    KPROF_AUTO(kprof_strbuf) sql = KPROF_STRBUF_INIT;
    if (from->version < 9)
        return;
    kprof_strbuf_puts(&sql, COPY_CENSUS);
    kprof_rows_list_plain(KPROF_ROWS_CENSUS, from->version, &sql);
    kprof_strbuf_puts(&sql, " FROM source.census ORDER BY id");
    run(merge, sql.data, numbers, 2);
}

static void add_launches(kprof_merge *merge, const kprof_report *from)
{
    static const struct {
        int since; /* the first version that has the table */
        const char *sql;
    } rest[] = {
        {6, COPY_NVTX},      {3, COPY_NODES},  {1, COPY_VALUES},
        {1, COPY_SEEN},      {8, COPY_STACKS}, /* those that are the same in both reports become one */
        {9, COPY_TIMELINES},                   /* of the metrics that are taken */
    };
    if (kprof_store_integer(merge->into, IS_DAMAGED))
        note(merge, kprof_fail(KPROF_BAD_REPORT,
                               "%s: the report is damaged: rows refer to others that are not "
                               "there" KPROF_DAMAGED_ADVICE,
                               from->path));
    KPROF_AUTO_FREE char *sql = launch_query(from->version);
    copy_of_launches(merge, sql);
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        if (from->version >= rest[i].since)
            copy_of_launches(merge, rest[i].sql);
    add_code(merge, from);
    add_census(merge, from);
    merge->launch_count += kprof_store_integer(merge->into, "SELECT coalesce(max(id)+1, 0) FROM source.launch");
}

static kprof_status take_launch(void *user, const kprof_model_launch *launch)
{
    const kprof_merge *merge = user;
    run(user, "INSERT INTO taken VALUES(?)", &launch->id, 1);
    return merge->into->status;
}

static kprof_status copy(kprof_merge *merge, const kprof_model *model, kprof_report *from, const char *name)
{
    const kprof_model_walk walk = {from, model, NULL, false};
    note(merge, kprof_report_begin(merge->into));
    add_small_tables(merge, model);
    if (merge->subset && merge->into->status == KPROF_OK)
        note(merge, kprof_subset_launches(merge->subset, &walk, take_launch, merge));
    add_processes(merge, model, from->path, name);
    add_process_devices(merge, from->version);
    add_sources(merge, name, from->version);
    for (size_t i = 0; i < model->chip_count; i++) {
        const kprof_model_chip *chip = &model->chips[i];
        for (size_t k = 0; k < chip->shown_count && merge->into->status == KPROF_OK; k++)
            add_section(merge, chip->name, &chip->sections[k], from->path);
        if (from->version >= 2)
            add_passes(merge, chip->name);
    }
    add_launches(merge, from);
    add_trace(merge, from);
    for (size_t i = 0; i < model->message_count; i++) {
        kprof_model_message message = model->messages[i];
        message.process_id += merge->process_count;
        kprof_rows_insert(merge->into, KPROF_ROWS_MESSAGE, &message, -1);
    }
    merge->process_count += (int64_t)model->process_count;
    return merge->into->status == KPROF_OK ? kprof_report_commit(merge->into) : merge->into->status;
}

/* SQLite gives some names a meaning of its own. */
static void attach(kprof_merge *merge, const char *path)
{
    KPROF_AUTO_FREE char *name = kprof_strprintf("%s%s", path[0] == '/' ? "" : "./", path);
    kprof_store_ask(merge->into, "ATTACH ?1 AS source", "s", name);
}

kprof_status kprof_merge_add(kprof_merge *merge, const char *path, const char *name, const kprof_subset *subset)
{
    kprof_report *from = NULL;
    kprof_model model;
    kprof_status status = kprof_report_open(path, &from);
    if (status != KPROF_OK)
        return status;
    if (kprof_report_is_unfinished(path))
        status =
            kprof_fail(KPROF_BAD_REPORT,
                       "%s: its run goes on, or was cut short: wait for its end, or let kprof recover finish it", path);
    from->keeps_text = true;
    KPROF_THEN(status, kprof_store_check_pages(from));
    if (status == KPROF_OK && (status = kprof_model_load(from, &model)) == KPROF_OK) {
        merge->subset = subset;
        if (subset)
            status = kprof_subset_apply(subset, path, &model);
        if (status == KPROF_OK) {
            attach(merge, path);
            status = copy(merge, &model, from, name ? name : path);
            KPROF_THEN(status, kprof_store_exec(merge->into, "DETACH source"));
            const bool tells = status == KPROF_OK && name && !subset;
            if (tells) /* a rank that died looks like one with little to do */
                kprof_model_tell_cut_short(&model, path);
            if (tells && model.process_count == 0)
                kprof_log(KPROF_LOG_WARNING, "%s: no process of its run has called CUDA", path);
        }
        kprof_model_free(&model);
        merge->report_count++;
    }
    kprof_status closed = kprof_report_close(from);
    return status == KPROF_OK ? closed : status;
}

kprof_status kprof_merge_finish(kprof_merge *merge)
{
    const bool is_one = merge->report_count == 1 && merge->source_count == 1;
    kprof_status status = is_one ? KPROF_OK : kprof_merge_join_ranks(merge->into);
    return status == KPROF_OK ? kprof_store_exec(merge->into, is_one ? OF_ONE : OF_MANY) : status;
}
