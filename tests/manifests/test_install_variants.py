"""The installs and the components: what each is made of, and that they differ in what they are for and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.kustomizing import kustomize
from support.control_plane.rendering import (
    AUTHORITY,
    CERT_MANAGER,
    CERTS,
    CLIENT_VERIFICATION,
    DEFAULT,
    INSTALLS,
    NAME,
    TLS,
    at,
    copied,
    identity,
    installed,
    the,
    with_options,
)
from support.drivers.command_lines import values

from certs import cli as certs_cli
from certs.settings import ControllerSettings
from webhook import __version__, cli

LONGHORN_NAMESPACE: Final = "longhorn-system"
CONTAINER: Final = "spec.template.spec.containers.0"
POLICY: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
KEPT_BY_US: Final = {
    *((kind, NAME, CERTS) for kind in ("ServiceAccount", "Role", "RoleBinding")),
    *((kind, "", CERTS) for kind in ("ClusterRole", "ClusterRoleBinding")),
    *((kind, "", CERTS + of) for kind in POLICY for of in ("", "-secrets")),
    ("Deployment", NAME, CERTS),
}
KEPT_BY_CERT_MANAGER: Final = {
    ("Issuer", NAME, f"{NAME}-selfsigned"),
    ("Certificate", NAME, f"{NAME}-ca"),
    ("Issuer", NAME, f"{NAME}-ca"),
    ("Certificate", NAME, TLS),
}
Objects = Mapping[tuple[str, str, str], Mapping[str, Any]]

each_install = pytest.mark.parametrize("install", INSTALLS)


def by_identity(install: str) -> Objects:
    """The objects of an install by kind, namespace and name."""
    return {identity(item): item for item in installed(install)}


@each_install
def test_every_object_is_ours_by_name_namespace_and_version(install: str) -> None:
    """Longhorn's namespace gets a Role and its binding, and no other namespace gets anything."""
    objects = installed(install)
    assert {item["metadata"]["labels"]["app.kubernetes.io/version"] for item in objects} == {__version__}
    assert [item for item in objects if not item["metadata"]["name"].startswith(NAME)] == []
    elsewhere = {(kind, namespace) for kind, namespace, _ in by_identity(install) if namespace not in {"", NAME}}
    assert elsewhere == {("Role", LONGHORN_NAMESPACE), ("RoleBinding", LONGHORN_NAMESPACE)}


@each_install
def test_no_secret_and_no_trust_is_in_an_install(install: str) -> None:
    """What a later apply does not state it can't take away."""
    assert [item for item in installed(install) if item["kind"] == "Secret"] == []
    configuration = the("MutatingWebhookConfiguration", installed(install))
    assert [hook["clientConfig"].keys() for hook in configuration["webhooks"]] == [{"service"}] * 3


def test_the_installs_differ_in_who_keeps_the_certificate() -> None:
    """Either has what the other has not for that, and all else is the same to the letter."""
    ours, theirs = by_identity(DEFAULT), by_identity(CERT_MANAGER)
    assert ours.keys() - theirs.keys() == KEPT_BY_US
    assert theirs.keys() - ours.keys() == KEPT_BY_CERT_MANAGER
    changed = {key for key in ours.keys() & theirs.keys() if ours[key] != theirs[key]}
    assert changed == {("MutatingWebhookConfiguration", "", NAME)}
    configuration = the("MutatingWebhookConfiguration", installed(CERT_MANAGER))
    annotated = {"annotations": {"cert-manager.io/inject-ca-from": f"{NAME}/{TLS}"}}
    without = the("MutatingWebhookConfiguration")
    assert configuration == {**without, "metadata": {**without["metadata"], **annotated}}


def test_the_controller_keeps_what_the_webhook_serves_and_api_servers_trust() -> None:
    """Its arguments, as the program reads them: the Secret that is mounted, the name that is checked, its port."""
    command, *words = at(f"{CONTAINER}.args", the("Deployment", name=CERTS))
    found = values(certs_cli.COMMANDS, command, *words)
    keeping = ControllerSettings(**found)
    (mounted,) = at("spec.template.spec.volumes", the("Deployment"))
    assert command == "keep"
    assert (keeping.secret, keeping.namespace) == (mounted["secret"]["secretName"], NAME)
    assert keeping.authority_secret == AUTHORITY
    assert keeping.webhook_configuration == the("MutatingWebhookConfiguration")["metadata"]["name"]
    assert f"--tls-server-name={keeping.policy.names[0]}" in at(f"{CONTAINER}.args", the("Deployment"))
    ports = at(f"{CONTAINER}.ports", the("Deployment", name=CERTS))
    assert ports == [{"name": "health", "containerPort": found["listen"].port}]


