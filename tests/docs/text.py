#!/usr/bin/env python3
"""Checks what the documents say of themselves and of kprof: links lead to files and headings, files that commands name,
options and metrics of conditions exist, NEWS knows the version, the glossary is in order and has what is looked up in
it, and sentences of reports are short. Usage: text.py SOURCE BUILD"""
import json
import os
import pathlib
import re
import subprocess
import sys

import markdown


def documents(source):
    """Every Markdown file of the project, in a clone or in an unpacked archive."""
    found = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=source, capture_output=True,
                           text=True)
    names = found.stdout.split("\n") if found.returncode == 0 else [
        str(path.relative_to(source)) for path in source.rglob("*.md")
        if not path.relative_to(source).parts[0].startswith(("build", "."))]
    return sorted(name for name in names if name and (source / name).exists())


def is_installed(path):
    """Does cmake/install.cmake put this file, or the folder of it, beside the documents?"""
    if path.parts[0] == "docs":
        return "man" not in path.parts
    return path.parts[0] == "samples" or str(path) in ("README.md", "CONTRIBUTING.md", "NEWS.md", "LICENSE")


def check_link(source, document, target):
    """What is wrong with a link, or None."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, fragment = target.partition("#")
    file = (source / document).parent / path if path else source / document
    if not file.exists():
        return "there is no such file"
    if source not in file.resolve().parents:
        return "it leads out of the project"
    if is_installed(pathlib.Path(document)) and not is_installed(file.resolve().relative_to(source)):
        return "the document is installed, and this file is not beside it"
    if fragment and fragment not in markdown.anchors(markdown.split(file.read_text())[1]):
        return "there is no such heading"
    return None


def check_links(source):
    for document in documents(source):
        _, prose = markdown.split((source / document).read_text())
        for number, text in markdown.paragraphs(prose):
            for _, target in markdown.links(text):
                wrong = check_link(source, document, target)
                if wrong:
                    yield f"{document}:{number}: {target}: {wrong}"


def check_paths(source):
    """Files that the README's commands name."""
    for block in markdown.split((source / "README.md").read_text())[0]:
        for path in re.findall(r"(?<![\w./])(?:samples|tests|docs)/[\w./-]*\w", "\n".join(block.lines)):
            if not (source / path).exists():
                yield f"README.md: {path}: there is no such file"


def check_sources(source):
    """Sources that docs/internals.md names, by their folder; in src/inject also without that."""
    text = (source / "docs/internals.md").read_text()
    for path in re.findall(r"`(?:src/)?([a-z]+/[a-z_]+\.[ch])`", text):
        if not any((source / "src" / folder / path).exists() for folder in ("", "inject")):
            yield f"docs/internals.md: {path}: there is no such file"


def kprof_words(text):
    """Pieces of a document in which every --option must be one of kprof: its commands, and spans that are an option."""
    blocks, prose = markdown.split(text)
    for block in blocks:
        yield from (line for line in block.lines if re.search(r"(^|[;&|$]) *kprof ", line))
    for _, paragraph in markdown.paragraphs(prose):
        yield from (span for span in markdown.code_spans(paragraph) if re.match(r"(kprof |--)", span))


def check_options(source, kprof):
    known = set()
    for command in ([], ["report"], ["plan"], ["list"], ["diff"], ["export"], ["recover"], ["trace"], ["stats"]):
        words = subprocess.run([kprof, *command, "--complete", "options"], capture_output=True, text=True, check=True)
        known.update(words.stdout.split())
    mentioned = set()
    for document in ("README.md", "docs/guide.md", "docs/internals.md", "docs/planning.md", "docs/reporting.md",
                     "docs/metricsets.md", "docs/report-schema.md"):
        for words in kprof_words((source / document).read_text()):
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", words):
                mentioned.add(option)
                if option not in known:
                    yield f"{document}: {option} is not an option of kprof: {words}"
    if len(mentioned) < 20:
        yield f"only {len(mentioned)} options were found in the documents"


