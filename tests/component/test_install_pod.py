"""The Deployment's pod: what it may do on its node, what it may take, and that it stands in nobody's way."""

from __future__ import annotations

from typing import Any, Final

import pytest
from rendering import at, the

POD: Final = "spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"

RESTRICTED: Final = {  # the Pod Security Standard "restricted", and what else a pod that only serves can do without
    f"{POD}.securityContext.runAsNonRoot": True,
    f"{POD}.securityContext.seccompProfile": {"type": "RuntimeDefault"},
    f"{POD}.hostNetwork": None,
    f"{POD}.hostPID": None,
    f"{POD}.hostIPC": None,
    f"{POD}.enableServiceLinks": False,
    f"{CONTAINER}.securityContext": {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    },
}


@pytest.mark.parametrize(("path", "value"), RESTRICTED.items(), ids=RESTRICTED.keys())
def test_the_pod_may_do_as_little_as_can_be(path: str, value: Any) -> None:
    """And the namespace admits no other pod."""
    assert at(path, the("Deployment")) == value


def test_the_namespace_enforces_the_restricted_standard() -> None:
    """A pod that would do more is refused by the API server, not only by this test."""
    labels = the("Namespace")["metadata"]["labels"]
    modes = ("enforce", "audit", "warn")
    assert {labels[f"pod-security.kubernetes.io/{mode}"] for mode in modes} == {"restricted"}


def test_the_pod_has_one_container_and_one_volume_which_its_user_can_read() -> None:
    """Files of the Secret are the group's to read and nobody else's; nothing can be written anywhere."""
    pod = at(POD, the("Deployment"))
    assert len(pod["containers"]) == 1
    assert "initContainers" not in pod
    assert [set(volume) for volume in pod["volumes"]] == [{"name", "secret"}]
    assert pod["volumes"][0]["secret"]["defaultMode"] == 0o440
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"] > 0
    assert [mount["readOnly"] for mount in pod["containers"][0]["volumeMounts"]] == [True]


def test_only_the_pod_gets_the_account_s_token() -> None:
    """Another pod of the namespace that names the account does not get it by the way."""
    assert the("ServiceAccount")["automountServiceAccountToken"] is False
    assert at(f"{POD}.automountServiceAccountToken", the("Deployment")) is True


def test_memory_is_bounded_and_the_cpu_is_not_throttled() -> None:
    """A limit for memory, requests for both; a limit for the CPU would be latency of every VM's start."""
    resources = at(f"{CONTAINER}.resources", the("Deployment"))
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
    """Neither a small cluster's, nor a full one's, nor that of whoever drains a node."""
    assert at(path, the(kind)) == value


def test_the_pod_has_the_priority_class_of_the_install() -> None:
    """It must exist where the pod is created: a pod with an unknown class is refused."""
    assert at(f"{POD}.priorityClassName", the("Deployment")) == the("PriorityClass")["metadata"]["name"]


def test_the_network_policy_opens_the_two_ports_and_the_way_to_the_api_server() -> None:
    """In: what the container listens on. Out: the API server and DNS."""
    spec = the("NetworkPolicy")["spec"]
    listening = [port["containerPort"] for port in at(f"{CONTAINER}.ports", the("Deployment"))]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"ports": [{"port": port, "protocol": "TCP"} for port in listening]}]
    assert [rule.keys() for rule in spec["egress"]] == [{"ports"}, {"ports"}]
    opened = [(port["port"], port["protocol"]) for rule in spec["egress"] for port in rule["ports"]]
    assert opened == [(443, "TCP"), (6443, "TCP"), (53, "UDP"), (53, "TCP")]
