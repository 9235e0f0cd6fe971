"""The explain subcommand: read FILE, ask core about each object, print, and say by the exit code how it went.

What can be asked about is decided here; what is said is explanation's, how it looks in a terminal text's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import msgspec

from webhook import documents
from webhook.core import review
from webhook.core.objects import ObjectMeta, Pod
from webhook.core.placement import Policy
from webhook.documents import BadDocument, Document
from webhook.explain import explanation, kubevirt, text
from webhook.explain.derive import derive
from webhook.explain.explanation import Explanation, Question, Subject
from webhook.manifests import Manifests

Output = Literal["text", "yaml", "json"]

EXIT_PLACED: Final = 0
EXIT_UNCHANGED: Final = 1
_STDIN: Final = "-"
_POD: Final = ("v1", "Pod")
_REVIEW: Final = (review.API_VERSION, review.KIND)
_EXPLAINED: Final = frozenset(
    {_POD, _REVIEW}
    | {(version, kind) for version in kubevirt.API_VERSIONS for kind in ("VirtualMachine", "VirtualMachineInstance")}
)
_EXPECTED: Final = (
    f"Pod (v1), VirtualMachine or VirtualMachineInstance ({' or '.join(kubevirt.API_VERSIONS)}) "
    f"or AdmissionReview ({review.API_VERSION})"
)
_REQUEST_UID: Final = "explain"


def run(  # noqa: PLR0913 - the flags of the subcommand, by name
    source: str,
    cluster: Manifests,
    policy: Policy,
    *,
    output: Output,
    namespace: str,
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
    color: bool,
) -> int:
    """Explain every object in `source` that can become, or is, an admission of a pod.

    Args:
        source: a path, or `-` for `stdin`.
        cluster: what the objects are judged against.
        policy: the operator's; the same as the server's.
        output: text for a terminal, or the Explanation itself.
        namespace: of objects that state none.
        color: whether `stdout` takes ANSI colours.

    Returns:
        0 where each is drawn to a node (required or preferred), 1 where one is left unchanged.

    Raises:
        BadDocument: something in `source` can't be read, or nothing in it can be explained. Nothing was printed.
    """
    chosen, passed_over = _select(_read(source, stdin), source)
    explanations = _explain(chosen, cluster, policy, namespace)
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


def _explain(chosen: Iterable[Document], cluster: Manifests, policy: Policy, namespace: str) -> list[Explanation]:
    """One explanation for each object; where some can't be read, the problems of all."""
    explanations: list[Explanation] = []
    problems: list[str] = []
    for document in chosen:
        try:
            question = _question(document, cluster, namespace)
            explanations.append(explanation.explain(question, cluster, policy))
        except BadDocument as error:
            problems += error.problems
    if problems:
        raise BadDocument(*problems)
    return explanations


def _question(document: Document, cluster: Manifests, namespace: str) -> Question:
    match (document.api_version, document.kind):
        case kind if kind == _REVIEW:
            return _from_review(document, namespace)
        case kind if kind == _POD:
            meta = document.read(Pod).metadata
            subject = _subject(document, meta.namespace or namespace, meta.name or meta.generate_name)
            return Question(subject=subject, review=_review(document.value, subject.namespace))
    derived = derive(document, cluster, namespace)
    subject = _subject(document, derived.pod["metadata"]["namespace"], document.value["metadata"]["name"])
    return Question(
        subject=subject,
        review=_review(derived.pod, subject.namespace),
        notes=derived.notes,
        hints=derived.hints,
    )


def _subject(document: Document, namespace: str, name: str | None) -> Subject:
    return Subject(kind=document.kind, namespace=namespace, name=name or "", source=document.place)


def _review(pod: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The AdmissionReview that the API server sends for the creation of `pod`, as far as it is read."""
    return {
        "apiVersion": review.API_VERSION,
        "kind": review.KIND,
        "request": {
            "uid": _REQUEST_UID,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": pod,
        },
    }


class _ReviewObject(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class _ReviewRequest(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None
    object: _ReviewObject | None = None


class _Review(msgspec.Struct):
    """Of an AdmissionReview what names its object; core reads the rest."""

    request: _ReviewRequest | None = None


def _from_review(document: Document, namespace: str) -> Question:
    """The review as it is. The API server always states the namespace of a pod; one written by hand may not."""
    request = document.read(_Review).request or _ReviewRequest()
    meta = (request.object or _ReviewObject()).metadata
    where = request.namespace or meta.namespace or namespace
    asked = document.value
    if asked.get("request") and not request.namespace:
        asked = {**asked, "request": {**asked["request"], "namespace": where}}
    name = meta.name or request.name or meta.generate_name
    return Question(subject=_subject(document, where, name), review=asked)


def _render(explanations: Sequence[Explanation], output: Output, *, color: bool) -> str:
    if output == "text":
        return "\n\n".join(text.render(explained, color=color) for explained in explanations)
    values = msgspec.to_builtins(explanations)
    if output == "yaml":
        return text.to_yaml(*values)
    body = values[0] if len(values) == 1 else {"items": values}
    return msgspec.json.format(msgspec.json.encode(body), indent=2).decode() + "\n"
