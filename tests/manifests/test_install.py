"""The install matches the code, grants only what the code needs, and can block nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.rendering import AUTHORITY, CERTS, INSTALLS, NAME, TLS, at, identity, installed, the
from support.drivers.command_lines import values

from webhook import cli
from webhook.app.run import SHUTDOWN_GRACE_SECONDS
from webhook.app.settings import ServeSettings
from webhook.core.admit import Entry
from webhook.core.placement.replica_share import REPLICA_LABELS
from webhook.core.view import Kind
from webhook.kube import kinds
from webhook.kube.informer.store import Resource

LONGHORN_NAMESPACE: Final = "longhorn-system"
POD: Final = "spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"
ANTI_AFFINITY: Final = f"{POD}.affinity.podAntiAffinity"
LAUNCHERS, SHARE_MANAGERS = "webhooks.0", "webhooks.1"
WEBHOOKS: Final = {Entry.VIRT_LAUNCHER: LAUNCHERS, Entry.SHARE_MANAGER: SHARE_MANAGERS}


def serve_settings() -> ServeSettings:
    """What the Deployment's arguments come to; fails where one is no option of the program."""
    return ServeSettings(**values(cli.COMMANDS, *at(f"{CONTAINER}.args", the("Deployment"))))


def ports() -> dict[str, int]:
    """Return the container's ports by name."""
    return {port["name"]: port["containerPort"] for port in at(f"{CONTAINER}.ports", the("Deployment"))}


def test_the_arguments_are_options_of_the_program() -> None:
    """The program accepts them, and reads the live cluster."""
    found = serve_settings()
    mount, volume = at(f"{CONTAINER}.volumeMounts.0", the("Deployment")), at(f"{POD}.volumes.0", the("Deployment"))
    assert found.manifests is None
    assert found.longhorn_namespace == LONGHORN_NAMESPACE
    assert found.tls_server_name == f"{NAME}.{NAME}.svc"  # what API servers ask for
    assert (found.client_ca_file, found.client_name) == (None, None)
    assert {found.tls_cert_file, found.tls_private_key_file} == {
        Path(mount["mountPath"]) / "tls.crt",
        Path(mount["mountPath"]) / "tls.key",
    }
    assert (volume["name"], volume["secret"]["secretName"]) == (mount["name"], TLS)
    assert volume["secret"]["items"] == [{"key": key, "path": key} for key in ("tls.crt", "tls.key")]
    assert not {"env", "envFrom", "command"} & at(CONTAINER, the("Deployment")).keys()  # all is said in the arguments


@pytest.mark.parametrize(("entry", "webhook"), WEBHOOKS.items(), ids=lambda each: getattr(each, "title", ""))
def test_a_call_finds_its_way_from_the_api_server_to_the_program(entry: Entry, webhook: str) -> None:
    """Webhook to Service to pod to the listening port, at the path that is answered."""
    called = at(f"{webhook}.clientConfig.service", the("MutatingWebhookConfiguration"))
    assert called == {"name": NAME, "namespace": NAME, "path": entry.path, "port": 443}
    assert [(port["port"], port["targetPort"]) for port in at("spec.ports", the("Service"))] == [(443, "https")]
    listening = serve_settings()
    assert ports() == {"https": listening.listen.port, "health": listening.health_listen.port}
    assert (listening.listen.host, listening.health_listen.host) == ("", "")


def test_an_api_server_asks_any_replica() -> None:
    """With session affinity a lost node would get all calls until its pods are known not to be ready."""
    assert "sessionAffinity" not in the("Service")["spec"]


def test_replicas_are_known_by_what_the_service_selects() -> None:
    """Only the API server can decide who calls."""
    assert at("spec.selector", the("Service")) == REPLICA_LABELS


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Service", "spec.selector"),
        ("PodDisruptionBudget", "spec.selector.matchLabels"),
        ("Deployment", "spec.selector.matchLabels"),
        ("Deployment", f"{POD}.topologySpreadConstraints.0.labelSelector.matchLabels"),
        (
            "Deployment",
            f"{ANTI_AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution.0.podAffinityTerm.labelSelector.matchLabels",
        ),
    ],
)
def test_every_selector_means_the_pods_of_the_deployment(kind: str, path: str) -> None:
    """Name and component, so that other parts can be added later."""
    labels = at("spec.template.metadata.labels", the("Deployment"))
    assert at(path, the(kind)) == labels == {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "webhook"}


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
)
def test_probes_ask_what_the_health_port_answers(probe: str, path: str) -> None:
    """A server that stops fails only readiness; liveness is the event loop."""
    assert at(f"{CONTAINER}.{probe}.httpGet", the("Deployment")) == {"path": path, "port": "health"}


