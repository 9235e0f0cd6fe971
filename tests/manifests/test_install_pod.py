"""The Deployments' pods: their rights on the node, their resources, and that they block nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.rendering import (
    CERTS,
    HOST_NETWORK,
    NAME,
    at,
    identity,
    installed,
    kustomize,
    selects,
    the,
    with_options,
)

POD: Final = "spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"

either = pytest.mark.parametrize("program", [NAME, CERTS])
"""For the webhook's Deployment, and for the certificate controller's."""


def test_the_namespace_enforces_the_restricted_standard() -> None:
    """The API server itself refuses a pod with more rights."""
    labels = the("Namespace")["metadata"]["labels"]
    modes = ("enforce", "audit", "warn")
    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in modes} == {"restricted"}


@either
def test_the_pod_has_one_container_whose_user_can_read_and_nobody_write(program: str) -> None:
    """The image or OpenShift chooses user and group, so every user reads; nothing can be written anywhere."""
    pod = at(POD, the("Deployment", name=program))
    assert len(pod["containers"]) == 1
    assert "initContainers" not in pod
    assert {"runAsUser", "runAsGroup", "fsGroup"}.isdisjoint(pod["securityContext"])
    assert [mount for mount in pod["containers"][0].get("volumeMounts", ()) if not mount["readOnly"]] == []


def test_the_pair_is_mounted_by_the_webhook_alone() -> None:
    """Every user of the pod reads it. The certificate controller reads it from the API, and mounts nothing."""
    [volume] = at(f"{POD}.volumes", the("Deployment"))
    assert (set(volume), volume["secret"]["defaultMode"]) == ({"name", "secret"}, 0o444)
    assert at(f"{POD}.volumes", the("Deployment", name=CERTS)) is None


@either
def test_only_the_pod_gets_the_account_s_token(program: str) -> None:
    """Another pod with this account does not get its token by default."""
    deployment = the("Deployment", name=program)
    assert at(f"{POD}.serviceAccountName", deployment) == program
    assert the("ServiceAccount", name=program)["automountServiceAccountToken"] is False
    assert at(f"{POD}.automountServiceAccountToken", deployment) is True


@either
def test_memory_is_bounded_and_the_cpu_is_not_throttled(program: str) -> None:
    """A limit for memory, requests for both. A CPU limit would delay every VM's start."""
    resources = at(f"{CONTAINER}.resources", the("Deployment", name=program))
    assert resources["requests"].keys() == {"cpu", "memory"}
    assert resources["limits"].keys() == {"memory"}


BLOCKS_NOBODY: Final = {
    "a rollout keeps both replicas": (
        "Deployment",
        "spec.strategy.rollingUpdate",
        {"maxSurge": 1, "maxUnavailable": 0},
    ),
    "replicas": ("Deployment", "spec.replicas", 2),
    "a node can be drained": ("PodDisruptionBudget", "spec.maxUnavailable", 1),
    "a drain does not wait for pods that never answer": (
        "PodDisruptionBudget",
        "spec.unhealthyPodEvictionPolicy",
        "AlwaysAllow",
    ),
    "no pod is preempted for ours": ("PriorityClass", "preemptionPolicy", "Never"),
    "pods get our class only by name": ("PriorityClass", "globalDefault", None),
    "one node is enough": (
        "Deployment",
        f"{POD}.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        None,
    ),
    "one zone is enough": (
        "Deployment",
        f"{POD}.topologySpreadConstraints.0.whenUnsatisfiable",
        "ScheduleAnyway",
    ),
}


@pytest.mark.parametrize(("kind", "path", "value"), BLOCKS_NOBODY.values(), ids=BLOCKS_NOBODY.keys())
def test_the_install_stands_in_nobodys_way(kind: str, path: str, value: Any) -> None:
    """Neither of a small cluster, nor of a full one, nor a drain of a node."""
    assert at(path, the(kind)) == value


@either
def test_the_pod_has_the_priority_class_of_the_install(program: str) -> None:
    """It must exist where the pod is created: a pod with an unknown class is refused."""
    deployment = the("Deployment", name=program)
    assert at(f"{POD}.priorityClassName", deployment) == the("PriorityClass")["metadata"]["name"]


def ingress(program: str) -> set[tuple[int, str]]:
    """Return the (port, protocol) that the network policies open, from anywhere, on a Deployment's pods."""
    labels = at("spec.template.metadata.labels", the("Deployment", name=program))
    rules = [
        rule
        for policy in installed()
        if policy["kind"] == "NetworkPolicy" and selects(policy["spec"]["podSelector"], labels)
        for rule in policy["spec"].get("ingress", ())
    ]
    assert all(rule.keys() == {"ports"} for rule in rules)
    return {(port["port"], port["protocol"]) for rule in rules for port in rule["ports"]}


@either
def test_the_network_policies_open_what_the_container_listens_on(program: str) -> None:
    """Each of its ports, and no other."""
    listening = at(f"{CONTAINER}.ports", the("Deployment", name=program))
    assert ingress(program) == {(port["containerPort"], "TCP") for port in listening}


def test_a_network_policy_leaves_the_way_to_the_api_server() -> None:
    """Out of all pods: the API server and DNS. The pod of `helm test` also needs the webhook's port."""
    spec = the("NetworkPolicy")["spec"]
    assert spec["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": NAME}}
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    *anywhere, ours = spec["egress"]
    assert [rule.keys() for rule in anywhere] == [{"ports"}, {"ports"}]
    opened = [(port["port"], port["protocol"]) for rule in anywhere for port in rule["ports"]]
    assert opened == [(443, "TCP"), (6443, "TCP"), (53, "UDP"), (53, "TCP")]
    labels = at("spec.template.metadata.labels", the("Deployment"))
    assert ours["to"] == [{"podSelector": {"matchLabels": labels}}]
    assert ours["ports"] == [{"port": at(f"{CONTAINER}.ports.0.containerPort", the("Deployment")), "protocol": "TCP"}]


def test_the_namespace_allows_the_network_of_its_nodes(tmp_path: Path) -> None:
    """The chart has no Namespace; its suites say what the option makes of the Deployment. No other pod changes."""
    before = {identity(item): item for item in installed()}
    after = {identity(item): item for item in kustomize(with_options(tmp_path, HOST_NETWORK))}
    namespace, deployment = ("Namespace", "", NAME), ("Deployment", NAME, NAME)
    assert {key for key in before | after if before.get(key) != after.get(key)} == {namespace, deployment}
    assert after[namespace]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
