"""The cluster that a command asks, live or from files, and the rows of the VMs that the user asked for.

Invariant: counts, sentences and exit codes come from rows that no option hides, with what was not read beside them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct

from webhook.component_base.errors import printable
from webhook.objects.cluster import Cluster
from webhook.objects.unread import (
    WebhookSettings,
    of_other_versions,
    old_share_managers,
    require_pods,
    require_share_managers,
    unread,
    webhook_settings,
)
from webhook.objects.vm_rows import VMRow, chosen, vm_rows
from webhook.settings import AnyClusterSettings, VMListSettings, namespace_in_words, opt_in_all_unknown, vm_names

if TYPE_CHECKING:
    from webhook.objects.objects import Part


def exit_code(*, unknown: object, no: object) -> int:
    """Return the exit code of a command: 0 it was said, and it is true; 1 the answer is no; 2 it could not be answered.

    What is not known comes first: nobody knows then that the answer is no.
    """
    return 2 if unknown else 1 if no else 0


@contextmanager
def without_collections() -> Iterator[None]:
    """Have no garbage collected until the block ends: a cluster is read, nothing of it is freed before the answer.

    Each collection would visit all objects again: a second of two and a half with 5,000 VMs.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Collected(Struct, frozen=True, kw_only=True):
    """What was collected for a command that lists VMs.

    Attributes:
        cluster: all of it.
        webhook: the settings of the webhook.
        namespace: of the VMs that the user asked for; empty for all.
        names: theirs; none for all of them.
        whose: the names or labels in words, after the word VM.
        all_rows: the row of each VM with the labels that the user chose.
        rows: those of these VMs.
        problems: what of these could not be read.
        first: the line about the time of a bundle; none for anything else.
        remarks: what a reader must know besides.
    """

    cluster: Cluster
    webhook: WebhookSettings
    namespace: str
    names: Sequence[str]
    whose: str
    all_rows: Sequence[VMRow]
    rows: Sequence[VMRow]
    problems: list[str]
    first: list[str]
    remarks: list[str]

    @property
    def where(self) -> str:
        """The namespace in words."""
        return namespace_in_words(self.namespace)


def collect(settings: VMListSettings, parts: Callable[[str], Sequence[Part]]) -> Collected:
    """Read what a command needs, once. `parts` takes the namespace of the VMs, empty for all.

    Raises:
        UserError: no cluster can be reached, its pods can't be read, or Longhorn's namespace has no ShareManager.
    """
    names = vm_names(settings.names)  # A word that is not a name is an error before a cluster is asked.
    cluster = _read(settings, lambda usual: parts(settings.namespace_of(usual)))
    require_share_managers(cluster)
    webhook = webhook_settings(cluster)
    namespace = settings.namespace_of(cluster.namespace)
    all_rows = vm_rows(cluster, webhook.policy, settings.selector)
    rows = chosen(all_rows, namespace, names)
    problems, made = unread(cluster), cluster.objects.bundle
    first = [f"the cluster as it was at {made.at}"] if made and settings.manifests else []
    if webhook.problem and any(row.not_asked and row.not_asked.reason.columns.not_opted_in for row in rows):
        problems.append(opt_in_all_unknown(webhook.problem))
    return Collected(
        cluster=cluster,
        webhook=webhook,
        namespace=namespace,
        names=names,
        whose=settings.whose,
        all_rows=all_rows,
        rows=rows,
        problems=problems,
        first=first,
        remarks=[
            f"the webhook's settings: {webhook.sentence}",
            *of_other_versions(cluster),
            *webhook.notes,
            *old_share_managers(cluster),
        ],
    )


def _read(settings: VMListSettings, parts: Callable[[str], Sequence[Part]]) -> Cluster:
    if settings.manifests:
        described = Cluster.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described)
        return described
    from webhook.kube.collect import collect_at_terminal  # noqa: PLC0415 - the API client takes 1 s to import

    found = collect_at_terminal(settings.client_config, settings.longhorn_namespace, parts)
    return Cluster(found, longhorn_namespace=settings.longhorn_namespace)


@contextmanager
def open_cluster(settings: AnyClusterSettings, stderr: TextIO) -> Iterator[Cluster]:
    """Open a cluster of which only what is asked for is read, until the block ends.

    So somebody who may get one VM, and not list pods, still gets an answer.

    Raises:
        UserError: the files can't be read, or no API server answers.
    """
    if settings.manifests is not None:
        described = Cluster.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        if described.objects.ignored:
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(described.objects.ignored.items()))
            stderr.write(printable(f"{settings.manifests}: ignored objects that no rule reads: {counted}") + "\n")
        yield described
        return
    from webhook.kube import reader  # noqa: PLC0415 - the API client takes 1 s to import
    from webhook.kube.live_cluster import LiveCluster  # noqa: PLC0415 - as reader

    with reader.connect_for_terminal(settings.client_config) as (runner, api, origin):
        yield LiveCluster(runner, api, origin, longhorn_namespace=settings.longhorn_namespace)
