/* Expands the words of --metrics: full names, base names, regex:, breakdown:, group:, aliases. */
#pragma once

#include "metricset/catalog.h"

/* Metrics that --metrics may stand for, and base names of them. CUPTI takes seconds to schedule more of them, and their
 * values would fill a section that no page could show. */
enum { KPROF_MOST_METRICS = 2048, KPROF_MOST_BASES = 1024 };
/* Patterns in --metrics: to look one up among all names takes up to 0.1 s. */
enum { KPROF_MOST_PATTERNS = 32 };
/* Names in the sections that are asked for. Each is compared with those before. kprof's own are 500. */
enum { KPROF_MOST_CANDIDATES = 16384 };

/* Is it "breakdown:THROUGHPUT" or "group:SECTION", which stand for several names? */
bool kprof_is_group(const char *word);

/* Append every base name of the chip: of counters, ratios and throughputs. */
kprof_status kprof_all_base_metrics(kprof_host *host, kprof_strlist *out) KPROF_MUST_CHECK;
/* Append the full names of a base name: all, or those with the shortest suffixes (".avg", ".max", ".min", ".sum"). */
kprof_status kprof_full_names(kprof_host *host, const char *base, bool first_level,
                              kprof_strlist *out) KPROF_MUST_CHECK;

/* Append "; did you mean ...?" with the existing name that is nearest to an unknown one: with another suffix when the
 * base exists, else of another base or of a launch. If none is near, tell where all names are listed. */
kprof_status kprof_tell_nearest_name(kprof_host *host, const char *word, kprof_strbuf *out) KPROF_MUST_CHECK;
/* UNKNOWN_NAME, with the nearest name or alias, for a word of --metrics that stands for nothing on the chip. */
kprof_status kprof_fail_unknown_metric(const kprof_catalog *catalog, kprof_host *host,
                                       const char *word) KPROF_MUST_CHECK;

/* Append the metrics of instructions that a section has on the chip of `host`, as kprof_instruction_select does. */
void kprof_section_instructions(const kprof_section_definition *definition, kprof_host *host, kprof_strlist *out);
/* Expand one word into full names, appended to `out`: collectable ones, launch__* names, and words of instructions as
 * lists show them. UNKNOWN_NAME, with the nearest name, when it gives none. */
kprof_status kprof_select_metrics(const kprof_catalog *catalog, kprof_host *host, const char *word,
                                  kprof_strlist *out) KPROF_MUST_CHECK;
