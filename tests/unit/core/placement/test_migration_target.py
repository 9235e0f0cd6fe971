"""The target of a live migration: what is read for the decision, and that a source that is not known decides nothing.

`tests/cases/migration-target.yaml` has the rules themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec import convert
from support.fakes.views import MISSING, Gap, ViewWithGaps, cluster, missing_after
from support.objects.builders import (
    OWNER_UID,
    longhorn_node,
    migration_target_pod,
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    vm_pod,
)

from webhook.core import refs
from webhook.core.api.kubevirt import placing_node_selector
from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Leave, Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.migration_target import place_migration_target
from webhook.core.reasons import Reason
from webhook.core.view import Kind, NoObject, ObjectRef, Ref

Object = dict[str, Any]
CLAIM: Final = NamespacedName("vms", "disk")
PODS: Final = ObjectRef(Kind.VIRT_LAUNCHER_POD, CLAIM)
ON_SOURCE: Final = refs.virt_launchers_on("vms", "n2")
TARGET: Final = migration_target_pod(source="n2", claims=["disk"])
SOURCE: Final = vm_pod("running", vm="db01", uid=OWNER_UID, node="n2", claims=["disk"])
CLUSTER: Final = (
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume("pv", claim="disk", handle="h"),
    share_manager("h", state="running", ownerID="n1"),
    share_manager_pod("h", nodeName="n1"),
    *(each for name in ("n1", "n2", "n3") for each in (node(name), longhorn_node(name))),
)


def decide(*objects: Object, pod: Object = TARGET, gaps: Mapping[Ref, Gap] | None = None) -> Pin | Leave:
    """Decide for a target pod whose VM leaves n2; its share-manager is on n1."""
    view = ViewWithGaps(cluster(*CLUSTER, *objects), gaps or {})
    return place_migration_target(convert(pod, Pod), "vms", view, Policy())


def read_for(*objects: Object, gaps: Mapping[Ref, Gap]) -> list[Ref]:
    """What must be read before the decision counts."""
    view = ViewWithGaps(cluster(*CLUSTER, *objects), gaps)
    return missing_after(view, lambda view: place_migration_target(convert(TARGET, Pod), "vms", view, Policy()))


def test_the_source_pod_in_the_cache_is_not_read_again() -> None:
    """virt-controller waits for the answer under a lock, so that a read that is not needed costs all migrations."""
    found = decide(SOURCE, gaps={ON_SOURCE: MISSING})
    assert isinstance(found, Pin)


READS: Final = {
    "the pods are not cached": (SOURCE, {PODS: NoObject.UNAVAILABLE, ON_SOURCE: MISSING}),
    "the cache does not have the source": (
        vm_pod("other", node="n2", claims=["disk"]),
        {ON_SOURCE: MISSING},
    ),
}


@pytest.mark.parametrize(("other", "gaps"), READS.values(), ids=READS)
def test_a_source_pod_that_no_cache_has_is_read_by_its_node(other: Object, gaps: Mapping[Ref, Gap]) -> None:
    """One list of the VM's pods on the source node."""
    assert read_for(other, gaps=gaps) == [ON_SOURCE]


def test_a_source_pod_that_was_read_counts_as_one_from_the_cache() -> None:
    """A process without a cache of pods decides the same."""
    gaps = {PODS: NoObject.UNAVAILABLE}
    assert decide(SOURCE, gaps=gaps) == decide(SOURCE)
    chosen = vm_pod("running", vm="db01", uid=OWNER_UID, node="n2", claims=["disk"], nodeSelector={"rack": "4"})
    found = decide(chosen, gaps=gaps)
    assert isinstance(found, Leave)
    assert found.why.reason is Reason.SOURCE_NODE_CHOSEN


UNKNOWN: Final = {
    "it can't be read": (
        SOURCE,
        {PODS: NoObject.UNAVAILABLE, ON_SOURCE: NoObject.UNAVAILABLE},
        Reason.SOURCE_POD_UNREAD,
    ),
    "no such list": (SOURCE, {PODS: NoObject.UNAVAILABLE, ON_SOURCE: NoObject.NOT_FOUND}, Reason.SOURCE_POD_NOT_FOUND),
    "it has ended": ({**SOURCE, "status": {"phase": "Succeeded"}}, {}, Reason.SOURCE_POD_NOT_FOUND),
    "it is elsewhere": (
        vm_pod("running", vm="db01", uid=OWNER_UID, node="n3", claims=["disk"]),
        {},
        Reason.SOURCE_POD_NOT_FOUND,
    ),
}


