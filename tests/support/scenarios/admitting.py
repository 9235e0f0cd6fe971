"""Pods created on a real control plane to see what is decided, what the API server counts, and what the caches say."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self, TypeVar

from support.control_plane.kube_answers import ApiError, summed
from support.control_plane.kube_api import Api, Object
from support.drivers.serving import Client, Serving
from support.objects.builders import DECISION, LONGHORN_NAMESPACE, NAMESPACE, virt_launcher_pod
from support.waits import MAX_WAIT_SECONDS

from webhook.kube.kinds import resources

WEBHOOK: Final = "virt-launcher.kubevirt-coschedule.io"
FAIL_OPEN: Final = "apiserver_admission_webhook_fail_open_count"
REJECTIONS: Final = "apiserver_admission_webhook_rejection_count"

_VERBOSE: Final = b"GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n\r\n"
_CHECK: Final = re.compile(r"\[(?P<ok>[+-])\](?P<name>.+?) (?:ok|failed)(?:: (?P<detail>.*))?")
_COUNTED: Final = "apiserver_admission_"  # of the thousands of samples, those that anybody asks for
_CACHES: Final = frozenset(resource.title for resource in resources(LONGHORN_NAMESPACE) if resource.watched)
_POLL_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 0.02

T = TypeVar("T")


class Admission(NamedTuple):
    """A pod that was created, between two times of `time.monotonic`, and the warnings that came with it."""

    pod: Object
    asked_at: float
    created_at: float
    warnings: Sequence[str] = ()

    @property
    def decision(self) -> str:
        """The annotation's words; empty where nobody has decided."""
        words: str = (self.pod["metadata"].get("annotations") or {}).get(DECISION, "")
        return words

    @property
    def required(self) -> list[str]:
        """The nodes of the hard pin."""
        terms = self._node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
        return [field["values"][0] for term in terms or () for field in term.get("matchFields", ())]

    @property
    def preferred(self) -> list[str]:
        """The nodes of preferences, as they are listed: by name, and by instance-manager pod."""
        terms = self._node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        named = [field["values"][0] for term in terms for field in term["preference"].get("matchFields", ())]
        pod_affinity = (self.pod["spec"].get("affinity") or {}).get("podAffinity") or {}
        near = pod_affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        selected = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for term in near]
        return [*named, *(labels["longhorn.io/node"] for labels in selected)]

    @property
    def _node_affinity(self) -> Mapping[str, Any]:
        affinity: Mapping[str, Any] = (self.pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        return affinity


def admitted(api: Api, *claims: str, **described: Any) -> Admission:
    """A VM start pod with these claims, created and not kept."""
    return created(api, virt_launcher_pod(claims=claims, namespace=NAMESPACE, **described))


def created(api: Api, pod: Object) -> Admission:
    """This pod, created and not kept."""
    asked_at = time.monotonic()
    answer = api.create_warned(pod, dryRun="All")
    return Admission(answer.body, asked_at, time.monotonic(), answer.warnings)


def refused(api: Api, wanted: Object) -> str:
    """What the API server says against an object, which it only tries; empty where it takes it."""
    try:
        api.create(wanted, dryRun="All")
    except ApiError as error:
        return error.message
    return ""


class Admitting:
    """Clients that create pods with one claim, each one after the other, for as long as this context lasts.

    `admissions` is what came of it, `away` the times at which the API server gave no answer, `refused` its errors.
    Between two pods they leave the machine to others for a moment.
    """

    def __init__(self, api: Api, claim: str, *, clients: int = 1) -> None:
        self._api = Api(api.url, api.token, api._trust)  # its connections are ours alone
        self._claim = claim
        self._threads = [threading.Thread(target=self._create) for _ in range(clients)]
        self._over = threading.Event()
        self.admissions: list[Admission] = []
        self.away: list[float] = []
        self.refused: list[ApiError] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._api.forget_connections()

    def until(self, more: int) -> None:
        """Wait for so many more pods."""
        wanted = len(self.admissions) + more
        until(lambda: len(self.admissions) >= wanted, f"{more} more pods")

    def _create(self) -> None:
        while not self._over.is_set():
            try:
                self.admissions.append(admitted(self._api, self._claim))
            except ApiError as error:
                self.refused.append(error)
            except (OSError, http.client.HTTPException):
                self.away.append(time.monotonic())
            self._over.wait(_PAUSE_SECONDS)


class Cache(NamedTuple):
    """A line of /readyz?verbose: whether calls are answered from the cache, and its words."""

    fresh: bool
    detail: str

    @property
    def watched(self) -> bool:
        """Whether it follows the API server, and has no trouble with that."""
        return self.fresh and "last event" in self.detail


def caches(serving: Serving, *, unwatched: Sequence[str] = ()) -> dict[str, Cache]:
    """Every cache of a `serve` by its name, except `unwatched`."""
    with Client(serving.health_port) as client:
        lines = client.ask(_VERBOSE).body.decode().splitlines()
    found = {match["name"]: match for match in filter(None, map(_CHECK.fullmatch, lines))}
    return {
        name: Cache(found[name]["ok"] == "+", found[name]["detail"] or "") for name in _CACHES if name not in unwatched
    }


def until_watched(serving: Serving, *, unwatched: Sequence[str] = ()) -> None:
    """Wait until every cache follows the API server, except `unwatched`."""

    def now() -> dict[str, Cache]:
        return caches(serving, unwatched=unwatched)

    until(lambda: all(cache.watched for cache in now().values()), lambda: f"caches: {now()}")


def until(condition: Callable[[], T], what: str | Callable[[], str], *, seconds: float = MAX_WAIT_SECONDS) -> T:
    """What the condition says, as soon as that counts as true.

    Raises:
        TimeoutError: it did not in that time; says what was waited for.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not in {seconds:g} s: {what if isinstance(what, str) else what()}")
        threading.Event().wait(_POLL_SECONDS)
    return found


class Counted:
    """The API server's counters at this time; `more` returns the increase since then."""

    def __init__(self, api: Api) -> None:
        self._api, self._before = api, api.samples(_COUNTED)

    def more(self) -> Callable[..., float]:
        """A function: metric, some of its labels -> how much more it is by now."""
        before, after = self._before, self._api.samples(_COUNTED)
        return lambda name, /, **labels: summed(after, name, **labels) - summed(before, name, **labels)


def admission_lines(serving: Serving) -> list[dict[str, Any]]:
    """What it has logged of calls: a call's line is there before its answer."""
    return [line for line in serving.lines() if line["message"] == "admission"]
