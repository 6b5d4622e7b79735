/* An instruction whose time is not fixed sets one of six scoreboards, and another one waits for this scoreboard: both
 * are bits of the instructions. So this goes from an instruction that waits back to those that set the scoreboard,
 * along every way that leads there, up to the wait before; registers tell which of several it is about. Where a way is
 * unknown, it is better to name none. */
#include "code/waits.h"

#include "code/sass.h"
#include "core/bisect.h"

#include <stdlib.h>
#include <string.h>

/* Kinds of waits, and of what a search looks for behind them. */
enum { SCOREBOARDS = 6, MATRICES = SCOREBOARDS, MATRIX_GROUPS, MEMBERS, GROUPS, COPIES, BULK_GROUPS, BULK_STORES };

/* The role of the instruction that ends a search for groups or for their members, and that of those it finds. */
static const struct {
    kprof_sass_role ends, found;
} roles[] = {[MATRICES] = {KPROF_SASS_AWAIT_MATRIX, KPROF_SASS_PLAIN}, /* who waits for groups */
             [MATRIX_GROUPS] = {KPROF_SASS_MATRIX_GROUP, KPROF_SASS_MATRIX_GROUP},
             [MEMBERS] = {KPROF_SASS_MATRIX_GROUP, KPROF_SASS_MATRIX},
             [GROUPS] = {KPROF_SASS_COPY_GROUP, KPROF_SASS_COPY_GROUP},
             [COPIES] = {KPROF_SASS_COPY_GROUP, KPROF_SASS_COPY},
             [BULK_GROUPS] = {KPROF_SASS_BULK_GROUP, KPROF_SASS_BULK_GROUP},
             [BULK_STORES] = {KPROF_SASS_BULK_GROUP, KPROF_SASS_BULK_STORE}};

/* A jump. */
typedef struct edge {
    uint32_t to, from;
} edge;

typedef struct tracer {
    kprof_code_function *function;
    const kprof_code_listing *listing;
    kprof_sass *sass; /* of each instruction */
    kprof_strbuf edges;
    bool *is_unknown; /* somebody may jump there whom nobody knows */
    uint32_t *seen;   /* the number of the search that was there last */
    uint32_t *queue;  /* of instructions to go back from */
    uint32_t *found;  /* by a search, the nearest first */
    size_t queued;
    uint32_t search;
    bool copies_tell_barriers; /* LDGSTS, too */
    bool barriers_tell_copies; /* all barriers in shared memory that threads wait at stand for copies alone */
    size_t *steps_left;
} tracer;

/* The result of a search: the first `count` of tracer.found. */
typedef struct producers {
    size_t count;
    bool is_incomplete;
} producers;

const kprof_code_label *kprof_code_find_label(const kprof_code_listing *listing, const char *name, size_t length)
{
    const kprof_code_label *labels = listing->labels;
    size_t low; /* a name that is the beginning of others comes before them */
    KPROF_BISECT(low, listing->label_count, strncmp(labels[middle].name, name, length) < 0)
    const bool is_there = low < listing->label_count && strncmp(labels[low].name, name, length) == 0;
    return is_there && labels[low].name[length] == '\0' ? &labels[low] : NULL;
}

static unsigned set_by_write(const kprof_code_instruction *instruction)
{
    return instruction->control >> 5 & 7;
}

static unsigned set_by_read(const kprof_code_instruction *instruction)
{
    return instruction->control >> 8 & 7;
}

static bool awaits(const tracer *t, size_t number, unsigned what)
{
    const kprof_sass *sass = &t->sass[number];
    if (what >= SCOREBOARDS)
        return sass->role == roles[what].ends;
    return (t->function->instructions[number].control >> 11 | sass->awaited) >> what & 1;
}

/* Has all ended there that an earlier instruction may have begun? */
static bool awaits_all(const tracer *t, size_t number, unsigned what)
{
    const kprof_sass *sass = &t->sass[number];
    const bool are_counted = what < SCOREBOARDS && sass->counted >> what & 1;
    const bool has_bit = what < SCOREBOARDS && t->function->instructions[number].control >> 11 >> what & 1;
    return awaits(t, number, what) && (has_bit || !are_counted || sass->pending == 0);
}

