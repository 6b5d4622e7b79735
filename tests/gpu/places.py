"""Which lines findings must name: the table `Places` of tests/gpu/findings/README.md, held to what a report names."""
import collections
import json
import re

import harness

FOLDER = harness.ROOT / "tests/gpu/findings"
README = FOLDER / "README.md"
HEADER = "| finding | kernel | line | waits for | kernel without the fault |"
FUNCTION = re.compile(r"^(?:template.*> )?(?:static|__global__) [^;=]*?\b(?!__)(\w+)\([^;]*\)$", re.MULTILINE)

Place = collections.namedtuple("Place", "finding kernel lines waits twin")
Function = collections.namedtuple("Function", "file first text")


def read_places(text):
    """The rows of the table: the texts of lines that a finding has to name one of."""
    rows = text.partition(HEADER)[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
    quoted = re.compile(r"`([^`]+)`")
    return [Place(row[0], *quoted.findall(row[1]), quoted.findall(row[2]), quoted.findall(row[3]),
                  *quoted.findall(row[4])) for row in cells]


def read_functions():
    """The functions of the program, by name."""
    functions = {}
    for path in sorted(FOLDER.glob("*.cu")) + sorted(FOLDER.glob("*.h")):
        text = path.read_text(encoding="utf-8")
        for found in FUNCTION.finditer(text):
            end = text.find("\n}\n", found.end())
            functions[found.group(1)] = Function(path.name, text.count("\n", 0, found.start()) + 1,
                                                 text[found.start():end])
    return functions


def lines_with(functions, kernel, texts):
    """"memory.cu:14" of each line with one of these texts, in the kernel or in what it calls; the kernel goes first."""
    body = functions[kernel].text.partition("\n{")[2]
    called = [name for name in re.findall(r"\b(\w+)(?:<\w+>)?\(", body) if name in functions]
    for names in ([kernel], called):
        found = {f"{functions[name].file}:{functions[name].first + number}" for name in names
                 for number, line in enumerate(functions[name].text.split("\n")) if any(text in line for text in texts)}
        if found:
            return found
    return set()


def names_of(place):
    """The line that a report names, and the one that calls it."""
    return {name for name in (place["place"], place["called_from"]) if name}


def named_places(launches, finding, kernel):
    return [place for launch in launches if launch["kernel"]["function"] == kernel
            for found in launch["findings"] if found["id"] == finding for place in found["places"] or []]


def faults_of(launches, expected, functions):
    """What is wrong in the launches of a report in JSON."""
    faults = []
    for row in expected:
        places = named_places(launches, row.finding, row.kernel)
        lines, sources = (lines_with(functions, row.kernel, texts) for texts in (row.lines, row.waits))
        right = [place for place in places if names_of(place) & lines]
        told = ", ".join(place["place"] for place in places) or "no line"
        if not right:
            faults.append(f"{row.finding} names {told} of {row.kernel}, and not {' or '.join(sorted(lines))}")
        elif sources and not any(place["waits_for"] and names_of(place["waits_for"]) & sources for place in right):
            faults.append(f"{row.finding} does not say that {row.kernel} waits for {' or '.join(sorted(sources))}")
        twin = lines_with(functions, row.twin, row.lines)
        faults += [f"{row.finding} names {place['place']} of {row.twin}, which has no fault there"
                   for place in named_places(launches, row.finding, row.twin) if names_of(place) & twin]
    return faults


def read_launches(report):
    result = harness.run([harness.kprof(), "report", report, "--json"])
    return json.loads(result.stdout)["launches"]
