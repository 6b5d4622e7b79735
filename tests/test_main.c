/* The program of tests that need no main of their own. */
#include "test.h"

int main(void)
{
    return run_all_tests();
}
