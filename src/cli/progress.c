/* The status line of a profiling run. */
#include "cli/progress.h"
#include "cli/output.h"
#include "core/clean.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/strbuf.h"
#include "report/model/number.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_PERIOD_S 0.1
#define MESSAGE_PERIOD_S  5.0
#define NAME_OF_NCU       32 /* bytes of a kernel's name that ncu prints; of a longer one the last three are dots */

static double monotonic_s(void)
{
    return 1e-9 * (double)kprof_monotonic_ns();
}

typedef struct line_buffer {
    char *text;
    size_t size, length;
} line_buffer;

static void append(line_buffer *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(line_buffer *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int added = vsnprintf(line->text + line->length, line->size - line->length, format, arguments);
    va_end(arguments);
    if (added > 0)
        line->length += (size_t)added < line->size - line->length ? (size_t)added : line->size - line->length - 1;
}

static void append_duration(line_buffer *line, double seconds)
{
    if (seconds < 60)
        append(line, "%.0f s", seconds);
    else if (seconds < 3600)
        append(line, "%d:%02d min", (int)(seconds / 60), (int)seconds % 60);
    else
        append(line, "%d:%02d h", (int)(seconds / 3600), (int)(seconds / 60) % 60);
}

void kprof_progress_format(const kprof_progress *progress, double now_s, char *text, size_t size)
{
    line_buffer line = {text, size, 0};
    if (progress->code) {
        append(&line, "reading the code of module %zu of %zu", progress->code, progress->code_count);
        return;
    }
    double each_s = progress->done ? (now_s - progress->start_s) / (double)progress->done : 0;
    if (progress->goal)
        append(&line, "%llu of %llu launches", (unsigned long long)progress->done, (unsigned long long)progress->goal);
    else
        append(&line, "%llu launch%s", (unsigned long long)progress->done, kprof_ending(progress->done, "es"));
    if (progress->open > 1)
        append(&line, " and %llu or more not stored yet", (unsigned long long)progress->open);
    if (progress->kernel[0])
        append(&line, ", %s", progress->kernel);
    if (progress->pass)
        append(&line, ", pass %u of %u", progress->pass, progress->pass_count);
    else if (progress->pass_count)
        append(&line, ", %u pass%s", progress->pass_count, kprof_ending(progress->pass_count, "es"));
    if (progress->done)
        append(&line, each_s < 1 ? ", %.3g ms per launch" : ", %.3g s per launch", each_s < 1 ? 1e3 * each_s : each_s);
    if (progress->done && progress->goal > progress->done) {
        append(&line, ", about ");
        append_duration(&line, each_s * (double)(progress->goal - progress->done));
        append(&line, " left");
    }
}

static void clear_line(kprof_progress *progress)
{
    if (!progress->drawn)
        return;
    fputs("\r\033[K", progress->out);
    fflush(progress->out);
    progress->drawn = false;
}

/* Clears the status line, then lets the sink before print. */
static void clear_then_log(void *user, kprof_log_level level, const char *message)
{
    kprof_progress *progress = user;
    clear_line(progress);
    progress->messages.sink(progress->messages.user, level, message);
}

void kprof_progress_begin(kprof_progress *progress, FILE *out, uint64_t goal)
{
    *progress = (kprof_progress){.out = out, .goal = goal, .last_s = monotonic_s()};
    progress->terminal = out && kprof_output_takes_codes(out);
    if (progress->terminal)
        progress->messages = kprof_log_set_sink(clear_then_log, progress);
}

static void set_kernel(kprof_progress *progress, const char *kernel)
{
    if (progress->start_s == 0)
        progress->start_s = monotonic_s();
    KPROF_AUTO_FREE char *clean = kprof_clean_text(kernel);
    kprof_fit_text(progress->kernel, sizeof progress->kernel, clean);
}

static void tell_as_ncu(kprof_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Scripts look for these lines while the application runs. */
static void tell_as_ncu(kprof_progress *progress, const char *format, ...)
{
    va_list arguments;
    if (!progress->as_ncu)
        return;
    clear_line(progress);
    fputs("==PROF== ", progress->as_ncu);
    va_start(arguments, format);
    vfprintf(progress->as_ncu, format, arguments);
    va_end(arguments);
    fputc('\n', progress->as_ncu);
    fflush(progress->as_ncu);
}

void kprof_progress_connect(kprof_progress *progress, int64_t pid, const char *executable)
{
    KPROF_AUTO_FREE char *clean = kprof_clean_text(executable);
    tell_as_ncu(progress, "Connected to process %lld (%s)", (long long)pid, clean);
}

void kprof_progress_disconnect(kprof_progress *progress, int64_t pid)
{
    tell_as_ncu(progress, "Disconnected from process %lld", (long long)pid);
}

static void tell_launch(kprof_progress *progress)
{
    char name[NAME_OF_NCU + 1];
    const bool fits = strlen(progress->kernel) <= NAME_OF_NCU;
    kprof_fit_text(name, fits ? sizeof name : sizeof name - strlen("..."), progress->kernel);
    tell_as_ncu(progress, "Profiling \"%s%s\" - %llu: 0%%....50%%....100%% - %u pass%s", name, fits ? "" : "...",
                (unsigned long long)progress->launches, progress->pass_count, kprof_ending(progress->pass_count, "es"));
}

void kprof_progress_note(kprof_progress *progress, const char *kernel, const kprof_progress_record *record)
{
    set_kernel(progress, kernel);
    progress->open = record->open;
    progress->pass = record->pass;
    progress->pass_count = record->pass_count;
}

void kprof_progress_launch(kprof_progress *progress, const char *kernel, uint32_t pass_count)
{
    set_kernel(progress, kernel);
    progress->open = 0;
    progress->pass = 0;
    progress->pass_count = pass_count;
    progress->done++;
    tell_launch(progress);
}

static void draw(kprof_progress *progress, double now_s)
{
    char line[256];
    struct winsize size = {0};
    kprof_progress_format(progress, now_s, line, sizeof line);
    /* A line that wraps could not be overwritten. */
    if (ioctl(fileno(progress->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 8)
        kprof_cut_text(line, size.ws_col - 8u);
    fprintf(progress->out, "\rkprof: %s\033[K", line);
    fflush(progress->out);
    progress->drawn = true;
}

void kprof_progress_code(kprof_progress *progress, size_t number, size_t count)
{
    progress->code = number;
    progress->code_count = count;
    if (progress->out && progress->terminal)
        draw(progress, monotonic_s());
    else
        kprof_progress_tick(progress);
}

void kprof_progress_tick(kprof_progress *progress)
{
    double now_s = monotonic_s();
    double period_s = progress->terminal ? TERMINAL_PERIOD_S : MESSAGE_PERIOD_S;
    if (!progress->out || progress->start_s == 0 || now_s - progress->last_s < period_s)
        return;
    progress->last_s = now_s;
    if (progress->terminal) {
        draw(progress, now_s);
        return;
    }
    char line[256];
    kprof_progress_format(progress, now_s, line, sizeof line);
    kprof_log(KPROF_LOG_INFO, "%s", line);
}

void kprof_progress_end(kprof_progress *progress)
{
    clear_line(progress);
    if (progress->terminal)
        kprof_log_set_sink(progress->messages.sink, progress->messages.user);
    progress->out = NULL;
}
