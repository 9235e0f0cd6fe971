"""What a rule between pods says of one node: Allowed | Refused | Undecided, and why.

Undecided is for what can't be known, or not within a bound: the caller then prefers the node and does not require it.
Invariant: Allowed is never said where kube-scheduler would refuse for the same pods and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from msgspec import Struct

from webhook.core.reasons import Reason, Why


class Allowed(Struct, frozen=True):
    """The rule admits the node."""


class Refused(Struct, frozen=True):
    """The rule refuses the node; `names` are those that its sentence tells."""

    cause: Reason
    names: Mapping[str, object]

    @property
    def why(self) -> Why:
        """The cause with its names."""
        return Why(self.cause, self.names)


class Undecided(Struct, frozen=True):
    """It can't be told whether the rule admits the node; as `Refused`."""

    cause: Reason
    names: Mapping[str, object]

    @property
    def why(self) -> Why:
        """The cause with its names."""
        return Why(self.cause, self.names)


class Told(Struct, frozen=True):
    """What is to be said of nodes that are not looked at yet: a Refused or an Undecided without their names."""

    kind: type[Refused | Undecided]
    cause: Reason
    names: Mapping[str, object]

    @classmethod
    def like(cls, ruling: Refused | Undecided) -> Self:
        """What says as much as a ruling does."""
        return cls(type(ruling), ruling.cause, ruling.names)

    def of(self, node: str, **more: object) -> Refused | Undecided:
        """The ruling on one node."""
        return self.kind(self.cause, {"node": node, **self.names, **more})


Ruling = Allowed | Refused | Undecided
ALLOWED = Allowed()


def overall(rulings: Iterable[Ruling]) -> Ruling:
    """The ruling of several rules that must all admit the node: a refusal decides, whatever else can't be told."""
    undecided: Undecided | None = None
    for ruling in rulings:
        if isinstance(ruling, Refused):
            return ruling
        if isinstance(ruling, Undecided):
            undecided = undecided or ruling
    return undecided or ALLOWED
