"""The certificate controller may change caBundle and the data of its Secrets: policies refuse the rest."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from support.control_plane.certs_process import AUTHORITY_SECRET, CONFIGURATION, SECRET, CertsInstall
from support.control_plane.installed import NAME
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object

from certs import state
from certs.pki import Pair

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

SERVICE_ACCOUNT_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_OF_A_TOKEN: Final = {"kubernetes.io/service-account.name": NAME}
PAIR: Final = Pair(b"certificate", b"key", b"authority")
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
_DENIED: Final = "denied request"  # by a policy, and not for a right that the API server does not know yet

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
        kept.until(lambda: _DENIED in (self.told(self.keeper, {"metadata": {"labels": {"changed": "true"}}}) or ""))
        created = state.new_secret(self.admin.path(SECRET), PAIR)
        token = {
            **created,
            "type": SERVICE_ACCOUNT_TYPE,
            "metadata": {**created["metadata"], "annotations": ACCOUNT_OF_A_TOKEN},
        }
        kept.until(lambda: _DENIED in (self.secret_refusal(self.keeper, SECRET, token, APPLY) or ""))

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

    def secret_refusal(self, api: Api, target: Object, change: Object, content_type: str) -> str | None:
        """What the API server says against a write, which it only tries; None where it takes it."""
        query = {"dryRun": "All", **({"fieldManager": "for-a-test", "force": "true"} if content_type == APPLY else {})}
        try:
            api.call("PATCH", api.path(target), change, query, content_type)
        except ApiError as error:
            return f"{error.status} {error.message}"
        return None

    def with_first(self, **fields: Any) -> Webhooks:
        """The webhooks, the first of them with these fields; one that is None is left out."""
        first, *others = self.webhooks
        return [{key: value for key, value in {**first, **fields}.items() if value is not None}, *others]


@pytest.fixture(scope="module", params=["newest", pytest.param("oldest", marks=pytest.mark.soak_only)])
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


def test_the_controller_may_take_no_field_from_a_field_manager(confined: Confined) -> None:
    """A forced apply of equal values changes nothing, and another manager's next apply would then be a conflict."""
    equal = {**CONFIGURATION, "webhooks": confined.webhooks}
    assert confined.secret_refusal(confined.admin, CONFIGURATION, equal, APPLY) is None
    refusal = confined.secret_refusal(confined.keeper, CONFIGURATION, equal, APPLY) or ""
    assert "may not own fields as another manager of server-side apply" in refusal


def test_the_controller_may_change_what_it_keeps(confined: Confined) -> None:
    """With what is there, and what it adds and takes away again: caBundle of each webhook."""
    seen = state.read_configuration(confined.keeper.get(CONFIGURATION))
    written = confined.keeper.patch(CONFIGURATION, state.configuration_patch(seen, confined.bundle))
    assert state.read_configuration(written).bundles == (confined.bundle,) * 3
    bare = [{**hook, "clientConfig": {"service": hook["clientConfig"]["service"]}} for hook in written["webhooks"]]
    assert confined.told(confined.keeper, {"webhooks": bare}) is None


@pytest.mark.parametrize("secret", [SECRET, AUTHORITY_SECRET], ids=["served", "authority"])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"type": SERVICE_ACCOUNT_TYPE, "metadata": {"annotations": ACCOUNT_OF_A_TOKEN}},
            "only Secrets of the types Opaque",
        ),
        ({"metadata": {"ownerReferences": [OWNER]}}, "ownerReferences or finalizers of a Secret"),
        ({"metadata": {"finalizers": ["example.com/for-a-test"]}}, "ownerReferences or finalizers of a Secret"),
        ({"immutable": True}, "may not make a Secret immutable"),
    ],
    ids=["token", "ownerReferences", "finalizers", "immutable"],
)
def test_the_controller_may_write_only_certificates_into_a_secret(
    secret: Object, fields: Object, reason: str, confined: Confined
) -> None:
    """Neither where it creates one nor where it changes one; an admin may."""
    created = state.new_secret(confined.admin.path(secret), PAIR)
    both = {**created, **fields, "metadata": {**created["metadata"], **fields.get("metadata", {})}}
    refused_secret(confined, secret, both, APPLY, reason)
    if "type" in fields:  # nobody may change the type of a Secret
        return
    confined.admin.create(created)
    try:
        refused_secret(confined, secret, fields, MERGE, reason)
    finally:
        confined.admin.delete(secret)


def refused_secret(confined: Confined, secret: Object, change: Object, content_type: str, reason: str) -> None:
    """The policy refuses the certificate controller a write that an admin may make."""
    assert confined.secret_refusal(confined.admin, secret, change, content_type) is None
    refusal = confined.secret_refusal(confined.keeper, secret, change, content_type) or ""
    assert f"ValidatingAdmissionPolicy '{NAME}-certs-secrets'" in refusal
    assert reason in refusal


@pytest.mark.parametrize("kind", ["Opaque", "kubernetes.io/tls"])
def test_the_controller_may_write_certificates_into_a_secret_of_another_program(kind: str, confined: Confined) -> None:
    """One with labels, annotations, an owner and a finalizer, which stay as they are."""
    foreign = state.new_secret(confined.admin.path(SECRET), PAIR)
    metadata = {
        **foreign["metadata"],
        "labels": {"example.com/label": "x"},
        "annotations": {"example.com/annotation": "x"},
        "finalizers": ["example.com/for-a-test"],
    }
    confined.admin.create({**foreign, "type": kind, "metadata": metadata})
    try:
        version = confined.admin.get(SECRET)["metadata"]["resourceVersion"]
        change = state.secret_patch(version, Pair(b"new", b"key", b"authority"))
        assert confined.secret_refusal(confined.keeper, SECRET, change, MERGE) is None
    finally:
        confined.admin.patch(SECRET, {"metadata": {"finalizers": None}})
        confined.admin.delete(SECRET)
