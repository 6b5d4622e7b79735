#!/usr/bin/env python3
"""Runs a document's examples and compares their output with the document's.
Usage: examples.py SOURCE BUILD DOCUMENT NEED

Examples are ```console blocks with commands after "$ " (continued after "> ") and their output below, and ```pycon
blocks. They run in the order of the document in one scratch folder. NEED tells which of them count: those that need
"cupti", "sqlite3", "pandas" or nothing more than kprof ("reporter"). Exit status 77 where that is not there."""
import doctest
import os
import pathlib
import subprocess
import sys

import markdown
from scratch import Scratch, find_difference, is_there, needs

SKIPPED = 77


class Example:
    """A command with the output that is shown below it, or the lines of an interpreter's session."""

    def __init__(self, line, command=None, session=None):
        self.line, self.command, self.session, self.expected = line, command, session, []
        self.need = "pandas" if session else None


def parse_console(block):
    examples = []
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            examples.append(Example(number, command=line[2:]))
        elif not examples:
            raise ValueError(f"line {number}: a console block begins with a command")
        elif line.startswith("> ") and not examples[-1].expected:
            examples[-1].command += "\n" + line[2:]
        else:
            examples[-1].expected.append(line)
    for example in examples:
        example.need = needs(example.command)
    return examples


def parse(text):
    """Every example of a document, in order."""
    examples = []
    for block in markdown.split(text)[0]:
        if block.language == "console":
            examples += parse_console(block)
        elif block.language == "pycon":
            examples.append(Example(block.line, session=block.lines))
    return examples


def run_command(example, scratch):
    status, output = scratch.run(example.command)
    if status != 0:
        return f"{example.command}\nexit status {status}\n{output}"
    difference = find_difference(example.expected, output) if example.expected else None
    return f"{example.command}\n{difference}" if difference else None


def run_session(example, scratch):
    """In another interpreter, because of its folder and environment."""
    (scratch.root / "session.txt").write_text("\n".join(example.session) + "\n")
    done = subprocess.run([sys.executable, __file__, "--doctest", "session.txt"], cwd=scratch.root,
                          env=scratch.environment, capture_output=True, text=True)
    return f"the session:\n{done.stdout}{done.stderr}" if done.returncode else None


def run_doctest(path):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    text = pathlib.Path(path).read_text().replace("…", "...")
    test = doctest.DocTestParser().get_doctest(text, {}, path, path, 0)
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    runner.run(test)
    return 1 if runner.failures or not runner.tries else 0


def run_all(examples, wanted, scratch):
    """Run what can run here; how the wanted ones differ from the document, or None when those cannot run."""
    there = {need: is_there(need, scratch) for need in {example.need for example in examples} | {wanted}}
    failures = []
    for example in examples if there[wanted] else []:
        run = run_session if example.session else run_command
        difference = run(example, scratch) if there[example.need] else None
        if difference and example.need == wanted:
            failures.append(f"line {example.line}: {difference}")
    return failures if there[wanted] else None


def main(source, build, document, wanted):
    wanted = "" if wanted == "reporter" else wanted
    examples = parse((source / document).read_text())
    if not list((source / "samples").glob("*.kprof")):
        print("there is no recorded run below samples/")
        return SKIPPED
    with Scratch(source, build) as scratch:
        failures = run_all(examples, wanted, scratch)
    if failures is None:
        print(f"{document}: {wanted} is not here")
        return SKIPPED
    counted = sum(example.need == wanted for example in examples)
    print(f"{document}: {counted} examples, {len(failures)} failed", *failures, sep="\n\n")
    return 1 if failures or counted == 0 else 0


if __name__ == "__main__":
    if sys.argv[1] == "--doctest":
        sys.exit(run_doctest(sys.argv[2]))
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(os.path.abspath(sys.argv[2])), *sys.argv[3:]))
