/* The program of tests that have nothing to do before or after all of them. */
#include "test.h"

int main(void)
{
    return run_all_tests(NULL, NULL);
}
