"""The status subcommand: which VMs are with their share-manager, which are not, since when and why.

What a VM's row says is core's (webhook.core.observe.vm_status); where the rows come from is `live`'s or
`described`'s, how they look `text`'s, and what would bring a VM together again `plan`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from webhook.core.observe.vm_status import State, VMStatus

EXIT_TOGETHER: Final = 0
EXIT_APART: Final = 1
EXIT_UNKNOWN: Final = 2


def exit_code(rows: Sequence[VMStatus], missing: Sequence[str]) -> int:
    """For scripts: 2 where one is not there, 1 where one is apart or stuck, 2 where one could not be told, else 0."""
    if missing:
        return EXIT_UNKNOWN
    if any(row.state in (State.APART, State.STUCK) for row in rows):
        return EXIT_APART
    if any(row.state is State.UNKNOWN for row in rows):
        return EXIT_UNKNOWN
    return EXIT_TOGETHER
