"""The two pods that KubeVirt can make of a running VM next: the target of a migration, and the pod of its next start.

Upstream: pkg/virt-controller/watch/migration/migration.go (createTargetPod, prepareNodeSelectorForHostCpuModel) and
pkg/virt-controller/services/template.go. The target comes from the VirtualMachineInstance as it is now, and the node
that it leaves adds its CPU. A start has nothing that a migration added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from webhook.core.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from webhook.core.api.kubevirt import is_kubevirts, without_target_rule
from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.live_migration.vm import VM
from webhook.core.patch.decision_patch import as_created

_MODEL_OF_NODE: Final = "host-model-cpu.node.kubevirt.io/"
_FEATURE_OF_NODE: Final = "host-model-required-features.node.kubevirt.io/"
_MODEL: Final = "cpu-model-migration.node.kubevirt.io/"
_FEATURE: Final = "cpu-feature.node.kubevirt.io/"
_VENDOR: Final = "cpu-vendor.node.kubevirt.io/"
_OBSOLETE: Final = NodeSelectorRequirement(key="node-labeller.kubevirt.io/obsolete-host-model", operator="DoesNotExist")
_BY_KUBERNETES: Final = "node.kubernetes.io/"  # tolerations that admission plugins add to every pod


def start_pod(vm: VM, pod: Pod) -> Pod:
    """Return the pod of the VM's next start, before the webhook is asked."""
    is_target = vm.arrived_by is not None
    added = (_MODEL, _VENDOR, *([_FEATURE] if vm.placement.host_model else ())) if is_target else ()
    selector = pod.spec.node_selector or {}
    return _with_selector(vm, pod, {key: value for key, value in selector.items() if not key.startswith(added)})


def target_pod(vm: VM, pod: Pod, source: Node | None) -> Pod:
    """Return the target pod of a migration from the node `source`, without the node that the migration names.

    KubeVirt before 1.8 adds no CPU vendor. No migration to another vendor succeeds there either.
    """
    selector = dict(pod.spec.node_selector or {})
    labels = (source.metadata.labels if source else None) or {}
    if vm.placement.host_model and not any(key.startswith((_MODEL, _FEATURE)) for key in selector):
        renamed = ((_MODEL_OF_NODE, _MODEL), (_FEATURE_OF_NODE, _FEATURE))
        for old, new in renamed:
            found = {key.removeprefix(old): value for key, value in labels.items() if key.startswith(old)}
            selector |= {new + name: value for name, value in found.items()}
    if not any(key.startswith(_VENDOR) for key in selector):
        selector |= {key: "true" for key in labels if key.startswith(_VENDOR)}
    return _with_selector(vm, pod, selector)


def _with_selector(vm: VM, pod: Pod, selector: Mapping[str, str]) -> Pod:
    """Return the pod as KubeVirt makes it, with KubeVirt's own part of this selector, and the VMI's rules."""
    before, now = without_target_rule(as_created(pod)), vm.placement
    own = {key: value for key, value in selector.items() if is_kubevirts(key)}
    tolerations = [each for each in before.spec.tolerations or () if (each.key or "").startswith(_BY_KUBERNETES)]
    spec = replace(
        before.spec,
        node_selector={**own, **now.node_selector},
        affinity=_not_obsolete(now.affinity) if now.host_model else now.affinity,
        tolerations=[*now.tolerations, *(each for each in tolerations if each not in now.tolerations)],
    )
    return replace(before, spec=spec)


def _not_obsolete(affinity: Affinity | None) -> Affinity:
    """Add what KubeVirt adds to each term of a host-model VM (template.go, modifyNodeAffintyToRejectLabel)."""
    affinity = affinity or Affinity()
    node = affinity.node_affinity or NodeAffinity()
    terms = (node.required.node_selector_terms if node.required else None) or [NodeSelectorTerm()]
    narrowed = [replace(each, match_expressions=[*(each.match_expressions or ()), _OBSOLETE]) for each in terms]
    return replace(affinity, node_affinity=replace(node, required=NodeSelector(node_selector_terms=narrowed)))
