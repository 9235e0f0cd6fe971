"""Whatever names and namespaces our accounts get, policies confine what they write: a stolen token can do no more.

Here each account has every right, so that only a policy can refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from support.control_plane.chart import render, switch
from support.control_plane.control_plane import ControlPlane
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.kubevirt_kinds import with_any_fields
from support.control_plane.rendering import EVENTS, NAME, REUNITE, kustomize, with_options
from support.scenarios.admitting import refused, until

from webhook.core.api.migration import LABEL_REUNITE, migration_object

KINDS: Final = ("ServiceAccount", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
OTHERS: Final = "vms"  # a namespace
KUSTOMIZED: Final = {
    "as it is": "",
    "a prefix": "namePrefix: team-a-\n",
    "a suffix": "nameSuffix: -blue\n",
    "another namespace": "namespace: elsewhere\n",
    "all of them": "namePrefix: team-a-\nnameSuffix: -blue\nnamespace: elsewhere\n",
}
ACCOUNTS: Final = ("webhook", "certificates.controller", "reunite")
BY_HELM: Final = {
    "the chart": [],
    "the chart in another namespace": ["--set=namespaceOverride=elsewhere"],
    "other names of the chart": ["--set=fullnameOverride=other"],
    "accounts of one's own": [f"--set={each}.serviceAccount.name=own-{i}" for i, each in enumerate(ACCOUNTS)],
}


def event(**fields: Any) -> Object:
    """An Event as the program writes it, with other fields."""
    about = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "db01", "namespace": OTHERS}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "db01.1", "namespace": OTHERS},
        "involvedObject": about,
        "reason": "CoScheduled",
        "message": "x",
        "type": "Normal",
        "source": {"component": NAME},
        "reportingComponent": NAME,
        "reportingInstance": "x",
        **fields,
    }


def migration(**metadata: Any) -> Object:
    """A migration as `reunite` creates it, as other webhooks change it."""
    made = migration_object(OTHERS, "db01", "node-a", name="db01-reunite-1")
    for key, value in metadata.items():
        made["metadata"][key] = {**made["metadata"].get(key, {}), **value}
    return made


SECRET: Final = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": OTHERS}}
CONFIGURATION: Final = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "of-others"},
}
NODE: Final = {"apiVersion": "v1", "kind": "Node", "name": "control-plane"}
OWNER: Final = {**NODE, "uid": "x"}
META: Final = event()["metadata"]
WRONG_EVENTS: Final = {
    "about a node": event(involvedObject={**NODE, "namespace": OTHERS}),
    "as the kubelet": event(source={"component": "kubelet"}),
    "on a node": event(source={"component": NAME, "host": "control-plane"}),
    "reported by the kubelet": event(reportingComponent="kubelet"),
    "with a finalizer": event(metadata={**META, "finalizers": ["example.com/x"]}),
    "with an owner": event(metadata={**META, "ownerReferences": [OWNER]}),
}
ONLY_VM, ONLY_LABEL = "only migrations with vmiName", "only migrations with the label"
ONLY_PLAIN: Final = "only migrations without ownerReferences"
OF_KUBEVIRT: Final = {"kubevirt.io/func-test-migration-target-image-override": "x"}
WRONG_MIGRATIONS: Final[dict[str, tuple[Object, str]]] = {
    "to another cluster": ({"spec": {"sendTo": {"connectURL": "x", "migrationID": "x"}}}, ONLY_VM),
    "as a target": ({"spec": {"receive": {"migrationID": "x"}}}, ONLY_VM),
    "with a priority": ({"spec": {"priority": "system-critical"}}, ONLY_VM),
    "to any node": ({"spec": {"addedNodeSelector": None}}, ONLY_VM),
    "by another label of the node": ({"spec": {"addedNodeSelector": {"disk": "ssd"}}}, ONLY_VM),
    "with another image": ({"metadata": {"annotations": OF_KUBEVIRT}}, "only migrations with one annotation"),
    "with an owner": ({"metadata": {"ownerReferences": [OWNER]}}, ONLY_PLAIN),
    "with another finalizer": ({"metadata": {"finalizers": ["example.invalid/x"]}}, ONLY_PLAIN),
    "without our label": ({"metadata": {"labels": {LABEL_REUNITE: None}}}, ONLY_LABEL),
    "with a label of KubeVirt's": ({"metadata": {"labels": {"kubevirt.io/nodeName": "x"}}}, ONLY_LABEL),
    "with a label of a part of KubeVirt's": ({"metadata": {"labels": {"vm.kubevirt.io/name": "x"}}}, ONLY_LABEL),
}
"""What is added to a migration that the account may create, and the message of the policy."""


def merged(one: Object, change: Object) -> Object:
    """A JSON merge patch."""
    found = dict(one)
    for key, value in change.items():
        found[key] = merged(found.get(key) or {}, value) if isinstance(value, dict) else value
    return {key: value for key, value in found.items() if value is not None}


OF_A_TOKEN: Final = {"kubernetes.io/service-account.name": "default"}
WRONG_SECRETS: Final = {
    "a token": {
        **SECRET,
        "type": "kubernetes.io/service-account-token",
        "metadata": {**SECRET["metadata"], "annotations": OF_A_TOKEN},
    }
}


class Confined(NamedTuple):
    """The accounts of an install, each with every right, as the API server sees them."""

    webhook: Api
    certs: Api
    reunite: Api


def in_force(account: Confined) -> list[bool]:
    """Whether each of the policies refuses what it should; the API server only tries it."""
    another_image = merged(migration(), WRONG_MIGRATIONS["with another image"][0])
    tried = (
        (account.webhook, WRONG_EVENTS["about a node"]),
        (account.reunite, WRONG_EVENTS["about a node"]),
        (account.reunite, another_image),
        (account.certs, WRONG_SECRETS["a token"]),
    )
    said = [*(refused(api, wrong) for api, wrong in tried), relabelled(account.certs)]
    return ["denied request" in each for each in said]


def relabelled(api: Api) -> str:
    """What the API server says against another label of a webhook configuration, which it only tries."""
    try:
        api.patch(CONFIGURATION, {"metadata": {"labels": {"changed": "true"}}}, dryRun="All")
    except ApiError as error:
        return error.message
    return ""


def rendered(way: str, directory: Path) -> list[Mapping[str, Any]]:
    """The accounts and the policies of an install."""
    if way in BY_HELM:
        return [item for item in render(*map(switch, (EVENTS, REUNITE)), *BY_HELM[way]) if item["kind"] in KINDS]
    with_options(directory, EVENTS, REUNITE)
    (directory / "kustomization.yaml").write_text(f"resources: [manifests]\n{KUSTOMIZED[way]}", encoding="utf-8")
    return [item for item in kustomize(directory) if item["kind"] in KINDS]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of one's own, with migrations and the namespaces that are used."""
    with ControlPlane(tmp_path_factory.mktemp("own"), scheduler=False) as own:
        own.install([with_any_fields("VirtualMachineInstanceMigration", "kubevirt.io", "v1")])
        for name in (NAME, "elsewhere", OTHERS):
            own.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        own.api.create({**CONFIGURATION, "webhooks": []})
        yield own


