/* The brief page: what a program, or a person in a hurry, needs to know of each group of launches. All texts are cut,
 * so that a JSON document of a kernel has at most KPROF_BRIEF_BYTES and its text at most 15 lines of 80 columns. */
#include "core/clean.h"
#include "report/page/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BRIEF_VERSION     1
#define KPROF_BRIEF_BYTES 2048
/* The most of each, and bytes of texts as JSON spells them. A line of LINE_BYTES and its label fit into 80 columns. */
enum { STALLS = 3, FINDINGS = 3, WARNINGS = 3 };
enum {
    NAME_BYTES = 128,
    LINE_BYTES = 66,
    WORDS_BYTES = 48,
    PART_BYTES = 72,
    WORD_BYTES = 32,
    ADVICE_BYTES = 240,
    WARNING_BYTES = 76
};

typedef struct stall {
    char name[WORD_BYTES + 1];
    double pct;
} stall;

/* The brief of a group; texts that are missing are "". */
typedef struct brief {
    const kprof_ranked *row;
    const kprof_findings *findings; /* NULL: none were looked for */
    const char *function;           /* "": it is too long */
    char kernel[NAME_BYTES + 1], kernel_line[LINE_BYTES + 1], part[PART_BYTES + 1], device[WORDS_BYTES + 1];
    char class[WORD_BYTES + 1], limit[WORDS_BYTES + 1], occupancy[WORD_BYTES + 1], occupancy_line[LINE_BYTES + 1];
    char next[WORDS_BYTES + 1], advice[ADVICE_BYTES + 1];
    double limit_pct, occupancy_pct;
    stall stalls[STALLS];
    size_t stall_count;
    const kprof_found *found[FINDINGS];
    size_t found_count;
    char warnings[WARNINGS][WARNING_BYTES + 1];
    size_t warning_count;
    kprof_hot_lines hot;
} brief;

/* Bytes that a byte of a text may take in JSON. What is no UTF-8 is replaced. */
static size_t json_bytes(char c, bool is_clean)
{
    const unsigned char byte = (unsigned char)c;
    const size_t beyond_ascii = is_clean ? 1 : 3;
    return byte < 0x20 || byte == 0x7f ? 6 : byte >= 0x80 ? beyond_ascii : c == '"' || c == '\\' ? 2 : 1;
}

/* The length of the longest beginning of `text`, in whole characters, that takes at most `most` bytes in JSON. */
static size_t head_of(const char *text, size_t most)
{
    const bool is_clean = kprof_text_is_clean(text);
    size_t length = 0, bytes = 0;
    while (text[length] && bytes + json_bytes(text[length], is_clean) <= most)
        bytes += json_bytes(text[length++], is_clean);
    while (text[length] && length > 0 && kprof_utf8_continues(text[length]))
        length--;
    return length;
}

/* Likewise the bytes that it ends with. */
static size_t tail_of(const char *text, size_t most)
{
    const bool is_clean = kprof_text_is_clean(text);
    const size_t whole = strlen(text);
    size_t length = 0, bytes = 0;
    while (length < whole && bytes + json_bytes(text[whole - length - 1], is_clean) <= most)
        bytes += json_bytes(text[whole - ++length], is_clean);
    while (length > 0 && kprof_utf8_continues(text[whole - length]))
        length--;
    return length;
}

/* Copy a text. If it is too long, drop most of its second half, or, for sentences, its end. NULL is "". */
static void cut(char *out, size_t most, const char *text, bool is_sentence)
{
    static const char gap[] = "...";
    text = text ? text : "";
    size_t head = head_of(text, most), tail = 0;
    if (text[head]) {
        tail = is_sentence ? 0 : tail_of(text, most / 4);
        head = head_of(text, most - strlen(gap) - (is_sentence ? 0 : most / 4));
    }
    const bool is_cut = text[head] != '\0';
    memcpy(out, text, head);
    snprintf(out + head, most + 1 - head, "%s%s", is_cut ? gap : "", is_cut ? text + strlen(text) - tail : "");
}

/* Takes ownership of the text. */
static void warn(brief *to, char *text)
{
    if (to->warning_count < WARNINGS)
        cut(to->warnings[to->warning_count++], WARNING_BYTES, text, true);
    free(text);
}

