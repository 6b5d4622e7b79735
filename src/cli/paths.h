/* Finds kprof's own files from the place of the executable, never from the current directory. */
#pragma once

#include "cli/options.h"
#include "report/report.h"

/* The injection library: --injection-path, or beside the installed or the built executable. Caller frees *out.
 * UNSUPPORTED with a message that lists where it was looked for. */
kprof_status kprof_injection_locate(const kprof_options *options, char **out) KPROF_MUST_CHECK;
/* The libraries to preload, from beside the injection library, with colons between them; another tool of a process that
 * starts unarmed needs one more. Caller frees; NULL: there is none, or the loader could not be told its path. */
char *kprof_preloaded_find(const char *injection, bool starts_unarmed);

/* Append the folder of the shipped sets, sections and findings, then each --section-folder. UNSUPPORTED as above. */
kprof_status kprof_catalog_folders(const kprof_options *options, kprof_strlist *out) KPROF_MUST_CHECK;

/* Is there a folder of shipped sets? A kprof that was copied alone can still print reports. */
bool kprof_catalog_is_there(void);
/* Load the shipped sets, sections and findings, then those of --section-folder. Free with kprof_catalog_free. */
kprof_status kprof_catalog_locate(const kprof_options *options, kprof_catalog **out) KPROF_MUST_CHECK;

/* The findings for printing a report, which does not store them. */
typedef struct kprof_finding_source {
    kprof_catalog *catalog; /* NULL: no findings are looked for */
    kprof_finding_list findings;
} kprof_finding_source;
/* Load them as the options say. A kprof that was copied alone has no set files, and looks for none unless it is told
 * to. To be freed with kprof_findings_free, also after a failure. */
kprof_status kprof_findings_locate(const kprof_options *options, kprof_finding_source *out) KPROF_MUST_CHECK;
void kprof_findings_free(kprof_finding_source *source); /* members */

/* Append a path as a pattern that stands for itself. */
void kprof_export_path_quote(const char *path, kprof_strbuf *out);
/* Expand %h (host), %p (kprof's pid), %q{NAME} (environment), %i (this number) and %% in the name of a file to write,
 * which was given to `option`. Caller frees *out. USAGE on another % or an unset variable. */
kprof_status kprof_name_expand(const char *option, const char *pattern, unsigned number, char **out) KPROF_MUST_CHECK;
/* Does it have a %i? "%%i" has none. */
bool kprof_name_is_numbered(const char *pattern);
/* Expand with the lowest number that gives a new file. */
kprof_status kprof_name_expand_to_new(const char *option, const char *pattern, char **out) KPROF_MUST_CHECK;
/* The same for a report, the value of --export: append ".kprof" where it is missing. */
kprof_status kprof_export_path_expand(const char *pattern, char **out) KPROF_MUST_CHECK;
/* Expand --export, and tell how to create the report there. With %i also create the file, empty, so that runs at the
 * same time get numbers of their own. OUTPUT when it cannot be created. */
kprof_status kprof_export_path_claim(const kprof_options *options, char **out,
                                     kprof_create_mode *mode) KPROF_MUST_CHECK;

/* Is this a link named ncu, or as ncu was called before 2020? Then scripts made for ncu run unchanged: --csv has ncu's
 * columns, text goes to stdout also where that is no terminal, and reports are named x.ncu-rep. */
bool kprof_is_called_ncu(void);
/* Does the name end in ".kprof"? */
bool kprof_has_extension(const char *path);
/* Does the file begin as reports do? */
bool kprof_is_report(const char *path);
/* The report that a user means by `name`: that file, or NAME.kprof, which --export NAME has written, where `name`
 * itself is no report. Caller frees. */
char *kprof_report_path(const char *name);
/* Return the length of a path without the extension that ncu or nsys gives reports, such as ".nsys-rep". */
size_t kprof_length_without_other_extension(const char *path);
/* Open that report; *out is NULL on failure. */
kprof_status kprof_report_open_named(const char *name, kprof_report **out) KPROF_MUST_CHECK;
