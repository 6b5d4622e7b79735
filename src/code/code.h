/* The instructions of the functions in a cubin: where they stand in the source, from its line table, and their text,
 * from nvdisasm. Cubins come from anywhere, and so does what nvdisasm prints of them: all is bounded. */
#pragma once

#include "core/status.h"
#include "core/strbuf.h"

/* Since Volta an instruction has 16 bytes. */
#define KPROF_CODE_INSTRUCTION_BYTES 16

/* Limits. What goes beyond them is left out, and the states of kprof_code say so. */
#define KPROF_CODE_MOST_BYTES        ((size_t)512 << 20) /* of a cubin */
#define KPROF_CODE_MOST_FUNCTIONS    ((size_t)1 << 16)
#define KPROF_CODE_MOST_INSTRUCTIONS ((size_t)1 << 22) /* of all functions that are read */
#define KPROF_CODE_MOST_LINE_BYTES   ((size_t)4 << 20) /* of .debug_line; libdw takes about 130 times as much */
/* libdw puts directories before names of files, of this many bytes in all. */
#define KPROF_CODE_MOST_DIRECTORY_BYTES ((size_t)1 << 28)
#define KPROF_CODE_MOST_PTX_BYTES       ((size_t)4 << 20) /* of the PTX of the functions that are read */
#define KPROF_CODE_MOST_PTX_TEXTS       256
#define KPROF_CODE_MOST_TEXT_BYTES      ((size_t)512 << 20) /* of what nvdisasm prints */
#define KPROF_CODE_MOST_SECONDS         INT64_C(120)        /* that nvdisasm may take */
#define KPROF_CODE_MOST_PROGRAMS        8                   /* that are asked for a text */
#define KPROF_CODE_MOST_TRACED          ((size_t)1 << 18)   /* instructions of a function whose waits are looked for */
#define KPROF_CODE_MOST_STEPS           ((size_t)1 << 28) /* from instruction to instruction, as they are looked for */
#define KPROF_CODE_MOST_PRODUCERS       16                /* that an instruction waits for, by one scoreboard */
#define KPROF_CODE_MOST_FRAMES          ((size_t)1 << 22)
#define KPROF_CODE_MOST_DEPTH           64 /* frames of an instruction: the innermost ones, and the kernel's own */
#define KPROF_CODE_MOST_NAMES           ((size_t)1 << 26) /* bytes of all names and paths */

/* A place in the source. */
typedef struct kprof_code_frame {
    uint32_t file; /* in kprof_code.files */
    uint32_t line; /* from 1 */
    uint32_t name; /* of the inlined function, mangled, in kprof_code.names; KPROF_CODE_NO_NAME: not inlined */
} kprof_code_frame;

#define KPROF_CODE_NO_NAME UINT32_MAX

/* A source file as it was when it was compiled; 0: the compiler did not say. */
typedef struct kprof_code_source {
    uint64_t bytes;
    uint64_t modified_s; /* since 1970 */
} kprof_code_source;

/* A memory instruction's access, in ncu's words; literals. */
typedef struct kprof_code_access {
    const char *space, *operation; /* "Global", "Load"; NULL: it accesses no memory, or nobody knows which */
    uint32_t bits;                 /* of a thread's access; 0: unknown */
} kprof_code_access;

typedef struct kprof_code_instruction {
    uint64_t offset;    /* from the start of the function */
    char *text;         /* "LDG.E R3, desc[UR4][R2.64]"; NULL before kprof_code_disassemble, or where it found none */
    size_t first_frame; /* in kprof_code.frames, the innermost first; many instructions share theirs */
    size_t frame_count; /* 0: without lines */
    kprof_code_access access;
    uint32_t ptx;      /* in kprof_code.ptx: the text of this line */
    uint32_t ptx_line; /* from 1; 0: not known */
    uint32_t control;  /* for kprof_code_disassemble: which scoreboards it sets and waits for */
    size_t first_wait; /* in kprof_code.waits */
    size_t wait_count;
} kprof_code_instruction;

/* A function is one that a symbol names: a kernel, a function that is called, or a part of a kernel's section that the
 * compiler calls from there. Such a part's instructions are also the kernel's. */
typedef struct kprof_code_function {
    char *mangled;
    size_t symbol;           /* in the cubin, as section_index */
    char *section;           /* ".text.NAME" */
    size_t section_index;    /* in the cubin */
    uint64_t section_offset; /* of the first instruction */
    uint64_t bytes;
    kprof_code_instruction *instructions;
    size_t count;
} kprof_code_function;

/* PTX that code was assembled from, with lines that end with '\n'; NULL: not read. */
typedef struct kprof_code_ptx {
    char *text;
    size_t size;
} kprof_code_ptx;

/* Owned by the caller; kprof_code_free releases what is in it. */
typedef struct kprof_code {
    kprof_code_function *functions; /* in the order of the symbols */
    size_t function_count;
    kprof_strlist files;        /* paths as the compiler wrote them */
    kprof_code_source *sources; /* [files.count] */
    kprof_strlist names;
    kprof_code_frame *frames;
    size_t frame_count;
    kprof_code_ptx *ptx; /* [ptx_count]: several where the cubin was linked from several */
    size_t ptx_count;
    uint64_t *waits; /* offsets of the instructions that an instruction waits for, in its function, in order */
    size_t wait_count;
    char text_state[256];   /* "" or why instructions have no text */
    const char *line_state; /* "" or why they have no lines; a literal */
} kprof_code;

#define KPROF_CODE_INIT                                                                                                \
    {                                                                                                                  \
        .line_state = ""                                                                                               \
    }

/* Read the functions of a cubin, their instructions' offsets and lines, in the source and in its PTX; `wanted`: of
 * those alone that are in the list, by their mangled names (NULL: of all). Returns KPROF_BAD_REPORT for what is no
 * cubin or a damaged one, which both states of `out` then say, and KPROF_UNSUPPORTED in a build without CUDA. Logs
 * nothing. `out` can be freed in any case. */
kprof_status kprof_code_read(const void *cubin, size_t size, const kprof_strlist *wanted,
                             kprof_code *out) KPROF_MUST_CHECK;

/* The disassemblers for the cubins of a run: the executable that is given or, where that is NULL, those that the
 * machine has, in PATH, in CUDA_HOME and CUDA_PATH, in the folders of toolkits and of Python's packages. Starts as
 * {.given = ...}, and is freed with kprof_disassemblers_free. */
typedef struct kprof_disassemblers {
    const char *given; /* borrowed */
    int64_t limit_ns;  /* that one may take for a cubin; 0: KPROF_CODE_MOST_SECONDS */
    kprof_strlist programs;
    bool has_looked;
    bool is_gone[KPROF_CODE_MOST_PROGRAMS]; /* one that ran for too long is not asked again */
    char gone[256];                         /* why the first one of these is gone; "": none is */
} kprof_disassemblers;

void kprof_disassemblers_free(kprof_disassemblers *disassemblers);

/* Give the functions' instructions their texts, what they access, and what they wait for, as the first disassembler
 * that knows the GPU prints the cubin in this file. Where none does, text_state says why, and that is no failure.
 * Runs other programs: for two minutes at most each, without a shell, and never one from the current folder. Several
 * threads may ask the same disassemblers, each for code of its own. */
void kprof_code_disassemble(kprof_code *code, const char *cubin_path, kprof_disassemblers *disassemblers);

void kprof_code_free(kprof_code *code);
