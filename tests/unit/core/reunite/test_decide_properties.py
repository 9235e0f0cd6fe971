"""What `decide` keeps in every situation, and over a week with a descheduler."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.objects.reunite_vms import NOW, ago, kubevirt, move, plan_of, situation, vm

from webhook.core.live_migration.kubevirt import KubeVirt, KubeVirtConfiguration, KubeVirtSpec, MigrationConfiguration
from webhook.core.live_migration.migration import Migration
from webhook.core.live_migration.vm import VM
from webhook.core.observe.vm_status import State
from webhook.core.reunite.decide import Situation
from webhook.core.reunite.limits import HELD_SECONDS

NAMES = ("v", "w", "x", "v-reunite-1")
NODES = ("a", "b", "c")
PHASES = ("", "Pending", "Scheduling", "Running", "Succeeded", "Failed")
_SECONDS = st.sampled_from([5, 60, 1_800, 90_000, 200_000])
_TEN_MINUTES = 600
_DAY = 86_400


def installed(cluster: int, node: int) -> KubeVirt:
    """KubeVirt with these limits."""
    limits = MigrationConfiguration(parallel_migrations_per_cluster=cluster, parallel_outbound_migrations_per_node=node)
    return replace(kubevirt(), spec=KubeVirtSpec(configuration=KubeVirtConfiguration(migrations=limits)))


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
    lambda vms, moves, cluster, node, at_once, per_node: situation(
        *vms,
        *moves,
        installed=installed(cluster, node),
        at_once=at_once,
        at_once_per_node=per_node,
    ),
    st.lists(_VMS, max_size=4, unique_by=lambda each: each.row.name),
    st.lists(_MOVES, max_size=5, unique_by=lambda each: each.name),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 2),
)


def _running(at: Situation) -> list[Migration]:
    return [each for each in at.migrations if not each.is_final]


def _counted(at: Situation) -> list[Migration]:
    """Without those that KubeVirt has not begun for five minutes: they copy nothing, and take no turn."""
    old = ago(HELD_SECONDS)
    return [each for each in _running(at) if not (each.is_queued and each.created <= old)]


@given(at=_SITUATIONS)
def test_the_limits_are_kept_after_all_creates(at: Situation) -> None:
    """Counted again from the situation: all migrations and ours, in the cluster, from a node, and at a node."""
    running, rows = _counted(at), {each.row.name: each.row for each in at.vms}
    new = [(rows[each.vm].node, each.target) for each in plan_of(at).creates]
    limits = at.kubevirt.limits if at.kubevirt else MigrationConfiguration()
    ours = sum(each.ours for each in running) + len(new)
    sources = Counter(
        each.state.source_node or (rows[each.vm[1]].node if each.vm[1] in rows else None) for each in running
    )
    sources.update(source for source, _ in new)
    at_node = Counter(node for pair in new for node in pair)
    if new:
        assert ours <= at.limits.at_once
        assert len(running) + len(new) <= max(1, limits.per_cluster - 1)
        assert limits.per_cluster > 0
        assert all(sources[source] <= limits.outbound_per_node for source, _ in new)
        assert all(at_node[node] <= at.limits.at_once_per_node for node in at_node)


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


def _kept(migrations: list[Migration]) -> list[Migration]:
    """Return the migrations that KubeVirt keeps."""
    return sorted(migrations, key=lambda each: each.created)[-5:]


@pytest.mark.parametrize(
    ("restless", "returns"),
    [
        pytest.param(False, 2, id="evicts the VM only at home"),
        pytest.param(True, 0, id="moves the VM elsewhere each hour, too"),
    ],
)
def test_a_week_of_a_descheduler_is_no_ping_pong(*, restless: bool, returns: int) -> None:
    """The descheduler evicts the VM ten minutes after each return: never more than two moves within a day."""
    node, since, migrations = "a", NOW - 7_200, list[Migration]()
    homecomings, evictions = list[float](), list[float]()
    for step in range(7 * _DAY // _TEN_MINUTES):
        now = NOW + step * _TEN_MINUTES
        evicted = node == "b" or (restless and step % 6 == 0)
        if evicted:
            migrations.append(move(NOW - now, evacuates=node, name=f"evacuation-{step}"))
            evictions.append(now)
            node, since = "a" if node == "c" else "c", now
        migrations = _kept(migrations)
        there: VM = vm(node=node, since=ago(0, since))
        for each in plan_of(situation(there, *migrations, now=float(now))).creates:
            migrations.append(move(NOW - now, ours=True, name=each.name))
            node = "b"
            homecomings.append(now)
    assert len(homecomings) == returns
    assert all(later - earlier >= _DAY for earlier, later in pairwise(homecomings))
    moves = sorted((*homecomings, *evictions))
    assert restless or all(later - earlier >= _DAY for earlier, later in zip(moves, moves[2:], strict=False))
