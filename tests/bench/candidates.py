"""`make bench BENCH=candidates`: what the candidates of the page take of memory and of the event loop.

The caches are filled with virt-launcher pods as large as real ones. All times are CPU time. README.md beside this file
has the figures.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import gc
import json
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, Final, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import stored  # noqa: E402 - a script finds its neighbours after it has said where they are
from support.models.candidate_caches import Object, filled  # noqa: E402
from support.models.model_api import event  # noqa: E402
from support.objects import builders  # noqa: E402
from support.objects.fleets import LATEST, disk, served  # noqa: E402

from webhook.core.opt_in import Policy  # noqa: E402
from webhook.core.view import Kind  # noqa: E402
from webhook.kube.cache.caches import Caches  # noqa: E402
from webhook.kube.candidates import CandidateTracker  # noqa: E402
from webhook.page.candidates import CandidateFeed, CandidateQuery  # noqa: E402


class Plan(NamedTuple):
    """How many of each."""

    vms: int
    nodes: int
    rounds: int


FULL: Final = Plan(vms=5000, nodes=200, rounds=5)
QUICK: Final = Plan(vms=60, nodes=5, rounds=1)
_LISTED: Final = 20  # as the page lists at first


def fleet(plan: Plan) -> Iterator[Object]:
    """VMs spread over nodes, none of which asks; one of ten is apart."""
    template = stored.launcher()
    del template["metadata"]["annotations"][builders.OPT_IN]
    for number in range(plan.nodes):
        yield builders.node(f"node-{number:03}")
        yield builders.longhorn_node(f"node-{number:03}")
    for number in range(plan.vms):
        claim, home = f"vm-{number:05}-root", f"node-{number % plan.nodes:03}"
        yield from disk(claim)
        yield from served(claim, home if number % 10 else f"node-{(number + 1) % plan.nodes:03}")
        yield pod_of(template, number, claim, home)


def pod_of(template: Object, number: int, claim: str, node: str) -> Object:
    """The pod of one VM."""
    pod, name, uid = copy.deepcopy(template), f"vm-{number:05}", f"00000000-0000-0000-0000-{number:012}"
    meta, spec = pod["metadata"], pod["spec"]
    meta |= {"name": f"virt-launcher-{name}-x7k2p", "namespace": "vms"}
    meta["ownerReferences"][0] |= {"name": name, "uid": uid}
    meta["labels"] |= {"vm.kubevirt.io/name": name, "kubevirt.io/created-by": uid}
    others = [volume for volume in spec["volumes"] if "persistentVolumeClaim" not in volume]
    spec |= {"nodeName": node, "volumes": [*others, builders.claim_volume("rootdisk", claim)]}
    return pod


class Reader:
    """A page, as the server sees it."""

    def __init__(self, caches: Caches) -> None:
        self.tracker = CandidateTracker(caches, Policy())
        self.feed = CandidateFeed(self.tracker)

    async def asks(self, *, after_pass: bool = False, **query: Any) -> tuple[float, float]:
        """(CPU milliseconds of an answer, the longest turn of the event loop for it); after a pass or without."""
        if after_pass:
            self.tracker._passed_at = 0.0
        longest, before, began = 0.0, process_time(), process_time()
        answer = asyncio.ensure_future(self.feed.body(CandidateQuery(**query)))
        while not answer.done():
            await asyncio.sleep(0)
            now = process_time()
            longest, before = max(longest, now - before), now
        return (process_time() - began) * 1e3, longest * 1e3


async def measured(plan: Plan) -> list[tuple[str, float]]:
    """All of it."""
    caches = filled(fleet(plan))
    records = [each for _, each in CandidateTracker(caches, Policy())._view.all_virt_launchers()]
    templates = [each.template for each in records if each.template]
    own = sum(sys.getsizeof(template) + sys.getsizeof(template[0]) for template in templates)
    common = {id(template[1]): sys.getsizeof(template[1]) for template in templates}
    gc.collect()
    gc.freeze()
    reader = Reader(caches)
    first = await reader.asks()
    folded, listed, steady, changed = [], [], [], []
    for number in range(plan.rounds):
        steady.append(await reader.asks(after_pass=True))
        folded.append(await reader.asks())
        listed.append(await reader.asks(limit=_LISTED))
        pods = caches[Kind.SHARE_MANAGER_POD]
        pods.feed(event("MODIFIED", moved(number)), asyncio.get_running_loop().time())
        changed.append(await reader.asks(after_pass=True))
    return [
        ("memory of a VM's own part of its template, bytes", own / len(templates)),
        ("parts that VMs have in common", len(common)),
        ("all templates, KiB", (own + sum(common.values())) / 1024),
        ("the first pass, ms", first[0]),
        ("its longest turn of the event loop, ms", first[1]),
        *figures("a pass after which nothing has changed", steady),
        *figures("a pass after one share-manager has moved", changed),
        *figures("an answer without a pass and without rows", folded),
        *figures(f"an answer without a pass and with {_LISTED} decisions", listed),
    ]


def moved(number: int) -> Object:
    """A share-manager on another node."""
    pod = served(f"vm-{number:05}-root", f"node-{(number + 3) % 5:03}", LATEST)[1]
    pod["metadata"]["resourceVersion"] = str(10_000_000 + number)
    return json.loads(json.dumps(pod))  # type: ignore[no-any-return]


def figures(title: str, found: list[tuple[float, float]]) -> list[tuple[str, float]]:
    """The rows to print: the median of each of both figures."""
    took, longest = (statistics.median(each) for each in zip(*found, strict=True))
    return [(f"{title}, ms", took), ("its longest turn of the event loop, ms", longest)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    found = asyncio.run(measured(plan))
    sys.stdout.write(f"{plan.vms} VMs on {plan.nodes} nodes, {plan.rounds} rounds\n\n")
    for title, value in found:
        sys.stdout.write(f"{title:66}{value:10.2f}\n")


if __name__ == "__main__":
    main()
