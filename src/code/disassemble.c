/* Asks one nvdisasm after the other for the text of the functions, until one prints it. */
#include "code/code.h"

#include "code/listing.h"
#include "code/nvdisasm.h"
#include "core/hold.h"

#include <stdio.h>

/* For more functions all of the cubin is printed. */
enum { MOST_SYMBOLS = 1000 };

static bool has_text(const kprof_code *code)
{
    for (size_t i = 0; i < code->function_count; i++)
        for (size_t j = 0; j < code->functions[i].count; j++)
            if (code->functions[i].instructions[j].text)
                return true;
    return false;
}

/* A question to a program. */
typedef struct trial {
    const char *program, *cubin;
    int64_t limit_ns;
} trial;

/* Returns KPROF_OK where the program printed a text of the functions, and otherwise says in `reason` why not. `symbols`
 * empty: it prints all of the cubin. */
static kprof_status run_program(kprof_code *code, const trial *of, const kprof_strbuf *symbols, kprof_strbuf *reason)
{
    const kprof_child_limits limits = {.most_bytes = KPROF_CODE_MOST_TEXT_BYTES, .limit_ns = of->limit_ns};
    char *const program_and_cubin[] = {(char *)of->program, (char *)of->cubin};
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    char *const some[] = {program_and_cubin[0], "-c", "-fun", symbols->data, program_and_cubin[1], NULL};
    char *const all[] = {program_and_cubin[0], "-c", program_and_cubin[1], NULL};
    kprof_status status = kprof_nvdisasm_run(symbols->length > 0 ? some : all, &limits, &text, reason);
    if (status == KPROF_OK && text.length > 0)
        kprof_code_take_listing(code, text.data, text.length);
    if (status == KPROF_OK && !has_text(code)) {
        kprof_strbuf_puts(reason, "it printed none of the code");
        status = KPROF_INTERNAL;
    }
    return status;
}

/* A program that does not find the symbols may still print all. */
static kprof_status try_program(kprof_code *code, const trial *of, kprof_strbuf *reason)
{
    KPROF_AUTO(kprof_strbuf) symbols = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < code->function_count && code->function_count <= MOST_SYMBOLS; i++)
        kprof_strbuf_printf(&symbols, "%s%zu", i > 0 ? "," : "", code->functions[i].symbol); /* as "-fun" wants them */
    kprof_status status = run_program(code, of, &symbols, reason);
    if (status == KPROF_INTERNAL && symbols.length > 0) {
        kprof_strbuf_clear(&symbols);
        kprof_strbuf_clear(reason);
        status = run_program(code, of, &symbols, reason);
    }
    return status;
}

/* The first reason is kept: that of the program which should have printed it. */
static void tell(kprof_code *code, const char *program, const char *reason)
{
    if (!code->text_state[0])
        snprintf(code->text_state, sizeof code->text_state, "%s: %s", program, reason);
}

/* Several threads may ask the disassemblers of a run. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Look for programs, once, and take over why the first one is gone. */
static void begin(kprof_code *code, kprof_disassemblers *disassemblers)
{
    KPROF_HOLD(mutex);
    if (!disassemblers->has_looked && disassemblers->given)
        kprof_strlist_add(&disassemblers->programs, disassemblers->given);
    else if (!disassemblers->has_looked)
        kprof_nvdisasm_find(&disassemblers->programs);
    disassemblers->has_looked = true;
    snprintf(code->text_state, sizeof code->text_state, "%s", disassemblers->gone);
}

/* The next program from *number on that may be asked; NULL: there is none. */
static const char *next_program(const kprof_disassemblers *disassemblers, size_t *number)
{
    KPROF_HOLD(mutex);
    while (*number < KPROF_CODE_MOST_PROGRAMS && disassemblers->is_gone[*number])
        ++*number;
    return *number < KPROF_CODE_MOST_PROGRAMS && *number < disassemblers->programs.count
               ? disassemblers->programs.items[*number]
               : NULL;
}

/* Cubins that are not begun yet do not wait for a program that does not end. */
static void drop(kprof_disassemblers *disassemblers, size_t number, const char *reason)
{
    KPROF_HOLD(mutex);
    disassemblers->is_gone[number] = true;
    if (!disassemblers->gone[0])
        snprintf(disassemblers->gone, sizeof disassemblers->gone, "%s: %s", disassemblers->programs.items[number],
                 reason);
}

void kprof_code_disassemble(kprof_code *code, const char *cubin_path, kprof_disassemblers *disassemblers)
{
    const int64_t limit_ns = disassemblers->limit_ns ? disassemblers->limit_ns : KPROF_CODE_MOST_SECONDS * 1000000000;
    begin(code, disassemblers);
    const char *program;
    for (size_t i = 0; (program = next_program(disassemblers, &i)); i++) {
        KPROF_AUTO(kprof_strbuf) reason = KPROF_STRBUF_INIT;
        const kprof_status status = try_program(code, &(trial){program, cubin_path, limit_ns}, &reason);
        const char *why = reason.data ? reason.data : "";
        if (status == KPROF_OK)
            code->text_state[0] = '\0';
        if (status != KPROF_INTERNAL && status != KPROF_UNSUPPORTED)
            return;
        tell(code, program, why);
        if (status == KPROF_UNSUPPORTED)
            drop(disassemblers, i, why);
    }
    if (!code->text_state[0])
        snprintf(code->text_state, sizeof code->text_state,
                 "nvdisasm, which CUDA toolkits have, was not found; --nvdisasm FILE tells the run where it is");
}

void kprof_disassemblers_free(kprof_disassemblers *disassemblers)
{
    kprof_strlist_free(&disassemblers->programs);
}
