"""Status: what a plugin says of a pod or of one node: Passed | Rejected | Unknown, and the reason.

Upstream: Status in pkg/scheduler/framework/interface.go. Unknown is for what can't be known: the webhook
then prefers the node and does not require it.
Invariant: a plugin never answers Passed if kube-scheduler would reject the same pod for the same pods and nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from webhook.core.reasons import Reason, Why


class Passed(Struct, frozen=True):
    """The plugin accepts the node."""


class _NotPassed(Struct, frozen=True):
    """`names` are the values that the reason's sentence needs."""

    cause: Reason
    names: Mapping[str, object]

    @property
    def why(self) -> Why:
        """The reason with its values."""
        return Why(self.cause, self.names)


class Rejected(_NotPassed, frozen=True):
    """The plugin rejects the node."""


class Unknown(_NotPassed, frozen=True):
    """The plugin can't tell whether kube-scheduler would accept the node."""


Status = Passed | Rejected | Unknown
PASSED: Final = Passed()


def merge(statuses: Iterable[Status]) -> Status:
    """Return the status of plugins that must all accept the node: the first Rejected, else the first Unknown."""
    unknown: Unknown | None = None
    for status in statuses:
        if isinstance(status, Rejected):
            return status
        if isinstance(status, Unknown):
            unknown = unknown or status
    return unknown or PASSED
