"""`reunite` may delete a stuck virt-launcher pod and no other: a real API server refuses the rest, by a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml
from support.control_plane.installed import NAME, Installed
from support.control_plane.kube_answers import ApiError
from support.control_plane.kube_api import Api, Object
from support.control_plane.rendering import SHARED
from support.objects import builders
from support.scenarios.admitting import until

ACCOUNT: Final = f"{NAME}-reunite"
POLICY: Final = f"{NAME}-restart-stuck"
WRITTEN: Final = builders.written("n1")
NODE: Final = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
UNSCHEDULED: Final = {"schedulerName": "nobody"}


class Confined:
    """The component on one API server, as the admin and as the account of `reunite` see it."""

    def __init__(self, installed: Installed) -> None:
        self.admin = installed.plane.api
        self.reunite = installed.plane.as_user(installed.plane.service_account(NAME, ACCOUNT))
        until(lambda: "virt-launcher" in self.answer(pod("probe", labels={"kubevirt.io": "other"})), "the policy")

    def answer(self, described: Object, **parameters: str) -> str:
        """What the API server answers to a deletion of this pod by `reunite`: empty if it deletes the pod."""
        made = self.admin.create(described)
        try:
            return delete(self.reunite, made, **parameters)
        finally:
            self.admin.delete(made, missing_ok=True)


def delete(api: Api, target: Object, **parameters: str) -> str:
    """Delete it, and return the refusal; empty if there is none."""
    try:
        api.delete(target, **parameters)
    except ApiError as error:
        return f"{error.status} {error.message}"
    return ""


def pod(name: str, **parts: Any) -> Object:
    """A virt-launcher pod that no scheduler takes."""
    return builders.vm_pod(name, **{"pinned_to": ["n1"], "annotations": WRITTEN, **UNSCHEDULED, **parts})


@pytest.fixture(scope="module", params=["newest", "oldest"])
def confined(request: pytest.FixtureRequest) -> Iterator[Confined]:
    """On the newest and on the oldest Kubernetes that we build."""
    installed: Installed = request.getfixturevalue("installed" if request.param == "newest" else "installed_on_old")
    component = SHARED / "restart-stuck"
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAME}},
        *(each for name in ("rbac", "policy") for each in yaml.safe_load_all((component / f"{name}.yaml").read_text())),
        {**builders.node("n1"), "status": {}},
    ]
    for each in objects:
        installed.plane.api.apply(each)
    yield Confined(installed)
    for each in objects:
        installed.plane.api.delete(each)


def test_a_stuck_pod_may_be_deleted(confined: Confined) -> None:
    """It has no node, and the webhook wrote into its affinity."""
    assert confined.answer(pod("stuck")) == ""


@pytest.mark.parametrize(
    ("described", "message"),
    [
        pytest.param(pod("bound", node="n1"), "only pods that have no node", id="a VM that runs"),
        pytest.param(pod("other", labels={"kubevirt.io": "hotplug-disk"}), "only virt-launcher pods", id="no launcher"),
        pytest.param(pod("own", annotations={}), "in whose affinity the webhook wrote", id="the user's own affinity"),
        pytest.param(
            pod("left", annotations=builders.recorded("unchanged", because="NoRoom: x")),
            "in whose affinity the webhook wrote",
            id="left unchanged by the webhook",
        ),
    ],
)
def test_no_other_pod_may_be_deleted(described: Object, message: str, confined: Confined) -> None:
    """An admin may delete each of them."""
    refusal = confined.answer(described)
    assert refusal.startswith("422 ")
    assert f"ValidatingAdmissionPolicy '{POLICY}' with binding '{POLICY}' denied request: reunite may delete" in refusal
    assert message in refusal


def test_a_pod_without_labels_and_annotations_may_not_be_deleted(confined: Confined) -> None:
    """The expressions answer for absent maps, and don't fail."""
    plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "namespace": builders.NAMESPACE},
        "spec": {"containers": [{"name": "main", "image": "example.com/main"}], **UNSCHEDULED},
    }
    assert "only virt-launcher pods" in confined.answer(plain)


def test_a_pod_that_was_bound_meanwhile_is_not_deleted(confined: Confined) -> None:
    """Its resourceVersion is another one then. The precondition names the one that `reunite` has read."""
    made = confined.admin.create(pod("meanwhile"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": made["metadata"]["name"]}, "target": NODE}
    path = confined.admin.path(made)
    try:
        confined.admin.call("POST", f"{path}/binding", binding)
        options = {"preconditions": {key: made["metadata"][key] for key in ("uid", "resourceVersion")}}
        with pytest.raises(ApiError) as refused:
            confined.admin.call("DELETE", path, options)
        assert refused.value.status == 409
    finally:
        confined.admin.delete(made)


def test_many_pods_at_once_may_not_be_deleted(confined: Confined) -> None:
    """RBAC grants no deletecollection, which the policy would see pod by pod."""
    with pytest.raises(ApiError) as refused:
        confined.reunite.call("DELETE", f"/api/v1/namespaces/{builders.NAMESPACE}/pods")
    assert refused.value.status == 403


def test_an_admin_may_delete_every_pod(confined: Confined) -> None:
    """The policy confines one account."""
    assert delete(confined.admin, confined.admin.create(pod("bound", node="n1"))) == ""
