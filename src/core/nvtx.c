/* Expressions about NVTX ranges: taken apart once, and matched with the ranges of each launch. */
#include "core/nvtx.h"
#include "core/clean.h"
#include "core/log.h"
#include "core/regex.h"

#include <stdlib.h>
#include <string.h>

#define PART_END "; "

/* One name of an expression. */
typedef struct pattern {
    char *text;         /* the name, without \ */
    kprof_regex *regex; /* or NULL */
    size_t gap;         /* ranges between it and the previous name: exactly this many, */
    bool any_gap;       /* or at least */
} pattern;

typedef struct expression {
    const char *option; /* for messages */
    bool is_regex, is_started;
    bool at_bottom, at_top; /* the first name is the outermost range of its stack, the last one the innermost */
    pattern domain;
    pattern *names; /* [count] */
    size_t count;
} expression;

struct kprof_nvtx_filter {
    expression *expressions; /* [count]: those to include, then those to exclude */
    size_t count, include_count;
};

/* A part of an expression: `end` is behind its last character. */
typedef struct part {
    const char *begin, *end;
} part;

/* Find the first `wanted` that has no \ before it; `end` when there is none. */
static const char *find(part in, char wanted)
{
    for (const char *at = in.begin; at < in.end; at++) {
        if (*at == '\\' && at + 1 < in.end)
            at++;
        else if (*at == wanted)
            return at;
    }
    return in.end;
}

/* Copy a name without its \. A pattern keeps those that PCRE2 knows. */
static char *copy_name(part name, bool is_regex)
{
    char *copy = kprof_calloc(1, (size_t)(name.end - name.begin) + 1), *to = copy;
    for (const char *at = name.begin; copy && at < name.end; at++) {
        bool escapes = *at == '\\' && at + 1 < name.end;
        if (escapes && is_regex && !strchr("/@,", at[1]))
            *to++ = *at;
        if (escapes)
            at++;
        *to++ = *at;
    }
    return copy;
}

static kprof_status fail(const expression *e, const char *text, const char *why)
{
    return kprof_fail(KPROF_USAGE, "%s \"%s\": %s", e->option, text, why);
}

static kprof_status make_pattern(const expression *e, part name, const char *text, pattern *out)
{
    static const char special[] = "[]@,/";
    out->text = copy_name(name, e->is_regex);
    if (!out->text)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", e->option);
    if (e->is_regex)
        return kprof_regex_new(e->option, out->text, &out->regex);
    for (size_t i = 0; special[i]; i++) {
        if (find(name, special[i]) != name.end)
            return kprof_fail(
                KPROF_USAGE, "%s \"%s\": \"%c\" has no meaning here; if it is part of a name, write \\%c%s", e->option,
                text, special[i], special[i], special[i] == ',' ? ", and else give the option once for each name" : "");
    }
    return KPROF_OK;
}

static bool is_word(part token, char word)
{
    return token.end - token.begin == 1 && *token.begin == word;
}

static kprof_status add_name(expression *e, part name, const char *text, const pattern *gap)
{
    if (name.begin == name.end)
        return fail(e, text, "a range without a name; ranges that have none cannot be chosen");
    if (!e->is_regex && (is_word(name, '*') || is_word(name, '+')))
        return fail(e, text, "* and + stand between two ranges, as in A/*/B");
    pattern *added = KPROF_APPEND(e->names, e->count);
    if (!added)
        return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", e->option);
    *added = *gap;
    return make_pattern(e, name, text, &e->names[e->count++]);
}

/* "A/B", "A/+/B", "A/" and the like. */
static kprof_status parse_pushed(expression *e, part body, const char *text)
{
    pattern gap = {0};
    kprof_status status = KPROF_OK;
    for (bool more = true; more && status == KPROF_OK;) {
        part token = {body.begin, find(body, '/')};
        more = token.end < body.end && token.end + 1 < body.end; /* one / may be the last character */
        body.begin = token.end + (token.end < body.end);
        bool is_gap = is_word(token, '*') || is_word(token, '+');
        if (is_gap && (e->count == 0 || !more))
            return fail(e, text, "* and + stand between two ranges, as in A/*/B");
        if (is_word(token, '*'))
            gap.any_gap = true;
        else if (is_gap)
            gap.gap++;
        else
            status = add_name(e, token, text, &gap);
        if (!is_gap)
            gap = (pattern){0};
    }
    return status;
}

/* "A" or "A,B". */
static kprof_status parse_started(expression *e, part body, const char *text)
{
    kprof_status status = KPROF_OK;
    for (bool more = true; more && status == KPROF_OK;) {
        part token = {body.begin, find(body, ',')};
        more = token.end < body.end;
        body.begin = token.end + more;
        status = add_name(e, token, text, &(pattern){0});
    }
    return status;
}

