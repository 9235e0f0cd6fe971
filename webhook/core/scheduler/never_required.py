"""The rules of a pod with which no node is ever required: one table.

A pod is plain if only its node selector, its node affinity, its tolerations and the amounts that it requests decide
where it can run. For any other rule of kube-scheduler the answer depends on more than one node and its pods, or on what
the webhook does not read. The node is then preferred at most.

Upstream: a folder of pkg/scheduler/framework/plugins for each plugin that the table names.
Invariant: no plugin rejects a node, or keeps the pod waiting, by a field of the pod that is neither here nor evaluated
by webhook.core.placement.feasibility.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.container import Container
from webhook.core.api.longhorn import LONGHORN_CSI_DRIVER
from webhook.core.reasons import Reason, Why
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins.volumes import TOPOLOGY_LABELS

_SOFT: Final = "ScheduleAnyway"


class FieldRule(NamedTuple):
    """A field of the pod or of its volumes.

    Attributes:
        plugin: the plugin of kube-scheduler that evaluates the field.
        has: yields what the pod has of it, in words; nothing if the pod does not have it.
        listed: whether nodes that pass feasibility can make a short list. Of the other fields it is not known which
            nodes pass.
    """

    plugin: str
    has: Callable[[CycleState], Iterator[str]]
    listed: bool = False


def _gates(cycle: CycleState) -> Iterator[str]:
    return (f"scheduling gate {gate.name}" for gate in cycle.pod.spec.scheduling_gates or ())


def _group(cycle: CycleState) -> Iterator[str]:
    return iter(["a scheduling group (spec.schedulingGroup)"] if cycle.pod.spec.scheduling_group else ())


def _inter_pod(cycle: CycleState) -> Iterator[str]:
    def own(which: str, terms: Iterable[PodAffinityTerm]) -> Iterator[str]:
        return (f"required pod {which} over {term.topology_key}" for term in terms)

    spec = cycle.pod.spec
    yield from own("affinity", spec.required_pod_affinity)
    yield from own("anti-affinity", spec.required_pod_anti_affinity)


def _spread(cycle: CycleState) -> Iterator[str]:
    """A required node or a short list changes what a constraint means: it counts the nodes that the pod may use."""
    hard = (each for each in cycle.pod.spec.topology_spread_constraints or () if each.when_unsatisfiable != _SOFT)
    return (f"a DoNotSchedule topology spread over {constraint.topology_key}" for constraint in hard)


def _containers(cycle: CycleState) -> Iterator[Container]:
    yield from cycle.pod.spec.containers or ()
    yield from cycle.pod.spec.init_containers or ()


def _ports(cycle: CycleState) -> Iterator[str]:
    ports = (port for container in _containers(cycle) for port in container.ports or ())
    return (f"host port {port.host_port}" for port in ports if port.host_port)


def _devices(cycle: CycleState) -> Iterator[str]:
    return iter(["claims of devices (spec.resourceClaims)"] if cycle.pod.spec.resource_claims else ())


def _features(cycle: CycleState) -> Iterator[str]:
    """What needs a feature of the node, as of 1.37 (component-helpers nodedeclaredfeatures/features)."""
    spec = cycle.pod.spec
    if spec.host_network and spec.host_users is False:
        yield "hostUsers: false beside hostNetwork"
    for container in _containers(cycle):
        if container.restart_policy_rules:
            yield "restartPolicyRules"
        if any(mount.bind_mount_options for mount in container.volume_mounts or ()):
            yield "bindMountOptions"


def _restricted(cycle: CycleState) -> Iterator[str]:
    yield from (f"claim {each.claim}, which is ReadWriteOncePod" for each in cycle.volumes if each.of_one_pod)
    yield from (f"inline volume {each.name}" for each in cycle.pod.spec.volumes or () if each.is_restricted)


def _in_tree(cycle: CycleState) -> Iterator[str]:
    """kube-scheduler takes it for the volume of a CSI driver (volumebinding/binder.go, tryTranslatePVToCSI)."""
    for bound in cycle.volumes:
        source = bound.volume.spec.in_tree() if bound.volume.spec else None
        if source:
            yield f"claim {bound.claim}, whose PersistentVolume is of the in-tree kind {source}"


def _match_fields(cycle: CycleState) -> Iterator[str]:
    """The webhook could not tell such a term from its own."""
    required = cycle.pod.spec.required_node_affinity
    terms = (required.node_selector_terms if required else None) or ()
    return ("a required node affinity term with matchFields" for term in terms if term.match_fields)


def _other_drivers(cycle: CycleState) -> Iterator[str]:
    """How many of its volumes are attached to a node is not known."""
    for bound in cycle.volumes:
        csi = bound.volume.spec.csi if bound.volume.spec else None
        if csi and csi.driver != LONGHORN_CSI_DRIVER:
            yield f"claim {bound.claim}, whose volume is of CSI driver {csi.driver or '(none)'}"


def _zones(cycle: CycleState) -> Iterator[str]:
    for bound in cycle.volumes:
        labels = (label for label in bound.volume.metadata.labels or () if label in TOPOLOGY_LABELS)
        yield from (f"claim {bound.claim}, whose PersistentVolume has the label {label}" for label in labels)


RULES: Final = (
    FieldRule("SchedulingGates", _gates),
    FieldRule("GangScheduling", _group),
    FieldRule("InterPodAffinity", _inter_pod),
    FieldRule("PodTopologySpread", _spread),
    FieldRule("NodePorts", _ports),
    FieldRule("DynamicResources", _devices),
    FieldRule("NodeDeclaredFeatures", _features),
    FieldRule("VolumeRestrictions", _restricted),
    FieldRule("VolumeBinding", _in_tree),
    FieldRule("NodeAffinity", _match_fields),
    FieldRule("NodeVolumeLimits", _other_drivers, listed=True),
    FieldRule("VolumeZone", _zones, listed=True),
)


def why_never_required(cycle: CycleState) -> Why | None:
    """Return the first rule of the table that the pod has; None for a plain pod."""
    return _first(cycle, RULES)


def why_never_listed(cycle: CycleState) -> Why | None:
    """Return the first of the rules with which the pod can't have a short list either; None if it has none of them."""
    return _first(cycle, (rule for rule in RULES if not rule.listed))


def _first(cycle: CycleState, rules: Iterable[FieldRule]) -> Why | None:
    for rule in rules:
        for what in rule.has(cycle):
            return Reason.RULE_NOT_EVALUATED.why(what=what, plugin=rule.plugin)
    return None
