"""Reviews that no API server would send, made from ones that it would: case `index` of a `seed` is always the same.

Some are broken as bytes, some as JSON, some as Kubernetes objects, and some only as HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any, Final

from support.drivers.http_calls import request
from support.objects import corpus

from webhook.serving.routes import MAX_BODY_BYTES

_KEYS: Final = ("metadata.name", "kubernetes.io/arch", "a", "", "/", "a b", "\u00e9", "metadata.uid")
_WORDS: Final = (
    *("", "true", "required", "preferred", "false", "0", "-1", "node-a", "-", "Exists", "Gt", "NoSchedule"),
    *("\x00", "\n", "\u2028", "~1/", "\U0001f600", "Not A Name", "x" * 300),
)
_NUMBERS: Final = (
    *(0, -1, 1, 100, 101, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400),
    *(1e308, -0.0, 1.5, float("nan"), float("inf")),
)
_LENGTHS: Final = (10, 1000, 10_000, 100_000)
_MARKS: Final = (
    *(rb"\ud800", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x00", b"\xef\xbb\xbf"),
    *(b"\\u", b'"', b"}", b"]", b","),
)
_HTTP_SHARE: Final = 0.02  # of all cases; each takes a connection of its own
_POD_SHARE: Final = 0.7  # of the changes at random places: most of the rules look at the pod
_DEPTHS: Final = (10, 100, 990, 1100, 20_000)
_HUGE_BYTES: Final = 8 * 1024 * 1024
_HEADERS: Final = ("content_type", "content_encoding", "expect", "connection", "upgrade")
_HEADS: Final = (
    "GET / HTTP/1.1",
    "POST / HTTP/9.9",
    f"POST /{'a' * 9000} HTTP/1.1",
    "POST * HTTP/1.1",
    "CONNECT a:1 HTTP/1.1",
)


class Case:
    """One review to send, `body`, or with `raw` the bytes of an HTTP request on a connection of its own."""

    __slots__ = ("body", "raw")

    def __init__(self, body: bytes, raw: bytes | None = None) -> None:
        self.body, self.raw = body, raw


def case(seed: int, index: int) -> Case:
    """Return the review of this index."""
    rng = Random(f"{seed}-{index}")  # noqa: S311 - repeatable is what it must be
    tree = json.loads(rng.choice(bases()))
    if rng.random() < _HTTP_SHARE:
        return Case(b"", _http(rng, json.dumps(tree).encode()))
    pod = tree["request"]["object"]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        _cross(rng, pod)
    for mutate in rng.choices(_TREES, k=rng.choice((0, 0, 0, 1, 2))):
        mutate(rng, pod if rng.random() < _POD_SHARE else tree)
    body = json.dumps(tree, separators=(",", ":"), ensure_ascii=rng.random() < 0.9).encode(errors="surrogatepass")
    for change in rng.choices(_BYTES, k=rng.choice((0, 0, 0, 0, 1, 2))):
        body = change(rng, body)
    return Case(body[:MAX_BODY_BYTES])  # the server refuses a longer one by its head: `_http` has these


@cache
def bases() -> tuple[str, ...]:
    """The reviews of the corpus at the entry of start pods: right ones, and together they take every rule."""
    return tuple(json.dumps(case.review) for case in corpus.load() if case.entry == corpus.VIRT_LAUNCHER)


def _any_value(rng: Random, depth: int = 3) -> Any:
    """Some JSON value, seldom the one that belongs there."""
    kind = rng.randrange(9)
    if kind < 2 or not depth:
        return rng.choice(_WORDS)
    if kind == 2:
        return rng.choice(_NUMBERS)
    if kind == 3:
        return rng.choice((None, True, False))
    if kind == 4:
        return "x" * rng.choice(_LENGTHS)
    if kind == 5:
        return [_any_value(rng, 0)] * rng.choice(_LENGTHS[:3])
    if kind == 6:
        return [_any_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(_WORDS + _KEYS): _any_value(rng, depth - 1) for _ in range(rng.randrange(4))}


def _cross(rng: Random, pod: Any) -> None:
    """Give the pod a field of another row's pod: rules meet that no row has together."""
    other = json.loads(rng.choice(bases()))["request"]["object"]
    parent = rng.choice(("metadata", "spec", "spec"))
    if all(isinstance(each, dict) and isinstance(each.get(parent), dict) and each[parent] for each in (pod, other)):
        field = rng.choice(list(other[parent]))
        pod[parent][field] = other[parent][field]


