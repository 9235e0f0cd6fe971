"""Reviews that no API server would send, made from ones that it would: case `index` of a `seed` is always the same.

Some are broken as bytes, some as JSON, some as Kubernetes objects, and some only as HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from support.drivers.http_calls import request
from support.strategies.fuzz_shapes import SHAPES, WORDS, any_value, bases

_MARKS: Final = (
    rb"\ud800",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x00",
    b"\xef\xbb\xbf",
    b"\\u",
    b'"',
    b"}",
    b"]",
    b",",
)
_HTTP_SHARE: Final = 0.02  # of all cases; each takes a connection of its own
_POD_SHARE: Final = 0.7  # of the changes at random places: most of the rules look at the pod
_DEPTHS: Final = (10, 100, 990, 1100, 20_000)
_HUGE_BYTES: Final = 8 * 1024 * 1024


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
    for mutate in rng.choices(SHAPES, k=rng.choice((0, 1, 1, 2, 4))):
        mutate(rng, pod)
    for mutate in rng.choices(_TREES, k=rng.choice((0, 0, 0, 1, 2))):
        mutate(rng, pod if rng.random() < _POD_SHARE else tree)
    body = json.dumps(tree, separators=(",", ":"), ensure_ascii=rng.random() < 0.9).encode(errors="surrogatepass")
    for mutate in rng.choices(_BYTES, k=rng.choice((0, 0, 0, 0, 1, 2))):
        body = mutate(rng, body)
    return Case(body)


def _pick(rng: Random, tree: Any) -> tuple[Any, Any]:
    """Return (container, key) of some place in the tree."""
    holder, key = {"": tree}, ""
    while isinstance(inner := holder[key], dict | list) and inner and (holder is tree or rng.random() < 0.85):
        holder, key = inner, rng.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    return holder, key


def _replace(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    holder[key] = any_value(rng)


def _null(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    holder[key] = None


def _remove(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    if holder is not tree:
        del holder[key]


def _retype(rng: Random, tree: Any) -> None:
    """Replace a value by the same content of another type: a list, a text, its only item."""
    holder, key = _pick(rng, tree)
    value = holder[key]
    only = (
        next(iter(value.values() if isinstance(value, dict) else value), None)
        if isinstance(value, dict | list)
        else {"a": value}
    )
    holder[key] = rng.choice(([value], str(value)[:1000], only, [value] * 3))


def _swap(rng: Random, tree: Any) -> None:
    """Swap two fields of the envelope."""
    asked = tree.get("request")
    if isinstance(asked, dict) and len(asked) > 1:
        one, other = rng.sample(list(asked), 2)
        asked[one], asked[other] = asked[other], asked[one]


def _rename(rng: Random, tree: Any) -> None:
    holder, key = _pick(rng, tree)
    if isinstance(holder, dict) and holder is not tree and isinstance(key, str):
        holder[rng.choice((key.upper(), key + "s", rng.choice(WORDS)))] = holder.pop(key)


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


def _repeat(rng: Random, body: bytes) -> bytes:
    start = rng.randrange(len(body))
    end = start + rng.choice((1, 10, 100, 1000))
    return body[:end] + body[start:end] * rng.choice((1, 1, 50)) + body[end:]


def _mark(rng: Random, body: bytes) -> bytes:
    place = rng.randrange(len(body))
    return body[:place] + rng.choice(_MARKS) + body[place + rng.randrange(3) :]


def _twice(rng: Random, body: bytes) -> bytes:
    """Write a key twice, in the object that begins after some brace."""
    place = body.find(b"{", rng.randrange(len(body))) + 1
    key = rng.choice(("uid", "request", "object", "metadata", "spec", "affinity", "kind", "annotations", "name"))
    return body[:place] + json.dumps(key).encode() + b":" + json.dumps(any_value(rng, 1)).encode() + b"," + body[place:]


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
        lambda: _repeat(rng, head) + b"\r\n\r\n" + body,
        lambda: rng.randbytes(rng.choice((1, 100, 5000))),
        lambda: request(body, content_length=str(rng.choice((-1, 0, 1, len(body) - 1, len(body) + 1, 10**30)))),
        lambda: request(body, content_length=str(_HUGE_BYTES)),
        lambda: request(b"x" * _HUGE_BYTES),
        lambda: request(body, transfer_encoding=rng.choice(("chunked", "gzip", "chunked, chunked"))),
        lambda: request(
            body,
            **{
                rng.choice(("content_type", "content_encoding", "expect", "connection", "upgrade")): rng.choice(
                    ("", "x", "100-continue", "\xff", "close", "h2c", "a/b; charset=\xff")
                )
            },
        ),
        lambda: request(
            body,
            head=rng.choice(
                (
                    "GET / HTTP/1.1",
                    "POST / HTTP/9.9",
                    f"POST /{'a' * 9000} HTTP/1.1",
                    "POST * HTTP/1.1",
                    "CONNECT a:1 HTTP/1.1",
                )
            ),
        ),
        lambda: request(body, head="POST /mutate/virt-launcher HTTP/1.0") + data,
    )
    return rng.choice(whole)()


def cases(seed: int, count: int) -> Iterator[Case]:
    """Return the first `count` cases."""
    return (case(seed, index) for index in range(count))


_TREES: Final = (_replace, _replace, _null, _remove, _retype, _swap, _rename, _graft)
_BYTES: Final = (_flip, _flip, _cut, _repeat, _mark, _twice, _deep)