/* The number of the instruction that a label stands before; the count of instructions where it is elsewhere. */
static size_t find_target(const tracer *t, const char *name, size_t length)
{
    const kprof_code_function *function = t->function;
    const kprof_code_label *label = kprof_code_find_label(t->listing, name, length);
    if (!label || label->offset < function->section_offset)
        return function->count;
    uint64_t number = (label->offset - function->section_offset) / KPROF_CODE_INSTRUCTION_BYTES;
    return number < function->count ? (size_t)number : function->count;
}

static void add_jump(tracer *t, size_t from, const char *label, size_t length)
{
    edge added = {.to = (uint32_t)find_target(t, label, length), .from = (uint32_t)from};
    if (added.to < t->function->count)
        kprof_strbuf_append(&t->edges, &added, sizeof added);
}

/* "BRX R2 -0x6a0 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)": false where the text does not say where to. */
static bool add_indirect_jumps(tracer *t, size_t from, const char *text)
{
    static const char begin[] = "BRANCH_TARGETS ";
    const char *at = strstr(text, begin);
    if (!at)
        return false;
    for (at += strlen(begin); *at == '.';) {
        size_t length = strcspn(at, ",\" ");
        add_jump(t, from, at, length);
        at += length;
        at += *at == ',';
    }
    return true;
}

static const char *get_line(const tracer *t, size_t number)
{
    size_t at = t->function->section_offset / KPROF_CODE_INSTRUCTION_BYTES + number;
    return at < t->listing->line_count ? t->listing->lines[at] : NULL;
}

static void mark_unknown(tracer *t, size_t number)
{
    if (number < t->function->count)
        t->is_unknown[number] = true;
}

KPROF_BY_BOTH(compare_edges, edge, KPROF_COMPARE(a->to, b->to), KPROF_COMPARE(a->from, b->from))

/* Read the instructions and the ways between them; false where some have no text. */
static bool read_flow(tracer *t)
{
    bool knows_jumps = true;
    for (size_t i = 0; i < t->function->count; i++) {
        const char *line = get_line(t, i);
        if (!line)
            return false;
        kprof_sass *sass = &t->sass[i];
        kprof_sass_read(line, sass);
        const size_t target = sass->label ? find_target(t, sass->label, sass->label_length) : t->function->count;
        /* BSYNC goes on behind itself, where BSSY's label is; anything else is no way that is known. */
        const char *before = target > 0 && target < t->function->count ? get_line(t, target - 1) : NULL;
        if (sass->flow == KPROF_SASS_MEETING && sass->label && !(before && strstr(before, "BSYNC")))
            mark_unknown(t, target);
        else if (sass->flow == KPROF_SASS_INDIRECT)
            knows_jumps = add_indirect_jumps(t, i, line) && knows_jumps;
        else if (sass->flow == KPROF_SASS_JUMP && !sass->label)
            knows_jumps = false;
        else if (sass->flow == KPROF_SASS_CALL && sass->label)
            mark_unknown(t, target);
        else if (sass->label && sass->flow != KPROF_SASS_END && sass->flow != KPROF_SASS_MEETING)
            add_jump(t, i, sass->label, sass->label_length);
    }
    for (size_t i = 0; i < t->listing->label_count && !knows_jumps; i++) {
        const char *name = t->listing->labels[i].name;
        mark_unknown(t, find_target(t, name, strlen(name)));
    }
    if (t->edges.length > 0)
        qsort(t->edges.data, t->edges.length / sizeof(edge), sizeof(edge), compare_edges);
    return true;
}

static void read_barriers(tracer *t)
{
    bool has_copies = false, has_others = false;
    for (size_t i = 0; i < t->function->count; i++) {
        kprof_sass_role role = t->sass[i].role;
        t->copies_tell_barriers |= role == KPROF_SASS_COPY_ARRIVE;
        has_copies |= role == KPROF_SASS_BULK_LOAD;
        has_others |= role == KPROF_SASS_ARRIVE || t->sass[i].flow == KPROF_SASS_CALL;
    }
    t->barriers_tell_copies = (has_copies || t->copies_tell_barriers) && !has_others;
}

static bool goes_on(const kprof_sass *sass)
{
    return sass->has_condition || sass->flow == KPROF_SASS_NEXT || sass->flow == KPROF_SASS_CALL ||
           sass->flow == KPROF_SASS_MEETING;
}

