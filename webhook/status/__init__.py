"""The status subcommand: which VMs are with their share-manager, which are not, since when and why. It only reads.

The state of a VM is the matter of `webhook.core.observe.vm_status`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.observe.vm_status import State, VMStatus

EXIT_TOGETHER: Final = 0
EXIT_APART: Final = 1
EXIT_UNKNOWN: Final = 2


def exit_code(rows: Sequence[VMStatus], missing: Sequence[str]) -> int:
    """For scripts: 2 if one does not exist, 1 if one is apart or stuck, 2 if the state of one is unknown, else 0."""
    if missing:
        return EXIT_UNKNOWN
    if any(row.state in (State.APART, State.STUCK) for row in rows):
        return EXIT_APART
    if any(row.state is State.UNKNOWN for row in rows):
        return EXIT_UNKNOWN
    return EXIT_TOGETHER