@pytest.mark.parametrize(("source", "gaps", "reason"), UNKNOWN.values(), ids=UNKNOWN)
def test_a_target_whose_source_pod_is_not_known_is_left_alone(
    source: Object, gaps: Mapping[Ref, Gap], reason: Reason
) -> None:
    """Somebody may have chosen the node that the VM leaves."""
    found = decide(source, gaps=gaps)
    assert isinstance(found, Leave)
    assert (found.why.reason, found.opted_in) == (reason, True)
    assert "n2" in found.why.sentence


@pytest.mark.parametrize("owners", [None, [{"kind": "VirtualMachineInstance", "name": "db01"}]], ids=["none", "no uid"])
def test_a_target_without_an_owner_has_no_source_pod(owners: list[Object] | None) -> None:
    """Pods without an owner do not belong together."""
    pod = {**TARGET, "metadata": {**TARGET["metadata"], "ownerReferences": owners}}
    same = {**SOURCE, "metadata": {**SOURCE["metadata"], "ownerReferences": owners}}
    found = decide(same, pod=pod)
    assert isinstance(found, Leave)
    assert found.why.reason is Reason.SOURCE_POD_NOT_FOUND


UNREAD: Final = {
    "the claim": ObjectRef(Kind.PERSISTENT_VOLUME_CLAIM, CLAIM),
    "the node": ObjectRef(Kind.NODE, NamespacedName("", "n1")),
}


@pytest.mark.parametrize("ref", UNREAD.values(), ids=UNREAD)
def test_what_is_not_cached_is_asked_for(ref: Ref) -> None:
    """As for a start pod."""
    assert read_for(SOURCE, gaps={ref: MISSING}) == [ref]


LABELS: Final = {
    "kubernetes.io/hostname": True,
    "topology.kubernetes.io/zone": True,
    "example.com/rack": True,
    "kubevirt.io": True,  # without a slash the label has no domain
    "notkubevirt.io/rack": True,
    "kubevirt.io.example.com/rack": True,
    "kubernetes.io/arch": False,
    "kubevirt.io/schedulable": False,
    "kubevirt.io/sev": False,
    "cpu-feature.node.kubevirt.io/avx": False,
    "machine-type.node.kubevirt.io/q35": False,
    "scheduling.node.kubevirt.io/tsc-frequency-2000": False,
}


@pytest.mark.parametrize(("label", "chosen"), LABELS.items(), ids=LABELS)
def test_labels_that_kubevirt_asks_for_by_itself_are_nobodys_choice(label: str, *, chosen: bool) -> None:
    """A VM that needs a CPU feature was not sent to a place."""
    assert placing_node_selector({label: "x"}) == ({label: "x"} if chosen else {})
    assert placing_node_selector(None) == {}


NAMES: Final = {
    "db-reunite-12": {"rack": "4"},
    "db-together-x7k2p": {"rack": "4"},
    "db-reunite-": {"kubernetes.io/hostname": "n2", "rack": "4"},
    "reunite": {"kubernetes.io/hostname": "n2", "rack": "4"},
    "kubevirt-evacuation-x7k2p": {"kubernetes.io/hostname": "n2", "rack": "4"},
}


@pytest.mark.parametrize(("migration", "chosen"), NAMES.items(), ids=NAMES)
def test_the_hostname_of_a_migration_to_the_share_managers_is_nobodys_choice(
    migration: str, chosen: Mapping[str, str]
) -> None:
    """The names are those of `reunite` and of `status --plan`."""
    assert placing_node_selector({"kubernetes.io/hostname": "n2", "rack": "4"}, migration) == chosen


def test_a_vm_that_reunite_brought_home_follows_its_share_manager_again() -> None:
    """Its pod names the node on which it runs; a person's migration would have kept it away."""
    home = {"nodeSelector": {"kubernetes.io/hostname": "n2"}}
    running = vm_pod("running", vm="db01", uid=OWNER_UID, node="n2", claims=["disk"], **home)
    ours = running["metadata"].setdefault("annotations", {})
    for name, follows in (("db01-reunite-1", True), ("by-hand", False)):
        ours["kubevirt.io/migrationJobName"] = name
        assert isinstance(decide(running), Pin) is follows