/* Look at an instruction that a way leads over. Functions that are called may wait, too, so ways end there. */
static void visit(tracer *t, uint32_t number, unsigned what, producers *found)
{
    *t->steps_left -= *t->steps_left > 0; /* for jumps that are told many times, too */
    found->is_incomplete |= *t->steps_left == 0;
    if (t->seen[number] == t->search)
        return;
    t->seen[number] = t->search;
    bool is_call = t->sass[number].flow == KPROF_SASS_CALL;
    found->is_incomplete |= is_call;
    const kprof_code_instruction *instruction = &t->function->instructions[number];
    if (what >= SCOREBOARDS ? t->sass[number].role == roles[what].found
                            : set_by_write(instruction) == what || set_by_read(instruction) == what)
        t->found[found->count++] = number;
    if (!is_call && !awaits_all(t, number, what))
        t->queue[t->queued++] = number;
}

/* Go back from the first `queued` instructions in the queue to all that may have set what they wait for. */
static void search(tracer *t, size_t queued, unsigned what, producers *found)
{
    t->queued = queued;
    const edge *edges = (const edge *)t->edges.data;
    *found = (producers){0};
    t->search++;
    for (size_t i = 0; i < t->queued; i++) {
        if (*t->steps_left == 0)
            return; /* visit() has said so */
        uint32_t number = t->queue[i];
        if (t->is_unknown[number])
            found->is_incomplete = true;
        if (number > 0 && goes_on(&t->sass[number - 1]))
            visit(t, number - 1, what, found);
        const size_t edge_count = t->edges.length / sizeof(edge);
        size_t e;
        KPROF_BISECT(e, edge_count, edges[middle].to < number)
        for (; e < edge_count && edges[e].to == number; e++)
            visit(t, edges[e].from, what, found);
    }
}

static void search_from(tracer *t, size_t from, unsigned what, producers *found)
{
    t->queue[0] = (uint32_t)from;
    search(t, 1, what, found);
}

/* Go on from what was found. */
static void search_on(tracer *t, unsigned what, producers *found)
{
    bool was_incomplete = found->is_incomplete;
    memcpy(t->queue, t->found, found->count * sizeof *t->queue);
    search(t, found->count, what, found);
    found->is_incomplete |= was_incomplete;
}

/* Does an instruction need what another one that sets the scoreboard does? */
static bool needs(const tracer *t, size_t waiter, size_t producer, unsigned scoreboard)
{
    const kprof_code_instruction *instruction = &t->function->instructions[producer];
    const kprof_sass *needing = &t->sass[waiter], *doing = &t->sass[producer];
    return (set_by_write(instruction) == scoreboard && kprof_sass_overlap(&doing->gives, &needing->names)) ||
           (set_by_read(instruction) == scoreboard && kprof_sass_overlap(&doing->names, &needing->gives));
}

/* Several instructions may set a scoreboard: keep those that the waiting one needs, or all, where it needs none and
 * these are all there are. */
static void keep_needed(const tracer *t, size_t waiter, unsigned scoreboard, producers *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++)
        if (needs(t, waiter, t->found[i], scoreboard)) {
            uint32_t other = t->found[kept];
            t->found[kept++] = t->found[i];
            t->found[i] = other;
        }
    if (kept > 0 || found->is_incomplete)
        found->count = kept;
}

/* An address may be that of any of a function's barriers. But where no thread of the function arrives at one, all of
 * them wait for copies: then the warp waits for these, in place of the question whether they have ended. */
static void follow_barrier(tracer *t, producers *found)
{
    if (found->count != 1 || t->sass[t->found[0]].role != KPROF_SASS_TEST || !t->barriers_tell_copies)
        return;
    found->count = 0;
    for (size_t i = 0; i < t->function->count && found->count < KPROF_CODE_MOST_PRODUCERS; i++) {
        kprof_sass_role role = t->sass[i].role;
        if (role == KPROF_SASS_BULK_LOAD || (role == KPROF_SASS_COPY && t->copies_tell_barriers))
            t->found[found->count++] = (uint32_t)i;
    }
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return KPROF_COMPARE(x, y);
}

/* A scoreboard stands for groups of copies, and the last ones may go on. */
static void find_copies(tracer *t, size_t waiter, producers *found)
{
    bool is_bulk = t->sass[t->found[0]].role == KPROF_SASS_BULK_GROUP;
    unsigned groups = is_bulk ? BULK_GROUPS : GROUPS;
    search_from(t, waiter, groups, found);
    for (unsigned i = 0; i < t->sass[waiter].pending && found->count > 0; i++)
        search_on(t, groups, found);
    search_on(t, is_bulk ? BULK_STORES : COPIES, found);
}

