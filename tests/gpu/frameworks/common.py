"""Helpers of the framework programs. This module imports no framework, so that a program can set up its environment
first. Results go to stdout and times to stderr: stdout is the same in each run."""
import sys
import time
import zlib

SKIPPED = 77


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


def checksum(name, data):
    """Print the CRC-32 of some bytes."""
    print(f"checksum {name} {zlib.crc32(data):08x}")


class Stopwatch:
    """Measures the part of the program that does the work, without imports and setup."""

    def __init__(self):
        self.start = time.perf_counter()

    def report(self):
        print(f"program seconds {time.perf_counter() - self.start:.4f}", file=sys.stderr)
