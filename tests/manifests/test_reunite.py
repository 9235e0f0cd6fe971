"""The component of `reunite`: an account and a CronJob of its own, with the rights that a run uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from support.control_plane.rendering import (
    NAME,
    at,
    identity,
    installed,
    the,
)
from support.drivers.command_lines import values

from webhook import __version__, cli
from webhook.core.api.migration import ANNOTATION_UNSCHEDULABLE_SECONDS, LABEL_REUNITE
from webhook.objects.kinds import MIGRATION
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import parts

PROGRAM: Final = f"{NAME}-reunite"
LONGHORN_NAMESPACE: Final = "longhorn-system"
POLICY: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
POD: Final = "spec.jobTemplate.spec.template.spec"
CONTAINER: Final = f"{POD}.containers.0"
ADDED: Final = {
    ("ServiceAccount", NAME, PROGRAM),
    ("ClusterRole", "", PROGRAM),
    ("ClusterRoleBinding", "", PROGRAM),
    ("ClusterRole", "", f"{NAME}-page"),
    ("ClusterRoleBinding", "", f"{NAME}-page"),
    ("Role", LONGHORN_NAMESPACE, PROGRAM),
    ("RoleBinding", LONGHORN_NAMESPACE, PROGRAM),
    ("CronJob", NAME, PROGRAM),
    *((kind, "", PROGRAM + of) for kind in POLICY for of in ("", "-events")),
}
SAME_AS_THE_WEBHOOK_S: Final = (
    "securityContext",
    "automountServiceAccountToken",
    "enableServiceLinks",
    "priorityClassName",
    "nodeSelector",
    "containers.0.securityContext",
    "containers.0.image",
)


@pytest.fixture(scope="module")
def rendered() -> list[Mapping[str, Any]]:
    """The default install with the option."""
    return [*installed(), *installed("reunite.yaml")]


def settings(cron_job: Mapping[str, Any]) -> ReuniteSettings:
    """What the arguments of the CronJob come to; fails where one is no option of the program."""
    command, *words = at(f"{CONTAINER}.args", cron_job)
    assert command == "reunite"
    return ReuniteSettings(**values(cli.COMMANDS, command, *words))


def test_the_option_adds_its_own_objects() -> None:
    """The webhook keeps its Deployment and its roles. A role of its own lets it list Events."""
    added = installed("reunite.yaml")
    assert set(map(identity, added)) == ADDED
    labels = [each["metadata"]["labels"] for each in added]
    assert {each["app.kubernetes.io/version"] for each in labels} == {__version__}
    assert {each["app.kubernetes.io/component"] for each in labels} == {"reunite"}


def test_a_new_install_only_says_what_it_would_do(rendered: list[Mapping[str, Any]]) -> None:
    """The user switches the writes on, by one argument. Which VMs are opted in no other pod can say."""
    found = settings(the("CronJob", rendered, PROGRAM))
    assert found == ReuniteSettings(**values(cli.COMMANDS, "reunite") | {"all_namespaces": True, "opt_in_all": "off"})
    assert found.dry_run == "client"
    assert found.longhorn_namespace == LONGHORN_NAMESPACE


def test_one_run_at_a_time_and_none_for_long(rendered: list[Mapping[str, Any]]) -> None:
    """A run that hangs ends before the next one, and one that fails is not tried again: the next one looks again.

    The pod of a run on a lost node stays Terminating, and so its Job never ends. Only `Replace` starts a run beside it.
    """
    cron_job = the("CronJob", rendered, PROGRAM)
    job = cron_job["spec"]["jobTemplate"]["spec"]
    assert (cron_job["spec"]["schedule"], cron_job["spec"]["concurrencyPolicy"]) == ("*/10 * * * *", "Replace")
    assert (job["activeDeadlineSeconds"], job["backoffLimit"]) == (300, 0)
    assert at(f"{POD}.restartPolicy", cron_job) == "Never"


@pytest.mark.parametrize("path", SAME_AS_THE_WEBHOOK_S)
def test_the_pod_is_confined_as_the_webhook_s(path: str, rendered: list[Mapping[str, Any]]) -> None:
    """tests/manifests/test_install_pod.py says what these values are."""
    expected = at(f"spec.template.spec.{path}", the("Deployment", rendered))
    assert expected is not None
    assert at(f"{POD}.{path}", the("CronJob", rendered, PROGRAM)) == expected


def test_the_pod_mounts_nothing_and_listens_nowhere(rendered: list[Mapping[str, Any]]) -> None:
    """It has no volume, no port and no probe. Its labels are not those that Service and PodDisruptionBudget select."""
    cron_job = the("CronJob", rendered, PROGRAM)
    container = at(CONTAINER, cron_job)
    assert at(f"{POD}.volumes", cron_job) is None
    assert container.keys().isdisjoint({"ports", "startupProbe", "livenessProbe", "readinessProbe", "volumeMounts"})
    labels = at("spec.jobTemplate.spec.template.metadata.labels", cron_job)
    assert labels == {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "reunite"}
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


def test_the_account_may_do_what_a_run_does_and_nothing_else(rendered: list[Mapping[str, Any]]) -> None:
    """It lists what it reads, and creates migrations and Events."""
    needed = {(part.kind.group, part.kind.plural, "list") for part in parts()}
    needed |= {(MIGRATION.group, MIGRATION.plural, "create"), ("", "events", "create")}
    everywhere, longhorn = (granted(the(kind, rendered, PROGRAM)) for kind in ("ClusterRole", "Role"))
    # Longhorn's own pods are among all pods.
    assert set(longhorn) == {each for each in needed if each[0] == "longhorn.io"}
    assert set(everywhere) == needed - set(longhorn)
    assert len(everywhere) + len(longhorn) == len(needed)


def test_the_roles_are_bound_to_the_account_of_the_pod(rendered: list[Mapping[str, Any]]) -> None:
    """No other subject has them, and no other pod gets the token by itself."""
    account = {"kind": "ServiceAccount", "name": PROGRAM, "namespace": NAME}
    for kind in ("ClusterRole", "Role"):
        binding = the(f"{kind}Binding", rendered, PROGRAM)
        assert binding["subjects"] == [account]
        assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": PROGRAM}
    assert at(f"{POD}.serviceAccountName", the("CronJob", rendered, PROGRAM)) == PROGRAM
    assert the("ServiceAccount", rendered, PROGRAM)["automountServiceAccountToken"] is False


def test_the_policy_names_what_the_code_names(rendered: list[Mapping[str, Any]]) -> None:
    """The account that has the rights, in any namespace; the label and the annotation of its migrations."""
    policy = the("ValidatingAdmissionPolicy", rendered, PROGRAM)["spec"]
    (condition,) = policy["matchConditions"]
    assert f":[^:]*{PROGRAM}[^:]*$'" in condition["expression"]
    _, labels, annotations, _ = (each["expression"] for each in policy["validations"])
    assert f"?labels[?'{LABEL_REUNITE}'].hasValue()" in labels
    assert f"key == '{ANNOTATION_UNSCHEDULABLE_SECONDS}'" in annotations
    assert policy["failurePolicy"] == "Fail"
    binding = the("ValidatingAdmissionPolicyBinding", rendered, PROGRAM)["spec"]
    assert binding == {"policyName": PROGRAM, "validationActions": ["Deny"]}
