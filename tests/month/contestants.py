"""Who plays the month: the webhook in each of its modes, with reunite, and nobody."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from month.plan import Plan
from month.play import Play
from support.kubevirt.cluster import running

NODE: Final = {"memory": "128Gi"}
MIGRATIONS: Final = {"parallelMigrationsPerCluster": 20, "parallelOutboundMigrationsPerNode": 10}
"""More at once than by default, because each wait for a place takes seconds: a drain ends the same, and sooner."""
HOUR_SECONDS: Final = 1.0


class Contestant(NamedTuple):
    """`flags` of serve, None without the webhook; and whether reunite runs each hour in which a VM is apart."""

    flags: Sequence[str] | None
    reunites: bool = False


CONTESTANTS: Final[Mapping[str, Contestant]] = {
    "none": Contestant(None),
    "required": Contestant(("--mode=required",)),
    "preferred": Contestant(("--mode=preferred",)),
    "reunite": Contestant((), reunites=True),
}


def play(name: str, plan: Plan) -> dict[str, Any]:
    """A contestant's month on a control plane of its own."""
    contestant = CONTESTANTS[name]
    hour_seconds = HOUR_SECONDS if contestant.reunites else None
    with tempfile.TemporaryDirectory(prefix="month-") as directory:
        parts: dict[str, Any] = {"nodes": {"allocatable": NODE}, "configuration": {"migrations": MIGRATIONS}}
        is_asked = contestant.flags is not None
        with running(Path(directory), plan.nodes, *(contestant.flags or ()), webhook=is_asked, **parts) as cluster:
            return Play(cluster, plan, hour_seconds=hour_seconds).run()
