"""What `decide` keeps in every situation, and over a week with a descheduler."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.objects.reunite_vms import NOW, Situation, ago, move, plan_of, situation, target, vm

from webhook.core.api.migration import Migration
from webhook.core.observe.vm_status import State
from webhook.reunite.vm import VM

NAMES = ("v", "w", "x", "v-reunite-1")
NODES = ("a", "b", "c")
PHASES = ("", "Pending", "Scheduling", "Running", "Succeeded", "Failed")
_SECONDS = st.sampled_from([5, 60, 1_800, 90_000, 200_000])
_TEN_MINUTES = 600
_DAY = 86_400


_VMS = st.builds(
    lambda name, node, homes, since, leaves: vm(name, node, homes, since=ago(since), evacuation_node_name=leaves),
    st.sampled_from(NAMES),
    st.sampled_from(NODES),
    st.lists(st.sampled_from(NODES), max_size=2),
    _SECONDS,
    st.none() | st.none() | st.sampled_from(NODES),
)
_MOVES = st.builds(
    lambda seconds, phase, vmi, ours, number, source: move(
        seconds, phase, vmi, ours=ours, name=f"{vmi}-reunite-{number}", source_node=source
    ),
    _SECONDS,
    st.sampled_from(PHASES),
    st.sampled_from([*NAMES, "other"]),
    st.booleans(),
    st.integers(1, 99),
    st.none() | st.sampled_from(NODES),
)
_SITUATIONS = st.builds(
    lambda vms, moves, at_once: situation(*vms, *moves, at_once=at_once),
    st.lists(_VMS, max_size=4, unique_by=lambda each: each.row.name),
    st.lists(_MOVES, max_size=5, unique_by=lambda each: each.name),
    st.integers(0, 4),
)


def _running(at: Situation) -> list[Migration]:
    return [each for each in at.migrations if not each.is_final]


@given(at=_SITUATIONS)
def test_the_limit_is_kept_after_all_creates(at: Situation) -> None:
    """Those of ours that are younger than half an hour count."""
    young = [each for each in _running(at) if each.ours and each.created > ago(1_800)]
    new = plan_of(at).creates
    if new:
        assert len(young) + len(new) <= at.limits.at_once


@given(at=_SITUATIONS)
def test_a_vm_is_created_for_or_waits_or_is_not_apart(at: Situation) -> None:
    """Exactly one of these, and no create for a VM while one of its migrations is not final."""
    plan = plan_of(at)
    created = [each.vm for each in plan.creates]
    waiting = [name for _, name in plan.waiting]
    apart = [each.row.name for each in at.vms if each.row.state is State.APART]
    assert sorted(created + waiting) == sorted(apart)
    assert not {each.vm[1] for each in _running(at)} & set(created)
    assert set(created) <= set(plan.asked)
    names = [each.name for each in plan.creates]
    assert not set(names) & {each.name for each in at.migrations if each.vm[1] in created}
    assert len(set(names)) == len(names)


@given(at=_SITUATIONS, seed=st.integers(0, 9))
def test_the_order_of_the_lists_does_not_matter(at: Situation, seed: int) -> None:
    """The same situation gives the same plan, name by name, each time."""
    vms, migrations = list(at.vms), list(at.migrations)
    shuffle = Random(seed).shuffle  # noqa: S311 - no secret
    shuffle(vms)
    shuffle(migrations)
    assert plan_of(replace(at, vms=vms, migrations=migrations)) == plan_of(at)


@pytest.mark.parametrize(
    ("restless", "returns"),
    [
        pytest.param(False, [4, 12, 28, 60, 124], id="evicts the VM only at home"),
        pytest.param(True, [1], id="moves the VM elsewhere each hour, too"),
    ],
)
def test_a_week_of_a_descheduler_is_no_ping_pong(*, restless: bool, returns: list[int]) -> None:
    """The descheduler evicts the VM ten minutes after each return: each return waits twice as long."""
    node, uid, migrations = "a", "", list[Migration]()
    evicted_at, homecomings = NOW - 7_200, list[float]()
    for step in range(7 * _DAY // _TEN_MINUTES):
        now = NOW + step * _TEN_MINUTES
        if step == 0 or node == "b" or (restless and step % 6 == 0):
            uid = f"evacuation-{step}"
            migrations.append(move(NOW - now, evacuates="b" if step == 0 else node, name=uid, uid=uid))
            node, evicted_at = "a" if node == "c" else "c", now
        migrations = sorted(migrations, key=lambda each: each.created)[-5:]  # those that KubeVirt keeps
        there: VM = vm(node=node, pod=target(uid, uid=uid), since=ago(0, evicted_at))
        at = situation(there, *migrations, now=float(now), oldest_on={"b": ago(9_999)})
        for each in plan_of(at).creates:
            migrations.append(move(NOW - now, ours=True, name=each.name))
            node = "b"
            homecomings.append(now)
    assert [int(each - NOW) // 3_600 for each in homecomings] == returns
