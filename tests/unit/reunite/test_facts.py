"""Facts: there is a Situation only of caches that were up to date before its rows were computed, and after."""

from __future__ import annotations

from typing import Any, cast

import pytest

from webhook.core.opt_in import Policy
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import ReuniteLimits
from webhook.kube.cache.readiness import CacheState
from webhook.kube.client.api import Api, Reply
from webhook.reunite.facts import Facts, StaleFacts


class NoKubeVirt:
    """The part of client.Api that Facts calls."""

    namespace, in_pod = "default", False

    async def get(self, path: str, query: object = (), *, seconds: float) -> Reply:
        """Return an empty list."""
        assert path == "/apis/kubevirt.io/v1/kubevirts"
        assert seconds > 0
        assert query is not None
        return Reply(200, b'{"items": []}')


def state(*, fresh: bool) -> CacheState:
    """The state of the one cache."""
    return CacheState(title="pods", fresh=fresh, detail="x", objects=0, heard_seconds=None, causes={}, unreadable=0)


@pytest.mark.parametrize(
    ("before", "after", "problems"),
    [
        pytest.param(True, True, None, id="up to date"),
        pytest.param(False, True, ("pods: x",), id="up to date only when the rows were there"),
        pytest.param(True, False, ("pods: x",), id="up to date only when the rows were not there"),
        pytest.param(False, False, ("pods: x",), id="not up to date"),
    ],
)
async def test_a_situation_is_made_of_caches_that_are_up_to_date(
    *, before: bool, after: bool, problems: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that was computed from half of a list would look as any other row."""
    facts = Facts(cast("Api", NoKubeVirt()), Policy(), ReuniteLimits())
    now = {"fresh": before}
    refresh = facts._tracker.refresh

    async def refreshed() -> Any:
        now["fresh"] = after
        return await refresh()

    monkeypatch.setattr(facts._tracker, "refresh", refreshed)
    monkeypatch.setattr(facts, "states", lambda: [state(fresh=now["fresh"])])
    found = await facts.situation(0.0)
    if problems:
        assert found == StaleFacts(problems)
    else:
        assert isinstance(found, Situation)
