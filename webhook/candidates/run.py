"""The command candidates: read a cluster once, and print for each VM what the webhook would ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Final, TextIO

import msgspec

from webhook.candidates import report, text
from webhook.candidates.report import CandidateItem, CandidateReport
from webhook.candidates.settings import CandidatesSettings
from webhook.candidates.stopped import stopped_vms, why_not_known
from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import did_you_mean
from webhook.core.api.meta import NamespacedName
from webhook.core.observe.candidate import candidate_of
from webhook.core.observe.vm_status import State
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.objects.kinds import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from webhook.objects.manifests import Manifests
from webhook.objects.parts import parts_of_all
from webhook.objects.vm_rows import (
    misplaced_opt_ins,
    of_other_versions,
    old_share_managers,
    owner_of_vm,
    pods_of_vms,
    require_pods,
    require_share_managers,
    unread,
)
from webhook.objects.webhook_settings import webhook_settings
from webhook.terminal import to_json, to_yaml

EXIT_COMPLETE: Final = 0
EXIT_INCOMPLETE: Final = 2
_TABLES: Final = ("table", "wide")
_BY_WEIGHT: Final = attrgetter("order")


def run(settings: CandidatesSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if the report is complete. 2 if something that counts could not be read, which the report says, and if no VM
        has one of the names.

    Raises:
        UserError: no cluster can be reached, its pods can't be read, or Longhorn's namespace has no ShareManager.
    """
    names = vm_names(settings.names)  # A word that is not a name is an error before a cluster is asked.
    cluster, origin = _cluster(settings)
    require_share_managers(cluster, settings.longhorn_namespace)
    made = cluster.objects.bundle
    namespace = "" if settings.all_namespaces else settings.namespace or (made.namespace if made else "default")
    webhook = webhook_settings(cluster, settings.longhorn_namespace)
    stopped = stopped_vms(cluster, webhook.policy, namespace, settings.selector)
    not_known = why_not_known(cluster)
    running = _running(cluster, webhook.policy, namespace, settings.selector)
    candidates = sorted([*running, *stopped.items], key=_BY_WEIGHT)
    items = [each for each in candidates if not names or each.name in names]
    problems = unread(cluster)
    if webhook.problem and any(each.may_be_opted_in for each in items):
        problems.append(opt_in_all_unknown(webhook.problem))
    if not_known and made:
        problems.append(f"VirtualMachine: {not_known}; so VMs that are stopped are not shown")
    problems += (said for key, said in stopped.unreadable.items() if not names or key.name in names)
    shown = [each for each in items if not settings.apart or each.state is State.APART]
    found = CandidateReport(
        cluster=origin, at=cluster.objects.at, settings=webhook.sentence, problems=problems, items=shown
    )
    with suppress(BrokenPipeError):
        stdout.write(_render(found, settings))
    vm, has = "running VM" if not_known else "VM", "is known to have" if problems else "has"
    where = f"namespace {namespace}" if namespace else "any namespace"
    nobody = f"no {vm}{_names_or_labels(settings)} in {where} {has} a disk with a share-manager"
    if made and settings.manifests:
        stderr.write(f"the cluster as it was at {made.at}\n")
    stderr.write(f"{report.counted(items, known=not problems)}\n" if items else f"{nobody}\n")
    stderr.writelines(f"{sentence}\n" for sentence in _remarks(found, settings))
    stderr.writelines(f"{sentence}\n" for sentence in (*of_other_versions(cluster), *webhook.notes))
    stderr.writelines(f"{sentence}\n" for sentence in old_share_managers(cluster, settings.longhorn_namespace))
    if not_known and not made:
        stderr.write(f"only VMs that run are shown: {not_known}\n")
    known = {each.name for each in candidates}
    missing = [name for name in names if name not in known | {key.name for key in stopped.unreadable}]
    absent = f"no {vm} of this name {has} a disk with a share-manager"
    stderr.writelines(f"{name}: {absent}{did_you_mean(name, known)}\n" for name in missing)
    return EXIT_INCOMPLETE if missing or problems else EXIT_COMPLETE


def _remarks(found: CandidateReport, settings: CandidatesSettings) -> Iterator[str]:
    """What a reader of the report must know besides: a sentence each."""
    yield f"the webhook's settings: {found.settings}"
    if settings.output in _TABLES and any(each.change for each in found.items):
        yield "the lines that opt VMs in: --output commands"
    if settings.output in _TABLES and any(each.next_start.nodes for each in found.items):
        yield "kube-scheduler and the webhook's rules then check each VM's own rules: --output wide"
    if any(each.needs_share_manager is False for each in found.items):
        yield (
            "NEEDS-SHARE-MANAGER no: nobody else uses its volumes, so block volumes of a StorageClass with "
            'migratable: "true" would do, and such volumes have no share-manager'
        )
    if settings.output == "table":
        yield from text.notes(found.items)
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

    found = collect_at_terminal(settings.client_config, settings.longhorn_namespace, lambda _: parts_of_all())
    return Manifests(
        found, longhorn_namespace=settings.longhorn_namespace
    ), found.bundle.cluster if found.bundle else ""


def _running(cluster: Manifests, policy: Policy, namespace: str, selector: Selector | None) -> Iterator[CandidateItem]:
    """Each VM of the namespace that has a pod with these labels, and a share-manager."""
    misplaced = misplaced_opt_ins(cluster)
    for key, pods in pods_of_vms(cluster, selector).items():
        if namespace not in ("", key.namespace):
            continue
        candidate = candidate_of(pods, cluster, policy, cluster.objects.at)
        if candidate and candidate.has_share_manager:
            owner = owner_of_vm(cluster, key)
            vm = cluster.objects.get(VIRTUAL_MACHINE, owner or "", key.namespace)
            vmi = cluster.objects.get(VIRTUAL_MACHINE_INSTANCE, key.name, key.namespace)
            notes = misplaced.get(NamespacedName(key.namespace, owner or ""), ())
            yield report.candidate_item(candidate, owner, vm or vmi, notes)


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