/* Is the last character one without \ before it? */
static bool ends_in(part in, char last)
{
    const char *at = in.begin;
    while ((at = find((part){at, in.end}, last)) < in.end)
        if (++at == in.end)
            return true;
    return false;
}

/* Take [ and ] away from the ends. In a pattern, /[ and /] at the ends are brackets of its own. */
static kprof_status parse_ranges(expression *e, part body, const char *text)
{
    KPROF_AUTO_FREE char *own = NULL;
    size_t length = (size_t)(body.end - body.begin);
    if (e->is_regex && length > 1 && body.begin[0] == '/' && body.begin[1] == '[')
        body.begin++;
    else
        e->at_bottom = length > 0 && *body.begin == '[';
    body.begin += e->at_bottom;
    if (e->is_regex && body.end - body.begin > 1 && body.end[-1] == ']' && body.end[-2] == '/') {
        length = (size_t)(body.end - body.begin);
        own = kprof_strndup(body.begin, length - 1);
        if (!own)
            return kprof_fail(KPROF_NO_MEMORY, "%s: out of memory", e->option);
        own[length - 2] = ']';
        body = (part){own, own + length - 1};
    } else if (ends_in(body, ']')) {
        e->at_top = true;
        body.end--;
    }
    e->is_started = !e->at_bottom && !e->at_top && find(body, '/') == body.end;
    return e->is_started ? parse_started(e, body, text) : parse_pushed(e, body, text);
}

static kprof_status parse(const char *text, expression *e)
{
    const char *pattern_of = kprof_regex_pattern(text), *begin = pattern_of ? pattern_of : text;
    part body = {begin, begin + strlen(begin)};
    const char *at = find(body, '@');
    e->is_regex = pattern_of != NULL;
    if (body.end > body.begin && find(body, '\\') != body.end)
        return fail(e, text, "it ends in a \\ that stands before nothing");
    if (at == body.begin && at < body.end)
        return fail(e, text, "no domain stands before @; leave the @ out for the default domain");
    if (at < body.end) {
        kprof_status status = make_pattern(e, (part){body.begin, at}, text, &e->domain);
        body.begin = at + 1;
        if (status != KPROF_OK)
            return status;
    }
    if (find(body, '@') != body.end && strncmp(e->option, "--nvtx", strlen("--nvtx")) != 0)
        return fail(e, text,
                    "more than one @; kprof knows the module of a native function and the file of one of "
                    "Python: write libnet.so@step or train.py@step");
    if (find(body, '@') != body.end)
        return fail(e, text, "more than one @; an expression is about one domain, and an @ in a name is written \\@");
    if (kprof_begins_with(body.begin, "regex:"))
        return fail(e, text, "\"regex:\" stands at the beginning only, and is about the domain too");
    return parse_ranges(e, body, text);
}

static kprof_status add_all(kprof_nvtx_filter *filter, const char *option, const kprof_strlist *texts)
{
    kprof_status status = KPROF_OK;
    for (size_t i = 0; i < texts->count && status == KPROF_OK; i++) {
        expression *e = &filter->expressions[filter->count++];
        e->option = option;
        status = parse(texts->items[i], e);
    }
    return status;
}

kprof_status kprof_nvtx_filter_new(const char *const options[2], const kprof_strlist *include,
                                   const kprof_strlist *exclude, kprof_nvtx_filter **out)
{
    *out = NULL;
    if (include->count + exclude->count == 0)
        return KPROF_OK;
    kprof_nvtx_filter *filter = kprof_calloc(1, sizeof *filter);
    if (filter)
        filter->expressions = kprof_calloc(include->count + exclude->count, sizeof *filter->expressions);
    if (!filter || !filter->expressions) {
        free(filter);
        return kprof_fail(KPROF_NO_MEMORY, "NVTX ranges to choose: out of memory");
    }
    filter->include_count = include->count;
    kprof_status status = add_all(filter, options[0], include);
    KPROF_THEN(status, add_all(filter, options[1], exclude));
    if (status == KPROF_OK)
        *out = filter;
    else
        kprof_nvtx_filter_free(filter);
    return status;
}

static void free_pattern(pattern *p)
{
    free(p->text);
    kprof_regex_free(p->regex);
}

void kprof_nvtx_filter_free(kprof_nvtx_filter *filter)
{
    if (!filter)
        return;
    for (size_t i = 0; i < filter->count; i++) {
        expression *e = &filter->expressions[i];
        free_pattern(&e->domain);
        for (size_t k = 0; k < e->count; k++)
            free_pattern(&e->names[k]);
        free(e->names);
    }
    KPROF_FREE(filter->expressions, filter);
}

/* A name that takes too long on a pattern counts as no match. */
static bool matches_name(const pattern *p, const char *name)
{
    return p->regex ? kprof_regex_match(p->regex, name) == KPROF_REGEX_YES : strcmp(p->text ? p->text : "", name) == 0;
}

