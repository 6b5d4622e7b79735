/* Stores the code of the functions that were measured: texts, lines, files and waits of their instructions. A folder
 * that is recovered may be anyone's, and so may be the cubins in it. */
#include "report/store/code_read.h"
#include "core/files.h"
#include "core/monotonic.h"
#include "core/names.h"
#include "report/store/code_jobs.h"
#include "report/store/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_MAX  ((size_t)4 << 20)   /* bytes of a source file that is stored */
#define SOURCES_MAX ((size_t)256 << 20) /* of all of them */
#define CUBIN_MAX   ((size_t)15 << 20)  /* of a cubin that is stored: SQLite takes 16 MiB for a field */

/* Files that a warning is about. */
typedef struct told_files {
    char *first; /* owned path of the first one */
    size_t count;
} told_files;

typedef struct code_reader {
    kprof_report *report;
    const kprof_code_options *options;
    kprof_names files;   /* rows of code_file, by path */
    size_t source_bytes; /* stored so far */
    double store_ms;
    const kprof_code *code; /* of the cubin that is being stored */
    int64_t *file_rows;     /* [code->files.count]; 0: not stored yet */
    int64_t *ptx_rows;      /* [code->ptx_count]: of its PTX in code_file; 0: not stored yet, and -1: not to be */
    char **short_names;     /* [code->names.count], owned; NULL: nobody has asked for it */
    told_files stale;       /* source files that were changed after they were compiled */
    told_files lost;        /* whose texts the report was to have, and has not */
    kprof_source_index index;
} code_reader;

/* A source file as it is now. */
typedef struct source_file {
    char *bytes; /* owned; NULL: there is none */
    size_t size;
    kprof_code_source compiled;
    bool is_stale; /* what is at its path has another size, or is newer */
    bool is_given; /* the user told where it is */
} source_file;

/* Is the file another one than was compiled? Tell that it is newer, too, as a change may keep the size; not of what
 * was installed, which gets new times without one. */
static bool is_other(int file, const char *name, source_file *of)
{
    struct stat found = {0};
    const bool has_other_size = of->compiled.bytes > 0 && of->compiled.bytes != of->size;
    const bool is_newer = of->compiled.modified_s > 0 && fstat(file, &found) == 0 &&
                          (uint64_t)found.st_mtim.tv_sec > of->compiled.modified_s;
    const bool is_installed = strncmp(name, "/usr/", 5) == 0 || strncmp(name, "/opt/", 5) == 0;
    if (!of->is_given)
        of->is_stale = has_other_size || (is_newer && !is_installed);
    return has_other_size;
}

/* Read a file of a folder, a descriptor or AT_FDCWD, and look for another one if it is not there. */
static bool load_file(void *user, int folder, const char *name)
{
    source_file *out = user;
    const int file = kprof_source_open(folder, name, KPROF_SOURCE_MOST_BYTES, &out->size);
    if (file < 0)
        return true;
    const bool is_wanted = !is_other(file, name, out);
    out->bytes = is_wanted ? kprof_calloc(1, out->size + 1) : NULL;
    if (out->bytes && kprof_read_at(file, out->bytes, out->size, 0) < out->size) {
        free(out->bytes);
        out->bytes = NULL;
    }
    close(file);
    return !out->bytes;
}

/* A relative path tells no place. */
static void find_source(code_reader *reader, const char *path, source_file *out)
{
    if (path[0] == '/' && !load_file(out, AT_FDCWD, path))
        return;
    out->is_given = true;
    kprof_source_places places = reader->options->places;
    places.index = &reader->index;
    if (reader->options->keeps_source)
        kprof_source_search(&places, path, load_file, out);
}

static bool is_below(const char *path, const char *folder)
{
    KPROF_AUTO_FREE char *real = realpath(folder, NULL);
    const size_t length = real ? strlen(real) : 0;
    return length > 0 && strncmp(path, real, length) == 0 && (path[length] == '/' || real[length - 1] == '/');
}

/* May the report have the text of a file? */
static bool may_keep(const kprof_code_options *options, const char *path)
{
    if (!options->keeps_source || !options->source_folders)
        return options->keeps_source;
    bool is_inside = false;
    KPROF_AUTO_FREE char *real = realpath(path, NULL);
    for (size_t i = 0; real && i < options->source_folders->count && !is_inside; i++)
        is_inside = is_below(real, options->source_folders->items[i]);
    return is_inside;
}

static void note_file(told_files *files, const char *path)
{
    if (files->count++ == 0)
        files->first = kprof_strdup(path);
}

/* Store a file of the cubin: its size and hash if it can be read and is the one that was compiled, as far as the
 * compiler told, and its text if options and limits let it. */
