/* The streams that are being captured. */
#pragma once

#include <cupti.h>
#include <stdbool.h>

/* Note what a driver call of the application, which returned `result`, did to captures. `context`: the current one. */
void kprof_capturing_note(CUpti_CallbackId id, const void *parameters, const void *context, CUresult result);
/* The context ends, and its captures with it. */
void kprof_capturing_forget(const void *context);
/* Is a stream being captured? */
bool kprof_capturing(void);