/* The ranges that are pushed in one domain, the outermost first. */
typedef struct stack {
    const kprof_nvtx_range *ranges[KPROF_NVTX_RANGES_MAX];
    size_t depth;
} stack;

/* May `name` follow one that was found at the marked places, at `place`? */
static bool can_follow(const pattern *name, const bool *found, size_t place)
{
    for (size_t before = place; before-- > 0;) {
        size_t between = place - before - 1;
        if (found[before] && (name->any_gap ? between >= name->gap : between == name->gap))
            return true;
    }
    return false;
}

/* Mark the places where the last name of the expression may be. */
static void find_last(const expression *e, const stack *s, bool found[KPROF_NVTX_RANGES_MAX])
{
    memset(found, 0, KPROF_NVTX_RANGES_MAX * sizeof *found);
    for (size_t i = 0; i < e->count; i++) {
        bool next[KPROF_NVTX_RANGES_MAX] = {false};
        for (size_t place = 0; place < s->depth; place++) {
            bool is_possible = i > 0 ? can_follow(&e->names[i], found, place) : !e->at_bottom || place == 0;
            bool is_last = i + 1 == e->count && e->at_top;
            next[place] = is_possible && (!is_last || place + 1 == s->depth) &&
                          matches_name(&e->names[i], s->ranges[place]->name);
        }
        memcpy(found, next, sizeof next);
    }
}

/* `marks`: the range of the last name is to have one of them; 0: any will do. */
static bool matches_stack(const expression *e, const stack *s, uint64_t marks)
{
    bool found[KPROF_NVTX_RANGES_MAX];
    find_last(e, s, found);
    return KPROF_ANY(i, s->depth, found[i] && (!marks || (s->ranges[i]->marks & marks)));
}

/* Was any of the ranges from `begin` to before `end` pushed in the domain? */
static bool has_pushed(const kprof_nvtx_ranges *ranges, size_t begin, size_t end, const char *domain)
{
    for (size_t i = begin; i < end; i++)
        if (!ranges->items[i].is_started && strcmp(ranges->items[i].domain, domain) == 0)
            return true;
    return false;
}

static void collect_stack(const kprof_nvtx_ranges *ranges, const char *domain, stack *out)
{
    out->depth = 0;
    for (size_t i = 0; i < ranges->count && out->depth < KPROF_NVTX_RANGES_MAX; i++)
        if (!ranges->items[i].is_started && strcmp(ranges->items[i].domain, domain) == 0)
            out->ranges[out->depth++] = &ranges->items[i];
}

static bool matches_domain(const expression *e, const char *domain)
{
    return e->domain.text ? matches_name(&e->domain, domain) : domain[0] == '\0';
}

static bool matches_pushed(const expression *e, const kprof_nvtx_ranges *ranges, uint64_t marks)
{
    stack s;
    for (size_t i = 0; i < ranges->count; i++) {
        const kprof_nvtx_range *range = &ranges->items[i];
        if (range->is_started || has_pushed(ranges, 0, i, range->domain) || !matches_domain(e, range->domain))
            continue;
        collect_stack(ranges, range->domain, &s);
        if (matches_stack(e, &s, marks))
            return true;
    }
    return false;
}

static bool is_range_started(const expression *e, const pattern *name, const kprof_nvtx_range *range)
{
    return range->is_started && matches_domain(e, range->domain) && matches_name(name, range->name);
}

/* Is each range of the expression started, and is one of them marked? */
static bool matches_started(const expression *e, const kprof_nvtx_ranges *ranges, uint64_t marks)
{
    bool is_marked = !marks;
    for (size_t i = 0; i < e->count; i++) {
        bool found = false;
        for (size_t k = 0; k < ranges->count; k++) {
            const bool is_it = is_range_started(e, &e->names[i], &ranges->items[k]);
            is_marked = is_marked || (is_it && (ranges->items[k].marks & marks));
            found = found || is_it;
        }
        if (!found)
            return false;
    }
    return is_marked;
}

static bool matches(const expression *e, const kprof_nvtx_ranges *ranges, uint64_t marks)
{
    return e->is_started ? matches_started(e, ranges, marks) : matches_pushed(e, ranges, marks);
}

bool kprof_nvtx_filter_match(const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *ranges, unsigned how)
{
    bool is_included = filter->include_count == 0 || (how & KPROF_NVTX_INCLUDES_ALL);
    for (size_t i = 0; i < filter->include_count && !is_included; i++)
        is_included =
            matches(&filter->expressions[i], ranges, how & KPROF_NVTX_BY_INSTANCE ? UINT64_C(1) << i % 64 : 0);
    for (size_t i = filter->include_count; i < filter->count && is_included; i++)
        is_included = !matches(&filter->expressions[i], ranges, 0);
    return is_included;
}