@pytest.fixture(scope="module", params=[*KUSTOMIZED, *BY_HELM])
def confined(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Confined]:
    """The accounts of an install that was made in this way; afterwards nothing of it is left."""
    objects = rendered(request.param, tmp_path_factory.mktemp("install"))
    accounts = [item["metadata"] for item in objects if item["kind"] == "ServiceAccount"]
    names = {each["name"]: each["namespace"] for each in accounts}
    certs, reunite = (
        next(name for name in names if sign in name or name == f"own-{number}")
        for sign, number in (("-certs", 1), ("-reunite", 2))
    )
    (webhook,) = names.keys() - {certs, reunite}
    ours = (webhook, certs, reunite)
    rights = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": names[name]} for name in ours],
    }
    made = [*map(dict, objects), rights]
    plane.install(made)
    found = Confined(*(plane.as_user(plane.service_account(names[name], name)) for name in ours))
    until(lambda: all(in_force(found)), "the policies to be in force")
    yield found
    for each in made:
        if each["kind"] == "ValidatingAdmissionPolicyBinding":
            plane.api.delete(each)
    # The rules match the accounts of every install: what the API server still holds would speak for the next one.
    until(lambda: not any(in_force(found)), "the policies to be gone")
    for each in made:
        plane.api.delete(each, missing_ok=True)


def test_an_event_is_our_own_and_about_a_vm(confined: Confined, plane: ControlPlane) -> None:
    """Of both accounts that may write some; the other accounts of the cluster may write any."""
    for api in (confined.webhook, confined.reunite):
        assert refused(api, event()) == ""
        assert [which for which, each in WRONG_EVENTS.items() if "denied request" not in refused(api, each)] == []
    assert [refused(plane.api, each) for each in WRONG_EVENTS.values()] == [""] * len(WRONG_EVENTS)


def test_the_account_may_create_only_what_the_program_creates(confined: Confined, plane: ControlPlane) -> None:
    """What another webhook, or KubeVirt's own, adds to every object is no reason to refuse one. An admin may all."""
    marked = {"policies.kyverno.io/last-applied-patches": "x", "team": "storage", "notkubevirt.io/x": "x"}
    of_kubevirt = migration(labels={"kubevirt.io/vmi-name": "db01"})
    of_kubevirt["metadata"]["finalizers"] = ["kubevirt.io/migrationJobFinalize"]
    for taken in (migration(), migration(labels=marked, annotations=marked), of_kubevirt):
        assert refused(confined.reunite, taken) == ""
    for which, (change, reason) in WRONG_MIGRATIONS.items():
        assert reason in refused(confined.reunite, merged(of_kubevirt, change)), which
        assert refused(plane.api, merged(of_kubevirt, change)) == "", which


def test_the_certificate_controller_writes_certificates(confined: Confined, plane: ControlPlane) -> None:
    """Neither a token of another account, nor an entry of a webhook configuration, whatever the names are."""
    assert (
        refused(confined.certs, {**SECRET, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}}) == ""
    )
    assert refused(plane.api, WRONG_SECRETS["a token"]) == ""
    assert "may write only Secrets" in refused(confined.certs, WRONG_SECRETS["a token"])
    assert "may not change labels, annotations" in relabelled(confined.certs)


def test_no_account_is_confined_by_the_rules_of_another(confined: Confined) -> None:
    """The name of the webhook's account is in the names of the other two."""
    assert refused(confined.certs, WRONG_EVENTS["about a node"]) == ""
    for api in (confined.webhook, confined.reunite):
        assert refused(api, WRONG_SECRETS["a token"]) == ""
    assert refused(confined.webhook, merged(migration(), WRONG_MIGRATIONS["with another image"][0])) == ""
