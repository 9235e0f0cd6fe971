"""The install as a user makes it, on two nodes with real kubelets: from `kubectl apply -k` to `kubectl delete -k`.

The tests run in their order: each finds the install as the one before has left it.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from support.control_plane.certs_process import CONFIGURATION, trust
from support.control_plane.cluster_state import ClusterState
from support.control_plane.kubectl import Identity, Kubectl, everything
from support.control_plane.rendering import CERTS, MANIFESTS, NAME, at
from support.node.cluster import NodeCluster
from support.node.configs import PAUSE
from support.node.installed import (
    SLOW_SECONDS,
    calls,
    deployment,
    issued,
    pods,
    served,
    under_load,
    until_bound,
    until_rolled_out,
    vms,
)
from support.objects.builders import NAMESPACE, virt_launcher_pod
from support.scenarios.admitting import Admission, admitted, until

CLAIMS: Final = {"disk": "node-1", "data": "node-2"}
"""Claims, each with the node of its share-manager."""
CLIENTS: Final = 4  # virt-controller has ten workers, and does more between two pods


class Applied(NamedTuple):
    """The cluster with the manifests, and what it had before."""

    nodes: NodeCluster
    before: frozenset[Identity]


@pytest.fixture(scope="module")
def applied(nodes: NodeCluster, kubectl: Kubectl) -> Iterator[Applied]:
    """The manifests, as they are, applied to the cluster; the last test deletes them."""
    with ClusterState(nodes.api) as cluster:
        cluster.become(vms(*CLAIMS.items()))
        until_bound(nodes.api)
        before = frozenset(everything(nodes.api))
        kubectl("apply", "-k", MANIFESTS)
        yield Applied(nodes, before)


def test_the_install_comes_up_by_itself(applied: Applied) -> None:
    """One apply and no more: every pod Ready at its first start, a replica on each node, and calls are answered."""
    api = applied.nodes.api
    until_rolled_out(api)
    replicas, keepers = pods(api), pods(api, "certs")
    assert sorted(pod["spec"]["nodeName"] for pod in replicas) == sorted(CLAIMS.values())
    assert [at("status.containerStatuses.0.restartCount", pod) for pod in (*replicas, *keepers)] == [0, 0, 0]
    assert base64.b64decode(trust(api.get(CONFIGURATION))).startswith(b"-----BEGIN CERTIFICATE-----")
    until(lambda: admitted(api, "disk").decision, "a call that is answered")


def test_a_vm_is_bound_to_the_node_of_its_share_manager(applied: Applied) -> None:
    """The pod carries the pin, and kube-scheduler obeys."""
    api = applied.nodes.api
    for claim, node in CLAIMS.items():
        container = {"name": "compute", "image": PAUSE, "imagePullPolicy": "Never"}
        pod = api.create(virt_launcher_pod(claims=[claim], namespace=NAMESPACE, containers=[container]))
        created = Admission(pod, 0.0, 0.0)
        assert created.required == [node], created.decision
        bound = api.wait_for(pod, lambda found: bool(at("spec.nodeName", found)), what="bound")
        assert at("spec.nodeName", bound) == node
        api.delete(pod)


def test_a_rollout_loses_no_call(applied: Applied, kubectl: Kubectl) -> None:
    """Each replica is replaced while pods are created, and every pod gets its pin."""
    api = applied.nodes.api
    before = {pod["metadata"]["uid"] for pod in pods(api)}
    with under_load(api, "disk", "rollout", clients=CLIENTS) as load:
        kubectl("rollout", "restart", f"deployment/{NAME}", "-n", NAME)
        until_rolled_out(api)
    assert before.isdisjoint(pod["metadata"]["uid"] for pod in pods(api))
    assert load.lost == []


def test_a_renewal_loses_no_call(applied: Applied, kubectl: Kubectl) -> None:
    """The controller renews the certificate, each kubelet swaps the files, and each server takes them as it runs."""
    api = applied.nodes.api
    old, replicas = issued(api), {pod["metadata"]["uid"] for pod in pods(api)}
    stock = [argument for argument in _arguments(applied) if not argument.startswith("--lifetime=")]
    longer = [*stock, "--lifetime=365d", "--propagation-seconds=10"]  # a certificate of 30 d is due at once
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": longer}]
    with under_load(api, "disk", "renewal", clients=CLIENTS) as load:
        kubectl("patch", f"deployment/{CERTS}", "-n", NAME, "--type=json", "-p", json.dumps(change))
        until(lambda: issued(api) != old, "a new certificate in the Secret", seconds=SLOW_SECONDS)
        new = issued(api)
        until(lambda: {served(pod) for pod in pods(api)} == {new}, "the new one served", seconds=SLOW_SECONDS)
    assert {pod["metadata"]["uid"] for pod in pods(api)} == replicas
    assert load.lost == []


def test_a_lost_node_costs_calls_until_a_connection_leads_to_the_other_replica(applied: Applied) -> None:
    """The node of the replica that is asked loses its link, and calls are answered long before that node is NotReady.

    The call in flight is lost. Then the API server connects again, and kube-proxy chooses a replica by chance: each
    connection to the lost one costs a call, too. The first connection to the other replica is kept, and no later call
    is lost. With session affinity every call would be lost until the node is NotReady.
    """
    api = applied.nodes.api
    until_rolled_out(api)
    replicas = pods(api)
    assert len({pod["spec"]["nodeName"] for pod in replicas}) == len(replicas), "one node has both replicas"
    with under_load(api, "disk", "loss of a node", clients=1) as load:
        before = [calls(pod) for pod in replicas]
        load.admitting.until(more=20)
        more = [calls(pod) - count for pod, count in zip(replicas, before, strict=True)]
        asked = replicas[more.index(max(more))]["spec"]["nodeName"]
        (machine,) = (node.machine for node in applied.nodes.nodes if node.machine.name == asked)
        cut = time.monotonic()
        machine.plug(plugged=False)
        applied.nodes.until_node(asked, ready="Unknown")
        not_ready = time.monotonic()
    machine.plug(plugged=True)
    applied.nodes.until_node(asked, ready="True")
    until_rolled_out(api)
    answered = min(pod.asked_at for pod in load.admitting.admissions if pod.decision and pod.asked_at > cut)
    assert answered < not_ready
    assert [pod.decision for pod in load.lost if pod.asked_at > answered] == []


def test_nothing_is_left_of_it(applied: Applied, kubectl: Kubectl) -> None:
    """`kubectl delete -k` removes what `kubectl apply -k` and its programs made: the cluster has what it had before."""
    api = applied.nodes.api
    kubectl("delete", "-k", MANIFESTS)
    until(
        lambda: everything(api).keys() == applied.before,
        lambda: f"too many or too few: {sorted(everything(api).keys() ^ applied.before)}",
    )


def _arguments(applied: Applied) -> list[str]:
    arguments: list[str] = at("spec.template.spec.containers.0.args", applied.nodes.api.get(deployment(CERTS)))
    return arguments
