"""What is explained: objects by name, as users of kubectl write names, or those of a file; and the review of a pod."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

from click import UsageError
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from webhook.core.api import admission_review
from webhook.core.api.affinity import is_node_name
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.patch.decision_patch import as_created
from webhook.explain.explanation import Subject
from webhook.objects.documents import BadDocument, Document, field_at, read_documents
from webhook.objects.files import read_file
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, APIResource

V1_POD: Final = ("v1", "Pod")
REVIEW_KIND: Final = (admission_review.API_VERSION, admission_review.KIND)
_STDIN: Final = "-"
_KUBEVIRT_VERSIONS: Final = (KUBEVIRT_API_VERSION, "kubevirt.io/v1alpha3")
_VMS: Final = [(each, kind.kind) for each in _KUBEVIRT_VERSIONS for kind in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)]
_DISKS: Final = ("PersistentVolumeClaim", "DataVolume")  # in the files of VMs; nobody asks for their explanation
EXPECTED: Final = (
    f"Pod (v1), VirtualMachine or VirtualMachineInstance ({' or '.join(_KUBEVIRT_VERSIONS)}) "
    f"or AdmissionReview ({REVIEW_KIND[0]})"
)
_TYPE: Final = re.compile(
    r"(?:(vms?|virtualmachines?)|(vmis?|virtualmachineinstances?))(?:\.(?:v1\.)?kubevirt\.io)?|(po|pods?)",
    re.IGNORECASE,
)
_KINDS: Final[Sequence[APIResource[Any]]] = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD)  # of the groups of _TYPE
_EXPECTED_NAME: Final = "expected vm/NAME, vmi/NAME or pod/NAME"


class Named(NamedTuple):
    """One object that the user asked for. `str` returns the words that the user typed."""

    kind: APIResource[Any]
    name: str
    typed: str

    def __str__(self) -> str:
        return self.typed


def parse(words: Sequence[str]) -> tuple[Named, ...]:
    """Return the objects that the words name: TYPE/NAME, several of these, TYPE NAME NAME, or the NAME of a VM.

    Raises:
        UsageError: a word that is neither TYPE/NAME nor a name.
    """
    if words and _TYPE.fullmatch(words[0]):
        if len(words) == 1:
            raise UsageError(f"got {words[0]!r} without a name: {_EXPECTED_NAME}")
        return tuple(_named(words[0], name, f"{words[0]}/{name}") for name in words[1:])
    parts = ((word, (word if "/" in word else f"vm/{word}").partition("/")) for word in words)
    return tuple(_named(type_, name, word) for word, (type_, _, name) in parts)


def _named(type_: str, name: str, typed: str) -> Named:
    found = _TYPE.fullmatch(type_)
    if not found:
        raise UsageError(f"got {typed!r}: {_EXPECTED_NAME}")
    if not is_node_name(name):  # the same rule: a DNS subdomain
        raise UsageError(f"got {typed!r}: {name!r} can't be a name in Kubernetes; {_EXPECTED_NAME}")
    return Named(_KINDS[(found.lastindex or 1) - 1], name, typed)


def read_subjects(source: str, stdin: TextIO) -> tuple[list[Document], str]:
    """Return the objects of a file to explain, and in words how many of which other kinds there are.

    Raises:
        BadDocument: the file can't be read, or there is no object to explain.
    """
    chosen: list[Document] = []
    others: Counter[str] = Counter()
    disks: Counter[str] = Counter()
    for document in _read(source, stdin):
        kind = document.api_version, document.kind
        if kind in (V1_POD, REVIEW_KIND, *_VMS):
            chosen.append(document)
        else:
            (disks if document.kind in _DISKS else others)[f"{document.kind} ({document.api_version})"] += 1
    left_out = ", ".join(f"{count} {kind}" for kind, count in sorted((others if chosen else others + disks).items()))
    if not chosen:
        name = "stdin" if source == _STDIN else source
        raise BadDocument(
            f"{name}: nothing to explain: got {left_out or 'no object at all'}, expected a {EXPECTED}; "
            "try the output of: kubectl get virtualmachine NAME -o yaml"
        )
    return chosen, left_out


def _read(source: str, stdin: TextIO) -> list[Document]:
    if source != _STDIN:
        return list(read_file(Path(source)))
    try:
        text = stdin.read()
    except UnicodeDecodeError as error:
        raise BadDocument(f"stdin: not UTF-8 text ({error.reason} at byte {error.start})") from None
    return list(read_documents(text, "stdin"))


def namespace_of(document: Document, namespace: str) -> str:
    """Return the namespace of an object: its own, or this one. A review names that of the request."""
    request = field_at(document.value, "request")
    stated = field_at(request, "namespace") or field_at(request, "object", "metadata", "namespace")
    return str(stated or field_at(document.value, "metadata", "namespace") or namespace)


class PodRequest(Struct, frozen=True, kw_only=True):
    """The AdmissionReview that the API server would send for `subject`. `existing`: the pod, if it exists."""

    subject: Subject
    review: dict[str, Any]
    existing: Pod | None = None


def request_for_pod(pod: Pod, value: dict[str, Any], namespace: str, source: str) -> PodRequest:
    """Return the request that creates a pod; `value` is the pod as JSON."""
    meta = pod.metadata
    name, where = meta.name or meta.generate_name or "", meta.namespace or namespace
    request = {
        "uid": "explain",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": where,
        "operation": "CREATE",
        "object": value,
    }
    review = {"apiVersion": REVIEW_KIND[0], "kind": REVIEW_KIND[1], "request": request}
    return PodRequest(subject=Subject(kind=V1_POD[1], namespace=where, name=name, source=source), review=review)


def request_for_existing(pod: Pod, namespace: str, source: str) -> PodRequest:
    """Return the request that would create a pod of the cluster once more."""
    return replace(request_for_pod(pod, to_builtins(as_created(pod)), namespace, source), existing=pod)


def request_for_review(document: Document, namespace: str) -> PodRequest:
    """Return the review as it is. The API server always names the namespace; a review that a user wrote can lack it."""
    review, request = document.value, field_at(document.value, "request")
    meta, stated = field_at(request, "object", "metadata"), field_at(request, "namespace")
    where = namespace_of(document, namespace)
    if isinstance(request, dict) and not stated:
        review = {**review, "request": {**request, "namespace": where}}
    name = field_at(meta, "name") or field_at(request, "name") or field_at(meta, "generateName") or ""
    subject = Subject(kind=document.kind, namespace=where, name=str(name), source=document.place)
    return PodRequest(subject=subject, review=review)
