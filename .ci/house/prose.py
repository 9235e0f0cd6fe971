"""Rules of prose: docstrings that say something, short sentences, no phrase of the list, and what proselint finds."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

import proselint.checks
from passages import Passage, docstrings, sentences
from proselint.registry import CheckRegistry
from proselint.tools import LintFile
from repository import PROGRAMS, Finding, Repository

_WORD: Final = re.compile(r"(?!(?:an?|the)\b)\b\w[\w'.-]*", re.IGNORECASE)

CheckRegistry().register_many(proselint.checks.__register__)


def empty_docstrings(repository: Repository) -> Iterator[Finding]:
    """A docstring has at least so many words, without articles. A name such as v1.Taint is one word."""
    least = repository.words["limits"]["docstring_words"]
    for source in repository.python(*PROGRAMS, "tests/", ".ci/"):
        for node, text in docstrings(source.nodes):
            if len(_WORD.findall(text)) < least:
                what = f"got {text.strip()!r}, expected {least} words or more: say what goes in and what comes out"
                yield Finding(source.path, node.lineno, "empty-docstring", what)


def long_sentences(repository: Repository) -> Iterator[Finding]:
    """A sentence has at most so many words. Messages in tests are data, mostly of other programs."""
    most = repository.words["limits"]["sentence_words"]
    for source, passage in repository.prose():
        is_data = passage.kind == "message" and source.path.startswith("tests/")
        for line, words, text in sentences(passage) if passage.kind != "file" and not is_data else ():
            if words > most:
                what = f"{words} words, at most {most}: write one thought a sentence: {text[:60]}..."
                yield Finding(source.path, line, "long-sentence", what)


def phrases(repository: Repository) -> Iterator[Finding]:
    """No passage has a phrase that [phrases] forbids."""
    rows = [
        (re.compile(rf"\b(?:{phrase})(?!\w)".replace(" ", r"[\s#]+"), re.IGNORECASE), instead)
        for phrase, instead in repository.words["phrases"].items()
    ]
    for source, passage in repository.prose():
        for pattern, instead in rows:
            for found in pattern.finditer(passage.text):
                got = " ".join(found[0].split())
                what = f"got {got!r} in a {passage.kind}, expected {instead}: rewrite the sentence"
                yield Finding(source.path, passage.line_at(found.start()), "phrase", what)


def proselint_checks(repository: Repository) -> Iterator[Finding]:
    """What the checks of [proselint] find. They read the passages of a file in one go: one by one takes minutes."""
    config = {"max_errors": 1000, "checks": dict.fromkeys(repository.words["proselint"], True)}
    by_path = defaultdict[str, list[Passage]](list)
    for source, passage in repository.prose():
        if passage.kind != "file":
            by_path[source.path].append(passage)
    for path, parts in by_path.items():
        starts, text = [], "\n"  # proselint puts a line break first
        for part in parts:
            starts.append(len(text))
            text += f"{part.text}\n\n=\n\n"
        for result, _ in LintFile(path, text[1:]).lint(config):
            index = bisect_right(starts, result.span[0]) - 1
            line = parts[index].line_at(result.span[0] - starts[index])
            yield Finding(path, line, "proselint", f"{result.message} ({result.check_path}): rewrite the sentence")