static int64_t add_file(code_reader *reader, uint32_t file)
{
    const char *path = reader->code->files.items[file];
    char hash[17] = "";
    source_file found = {.compiled = reader->code->sources[file]};
    find_source(reader, path, &found);
    if (found.is_stale && !(found.bytes && found.is_given))
        note_file(&reader->stale, path);
    const bool is_told = found.compiled.bytes > 0 && found.compiled.bytes <= INT64_MAX;
    const int64_t size = found.bytes ? (int64_t)found.size : is_told ? (int64_t)found.compiled.bytes : -1;
    const bool keeps = found.bytes && found.size <= SOURCE_MAX && reader->source_bytes + found.size <= SOURCES_MAX &&
                       (found.is_given || may_keep(reader->options, path));
    if (found.bytes)
        kprof_source_hash(found.bytes, found.size, hash);
    if (!keeps && reader->options->keeps_source)
        note_file(&reader->lost, path);
    reader->source_bytes += keeps ? found.size : 0;
    const int64_t row = kprof_store_add(reader->report, KPROF_SQL_ADD_CODE_FILE, "sitn", path, size,
                                        found.bytes ? hash : NULL, keeps ? found.bytes : NULL, found.size);
    free(found.bytes);
    return row;
}

/* The row of a text of PTX, as a file that is nowhere else; -1 where there is no space for it. */
static int64_t ptx_row(code_reader *reader, uint32_t number)
{
    const kprof_code_ptx *ptx = &reader->code->ptx[number];
    int64_t *row = &reader->ptx_rows[number];
    char hash[17], path[24];
    if (*row != 0)
        return *row;
    *row = -1;
    if (!ptx->text || reader->source_bytes + ptx->size > SOURCES_MAX)
        return -1;
    kprof_source_hash(ptx->text, ptx->size, hash);
    snprintf(path, sizeof path, "%.8s.ptx", hash);
    reader->source_bytes += ptx->size;
    return *row = kprof_store_add(reader->report, KPROF_SQL_ADD_CODE_FILE, "sitn", path, (int64_t)ptx->size, hash,
                                  ptx->text, ptx->size);
}

/* The row of a file of the cubin. Files that no measured function comes from get none. */
static int64_t file_row(code_reader *reader, uint32_t file)
{
    int64_t *row = &reader->file_rows[file];
    if (*row > 0)
        return *row;
    const char *path = reader->code->files.items[file];
    const size_t known = kprof_names_find(&reader->files, path);
    *row = known == KPROF_NAMES_NONE ? add_file(reader, file) : (int64_t)known;
    if (known == KPROF_NAMES_NONE)
        kprof_names_keep(&reader->files, path, (size_t)*row);
    return *row;
}

/* "scale": a function without its namespaces, arguments and parameters. */
static char *short_name(const char *mangled)
{
    KPROF_AUTO_FREE char *demangled = kprof_demangle(mangled);
    return kprof_name_function_base(demangled);
}

/* The short name of an inlined function, made once: it stands with many instructions. */
static const char *inlined_name(code_reader *reader, uint32_t name)
{
    char **kept = &reader->short_names[name];
    if (!*kept)
        *kept = short_name(reader->code->names.items[name]);
    return *kept;
}

static void add_instruction(code_reader *reader, const kprof_code_instruction *instruction, int64_t function,
                            const char *own_name)
{
    kprof_report *report = reader->report;
    const kprof_code_access *access = &instruction->access;
    kprof_store_write(report, KPROF_SQL_ADD_INSTRUCTION, access->bits > 0 ? "iittti" : "iittt", function,
                      (int64_t)instruction->offset, instruction->text, access->space, access->operation,
                      (int64_t)access->bits);
    for (size_t i = 0; i < instruction->frame_count; i++) {
        const kprof_code_frame *frame = &reader->code->frames[instruction->first_frame + i];
        const bool is_inlined = frame->name != KPROF_CODE_NO_NAME;
        const char *name = is_inlined ? inlined_name(reader, frame->name) : own_name;
        kprof_store_write(reader->report, KPROF_SQL_ADD_LINE, "iiiiis", function, (int64_t)instruction->offset,
                          (int64_t)i, file_row(reader, frame->file), (int64_t)frame->line, name);
    }
    const int64_t file = instruction->ptx_line > 0 ? ptx_row(reader, instruction->ptx) : 0;
    if (file > 0)
        kprof_store_write(reader->report, KPROF_SQL_ADD_PTX, "iiii", function, (int64_t)instruction->offset, file,
                          (int64_t)instruction->ptx_line);
    for (size_t i = 0; i < instruction->wait_count; i++)
        kprof_store_write(report, KPROF_SQL_ADD_WAIT, "iii", function, (int64_t)instruction->offset,
                          (int64_t)reader->code->waits[instruction->first_wait + i]);
}

/* Store a function of the cubin if it was measured, once: a name may stand for several. */
static void add_function(code_reader *reader, const kprof_code_function *function, int64_t code)
{
    kprof_report *report = reader->report;
    const int64_t row = kprof_store_find(report, KPROF_SQL_FIND_UNREAD_FUNCTION, "is", code, function->mangled);
    if (row == 0)
        return;
    KPROF_AUTO_FREE char *own_name = short_name(function->mangled);
    kprof_store_write(report, KPROF_SQL_SIZE_FUNCTION, "ii", row, (int64_t)function->bytes);
    for (size_t i = 0; i < function->count && report->status == KPROF_OK; i++)
        add_instruction(reader, &function->instructions[i], row, own_name);
}

/* Store what was read of a cubin. */
static void store_job(code_reader *reader, const kprof_code_job *job, int64_t id)
{
    const kprof_code *code = reader->code = &job->code;
    reader->file_rows = kprof_calloc(code->files.count + 1, sizeof *reader->file_rows);
    reader->short_names = kprof_calloc(code->names.count + 1, sizeof *reader->short_names);
    reader->ptx_rows = kprof_calloc(code->ptx_count + 1, sizeof *reader->ptx_rows);
    for (size_t i = 0; i < code->function_count; i++)
        add_function(reader, &code->functions[i], id);
    kprof_store_write(reader->report, KPROF_SQL_END_CODE, "ittb", id, code->text_state, code->line_state, job->bytes,
                      job->size);
    for (size_t i = 0; i < code->names.count; i++)
        free(reader->short_names[i]);
    KPROF_FREE(reader->short_names, reader->file_rows, reader->ptx_rows);
}

/* List the cubins that the run has kept, each with the functions to read. */
static kprof_code_job *list_jobs(kprof_report *report)
{
    kprof_code_job *jobs = kprof_calloc(report->code_count + 1, sizeof *jobs);
    for (size_t i = 0; i < report->code_count; i++) {
        static const char sql[] = "SELECT mangled, code.bytes FROM code_function JOIN code ON code.id=code_id WHERE "
                                  "code_id=?";
        jobs[i].file = report->codes[i].file;
        KPROF_EACH_ROW(rows, report, sql, "i", report->codes[i].id) {
            kprof_strlist_add(&jobs[i].wanted, kprof_store_column(rows.row, 0));
            jobs[i].size = (size_t)sqlite3_column_int64(rows.row, 1);
        }
    }
    return jobs;
}

static kprof_status store_codes(code_reader *reader, kprof_code_jobs *jobs)
{
    kprof_report *report = reader->report;
    kprof_status status = kprof_store_take_status(report);
    for (size_t i = 0; i < report->code_count && status == KPROF_OK; i++) {
        if (reader->options->tell)
            reader->options->tell(reader->options->user, i + 1, report->code_count);
        kprof_code_job *job = kprof_code_jobs_take(jobs, i);
        int64_t start_ns = kprof_monotonic_ns();
        status = kprof_report_begin(report);
        if (status == KPROF_OK)
            store_job(reader, job, report->codes[i].id);
        kprof_code_jobs_drop(jobs, job);
        KPROF_THEN(status, kprof_store_take_status(report));
        const kprof_status committed = kprof_report_commit(report);
        status = status == KPROF_OK ? committed : status;
        reader->store_ms += kprof_monotonic_lap_ms(&start_ns);
    }
    return status;
}

static void warn_of(const told_files *files, const char *option, const char *what)
{
    char others[48] = "";
    if (files->count > 1)
        snprintf(others, sizeof others, " (and %zu more)", files->count - 1);
    if (files->count > 0)
        kprof_log(KPROF_LOG_WARNING, "%s%s%s %s", option, files->first, others, what);
}

kprof_status kprof_report_read_code(kprof_report *report, const kprof_code_options *options)
{
    code_reader reader = {.report = report, .options = options};
    if (report->code_count == 0)
        return KPROF_OK;
    int64_t start_ns = kprof_monotonic_ns();
    KPROF_AUTO_FREE kprof_code_job *list = list_jobs(report);
    kprof_code_jobs *jobs = kprof_code_jobs_begin(&(kprof_code_jobs_input){
        list, report->code_count, options->folder, options->nvdisasm, options->keeps_sass ? CUBIN_MAX : 0});
    const kprof_status status = store_codes(&reader, jobs);
    const kprof_code_jobs_times times = kprof_code_jobs_end(jobs);
    kprof_log(KPROF_LOG_DEBUG,
              "reading the code of %zu modules took %.0f ms, %zu at once: lines %.0f ms and texts %.0f ms in all, "
              "storing %.0f ms",
              report->code_count, kprof_monotonic_lap_ms(&start_ns), times.readers, times.read_ms, times.disassemble_ms,
              reader.store_ms);
    if (status == KPROF_OK) {
        warn_of(&reader.stale, "",
                "was written after it was compiled: its lines may not be those that ran; compile it again");
        warn_of(&reader.lost, "--import-source yes: ",
                options->source_folders
                    ? "is not in the report: it is not below --source-folders, or another one than was compiled"
                    : "is not in the report: it is not there, too large, or another one than was compiled");
    }
    KPROF_FREE(reader.stale.first, reader.lost.first);
    kprof_source_index_free(&reader.index);
    kprof_names_free(&reader.files);
    return status;
}
