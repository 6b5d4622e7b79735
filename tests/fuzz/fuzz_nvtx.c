/* --nvtx-include and --nvtx-exclude: the first two lines; the others are texts of ranges, as anybody's report has
 * them. */
#include "fuzz.h"

#include "core/nvtx.h"

#include <string.h>

static void match(const kprof_nvtx_filter *filter, const char *text)
{
    kprof_nvtx_parsed parsed, again;
    KPROF_AUTO(kprof_strbuf) written = KPROF_STRBUF_INIT;
    FUZZ_CHECK(kprof_nvtx_parse_text(text, &parsed));
    const kprof_nvtx_ranges ranges = {parsed.items, parsed.count};
    if (filter)
        (void)kprof_nvtx_filter_match(filter, &ranges, 0);
    kprof_nvtx_put_text(&ranges, &written);
    FUZZ_CHECK(!written.failed);
    FUZZ_CHECK(kprof_nvtx_innermost_length(text) <= strlen(text));
    FUZZ_CHECK(kprof_nvtx_parse_text(written.data ? written.data : "", &again));
    FUZZ_CHECK(again.count <= parsed.count);
    kprof_nvtx_parsed_free(&parsed);
    kprof_nvtx_parsed_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    kprof_strlist lists[2] = {KPROF_STRLIST_INIT, KPROF_STRLIST_INIT};
    for (int i = 0; i < 2; i++) {
        char *line = fuzz_take_line(&input);
        if (line)
            FUZZ_CHECK(kprof_strlist_add(&lists[i], line));
        free(line);
    }
    kprof_nvtx_filter *filter;
    (void)!kprof_nvtx_filter_new((const char *const[]){"--nvtx-include", "--nvtx-exclude"}, &lists[0], &lists[1],
                                 &filter);
    for (char *text; (text = fuzz_take_line(&input));) {
        match(filter, text);
        free(text);
    }
    kprof_nvtx_filter_free(filter);
    kprof_strlist_free(&lists[0]);
    kprof_strlist_free(&lists[1]);
    return 0;
}
