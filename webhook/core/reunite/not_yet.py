"""Why a VM that is apart is not migrated now: the codes, in their order. `waits` has the waits."""

from __future__ import annotations

from enum import Enum, unique

from msgspec import Struct


class NotYet(Struct, frozen=True):
    """The first rule that says no, with its sentence. `ends`: whether it is a wait that ends by itself."""

    rule: Rule
    sentence: str
    ends: bool = False

    def __str__(self) -> str:
        return f"{self.rule.value}: {self.sentence}"


@unique
class Rule(Enum):
    """Every code. They are stable: Events and `status` show them."""

    NOT_ASKED = "NotAsked"
    NOT_MOVABLE = "NotMovable"
    SEVERAL_NODES = "SeveralNodes"
    NOT_PLACEABLE = "NotPlaceable"
    KUBEVIRT_TOO_OLD = "KubeVirtTooOld"
    KUBEVIRT_CHANGES = "KubeVirtChanges"
    TARGET_NAMED = "TargetNamed"
    CANCELLED = "Cancelled"
    MOVED_AWAY = "MovedAway"
    NOT_CALM = "NotCalm"
    TOO_SOON = "TooSoon"
    FAILED = "Failed"
    NOT_ITS_TURN = "NotItsTurn"

    def says_no(self, sentence: str, *, ends: bool = False) -> NotYet:
        """Return the refusal of this rule."""
        return NotYet(self, sentence, ends)
