/* The tables of a report that core/fields.h lists: made, filled and read by their columns. A row is a struct of
 * report/model/model.h. */
#ifndef KPROF_REPORT_ROWS_H
#define KPROF_REPORT_ROWS_H

#include "report/store/store.h"

/* Name of the table, and struct of its rows. */
#define KPROF_ROWS_MAP(X)                                                                                              \
    X(PROCESS, process, kprof_model_process)                                                                           \
    X(DEVICE, device, kprof_model_device)                                                                              \
    X(KERNEL, kernel, kprof_model_kernel)                                                                              \
    X(METRIC, metric, kprof_model_metric)                                                                              \
    X(LEFT_OUT, left_out, kprof_model_left_out)                                                                        \
    X(MESSAGE, message, kprof_model_message)                                                                           \
    X(LAUNCH, launch, kprof_launch_row)

#define KPROF_ROWS_ENUM(NAME, name, row) KPROF_ROWS_##NAME,
typedef enum kprof_rows { KPROF_ROWS_MAP(KPROF_ROWS_ENUM) KPROF_ROWS_COUNT } kprof_rows;

/* The statement that makes a table in a report of this version; NULL when out of memory. Caller frees. */
char *kprof_rows_definition(const char *name, int version);

/* Add a row, of which all texts are borrowed. *id is that of the row; below 0, the row gets the next one and *id tells
 * it. */
kprof_status kprof_rows_insert(kprof_report *report, kprof_rows table, const void *row, int64_t *id) KPROF_MUST_CHECK;
/* The id of the kernel of which the spool tells the same; 0: there is none. */
struct kprof_model_kernel;
kprof_status kprof_rows_find_kernel(kprof_report *report, const struct kprof_model_kernel *kernel,
                                    int64_t *id) KPROF_MUST_CHECK;

/* Append all that a row tells, as a text that no other row has. */
void kprof_rows_describe(kprof_rows table, const void *row, kprof_strbuf *out);
/* Append ", NAME" for each column that refers to no other row. */
void kprof_rows_list_plain(kprof_rows table, kprof_strbuf *out);

/* Fill `row` from `columns`, the first of which is the id. Texts are those of kprof_store_text, and owned by the row.
 * Numbers that the report is too old to have are 0, or -1 if they are optional. False when out of memory. */
bool kprof_rows_read(const kprof_report *report, kprof_rows table, sqlite3_stmt *columns, void *row);
/* Free the texts of a row that was read. */
void kprof_rows_free(kprof_rows table, const void *row);

/* Read all rows of all tables but that of the launches into the model; free them, also after a failure. */
struct kprof_model;
kprof_status kprof_rows_load(kprof_report *report, struct kprof_model *model) KPROF_MUST_CHECK;
void kprof_rows_unload(struct kprof_model *model);

#endif