def test_a_pod_is_given_the_time_that_its_end_takes() -> None:
    """The drain, the calls in flight, and a margin, without a hook, which would need a shell."""
    needed = serve_settings().drain_seconds + SHUTDOWN_GRACE_SECONDS
    assert at(f"{POD}.terminationGracePeriodSeconds", the("Deployment")) >= needed + 3
    assert at(f"{CONTAINER}.lifecycle", the("Deployment")) is None


GROUPS: Final = {
    "/api/v1": "",
    "/apis/storage.k8s.io/v1": "storage.k8s.io",
    "/apis/longhorn.io/v1beta2": "longhorn.io",
    "/apis/kubevirt.io/v1": "kubevirt.io",
}
CACHED_ALONE: Final = (Kind.VIRT_LAUNCHER_POD, Kind.CSI_NODE, Kind.CLUSTER_AUTOSCALER_STATUS)
ONLY: Final = "metadata.name="
ROLES: Final = ("ClusterRole", "Role")


def granted(account: str) -> list[tuple[str, str, str, str, str]]:
    """(namespace, API group, resource, name or empty, verb) that the roles of the account's name grant it."""
    roles = [item for item in installed() if item["kind"] in ROLES and item["metadata"]["name"] == account]
    assert all(rule.keys() - {"resourceNames"} == {"apiGroups", "resources", "verbs"} for rule in _rules(roles))
    return [
        (role["metadata"].get("namespace", ""), group, resource, name, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ("",))
        for verb in rule["verbs"]
    ]


def _rules(roles: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for role in roles:
        yield from role["rules"]


def only_name(resource: Resource) -> str:
    """The only object that the program reads of this kind; empty if it reads all."""
    return resource.fields.removeprefix(ONLY) if resource.fields.startswith(ONLY) else ""


def verbs(resource: Resource) -> set[str]:
    """As the program reads it: list and watch for caches, get for single objects."""
    cached = {"list", "watch"} if resource.watched else set()
    return cached | ({"get"} if resource.kind not in CACHED_ALONE else set())


def test_the_service_account_may_read_what_the_program_reads_and_nothing_else() -> None:
    """Exactly, to the namespace and the verb."""
    read = {
        (resource.namespace, GROUPS[resource.prefix], resource.plural, only_name(resource), verb)
        for resource in kinds.resources(LONGHORN_NAMESPACE)
        for verb in verbs(resource)
    }
    assert sorted(granted(NAME)) == sorted(read)


def test_the_controller_may_keep_its_three_objects_and_nothing_else() -> None:
    """By name: its two Secrets, and the configuration of the webhook."""
    group, configurations = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"
    configuration = {("", group, configurations, NAME, verb) for verb in ("get", "patch")}
    secrets = {(NAME, "", "secrets", name, verb) for name in (TLS, AUTHORITY) for verb in ("get", "patch", "create")}
    assert sorted(granted(CERTS)) == sorted(configuration | secrets)


@pytest.mark.parametrize("install", INSTALLS)
def test_each_role_is_bound_to_the_account_of_its_name(install: str) -> None:
    """Nobody else has one, and no account has another one."""
    objects = {identity(item): item for item in installed(install)}
    roles = [key for key in objects if key[0] in ROLES]
    assert {name for *_, name in roles} <= {NAME, CERTS}
    assert {key for key in objects if key[0].endswith("RoleBinding")} == {
        (f"{kind}Binding", *of) for kind, *of in roles
    }
    for kind, namespace, name in roles:
        binding = objects[f"{kind}Binding", namespace, name]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": NAME}]
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        assert at(f"{POD}.serviceAccountName", objects["Deployment", NAME, name]) == name


@pytest.mark.parametrize(
    ("webhook", "name", "seconds"),
    [
        pytest.param(LAUNCHERS, "virt-launcher.kubevirt-coschedule.io", 3, id="virt-launcher"),
        pytest.param(SHARE_MANAGERS, "share-manager.kubevirt-coschedule.io", 2, id="share-manager"),
    ],
)
def test_the_webhook_is_asked_as_gently_as_can_be(webhook: str, name: str, seconds: int) -> None:
    """All parts of the call that must never change by accident."""
    expected = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "timeoutSeconds": seconds,
        "sideEffects": "None",
        "reinvocationPolicy": "IfNeeded",
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
                "scope": "Namespaced",
            }
        ],
    }
    found = at(webhook, the("MutatingWebhookConfiguration"))
    assert {key: found[key] for key in expected} == expected
    assert "caBundle" not in found["clientConfig"], "an apply would take away the one that is there"
