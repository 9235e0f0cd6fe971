"""The pods that have a claim, of VMs or not, and the VM that each belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.models.cached_pods import seen
from support.objects import builders, builders_pods

from webhook.kube.records.pods import unread_claims
from webhook.kube.scheduler_cache.assumed_pods import PodIndex

MANY: Final = 100


def key_of(described: dict[str, Any]) -> str:
    """The cache key of a pod."""
    return f"{described['metadata']['namespace']}/{described['metadata']['name']}"


def index_of(*described: dict[str, Any]) -> PodIndex:
    """The index of these pods."""
    index = PodIndex()
    for each in described:
        index.put(key_of(each), None, seen(each))
    return index


LAUNCHER: Final = builders.vm_pod("db01", claims=["disk"], node="n1")
SHARING: Final = builders_pods.pod("media-0", claims=["disk", "disk", "more"], node="n1")
ATTACHING: Final = builders_pods.pod("hp-volume-x", claims=["disk"], attaches="virt-launcher-db01", node="n1")


def test_each_pod_is_named_with_its_vm() -> None:
    """A virt-launcher pod by its owner, an attachment pod by its virt-launcher pod; another pod has no VM."""
    index = index_of(LAUNCHER, SHARING, ATTACHING, builders_pods.pod("other", claims=["other"], node="n1"))
    assert index.users_of("vms/disk", MANY) == {
        "virt-launcher-db01": "db01",
        "media-0": "",
        "hp-volume-x": "db01",
    }
    assert index.users_of("vms/more", MANY) == {"media-0": ""}
    assert index.users_of("elsewhere/disk", MANY) == {}
    assert len(index.users_of("vms/disk", 2)) == 2


def test_only_the_label_of_an_attachment_pod_makes_its_owner_count() -> None:
    """Anything can own a pod."""
    described = {**ATTACHING, "metadata": {**ATTACHING["metadata"], "labels": {}}}
    assert index_of(LAUNCHER, described).users_of("vms/disk", MANY)["hp-volume-x"] == ""
    alone = {**ATTACHING, "metadata": {**ATTACHING["metadata"], "ownerReferences": None}}
    assert index_of(LAUNCHER, alone).users_of("vms/disk", MANY)["hp-volume-x"] == ""


@pytest.mark.parametrize("make", [builders_pods.pod, builders.vm_pod])
def test_a_pod_whose_volumes_are_too_long_can_have_any_claim_of_its_namespace(
    make: Callable[..., dict[str, Any]],
) -> None:
    """Until it is gone."""
    described = make("x", node="n1", claims=[f"disk-{number:0200}" for number in range(400)])
    index, key = PodIndex(), key_of(described)
    record = index.put(key, None, seen(described))
    assert list(index.users_of(unread_claims("vms"), MANY)) == [key.partition("/")[2]]
    assert index.users_of(unread_claims("elsewhere"), MANY) == {}
    index.drop(key, record)
    assert (index.claim_users, index.by_claim._keys) == ({}, {})


_VARIANTS: Final = {
    "gone": None,
    "without claims": builders_pods.pod("a", node="n1"),
    "on no node": builders_pods.pod("a", claims=["disk"]),
    "on a node": builders_pods.pod("a", claims=["disk"], node="n1"),
    "with another claim": builders_pods.pod("a", claims=["more"], node="n1"),
    "attaching": builders_pods.pod("a", claims=["disk"], attaches="virt-launcher-db01", node="n1"),
}


@given(st.lists(st.sampled_from([*_VARIANTS]), max_size=8))
def test_after_any_changes_of_a_pod_the_index_equals_a_new_one(steps: list[str]) -> None:
    """A list can show another pod of the same name, as of a StatefulSet."""
    index, record, last = index_of(LAUNCHER), None, None
    for each in steps:
        described = _VARIANTS[each]
        if described is not None:
            record, last = index.put("vms/a", record, seen(described)), described
        elif record is not None:
            index.drop("vms/a", record)
            record = last = None
    new = index_of(LAUNCHER, *([last] if last else []))
    for claim in ("vms/disk", "vms/more"):
        assert index.users_of(claim, MANY) == new.users_of(claim, MANY)
    assert index.claim_users == new.claim_users


def test_a_pod_that_has_no_claim_costs_nothing() -> None:
    """As most pods: their record is as large as without this index."""
    index = index_of(builders_pods.pod("web", node="n1"))
    assert (index.claim_users, index.by_claim._keys) == ({}, {})
