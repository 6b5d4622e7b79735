/* The table of options as the rows of cli/option_rows.h make it. */
#include "cli/commands.h"
#include "core/config.h"
#include "report/report.h"

#include <stddef.h>

#define RUN    KPROF_IN(profile)
#define REPORT KPROF_IN(report)
#define PLAN   KPROF_IN(plan)
#define LIST   KPROF_IN(list)
#define TELL   KPROF_IN(explain)
#define SAVE   KPROF_IN(recover)
#define DIFF   KPROF_IN(diff)
#define MERGE  KPROF_IN(merge)
#define DOCTOR KPROF_IN(doctor)
#define CTL    KPROF_IN(ctl)
#define EXPORT KPROF_IN(export)
#define TRACE  KPROF_IN(trace)
#define STATS  KPROF_IN(stats)
#define ALL    KPROF_IN_ALL
/* Those that print, with a format of their choice; kprof merge prints nothing, and kprof export what --to says. */
#define FORMATTING   (ALL & ~(MERGE | EXPORT))
#define OTHER_FORMAT (FORMATTING | KPROF_IGNORED_IN(EXPORT)) /* which tells of --to */
/* A whole line may be given to --plan and lists; most of its options change nothing there. */
#define RUNNING  (RUN | KPROF_IGNORED_IN(PLAN | LIST))
#define PLANNING (RUN | PLAN | KPROF_IGNORED_IN(LIST))
#define SHOWING  (RUN | REPORT | KPROF_IGNORED_IN(PLAN | LIST))
#define PRINTING (SHOWING | DIFF)
#define CHOOSING (PRINTING | EXPORT)

#define PAGE_CHOICE(id, name, reports) {#name, KPROF_PAGE_##id},
#define PAGE_WORD(id, name, reports)   "|" #name
#define PAGE_WORDS                     &(KPROF_PAGES(PAGE_WORD))[1]
static const kprof_option_choice pages[] = {KPROF_PAGES(PAGE_CHOICE){NULL, 0}};

const kprof_option_row kprof_option_rows[] = {
#define OPTION(place, option_type, option_field, option_name, in, option_help, ...)                                    \
    {.name = option_name,                                                                                              \
     .type = KPROF_OPTION_##option_type,                                                                               \
     .field = offsetof(kprof_options, KPROF_PATH_##place(option_field)),                                               \
     .commands = in,                                                                                                   \
     .help = option_help,                                                                                              \
     __VA_ARGS__},
#include "cli/option_rows.h"
#undef OPTION
};

const size_t kprof_option_row_count = sizeof kprof_option_rows / sizeof *kprof_option_rows;
_Static_assert(sizeof kprof_option_rows / sizeof *kprof_option_rows <= KPROF_OPTIONS_MAX,
               "kprof_options.given has an element for each row");
