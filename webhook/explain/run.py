"""The command explain: read FILE, or find objects by name; explain each; print the explanations.

Which objects can be explained is decided here. `pod` and `vm` make the explanations, and `text` makes text of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TextIO

from webhook.component_base.errors import UserError
from webhook.core.api.pod import Pod
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.reasons import Reason
from webhook.explain import names, text
from webhook.explain.explanation import PodExplanation, Subject, VMExplanation
from webhook.explain.names import Named
from webhook.explain.pod import explain_pod
from webhook.explain.request import (
    REVIEW_KIND,
    V1_POD,
    request_for_existing,
    request_for_pod,
    request_for_review,
)
from webhook.explain.vm import explain_vm
from webhook.invocation import Invocation
from webhook.objects import documents
from webhook.objects.cluster import Cluster
from webhook.objects.documents import BadDocument, Document
from webhook.objects.files import read_file
from webhook.objects.kinds import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.webhook_settings import WebhookSettings, webhook_settings
from webhook.settings import ExplainSettings, opt_in_all_unknown
from webhook.terminal import to_json
from webhook.vms.collected import exit_code, open_cluster

_STDIN: Final = "-"
_KUBEVIRT_VERSIONS: Final = (KUBEVIRT_API_VERSION, "kubevirt.io/v1alpha3")
_EXPLAINED: Final = frozenset(
    {V1_POD, REVIEW_KIND}
    | {(version, kind) for version in _KUBEVIRT_VERSIONS for kind in ("VirtualMachine", "VirtualMachineInstance")}
)
_UNREAD: Final = frozenset(reason.code for reason in Reason if reason.columns.unread)
_DISKS: Final = (
    "PersistentVolumeClaim",
    "DataVolume",
)  # the files of VMs have them, and nobody asks for their explanation
_EXPECTED: Final = (
    f"Pod (v1), VirtualMachine or VirtualMachineInstance ({' or '.join(_KUBEVIRT_VERSIONS)}) "
    f"or AdmissionReview ({REVIEW_KIND[0]})"
)
AnyExplanation = PodExplanation | VMExplanation


def run(settings: ExplainSettings, *, stdin: TextIO, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings, as `explain_in` does. `color`: whether `stdout` takes ANSI colors.

    Returns the exit code. Raises UserError as `explain_in` does, and if no cluster can be reached or read.
    """
    names.parse(settings.names)  # A word that is not a name is an error before a cluster is asked.
    with open_cluster(settings, stderr) as cluster:
        return explain_in(cluster, settings, stdin=stdin, stdout=stdout, stderr=stderr, color=color)


def explain_in(  # noqa: PLR0913 - the streams of a command, by name
    cluster: Cluster, settings: ExplainSettings, *, stdin: TextIO, stdout: TextIO, stderr: TextIO, color: bool
) -> int:
    """Explain the objects that the settings name, or those of their file. Standard error names the objects left out.

    Returns:
        0 if the webhook asks for a node for each object, or would. 1 if it asks for none for one of them. 2 if what
        decides could not be read.

    Raises:
        UserError: an object can't be read, or there is nothing to explain. The others were printed to `stdout`.
    """
    found = webhook_settings(cluster)
    asked, left_out = _questions(cluster, settings, found, stdin)
    explanations, problems = _explain_all(asked)
    if left_out:
        stderr.write(f"left out {left_out}: expected a {_EXPECTED}\n")
    unknown = found.problem and any(_may_be_opted_in(each) for each in explanations)
    if unknown:
        stderr.write(f"not everything could be read: {opt_in_all_unknown(found.problem)}\n")
    with suppress(BrokenPipeError):  # the decisions alone set the exit code, even if no program reads the output
        stdout.write(_render(explanations, settings.output, color=color, several=len(asked) > 1))
        stdout.flush()
    if problems:
        raise BadDocument(*problems)
    return exit_code(
        unknown=unknown or any(map(_is_unread, explanations)), no=not all(map(_asks_for_a_node, explanations))
    )


def _may_be_opted_in(explained: AnyExplanation) -> bool:
    """Whether the cluster's setting decides: neither annotation nor label says anything."""
    if isinstance(explained, PodExplanation):
        return explained.opted_in is False and not explained.asked
    return bool(explained.vm.not_asked) and not explained.vm.asked


def _is_unread(explained: AnyExplanation) -> bool:
    if isinstance(explained, PodExplanation):
        return explained.reason in _UNREAD
    start = explained.vm.next_start
    return bool({start.reason if start else "", explained.vm.not_asked.partition(":")[0]} & _UNREAD)