static void warn_of_samples(const kprof_groups *groups, brief *out)
{
    const kprof_group *group = out->row->group;
    const uint64_t untold = kprof_group_untold(groups, group);
    if (untold > 0)
        warn(out, kprof_strprintf("multiplexed: %s; %lu more are not counted",
                                  group->samples > 0 ? "samples join launches" : "no whole sample", untold));
    else
        warn(out, kprof_strprintf("multiplexed: %s", group->samples > 0 ? "each sample joins passes of several launches"
                                                                        : "no whole sample"));
}

/* Warn of what `tell` says of the group; of nothing if that is empty. */
static void warn_of(brief *out, void (*tell)(const kprof_group *group, kprof_strbuf *out))
{
    kprof_strbuf told = KPROF_STRBUF_INIT;
    tell(out->row->group, &told);
    if (told.length > 0)
        warn(out, kprof_strbuf_take(&told));
}

static void find_warnings(const kprof_groups *groups, brief *out)
{
    const kprof_group *group = out->row->group;
    const kprof_repeats *repeats = &out->row->repeats;
    if (group->source == KPROF_SOURCE_SAMPLES) /* first, since later ones may find no place */
        warn_of_samples(groups, out);
    warn_of(out, kprof_group_tell_missing);
    if (group->note)
        warn(out, kprof_strprintf("%lu of %lu: %s", group->noted, group->launches, group->note));
    warn_of(out, kprof_group_tell_disagreeing);
    if (group->source == KPROF_SOURCE_SAMPLES && kprof_model_begins_early(groups->model))
        warn(out, kprof_strdup(KPROF_BEGINS_EARLY));
    if (group->configurations > 1)
        warn(out, kprof_strprintf("launches of %zu shapes; --group-by config", group->configurations));
    if (!isnan(repeats->interval.low) && !repeats->is_stable)
        warn(out, kprof_strdup("the duration is not stable"));
}

/* A row of the verdict, and the fields of the brief that it fills. */
typedef struct verdict_place {
    kprof_verdict_row row;
    char *name;
    size_t name_bytes;
    double *value; /* or NULL */
    char *line;    /* or NULL: its text, of LINE_BYTES */
} verdict_place;

/* Cut a row of the verdict, and before that leave out words without which it says the same. */
static void cut_row(char *line, const char *text)
{
    static const char *const spare[] = {" achieved", " possible"};
    KPROF_AUTO_FREE char *left = kprof_strdup(or_empty(text));
    for (size_t i = 0; i < COUNT_OF(spare) && strlen(left) > LINE_BYTES; i++) {
        char *word = strstr(left, spare[i]);
        if (word)
            memmove(word, word + strlen(spare[i]), strlen(word + strlen(spare[i])) + 1);
    }
    cut(line, LINE_BYTES, left, true);
}

static void take_verdict(brief *out, const verdict_place *to)
{
    KPROF_AUTO(kprof_verdict_text) text = kprof_verdict_describe(out->findings, to->row, false);
    if (to->name)
        cut(to->name, to->name_bytes, text.name.data, false);
    if (to->value)
        *to->value = text.value;
    if (to->line)
        cut_row(to->line, text.text.data);
    if (!text.is_known && text.text.length > 0)
        warn(out, kprof_strprintf("%s %s", text.label, text.text.data));
}

/* The index of the finding's value with this name; SIZE_MAX: there is none. */
static size_t value_named(const kprof_finding *finding, const char *name)
{
    const size_t at = KPROF_FIND(i, finding->value_count, strcmp(finding->values[i].name, name) == 0);
    return at < finding->value_count ? at : SIZE_MAX;
}

/* The name of the option that the finding's value "class" is. */
static void take_class(brief *out)
{
    const kprof_found *limit = out->findings->verdict.lines[KPROF_VERDICT_LIMIT];
    const size_t class = limit ? value_named(limit->finding, "class") : SIZE_MAX;
    KPROF_AUTO(kprof_strbuf) name = KPROF_STRBUF_INIT;
    if (class != SIZE_MAX)
        kprof_found_option(limit, class, false, &name);
    cut(out->class, WORD_BYTES, name.data, false);
}

