"""What the past of a VM says: the last situation in which a rule says no, and the first in which it does not."""

from typing import Any

import pytest
from support.objects.reunite_vms import ago, move, node, plan_of, situation, vm

from webhook.core.live_migration.migration import Migration
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.not_yet import Rule


def _ours(created: float, phase: str = "Succeeded", **changes: Any) -> Migration:
    return move(created, phase, ours=True, **changes)


def _evicted(**changes: Any) -> Migration:
    return move(90_000, **{"evacuates": "b", "ended": ago(86_399), **changes})


def _failed(count: int, **changes: Any) -> list[Migration]:
    return [_ours(200_000 - i * 100_000 / count, "Failed", **changes) for i in range(count)]


AWAY_TWICE = (_ours(400_000), move(300_000), _ours(200_000), move(150_000))


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm(), move(90_000, names_target=True)), Rule.TARGET_NAMED, id="somebody's will"),
        pytest.param(situation(vm(), move(90_000, "Failed", names_target=True)), None, id="a will that failed"),
        pytest.param(
            situation(vm(), move(90_001, names_target=True), move(90_000, priority="system-critical")),
            None,
            id="drained since",
        ),
        pytest.param(
            situation(vm(started=ago(9_000)), move(9_000, names_target=True)),
            Rule.TARGET_NAMED,
            id="in the start's second",
        ),
        pytest.param(
            situation(vm(started=ago(8_999)), move(9_000, names_target=True)), None, id="a will before the start"
        ),
        pytest.param(situation(vm(), *AWAY_TWICE), Rule.MOVED_AGAIN, id="moved away again after it was brought back"),
        pytest.param(situation(vm(), *AWAY_TWICE[1:]), Rule.MOVED_AGAIN, id="KubeVirt keeps no more of it"),
        pytest.param(situation(vm(), *AWAY_TWICE[2:]), None, id="moved away once, a day ago"),
        pytest.param(situation(vm(started=ago(160_000)), *AWAY_TWICE), None, id="that was before the start"),
        pytest.param(
            situation(vm(), *AWAY_TWICE[:3], move(150_000, "Failed")), None, id="the second move away has failed"
        ),
        pytest.param(
            situation(vm(), *AWAY_TWICE[:3], move(150_000, updates=True)), None, id="the second move away is an update"
        ),
        pytest.param(situation(vm(), _ours(1_799, "Failed")), Rule.TOO_SOON, id="it failed almost long enough ago"),
        pytest.param(situation(vm(), _ours(1_800, "Failed")), None, id="it failed just long enough ago"),
        pytest.param(situation(vm(), *_failed(3)), Rule.FAILED_OFTEN, id="three failures in a row"),
        pytest.param(situation(vm(), *_failed(2)), None, id="two failures in a row"),
        pytest.param(
            situation(vm(), *_failed(3), move(95_000, updates=True)), None, id="it was moved since the failures"
        ),
        pytest.param(situation(vm(started=ago(9)), *_failed(3)), None, id="it was started since the failures"),
        pytest.param(
            situation(vm(), *(move(each, updates=True) for each in range(86_399, 0, -18_000))),
            Rule.ENOUGH_TODAY,
            id="five of others in almost a day",
        ),
        pytest.param(
            situation(vm(), *(move(each, updates=True) for each in range(86_400, 0, -18_000))),
            None,
            id="five of others in just a day",
        ),
        pytest.param(
            situation(vm(), _ours(86_399, "Failed"), _ours(9_000, "Failed")), Rule.ENOUGH_TODAY, id="two of ours"
        ),
        pytest.param(situation(vm(), _ours(86_400, "Failed"), _ours(9_000, "Failed")), None, id="one of ours"),
        pytest.param(situation(vm(), _ours(86_399)), Rule.COOLDOWN, id="home almost a day ago"),
        pytest.param(situation(vm(), _ours(86_400)), None, id="home just a day ago"),
        pytest.param(situation(vm(), _ours(90_000, ended=ago(86_399))), Rule.COOLDOWN, id="the end counts"),
        pytest.param(situation(vm(), move(86_399)), Rule.MOVED_BY_OTHERS, id="a person moved it almost a day ago"),
        pytest.param(situation(vm(), move(86_400)), None, id="a person moved it just a day ago"),
        pytest.param(situation(vm(), _evicted()), Rule.MOVED_BY_OTHERS, id="evicted almost a day ago"),
        pytest.param(situation(vm(), _evicted(ended=ago(86_400))), None, id="evicted just a day ago"),
        pytest.param(
            situation(vm(), _evicted(priority="system-maintenance")), Rule.MOVED_BY_OTHERS, id="by a descheduler"
        ),
        pytest.param(situation(vm(), _evicted(priority="system-critical")), None, id="drained"),
        pytest.param(situation(vm(), _evicted(updates=True)), None, id="updated"),
        pytest.param(
            situation(vm(homes=("c",)), _evicted(), node("b", cordoned_since=ago(86_399))),
            None,
            id="its node was cordoned when it left",
        ),
        pytest.param(
            situation(vm(homes=("c",)), _evicted(), node("b", cordoned_since=ago(86_398))),
            Rule.MOVED_BY_OTHERS,
            id="its node was cordoned later",
        ),
        pytest.param(
            situation(vm(homes=("c",)), _evicted(), node("b", ready_since=ago(86_398))),
            None,
            id="its node was rebooted after it left",
        ),
        pytest.param(
            situation(vm(homes=("c",)), _evicted(priority="system-maintenance"), node("b", cordoned_since=ago(86_399))),
            Rule.MOVED_BY_OTHERS,
            id="a descheduler's priority counts more than the node",
        ),
    ],
)
def test_the_past_of_a_vm_says_no(at: Situation, rule: Rule | None) -> None:
    """By the migrations that KubeVirt keeps, and by the nodes: nothing else remembers it."""
    told = plan_of(at).waiting.get(("ns", "vm"))
    assert (told and told.rule) is rule
