"""What a rule between pods says of one node: Allowed | Refused | Undecided, and why.

Undecided is for what can't be known, or not within a bound: the caller then prefers the node and does not require it.
Invariant: Allowed is never said where kube-scheduler would refuse for the same pods and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from msgspec import Struct

from webhook.core.reasons import Reason, Why


class Passed(Struct, frozen=True):
    """The rule admits the node."""


class Rejected(Struct, frozen=True):
    """The rule refuses the node; `names` are those that its sentence tells."""

    cause: Reason
    names: Mapping[str, object]

    @property
    def why(self) -> Why:
        """The cause with its names."""
        return Why(self.cause, self.names)


class Unknown(Struct, frozen=True):
    """It can't be told whether the rule admits the node; as `Rejected`."""

    cause: Reason
    names: Mapping[str, object]

    @property
    def why(self) -> Why:
        """The cause with its names."""
        return Why(self.cause, self.names)


class Told(Struct, frozen=True):
    """What is to be said of nodes that are not looked at yet: a Refused or an Undecided without their names."""

    kind: type[Rejected | Unknown]
    cause: Reason
    names: Mapping[str, object]

    @classmethod
    def like(cls, ruling: Rejected | Unknown) -> Self:
        """What says as much as a ruling does."""
        return cls(type(ruling), ruling.cause, ruling.names)

    def of(self, node: str, **more: object) -> Rejected | Unknown:
        """The ruling on one node."""
        return self.kind(self.cause, {"node": node, **self.names, **more})


Status = Passed | Rejected | Unknown
PASSED = Passed()


def overall(rulings: Iterable[Status]) -> Status:
    """The ruling of several rules that must all admit the node: a refusal decides, whatever else can't be told."""
    undecided: Unknown | None = None
    for ruling in rulings:
        if isinstance(ruling, Rejected):
            return ruling
        if isinstance(ruling, Unknown):
            undecided = undecided or ruling
    return undecided or PASSED
