/* Reads, at the end of a run, the cubins that its processes left, and stores the code of measured functions. */
#pragma once

#include "report/report.h"
#include "report/store/source_file.h"

typedef struct kprof_code_options {
    int folder;                 /* of the session: cubins are opened in it, and none elsewhere */
    const char *nvdisasm;       /* NULL: the one that is found */
    bool keeps_source;          /* store the texts of source files */
    bool keeps_sass;            /* store the cubins */
    kprof_source_places places; /* where source files are looked for that are no longer where they were compiled */
    /* Store the texts of files below these folders alone; NULL: of all. Cubins from elsewhere may name any file. */
    const kprof_strlist *source_folders;
    /* Called before each cubin, which nvdisasm may take long for; NULL: nobody asks. */
    void (*tell)(void *user, size_t number, size_t count);
    void *user;
} kprof_code_options;

/* Store instructions, lines, files and waits of all functions that have values; where there are none, the state of the
 * code says why. Only a full disk and want of memory are failures. */
kprof_status kprof_report_read_code(kprof_report *report, const kprof_code_options *options) KPROF_MUST_CHECK;
