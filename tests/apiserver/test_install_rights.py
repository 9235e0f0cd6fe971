"""What the two service accounts of the install may do on a real API server: all of it, and the refusal of the rest."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Final

import pytest
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.rendering import AUTHORITY, CERTS, TLS
from support.objects.builders import LONGHORN_NAMESPACE, NAMESPACE

AUTOSCALER: Final = "cluster-autoscaler-status"
READ: Final = ("get", "list", "watch")
KEPT: Final = ("get", "patch")
NAMESPACES: Final = ("default", NAMESPACE, NAME, LONGHORN_NAMESPACE, "kube-system")
Rule = tuple[str, str, str, str]  # API group, resource, name or empty, verb

CLUSTER_WIDE: Final = {
    *(
        ("", kind, "", verb)
        for kind in ("persistentvolumeclaims", "persistentvolumes", "nodes", "namespaces")
        for verb in READ
    ),
    *((group, kind, "", verb) for group, kind in (("", "pods"), ("storage.k8s.io", "csinodes")) for verb in READ[1:]),
    *(("", "configmaps", AUTOSCALER, verb) for verb in READ[1:]),
    *(("kubevirt.io", kind, "", verb) for kind in ("virtualmachines", "virtualmachineinstances") for verb in READ),
}
IN_LONGHORN_S: Final = {
    *(("", "pods", "", verb) for verb in READ),
    *(("longhorn.io", kind, "", verb) for kind in ("sharemanagers", "nodes") for verb in READ),
    ("longhorn.io", "volumeattachments", "", "get"),
}
CONFIGURATIONS: Final = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
ALL_OF_THE_WEBHOOK_S: Final = {
    namespace: CLUSTER_WIDE | (IN_LONGHORN_S if namespace == LONGHORN_NAMESPACE else set()) for namespace in NAMESPACES
}
ALL_OF_THE_KEEPER_S: Final = {
    namespace: {(*CONFIGURATIONS, NAME, verb) for verb in KEPT}
    | (
        {("", "secrets", name, verb) for name in (TLS, AUTHORITY) for verb in (*KEPT, "create")}
        if namespace == NAME
        else set()
    )
    for namespace in NAMESPACES
}


def as_account(installed: Installed, namespace: str, name: str) -> Api:
    """The API server as a service account sees it."""
    return installed.plane.as_user(installed.plane.service_account(namespace, name))


@pytest.fixture(scope="module")
def nobody(installed: Installed) -> Iterator[Api]:
    """A service account that nobody has granted anything: what it may do any account may."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "default"}}
    installed.plane.api.create(account)
    yield as_account(installed, "default", "nobody")
    installed.plane.api.delete(account)


@pytest.fixture(scope="module")
def webhook(installed: Installed) -> Api:
    """The server's account."""
    return as_account(installed, NAME, NAME)


@pytest.fixture(scope="module")
def keeper(installed: Installed) -> Api:
    """The account of `certs`."""
    return as_account(installed, NAME, CERTS)


def rules(account: Api, namespace: str) -> set[Rule]:
    """Every permission of an account in a namespace and beyond namespaces, as the API server tells it."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "metadata": {},
        "spec": {"namespace": namespace},
    }
    status = account.create(review)["status"]
    assert not status["incomplete"]
    resources = {
        (group, resource, name, verb)
        for rule in status["resourceRules"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for name in rule.get("resourceNames", ("",))
        for verb in rule["verbs"]
    }
    urls = {
        ("", url, "", verb)
        for rule in status["nonResourceRules"]
        for url in rule["nonResourceURLs"]
        for verb in rule["verbs"]
    }
    return resources | urls


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_webhook_may_do_this_and_nothing_else(namespace: str, webhook: Api, nobody: Api) -> None:
    """Beyond what any account may: read what a decision is made from."""
    assert rules(webhook, namespace) - rules(nobody, namespace) == ALL_OF_THE_WEBHOOK_S[namespace]


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_the_controller_may_do_this_and_nothing_else(namespace: str, keeper: Api, nobody: Api) -> None:
    """Beyond what any account may: keep its two Secrets and its one configuration, and look at one Service."""
    assert rules(keeper, namespace) - rules(nobody, namespace) == ALL_OF_THE_KEEPER_S[namespace]


def test_every_write_of_the_webhook_is_refused(webhook: Api, nobody: Api) -> None:
    """Of every kind that the API server has, in every verb that writes: it may ask about itself, as any account may."""
    allowed = [
        {
            (resource, verb)
            for group, resource, verbs in kinds(account)
            for verb in verbs
            if verb not in READ and may(account, verb, group, resource)
        }
        for account in (webhook, nobody)
    ]
    about_itself = {"selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
    assert allowed == [{(review, "create") for review in about_itself}] * 2


def kinds(api: Api) -> Iterator[tuple[str, str, list[str]]]:
    """(group, resource or resource/subresource, its verbs) of everything that the API server has.

    It still names a group for a moment after another test has deleted the CRDs of that group.
    """
    groups = api.call("GET", "/apis").body["groups"]
    for version in ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]:
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        try:
            resources = api.call("GET", root).body["resources"]
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                raise
            continue
        for resource in resources:
            yield version.rpartition("/")[0], resource["name"], resource["verbs"]


def may(account: Api, verb: str, group: str, resource: str) -> bool:
    """Whether an account may do this in the program's own namespace, where it has most rights."""
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": NAME,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    allowed: bool = account.create(review)["status"]["allowed"]
    return allowed


def secret(name: str = TLS, namespace: str = NAME) -> Object:
    """A Secret without data."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}


def configuration(name: str = NAME, kind: str = "MutatingWebhookConfiguration") -> Object:
    """A configuration of webhooks."""
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}


def test_the_controller_keeps_its_three_objects(keeper: Api, installed: Installed) -> None:
    """It makes its Secrets by apply, and reads and patches them and the configuration by name."""
    installed.enable()
    for name in (TLS, AUTHORITY):
        keeper.apply(secret(name))
    try:
        for mine in (secret(), secret(AUTHORITY), configuration()):
            keeper.patch(mine, {})
            assert keeper.get(mine)["metadata"]["name"] == mine["metadata"]["name"]
    finally:
        for name in (TLS, AUTHORITY):
            installed.plane.api.delete(secret(name))
        installed.disable()
