"""`make bench BENCH=rules`: what rules between pods cost one admission in a large cluster, worst cases by name.

One process, the caches of `serve` without a network. The VM wants a preference, so that after its share-manager's node
up to 256 more are judged for the short list. Of each admission the least of several rounds counts, for the machine is
shared. README.md beside this file has the figures and how to read them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import thread_time
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from filled import store_of  # noqa: E402
from sample import sample_pod  # noqa: E402
from scale import PODS, Scale, claim_name, collections, namespace  # noqa: E402
from support.objects import builders  # noqa: E402 - a script finds its neighbours after it has said where they are
from table import percentile, row, title  # noqa: E402

from webhook.core.admit import Answer, admit  # noqa: E402
from webhook.core.decision import Pin  # noqa: E402
from webhook.core.opt_in import Mode, Policy  # noqa: E402
from webhook.kube.cache.cluster_cache import ClusterCache  # noqa: E402

LONGEST_MS: Final = 5.0

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_HOSTNAME: Final = "kubernetes.io/hostname"
_ZONE: Final = "topology.kubernetes.io/zone"
_EACH_GROUP: Final = 9  # VMs with the same label `group`
_MANY_VALUES: Final = 1_000

Object = dict[str, Any]


class Plan(NamedTuple):
    """How much to measure: `calls` of each case, by caches that know nothing yet; in each round the same ones."""

    nodes: int
    vms: int
    calls: int
    rounds: int


FULL: Final = Plan(nodes=5_000, vms=9_000, calls=40, rounds=3)
QUICK: Final = Plan(nodes=300, vms=200, calls=3, rounds=1)


class Case(NamedTuple):
    """A pod under admission, by its rules, and the VMs that are there, by theirs.

    Attributes:
        free: one of so many nodes has no VM; 1: the VMs are on half of the nodes.
        own_keys: each VM that is there has a label key of its own.
        own_terms: each VM that is there has an anti-affinity term of its own against all others.
        their_terms: the same for all of them.
    """

    name: str
    apart: tuple[Object, ...] = ()
    spread: tuple[Object, ...] = ()
    free: int = 1
    own_keys: bool = False
    own_terms: bool = False
    their_terms: tuple[Object, ...] = ()


def _term(labels: Object, key: str = _HOSTNAME, **fields: Any) -> Object:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **fields}


def _spread(labels: Object, key: str = _ZONE, skew: int = 100, **fields: Any) -> Object:
    return {**_term(labels, key), "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **fields}


_WEB: Final = {"app": "web"}
_GROUP: Final = {"group": "group-0001"}
_ANYWHERE: Final = {"namespaceSelector": {}}
_VALUES: Final = {
    "matchExpressions": [{"key": "group", "operator": "In", "values": [f"none-{i:04}" for i in range(_MANY_VALUES)]}]
}

_EIGHT: Final = (
    *(_term({**_WEB, f"no-{number}": "such"}) for number in range(4)),
    *(_term({**_GROUP, **_WEB, "kubevirt.io/domain": f"vm-{number}"}) for number in range(4)),
)
CASES: Final = (
    Case("no rule"),
    Case("required anti-affinity", (_term(_GROUP),)),
    Case("anti-affinity and a spread", (_term(_GROUP),), (_spread(_WEB),)),
    Case("nearly every node refuses", (_term(_WEB),), (_spread(_WEB),), free=100),
    Case("the VMs there refuse, too", (_term(_WEB),), (_spread(_WEB),), free=100, their_terms=(_term(_WEB),)),
    Case("spread over hosts", (), (_spread(_WEB, _HOSTNAME, 1),), free=10),
    Case("taints honored", (_term(_WEB),), (_spread(_WEB, _HOSTNAME, 1, nodeTaintsPolicy="Honor"),), free=10),
    Case("eight terms and two spreads", _EIGHT, (_spread(_WEB), _spread(_GROUP, _HOSTNAME))),
    Case("a thousand values", ({**_term({}), "labelSelector": _VALUES},)),
    Case("all namespaces", (_term(_GROUP, **_ANYWHERE), _term({"group": "none"}, _ZONE, **_ANYWHERE))),
    Case("a term of its own for each VM", own_terms=True),
    Case("a label key of its own for each VM", (_term(_WEB),), (_spread(_WEB),), own_keys=True),
)
"""The worst that we could think of: what is there to look at is as much as one rule, or several, can have it."""


def _vms(case: Case, plan: Plan) -> Iterator[bytes]:
    """The pods of the VMs that are there, as little of each as is read. The share-manager's node has none."""
    busy = plan.nodes // 2 if case.free == 1 else plan.nodes - max(2, plan.nodes // case.free)
    for number in range(plan.vms):
        name = f"vm-{number:06}"
        labels = {"kubevirt.io": "virt-launcher", "kubevirt.io/domain": name, "vm.kubevirt.io/name": name, **_WEB}
        labels |= {"group": f"group-{number // _EACH_GROUP:04}"} | ({name: "own"} if case.own_keys else {})
        terms = list(case.their_terms)
        if case.own_terms:
            others = {"key": "vm.kubevirt.io/name", "operator": "NotIn", "values": [name]}
            terms.append(
                {"topologyKey": _HOSTNAME, "labelSelector": {"matchLabels": _WEB, "matchExpressions": [others]}}
            )
        pod = {
            "metadata": {"name": name, "namespace": namespace(0), "labels": labels, "resourceVersion": str(number + 1)},
            "spec": {
                "nodeName": f"node-{number % busy + 1:04}",
                "containers": [{"name": "compute", "resources": {"requests": {"memory": "1Mi"}}}],
                "affinity": {"podAntiAffinity": {_REQUIRED: terms}},
            },
            "status": {"phase": "Running"},
        }
        yield json.dumps(pod).encode()


