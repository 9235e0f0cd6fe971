"""Facts: there is a Situation only of caches that were up to date before its rows were computed, and after."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import ago, move, node

from webhook.component_base.client.api import Api, Reply
from webhook.core.opt_in import Policy
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import ReuniteLimits
from webhook.core.view import Kind
from webhook.kube.cache.readiness import CacheState
from webhook.kube.informer.faults import Cause
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


async def test_a_drain_is_known_after_the_node_is_uncordoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node shows the cordon only while it lasts, and the program has seen it."""
    facts = Facts(cast("Api", NoKubeVirt()), Policy(), ReuniteLimits())
    monkeypatch.setattr(facts, "states", lambda: [state(fresh=True)])
    evicted = move(100, evacuates="b")
    monkeypatch.setattr(facts._migrations, "objects", {"ns/one": evicted})
    for nodes in ({"b": node("b", cordoned_since=ago(200))}, {"b": node("b")}):
        monkeypatch.setattr(facts.cluster.caches[Kind.NODE], "objects", nodes)
        found = await facts.situation(0.0)
        assert isinstance(found, Situation)
        assert (found.drained, found.nodes) == ({evicted.uid}, nodes)


@pytest.mark.parametrize(
    ("title", "failed", "late"),
    [
        ("virtualmachines.kubevirt.io", 0, True),
        ("virtualmachines.kubevirt.io", 1, False),
        ("virtualmachineinstances.kubevirt.io", 1, True),
    ],
)
async def test_only_the_right_to_list_virtualmachines_can_be_missing(
    title: str, failed: int, *, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first answer, a claim that several VMs name could look like a disk of the VM's own."""
    facts = Facts(cast("Api", NoKubeVirt()), Policy(), ReuniteLimits())
    unlisted = replace(state(fresh=False), title=title, causes={Cause.FORBIDDEN: failed})
    monkeypatch.setattr(facts, "states", lambda: [unlisted])
    assert isinstance(await facts.situation(0.0), StaleFacts) is late
