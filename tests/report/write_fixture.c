/* Writes the fixture report to the path given, for tests in other languages. */
#include "fixture.h"

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: write_fixture FILE\n");
        return 2;
    }
    fixture_write(argv[1]);
    return 0;
}
