from typing import Any

import pytest
from msgspec import convert
from support.fakes.views import MISSING, ViewWithGaps, cluster
from support.objects.builders import (
    node,
    persistent_volume,
    persistent_volume_claim,
    share_manager,
    share_manager_pod,
    virt_launcher_pod,
)

from webhook.core.api.meta import NamespacedName
from webhook.core.api.pod import Pod
from webhook.core.decision import Pin
from webhook.core.opt_in import Policy
from webhook.core.placement.virt_launcher import place_virt_launcher
from webhook.core.reasons import Reason
from webhook.core.view import Kind, ObjectRef, Ref

Object = dict[str, Any]


def disk(name: str, on: str, *, firm: bool = True) -> list[Object]:
    """Return the objects from one claim to a share-manager on a node. Without `firm` its pod is not scheduled yet."""
    chain = [
        persistent_volume_claim(name, volume_name=f"pv-{name}"),
        persistent_volume(f"pv-{name}", claim=name, handle=f"h-{name}"),
        share_manager(f"h-{name}", state="running", ownerID=on),
    ]
    return chain if firm else [*chain, share_manager_pod(f"h-{name}")]


def test_without_short_lists_a_preference_stands_alone() -> None:
    """The operator's choice, for a cluster with an autoscaler."""
    objects = [*disk("a", "n1"), *(node(f"n{index}") for index in range(110))]
    pod, view = convert(virt_launcher_pod(claims=["a"], opt_in="preferred"), Pod), cluster(*objects)
    found = [place_virt_launcher(pod, "vms", view, Policy(shortlist=allowed)) for allowed in (True, False)]
    assert [len(each.shortlist) for each in found if isinstance(each, Pin)] == [64, 0]


@pytest.mark.parametrize(
    ("gaps", "refs"),
    [
        pytest.param(
            [
                ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-a")),
                ObjectRef(Kind.NODE, NamespacedName("", "n1")),
            ],
            (ObjectRef(Kind.PERSISTENT_VOLUME, NamespacedName("", "pv-a")),),
            id="the claims first",
        ),
        pytest.param(
            [ObjectRef(Kind.NODE, NamespacedName("", "n1")), ObjectRef(Kind.NODE, NamespacedName("", "n2"))],
            (ObjectRef(Kind.NODE, NamespacedName("", "n1")), ObjectRef(Kind.NODE, NamespacedName("", "n2"))),
            id="then all nodes at once",
        ),
    ],
)
def test_what_is_not_read_yet_is_needed(gaps: list[Ref], refs: tuple[Ref, ...]) -> None:
    """No decision is made before all objects for it were read."""
    view = ViewWithGaps(cluster(*disk("a", "n1"), *disk("b", "n2")), dict.fromkeys(gaps, MISSING))
    pod = convert(virt_launcher_pod(claims=["a", "b"]), Pod)
    place_virt_launcher(pod, "vms", view, Policy())
    assert list(view.missing) == list(refs)


def test_stale_evidence_gives_a_preference_and_its_reason() -> None:
    """Evidence that can have changed is not good enough to require a node."""
    view = ViewWithGaps(cluster(*disk("a", "n1"), node("n1")), {}, staleness="ShareManager h-a, last known 42 s ago")
    found = place_virt_launcher(convert(virt_launcher_pod(claims=["a"]), Pod), "vms", view, Policy())
    assert isinstance(found, Pin)
    assert (found.required, found.nodes, found.why.reason) == ((), ("n1",), Reason.EVIDENCE_NOT_CONFIRMED)
    assert found.why.sentence.endswith("did not confirm it: ShareManager h-a, last known 42 s ago")
