"""What the tests of the documents need to know of Markdown: fenced blocks, links, code spans and headings."""

import re

FENCE = re.compile(r"^(\s*)```(\w*)\s*$")


class Block:
    """A fenced block: its language, its lines, and the number of the line that opens it."""

    def __init__(self, language, line):
        self.language, self.line, self.lines = language, line, []


def split(text):
    """The document's fenced blocks, and its other lines as (number, line)."""
    blocks, prose, open_block = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if open_block and fence and not fence[2]:
            blocks.append(open_block)
            open_block = None
        elif open_block:
            open_block.lines.append(line)
        elif fence:
            open_block = Block(fence[2], number)
        else:
            prose.append((number, line))
    if open_block:
        raise ValueError(f"line {open_block.line}: the block is not closed")
    return blocks, prose


def paragraphs(prose):
    """Neighbouring lines joined, with the number of the first: links and code spans go on over a line's end."""
    joined, last = [], -1
    for number, line in prose:
        if joined and number == last + 1 and line.strip():
            joined[-1][1] += " " + line.strip()
        elif line.strip():
            joined.append([number, line.strip()])
        last = number if line.strip() else -1
    return [tuple(paragraph) for paragraph in joined]


def code_spans(line):
    return re.findall(r"`([^`]+)`", line)


def links(line):
    """(text, target) of each link."""
    return re.findall(r"\[([^\]]+)\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", lambda span: span[0].replace("(", " "), line))


def anchors(prose):
    """The fragments that headings have, as GitHub makes them."""
    titles = (re.match(r"#+\s+(.*)", line) for _, line in prose)
    plain = (re.sub(r"[^\w\- ]", "", title[1].lower()) for title in titles if title)
    return {title.replace(" ", "-") for title in plain}
