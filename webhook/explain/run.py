"""The explain subcommand: read FILE or look names up, ask core about each object, print, and say by the exit code
how it went.

What can be asked about is decided here; what is said is explanation's, how it looks in a terminal text's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, TextIO

import msgspec

from webhook.component_base.errors import UserError
from webhook.core.opt_in import Policy
from webhook.explain import explanation, question
from webhook.explain.api import kubevirt, names
from webhook.explain.api.names import Named
from webhook.explain.explanation import Explanation, Question
from webhook.explain.render import text
from webhook.explain.sources.cluster import Cluster
from webhook.files import documents
from webhook.files.documents import BadDocument, Document
from webhook.terminal import to_yaml

Output = Literal["text", "yaml", "json"]

EXIT_PLACED: Final = 0
EXIT_UNCHANGED: Final = 1
_STDIN: Final = "-"
_EXPLAINED: Final = frozenset(
    {question.POD_KIND, question.REVIEW_KIND}
    | {(version, kind) for version in kubevirt.API_VERSIONS for kind in ("VirtualMachine", "VirtualMachineInstance")}
)
_EXPECTED: Final = (
    f"Pod (v1), VirtualMachine or VirtualMachineInstance ({' or '.join(kubevirt.API_VERSIONS)}) "
    f"or AdmissionReview ({question.REVIEW_KIND[0]})"
)

__all__ = ["EXIT_PLACED", "EXIT_UNCHANGED", "names", "run"]


def run(  # noqa: PLR0913 - the flags of the subcommand, by name
    asked: str | Sequence[Named],
    cluster: Cluster,
    policy: Policy,
    *,
    output: Output,
    namespace: str | None,
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
    color: bool,
) -> int:
    """Explain every object that was asked for and can become, or is, an admission of a pod.

    Args:
        asked: a path, `-` for `stdin`, or the names of objects that the cluster has.
        cluster: what the objects are judged against.
        policy: the operator's; the same as the server's.
        output: text for a terminal, or the Explanation itself.
        namespace: of names, and of objects that state none; without it the cluster's own default.
        color: whether `stdout` takes ANSI colours.

    Returns:
        0 where each is drawn to a node (required or preferred), 1 where one is left unchanged.

    Raises:
        UserError: something can't be read, or there is nothing to explain. Nothing was printed.
    """
    within = namespace or cluster.namespace
    passed_over = ""
    if isinstance(asked, str):
        chosen, passed_over = _select(_read(asked, stdin), asked)
        questions = [partial(question.of, document, cluster, within) for document in chosen]
    else:
        longhorn = policy.longhorn_namespace  # all of its volumes are there, whatever --namespace says
        questions = [
            partial(question.by_name, named, cluster, longhorn if named.type is names.VOLUME else within)
            for named in asked
        ]
    explanations = _explain(questions, cluster, policy)
    if passed_over:
        stderr.write(f"passed over {passed_over}: expected a {_EXPECTED}\n")
    stdout.write(_render(explanations, output, color=color))
    return EXIT_PLACED if all(explained.placed for explained in explanations) else EXIT_UNCHANGED


def _read(source: str, stdin: TextIO) -> list[Document]:
    if source != _STDIN:
        return list(documents.read_file(Path(source)))
    try:
        text = stdin.read()
    except UnicodeDecodeError as error:
        raise BadDocument(f"stdin: not UTF-8 text ({error.reason} at byte {error.start})") from None
    return list(documents.read(text, "stdin"))


def _select(found: Iterable[Document], source: str) -> tuple[list[Document], str]:
    """The objects to explain, and the others counted by kind in words.

    Raises:
        BadDocument: there is none to explain.
    """
    chosen: list[Document] = []
    others: Counter[str] = Counter()
    for document in found:
        if (document.api_version, document.kind) in _EXPLAINED:
            chosen.append(document)
        else:
            others[f"{document.kind} ({document.api_version})"] += 1
    passed_over = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    if not chosen:
        name = "stdin" if source == _STDIN else source
        raise BadDocument(
            f"{name}: nothing to explain: got {passed_over or 'no object at all'}, expected a {_EXPECTED}; "
            "try the output of: kubectl get virtualmachine NAME -o yaml"
        )
    return chosen, passed_over


def _explain(questions: Iterable[Callable[[], Question]], cluster: Cluster, policy: Policy) -> list[Explanation]:
    """One explanation for each object; where some can't be had or read, the problems of all."""
    explanations: list[Explanation] = []
    problems: list[str] = []
    for ask in questions:
        try:
            explanations.append(explanation.explain(ask(), cluster, policy))
        except UserError as error:
            problems += error.problems
    if problems:
        raise BadDocument(*problems)
    return explanations


def _render(explanations: Sequence[Explanation], output: Output, *, color: bool) -> str:
    if output == "text":
        return "\n\n".join(text.render(explained, color=color) for explained in explanations)
    values = msgspec.to_builtins(explanations)
    if output == "yaml":
        return to_yaml(*values)
    body = values[0] if len(values) == 1 else {"items": values}
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
