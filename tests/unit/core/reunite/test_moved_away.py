"""How often others moved a VM away from home: which migrations count, and what a migration of ours says of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from support.objects.reunite_vms import ago, move, plan_of, situation, vm

from webhook.core.reunite.decide import Situation
from webhook.core.reunite.not_yet import Rule

_HOME_AGAIN = move(100_000, ours=True, moved_away=1)
_ONCE_AWAY = (move(200_000, ours=True), move(150_000), _HOME_AGAIN)


@pytest.mark.parametrize(
    ("at", "rule"),
    [
        pytest.param(situation(vm(), *_ONCE_AWAY), None, id="moved away once, and not home for long"),
        pytest.param(situation(vm(), *_ONCE_AWAY, move(90_000)), Rule.MOVED_AWAY, id="moved away twice"),
        pytest.param(situation(vm(), *_ONCE_AWAY, move(90_000, "Failed")), None, id="the second time failed"),
        pytest.param(situation(vm(), _HOME_AGAIN, move(90_000)), Rule.MOVED_AWAY, id="KubeVirt deleted the first time"),
        pytest.param(
            situation(vm(), *_ONCE_AWAY, move(95_000, priority="system-maintenance")),
            Rule.MOVED_AWAY,
            id="the descheduler moved it away again",
        ),
        pytest.param(
            situation(vm(), *_ONCE_AWAY, move(95_000, priority="system-critical")),
            None,
            id="a drain moved it away again",
        ),
        pytest.param(
            situation(vm(), *_ONCE_AWAY, move(95_000, updates=True)),
            None,
            id="an update of KubeVirt moved it away again",
        ),
        pytest.param(
            situation(vm(), *_ONCE_AWAY, move(95_000, evacuates="b")),
            Rule.MOVED_AWAY_OR_DRAINED,
            id="evicted again, and KubeVirt says no reason",
        ),
        pytest.param(
            replace(situation(vm(), *_ONCE_AWAY, move(95_000, evacuates="b")), drained={"u"}),
            None,
            id="evicted again, known as a drain",
        ),
        pytest.param(
            situation(vm(), *_ONCE_AWAY[:2], replace(_HOME_AGAIN, moved_away=0), move(95_000)),
            None,
            id="the first time was known as a drain when the VM came home",
        ),
        pytest.param(
            situation(vm(), move(100_000, "Failed", ours=True, moved_away=2)),
            Rule.MOVED_AWAY,
            id="only the count is left",
        ),
        pytest.param(
            situation(vm(started=ago(95_000)), *_ONCE_AWAY, move(90_000)), None, id="moved away before the start"
        ),
    ],
)
def test_a_vm_that_was_moved_away_twice_stays(at: Situation, rule: Rule | None) -> None:
    """Until its next start. A move that failed, a drain and an update do not count."""
    told = plan_of(at)[0].waiting.get(("ns", "vm"))
    assert (told and told.rule) is rule