@pytest.mark.parametrize("install", INSTALLS)
def test_no_pod_mounts_the_key_of_the_authority(install: str) -> None:
    """Nor has it in a variable. The webhook's account can read no Secret, so that nothing in its pod gets the key."""
    deployments = [item for item in installed(install) if item["kind"] == "Deployment"]
    assert the("Deployment", deployments) in deployments
    for pod in (at("spec.template.spec", deployment) for deployment in deployments):
        variables = [[each.get("env"), each.get("envFrom")] for each in pod["containers"]]
        assert AUTHORITY not in str([pod.get("volumes"), variables])


def test_cert_manager_s_certificate_is_the_one_that_is_served_and_asked_for() -> None:
    """In the Secret that is mounted, for the name that the server checks, of an authority that outlives it."""
    objects = installed(CERT_MANAGER)
    served, authority = the("Certificate", objects, TLS)["spec"], the("Certificate", objects, f"{NAME}-ca")["spec"]
    (mounted,) = at("spec.template.spec.volumes", the("Deployment", objects))
    assert served["secretName"] == mounted["secret"]["secretName"]
    (asked_for,) = [word for word in at(f"{CONTAINER}.args", the("Deployment", objects)) if "server-name" in word]
    assert asked_for.removeprefix("--tls-server-name=") == served["dnsNames"][0]
    issuers = [the("Issuer", objects, spec["issuerRef"]["name"])["spec"] for spec in (served, authority)]
    assert issuers == [{"ca": {"secretName": authority["secretName"]}}, {"selfSigned": {}}]
    assert authority["isCA"]
    assert "isCA" not in served
    assert hours(authority) / 3 > hours(served)


def hours(spec: Mapping[str, Any]) -> int:
    """How long a Certificate is valid."""
    return int(spec["duration"].removesuffix("h"))


@each_install
def test_client_verification_changes_the_webhooks_deployment_alone(install: str, tmp_path: Path) -> None:
    """Two options, and the ConfigMap that the first of them reads; the program takes them."""
    before, after = changed(install, tmp_path, CLIENT_VERIFICATION)
    arguments = f"{CONTAINER}.args"
    added = at(arguments, after)[len(at(arguments, before)) :]
    found = values(cli.COMMANDS, *at(arguments, after))
    mount, volume = at(f"{CONTAINER}.volumeMounts.1", after), at("spec.template.spec.volumes.1", after)
    assert [word.partition("=")[0] for word in added] == ["--client-ca-file", "--client-name"]
    assert found["client_ca_file"] == Path(mount["mountPath"]) / "ca.crt"
    assert found["client_name"] == "kube-apiserver"
    assert mount["readOnly"]
    assert volume == {"name": mount["name"], "configMap": {"name": f"{NAME}-client-ca"}}


def changed(install: str, directory: Path, *options: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The webhook's Deployment without and with options, which change no other object of the install."""
    before = by_identity(install)
    after = {identity(item): item for item in kustomize(with_options(directory, *options, install=install))}
    deployment = ("Deployment", NAME, NAME)
    assert {key for key in before if before[key] != after[key]} == {deployment}
    return before[deployment], after[deployment]


def test_the_right_to_create_events_is_the_webhook_s() -> None:
    """And no other one; a policy confines it."""
    objects = {identity(item)[::2]: item for item in installed("events.yaml")}
    name = f"{NAME}-events"
    assert set(objects) == {(kind, name) for kind in ("ClusterRole", "ClusterRoleBinding", *POLICY)}
    assert objects["ClusterRole", name]["rules"] == [{"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}]
    assert objects["ClusterRoleBinding", name]["roleRef"]["name"] == name
    assert objects["ClusterRoleBinding", name]["subjects"] == [
        {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}
    ]


@each_install
def test_the_image_is_this_version_and_set_in_one_place(install: str, tmp_path: Path) -> None:
    """A user who edits the one line of the kustomization has the image in every Deployment of every install."""
    assert images(installed(install)) == {f"{NAME}:{__version__}"}
    folder = with_options(tmp_path, install=install)
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    assert text.count(f"newName: {NAME} ") == 1
    kustomization.write_text(text.replace(f"newName: {NAME} ", "newName: example.test/team/webhook "), encoding="utf-8")
    rendered = kustomize(folder)
    assert images(rendered) == {f"example.test/team/webhook:{__version__}"}
    assert set(map(identity, rendered)) == set(by_identity(install))


def test_an_install_can_be_the_base_of_another(tmp_path: Path) -> None:
    """A user's kustomization that names the folder sets the image of every Deployment, and adds a component."""
    copied(tmp_path)
    (tmp_path / "kustomization.yaml").write_text(
        "resources: [manifests]\n"
        "components: [manifests/components/client-verification]\n"
        f"images: [{{name: {NAME}, newName: example.test/team/webhook}}]\n",
        encoding="utf-8",
    )
    rendered = kustomize(tmp_path)
    assert images(rendered) == {f"example.test/team/webhook:{__version__}"}
    assert "--client-name=kube-apiserver" in at(f"{CONTAINER}.args", the("Deployment", rendered))


def images(objects: Any) -> set[str]:
    """The images of all Deployments."""
    return {at(f"{CONTAINER}.image", item) for item in objects if item["kind"] == "Deployment"}
