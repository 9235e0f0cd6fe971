"""An index always equals one that was made from the objects of its cache."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fakes.watching import RESOURCES, Driver, Says, Shown, lists, pages, refuses
from support.models.model_api import event, refusal
from support.objects import builders

from webhook.core.view import Kind
from webhook.kube.informer.store import Index, Indexer
from webhook.kube.records.objects import NodeIndex
from webhook.kube.wire import Decoders

KEYS: Final = ("a", "b", "c", "d")
NOBODY: Final = "nobody"


def volume(name: str, variant: int) -> dict[str, Any]:
    """A PersistentVolume: of its own name, of another, of another's name; of no claim; of another driver."""
    handles = {"handle": name}, {"handle": "h1"}, {"handle": "h2"}, {"handle": "a"}, {"driver": None}
    found = builders.persistent_volume(name, claim="disk", **handles[variant % 5])
    return found if variant < 5 else {**found, "spec": {**found["spec"], "claimRef": None}}


def node(name: str, variant: int) -> dict[str, Any]:
    """A node: cordoned or not, made by Karpenter or not."""
    labels = {} if variant % 4 else {"karpenter.sh/nodepool": "default"}
    return builders.node(name, cordoned=variant < 5, labels=labels)


Describe = Callable[[str, int], dict[str, Any]]
DESCRIBED: Final[dict[str, tuple[Kind, type[Index], Describe]]] = {
    "volumes by handle": (Kind.PERSISTENT_VOLUME, Indexer, volume),
    "nodes": (Kind.NODE, NodeIndex, node),
}
each_index: Final = pytest.mark.parametrize(("kind", "index", "describe"), DESCRIBED.values(), ids=DESCRIBED)
STEPS: Final = st.lists(st.tuples(st.sampled_from(KEYS), st.none() | st.integers(0, 9)), max_size=20)
"""Which object changes, and to which variant of it; None deletes it."""


def says(index: Any) -> Any:
    """All that an index says; fails where it contradicts itself."""
    if isinstance(index, NodeIndex):
        return _names(index), index.usable, index.from_karpenter
    assert isinstance(index, Indexer)
    assert index.index_keys(NOBODY) == ()
    assert all(sorted(set(keys)) == sorted(index.index_keys(about)) for about, keys in index._keys.items())
    assert all(index._keys.values()), "an empty group is kept"
    return {about: sorted(keys) for about, keys in index._keys.items()}


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=80))
def test_a_value_can_have_many_keys(steps: list[tuple[int, bool]]) -> None:
    """A claim that all VMs of a namespace mount."""
    index, there = Indexer(lambda _, record: record), dict[str, tuple[str]]()
    for number, drops in [*((each, False) for each in range(12)), *steps]:
        key = f"vms/vm-{number}"
        if not drops:
            there[key] = index.put(key, there.get(key), ("tools",))
        elif key in there:
            index.drop(key, there.pop(key))
        assert sorted(index.index_keys("tools")) == sorted(there)
    for key, record in there.items():
        index.drop(key, record)
    assert says(index) == {}


def _names(index: NodeIndex) -> list[str]:
    assert len(set(index.keys)) == len(index.keys)
    assert {name: index.keys[place] for name, place in index._positions.items()} == {name: name for name in index.keys}
    return sorted(index.keys)


def new_index(kind: Kind) -> Any:
    """An empty index of this kind's cache."""
    make = RESOURCES[kind].index
    assert make is not None
    return make()


def of(kind: Kind, objects: Mapping[str, Any]) -> Any:
    """What an index says that is made from these records alone."""
    made = new_index(kind)
    for key, record in objects.items():
        made.put(key, None, record)
    return says(made)


def kept(kind: Kind, described: dict[str, Any]) -> tuple[str, Any]:
    """The cache's key and its record of an object."""
    resource = RESOURCES[kind]
    wire: Any = Decoders(resource.wire).object(json.dumps(described).encode())
    return resource.key_of(wire.metadata), resource.transform(wire)


@each_index
@given(steps=STEPS)
def test_after_any_changes_an_index_equals_a_new_one(
    kind: Kind, index: type[Index], describe: Describe, steps: list[tuple[str, int | None]]
) -> None:
    """Objects are added, change their values, stay as they are, and are deleted."""
    made, objects = new_index(kind), dict[str, Any]()
    for name, variant in steps:
        key, record = kept(kind, describe(name, variant or 0))
        if variant is not None:
            objects[key] = made.put(key, objects.get(key), record)
        elif key in objects:
            made.drop(key, objects.pop(key))
        assert says(made) == of(kind, objects)
    assert isinstance(made, index)


# In a cache.


class Unshown(Driver):
    """A Driver of a cache of any kind, without the check of what it shows."""

    @property
    def shown(self) -> Shown:
        """The check is off: an empty state."""
        return {}


def versioned(describe: Describe, name: str, variant: int, version: int = 5) -> dict[str, Any]:
    """As an API server sends it."""
    described = describe(name, variant)
    return {**described, "metadata": {**described["metadata"], "resourceVersion": str(version)}}


def told(machine: Any) -> Any:
    """What the cache's index says; fails where that is not what its objects say."""
    found = says(machine.index)
    assert found == of(machine.resource.kind, machine.objects)
    return found


LISTS: Final[dict[str, Callable[..., Sequence[Says]]]] = {
    "streamed": lambda *objects, version: [lists(*objects, version=version)],
    "by pages": lambda first, *rest, version: [
        pages(first, version=version, continue_="more"),
        pages(*rest, version=version),
    ],
}


@pytest.mark.parametrize("how", LISTS)
@each_index
def test_an_index_follows_its_cache(kind: Kind, index: type[Index], describe: Describe, how: str) -> None:
    """The cache gets a list, changes, a 410 and a second list. Nothing of the first list is left."""
    driver = Unshown(resource=RESOURCES[kind])
    if how == "by pages":
        driver.play(refuses(refusal(400, "BadRequest")))
    driver.play(*LISTS[how](*(versioned(describe, name, at) for at, name in enumerate("abc")), version=10))
    before = told(driver.machine)
    assert isinstance(driver.machine.index, index)
    changes = [
        event("MODIFIED", versioned(describe, "a", 1, 11)),
        event("DELETED", versioned(describe, "b", 1, 12)),
        event("ADDED", versioned(describe, "d", 2, 13)),
    ]
    driver.ask()
    driver.machine.opened(200, None, driver.now)
    for change in changes:
        driver.feed(change)
        told(driver.machine)
    assert told(driver.machine) != before
    driver.machine.ended(driver.now, "reset")
    driver.play(refuses(refusal(410, "Expired")))
    told(driver.machine)
    driver.play(*LISTS[how](versioned(describe, "d", 3), versioned(describe, "e", 3), version=20))
    assert len(driver.machine.objects) == 2
    assert not driver.machine._changed, "the keys of a list that is whole are kept"
    told(driver.machine)
