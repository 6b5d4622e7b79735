/* Mutexes that a block holds. */
#pragma once

#include <pthread.h>

/* Take a mutex, and give it back as the block ends, on whatever way: what a `return` computes is computed with it. */
#define KPROF_HOLD(mutex) KPROF_HOLD_(mutex, __LINE__)

#define KPROF_HOLD_(mutex, line) KPROF_HOLD_AS(mutex, line)
#define KPROF_HOLD_AS(mutex, line)                                                                                     \
    __attribute__((cleanup(kprof_let_go), unused)) pthread_mutex_t *held_##line = kprof_take_hold(&(mutex))

static inline pthread_mutex_t *kprof_take_hold(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void kprof_let_go(pthread_mutex_t *const *mutex)
{
    pthread_mutex_unlock(*mutex);
}
