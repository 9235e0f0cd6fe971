"""`reunite` on the plan's clock: it reads the cluster with the plan's times for the real ones, and has its defaults.

An hour of the plan takes as long as its events do. So a time in an answer of the API server is replaced by that of the
plan at which it was written. The run gets the plan's time of now. Its requests are its own.
"""

from __future__ import annotations

import bisect
import math
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from support.kubevirt.cluster import Cluster
from support.scenarios.reunite_runs import DEFAULTS

from webhook.component_base.client.api import Api, Reply
from webhook.component_base.options import Kubeconfig
from webhook.kube.collect import collect_objects
from webhook.kube.reader import connect_for_terminal
from webhook.objects.cluster import Cluster as CollectedCluster
from webhook.reunite.reports import VMReport
from webhook.reunite.run import ReuniteRun
from webhook.reunite.settings import ReuniteSettings
from webhook.reunite.vm import parts
from webhook.reunite.writer import Writer

_BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
_BEFORE_HOURS: Final = -24.0  # when all was made that is older than the plan
_HOUR_SECONDS: Final = 3600.0
_TIME: Final = re.compile(rb'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z"')


class PlanClock:
    """At which hour of the plan each real second was. `now` is the real time, in seconds since 1970."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._real = now
        self._since: list[float] = []
        self._hours: list[float] = []

    def set(self, hour: float) -> None:
        """From now on it is this hour."""
        self._since.append(self._real())
        self._hours.append(hour)

    def until_next_second(self) -> None:
        """Wait, so that what is written from now on has another time than what was written before."""
        now = self._real()
        time.sleep(math.ceil(now) - now)

    def now(self) -> float:
        """The plan's time, in seconds since 1970."""
        return _seconds(self._hours[-1])

    def told(self, body: bytes) -> bytes:
        """An answer with the plan's times."""
        return _TIME.sub(lambda found: b'"%s"' % self._plan_time(found[1].decode()).encode(), body)

    def _plan_time(self, text: str) -> str:
        at = bisect.bisect(self._since, datetime.fromisoformat(text + "Z").timestamp())
        seconds = _seconds(self._hours[at - 1] if at else _BEFORE_HOURS)
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _PlanTimes:
    """Reads with the plan's times."""

    def __init__(self, api: Api, clock: PlanClock) -> None:
        self.namespace, self._api, self._clock = api.namespace, api, clock

    async def get(self, *asked: Any, **how: Any) -> Reply:
        """An answer of the API server."""
        reply = await self._api.get(*asked, **how)
        return msgspec.structs.replace(reply, body=self._clock.told(reply.body))


def run(cluster: Cluster, clock: PlanClock) -> Sequence[VMReport]:
    """One run that acts, as webhook.reunite.run does it for a live cluster; what it says of each VM."""
    settings = ReuniteSettings(**{**DEFAULTS, "dry_run": "none", "opt_in_all": "off"})
    file = cluster.plane.kubeconfig(cluster.plane.directory / "reunite.kubeconfig", cluster.plane.admin)
    with connect_for_terminal(Kubeconfig(file=file)) as (runner, api, origin):
        reader: Any = _PlanTimes(api, clock)
        writer = Writer(api, dry_run=False)
        objects = runner.run(collect_objects(reader, origin, parts(), settings.longhorn_namespace))
        found = CollectedCluster(objects, longhorn_namespace=settings.longhorn_namespace)
        one = ReuniteRun(found, settings, clock.now(), writer)
        runner.run(one.decide(origin))
        assert runner.run(one.write_events(writer)) == []
    assert [each for each in one.reports if each.failed] == []
    return one.reports


def _seconds(hour: float) -> float:
    return _BEGIN + hour * _HOUR_SECONDS
