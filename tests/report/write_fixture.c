/* Writes a report of the fixtures to the path given, for tests in other languages. */
#include "diff_fixture.h"
#include "fixture.h"
#include "trace_fixture.h"

#include <string.h>

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    if (argc == 2) {
        fixture_write(argv[1]);
    } else if (argc == 3 && strcmp(what, "multiplexed") == 0) {
        fixture_write_multiplexed(argv[1]);
    } else if (argc == 3 && strcmp(what, "census") == 0) {
        fixture_write_census(argv[1]);
    } else if (argc == 3 && strcmp(what, "trace") == 0) {
        trace_fixture_write(argv[1]);
    } else if (argc >= 3 && argc <= 5 && (strcmp(what, "before") == 0 || strcmp(what, "after") == 0)) {
        const bool is_new = strcmp(what, "after") == 0;
        diff_fixture_write(argv[1], &(diff_run){.is_new = is_new,
                                                .seed = is_new ? 2 : 1,
                                                .command_line = argc > 3 ? argv[3] : NULL,
                                                .chip = argc > 4 ? argv[4] : NULL});
    } else {
        fprintf(stderr, "usage: write_fixture FILE [multiplexed|census|trace|before|after [COMMAND_LINE [CHIP]]]\n");
        return 2;
    }
    return 0;
}
