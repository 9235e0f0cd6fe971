from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.models.plugin_runner import PluginRunner
from support.models.scheduler_model import refusals
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.reasons import Reason
from webhook.core.scheduler.status import Passed, Rejected


@given(random=st.randoms(use_true_random=False))
def test_it_agrees_with_the_model(random: Random) -> None:
    """Allowed is what the scheduler admits of the pod as it is, and of the pod pinned; the rest is refused."""
    situation = Maker(random, Setting()).situation()
    refused = [pinned for pinned in (False, True) if "spread" in refusals(situation, pinned=pinned)]
    assert isinstance(PluginRunner(situation).pod_topology_spread(), Rejected if refused else Passed), refused


@given(random=st.randoms(use_true_random=False))
def test_what_is_uncertain_is_never_allowed(random: Random) -> None:
    """Allowed holds whichever of the expected pods come, and of pods on nodes that are gone."""
    maker = Maker(random, Setting())
    situation = maker.situation()
    expected = [each for each in situation.pods if maker.odds(30) and "deletionTimestamp" not in each["metadata"]]
    bound = [each for each in situation.pods if each not in expected]
    left = [each for each in situation.nodes if each is situation.node or maker.odds(80)]
    came = [each for each in expected if maker.odds(50)]
    now = replace(situation, nodes=left, pods=bound)
    if isinstance(PluginRunner(now, expected=expected).pod_topology_spread(), Passed):
        for pinned in (False, True):
            assert "spread" not in refusals(replace(now, pods=[*bound, *came]), pinned=pinned)


def test_the_situations_tell_something() -> None:
    """Of many made-up situations a good part is refused, for each of the causes."""
    causes = []
    for seed in range(2000):
        ruled = PluginRunner(Maker.seeded(seed, Setting()).situation()).pod_topology_spread()
        causes.append(None if isinstance(ruled, Passed) else ruled.cause)
    assert causes.count(Reason.SPREAD_SKEW) > 60
    assert causes.count(Reason.SPREAD_DOMAINS) > 2
    assert causes.count(None) < 1900
