"""The command candidates: read a cluster once, decide for each VM as the webhook would, and print what would change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, TextIO

import msgspec

from webhook.candidates import report, text
from webhook.candidates.report import CandidateItem, CandidateReport
from webhook.candidates.settings import CandidatesSettings
from webhook.cluster_options import opt_in_all_unknown, vm_names
from webhook.component_base.errors import did_you_mean
from webhook.component_base.kubeconfig import Kubeconfig
from webhook.core.opt_in import Policy
from webhook.core.scheduler.matching.label_selector import Selector
from webhook.files.candidates import candidate_in, owner_in
from webhook.files.manifests import Manifests
from webhook.files.vm_rows import opt_in_all_in, pods_of_vms, require_pods, unread
from webhook.status.output import now
from webhook.status.report import resource_name
from webhook.terminal import to_json, to_yaml

EXIT_COMPLETE: Final = 0
EXIT_INCOMPLETE: Final = 1
EXIT_MISSING: Final = 2


def run(chosen: CandidatesSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if the report is complete, 1 if something that counts could not be read: the report says so. 2 if no VM has
        one of the names.

    Raises:
        UserError: no cluster can be reached, or its pods can't be read.
    """
    cluster, origin = _cluster(chosen)
    made = cluster.objects.bundle
    namespace = "" if chosen.all_namespaces else chosen.namespace or (made.namespace if made else "default")
    setting, unknown = (chosen.opt_in_all, "") if chosen.opt_in_all else opt_in_all_in(cluster)
    policy = Policy(longhorn_namespace=chosen.longhorn_namespace, opt_in_all=setting)
    candidates = list(_items(cluster, policy, namespace, chosen.selector))
    names = vm_names(chosen.names)
    items = [each for each in candidates if not names or each.name in names]
    found = CandidateReport(cluster=origin, at=made.at if made else now(), problems=unread(cluster), items=items)
    with suppress(BrokenPipeError):
        stdout.write(_render(found, chosen))
    where = f"namespace {namespace}" if namespace else "any namespace"
    stderr.write(f"{report.count_gains(items) if items else f'{_nobody(chosen)} in {where} has a share-manager'}\n")
    if chosen.output == "table" and any(each.change for each in items):
        stderr.write("the lines that opt VMs in: --output commands\n")
    stderr.writelines(f"not everything could be read: {problem}\n" for problem in found.problems)
    if unknown:
        stderr.write(f"{opt_in_all_unknown(unknown)}\n")
    shown = {each.name for each in candidates}
    missing = [name for name in names if name not in shown]
    absent = "no running VM of this name has a share-manager"
    stderr.writelines(f"{name}: {absent}{did_you_mean(name, shown)}\n" for name in missing)
    return EXIT_MISSING if missing else EXIT_INCOMPLETE if found.problems else EXIT_COMPLETE


def _nobody(chosen: CandidatesSettings) -> str:
    if chosen.names:
        return "none of these VMs"
    labels = ",".join(map(str, chosen.selector.requirements)) if chosen.selector else ""
    return f"no running VM with labels {labels}" if labels else "no running VM"


def _cluster(chosen: CandidatesSettings) -> tuple[Manifests, str]:
    """The cluster that files describe, or a live one, read once into the same form; and the cluster in words."""
    if chosen.manifests:
        described = Manifests.load(chosen.manifests, longhorn_namespace=chosen.longhorn_namespace)
        require_pods(described, str(chosen.manifests))
        return described, described.objects.origin(str(chosen.manifests))
    from webhook.bundle.collect import collect_bundle  # noqa: PLC0415 - the API client takes 1 s to import

    found = collect_bundle(Kubeconfig(file=chosen.kubeconfig, context=chosen.context), chosen.longhorn_namespace)
    return Manifests(found.documents(), longhorn_namespace=chosen.longhorn_namespace), found.made.cluster


def _items(cluster: Manifests, policy: Policy, namespace: str, selector: Selector | None) -> Iterator[CandidateItem]:
    """Each VM of the namespace that has a share-manager and these labels, by namespace and name."""
    for key, pods in sorted(pods_of_vms(cluster, selector).items()):
        if namespace not in ("", key.namespace):
            continue
        candidate = candidate_in(cluster, pods, policy)
        if candidate:
            yield report.candidate_item(candidate, owner_in(cluster, key))


def _render(found: CandidateReport, chosen: CandidatesSettings) -> str:
    if chosen.output == "json":
        return to_json(found)
    if chosen.output == "yaml":
        return to_yaml(msgspec.to_builtins(found))
    if chosen.output == "name":
        lines = [resource_name(each.name) for each in found.items]
    else:
        lines = report.commands(found.items) if chosen.output == "commands" else _table(found, chosen)
    return "".join(f"{line}\n" for line in lines)


def _table(found: CandidateReport, chosen: CandidatesSettings) -> list[str]:
    if not found.items:
        return []
    return text.candidate_table(found.items, namespaces=chosen.all_namespaces, head=not chosen.no_headers)
