/* What a test asks of the side of the simulated machine that the engine sees. */
#ifndef KPROF_SIM_BACKEND_H
#define KPROF_SIM_BACKEND_H

/* A violation when the engine has not freed everything that it made. */
void sim_check_nothing_left(void);

#endif
