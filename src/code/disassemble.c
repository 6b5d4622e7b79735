/* Asks one nvdisasm after the other for the text of the functions, until one prints it. */
#include "code/code.h"

#include "code/listing.h"
#include "code/nvdisasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More programs are not tried, and for more functions all of the cubin is printed. */
enum { MOST_PROGRAMS = 8, MOST_SYMBOLS = 1000 };

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

/* Other cubins do not wait for a program that does not end. */
static void drop(kprof_disassemblers *disassemblers, size_t program, const char *reason)
{
    kprof_strlist *programs = &disassemblers->programs;
    if (!disassemblers->gone[0])
        snprintf(disassemblers->gone, sizeof disassemblers->gone, "%s: %s", programs->items[program], reason);
    free(programs->items[program]);
    programs->count--;
    memmove(&programs->items[program], &programs->items[program + 1],
            (programs->count - program) * sizeof *programs->items);
}

void kprof_code_disassemble(kprof_code *code, const char *cubin_path, kprof_disassemblers *disassemblers)
{
    kprof_strlist *programs = &disassemblers->programs;
    if (!disassemblers->has_looked && disassemblers->given)
        kprof_strlist_add(programs, disassemblers->given);
    else if (!disassemblers->has_looked)
        kprof_nvdisasm_find(programs);
    disassemblers->has_looked = true;
    kprof_status status = KPROF_INTERNAL;
    snprintf(code->text_state, sizeof code->text_state, "%s", disassemblers->gone);
    for (size_t i = 0, tried = 0; i < programs->count && tried < MOST_PROGRAMS && status == KPROF_INTERNAL; tried++) {
        KPROF_AUTO(kprof_strbuf) reason = KPROF_STRBUF_INIT;
        const int64_t limit_ns =
            disassemblers->limit_ns ? disassemblers->limit_ns : KPROF_CODE_MOST_SECONDS * 1000000000;
        status = try_program(code, &(trial){programs->items[i], cubin_path, limit_ns}, &reason);
        const char *why = reason.data ? reason.data : "";
        if (status == KPROF_INTERNAL)
            tell(code, programs->items[i++], why);
        if (status == KPROF_UNSUPPORTED) {
            tell(code, programs->items[i], why);
            drop(disassemblers, i, why);
            status = KPROF_INTERNAL;
        }
    }
    if (status == KPROF_INTERNAL && !code->text_state[0])
        snprintf(code->text_state, sizeof code->text_state,
                 "nvdisasm, which CUDA toolkits have, was not found; --nvdisasm FILE tells the run where it is");
    if (status == KPROF_OK)
        code->text_state[0] = '\0';
}

void kprof_disassemblers_free(kprof_disassemblers *disassemblers)
{
    kprof_strlist_free(&disassemblers->programs);
}
