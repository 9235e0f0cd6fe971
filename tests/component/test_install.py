"""The install says what the code does, may do no more than the code needs, and can hold up nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import builders
import pytest
from rendering import NAME, TLS, at, selects, the

from webhook import app, cli, options, settings
from webhook.core.objects import LABEL_APP, VIRT_LAUNCHER
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE
from webhook.kube import kinds
from webhook.serving.routes import WEBHOOK_PATH

LONGHORN_NAMESPACE: Final = "longhorn-system"
PODS: Final = Path(__file__).parents[1] / "cases" / "pods"
POD: Final = "spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"
ANTI_AFFINITY: Final = f"{POD}.affinity.podAntiAffinity"
WEBHOOK: Final = "webhooks.0"


def serve_settings() -> settings.ServeSettings:
    """What the Deployment's arguments come to; fails where one is no option of the program."""
    command, *words = at(f"{CONTAINER}.args", the("Deployment"))
    assert command in [known.name for known in cli.COMMANDS if known.options == settings.SERVE]
    fields = {option.flag: option.field for option in settings.SERVE}
    given = dict(word.split("=", 1) for word in words)
    return settings.ServeSettings(
        **options.resolve(settings.SERVE, {fields[flag]: text for flag, text in given.items()}, {})
    )


def ports() -> dict[str, int]:
    """The container's ports by name."""
    return {port["name"]: port["containerPort"] for port in at(f"{CONTAINER}.ports", the("Deployment"))}


def test_the_arguments_are_options_of_the_program() -> None:
    """The program reads them without a complaint, and then reads the live cluster."""
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


def test_a_call_finds_its_way_from_the_api_server_to_the_program() -> None:
    """Webhook to Service to pod to the port that is listened on, at the path that is answered."""
    called = at(f"{WEBHOOK}.clientConfig.service", the("MutatingWebhookConfiguration"))
    assert called == {"name": NAME, "namespace": NAME, "path": WEBHOOK_PATH, "port": 443}
    assert [(port["port"], port["targetPort"]) for port in at("spec.ports", the("Service"))] == [(443, "https")]
    listening = serve_settings()
    assert ports() == {"https": listening.listen.port, "health": listening.health_listen.port}
    assert (listening.listen.host, listening.health_listen.host) == ("", "")


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
    """Name and component: other parts of the product can come to live beside them."""
    labels = at("spec.template.metadata.labels", the("Deployment"))
    assert at(path, the(kind)) == labels == {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "webhook"}


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
)
def test_probes_ask_what_the_health_port_answers(probe: str, path: str) -> None:
    """Only readiness goes where a server is told to stop; liveness is the event loop."""
    assert at(f"{CONTAINER}.{probe}.httpGet", the("Deployment")) == {"path": path, "port": "health"}


def test_a_pod_is_given_the_time_that_its_end_takes() -> None:
    """The drain, the calls in flight, and a margin; without a hook that would need a shell."""
    needed = serve_settings().drain_seconds + app.GRACE_SECONDS
    assert at(f"{POD}.terminationGracePeriodSeconds", the("Deployment")) >= needed + 3
    assert at(f"{CONTAINER}.lifecycle", the("Deployment")) is None


GROUPS: Final = {"/api/v1": "", "/apis/longhorn.io/v1beta2": "longhorn.io"}


def granted(role: Mapping[str, Any], namespace: str) -> set[tuple[str, str, str]]:
    """(namespace, API group, resource) that the role grants; all of its rules only read."""
    for rule in role["rules"]:
        assert rule.keys() == {"apiGroups", "resources", "verbs"}
        assert rule["verbs"] == ["get", "list", "watch"]
    return {
        (namespace, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_the_service_account_may_read_what_the_caches_read_and_nothing_else() -> None:
    """Neither more nor less, to the namespace; and both bindings give it to that account."""
    read = {
        (resource.namespace, GROUPS[resource.prefix], resource.plural)
        for resource in kinds.resources(LONGHORN_NAMESPACE)
    }
    assert granted(the("ClusterRole"), "") | granted(the("Role"), LONGHORN_NAMESPACE) == read
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}
    for binding, role in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        assert the(binding)["subjects"] == [account]
        assert the(binding)["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": NAME}
    assert at(f"{POD}.serviceAccountName", the("Deployment")) == NAME


def test_the_webhook_is_asked_as_gently_as_can_be() -> None:
    """Everything about the call that must never change by accident."""
    (webhook,) = the("MutatingWebhookConfiguration")["webhooks"]
    expected = {
        "name": "virt-launcher.kubevirt-coschedule.io",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "timeoutSeconds": 3,
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
    assert {key: webhook[key] for key in expected} == expected
    assert "caBundle" not in webhook["clientConfig"], "an apply would take away the one that is there"


SENT: Final = {
    "virt-launcher-typical": True,
    "virt-launcher-hotplug-and-ephemeral": True,
    "virt-launcher-migration-target": False,
    "hotplug-attachment": False,
}


def test_only_start_pods_are_sent() -> None:
    """As KubeVirt labels them; a migration's target is kept off by its label."""
    selector = at(f"{WEBHOOK}.objectSelector", the("MutatingWebhookConfiguration"))
    labels = {pod: json.loads((PODS / f"{pod}.json").read_text())["metadata"]["labels"] for pod in SENT}
    assert {pod: selects(selector, labels[pod]) for pod in SENT} == SENT


def test_the_selectors_use_the_names_that_the_rules_use() -> None:
    """The label of a launcher, and the annotation, of which only the presence is judged here."""
    webhook = the("MutatingWebhookConfiguration")["webhooks"][0]
    assert webhook["objectSelector"]["matchLabels"] == {LABEL_APP: VIRT_LAUNCHER}
    assert [condition["expression"] for condition in webhook["matchConditions"]] == [
        f"has(object.metadata.annotations) && '{ANNOTATION_CO_SCHEDULE}' in object.metadata.annotations"
    ]
    assert builders.OPT_IN == ANNOTATION_CO_SCHEDULE


def test_our_own_pods_and_the_control_planes_are_never_sent() -> None:
    """Whatever they are labelled."""
    selector = at(f"{WEBHOOK}.namespaceSelector", the("MutatingWebhookConfiguration"))
    sent = {name: selects(selector, {"kubernetes.io/metadata.name": name}) for name in ("vms", NAME, "kube-system")}
    assert sent == {"vms": True, NAME: False, "kube-system": False}
