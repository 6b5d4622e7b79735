/* A cubin, behind the letter "c", or behind "l" what nvdisasm printed of tests/fixtures/code/loop.cubin. */
#include "fuzz.h"

#include "code/code.h"
#include "code/listing.h"

static uint8_t *cubin;
static size_t cubin_size;

void fuzz_set_up(void)
{
    cubin = fuzz_read_file(KPROF_CODE_FIXTURES "/loop.cubin", &cubin_size);
}

/* Everything refers to something. */
static void check_instruction(const kprof_code *code, const kprof_code_function *function, size_t number)
{
    const kprof_code_instruction *instruction = &function->instructions[number];
    FUZZ_CHECK(instruction->offset == number * KPROF_CODE_INSTRUCTION_BYTES);
    FUZZ_CHECK(instruction->frame_count <= KPROF_CODE_MOST_DEPTH);
    for (size_t i = 0; i < instruction->frame_count; i++) {
        FUZZ_CHECK(instruction->first_frame + i < code->frame_count);
        const kprof_code_frame *frame = &code->frames[instruction->first_frame + i];
        FUZZ_CHECK(frame->file < code->files.count && frame->line > 0);
        FUZZ_CHECK(frame->name == KPROF_CODE_NO_NAME || frame->name < code->names.count);
    }
    for (size_t i = 0; i < instruction->wait_count; i++) {
        FUZZ_CHECK(instruction->first_wait + i < code->wait_count);
        FUZZ_CHECK(code->waits[instruction->first_wait + i] < function->bytes);
    }
}

static void check(const kprof_code *code)
{
    for (size_t i = 0; i < code->function_count; i++)
        for (size_t j = 0; j < code->functions[i].count; j++)
            check_instruction(code, &code->functions[i], j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    kprof_code code;
    bool is_listing = fuzz_take_byte(&input) == 'l';
    /* Its own memory shows who reads behind it. */
    KPROF_AUTO_FREE char *bytes = fuzz_take_text(&input, input.left);
    size_t length = size > 0 ? size - 1 : 0;
    kprof_status status =
        is_listing ? kprof_code_read(cubin, cubin_size, NULL, &code) : kprof_code_read(bytes, length, NULL, &code);
    FUZZ_CHECK(status == KPROF_OK || (status == KPROF_BAD_REPORT && !is_listing));
    if (is_listing)
        kprof_code_take_listing(&code, bytes, length);
    check(&code);
    kprof_code_free(&code);
    return 0;
}
