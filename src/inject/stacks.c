/* Hands frames and stacks over as records, before the launches that have them. */
#include "inject/stacks.h"

#include "callstack/stacks.h"
#include "inject/engine.h"
#include "inject/process.h"

static void write_frame(const kprof_stack_frame *frame)
{
    kprof_record record = {.type = KPROF_RECORD_FRAME};
    record.frame = (kprof_frame_record){frame->number, frame->is_native, frame->function, frame->file, frame->place};
    kprof_process_write(&record);
}

static void write_stack(const kprof_stack *stack)
{
    double frames[2 * KPROF_STACK_FRAMES_MAX];
    kprof_record record = {.type = KPROF_RECORD_STACK};
    for (uint32_t i = 0; i < stack->count; i++)
        frames[i] = stack->frames[i];
    record.stack = (kprof_stack_record){stack->number, stack->is_cut, stack->reason, stack->count, frames};
    kprof_process_write(&record);
}

void kprof_launch_stacks_prepare(void)
{
    kprof_stacks_prepare((kprof_stack_kinds)kprof_engine.process.config.call_stack_type);
}

uint32_t kprof_launch_stack(void)
{
    static const kprof_stack_hooks hooks = {write_frame, write_stack};
    const kprof_stack_kinds kinds = (kprof_stack_kinds)kprof_engine.process.config.call_stack_type;
    return kinds == KPROF_STACK_NONE ? 0 : kprof_stacks_take(kinds, &hooks);
}
