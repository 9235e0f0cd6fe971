"""The command demo: ask about all examples, and print the story."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final, TextIO

from webhook.core.api.kubevirt import vm_name
from webhook.demo import exchange
from webhook.demo.story import Story
from webhook.objects.cluster import Cluster

_LONGHORN_NAMESPACE: Final = "longhorn-system"


def run(out: TextIO, *, color: bool) -> int:
    """Run the demo. Returns 0 if every answer is the expected one, else 1. `color`: whether `out` takes ANSI colors.

    Raises:
        UserError: the examples can't be read, or no directory can be written.
    """
    examples = examples_directory()
    cluster = Cluster.load(examples / "cluster", longhorn_namespace=_LONGHORN_NAMESPACE)
    exchanges = asyncio.run(exchange.ask_all(examples, cluster, exchange.trust()))
    before = {f"VM {vm_name(pod)}": node for pod in cluster.all_virt_launchers() if (node := pod.spec.node_name)}
    print(*Story(color=color).lines(exchanges, before, _shown(examples)), sep="\n", file=out)
    return 1 if any(each.flaw() for each in exchanges) else 0


def examples_directory() -> Path:
    """Return manifests/examples of the checkout, or the copy in an installed distribution."""
    checkout = Path(__file__).parents[2] / "manifests" / "examples"
    return checkout if checkout.is_dir() else Path(sys.prefix) / "share" / "kubevirt-coschedule" / "examples"


def _shown(directory: Path) -> Path:
    """The directory as seen from where the user is, if it is below."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory
