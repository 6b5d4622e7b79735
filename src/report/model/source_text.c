/* Finds the text of source files, and cuts lines out of it. */
#include "report/model/source_text.h"
#include "core/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN_MAX 4096 /* bytes of a line that are shown */

/* A search for one file. */
typedef struct search {
    const kprof_code_file *file;
    kprof_source_text *out;
    bool is_given; /* the user told where to look */
} search;

static bool is_known(const kprof_code_file *file)
{
    return file->bytes >= 0 && file->hash;
}

/* Take the text over. */
static void keep(search *of, char *text, size_t size)
{
    char hash[17];
    kprof_source_hash(text, size, hash);
    const bool is_same = is_known(of->file) && strcmp(hash, of->file->hash) == 0;
    if (is_known(of->file) && !is_same) {
        of->out->state = KPROF_SOURCE_CHANGED;
        free(text);
        return;
    }
    of->out->state = is_same ? KPROF_SOURCE_FOUND : KPROF_SOURCE_UNCHECKED;
    of->out->text = text;
    of->out->size = size;
}

static void try_file(search *of, int folder, const char *path)
{
    size_t size;
    const int file = kprof_source_open(folder, path, KPROF_SOURCE_MOST_BYTES, &size);
    if (file < 0) {
        const bool is_first = of->out->state == KPROF_SOURCE_MISSING;
        if (is_first && (errno == EACCES || errno == EPERM))
            of->out->state = KPROF_SOURCE_DENIED;
        else if (is_first && errno == ELOOP)
            of->out->state = KPROF_SOURCE_LINK;
        else if (is_first && errno == EFBIG)
            of->out->state = KPROF_SOURCE_TOO_LARGE;
        return;
    }
    const bool has_other_size = of->file->bytes >= 0 && size != (size_t)of->file->bytes;
    if (has_other_size)
        of->out->state = KPROF_SOURCE_CHANGED;
    /* Nothing but size and hash tells whether what is there belongs to the report. */
    const bool is_wanted = !has_other_size && (of->is_given || is_known(of->file));
    char *text = is_wanted ? kprof_calloc(1, size + 1) : NULL;
    if (text && kprof_read_at(file, text, size, 0) == size)
        keep(of, text, size);
    else
        free(text);
    close(file);
}

static bool take_file(void *user, int folder, const char *name)
{
    search *of = user;
    try_file(of, folder, name);
    return !of->out->text;
}

static void search_places(search *of, const kprof_source_places *places)
{
    of->is_given = true;
    kprof_source_search(places, of->file->path, take_file, of);
    of->is_given = false;
    if (!of->out->text && of->file->path[0] == '/' && of->file->bytes >= 0)
        try_file(of, AT_FDCWD, of->file->path);
    struct stat found;
    if (of->out->state != KPROF_SOURCE_MISSING || of->file->path[0] != '/' || lstat(of->file->path, &found) != 0)
        return;
    if (S_ISLNK(found.st_mode))
        of->out->state = KPROF_SOURCE_LINK;
    else if (S_ISREG(found.st_mode))
        of->out->state = KPROF_SOURCE_UNKNOWN;
}

static void read_content(const kprof_code_profiles *profiles, const kprof_code_file *file, kprof_source_text *out)
{
    KPROF_EACH_ROW(rows, profiles->report, "SELECT content FROM code_file WHERE id=?", "i", file->id) {
        const char *content = kprof_store_column(rows.row, 0);
        if (out->text) {
            kprof_store_damaged(profiles->report, "code_file");
            return;
        }
        out->text = kprof_strndup(content, (size_t)sqlite3_column_bytes(rows.row, 0));
        out->size = strlen(out->text);
        out->state = KPROF_SOURCE_STORED;
    }
}

void kprof_source_text_find(const kprof_code_profiles *profiles, const kprof_code_file *file,
                            const kprof_source_places *places, kprof_source_text *out)
{
    *out = (kprof_source_text){.state = KPROF_SOURCE_MISSING};
    search of = {.file = file, .out = out};
    if (file->has_content)
        read_content(profiles, file, out);
    else
        search_places(&of, places);
    if (out->text) {
        out->lines = kprof_calloc(1 + KPROF_SUM(i, out->size, out->text[i] == '\n'), sizeof *out->lines);
        out->line_count = 1;
        for (size_t i = 0; i < out->size; i++)
            if (out->text[i] == '\n')
                out->lines[out->line_count++] = i + 1;
        out->line_count -=
            out->lines[out->line_count - 1] == out->size; /* nothing comes after the last end of a line */
    }
}

void kprof_source_text_free(kprof_source_text *text)
{
    KPROF_FREE(text->text, text->lines);
    *text = (kprof_source_text){0};
}

char *kprof_source_text_line(const kprof_source_text *text, uint32_t number)
{
    enum { TAB = 4 };
    if (number < 1 || number > text->line_count)
        return NULL;
    const char *from = text->text + text->lines[number - 1];
    const char *end = number < text->line_count ? text->text + text->lines[number] : text->text + text->size;
    kprof_strbuf line = KPROF_STRBUF_INIT;
    for (; from < end && *from != '\n' && *from != '\r' && line.length < SHOWN_MAX; from++) {
        const size_t spaces = *from == '\t' ? TAB - line.length % TAB : 0;
        kprof_strbuf_append(&line, spaces ? "    " : from, spaces ? spaces : 1);
    }
    return kprof_strbuf_take(&line);
}
