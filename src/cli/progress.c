/* The status line of a profiling run. */
#include "cli/progress.h"
#include "cli/output.h"
#include "core/clean.h"
#include "core/log.h"
#include "core/monotonic.h"
#include "core/strbuf.h"
#include "report/model/number.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#define TERMINAL_PERIOD_S 0.1
#define MESSAGE_PERIOD_S  5.0
#define NAME_OF_NCU       32 /* bytes of a kernel's name that ncu prints; of a longer one the last three are dots */

static double monotonic_s(void)
{
    return 1e-9 * (double)kprof_monotonic_ns();
}

static void put_duration(double seconds, kprof_strbuf *out)
{
    if (seconds < 60)
        kprof_strbuf_printf(out, "%.0f s", seconds);
    else if (seconds < 3600)
        kprof_strbuf_printf(out, "%d:%02d min", (int)(seconds / 60), (int)seconds % 60);
    else
        kprof_strbuf_printf(out, "%d:%02d h", (int)(seconds / 3600), (int)(seconds / 60) % 60);
}

char *kprof_progress_line(const kprof_progress *progress, double now_s)
{
    if (progress->code)
        return kprof_strprintf("reading the code of module %zu of %zu", progress->code, progress->code_count);
    kprof_strbuf line = KPROF_STRBUF_INIT;
    const double each_s = progress->done ? (now_s - progress->start_s) / (double)progress->done : 0;
    if (progress->goal)
        kprof_strbuf_printf(&line, "%" PRIu64 " of %" PRIu64 " launches", progress->done, progress->goal);
    else
        kprof_strbuf_printf(&line, "%" PRIu64 " launch%s", progress->done, kprof_ending(progress->done, "es"));
    if (progress->open > 1)
        kprof_strbuf_printf(&line, " and %" PRIu64 " or more not stored yet", progress->open);
    if (progress->kernel[0])
        kprof_strbuf_printf(&line, ", %s", progress->kernel);
    if (progress->pass)
        kprof_strbuf_printf(&line, ", pass %u of %u", progress->pass, progress->pass_count);
    else if (progress->pass_count)
        kprof_strbuf_printf(&line, ", %u pass%s", progress->pass_count, kprof_ending(progress->pass_count, "es"));
    if (progress->done)
        kprof_strbuf_printf(&line, each_s < 1 ? ", %.3g ms per launch" : ", %.3g s per launch",
                            each_s < 1 ? 1e3 * each_s : each_s);
    if (progress->done && progress->goal > progress->done) {
        kprof_strbuf_puts(&line, ", about ");
        put_duration(each_s * (double)(progress->goal - progress->done), &line);
        kprof_strbuf_puts(&line, " left");
    }
    return kprof_strbuf_take(&line);
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
    tell_as_ncu(progress, "Connected to process %ld (%s)", pid, clean);
}

void kprof_progress_disconnect(kprof_progress *progress, int64_t pid)
{
    tell_as_ncu(progress, "Disconnected from process %ld", pid);
}

void kprof_progress_note(kprof_progress *progress, const char *kernel, const kprof_progress_record *record)
{
    if (progress->start_s == 0)
        progress->start_s = monotonic_s();
    KPROF_AUTO_FREE char *clean = kprof_clean_text(kernel);
    kprof_fit_text(progress->kernel, sizeof progress->kernel, clean);
    progress->open = record->open;
    progress->pass = record->pass;
    progress->pass_count = record->pass_count;
}

void kprof_progress_launch(kprof_progress *progress, const char *kernel, uint32_t pass_count)
{
    char name[NAME_OF_NCU + 1];
    kprof_progress_note(progress, kernel, &(kprof_progress_record){.pass_count = pass_count});
    progress->done++;
    const bool fits = strlen(progress->kernel) <= NAME_OF_NCU;
    kprof_fit_text(name, fits ? sizeof name : sizeof name - strlen("..."), progress->kernel);
    tell_as_ncu(progress, "Profiling \"%s%s\" - %" PRIu64 ": 0%%....50%%....100%% - %u pass%s", name, fits ? "" : "...",
                progress->launches, pass_count, kprof_ending(pass_count, "es"));
}

static void draw(kprof_progress *progress, double now_s)
{
    struct winsize size = {0};
    KPROF_AUTO_FREE char *line = kprof_progress_line(progress, now_s);
    /* A line that wraps could not be overwritten. */
    if (ioctl(fileno(progress->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 8)
        kprof_cut_text(line, size.ws_col - 8u);
    fprintf(progress->out, "\rkprof: %s\033[K", line);
    fflush(progress->out);
    progress->drawn = true;
}

void kprof_progress_code(void *user, size_t number, size_t count)
{
    kprof_progress *progress = user;
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
    KPROF_AUTO_FREE char *line = kprof_progress_line(progress, now_s);
    kprof_log(KPROF_LOG_INFO, "%s", line);
}

void kprof_progress_end(kprof_progress *progress)
{
    clear_line(progress);
    if (progress->terminal)
        kprof_log_set_sink(progress->messages.sink, progress->messages.user);
    progress->out = NULL;
}
