"""Kubernetes objects for the fuzz: reviews that are right, and parts of pods that are nearly so.

Each shape overwrites one part of a pod, made at random from what the rules look at.
"""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any, Final

from support.drivers.serving import ROOT
from support.objects import builders

_PODS: Final = ROOT / "tests" / "cases" / "pods"
_CLAIMS: Final = ("disk", "data", "state", "cordoned", "hinted", "stopped", "block", "single", "pending", "absent")
_NODES: Final = ("node-a", "node-b", "node-c", "node-z", "", "Not A Name", "x" * 300)
KEYS: Final = (
    "metadata.name",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "a",
    "",
    "/",
    "a b",
    "\u00e9",
    "metadata.uid",
)
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", "", None)
WORDS: Final = (
    "",
    "true",
    "required",
    "preferred",
    "false",
    "0",
    "-1",
    "node-a",
    "\x00",
    "\n",
    "\u2028",
    "~1/",
    "\U0001f600",
    "-",
)
_NUMBERS: Final = (
    0,
    -1,
    1,
    100,
    101,
    2**31,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    1e308,
    -0.0,
    1.5,
    float("nan"),
    float("inf"),
)
LENGTHS: Final = (10, 1000, 10_000, 100_000)


@cache
def bases() -> tuple[str, ...]:
    """Reviews that are right: pods of every rule, most of them small, and the rendered ones."""
    pods = [builders.virt_launcher_pod(claims=[claim]) for claim in _CLAIMS]
    pods += [
        builders.virt_launcher_pod(claims=_CLAIMS[:count], opt_in=mode)
        for count in (2, 3, 10)
        for mode in ("required", "preferred")
    ]
    pods += [
        builders.virt_launcher_pod(claims=["disk", "data"], affinity=affinity)
        for affinity in (None, {}, {"nodeAffinity": None})
    ]
    pods.append(
        builders.virt_launcher_pod(
            claims=["disk"], affinity=builders.node_affinity(required=[builders.on_node("node-a")])
        )
    )
    pods += [json.loads(file.read_text()) for file in sorted(_PODS.glob("*.json"))]
    return tuple(json.dumps(builders.review(pod, uid=f"uid-{index}")) for index, pod in enumerate(pods))


def any_value(rng: Random, depth: int = 3) -> Any:
    """Some JSON value, seldom the one that belongs there."""
    kind = rng.randrange(9)
    if kind < 2 or not depth:
        return rng.choice(WORDS)
    if kind == 2:
        return rng.choice(_NUMBERS)
    if kind == 3:
        return rng.choice((None, True, False))
    if kind == 4:
        return "x" * rng.choice(LENGTHS)
    if kind == 5:
        return [any_value(rng, 0)] * rng.choice(LENGTHS[:3])
    if kind == 6:
        return [any_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS + KEYS): any_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def _requirements(rng: Random) -> Any:
    return [
        {
            "key": rng.choice(KEYS),
            "operator": rng.choice(_OPERATORS),
            "values": rng.choice((None, [], [rng.choice(_NODES)], ["node-a", "node-b"], ["5"], [rng.choice(WORDS)])),
        }
        for _ in range(rng.choice((0, 1, 1, 2)))
    ]


def _term(rng: Random) -> Any:
    parts = ("matchExpressions", "matchFields")
    return {part: _requirements(rng) for part in rng.sample(parts, rng.choice((0, 1, 1, 2)))}


def _affinity(rng: Random, pod: Any) -> None:
    terms = [_term(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 70)))]
    wishes = [{"weight": rng.choice(_NUMBERS[:8]), "preference": _term(rng)} for _ in range(rng.choice((0, 1, 3)))]
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    inner = {
        required: rng.choice(
            (None, {}, {"nodeSelectorTerms": terms}, {"nodeSelectorTerms": terms}, {"nodeSelectorTerms": None})
        ),
        preferred: rng.choice((None, wishes, wishes)),
    }
    other = {rng.choice(("podAffinity", "podAntiAffinity")): {required: rng.choice(([], [{}], None))}}
    _put(
        pod,
        "spec",
        "affinity",
        rng.choice(
            (
                None,
                {},
                {"nodeAffinity": None},
                {"nodeAffinity": inner},
                {"nodeAffinity": inner},
                {"nodeAffinity": inner, **other},
            )
        ),
    )


def _tolerations(rng: Random, pod: Any) -> None:
    fields = ("key", "operator", "value", "effect")
    words = ("", "Exists", "Equal", "Gt", "NoSchedule", "node.kubernetes.io/unschedulable", None, *WORDS)
    _put(pod, "spec", "tolerations", [{field: rng.choice(words) for field in fields} for _ in range(rng.randrange(4))])


def _volumes(rng: Random, pod: Any) -> None:
    sources = (
        lambda: {"persistentVolumeClaim": {"claimName": rng.choice((*_CLAIMS, *WORDS, None))}},
        lambda: {"persistentVolumeClaim": rng.choice(({}, None, {"claimName": "disk", "readOnly": True}))},
        lambda: {"ephemeral": rng.choice(({}, None, {"volumeClaimTemplate": {}}))},
        lambda: {"emptyDir": {}},
    )
    count = rng.choice((0, 1, 3, 10, 200))
    _put(pod, "spec", "volumes", [{"name": f"v{number}", **rng.choice(sources)()} for number in range(count)])


def _meta(rng: Random, pod: Any) -> None:
    field = rng.choice(("annotations", "labels"))
    ours = (
        builders.OPT_IN,
        builders.DECISION,
        builders.WRITTEN,
        "kubevirt.io",
        "kubevirt.io/migrationJobUID",
        "kubevirt.io/ephemeral-provisioning",
    )
    words = (*WORDS, "virt-launcher", "x" * rng.choice(LENGTHS), "\u00e9" * 130_000)
    _put(
        pod,
        "metadata",
        field,
        rng.choice(
            (
                None,
                {},
                {
                    "kubevirt.io": "virt-launcher",
                    builders.OPT_IN: "true",
                    **{rng.choice(ours): rng.choice(words) for _ in range(2)},
                },
            )
        ),
    )


_SPEC_VALUES: Final = {
    "nodeSelector": (None, {}, {"kubernetes.io/arch": "amd64"}, {"": ""}, {"kubernetes.io/arch": None}),
    "nodeName": (None, "", "node-a", "\x00", []),
    "topologySpreadConstraints": (
        None,
        [],
        [{}],
        [{"whenUnsatisfiable": "DoNotSchedule"}],
        [{"topologyKey": "\n"}],
        {},
    ),
    "resourceClaims": (None, [], [{}], ["x"], {}),
}


def _spec(rng: Random, pod: Any) -> None:
    field = rng.choice(list(_SPEC_VALUES))
    _put(pod, "spec", field, rng.choice(_SPEC_VALUES[field]))


def _put(pod: Any, parent: str, field: str, value: Any) -> None:
    if isinstance(pod, dict) and isinstance(pod.get(parent), dict):
        pod[parent][field] = value


SHAPES: Final = (_affinity, _affinity, _tolerations, _volumes, _meta, _spec)
