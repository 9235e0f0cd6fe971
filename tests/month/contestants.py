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


class Contestant(NamedTuple):
    """`flags` of serve, None without the webhook; and whether reunite runs."""

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
    with tempfile.TemporaryDirectory(prefix="month-") as directory:
        is_asked = contestant.flags is not None
        with running(
            Path(directory), plan.nodes, *(contestant.flags or ()), webhook=is_asked, nodes={"allocatable": NODE}
        ) as cluster:
            return Play(cluster, plan, reunites=contestant.reunites).run()
