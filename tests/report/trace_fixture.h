/* A report with a trace for tests, made through the public interface. All times are known by arithmetic. */
#pragma once

/* When it begins, in ns since 1970. */
#define TRACE_START_NS INT64_C(1751371200000000000)
#define TRACE_STEPS    3

/* Write it to `path`, finished and closed. Fails the test when that fails. What it holds: see trace_fixture.c. */
void trace_fixture_write(const char *path);
