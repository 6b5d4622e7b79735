/* Includes the headers that cmocka.h needs before it. */
#ifndef KPROF_TESTS_CMOCKA_ALL_H
#define KPROF_TESTS_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
