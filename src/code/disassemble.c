/* Asks one nvdisasm after the other for the text of the functions, until one prints it. */
#include "code/code.h"

#include "code/listing.h"
#include "code/nvdisasm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More programs are not tried, and for more functions all of the cubin is printed. */
enum { MOST_PROGRAMS = 8, MOST_SYMBOLS = 1000 };

/* "-fun" wants the numbers of symbols. */
static void put_symbols(const kprof_code *code, kprof_strbuf *out)
{
    for (size_t i = 0; i < code->function_count && code->function_count <= MOST_SYMBOLS; i++)
        kprof_strbuf_printf(out, "%s%zu", i > 0 ? "," : "", code->functions[i].symbol);
}

static bool has_text(const kprof_code *code)
{
    for (size_t i = 0; i < code->function_count; i++)
        for (size_t j = 0; j < code->functions[i].count; j++)
            if (code->functions[i].instructions[j].text)
                return true;
    return false;
}

/* Returns KPROF_OK where the program printed a text of the functions, and otherwise says in `reason` why not. */
static kprof_status try_program(kprof_code *code, const char *cubin_path, const char *program, kprof_strbuf *reason)
{
    static const kprof_nvdisasm_limits limits = {KPROF_CODE_MOST_TEXT_BYTES, KPROF_CODE_MOST_SECONDS * 1000000000};
    kprof_strbuf symbols = KPROF_STRBUF_INIT, text = KPROF_STRBUF_INIT;
    put_symbols(code, &symbols);
    char *arguments[] = {(char *)program, "-c", (char *)cubin_path, NULL, NULL, NULL};
    if (symbols.length > 0) {
        arguments[2] = "-fun";
        arguments[3] = symbols.data;
        arguments[4] = (char *)cubin_path;
    }
    kprof_status status = symbols.failed ? KPROF_NO_MEMORY : kprof_nvdisasm_run(arguments, &limits, &text, reason);
    if (status == KPROF_OK && text.length > 0)
        status = kprof_code_take_listing(code, text.data, text.length);
    if (status == KPROF_OK && !has_text(code)) {
        kprof_strbuf_puts(reason, "it printed none of the code");
        status = KPROF_INTERNAL;
    }
    kprof_strbuf_free(&symbols);
    kprof_strbuf_free(&text);
    return status;
}

/* The first reason is kept: that of the program which should have printed it. */
static void tell(kprof_code *code, const char *program, const char *reason)
{
    if (!code->text_state[0])
        snprintf(code->text_state, sizeof code->text_state, "%s: %s", program, reason);
}

kprof_status kprof_code_disassemble(kprof_code *code, const char *cubin_path, const char *nvdisasm)
{
    kprof_strlist programs = KPROF_STRLIST_INIT;
    if (!(nvdisasm ? kprof_strlist_add(&programs, nvdisasm) : kprof_nvdisasm_find(&programs))) {
        kprof_strlist_free(&programs);
        return KPROF_NO_MEMORY;
    }
    kprof_status status = KPROF_INTERNAL;
    code->text_state[0] = '\0';
    for (size_t i = 0; i < programs.count && i < MOST_PROGRAMS && status == KPROF_INTERNAL; i++) {
        kprof_strbuf reason = KPROF_STRBUF_INIT;
        status = try_program(code, cubin_path, programs.items[i], &reason);
        if (status == KPROF_INTERNAL)
            tell(code, programs.items[i], reason.data ? reason.data : "");
        kprof_strbuf_free(&reason);
    }
    if (programs.count == 0)
        snprintf(code->text_state, sizeof code->text_state, "nvdisasm was not found");
    if (status == KPROF_OK)
        code->text_state[0] = '\0';
    kprof_strlist_free(&programs);
    return status == KPROF_NO_MEMORY ? status : KPROF_OK;
}
