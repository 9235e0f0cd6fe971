"""The command candidates: read a cluster once, decide for each VM as the webhook would, and print what would change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from operator import attrgetter
from typing import Final, TextIO

import msgspec

from webhook.candidates import report, text
from webhook.candidates.report import CandidateItem, CandidateReport
from webhook.candidates.settings import CandidatesSettings
from webhook.candidates.stopped import stopped_vms, why_not_known
from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import did_you_mean
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.observe.candidate import Candidate, candidate_of
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.explain.derive.notes import CLUSTER
from webhook.objects.kinds import SHARE_MANAGER
from webhook.objects.manifests import Manifests
from webhook.objects.parts import parts_of_all
from webhook.objects.vm_rows import (
    misplaced_opt_ins,
    old_share_managers,
    opt_in_all_in,
    owner_of_vm,
    pods_of_vms,
    require_pods,
    unread,
)
from webhook.status.output import now
from webhook.terminal import to_json, to_yaml

EXIT_COMPLETE: Final = 0
EXIT_INCOMPLETE: Final = 1
EXIT_MISSING: Final = 2
_TABLES: Final = ("table", "wide")
_BY_NAME: Final = attrgetter("namespace", "name")


def run(settings: CandidatesSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if the report is complete, 1 if something that counts could not be read: the report says so. 2 if no VM has
        one of the names, and if Longhorn's namespace has no ShareManager.

    Raises:
        UserError: no cluster can be reached, or its pods can't be read.
    """
    cluster, origin = _cluster(settings)
    made = cluster.objects.bundle
    namespace = "" if settings.all_namespaces else settings.namespace or (made.namespace if made else "default")
    setting, unknown = (settings.opt_in_all, "") if settings.opt_in_all else opt_in_all_in(cluster)
    policy = Policy(longhorn_namespace=settings.longhorn_namespace, opt_in_all=setting)
    stopped, not_known = stopped_vms(cluster, policy, namespace, settings.selector), why_not_known(cluster)
    candidates = sorted([*_running(cluster, policy, namespace, settings.selector), *stopped.items], key=_BY_NAME)
    names = vm_names(settings.names)
    items = [each for each in candidates if not names or each.name in names]
    problems = unread(cluster)
    if unknown and any(each.may_be_opted_in for each in items):
        problems.append(opt_in_all_unknown(unknown))
    if not_known and made:
        problems.append(f"VirtualMachine: {not_known}; so VMs that are stopped are not shown")
    problems += (said for key, said in stopped.unreadable.items() if not names or key.name in names)
    found = CandidateReport(cluster=origin, at=made.at if made else now(), problems=problems, items=items)
    with suppress(BrokenPipeError):
        stdout.write(_render(found, settings))
    vm, has = "running VM" if not_known else "VM", "is known to have" if problems else "has"
    where = f"namespace {namespace}" if namespace else "any namespace"
    nobody = f"no {vm}{_names_or_labels(settings)} in {where} {has} a disk with a share-manager"
    stderr.write(f"{report.count_gains(items) if items else nobody}\n")
    stderr.writelines(f"{sentence}\n" for sentence in _remarks(found, settings))
    stderr.writelines(f"{sentence}\n" for sentence in old_share_managers(cluster, settings.longhorn_namespace))
    if not_known and not made:
        stderr.write(f"only VMs that run are shown: {not_known}\n")
    if not candidates and not problems and not cluster.objects.within(SHARE_MANAGER, settings.longhorn_namespace):
        stderr.write(
            f"namespace {settings.longhorn_namespace} has no ShareManager at all; expected Longhorn's own namespace: "
            "--longhorn-namespace\n"
        )
        return EXIT_MISSING
    shown = {each.name for each in candidates}
    missing = [name for name in names if name not in shown | {key.name for key in stopped.unreadable}]
    absent = f"no {vm} of this name {has} a disk with a share-manager"
    stderr.writelines(f"{name}: {absent}{did_you_mean(name, shown)}\n" for name in missing)
    return EXIT_MISSING if missing else EXIT_INCOMPLETE if problems else EXIT_COMPLETE


def _remarks(found: CandidateReport, settings: CandidatesSettings) -> Iterator[str]:
    """What a reader of the report must know besides: a sentence each."""
    if settings.output in _TABLES and any(each.change for each in found.items):
        yield "the lines that opt VMs in: --output commands"
    if settings.output == "table":
        yield from text.notes(found.items)
    if any(CLUSTER in each.notes for each in found.items):
        yield f"the next pod of a stopped VM is {CLUSTER}"
    yield from (f"not everything could be read: {problem}" for problem in found.problems)


def _names_or_labels(settings: CandidatesSettings) -> str:
    if settings.names:
        return " of these names"
    labels = ",".join(map(str, settings.selector.requirements)) if settings.selector else ""
    return f" with labels {labels}" if labels else ""


def _cluster(settings: CandidatesSettings) -> tuple[Manifests, str]:
    """The cluster that files describe, or a live one, read once into the same form; and the cluster in words."""
    if settings.manifests:
        described = Manifests.load(settings.manifests, longhorn_namespace=settings.longhorn_namespace)
        require_pods(described, str(settings.manifests))
        return described, described.objects.origin(str(settings.manifests))
    from webhook.kube.collect import collect_at_terminal  # noqa: PLC0415 - the API client takes 1 s to import

    kubeconfig = Kubeconfig(file=settings.kubeconfig, context=settings.context)
    found = collect_at_terminal(kubeconfig, settings.longhorn_namespace, lambda _: parts_of_all())
    return Manifests(
        found, longhorn_namespace=settings.longhorn_namespace
    ), found.bundle.cluster if found.bundle else ""


def _running(cluster: Manifests, policy: Policy, namespace: str, selector: Selector | None) -> Iterator[CandidateItem]:
    """Each VM of the namespace that has a pod with these labels, and a share-manager."""
    misplaced = misplaced_opt_ins(cluster)
    for key, pods in pods_of_vms(cluster, selector).items():
        if namespace not in ("", key.namespace):
            continue
        candidate = _candidate(cluster, pods, policy)
        if candidate:
            owner = owner_of_vm(cluster, key)
            yield report.candidate_item(candidate, owner, misplaced.get(NamespacedName(key.namespace, owner or ""), ()))


def _candidate(cluster: Manifests, pods: Sequence[Pod], policy: Policy) -> Candidate | None:
    """What the VM of these pods would gain; None if it has no share-manager. Its own pods do not count."""
    snapshot = cluster.snapshot()
    with snapshot.without(pods) if isinstance(snapshot, ListedSnapshot) else nullcontext():
        return candidate_of(pods, cluster, policy)


def _render(found: CandidateReport, settings: CandidatesSettings) -> str:
    if settings.output == "json":
        return to_json(found)
    if settings.output == "yaml":
        return to_yaml(msgspec.to_builtins(found))
    if settings.output == "name":
        lines = [report.resource(each) for each in found.items]
    else:
        lines = report.commands(found.items) if settings.output == "commands" else _table(found, settings)
    return "".join(f"{line}\n" for line in lines)


def _table(found: CandidateReport, settings: CandidatesSettings) -> list[str]:
    if not found.items:
        return []
    namespaces, wide = settings.all_namespaces, settings.output == "wide"
    return text.candidate_table(found.items, namespaces=namespaces, head=not settings.no_headers, wide=wide)
