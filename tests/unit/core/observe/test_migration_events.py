"""The Events of the targets of live migrations, if the API server calls the webhook for them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from support.fakes.views import cluster
from support.objects.builders import (
    OWNER_UID,
    migration_target_pod,
    node,
    persistent_volume,
    persistent_volume_claim,
    review,
    share_manager,
    vm_pod,
)

from webhook.core.admit import Answer, Entry, admit
from webhook.core.observe import events
from webhook.core.observe.events import Event
from webhook.core.opt_in import Policy

Object = dict[str, Any]
HOME: Final = (
    persistent_volume_claim("disk", volume_name="pv"),
    persistent_volume("pv", claim="disk", handle="h"),
    share_manager("h", state="running", ownerID="n1"),
    node("n1"),
)


def events_of(pod: Object, *objects: Object) -> list[Event]:
    """Return the Events for the target of a migration; the share-manager of its VM is on n1."""
    body = json.dumps(review(pod)).encode()
    found = admit(body, cluster(*HOME, *objects), Policy(), Entry.MIGRATION_TARGET)
    assert isinstance(found, Answer)
    return events.events_for(found, Entry.MIGRATION_TARGET)


TARGET: Final = migration_target_pod(source="n2", claims=["disk"])
SOURCE: Final = vm_pod("running", vm="db01", uid=OWNER_UID, node="n2", claims=["disk"])
NAMED: Final = migration_target_pod(source="n2", claims=["disk"], nodeSelector={"kubernetes.io/hostname": "n3"})
TARGETS: Final = {
    "preferred": (TARGET, [SOURCE], "CoScheduledPreferred", "preferred on n1: ShareManagerOwner: claim disk: ", False),
    "a named target": (NAMED, [SOURCE], "NotCoScheduled", "TargetNamed: the migration names the node ", False),
    "at home": (
        migration_target_pod(source="n1", claims=["disk"]),
        [SOURCE],
        "NotCoScheduled",
        "ShareManagerAtSource: claim disk: ",
        False,
    ),
    "moved by somebody": (
        TARGET,
        [vm_pod("x", vm="db01", uid=OWNER_UID, node="n2", claims=["disk"], nodeSelector={"rack": "4"})],
        "NotCoScheduled",
        "SourceNodeChosen: somebody chose node n2",
        False,
    ),
    "a source that is not known": (TARGET, [], "NotCoScheduled", "SourcePodNotFound: whether somebody chose ", True),
}


@pytest.mark.parametrize(("pod", "objects", "reason", "words", "warning"), TARGETS.values(), ids=TARGETS)
def test_a_migration_target_gives_an_event_on_its_vm(
    pod: Object, objects: list[Object], reason: str, words: str, *, warning: bool
) -> None:
    """A VM that leaves its share-manager on purpose is no warning."""
    [found] = events_of(pod, *objects)
    assert (found.namespace, found.name, found.uid) == ("vms", "db01", OWNER_UID)
    assert (found.reason, found.warning) == (reason, warning)
    assert found.message.startswith(words)


def test_a_migration_target_of_a_vm_that_did_not_ask_gives_no_event() -> None:
    """As a start pod of such a VM."""
    pod = migration_target_pod(source="n2", claims=["disk"], opt_in=None)
    assert events_of(pod, SOURCE) == []