def _known(case: Case, plan: Plan) -> ClusterCache:
    lists = {each.path: each.objects() for each in collections(Scale(claims=1, pods=1, nodes=plan.nodes))}
    return store_of({**lists, PODS: _vms(case, plan)})


def _review(case: Case, number: int) -> bytes:
    """A VM that starts; each has a uid of its own, and so other nodes for its short list."""
    pod = sample_pod([claim_name(0)])
    pod["metadata"]["labels"] |= {**_WEB, **_GROUP}
    pod["metadata"]["ownerReferences"][0]["uid"] = f"00000000-0000-0000-0000-{number:012}"
    pod["spec"].setdefault("affinity", {})["podAntiAffinity"] = {_REQUIRED: list(case.apart)}
    pod["spec"]["topologySpreadConstraints"] = list(case.spread)
    return json.dumps(builders.review(pod, namespace=namespace(0))).encode()


class Took(NamedTuple):
    """One admission: CPU time, the nodes on its short list, and whether its share-manager's node could be judged."""

    cpu_ms: float
    listed: int
    decided: bool


async def _measure(case: Case, plan: Plan) -> list[Took]:
    store = _known(case, plan)
    gc.collect()
    gc.freeze()  # as `serve` does
    return [_admission(_review(case, number), store) for number in range(plan.calls)]


def _admission(review: bytes, store: ClusterCache) -> Took:
    """What `serve` does between two turns of its event loop."""
    view = store.view()
    began = thread_time()
    answer = admit(review, view, Policy(mode=Mode.PREFERRED))
    took = thread_time() - began
    assert isinstance(answer, Answer)
    assert isinstance(answer.decision, Pin)
    [verdict] = answer.decision.node_fits
    return Took(took * 1e3, len(answer.decision.shortlist), verdict.feasible)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only show that it runs: the figures mean nothing")
    plan = QUICK if parser.parse_args().quick else FULL
    title(f"One admission, {plan.nodes:,} nodes, {plan.vms:,} VMs in its namespace: CPU ms")
    longest = 0.0
    for case in CASES:
        rounds = [asyncio.run(_measure(case, plan)) for _ in range(plan.rounds)]
        took = [min(each.cpu_ms for each in same) for same in zip(*rounds, strict=True)]
        gave_up = sum(not each.decided for each in rounds[0])
        row(f"{case.name}: median", percentile(took, 50), digits=2)
        row(f"{case.name}: longest", max(took), LONGEST_MS, digits=2)
        row(f"{case.name}: longest, with the machine's noise", max(e.cpu_ms for r in rounds for e in r), digits=2)
        row(f"{case.name}: gave up, of {plan.calls}; in the end {rounds[0][-1].listed} nodes listed", gave_up, digits=0)
        longest = max(longest, *took)
    row("longest of all", longest, LONGEST_MS, digits=2)


if __name__ == "__main__":
    main()
