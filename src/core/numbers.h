/* Numbers from 1 that the user chose, as ncu's --kernel-id and --range-filter have them: "3", or a pattern that the
 * whole number matches, such as "[2-4]", "2|5" or ".*7". */
#pragma once

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct kprof_numbers kprof_numbers;

/* `option` (borrowed) is what messages begin with: "--kernel-id". USAGE when no number could match. */
kprof_status kprof_numbers_new(const char *option, const char *text, kprof_numbers **out) KPROF_MUST_CHECK;
void kprof_numbers_free(kprof_numbers *numbers);

/* Thread-safe. A pattern is asked once about each number below 65,536. */
bool kprof_numbers_have(kprof_numbers *numbers, uint64_t number);
