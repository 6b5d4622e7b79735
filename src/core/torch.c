/* Takes the names of PyTorch's NVTX ranges apart. */
#include "core/torch.h"

#include "core/nvtx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NODE_PREFIX   "autograd::engine::evaluate_function: "
#define MODULE_PREFIX "nn.Module: "
#define SEQUENCE      ", seq = "

static bool skip_prefix(const char **text, const char *prefix)
{
    const char *rest = kprof_after(*text, prefix);
    *text = rest ? rest : *text;
    return rest;
}

/* The begin of the arguments that PyTorch puts behind the name; NULL: it puts none. */
static const char *find_arguments(const char *range)
{
    static const char *const arguments[] = {SEQUENCE, ", op_id = ", ", sizes = ", ", input_op_ids = "};
    const char *first = NULL;
    for (size_t i = 0; i < COUNT_OF(arguments); i++) {
        const char *at = strstr(range, arguments[i]);
        if (at && (!first || at < first))
            first = at;
    }
    return first;
}

/* AddmmBackward0, SumBackward */
static bool is_node(const char *name, size_t length)
{
    static const char ending[] = "Backward";
    while (length > 0 && isdigit((unsigned char)name[length - 1]))
        length--;
    return length >= sizeof ending - 1 && memcmp(name + length - (sizeof ending - 1), ending, sizeof ending - 1) == 0;
}

kprof_torch_range kprof_torch_read(const char *range)
{
    const char *arguments = find_arguments(range);
    const size_t all = arguments ? (size_t)(arguments - range) : strlen(range);
    const char *name = range;
    const bool is_evaluation = skip_prefix(&name, NODE_PREFIX), is_module = skip_prefix(&name, MODULE_PREFIX);
    kprof_torch_range out = {.name = name, .length = (size_t)(range + all - name)};
    const char *colons = strstr(name, "::"); /* of aten::linear: a name of C++ without spaces */
    if (is_evaluation || (arguments && is_node(name, out.length)))
        out.kind = KPROF_TORCH_BACKWARD;
    else if (colons && colons > name && colons < name + out.length && !memchr(name, ' ', out.length))
        out.kind = KPROF_TORCH_OPERATOR;
    else if (is_module || (arguments && !kprof_begins_with(range, "ProfilerStep#")))
        out.kind = KPROF_TORCH_MODULE;
    const char *sequence = strstr(range, SEQUENCE);
    if (sequence && isdigit((unsigned char)sequence[sizeof SEQUENCE - 1])) {
        out.has_sequence = true;
        out.sequence = strtoull(sequence + sizeof SEQUENCE - 1, NULL, 10);
    }
    return out;
}

void kprof_torch_put_module(const char *ranges, kprof_strbuf *out)
{
    kprof_nvtx_parsed parsed;
    kprof_torch_range best = {.kind = KPROF_TORCH_OTHER};
    KPROF_AUTO_FREE char *innermost = kprof_strndup(ranges, kprof_nvtx_innermost_length(ranges));
    if (!innermost || !kprof_nvtx_parse_text(innermost, &parsed)) {
        out->failed = true;
        return;
    }
    for (size_t i = parsed.count; i-- > 0 && best.kind != KPROF_TORCH_MODULE;) {
        const kprof_torch_range range = kprof_torch_read(parsed.items[i].name);
        if (range.kind != KPROF_TORCH_OTHER && !parsed.items[i].is_started)
            best = range;
    }
    if (best.kind != KPROF_TORCH_OTHER)
        kprof_strbuf_append(out, best.name, best.length);
    kprof_nvtx_parsed_free(&parsed);
}
