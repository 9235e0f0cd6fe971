"""What the two service accounts of the install may do on a real API server: all of it, and the refusal of the rest."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from typing import Any, Final

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


LABEL: Final = {"metadata": {"labels": {"changed": "true"}}}
REFUSED: Final[dict[str, Callable[[Api], Any]]] = {
    "read another Secret": lambda api: api.get(secret("other")),
    "read a Secret of the name elsewhere": lambda api: api.get(secret(namespace=NAMESPACE)),
    "list the namespace's Secrets": lambda api: api.items("v1", "Secret", NAME),
    "list all Secrets": lambda api: api.items("v1", "Secret"),
    "watch the namespace's Secrets": lambda api: next(api.watch("v1", "Secret", NAME, seconds=1)),
    "watch its own Secret": lambda api: next(
        api.watch("v1", "Secret", NAME, seconds=1, fieldSelector=f"metadata.name={TLS}")
    ),
    "create a Secret by POST": lambda api: api.create(secret("other")),
    "create its own Secret by POST": lambda api: api.create(secret()),
    "create another Secret by apply": lambda api: api.apply(secret("other")),
    "create its Secret elsewhere": lambda api: api.apply(secret(namespace=NAMESPACE)),
    "patch another Secret": lambda api: api.patch(secret("other"), LABEL),
    "delete its own Secret": lambda api: api.delete(secret()),
    "delete its authority": lambda api: api.delete(secret(AUTHORITY)),
    "delete all Secrets": lambda api: api.call("DELETE", f"/api/v1/namespaces/{NAME}/secrets"),
    "read another configuration": lambda api: api.get(configuration("other")),
    "list the configurations": lambda api: api.items("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    "create a configuration": lambda api: api.create(configuration("other")),
    "create another configuration by apply": lambda api: api.apply(configuration("other")),
    "create its own configuration": lambda api: api.apply(configuration()),
    "patch another configuration": lambda api: api.patch(configuration("other"), LABEL),
    "replace its own configuration": lambda api: api.replace(configuration()),
    "delete its own configuration": lambda api: api.delete(configuration()),
    "patch a validating configuration of the name": lambda api: api.patch(
        configuration(kind="ValidatingWebhookConfiguration"), LABEL
    ),
    "patch its Service": lambda api: api.patch({**secret(NAME), "kind": "Service"}, LABEL),
    "get a token of the webhook's": lambda api: api.request_token(NAME, NAME),
    "list pods": lambda api: api.items("v1", "Pod", NAME),
    "read nodes": lambda api: api.items("v1", "Node"),
}


@pytest.mark.parametrize("attempt", REFUSED.values(), ids=REFUSED)
def test_the_controller_is_refused(attempt: Callable[[Api], Any], keeper: Api) -> None:
    """By the API server: 403, whatever is there or not there."""
    with pytest.raises(ApiError) as caught:
        attempt(keeper)
    assert caught.value.status == http.client.FORBIDDEN


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
