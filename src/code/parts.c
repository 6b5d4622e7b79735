/* Finds where calls within a function go, and which instructions stand there without a row of the line table. */
#include "code/parts.h"

#include "code/sass.h"
#include "core/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum { NO_PART = 0, DEEPEST = 4 }; /* parts that call parts */

typedef struct part {
    size_t caller; /* the first one */
    bool differs;  /* another one has another line */
} part;

typedef struct parts {
    const kprof_code *code;
    kprof_code_function *function;
    size_t *targets; /* by instruction: the one that a CALL goes to; NO_PART: it is none, or goes elsewhere */
    part *begun;     /* by instruction */
    bool *begins;    /* likewise: a part without a row of its own in the line table */
} parts;

static const kprof_code_instruction *at(const parts *p, size_t number)
{
    return &p->function->instructions[number];
}

static bool have_same_lines(const parts *p, size_t one, size_t other)
{
    const kprof_code_instruction *a = at(p, one), *b = at(p, other);
    const kprof_code_frame *frames = p->code->frames;
    return a->frame_count == b->frame_count &&
           (a->frame_count == 0 ||
            memcmp(&frames[a->first_frame], &frames[b->first_frame], a->frame_count * sizeof *frames) == 0);
}

static void find_parts(parts *p, const kprof_code_listing *listing)
{
    const size_t first = p->function->section_offset / KPROF_CODE_INSTRUCTION_BYTES;
    for (size_t i = 0; i < p->function->count && first + i < listing->line_count; i++) {
        kprof_sass sass = {0};
        if (listing->lines[first + i])
            kprof_sass_read(listing->lines[first + i], &sass);
        const kprof_code_label *label = sass.flow == KPROF_SASS_CALL && sass.label
                                            ? kprof_code_find_label(listing, sass.label, sass.label_length)
                                            : NULL;
        if (!label || label->offset < p->function->section_offset)
            continue;
        const uint64_t target = (label->offset - p->function->section_offset) / KPROF_CODE_INSTRUCTION_BYTES;
        if (target == 0 || target >= p->function->count)
            continue;
        p->targets[i] = (size_t)target;
        p->begins[target] = at(p, target)->frame_count > 0 &&
                            at(p, target)->first_frame == at(p, target - 1)->first_frame &&
                            at(p, target)->frame_count == at(p, target - 1)->frame_count;
    }
}

static void ask_callers(parts *p)
{
    memset(p->begun, 0, p->function->count * sizeof *p->begun);
    for (size_t i = 0; i < p->function->count; i++) {
        part *of = &p->begun[p->targets[i]];
        if (p->targets[i] == NO_PART || !p->begins[p->targets[i]])
            continue;
        of->differs = of->differs || (of->caller > 0 && !have_same_lines(p, of->caller, i));
        of->caller = of->caller > 0 ? of->caller : i;
    }
}

/* The part goes on until another one begins, or a row of the line table. */
static void give_lines(parts *p, const kprof_code_instruction *before)
{
    const part *of = NULL;
    kprof_code_instruction carried = {0};
    for (size_t i = 1; i < p->function->count; i++) {
        kprof_code_instruction *own = &p->function->instructions[i];
        if (p->begins[i])
            of = &p->begun[i], carried = before[i];
        if (of && (before[i].first_frame != carried.first_frame || before[i].frame_count != carried.frame_count))
            of = NULL;
        if (!of || of->caller == 0 || of->differs)
            continue;
        own->first_frame = at(p, of->caller)->first_frame;
        own->frame_count = at(p, of->caller)->frame_count;
    }
}

void kprof_code_give_parts_lines(const kprof_code *code, kprof_code_function *function,
                                 const kprof_code_listing *listing)
{
    const size_t count = function->count;
    KPROF_AUTO_FREE size_t *targets = kprof_calloc(count + 1, sizeof *targets);
    KPROF_AUTO_FREE part *begun = kprof_calloc(count + 1, sizeof *begun);
    KPROF_AUTO_FREE bool *begins = kprof_calloc(count + 1, sizeof *begins);
    parts p = {code, function, targets, begun, begins};
    find_parts(&p, listing);
    if (!memchr(begins, true, count + 1))
        return;
    KPROF_AUTO_FREE kprof_code_instruction *before = kprof_calloc(count + 1, sizeof *before);
    memcpy(before, function->instructions, count * sizeof *before);
    for (size_t i = 0; i < DEEPEST; i++) {
        ask_callers(&p);
        give_lines(&p, before);
    }
}
