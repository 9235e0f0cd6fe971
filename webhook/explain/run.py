"""The command explain: read FILE, or find objects by name; evaluate each; print the explanations.

Which objects can be explained is decided here. `evaluate` makes an Explanation, and `render` makes text of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TextIO

import msgspec

from webhook.cluster_options import opt_in_all_unknown
from webhook.component_base.errors import UserError
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.api.virtual_machine import KUBEVIRT_API_VERSION
from webhook.core.opt_in import Mode, Policy
from webhook.core.reasons import Reason
from webhook.explain import names
from webhook.explain.evaluate import explain
from webhook.explain.explain_request import (
    REVIEW_KIND,
    V1_POD,
    ExplainRequest,
    request_for_document,
    request_for_name,
)
from webhook.explain.explanation import Explanation
from webhook.explain.render import text
from webhook.explain.settings import ExplainSettings
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.invocation import Invocation
from webhook.objects import documents
from webhook.objects.documents import BadDocument, Document
from webhook.objects.kinds import VOLUME
from webhook.objects.manifests import Manifests
from webhook.objects.vm_rows import opt_in_all_in
from webhook.terminal import to_json, to_yaml

EXIT_PLACED: Final = 0
EXIT_UNCHANGED: Final = 1
_STDIN: Final = "-"
_KUBEVIRT_VERSIONS: Final = (KUBEVIRT_API_VERSION, "kubevirt.io/v1alpha3")
_EXPLAINED: Final = frozenset(
    {V1_POD, REVIEW_KIND}
    | {(version, kind) for version in _KUBEVIRT_VERSIONS for kind in ("VirtualMachine", "VirtualMachineInstance")}
)
_NOT_OPTED_IN: Final = frozenset(reason.code for reason in Reason if reason.columns.not_opted_in)
_DISKS: Final = (
    "PersistentVolumeClaim",
    "DataVolume",
)  # the files of VMs have them, and nobody asks for their explanation
_EXPECTED: Final = (
    f"Pod (v1), VirtualMachine or VirtualMachineInstance ({' or '.join(_KUBEVIRT_VERSIONS)}) "
    f"or AdmissionReview ({REVIEW_KIND[0]})"
)


def run(settings: ExplainSettings, *, stdin: TextIO, stdout: TextIO, stderr: TextIO, color: bool) -> int:
    """Run the command with these settings, as `explain_in` does. `color`: whether `stdout` takes ANSI colors.

    Returns the exit code. Raises UserError as `explain_in` does, and if no cluster can be reached or read.
    """
    names.parse(settings.names)  # A word that is not a name is an error before a cluster is asked.
    with _cluster(settings, stderr) as cluster:
        setting, unknown = (settings.opt_in_all, "") if settings.opt_in_all else opt_in_all_in(cluster.view)
        said = replace(settings, opt_in_all=setting)
        return explain_in(cluster, said, stdin=stdin, stdout=stdout, stderr=stderr, color=color, unknown=unknown)


@contextmanager
def _cluster(settings: ExplainSettings, stderr: TextIO) -> Iterator[ClusterReader]:
    """The cluster that files describe, or a live one."""
    if settings.manifests is None:
        from webhook.explain.sources.live_reader import connect  # noqa: PLC0415 - the API client takes 1 s to import

        kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
        with connect(kubeconfig, longhorn_namespace=settings.longhorn_namespace) as cluster:
            yield cluster
        return
    manifests = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
    if manifests.objects.ignored:
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(manifests.objects.ignored.items()))
        stderr.write(f"{settings.manifests}: ignored objects that no rule reads: {counted}\n")
    yield ClusterReader(manifests, str(settings.manifests), settings.longhorn_namespace)


def explain_in(  # noqa: PLR0913 - the streams of a command, by name
    cluster: ClusterReader,
    settings: ExplainSettings,
    *,
    stdin: TextIO,
    stdout: TextIO,
    stderr: TextIO,
    color: bool,
    unknown: str = "",
) -> int:
    """Explain the objects that the settings name, or those of their file. Standard error names the objects left out.

    `unknown`: why it is not known whether the cluster opts in all VMs.

    Returns:
        0 if each object gets an affinity to a node (required or preferred), 1 if one is left unchanged.

    Raises:
        UserError: an object can't be read, or there is nothing to explain. The others were printed to `stdout`.
    """
    requests, left_out = _requests(cluster, settings, stdin)
    setting, listed = settings.opt_in_all or "off", settings.shortlist == "auto"
    policy = Policy(Mode(settings.mode), settings.longhorn_namespace, setting, shortlist=listed)
    explanations, problems = _explain_all(requests, cluster, policy, Invocation.of(settings))
    if left_out:
        stderr.write(f"left out {left_out}: expected a {_EXPECTED}\n")
    if unknown and any(explained.reason in _NOT_OPTED_IN for explained in explanations):
        stderr.write(f"not everything could be read: {opt_in_all_unknown(unknown)}\n")
    with suppress(BrokenPipeError):  # the decisions alone set the exit code, even if no program reads the output
        stdout.write(_render(explanations, settings.output, color=color, several=len(requests) > 1))
        stdout.flush()
    if problems:
        raise BadDocument(*problems)
    return EXIT_PLACED if all(explained.placed for explained in explanations) else EXIT_UNCHANGED


def _requests(
    cluster: ClusterReader, settings: ExplainSettings, stdin: TextIO
) -> tuple[list[Callable[[], ExplainRequest]], str]:
    """A function for each object that makes its ExplainRequest; the objects of the file that are left out, in words."""
    namespace = settings.namespace or cluster.namespace
    if not settings.names:
        source = settings.filename or ""
        chosen, left_out = _select(_read(source, stdin), source)
        return [partial(request_for_document, document, cluster, namespace) for document in chosen], left_out
    namespaces = {VOLUME: settings.longhorn_namespace}  # of all Longhorn volumes, whatever --namespace says
    named = names.parse(settings.names)
    return [partial(request_for_name, each, cluster, namespaces.get(each.kind, namespace)) for each in named], ""


def _read(source: str, stdin: TextIO) -> list[Document]:
    if source != _STDIN:
        return list(documents.read_file(Path(source)))
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


def _explain_all(
    requests: Iterable[Callable[[], ExplainRequest]], cluster: ClusterReader, policy: Policy, invocation: Invocation
) -> tuple[list[Explanation], list[str]]:
    """One explanation for each object, and what is wrong with the objects that can't be read."""
    explanations: list[Explanation] = []
    problems: list[str] = []
    for ask in requests:
        try:
            explanations.append(explain(ask(), cluster, policy, invocation))
        except UserError as error:
            problems += error.problems
    return explanations, problems


def _render(explanations: Sequence[Explanation], output: str, *, color: bool, several: bool) -> str:
    if not explanations:
        return ""
    if output == "text":
        return "\n\n".join(text.render_explanation(explained, color=color) for explained in explanations)
    values = msgspec.to_builtins(explanations)
    if output == "yaml":
        return to_yaml(*values)
    body = {"items": values} if several else values[0]
    return to_json(body)
