"""Much that tests try one after the other takes long: for each change some of it is tried, which the commit chooses."""

import functools
import os
import random
import subprocess

# tests/run.sh sets it where not all is asked for.
TRIES_SOME = os.environ.get("KPROF_TEST_TRIES") == "some"


@functools.lru_cache(maxsize=None)
def commit():
    """What differs from change to change; a constant where git is missing."""
    git = ["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def some(kinds, count):
    """Of things that a test tries one after the other: these many, which the commit chooses, or all."""
    kinds = list(kinds)
    if not TRIES_SOME or count >= len(kinds):
        return kinds
    chosen = sorted(random.Random(commit()).sample(range(len(kinds)), count))
    print(f"tries {chosen} of {len(kinds)}; all without KPROF_TEST_TRIES=some, as in tests/run.sh all")
    return [kinds[i] for i in chosen]