/* Groups of multiplications end in order, so those before the one that is waited for have ended, too. */
static void find_matrices(tracer *t, size_t waiter, producers *found)
{
    search_from(t, waiter, MATRIX_GROUPS, found);
    for (unsigned i = 0; i < t->sass[waiter].pending && found->count > 0; i++)
        search_on(t, MATRIX_GROUPS, found);
    const size_t group_count = found->count;
    KPROF_AUTO_FREE uint32_t *groups = kprof_calloc(group_count + 1, sizeof *groups);
    memcpy(groups, t->found, group_count * sizeof *groups);
    search_on(t, MEMBERS, found);
    for (size_t i = 0; i < group_count; i++) {
        const kprof_sass_registers *gives = &t->sass[groups[i]].gives;
        if (KPROF_ANY(k, COUNT_OF(gives->words), gives->words[k] != 0)) /* else it only ends the group */
            t->found[found->count++] = groups[i];
    }
}

static bool is_group(const tracer *t, size_t number)
{
    return t->sass[number].role == KPROF_SASS_COPY_GROUP || t->sass[number].role == KPROF_SASS_BULK_GROUP;
}

/* Find what an instruction waits for when it waits for a scoreboard, or for multiplications. */
static void find_producers(tracer *t, size_t waiter, unsigned what, producers *found)
{
    const kprof_sass *sass = &t->sass[waiter];
    if (what == MATRICES)
        find_matrices(t, waiter, found);
    else
        search_from(t, waiter, what, found);
    if (found->count > 0 && is_group(t, t->found[0]))
        find_copies(t, waiter, found);
    else if (what < SCOREBOARDS && !(sass->awaited >> what & 1)) {
        keep_needed(t, waiter, what, found);
        follow_barrier(t, found);
        return;
    } else if (what < SCOREBOARDS && sass->pending > 0 &&
               sass->counted >> what & 1) /* nobody knows which have to end */
        found->is_incomplete = true;
    if (found->is_incomplete)
        found->count = 0;
}

/* Sort the offsets of an instruction and drop the doubles. */
static void tidy(kprof_code_instruction *instruction, kprof_strbuf *waits)
{
    size_t count = waits->length / sizeof(uint64_t) - instruction->first_wait, kept = 0;
    if (count == 0)
        return;
    uint64_t *offsets = (uint64_t *)waits->data + instruction->first_wait;
    qsort(offsets, count, sizeof *offsets, compare_offsets);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || offsets[kept - 1] != offsets[i])
            offsets[kept++] = offsets[i];
    waits->length -= (count - kept) * sizeof *offsets;
    instruction->wait_count = kept;
}

static void trace(tracer *t, size_t number, kprof_strbuf *waits)
{
    kprof_code_instruction *instruction = &t->function->instructions[number];
    instruction->first_wait = waits->length / sizeof(uint64_t);
    for (unsigned what = 0; what <= MATRICES; what++) {
        if (!awaits(t, number, what))
            continue;
        producers found;
        find_producers(t, number, what, &found);
        for (size_t i = 0; i < found.count && i < KPROF_CODE_MOST_PRODUCERS; i++)
            kprof_strbuf_append(waits, &t->function->instructions[t->found[i]].offset, sizeof(uint64_t));
    }
    tidy(instruction, waits);
}

void kprof_code_find_waits(kprof_code_function *function, const kprof_code_listing *listing, kprof_strbuf *waits,
                           size_t *steps_left)
{
    size_t count = function->count;
    if (count == 0 || count > KPROF_CODE_MOST_TRACED)
        return;
    tracer t = {.function = function,
                .listing = listing,
                .sass = kprof_calloc(count, sizeof *t.sass),
                .is_unknown = kprof_calloc(count, sizeof *t.is_unknown),
                .seen = kprof_calloc(count, sizeof *t.seen),
                .queue = kprof_calloc(count + 1, sizeof *t.queue),
                .found = kprof_calloc(count, sizeof *t.found),
                .steps_left = steps_left};
    if (read_flow(&t)) {
        if (function->section_offset > 0) /* callers of a part of a kernel may wait for less than it needs */
            t.is_unknown[0] = true;
        read_barriers(&t);
        for (size_t i = 0; i < count && *steps_left != 0; i++)
            trace(&t, i, waits);
    }
    KPROF_FREE(t.sass, t.is_unknown, t.seen, t.queue, t.found);
    kprof_strbuf_free(&t.edges);
}
