"""A model of one collection at an API server: objects, resourceVersions, a history that is forgotten, wire bytes.

Pure and synchronous: what list and watch would be answered, as kube-apiserver (storage/cacher, endpoints/handlers) does
it, without a socket. Written apart from `webhook`: the caches are held against it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

Object = dict[str, Any]
Name = tuple[str, str]
END_OF_LIST: Final = "k8s.io/initial-events-end"


class Answer(NamedTuple):
    """An answer that is all there: an HTTP status and a body."""

    status: int
    body: bytes


class Change(NamedTuple):
    """One line of the history."""

    revision: int
    type: str
    object: Object


def status(
    code: int, reason: str = "Trouble", message: str = "for a test", *, retry_after: float = 0, causes: str = ""
) -> Object:
    """A metav1.Status that refuses."""
    details: Object = {"retryAfterSeconds": retry_after} if retry_after else {}
    if causes:
        details["causes"] = [{"reason": causes}]
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


def refusal(code: int, *words: str, **more: Any) -> Answer:
    """`status` as an answer."""
    return Answer(code, json.dumps(status(code, *words, **more)).encode())


def too_large() -> Answer:
    """What a server says of a resourceVersion that it has not come to yet."""
    return refusal(504, "Timeout", "Too large resource version", retry_after=1, causes="ResourceVersionTooLarge")


def event(type_: str, what: Object) -> bytes:
    """One line of a watch."""
    return msgspec.json.encode({"type": type_, "object": what}) + b"\n"


def bookmark(revision: int | str, *, end: bool = False) -> bytes:
    """A bookmark; `end` says that the initial events were all."""
    metadata: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
    if end:
        metadata["annotations"] = {END_OF_LIST: "true"}
    return event("BOOKMARK", {"metadata": metadata, "spec": {}, "status": {}})


def page(items: list[Object], revision: int | str, continue_: str = "") -> bytes:
    """A page of a list; `continue_` where there is more."""
    metadata = {"resourceVersion": str(revision), **({"continue": continue_} if continue_ else {})}
    return msgspec.json.encode({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})


class Watch:
    """A watch that is open. `woken` is called when there is more to say."""

    def __init__(self, first: bytes) -> None:
        self._unsaid = first
        self.woken: Callable[[], None] = lambda: None

    def say(self, more: bytes) -> None:
        """Have something to say."""
        self._unsaid += more
        self.woken()

    def said(self) -> bytes:
        """What was not said before."""
        unsaid, self._unsaid = self._unsaid, b""
        return unsaid


class Collection:
    """One collection.

    Attributes:
        streaming: whether a list by watch is "served", "refused" or "ignored".
        page_objects: how many objects a page has at most, whatever was asked for.
        lags: whether open watches do not get the changes of now.
        past: every state that there was, in order.
    """

    def __init__(self, *objects: Object, streaming: str = "served", page_objects: int = 500) -> None:
        self.streaming, self.page_objects, self.lags = streaming, page_objects, False
        self.revision = 1
        self.compacted = 0
        self.objects: dict[Name, Object] = {}
        self.past: list[dict[Name, Object]] = [{}]
        self.watches: list[Watch] = []
        self._history: list[Change] = []
        self._states: dict[int, dict[Name, Object]] = {1: {}}
        self._life = 1
        for each in objects:
            self.put(each)

    def put(self, new: Object) -> None:
        """Create it, or replace the one of its name."""
        name = _name(new)
        type_ = "MODIFIED" if name in self.objects else "ADDED"
        self._write(type_, name, copy.deepcopy(new))

    def remove(self, name: str, namespace: str = "") -> None:
        """Delete it, where it is there."""
        old = self.objects.get((namespace, name))
        if old is not None:
            self._write("DELETED", (namespace, name), copy.deepcopy(old))

    def compact(self) -> None:
        """Drop the history, as etcd's compaction does: a client that has not received it must list again."""
        self.compacted, self._history = self.revision, []
        self._states = {self.revision: self.objects}

    def restore(self, revision: int) -> None:
        """Be as at an earlier revision, as from a backup of etcd; where that is forgotten, nothing happens."""
        if revision in self._states:
            self.objects, self.revision = self._states[revision], revision
            self._history = [change for change in self._history if change.revision <= revision]
            self._states = {at: state for at, state in self._states.items() if at <= revision}
            self.past.append(self.objects)
            self._life += 1

    def bookmark(self) -> None:
        """Say a bookmark on every watch."""
        for watch in self.watches:
            watch.say(bookmark(self.revision))

    def answer(self, query: Mapping[str, str]) -> Answer | Watch:
        """What a GET of the collection is answered. A watch is to be taken off `watches` when it is over."""
        if query.get("watch") != "true":
            return self._page(int(query.get("limit", "0")), query.get("continue", ""))
        if "sendInitialEvents" in query and self.streaming == "refused":
            return refusal(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch")
        if "resourceVersion" in query:
            return self._watch(int(query["resourceVersion"]))
        first = b"".join(event("ADDED", each) for each in self.objects.values())
        return self._open(first + bookmark(self.revision, end=self.streaming == "served"))

    def _watch(self, revision: int) -> Answer | Watch:
        if revision < self.compacted:
            return refusal(410, "Expired", f"too old resource version: {revision} ({self.compacted})")
        if revision > self.revision:
            return too_large()
        missed = [change for change in self._history if change.revision > revision]
        return self._open(b"".join(event(change.type, change.object) for change in missed))

    def _open(self, first: bytes) -> Watch:
        self.watches.append(Watch(first))
        return self.watches[-1]

    def _page(self, limit: int, continue_: str) -> Answer:
        """A token names the revision that the first page was of: all pages are of one moment."""
        life, revision, start = map(int, continue_.split(":")) if continue_ else (self._life, self.revision, 0)
        if life != self._life or revision not in self._states:
            return refusal(410, "Expired", "The provided continue parameter is too old")
        state = self._states[revision]
        names, end = sorted(state), start + min(limit or self.page_objects, self.page_objects)
        token = f"{life}:{revision}:{end}" if end < len(names) else ""
        return Answer(200, page([state[name] for name in names[start:end]], revision, token))

    def _write(self, type_: str, name: Name, new: Object) -> None:
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        self.objects = {key: value for key, value in self.objects.items() if key != name}
        if type_ != "DELETED":
            self.objects[name] = new
        self._history.append(Change(self.revision, type_, new))
        self._states[self.revision] = self.objects
        self.past.append(self.objects)
        for watch in () if self.lags else self.watches:
            watch.say(event(type_, new))


def _name(of: Object) -> Name:
    return of["metadata"].get("namespace", ""), of["metadata"]["name"]
