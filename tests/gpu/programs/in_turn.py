"""Has a program work when it is told to, so that it takes turns with others."""
import sys


def serve(answers):
    """Answer each line of standard input by what `answers` has for it: {line: function}."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(answers[line.strip()](), flush=True)
