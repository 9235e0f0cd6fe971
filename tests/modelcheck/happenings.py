"""What happens to a replica of the webhook, and what does not change meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from modelcheck.pods import Shape, Terms


class Ask(NamedTuple):
    """The API server asks about the pod of a VM."""

    vm: int
    shape: Shape


class Show(NamedTuple):
    """A watch, or the list at the start, shows the pod of a VM. The phase: empty, UNSCHEDULABLE, or its node."""

    vm: int
    shape: Shape
    terms: Terms
    phase: str


class ShowOther(NamedTuple):
    """A watch shows a pod on a node that never came to the webhook."""

    name: str
    node: str


class ShowGone(NamedTuple):
    """A watch shows that the pod of a VM is no more."""

    vm: int


class Expire(NamedTuple):
    """The time of an answer for this VM's pod is over."""

    vm: int


Happening = Ask | Show | ShowOther | ShowGone | Expire


class Cluster(NamedTuple):
    """What does not change: the places of each node, the number of replicas, and of nodes on which no VM fits."""

    places: tuple[tuple[str, int], ...]
    replicas: int
    full_nodes: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes with places."""
        return tuple(name for name, _ in self.places)


def renumbered(happening: Happening, to: tuple[int, ...]) -> Happening:
    """Return what happens, if VM 0 had the number to[0], and so on."""
    return happening if isinstance(happening, ShowOther) else happening._replace(vm=to[happening.vm])
