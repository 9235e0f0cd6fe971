"""The installs and the components: what each is made of, and that they differ in what they are for and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from support.control_plane.rendering import (
    AUTHORITY,
    CERT_MANAGER,
    CERTS,
    DEFAULT,
    INSTALLS,
    NAME,
    TLS,
    at,
    identity,
    installed,
    kustomize,
    the,
    with_options,
)
from support.drivers.command_lines import values

from certs import cli as certs_cli
from certs.settings import ControllerSettings
from webhook import __version__

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
def test_the_image_is_this_version_and_set_in_one_place(install: str, tmp_path: Path) -> None:
    """A user who edits the one line of the kustomization has the image in every Deployment of every install."""
    assert images(installed(install)) == {f"{NAME}:{__version__}"}
    folder = with_options(tmp_path, install=install)
    kustomization = folder / "kustomization.yaml"
    text = kustomization.read_text(encoding="utf-8")
    assert text.count(f"newName: {NAME} ") == 1
    kustomization.write_text(text.replace(f"newName: {NAME} ", "newName: example.test/team/webhook "), encoding="utf-8")
    assert images(kustomize(folder)) == {f"example.test/team/webhook:{__version__}"}


def images(objects: Any) -> set[str]:
    """The images of all Deployments."""
    return {at(f"{CONTAINER}.image", item) for item in objects if item["kind"] == "Deployment"}
