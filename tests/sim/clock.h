/* Time that passes without waiting for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Put the monotonic clock of the program or library ahead by so much more. */
void sim_clock_advance_s(int seconds);
void sim_clock_advance_ms(int64_t ms);

/* Has the thread asked for the end of a wait since it called this last? */
bool sim_clock_was_asked(void);

/* Let waits until a time end so much sooner. */
void sim_clock_set_back_ms(int ms);
