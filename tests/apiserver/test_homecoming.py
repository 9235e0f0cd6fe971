"""Targets of live migrations on a real API server, with the component homecoming and without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from support.control_plane.cluster_state import ClusterState
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_api import Object
from support.control_plane.rendering import HOMECOMING
from support.drivers.serving import Serving
from support.fakes.failing_webhooks import webhook_server
from support.objects import short
from support.objects.builders import NAMESPACE, OWNER_UID, migration_target_pod, node_affinity
from support.scenarios.admitting import (
    FAIL_OPEN,
    REJECTIONS,
    Admission,
    Counted,
    admission_lines,
    created,
    until,
    until_watched,
)

WEBHOOK: Final = "migration-target.kubevirt-coschedule.io"
TIMEOUT_SECONDS: Final = 1  # manifests/components/homecoming
_LONGEST_SECONDS: Final = 10  # the default of timeoutSeconds: a call that is given up before was by the component's
SSD: Final = {"matchExpressions": [{"key": "example.com/disk", "operator": "In", "values": ["ssd"]}]}
RACK: Final[Object] = {"example.com/rack": "4"}
AWAY: Final[Object] = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {
            "labelSelector": {"matchLabels": {"kubevirt.io/created-by": OWNER_UID}},
            "topologyKey": "kubernetes.io/hostname",
        }
    ]
}


def target(claim: str = "disk", **parts: object) -> Object:
    """The target of a migration of VM db01, which leaves node-b, with KubeVirt's rules and the user's."""
    affinity = {**node_affinity(required=[SSD]), "podAntiAffinity": AWAY}
    return migration_target_pod(source="node-b", claims=[claim], namespace=NAMESPACE, affinity=affinity, **parts)


@pytest.fixture(scope="module")
def migrating(installed: Installed) -> Iterator[Installed]:
    """Two VMs on node-b whose share-managers are on node-a. Somebody sent the second one to its rack."""
    vm = {"vm": "db01", "uid": OWNER_UID, "node": "node-b"}
    state = {
        "nodes": ["node-a", "node-b", "node-c"],
        "volumes": {"disk": {"servedFrom": "node-a"}, "sent": {"servedFrom": "node-a"}},
        "vms": {"running": {**vm, "claims": ["disk"]}, "sent": {**vm, "claims": ["sent"], "nodeSelector": RACK}},
    }
    with ClusterState(installed.plane.api) as cluster:
        cluster.become(short.cluster(state))
        yield installed
    installed.disable()


class Coming(NamedTuple):
    """The install with the component, and its server."""

    installed: Installed
    server: Serving

    def created(self, pod: Object) -> Admission:
        """The pod, created and not kept."""
        return created(self.installed.plane.api, pod)


def test_without_the_component_nobody_is_asked(migrating: Installed) -> None:
    """The server serves the path, and the API server does not call it."""
    migrating.enable()
    with migrating.serving() as server:
        migrating.until_called()
        before = len(admission_lines(server))
        found = created(migrating.plane.api, target())
        assert len(admission_lines(server)) == before
    assert (found.decision, found.preferred) == ("", [])


@pytest.mark.parametrize("slow", [False, True], ids=["nobody listens", "nobody answers"])
def test_without_an_answer_the_target_is_created_unchanged_within_the_second(
    migrating: Installed, *, slow: bool
) -> None:
    """virt-controller waits for each target under one lock."""
    migrating.enable(component=HOMECOMING)
    api, pod = migrating.plane.api, target()
    counted = Counted(api)
    until(lambda: created(api, pod) and counted.more()(FAIL_OPEN, name=WEBHOOK), "a call")
    counted = Counted(api)
    if slow:
        certificate = migrating.authority.issue_cert(f"{NAME}.{NAME}.svc")
        with webhook_server(migrating.address, migrating.port, certificate, lambda _: None):
            found = created(api, pod)
    else:
        found = created(api, pod)
    assert found.pod["spec"]["affinity"] == pod["spec"]["affinity"]
    assert found.pod["metadata"]["annotations"] == pod["metadata"]["annotations"]
    seconds = found.created_at - found.asked_at
    assert (TIMEOUT_SECONDS if slow else 0) <= seconds < _LONGEST_SECONDS
    more = counted.more()
    assert (more(FAIL_OPEN, name=WEBHOOK), more(REJECTIONS, name=WEBHOOK)) == (1, 0)


@pytest.fixture(scope="module")
def coming(migrating: Installed) -> Iterator[Coming]:
    """The component is applied, and a server answers."""
    migrating.enable(component=HOMECOMING)
    with migrating.serving() as server:
        until_watched(server)
        until(lambda: created(migrating.plane.api, target()).preferred, "a preference")
        yield Coming(migrating, server)


def test_a_target_gets_the_preference_and_nothing_else(coming: Coming) -> None:
    """One call to the entry of migration targets; the required rules stay, KubeVirt's and the user's."""
    before = len(admission_lines(coming.server))
    found = coming.created(target())
    [line] = admission_lines(coming.server)[before:]
    assert (line["entry"], line["decision"], line["nodes"], line.get("reads", 0)) == (
        "migration-target",
        "preferred",
        ["node-a"],
        0,
    )
    affinity = found.pod["spec"]["affinity"]
    wished = node_affinity(required=[SSD], preferred={"node-a": 100})
    assert affinity == {**wished, "podAntiAffinity": AWAY}
    assert found.decision.startswith("preferred on node-a: ShareManagerPod: claim disk: ")


LEFT: Final = {
    "a named target": (target(nodeSelector={"kubernetes.io/hostname": "node-c"}), "unchanged: TargetNamed: "),
    "a VM that was sent away": (target("sent"), "unchanged: SourceNodeChosen: "),
    "a VM that did not ask": (target(opt_in=None), ""),
    "a receiver": (target(annotations={"kubevirt.io/create-migration-target": "true"}), ""),
}


@pytest.mark.parametrize(("pod", "decision"), LEFT.values(), ids=LEFT)
def test_a_target_that_somebody_sent_somewhere_stays_as_it_is(pod: Object, decision: str, coming: Coming) -> None:
    """The annotation says why, if the VM asks for co-scheduling."""
    found = coming.created(pod)
    assert found.pod["spec"]["affinity"] == pod["spec"]["affinity"]
    assert found.decision.startswith(decision)
    assert bool(found.decision) is bool(decision)


def test_a_start_pod_is_asked_about_by_its_own_entry(coming: Coming) -> None:
    """The component changes nothing for start pods."""
    before = len(admission_lines(coming.server))
    pod = target()
    del pod["metadata"]["labels"]["kubevirt.io/migrationJobUID"]
    coming.created(pod)
    assert [line["entry"] for line in admission_lines(coming.server)[before:]] == ["virt-launcher"]
