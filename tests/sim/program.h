/* Random programs for the simulated machine: valid ones, whose results do not depend on when the device runs what. */
#pragma once

#include "sim/device.h"

#include <stdio.h>

enum { SIM_MAX_STEPS = 480 };

/* The steps of a program. */
typedef struct sim_traits {
    unsigned lanes; /* threads */
    unsigned steps; /* of each lane, about */
    bool shared_memory, host_access, crashes, captures, nested_calls, odd_launches;
    bool exported_memory; /* other devices have it */
    bool common;          /* threads use the same streams, events and memory */
    bool one_context;     /* the other one is not used, as it has to be where replays put memory of the host back */
    bool plain_memory;    /* none is mapped, or comes and goes in the order of streams */
    bool pools;           /* memory comes and goes in the order of streams */
    bool holds;           /* work waits for the host; of one thread only */
    bool profiler_calls;  /* the program says when launches are to be measured */
    bool ranges;          /* likewise, and it often is a short range of one stream or two */
    bool spins, peers;    /* kernels wait for the host, or for later work in another stream; of one thread only */
    bool served;          /* what waits for the host ends before anything comes behind it, and has changed memory */
    bool values;          /* streams wait for values in memory */
    bool long_batches;    /* hardly anything but launches */
    bool quiet_captures;  /* hardly anything runs beside them, so that batches stay open over them */
    bool staged;          /* copies from and to the host, and functions of the host, in the order of streams */
    bool changes_graphs;  /* graphs are changed, and launched again later, in other streams, too */
    bool polls;           /* the host asks for a stream until its work is done */
    bool refusals;        /* the driver refuses allocations, copies and launches of graphs */
    bool few_kernels;     /* launches of each come often */
    bool slow;            /* kernels take longer than a call may be held; of one thread only */
    bool reloads;         /* modules often come and go, and their kernels are launched */
    bool dice;            /* a kernel computes something else in each replay, and the host sees it */
} sim_traits;

typedef struct sim_program {
    sim_traits traits;
    sim_step steps[SIM_LANES][SIM_MAX_STEPS];
    unsigned counts[SIM_LANES];
    bool crashes[SIM_CONTEXTS];
    unsigned crash[SIM_LANES][SIM_CONTEXTS]; /* first step from which the context may be in error, or SIM_MAX_STEPS */
    bool lost[SIM_SLOTS]; /* a crash keeps some of the work on it from being done, and which depends on when */
} sim_program;

/* All that a run shows: what the host saw at each step, and what the memory is in the end. */
typedef struct sim_result {
    uint64_t seen[SIM_LANES][SIM_MAX_STEPS];
    uint64_t memory[SIM_SLOTS];
    uint64_t printed[SIM_STREAMS];
    uint64_t signatures[SIM_TAGS];
} sim_result;

void sim_program_generate(sim_program *program, const sim_traits *traits, uint64_t seed);
/* Run each lane on a thread of its own, where there are several. */
void sim_program_run(const sim_program *program, sim_result *result);
/* Read memory as it is, without a driver call. */
void sim_program_read_memory(const sim_program *program, sim_result *result);
void sim_program_print(const sim_program *program, FILE *file);
/* The first difference as a text; NULL when there is none. Valid until the next call. */
const char *sim_program_compare(const sim_program *program, const sim_result *plain, const sim_result *profiled);
/* The nodes of the graph that a step launches, with the tags of that launch; their number. */
unsigned sim_program_nodes(const sim_program *program, unsigned lane, unsigned step, sim_step nodes[SIM_NODES]);
