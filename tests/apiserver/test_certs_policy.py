"""Of its configuration the certificate controller may change caBundle: a policy refuses the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from support.control_plane.certs_install import CONFIGURATION, CertsInstall
from support.control_plane.installed import NAME
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object

from certs.rotation import state

OPENAPI: Final = "/openapi/v3/apis/admissionregistration.k8s.io/v1"
SCHEMAS: Final = "io.k8s.api.admissionregistration.v1."
EVERYTHING: Final = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
OWNER: Final = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "for-a-test"}

FIELDS: Final[dict[str, tuple[Any, str]]] = {
    "admissionReviewVersions": (["v1", "v1beta1"], "only clientConfig.caBundle of a webhook"),
    "failurePolicy": ("Fail", "only clientConfig.caBundle of a webhook"),
    "matchConditions": (None, "only clientConfig.caBundle of a webhook"),
    "matchPolicy": ("Exact", "only clientConfig.caBundle of a webhook"),
    "name": ("other.kubevirt-coschedule.io", "may not add, remove, rename or move"),
    "namespaceSelector": ({}, "only clientConfig.caBundle of a webhook"),
    "objectSelector": ({}, "only clientConfig.caBundle of a webhook"),
    "reinvocationPolicy": ("Never", "only clientConfig.caBundle of a webhook"),
    "rules": ([EVERYTHING], "only clientConfig.caBundle of a webhook"),
    "sideEffects": ("NoneOnDryRun", "only clientConfig.caBundle of a webhook"),
    "timeoutSeconds": (30, "only clientConfig.caBundle of a webhook"),
}
"""Field of a webhook -> another value, which an admin may write, and the message that the certificate controller gets.

None: there is no such field.
"""

SERVICE: Final[dict[str, Any]] = {"name": "other", "namespace": "other", "path": "/other", "port": 8443}
"""A field of the Service that is called, and another value."""

METADATA: Final[dict[str, dict[str, Any]]] = {
    "labels": {"labels": {"changed": "true"}},
    "annotations": {"annotations": {"changed": "true"}},
    "finalizers": {"finalizers": ["example.com/for-a-test"]},
    "ownerReferences": {"ownerReferences": [OWNER]},
}

Webhooks = list[dict[str, Any]]
LIST: Final[dict[str, Callable[[Webhooks], Webhooks]]] = {
    "one more": lambda webhooks: [*webhooks, {**webhooks[0], "name": "other.kubevirt-coschedule.io"}],
    "one less": lambda webhooks: webhooks[:1],
    "none": lambda _: [],
    "another order": lambda webhooks: webhooks[::-1],
}


class Confined:
    """The install on one API server, as the admin and as the certificate controller's account see it."""

    def __init__(self, kept: CertsInstall) -> None:
        self.bundle = kept.plane.ca_pem
        self.admin, self.keeper = kept.api, kept.plane.as_user(kept.account)
        kept.until(lambda: self.told(self.keeper, {"metadata": {"labels": {"changed": "true"}}}) is not None)

    def told(self, api: Api, change: Object) -> str | None:
        """What the API server says against a JSON merge patch, which it only tries; None where it takes it."""
        body = {**change, "webhooks": change.get("webhooks", self.webhooks)}
        query = {"dryRun": "All"}
        try:
            api.call("PATCH", api.path(CONFIGURATION), body, query, "application/merge-patch+json")
        except ApiError as error:
            return f"{error.status} {error.message}"
        return None

    @property
    def webhooks(self) -> Webhooks:
        """As they are."""
        webhooks: Webhooks = copy.deepcopy(self.admin.get(CONFIGURATION)["webhooks"])
        return webhooks

    def with_first(self, **fields: Any) -> Webhooks:
        """The webhooks, the first of them with these fields; one that is None is left out."""
        first, *others = self.webhooks
        return [{key: value for key, value in {**first, **fields}.items() if value is not None}, *others]


