/* A report file of any bytes. Two bytes in front choose how it is printed. */
#include "fuzz.h"

#include "report_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256];
    fuzz_input input = {data, size};
    unsigned how = fuzz_take_byte(&input);
    how |= (unsigned)fuzz_take_byte(&input) << 8;
    snprintf(path, sizeof path, "%s", fuzz_path("input.kprof"));
    fuzz_write_file(path, input.data, input.left);
    fuzz_try_report(path, how);
    return 0;
}
