#!/usr/bin/env python3
"""Runs samples/notebook/analysis.py on two reports, and checks that the notebooks have the same cells as the scripts.
With --write it makes the notebooks from the scripts. tests/e2e runs the other one, which measures.
Usage: notebook.py SOURCE KPROF WRITE_FIXTURE | notebook.py SOURCE --write"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def cells_of(script):
    """The cells of the script, as a notebook has them."""
    cells = []
    for line in script.splitlines(keepends=True):
        if line.startswith("# %%"):
            cells.append({"cell_type": "markdown" if "[markdown]" in line else "code", "metadata": {}, "source": []})
            if cells[-1]["cell_type"] == "code":
                cells[-1].update(execution_count=None, outputs=[])
        else:
            cells[-1]["source"].append(line.removeprefix("# ").replace("#\n", "\n")
                                       if cells[-1]["cell_type"] == "markdown" else line)
    for cell in cells:
        text = "".join(cell["source"]).strip("\n")
        cell["source"] = text.splitlines(keepends=True)
    return cells


def notebook_of(script):
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells_of(script), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}


def run(source, kprof, write_fixture):
    with tempfile.TemporaryDirectory() as folder:
        before, after = os.path.join(folder, "before.kprof"), os.path.join(folder, "after.kprof")
        subprocess.run([write_fixture, before, "before"], check=True)
        subprocess.run([write_fixture, after, "after"], check=True)
        for reports, expected in (({}, "Of the roof: 66.97 %"), ({"REPORT": before, "OTHER": after}, "vectorAdd")):
            environment = {**os.environ, "KPROF": kprof, "OUT": folder, "MPLCONFIGDIR": folder, **reports}
            result = subprocess.run([sys.executable, "samples/notebook/analysis.py"], cwd=source, env=environment,
                                    capture_output=True, text=True)
            if result.returncode or expected not in result.stdout or "agree" not in result.stdout:
                return f"analysis.py: exit {result.returncode}\n{result.stdout}{result.stderr}"
            if not os.path.getsize(os.path.join(folder, "comparison.png")):
                return "analysis.py: no picture"
    return None


def settle(source, name, writes):
    """Make the notebook of a script, or say what is wrong with it."""
    notebook = source / f"samples/notebook/{name}.ipynb"
    made = notebook_of((source / f"samples/notebook/{name}.py").read_text())
    if writes:
        notebook.write_text(json.dumps(made, indent=1) + "\n")
    if json.loads(notebook.read_text()) != made:
        return f"{notebook}: other cells than the script's; tests/samples/notebook.py . --write"
    return None


def main():
    source = pathlib.Path(sys.argv[1])
    for name in ("analysis", "inside"):
        wrong = settle(source, name, sys.argv[2] == "--write")
        if wrong:
            print(wrong)
            return 1
    if sys.argv[2] == "--write":
        return 0
    try:
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    wrong = run(source, sys.argv[2], sys.argv[3])
    print(wrong or "the notebook runs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
