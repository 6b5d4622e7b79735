/* Pairs of reports to compare: kernels with repeats, whose noise comes from a seeded generator. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A run to make a report of. */
typedef struct diff_run {
    bool is_new;              /* after a change of the program: a kernel is slower, another faster, ... */
    uint64_t seed;            /* of the noise */
    const char *command_line; /* NULL: "kprof --set full ./app" */
    const char *chip;         /* NULL: "GH100" */
    bool is_multiplexed;
} diff_run;

/* Write the report, finished and closed; a file of that name is replaced. */
void diff_fixture_write(const char *path, const diff_run *run);

/* A number from 0 to 1 (excluded); the next one for each call. */
double diff_uniform(uint64_t *state);
/* Times of kernels as GPUs give them, with a spread of `noise` (0.01: 1 %): steps of 32 ns, and now and then one much
 * longer. */
double diff_noisy_time(uint64_t *state, double time_ns, double noise);