@pytest.fixture(scope="module", params=["newest", "oldest"])
def confined(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Confined]:
    """On the newest and on the oldest Kubernetes that we build."""
    install = request.getfixturevalue("installed" if request.param == "newest" else "installed_on_old")
    with CertsInstall(install.plane, tmp_path_factory.mktemp("confined"), install.port) as kept:
        yield Confined(kept)


def refused(confined: Confined, change: Object, reason: str) -> None:
    """The certificate controller is refused what an admin may write, in words that say so."""
    assert confined.told(confined.admin, change) is None
    refusal = confined.told(confined.keeper, change) or ""
    assert refusal.startswith("422 ")
    policy = f"ValidatingAdmissionPolicy '{NAME}-certs' with binding '{NAME}-certs'"
    assert f"{policy} denied request: the certificate controller" in refusal
    assert reason in refusal


def properties(confined: Confined, schema: str) -> set[str]:
    """The fields of a kind, as this API server has them."""
    schemas = confined.admin.call("GET", OPENAPI).body["components"]["schemas"]
    return set(schemas[SCHEMAS + schema]["properties"])


def test_every_field_that_this_kubernetes_knows_is_tried(confined: Confined) -> None:
    """One that a later version adds makes this fail, so that the tables below get it too."""
    assert properties(confined, "MutatingWebhook") == {*FIELDS, "clientConfig"}
    assert properties(confined, "WebhookClientConfig") == {"caBundle", "service", "url"}
    assert properties(confined, "ServiceReference") == set(SERVICE)
    assert properties(confined, "MutatingWebhookConfiguration") == {"apiVersion", "kind", "metadata", "webhooks"}


@pytest.mark.parametrize(("field", "value", "reason"), [(key, *row) for key, row in FIELDS.items()], ids=FIELDS)
def test_the_controller_may_change_no_field_of_a_webhook(
    field: str, value: Any, reason: str, confined: Confined
) -> None:
    """Neither what is sent, nor what comes of a call that fails."""
    refused(confined, {"webhooks": confined.with_first(**{field: value})}, reason)


@pytest.mark.parametrize("field", [*SERVICE, "url"])
def test_the_controller_may_change_nobody_who_is_called(field: str, confined: Confined) -> None:
    """Neither the Service nor by an address of its own: that is where every write of a cluster could be sent to."""
    service = confined.webhooks[0]["clientConfig"]["service"]
    client = {"service": {**service, field: SERVICE[field]}} if field in SERVICE else {"url": "https://192.0.2.1/"}
    refused(
        confined, {"webhooks": confined.with_first(clientConfig=client)}, "may change only caBundle in clientConfig"
    )


@pytest.mark.parametrize("changed", LIST.values(), ids=LIST)
def test_the_controller_may_change_no_list_of_webhooks(
    changed: Callable[[Webhooks], Webhooks], confined: Confined
) -> None:
    """One that is added calls for as much as one that is changed."""
    refused(confined, {"webhooks": changed(confined.webhooks)}, "may not add, remove, rename or move a webhook")


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_the_controller_may_change_no_metadata(metadata: dict[str, Any], confined: Confined) -> None:
    """A finalizer or an owner would decide when the configuration goes."""
    refused(confined, {"metadata": metadata}, "labels, annotations, ownerReferences or finalizers")


def test_the_controller_may_change_what_it_keeps(confined: Confined) -> None:
    """With what is there, and what it adds and takes away again: caBundle of each webhook."""
    seen = state.read_configuration(confined.keeper.get(CONFIGURATION))
    written = confined.keeper.patch(CONFIGURATION, state.configuration_patch(seen, confined.bundle))
    assert [hook.bundle for hook in state.read_configuration(written).webhooks] == [confined.bundle] * 3
    bare = [{**hook, "clientConfig": {"service": hook["clientConfig"]["service"]}} for hook in written["webhooks"]]
    assert confined.told(confined.keeper, {"webhooks": bare}) is None