static void insert_stall(brief *out, const char *name, double pct)
{
    size_t at = out->stall_count;
    while (at > 0 && out->stalls[at - 1].pct < pct)
        at--;
    if (at == STALLS)
        return;
    out->stall_count += out->stall_count < STALLS;
    memmove(&out->stalls[at + 1], &out->stalls[at], (out->stall_count - 1 - at) * sizeof *out->stalls);
    cut(out->stalls[at].name, WORD_BYTES, name, false);
    out->stalls[at].pct = pct;
}

/* The finding on stalls chooses the largest stall, and its value "share" is the share of a warp's time; other stalls
 * are in proportion to it. The verdict may name one that is larger still. */
static void take_stalls(brief *out)
{
    const kprof_found *found = out->findings->verdict.lines[KPROF_VERDICT_STALL];
    if (!found || found->finding->verdict_value == SIZE_MAX)
        return;
    const kprof_finding *finding = found->finding;
    const size_t named = value_named(finding, "share");
    const double told = found->values[finding->threshold_count + finding->verdict_value];
    const double share = named == SIZE_MAX ? told : found->values[finding->threshold_count + named];
    const size_t choice = KPROF_FIND(i, finding->value_count, finding->values[i].pick == KPROF_PICK_LARGEST);
    if (choice == finding->value_count || found->options[choice] == SIZE_MAX)
        return;
    const double largest = found->values[finding->threshold_count + choice];
    if (told > share) { /* the verdict names a stall that the finding does not choose from: the warp was ready, but not
                           selected */
        KPROF_AUTO(kprof_verdict_text) text = kprof_verdict_describe(out->findings, KPROF_ROW_STALL, false);
        if (text.name.data)
            insert_stall(out, text.name.data, told);
    }
    for (size_t i = 0; i < finding->values[choice].option_count; i++) {
        const kprof_finding_option *option = &finding->values[choice].options[i];
        const bool applies = !option->when || kprof_expr_compute(option->when, found->values) > 0;
        const double value = option->value ? kprof_expr_compute(option->value, found->values) : NAN;
        if (applies && value > 0 && largest > 0)
            insert_stall(out, option->name, share * value / largest);
    }
}

static void take_findings(brief *out)
{
    for (size_t i = 0; i < out->findings->count; i++) {
        const kprof_found *found = &out->findings->items[i];
        size_t at = out->found_count;
        if (found->state != KPROF_FOUND || found->finding->verdict == KPROF_VERDICT_LIMIT)
            continue;
        while (at > 0 && kprof_found_is_worth_more(found, out->found[at - 1]))
            at--;
        if (at == FINDINGS)
            continue;
        out->found_count += out->found_count < FINDINGS;
        memmove(&out->found[at + 1], &out->found[at], (out->found_count - 1 - at) * sizeof *out->found);
        out->found[at] = found;
    }
}

/* Give the advice of the first finding, or, if there is little to gain, that of the limit. */
static void take_advice(brief *out)
{
    const kprof_found *near = out->findings->verdict.near, *first = out->found_count > 0 ? out->found[0] : NULL;
    const kprof_found *told = near ? near : first;
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    if (told)
        kprof_found_text(told, told->finding->advice ? told->finding->advice : told->finding->message, false, &text);
    cut(out->advice, ADVICE_BYTES, text.data, true);
}

