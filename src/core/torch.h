/* Reads the NVTX ranges of PyTorch. torch.autograd.profiler.emit_nvtx pushes one for each operator, each node of the
 * backward pass and each record_function: its name, and behind it ", seq = N, op_id = N, sizes = [...]". Source:
 * getNvtxStr in torch/csrc/profiler/util.cpp. */
#pragma once

#include "core/strbuf.h"

#include <stdint.h>

typedef enum kprof_torch_kind {
    KPROF_TORCH_OTHER,    /* none of PyTorch's */
    KPROF_TORCH_MODULE,   /* an nn.Module, or a record_function of the user */
    KPROF_TORCH_OPERATOR, /* as aten::linear */
    KPROF_TORCH_BACKWARD  /* a node of the backward pass, as AddmmBackward0 */
} kprof_torch_kind;

typedef struct kprof_torch_range {
    kprof_torch_kind kind;
    const char *name; /* [length], within the text of the range */
    size_t length;
    bool has_sequence;
    uint64_t sequence; /* the same in a node of the backward pass as in the operator that made it */
} kprof_torch_range;

kprof_torch_range kprof_torch_read(const char *range);

/* Append the name of the module or operator that a launch in these ranges (as kprof_nvtx_put_text writes them) is of:
 * the innermost module, else the outermost operator or node of the backward pass. Nothing: PyTorch names none. */
void kprof_torch_put_module(const char *ranges, kprof_strbuf *out);