def _pick(rng: Random, tree: Any, deeper: float = 0.85) -> tuple[Any, Any]:
    """Return (container, key) of some place in the tree; `deeper` is how likely a place inside another one is."""
    holder: Any = {"": tree}
    key: Any = ""
    while isinstance(inner := holder[key], dict | list) and inner and (holder is tree or rng.random() < deeper):
        holder, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    return holder, key


def _replace(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    holder[key] = _any_value(rng)


def _odd_leaf(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree, deeper=1)
    holder[key] = rng.choice((*_WORDS, *_NUMBERS))


def _long(rng: Random, tree: Any) -> None:
    """Repeat the items of a list, or a text, up to a length in characters."""
    holder, key = _pick(rng, tree)
    if isinstance(value := holder[key], str | list) and value:
        holder[key] = value * (rng.choice(_LENGTHS) // len(json.dumps(value)) + 1)


def _remove(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    if holder is not tree:
        del holder[key]


def _retype(rng: Random, tree: Any) -> None:
    """Replace a value by the same content of another type, or by null: a list, a text, its only item."""
    holder, key = _pick(rng, tree)
    value = holder[key]
    only = (
        next(iter(value.values() if isinstance(value, dict) else value), None)
        if isinstance(value, dict | list)
        else {"a": value}
    )
    holder[key] = rng.choice(([value], str(value)[:1000], only, [value] * 3, None))


def _swap(rng: Random, tree: Any) -> None:
    """Swap two fields of the envelope."""
    asked = tree.get("request") if isinstance(tree, dict) else None
    if isinstance(asked, dict) and len(asked) > 1:
        one, other = rng.sample(list(asked), 2)
        asked[one], asked[other] = asked[other], asked[one]


def _graft(rng: Random, tree: Any) -> None:
    """Put one part of the tree in the place of another part."""
    source, source_key = _pick(rng, tree)
    part = json.loads(json.dumps(source[source_key]))
    holder, key = _pick(rng, tree)
    holder[key] = part


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
    place = body.find(b"{", rng.randrange(len(body))) + 1
    key = rng.choice(("uid", "request", "object", "metadata", "spec", "affinity", "kind", "annotations", "name"))
    return (
        body[:place] + json.dumps(key).encode() + b":" + json.dumps(_any_value(rng, 1)).encode() + b"," + body[place:]
    )


def _deep(rng: Random, body: bytes) -> bytes:
    """Add a key with a deeply nested value."""
    depth, (left, right) = rng.choice(_DEPTHS), rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    place = body.find(b"{", rng.randrange(len(body))) + 1
    key = rng.choice((b'"x":', b'"object":', b'"annotations":', b'"affinity":', b'"resourceClaims":'))
    return body[:place] + key + left * depth + b"1" + right * depth + b"," + body[place:]


def _http(rng: Random, body: bytes) -> bytes:
    """Return a request that is wrong as HTTP."""
    data = request(body)
    head, _, _ = data.partition(b"\r\n\r\n")
    whole: tuple[Callable[[], bytes], ...] = (
        lambda: _flip(rng, head) + b"\r\n\r\n" + body,
        lambda: _cut(rng, data),
        lambda: _mark(rng, head) + b"\r\n\r\n" + body,
        lambda: rng.randbytes(rng.choice((1, 100, 5000))),
        lambda: request(body, content_length=str(rng.choice((-1, 0, 1, len(body) - 1, len(body) + 1, 10**30)))),
        lambda: request(b"x" * _HUGE_BYTES),
        lambda: request(body, transfer_encoding=rng.choice(("chunked", "gzip", "chunked, chunked"))),
        lambda: request(body, **{rng.choice(_HEADERS): rng.choice(("", "x", "100-continue", "\xff", "close", "h2c"))}),
        lambda: request(body, head=rng.choice(_HEADS)),
    )
    return rng.choice(whole)()


def cases(seed: int, count: int) -> Iterator[Case]:
    """Return the first `count` cases."""
    return (case(seed, index) for index in range(count))


_TREES: Final = (_replace, _replace, _odd_leaf, _odd_leaf, _long, _remove, _retype, _swap, _graft)
_BYTES: Final = (_flip, _flip, _cut, _mark, _twice, _deep)