static void make_brief(const kprof_emitter *emitter, const kprof_ranking *ranking, brief *out)
{
    const kprof_group *group = out->row->group;
    const char *name = kprof_model_kernel_name(group->kernel, emitter->options->kernel_base);
    KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
    out->limit_pct = out->occupancy_pct = NAN;
    out->function = strlen(group->kernel->function) <= NAME_BYTES ? group->kernel->function : "";
    cut(out->kernel, NAME_BYTES, name, false);
    cut(out->kernel_line, LINE_BYTES, name, false);
    kprof_group_describe(&ranking->groups, group, &text);
    cut(out->part, PART_BYTES, text.data, false);
    kprof_strbuf_clear(&text);
    kprof_strbuf_printf(&text, "%s, CC %s", group->device->name, group->device->cc);
    cut(out->device, WORDS_BYTES, text.data, false);
    find_warnings(&ranking->groups, out);
    if (!out->findings)
        return;
    const verdict_place places[] = {
        {KPROF_ROW_LIMIT, out->limit, WORDS_BYTES, &out->limit_pct, NULL},
        {KPROF_ROW_OCCUPANCY, out->occupancy, WORD_BYTES, &out->occupancy_pct, out->occupancy_line},
        {KPROF_ROW_STALL, NULL, 0, NULL, NULL},
        {KPROF_ROW_NEXT, out->next, WORDS_BYTES, NULL, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++)
        take_verdict(out, &places[i]);
    take_class(out);
    take_stalls(out);
    take_findings(out);
    take_advice(out);
}

/* Bytes of a text in JSON. */
static size_t size_of(const char *text)
{
    const bool is_clean = kprof_text_is_clean(text);
    const size_t length = strlen(text);
    return KPROF_SUM(i, length, json_bytes(text[i], is_clean));
}

/* Keep as many of the hottest lines as the document has room for. */
static void fit_hot_lines(brief *of)
{
    /* Bytes beside their texts. */
    enum { MEMBERS = 640, STALL = 26, FINDING = 68, WARNING = 11 };
    enum { HOT_LINE = 36, LIBRARY = 16, CALLER = 17, CAUSE = 15 };
    const char *const texts[] = {of->kernel,    of->part, of->device, of->class,   of->limit,
                                 of->occupancy, of->next, of->advice, of->function};
    size_t bytes = MEMBERS + KPROF_SUM(i, COUNT_OF(texts), size_of(texts[i])) +
                   KPROF_SUM(i, of->stall_count, STALL + size_of(of->stalls[i].name)) +
                   KPROF_SUM(i, of->found_count, FINDING + size_of(of->found[i]->finding->id)) +
                   KPROF_SUM(i, of->warning_count, WARNING + size_of(of->warnings[i]));
    size_t count = 0;
    for (; count < of->hot.count; count++) {
        const kprof_hot_line *hot = &of->hot.items[count];
        bytes += HOT_LINE + size_of(hot->place) + size_of(hot->stall);
        bytes += *hot->library ? LIBRARY + size_of(hot->library) : 0;
        bytes += *hot->caller ? CALLER + size_of(hot->caller) : 0;
        bytes += *hot->caused_at ? CAUSE + size_of(hot->caused_at) : 0;
        if (bytes > KPROF_BRIEF_BYTES)
            break;
    }
    of->hot.count = count;
}

static void take_hot_lines(const kprof_ranking *ranking, brief *out)
{
    const kprof_code_profile *code = out->row->group->code;
    if (code)
        kprof_hot_lines_find(ranking->groups.code, code, &out->hot);
    if (code && code->sampled == 0 && *code->reason)
        warn(out, kprof_strprintf("Hottest line not known: %s", code->reason));
    const size_t count = out->hot.count;
    fit_hot_lines(out);
    if (out->hot.count == count)
        return;
    out->hot.count = count;
    for (size_t i = 0; i < out->hot.count; i++) {
        kprof_hot_line *hot = &out->hot.items[i];
        char *const places[] = {hot->place, hot->library, hot->caller, hot->caused_at};
        for (size_t k = 0; k < COUNT_OF(places); k++) {
            char place[sizeof hot->place];
            cut(place, WORD_BYTES, places[k], false);
            memcpy(places[k], place, sizeof place);
        }
    }
    fit_hot_lines(out);
}

static kprof_emit_field text_field(const char *key, const char *text)
{
    return machine(kprof_field_text(key, "", *text ? text : NULL));
}

static kprof_emit_field pct_field(const char *key, double pct)
{
    return machine(kprof_field_pct(key, "", round(pct * 100) / 100));
}

static kprof_emit_field time_field(const char *key, double time_ns)
{
    return machine(kprof_field_ns(key, "", round(time_ns)));
}

/* Lines for people, without empty ones. */
enum {
    LINE_LAUNCHES,
    LINE_DURATION,
    LINE_VERDICT,
    LINE_THROUGHPUT,
    LINE_STALLS,
    LINE_HOTTEST,
    LINE_LITTLE,
    LINE_FINDINGS
};
typedef struct brief_lines {
    kprof_strbuf items[LINE_FINDINGS + FINDINGS];
} brief_lines;

static void put_value(kprof_strbuf *out, const char *before, double value, const char *unit)
{
    const kprof_human human = kprof_units_human(value, unit, false);
    kprof_strbuf_puts(out, before);
    kprof_human_put(&human, out);
}

/* Counts of different passes can make a busy unit a little busier than its peak. */
static double headroom_pct(const brief *of)
{
    return of->limit_pct > 100 ? 0 : 100 - of->limit_pct;
}

static void put_duration(const kprof_ranked *row, kprof_strbuf *out)
{
    const kprof_repeats *repeats = &row->repeats;
    if (row->group->duration_count <= 1) {
        put_value(out, "", row->median_ns, "ns");
        return;
    }
    put_value(out, "median ", row->median_ns, "ns");
    put_value(out, ", ", row->minimum_ns, "ns");
    put_value(out, " to ", row->maximum_ns, "ns");
    if (!isnan(repeats->interval.low))
        kprof_strbuf_puts(out, repeats->is_stable ? "; stable" : "; not stable");
}

/* As kprof_found_describe, in one line. */
static void put_gain(const kprof_found *found, kprof_strbuf *out)
{
    if (found->gain_pct == 0)
        kprof_strbuf_puts(out, ": no gain");
    else if (!isnan(found->gain_pct)) {
        put_value(out, ": up to ", found->gain_pct, "%");
        kprof_strbuf_puts(out, found->finding->gain_is_local ? " of its part" : "");
    }
    const size_t whole = strlen(found->finding->name) + out->length + strlen(", medium confidence");
    kprof_strbuf_printf(out, ", %s%s", kprof_confidence_name(found->finding->confidence),
                        whole <= LINE_BYTES ? " confidence" : ""); /* rather than half of the name */
}

/* Say what limits the kernel, shortened to one line. */
static void put_limit(const brief *of, kprof_strbuf *out)
{
    /* If a class such as latency limits the kernel, no unit does. */
    const bool is_unit = strcmp(of->class, of->limit) != 0;
    enum { WHOLE, NO_PEAK, NO_CLASS, NO_HEADROOM, HALF_A_NAME }; /* the headroom is what the peak leaves */
    for (int how = WHOLE; how == WHOLE || (how <= HALF_A_NAME && out->length > LINE_BYTES); how++) {
        char limit[WORDS_BYTES + 1];
        cut(limit, how == HALF_A_NAME ? WORD_BYTES : WORDS_BYTES, of->limit, false);
        kprof_strbuf_clear(out);
        if (is_unit && *of->class && how < NO_CLASS)
            kprof_strbuf_printf(out, "%s: ", of->class);
        kprof_strbuf_puts(out, limit);
        put_value(out, is_unit ? ", " : "; busiest unit at ", of->limit_pct, "%");
        kprof_strbuf_puts(out, how == WHOLE || how == NO_HEADROOM ? " of the peak" : "");
        if (how != NO_HEADROOM)
            put_value(out, "; headroom ", headroom_pct(of), "%");
    }
}

/* The largest, as many as fit on a line. */
static void put_stalls(const brief *of, kprof_strbuf *out)
{
    KPROF_AUTO(kprof_strbuf) one = KPROF_STRBUF_INIT;
    for (size_t i = 0; i < of->stall_count; i++) {
        kprof_strbuf_clear(&one);
        kprof_strbuf_printf(&one, "%s%s", i ? ", " : "", of->stalls[i].name);
        put_value(&one, " ", of->stalls[i].pct, "%");
        if (one.data && (i == 0 || out->length + one.length <= LINE_BYTES))
            kprof_strbuf_puts(out, one.data);
    }
}

static void make_lines(const brief *of, brief_lines *out)
{
    const kprof_ranked *row = of->row;
    *out = (brief_lines){.items = {KPROF_STRBUF_INIT}};
    kprof_strbuf_printf(&out->items[LINE_LAUNCHES], "%lu", row->group->launches);
    if (!isnan(row->time_ns)) {
        put_value(&out->items[LINE_LAUNCHES], ", ", row->time_ns, "ns");
        put_value(&out->items[LINE_LAUNCHES], ", ", row->share_pct, "%");
        kprof_strbuf_puts(&out->items[LINE_LAUNCHES], " of the time");
    }
    put_duration(row, &out->items[LINE_DURATION]);
    if (*of->limit)
        put_limit(of, &out->items[LINE_VERDICT]);
    put_value(&out->items[LINE_THROUGHPUT], "compute ", row->compute_pct, "%");
    put_value(&out->items[LINE_THROUGHPUT], ", memory ", row->memory_pct, "%");
    put_stalls(of, &out->items[LINE_STALLS]);
    if (of->hot.count > 0)
        kprof_hot_line_describe(&of->hot.items[0], &out->items[LINE_HOTTEST]);
    const kprof_found *near = of->findings ? of->findings->verdict.near : NULL;
    if (near) {
        char line[LINE_BYTES + 1];
        KPROF_AUTO(kprof_strbuf) text = KPROF_STRBUF_INIT;
        kprof_found_text(near, near->finding->near_text, false, &text);
        const char *unsure = of->findings->verdict.near_is_unsure ? " (not all was measured)" : "";
        cut(line, LINE_BYTES - strlen(unsure), text.data, true);
        kprof_strbuf_printf(&out->items[LINE_LITTLE], "%s%s", line, unsure);
    }
    for (size_t i = 0; i < of->found_count - (near && of->found_count == FINDINGS); i++) {
        char name[WORDS_BYTES + 1];
        KPROF_AUTO(kprof_strbuf) gain = KPROF_STRBUF_INIT;
        put_gain(of->found[i], &gain);
        const size_t room = gain.length + WORD_BYTES < LINE_BYTES ? LINE_BYTES - gain.length : WORD_BYTES;
        cut(name, room < WORDS_BYTES ? room : WORDS_BYTES, of->found[i]->finding->name, false);
        kprof_strbuf_printf(&out->items[LINE_FINDINGS + i], "%s%s", name, gain.data ? gain.data : "");
    }
}

/* People see it only if there is one. */
static kprof_emit_field line_field(const char *label, const char *line)
{
    return kprof_field_text("line", label, line && *line ? line : NULL, .role = KPROF_ROLE_PEOPLE);
}

static void show_hot_lines(kprof_emitter *emitter, const brief *of)
{
    if (of->hot.count > 0)
        emitter->ops->rows_begin(emitter, "hot_lines");
    for (size_t i = 0; i < of->hot.count; i++) {
        const kprof_hot_line *hot = &of->hot.items[i];
        kprof_emit_field fields[6] = {text_field("at", hot->place), pct_field("pct", hot->pct),
                                      text_field("stall", hot->stall)};
        size_t count = 3;
        if (*hot->library)
            fields[count++] = text_field("in_library", hot->library);
        if (*hot->caller)
            fields[count++] = text_field("called_from", hot->caller);
        if (*hot->caused_at)
            fields[count++] = text_field("caused_at", hot->caused_at);
        emitter->ops->row(emitter, &(kprof_emit_record){fields, count});
    }
}

static void show_rows(kprof_emitter *emitter, const brief *of)
{
    emitter->ops->rows_begin(emitter, "stalls");
    for (size_t i = 0; i < of->stall_count; i++) {
        const kprof_emit_field fields[] = {text_field("name", of->stalls[i].name), pct_field("pct", of->stalls[i].pct)};
        emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    }
    show_hot_lines(emitter, of);
    emitter->ops->rows_begin(emitter, "findings");
    for (size_t i = 0; i < of->found_count; i++) {
        const kprof_found *found = of->found[i];
        const char *part = isnan(found->gain_pct) ? "" : found->finding->gain_is_local ? "part" : "kernel";
        char id[WORDS_BYTES + 1];
        cut(id, WORDS_BYTES, found->finding->id, false);
        const kprof_emit_field fields[] = {text_field("id", id), pct_field("gain_pct", found->gain_pct),
                                           text_field("gain_of", part),
                                           text_field("confidence", kprof_confidence_name(found->finding->confidence))};
        emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    }
    emitter->ops->rows_begin(emitter, "warnings");
    for (size_t i = 0; i < of->warning_count; i++) {
        const kprof_emit_field fields[] = {text_field("text", of->warnings[i])};
        emitter->ops->row(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    }
}

static void show_brief(kprof_emitter *emitter, const brief *of, const brief_lines *lines)
{
    const kprof_ranked *row = of->row;
    const kprof_repeats *repeats = &row->repeats;
    const bool is_repeated = !isnan(repeats->interval.low);
    const kprof_strbuf *line = lines->items;
    char part[LINE_BYTES + 1], warnings[2][LINE_BYTES + 1];
    cut(part, LINE_BYTES, of->part, false);
    for (size_t i = 0; i < COUNT_OF(warnings); i++)
        cut(warnings[i], LINE_BYTES, of->warnings[i], true);
    const kprof_emit_field fields[] = {
        text_field("format", "kprof-brief"),
        machine(kprof_field_integer("version", "", BRIEF_VERSION)),
        text_field("kernel", of->kernel),
        text_field("function", of->function),
        text_field("group", of->part),
        text_field("device", of->device),
        machine(kprof_field_amount("launches", "", row->group->launches)),
        machine(kprof_field_amount("measured", "", row->group->duration_count)),
        time_field("time_ns", row->time_ns),
        pct_field("time_share_pct", row->share_pct),
        time_field("duration_ns", row->median_ns),
        time_field("duration_low_ns", repeats->interval.low),
        time_field("duration_high_ns", repeats->interval.high),
        text_field("stable", !is_repeated         ? ""
                             : repeats->is_stable ? "yes"
                                                  : "no"),
        text_field("class", of->class),
        text_field("limit", of->limit),
        pct_field("limit_pct", of->limit_pct),
        pct_field("headroom_pct", headroom_pct(of)),
        pct_field("compute_pct", row->compute_pct),
        pct_field("memory_pct", row->memory_pct),
        pct_field("achieved_occupancy_pct", row->occupancy_pct),
        pct_field("theoretical_occupancy_pct", of->occupancy_pct),
        text_field("occupancy_limit", of->occupancy),
        pct_field("gain_pct", row->gain_pct),
        machine(kprof_field_little_to_gain(of->findings)),
        text_field("advice", of->advice),
        text_field("next", of->next),
        line_field("Kernel", of->kernel_line),
        line_field("Device", of->device),
        line_field("Part", part),
        line_field("Launches", line[LINE_LAUNCHES].data),
        line_field("Duration", line[LINE_DURATION].data),
        line_field("Limited by", line[LINE_VERDICT].data),
        line_field("Throughput", line[LINE_THROUGHPUT].data),
        line_field("Occupancy", of->occupancy_line),
        line_field("Stalls", line[LINE_STALLS].data),
        line_field("Hottest", line[LINE_HOTTEST].data),
        line_field("Worth most", line[LINE_LITTLE].data),
        line_field("Findings", line[LINE_FINDINGS].data),
        line_field("", line[LINE_FINDINGS + 1].data),
        line_field("", line[LINE_FINDINGS + 2].data),
        line_field("Look next", *of->next ? of->next : NULL),
        line_field("Warnings", warnings[0]),
        line_field("", of->hot.count > 0 ? NULL : warnings[1]), /* there are 15 lines at most */
    };
    emitter->ops->record_begin(emitter, &(kprof_emit_record){fields, COUNT_OF(fields)});
    show_rows(emitter, of);
    emitter->ops->record_end(emitter);
}

kprof_status kprof_page_brief(const kprof_page_context *context)
{
    kprof_ranking ranking;
    kprof_status status = kprof_ranking_make(context, &ranking);
    if (status == KPROF_OK) {
        kprof_emitter *emitter = kprof_page_begin(context);
        kprof_list_begin(emitter, "kernels", "Kernels", KPROF_LIST_BLOCKS, false);
        for (size_t i = 0; i < ranking.shown; i++) {
            brief of = {.row = &ranking.rows[i]};
            brief_lines lines;
            of.findings = kprof_ranking_evaluate(&ranking, of.row->group);
            make_brief(emitter, &ranking, &of);
            take_hot_lines(&ranking, &of);
            make_lines(&of, &lines);
            show_brief(emitter, &of, &lines);
            for (size_t k = 0; k < COUNT_OF(lines.items); k++)
                kprof_strbuf_free(&lines.items[k]);
        }
        emitter->ops->list_end(emitter);
        status = kprof_page_end(emitter, KPROF_OK);
    }
    return status;
}
