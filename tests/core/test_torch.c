/* The names that torch.autograd.profiler.emit_nvtx gives to ranges, and what a launch in them is of. */
#include "core/torch.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

TEST(ranges_are_read)
{
    static const struct {
        const char *text;
        kprof_torch_kind kind;
        const char *name;
        int64_t sequence; /* -1: none */
    } cases[] = {
        {"aten::linear, seq = 12, op_id = 34", KPROF_TORCH_OPERATOR, "aten::linear", 12},
        {"aten::empty, op_id = 35", KPROF_TORCH_OPERATOR, "aten::empty", -1},
        {"aten::mm", KPROF_TORCH_OPERATOR, "aten::mm", -1},
        {"aten::mm, seq = 7, op_id = 1, sizes = [[2, 3], [3, 4]], input_op_ids = [(1,0), (2,0)]", KPROF_TORCH_OPERATOR,
         "aten::mm", 7},
        {"autograd::engine::evaluate_function: AddmmBackward0, seq = 12, op_id = 40", KPROF_TORCH_BACKWARD,
         "AddmmBackward0", 12},
        {"AddmmBackward0, seq = 12, op_id = 41", KPROF_TORCH_BACKWARD, "AddmmBackward0", 12},
        {"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 5", KPROF_TORCH_BACKWARD,
         "torch::autograd::AccumulateGrad", -1},
        {"nn.Module: Linear_0", KPROF_TORCH_MODULE, "Linear_0", -1},
        {"layer1, op_id = 3", KPROF_TORCH_MODULE, "layer1", -1},
        {"ProfilerStep#3, op_id = 3", KPROF_TORCH_OTHER, "ProfilerStep#3", -1},
        {"step 17", KPROF_TORCH_OTHER, "step 17", -1},
        {"myBackward", KPROF_TORCH_OTHER, "myBackward", -1},
        {"load a::b now", KPROF_TORCH_OTHER, "load a::b now", -1},
        {"x, seq = y", KPROF_TORCH_MODULE, "x", -1},
        {"", KPROF_TORCH_OTHER, "", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kprof_torch_range found = kprof_torch_read(cases[i].text);
        if (found.kind != cases[i].kind || found.length != strlen(cases[i].name) ||
            strncmp(found.name, cases[i].name, found.length) != 0 ||
            (found.has_sequence ? (int64_t)found.sequence : -1) != cases[i].sequence)
            fail_msg("\"%s\": kind %d, \"%.*s\"", cases[i].text, (int)found.kind, (int)found.length, found.name);
    }
}

TEST(launches_are_of_modules)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"step 3/", ""},
        {"aten::linear, seq = 1", ""}, /* started, not pushed */
        {"step 3/aten::linear, seq = 1, op_id = 2/aten::addmm, seq = 1, op_id = 3/", "aten::linear"},
        {"step 3/block, op_id = 1/layer1, op_id = 2/aten::linear, op_id = 3/", "layer1"},
        {"nn.Module: Net/nn.Module: Linear_0/aten::linear/aten::t/", "Linear_0"},
        {"a\\/b, op_id = 1/", "a/b"},
        {"autograd::engine::evaluate_function: MulBackward0, seq = 3/MulBackward0, seq = 3/aten::mul/", "MulBackward0"},
        {"NCCL@ncclAllReduce/; aten::linear/", ""}, /* the innermost domain is another library's */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kprof_strbuf out = KPROF_STRBUF_INIT;
        kprof_torch_put_module(cases[i][0], &out);
        char *text = kprof_strbuf_take(&out);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}
