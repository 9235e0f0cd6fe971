"""The component of `reunite`: an account and a Deployment of its own, with the rights that the program uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import (
    INSTALLS,
    NAME,
    REUNITE,
    Object,
    at,
    identity,
    installed,
    the,
    with_component,
)
from support.drivers.command_lines import values

from webhook import __version__, cli
from webhook.core.reunite.migration import LABEL_REUNITE
from webhook.kube.informer.resource import Resource
from webhook.reunite.kinds import MIGRATIONS, admission_resources
from webhook.reunite.settings import ReuniteSettings

PROGRAM: Final = f"{NAME}-reunite"
LONGHORN_NAMESPACE: Final = "longhorn-system"
POD: Final = "spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"
ADDED: Final = {
    ("ServiceAccount", NAME, PROGRAM),
    ("ClusterRole", "", PROGRAM),
    ("ClusterRoleBinding", "", PROGRAM),
    ("ClusterRole", "", f"{NAME}-page"),
    ("ClusterRoleBinding", "", f"{NAME}-page"),
    ("Role", LONGHORN_NAMESPACE, PROGRAM),
    ("RoleBinding", LONGHORN_NAMESPACE, PROGRAM),
    ("Deployment", NAME, PROGRAM),
    ("ValidatingAdmissionPolicy", "", PROGRAM),
    ("ValidatingAdmissionPolicyBinding", "", PROGRAM),
}
NOT_CACHED: Final = {  # what the program reads by single requests, and what it writes
    ("kubevirt.io", "virtualmachineinstances", "get"),
    ("kubevirt.io", "virtualmachines", "get"),
    ("kubevirt.io", "kubevirts", "list"),
    ("kubevirt.io", "virtualmachineinstancemigrations", "create"),
    ("kubevirt.io", "virtualmachineinstancemigrations", "delete"),
    ("", "persistentvolumeclaims", "get"),
    ("", "persistentvolumes", "get"),
    ("", "nodes", "get"),
    ("", "pods", "get"),
    ("", "events", "create"),
    ("longhorn.io", "sharemanagers", "get"),
    ("longhorn.io", "nodes", "get"),
    ("longhorn.io", "volumeattachments", "get"),
}
SAME_AS_THE_WEBHOOK_S: Final = (
    f"{POD}.securityContext",
    f"{POD}.automountServiceAccountToken",
    f"{POD}.enableServiceLinks",
    f"{POD}.priorityClassName",
    f"{POD}.nodeSelector",
    f"{CONTAINER}.securityContext",
    f"{CONTAINER}.image",
    f"{CONTAINER}.resources.limits",
    f"{CONTAINER}.startupProbe",
)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """The default install with the component."""
    return kustomize(with_component(REUNITE, tmp_path_factory.mktemp("reunite")))


def settings(deployment: Mapping[str, Any]) -> ReuniteSettings:
    """What the arguments of the Deployment come to; fails where one is no option of the program."""
    command, *words = at(f"{CONTAINER}.args", deployment)
    assert command == "reunite"
    return ReuniteSettings(**values(cli.COMMANDS, command, *words))


@pytest.mark.parametrize("install", INSTALLS)
def test_the_component_adds_its_own_objects_and_changes_no_other(install: str, tmp_path: Path) -> None:
    """The webhook keeps its Deployment and its roles to the letter. A role of its own lets it list Events."""
    before = {identity(item): item for item in installed(install)}
    after = {identity(item): item for item in kustomize(with_component(REUNITE, tmp_path, install))}
    assert after.keys() - before.keys() == ADDED
    assert {key: after[key] for key in before} == before
    labels = [after[key]["metadata"]["labels"] for key in ADDED]
    assert {each["app.kubernetes.io/version"] for each in labels} == {__version__}
    assert {each["app.kubernetes.io/component"] for each in labels} == {"reunite"}


def test_a_new_install_only_says_what_it_would_do(rendered: list[Object]) -> None:
    """The user switches the writes on, by one argument; all other values are the defaults of the program."""
    found = settings(the("Deployment", rendered, PROGRAM))
    assert found == ReuniteSettings(**values(cli.COMMANDS, "reunite"))
    assert found.dry_run
    assert not found.once
    assert found.longhorn_namespace == LONGHORN_NAMESPACE


def test_one_process_runs_at_a_time(rendered: list[Object]) -> None:
    """An old pod ends before a new one starts."""
    deployment = the("Deployment", rendered, PROGRAM)
    assert at("spec.replicas", deployment) == 1
    assert at("spec.strategy", deployment) == {"type": "Recreate"}


@pytest.mark.parametrize("path", SAME_AS_THE_WEBHOOK_S)
def test_the_pod_is_confined_as_the_webhook_s(path: str, rendered: list[Object]) -> None:
    """tests/manifests/test_install_pod.py says what these values are."""
    expected = at(path, the("Deployment", rendered))
    assert expected is not None
    assert at(path, the("Deployment", rendered, PROGRAM)) == expected


def test_the_pod_mounts_nothing_and_is_probed_where_the_program_listens(rendered: list[Object]) -> None:
    """Its one port is that of health and metrics, which the network policy of the install opens."""
    deployment = the("Deployment", rendered, PROGRAM)
    assert at(f"{POD}.volumes", deployment) is None
    ports = at(f"{CONTAINER}.ports", deployment)
    assert ports == [{"name": "health", "containerPort": settings(deployment).health_listen.port}]
    assert at("spec.ingress.0.ports.0.port", the("NetworkPolicy", rendered)) == ports[0]["containerPort"]
    probes = {probe: at(f"{CONTAINER}.{probe}.httpGet", deployment) for probe in ("livenessProbe", "readinessProbe")}
    assert probes == {
        "livenessProbe": {"path": "/healthz", "port": "health"},
        "readinessProbe": {"path": "/readyz", "port": "health"},
    }


def test_the_selector_means_the_pods_of_this_deployment_alone(rendered: list[Object]) -> None:
    """The Service and the PodDisruptionBudget of the webhook select another component."""
    deployment = the("Deployment", rendered, PROGRAM)
    labels = at("spec.template.metadata.labels", deployment)
    assert labels == {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "reunite"}
    assert at("spec.selector.matchLabels", deployment) == labels
    assert at("spec.selector", the("Service", rendered)) != labels


def granted(role: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(API group, resource, verb) that a role grants, for each name."""
    assert all(rule.keys() == {"apiGroups", "resources", "verbs"} for rule in role["rules"])
    return [
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def cached(resource: Resource) -> set[tuple[str, str, str]]:
    """What a cache of this resource needs."""
    group = resource.prefix.split("/")[2] if resource.prefix.startswith("/apis/") else ""
    return {(group, resource.plural, verb) for verb in ("list", "watch") if resource.watched}


def test_the_account_may_do_what_the_program_does_and_nothing_else(rendered: list[Object]) -> None:
    """It reads its caches and single objects, and writes migrations and Events."""
    watched = (*admission_resources(LONGHORN_NAMESPACE, NAME), MIGRATIONS)
    needed = set().union(*map(cached, watched)) | NOT_CACHED
    everywhere, longhorn = (granted(the(kind, rendered, PROGRAM)) for kind in ("ClusterRole", "Role"))
    assert set(longhorn) == {each for each in needed if each[0] == "longhorn.io"}
    assert set(everywhere) == needed - set(longhorn)
    assert len(everywhere) + len(longhorn) == len(needed)


def test_the_roles_are_bound_to_the_account_of_the_pod(rendered: list[Object]) -> None:
    """No other subject has them, and no other pod gets the token by itself."""
    account = {"kind": "ServiceAccount", "name": PROGRAM, "namespace": NAME}
    for kind in ("ClusterRole", "Role"):
        binding = the(f"{kind}Binding", rendered, PROGRAM)
        assert binding["subjects"] == [account]
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": PROGRAM}
    assert at(f"{POD}.serviceAccountName", the("Deployment", rendered, PROGRAM)) == PROGRAM
    assert the("ServiceAccount", rendered, PROGRAM)["automountServiceAccountToken"] is False


def test_the_policy_names_what_the_code_names(rendered: list[Object]) -> None:
    """The account that has the rights, and the label of its migrations."""
    policy = the("ValidatingAdmissionPolicy", rendered, PROGRAM)["spec"]
    (condition,) = policy["matchConditions"]
    assert f"'system:serviceaccount:{NAME}:{PROGRAM}'" in condition["expression"]
    (validation,) = policy["validations"]
    assert f"?labels[?'{LABEL_REUNITE}'].hasValue()" in validation["expression"]
    assert policy["failurePolicy"] == "Fail"
    binding = the("ValidatingAdmissionPolicyBinding", rendered, PROGRAM)["spec"]
    assert binding == {"policyName": PROGRAM, "validationActions": ["Deny"]}


@pytest.mark.parametrize("minor", ["1.30", "1.37"])
def test_every_object_is_valid_by_the_schemas_of_kubernetes(minor: str, rendered: list[Object]) -> None:
    """Of the oldest and the newest version; an unknown field is an error."""
    for item in rendered:
        if identity(item) in ADDED:
            assert kubernetes_validate.validate(item, minor, strict=True) == minor