def _asks_for_a_node(explained: AnyExplanation) -> bool:
    if isinstance(explained, PodExplanation):
        return bool(explained.required or explained.preferred)
    start = explained.vm.next_start
    return bool(start and start.gains and not explained.vm.not_asked)


Question = Callable[[], AnyExplanation]


def _questions(
    cluster: Cluster, settings: ExplainSettings, found: WebhookSettings, stdin: TextIO
) -> tuple[list[Question], str]:
    """A function for each object that explains it; the objects of the file that are left out, in words."""
    namespace, invocation = settings.namespace or cluster.namespace, Invocation.of(settings)
    if not settings.names:
        source = settings.filename or ""
        chosen, left_out = _select(_read(source, stdin), source)
        return [partial(_of_document, each, cluster, namespace, found, invocation) for each in chosen], left_out
    named = names.parse(settings.names)
    return [partial(_of_name, each, cluster, namespace, found, invocation) for each in named], ""


def _of_document(
    document: Document, cluster: Cluster, namespace: str, settings: WebhookSettings, invocation: Invocation
) -> AnyExplanation:
    if (document.api_version, document.kind) == REVIEW_KIND:
        return explain_pod(request_for_review(document, namespace), cluster, settings, invocation)
    if (document.api_version, document.kind) == V1_POD:
        request = request_for_pod(document.read(Pod), document.value, namespace, document.place)
        return explain_pod(request, cluster, settings, invocation)
    kind = VIRTUAL_MACHINE if document.kind == VIRTUAL_MACHINE.kind else VIRTUAL_MACHINE_INSTANCE
    vm = document.read(kind.type)
    if not vm.metadata.name:
        raise BadDocument(f"{document.place}: {document.kind}: metadata.name: got nothing, expected a name")
    where = vm.metadata.namespace or namespace
    subject = Subject(kind=kind.kind, namespace=where, name=vm.metadata.name, source=document.place)
    return explain_vm(vm, subject, cluster, settings, invocation)


def _of_name(
    named: Named, cluster: Cluster, namespace: str, settings: WebhookSettings, invocation: Invocation
) -> AnyExplanation:
    found = cluster.find(named.kind, named.name, namespace, str(named))
    if named.kind is POD:
        return explain_pod(request_for_existing(found, namespace, str(named)), cluster, settings, invocation)
    subject = Subject(kind=named.kind.kind, namespace=namespace, name=named.name, source=str(named))
    return explain_vm(found, subject, cluster, settings, invocation)


def _read(source: str, stdin: TextIO) -> list[Document]:
    if source != _STDIN:
        return list(read_file(Path(source)))
    try:
        text = stdin.read()
    except UnicodeDecodeError as error:
        raise BadDocument(f"stdin: not UTF-8 text ({error.reason} at byte {error.start})") from None
    return list(documents.read_documents(text, "stdin"))


def _select(found: Iterable[Document], source: str) -> tuple[list[Document], str]:
    """The objects to explain, and in words how many objects of which other kinds there are, without the VMs' disks.

    Raises:
        BadDocument: there is no object to explain.
    """
    chosen: list[Document] = []
    others: Counter[str] = Counter()
    disks: Counter[str] = Counter()
    for document in found:
        if (document.api_version, document.kind) in _EXPLAINED:
            chosen.append(document)
        else:
            (disks if document.kind in _DISKS else others)[f"{document.kind} ({document.api_version})"] += 1
    left_out = _counts(others if chosen else others + disks)
    if not chosen:
        name = "stdin" if source == _STDIN else source
        raise BadDocument(
            f"{name}: nothing to explain: got {left_out or 'no object at all'}, expected a {_EXPECTED}; "
            "try the output of: kubectl get virtualmachine NAME -o yaml"
        )
    return chosen, left_out


def _counts(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _explain_all(questions: Iterable[Question]) -> tuple[list[AnyExplanation], list[str]]:
    """One explanation for each object, and what is wrong with the objects that can't be read."""
    explanations: list[AnyExplanation] = []
    problems: list[str] = []
    for ask in questions:
        try:
            explanations.append(ask())
        except UserError as error:
            problems += error.problems
    return explanations, problems


def _render(explanations: Sequence[AnyExplanation], output: str, *, color: bool, several: bool) -> str:
    if not explanations:
        return ""
    if output == "text":
        return "\n\n".join(text.render_explanation(explained, color=color) for explained in explanations)
    return to_json({"items": explanations} if several else explanations[0])