def check_conditions(source, kprof):
    """Conditions of --fail-on in examples must be about metrics that the full set has: those of the recorded run."""
    report = subprocess.run([kprof, "report", source / "samples/vectorAdd-h200.kprof", "--page", "raw", "--json"],
                            capture_output=True, text=True, check=True)
    known = set(re.findall(r'"([a-z0-9]+__[a-z0-9_.]+)"', report.stdout))
    texts = {name: (source / name).read_text() for name in documents(source)}
    for page in (source / "docs/man").glob("*.1"):
        texts[f"docs/man/{page.name}"] = re.sub(r"\\\(..", '"', page.read_text())
    told = subprocess.run([kprof, "diff", "--help"], capture_output=True, text=True, check=True)
    texts["kprof diff --help"] = told.stdout
    found = [(name, metric) for name, text in texts.items()
             for metric in re.findall(r"\b([a-z0-9]+__[a-z0-9_.]+) ?[<>]=? ?[-+]?\d", text)]
    for name, metric in found:
        if metric not in known and f'metric "{metric}" is not in' not in texts[name]: # an example of a mistake
            yield f"{name}: the full set has no {metric}"
    if "kprof diff --help" not in {name for name, _ in found} or len(found) < 5:
        yield f"only {len(found)} conditions were found in the documents"


def check_news(source, kprof):
    version = subprocess.run([kprof, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    if not re.search(rf"^## {re.escape(version)}\b", (source / "NEWS.md").read_text(), re.MULTILINE):
        yield f"NEWS.md: has no heading for version {version}"


def check_glossary(source):
    entries = re.findall(r"^\*\*(.+?)\*\*: (.*)$", (source / "docs/glossary.md").read_text(), re.MULTILINE)
    terms = [term for term, _ in entries]
    if len(terms) < 30:
        yield f"docs/glossary.md: only {len(terms)} terms were found"
    for before, after in zip(terms, terms[1:]):
        if before.lower() >= after.lower():
            yield f"docs/glossary.md: {after} stands after {before}"
    names = {name for term in terms for name in re.split(r", | \(.*\)", term.lower()) if name}
    for document in documents(source):
        prose = markdown.split((source / document).read_text())[1]
        for number, text in markdown.paragraphs(prose):
            looked_up = [word for word, target in markdown.links(text)
                         if target.endswith("glossary.md") and not word.startswith("glossary")]
            if document == "docs/glossary.md":
                looked_up += re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", text)
            for word in looked_up:
                if not names & {word.lower(), word.lower().removesuffix("s"), word.lower().removesuffix("es")}:
                    yield f"{document}:{number}: the glossary has no {word}"


def used_by_analysis(text, notebook):
    """Programs that the examples start, and modules that they import, but those of Python itself."""
    blocks, prose = markdown.split(text)
    for block in blocks:
        if block.language == "sh": # a program is the first word of a command; what is in quotes goes on over lines
            commands = re.sub(r'"[^"]*"', "TEXT", "\n".join(block.lines))
            yield from re.findall(r"(?:^|[|;&] *)(?:\w+=\S+ )*([a-z][\w.-]*)", commands, re.MULTILINE)
    python = "\n".join("\n".join(block.lines) for block in blocks if block.language == "python") + "\n" + notebook
    yield from re.findall(r"^(?:import|from) (\w+)", python, re.MULTILINE)


def check_needs(source):
    """docs/analysis.md says what its examples need."""
    text = (source / "docs/analysis.md").read_text()
    rows = re.findall(r"^\|[^|]*\|([^|]*)\|[^|]*\|[^|]*\|$", text, re.MULTILINE)
    told = {span for needs in rows for span in markdown.code_spans(needs)}
    used = set(used_by_analysis(text, (source / "samples/notebook/analysis.py").read_text()))
    used -= {"kprof", *sys.stdlib_module_names}
    for name in sorted(used - told):
        yield f"docs/analysis.md: the table of what the examples need lacks {name}"
    if len(used) < 6:
        yield f"docs/analysis.md: only {len(used)} programs and modules were found: {used}"


def texts_of(value, key=None):
    """What people read of a section, a set, a finding or an alias: all texts but expressions."""
    if isinstance(value, str) and key not in ("expression", "when", "at_most", "value"):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from texts_of(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item, key)


def check_sentences(source):
    """A sentence that stands in a report has at most 25 words."""
    count = 0
    for file in sorted((source / "metricsets").rglob("*.json")):
        for text in texts_of(json.loads(file.read_text())):
            count += 1
            for sentence in re.split(r"(?<=[.;:?!])\s+", text):
                if len(sentence.split()) > 25:
                    yield f"{file.relative_to(source)}: {len(sentence.split())} words: {sentence}"
    if count < 500:
        yield f"only {count} texts were found in metricsets"


def main(source, build):
    kprof = build / "src/cli/kprof"
    failures = [*check_links(source), *check_paths(source), *check_sources(source), *check_options(source, kprof),
                *check_news(source, kprof), *check_glossary(source), *check_conditions(source, kprof),
                *check_needs(source), *check_sentences(source)]
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(os.path.abspath(sys.argv[2]))))
