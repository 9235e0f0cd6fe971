"""What people read in this repository, as passages: docstrings, comments, messages, the names of tests, Markdown.

Each passage knows its first line and keeps the line breaks of its file, so that a finding can name its line. Text in
`code marks` counts as one word of a sentence. The rules are elsewhere (prose.py).
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_DIRECTIVE: Final = re.compile(r"(noqa|type: ?ignore|pragma|fmt|ruff)\b[^-]*(- )?")  # for a tool, up to its reason
_SENTENCE_LIKE: Final = re.compile(r"[a-z]{2,}[,:]? [a-z]{2,}")  # two words in a row: no key and no path
_CODE_LIKE: Final = re.compile(r"[;{}]\s*\n|^\s*[\w-]+:( |$)|^\s*#", re.MULTILINE)  # JavaScript, YAML, a shell script
_ITEM: Final = re.compile(r"([-*]|\d+\.)\s+")
_CELL: Final = re.compile(r"(?<!\\)\|")
# A comment of HTML, and what stands between the head and the rows of a table.
_COMMENT_OR_RULE: Final = re.compile(r"<!--.*?-->|^\s*\|?[-:| ]+\|?$")
_LINK_TARGET: Final = re.compile(r"\]\([^)\s]*\)")
# Where a sentence ends although no full stop says so: a blank line, an item, an argument, a row or a cell of a table.
_BREAK: Final = re.compile(
    r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+|\n\s*\*{0,2}\w+(?: \([^)]*\))?:\s|(?<=\S)[ \t]{2,}(?=\S)|={3,}"
    r"|(?<!e\.g)(?<!i\.e)(?<!\betc)[.?!](?=[\s)\"*]|$)"
)
_MARKED: Final = re.compile(r"``?[^`]*``?")
_WORD: Final = re.compile(r"[^\W_][\w'/.@:-]*")


class Passage(NamedTuple):
    """Some text and its place. `kind` is docstring, comment, message, name (of a test), Markdown or file."""

    line: int
    kind: str
    text: str

    def line_at(self, offset: int) -> int:
        """The line in the file of a character of `text`."""
        return self.line + self.text.count("\n", 0, offset)


class Sentence(NamedTuple):
    """One sentence: its first line in the file, and how many words it has."""

    line: int
    words: int
    text: str


def passages(path: str, text: str, nodes: Sequence[ast.AST]) -> list[Passage]:
    """All passages of a file, in the order of their lines.

    `nodes` are those of a Python file. Any other file but Markdown is one passage.
    """
    if nodes:
        return sorted([*_strings(nodes), *_comments(text)])
    return list(_markdown(text)) if path.endswith(".md") else [Passage(1, "file", text)]


def sentences(passage: Passage) -> Iterator[Sentence]:
    """The sentences of a passage."""
    text = _MARKED.sub(lambda marked: "X" + "\n" * marked[0].count("\n"), passage.text)
    start = 0
    for end in [*(found.end() for found in _BREAK.finditer(text)), len(text)]:
        sentence = text[start:end]
        if words := len(_WORD.findall(sentence)):
            first = start + len(sentence) - len(sentence.lstrip())
            yield Sentence(passage.line + text.count("\n", 0, first), words, " ".join(sentence.split()))
        start = end


def docstrings(nodes: Sequence[ast.AST]) -> list[tuple[ast.Constant, str]]:
    """Every docstring, that of an attribute too: a string that is a statement."""
    values = (node.value for node in nodes if isinstance(node, ast.Expr))
    constants = (value for value in values if isinstance(value, ast.Constant))
    return [(constant, constant.value) for constant in constants if isinstance(constant.value, str)]


def _strings(nodes: Sequence[ast.AST]) -> Iterator[Passage]:
    read = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for docstring, text in docstrings(nodes):
        read.add(id(docstring))
        yield Passage(docstring.lineno, "docstring", text)
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield Passage(node.lineno, "name", name.replace("_", " "))
            case ast.JoinedStr(values=parts):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
                yield from _message(node.lineno, text)
            case ast.Constant(value=str(text)) if id(node) not in read:
                yield from _message(node.lineno, text)


def _message(line: int, text: str) -> Iterator[Passage]:
    if _SENTENCE_LIKE.search(text) and not _CODE_LIKE.search(text):
        yield Passage(line, "message", text)


def _comments(text: str) -> Iterator[Passage]:
    """Comments; lines of comment that follow one another are one passage."""
    start, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        alone = token.line.lstrip().startswith("#")
        if lines and (not alone or token.start[0] != start + len(lines)):
            yield Passage(start, "comment", "\n".join(lines))
            lines = []
        start = start if lines else token.start[0]
        lines.append(_DIRECTIVE.sub("", token.string.lstrip("#! "), count=1))
    if lines:
        yield Passage(start, "comment", "\n".join(lines))


def _markdown(text: str) -> Iterator[Passage]:
    """Headings, paragraphs, items and cells; no blocks of code."""
    start, lines, code = 0, list[str](), False
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = _LINK_TARGET.sub("]", _COMMENT_OR_RULE.sub("", raw)).strip()
        item = _ITEM.match(line)
        if lines and (not line or line.startswith(("#", "|", "```")) or item):
            yield Passage(start, "Markdown", "\n".join(lines))
            lines = []
        if line.startswith("```"):
            code = not code
        elif line and not code and line.startswith("|"):
            yield from (Passage(number, "Markdown", cell) for cell in _CELL.split(line) if cell.strip())
        elif line and not code:
            start = start if lines else number
            lines.append(line[item.end() :] if item else line.lstrip("# "))