static bool completes(const expression *e, const kprof_nvtx_ranges *ranges, const kprof_nvtx_range *begun)
{
    bool found[KPROF_NVTX_RANGES_MAX], is_named = false;
    stack s;
    if (e->is_started) {
        for (size_t i = 0; i < e->count; i++)
            is_named = is_named || is_range_started(e, &e->names[i], begun);
        return is_named && matches_started(e, ranges, 0);
    }
    if (begun->is_started || !matches_domain(e, begun->domain))
        return false;
    collect_stack(ranges, begun->domain, &s);
    find_last(e, &s, found);
    return KPROF_ANY(i, s.depth, found[i] && s.ranges[i] == begun);
}

uint64_t kprof_nvtx_filter_completed(const kprof_nvtx_filter *filter, const kprof_nvtx_ranges *ranges, size_t begun)
{
    uint64_t completed = 0;
    for (size_t i = 0; i < filter->include_count && i < 64; i++)
        completed |= (uint64_t)completes(&filter->expressions[i], ranges, &ranges->items[begun]) << i;
    return completed;
}

static uint64_t work_of(const pattern *p)
{
    return p->regex ? kprof_regex_work(p->regex) : 0;
}

uint64_t kprof_nvtx_filter_work(const kprof_nvtx_filter *filter)
{
    uint64_t work = 0;
    for (size_t i = 0; i < filter->count; i++) {
        const expression *e = &filter->expressions[i];
        work += work_of(&e->domain);
        for (size_t k = 0; k < e->count; k++)
            work += work_of(&e->names[k]);
    }
    return work;
}

/* Names come from the application: what could steer a terminal is spelled out before anything is marked with \. */
static void put_name(const char *name, const char *end, kprof_strbuf *out)
{
    KPROF_AUTO_FREE char *clean = kprof_clean_text(name);
    out->failed = out->failed || !clean;
    for (const char *at = clean; at && *at; at++) {
        if (strchr("\\/@;", *at))
            kprof_strbuf_puts(out, "\\");
        kprof_strbuf_append(out, at, 1);
    }
    kprof_strbuf_puts(out, end);
}

static void begin_part(const char *domain, size_t begin, kprof_strbuf *out)
{
    if (out->length > begin)
        kprof_strbuf_puts(out, PART_END);
    if (domain[0])
        put_name(domain, "@", out);
}

void kprof_nvtx_put_text(const kprof_nvtx_ranges *ranges, kprof_strbuf *out)
{
    size_t begin = out->length;
    stack s;
    for (size_t i = ranges->count; i-- > 0;) {
        const kprof_nvtx_range *range = &ranges->items[i];
        if (range->is_started || has_pushed(ranges, i + 1, ranges->count, range->domain))
            continue;
        begin_part(range->domain, begin, out);
        collect_stack(ranges, range->domain, &s);
        for (size_t k = 0; k < s.depth; k++)
            put_name(s.ranges[k]->name, "/", out);
    }
    for (size_t i = 0; i < ranges->count; i++) {
        if (!ranges->items[i].is_started)
            continue;
        begin_part(ranges->items[i].domain, begin, out);
        put_name(ranges->items[i].name, "", out);
    }
}

/* Take the next name from a text, in place, and tell what ended it: / @ ; or NUL. */
static const char *take_name(char **text, char *end)
{
    char *name = *text, *to = name;
    for (; **text && !strchr("/@;", **text); ++*text) {
        if (**text == '\\' && (*text)[1])
            ++*text;
        *to++ = **text;
    }
    *end = **text;
    *text += **text != '\0';
    *to = '\0';
    return name;
}

bool kprof_nvtx_parse_text(const char *text, kprof_nvtx_parsed *out)
{
    out->count = 0;
    char *rest = out->names = kprof_strdup(text);
    const char *domain = "";
    bool in_stack = false;
    while (rest && *rest && out->count < KPROF_NVTX_RANGES_MAX) {
        char end;
        const char *name = take_name(&rest, &end);
        bool ends_stack = in_stack && *name == '\0' && end != '/'; /* behind the last / */
        if (end == '@')
            domain = name;
        else if (!ends_stack)
            out->items[out->count++] = (kprof_nvtx_range){domain, name, end != '/', 0};
        in_stack = end == '/';
        if (end == ';') {
            domain = "";
            rest += *rest == ' ';
        }
    }
    return out->names != NULL;
}

void kprof_nvtx_parsed_free(kprof_nvtx_parsed *parsed)
{
    free(parsed->names);
    parsed->names = NULL;
}

size_t kprof_nvtx_innermost_length(const char *text)
{
    return (size_t)(find((part){text, text + strlen(text)}, ';') - text);
}
