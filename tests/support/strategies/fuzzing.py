"""Reviews that no API server would send, made from ones that it would: case `index` of a `seed` is always the same.

Some are broken as bytes, some as JSON, and some as Kubernetes objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any, Final

from support.objects import corpus

from webhook.core.pod_limits import PART_BYTES_MAX
from webhook.serving.routes import MAX_BODY_BYTES

_KEYS: Final = ("metadata.name", "kubernetes.io/arch", "a", "", "/", "a b", "\u00e9", "metadata.uid")
_LEAVES: Final = (
    *("", "true", "required", "preferred", "false", "0", "-1", "node-a", "-", "Exists", "Gt", "NoSchedule"),
    *("\x00", "\n", "\u2028", "~1/", "\U0001f600", "Not A Name", "x" * 300),
    *(0, -1, 1, 100, 101, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(1e308, -0.0, 1.5, float("nan"), float("inf"), None, True, False),
)
_MARKS: Final = (
    *(rb"\ud800", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00", b"\xef\xbb\xbf"),
    *(b"\\u", b'"', b"}", b"]", b","),
)
_TWICE: Final = ("uid", "request", "object", "metadata", "spec", "affinity", "kind", "annotations", "name")
_POD_SHARE: Final = 0.7  # of the changes at random places: most of the rules look at the pod
_LONG_SHARE: Final = 0.1  # of the reviews: a long pod is read field by field
_DEPTHS: Final = (10, 100, 990, 1100, 20_000)


def cases(seed: int, count: int) -> Iterator[bytes]:
    """Return the first `count` reviews."""
    return (_case(Random(f"{seed}-{index}")) for index in range(count))  # noqa: S311 - repeatable is what it must be


def _case(rng: Random) -> bytes:
    tree = json.loads(rng.choice(bases()))
    pod = tree["request"]["object"]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        _cross(rng, pod)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        _replace(rng, pod if rng.random() < _POD_SHARE else tree)
    body = json.dumps(tree, separators=(",", ":"), ensure_ascii=rng.random() < 0.9).encode(errors="surrogatepass")
    for change in rng.choices((_flip, _flip, _cut, _mark, _twice, _deep), k=rng.choice((0, 0, 0, 0, 1, 2))):
        body = change(rng, body)
    if rng.random() < _LONG_SHARE:
        body = _inserted(rng, body, b'"x":"' + b"x" * PART_BYTES_MAX + b'"')
    return body[:MAX_BODY_BYTES]  # the server refuses a longer one by its head


@cache
def bases() -> tuple[str, ...]:
    """The reviews of the corpus at the entry of start pods: right ones, and together they take every rule."""
    return tuple(json.dumps(case.review) for case in corpus.load() if case.entry == corpus.VIRT_LAUNCHER)


def _cross(rng: Random, pod: Any) -> None:
    """Give the pod a field of another row's pod: rules meet that no row has together."""
    other = json.loads(rng.choice(bases()))["request"]["object"]
    parent = rng.choice(("metadata", "spec", "spec"))
    if all(isinstance(each, dict) and isinstance(each.get(parent), dict) and each[parent] for each in (pod, other)):
        field = rng.choice(list(other[parent]))
        pod[parent][field] = other[parent][field]


def _replace(rng: Random, tree: Any) -> None:
    """Remove a value, or put another in its place: any, another part of the tree, or the same in a list or as text."""
    holder, key = _pick(rng, tree)
    value = holder[key]
    source, source_key = _pick(rng, tree)
    part = json.loads(json.dumps(source[source_key]))
    if holder is not tree and rng.random() < 0.2:
        del holder[key]
    else:
        holder[key] = rng.choice(
            (_any_value(rng), rng.choice(_LEAVES), part, [value] * 3, str(value)[:1000], "x" * 100_000)
        )


def _pick(rng: Random, tree: Any) -> tuple[Any, Any]:
    """Return (container, key) of some place in the tree."""
    holder: Any = {"": tree}
    key: Any = ""
    while isinstance(inner := holder[key], dict | list) and inner and (key == "" or rng.random() < 0.85):
        holder, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    return holder, key


def _any_value(rng: Random, depth: int = 3) -> Any:
    """Some JSON value, seldom the one that belongs there."""
    kind = rng.randrange(4)
    if kind == 0 or not depth:
        return rng.choice(_LEAVES)
    if kind == 1:
        return [_any_value(rng, 0)] * rng.choice((10, 1000, 10_000))
    if kind == 2:
        return [_any_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_KEYS): _any_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def _flip(rng: Random, body: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(rng.choice((1, 1, 3, 10))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: Random, body: bytes) -> bytes:
    return body[: rng.randrange(len(body))] or b"{"


def _mark(rng: Random, body: bytes) -> bytes:
    place = rng.randrange(len(body))
    return body[:place] + rng.choice(_MARKS) + body[place + rng.randrange(3) :]


def _twice(rng: Random, body: bytes) -> bytes:
    """Write a key twice, in the object that begins after some brace."""
    return _inserted(
        rng, body, json.dumps(rng.choice(_TWICE)).encode() + b":" + json.dumps(_any_value(rng, 1)).encode()
    )


def _deep(rng: Random, body: bytes) -> bytes:
    """Add a key with a deeply nested value."""
    depth, (left, right) = rng.choice(_DEPTHS), rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    key = rng.choice((b'"x":', b'"object":', b'"annotations":', b'"affinity":', b'"resourceClaims":'))
    return _inserted(rng, body, key + left * depth + b"1" + right * depth)


def _inserted(rng: Random, body: bytes, field: bytes) -> bytes:
    place = body.find(b"{", rng.randrange(len(body))) + 1
    return body[:place] + field + b"," + body[place:]
