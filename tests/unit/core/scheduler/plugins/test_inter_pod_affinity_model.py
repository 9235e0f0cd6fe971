from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.models.plugin_runner import PluginRunner
from support.models.scheduler_model import refusals
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.reasons import Reason
from webhook.core.scheduler.status import Passed, Rejected, Unknown


@given(random=st.randoms(use_true_random=False))
def test_it_agrees_with_the_model(random: Random) -> None:
    """What is settled is what the scheduler says; not settled is only what depends on namespaces' labels or on keys."""
    situation = Maker(random, Setting()).situation()
    ruled = PluginRunner(situation).inter_pod_affinity()
    refused = set(refusals(situation, pinned=False)) - {"spread"}
    if isinstance(ruled, Unknown):
        assert ruled.cause in {Reason.NAMESPACES_UNKNOWN, Reason.MATCH_LABEL_KEYS}
    else:
        assert isinstance(ruled, Rejected) is bool(refused), f"{ruled}, {refused}"


@given(random=st.randoms(use_true_random=False))
def test_what_is_uncertain_is_never_allowed(random: Random) -> None:
    """Allowed holds whichever of the expected pods come, and whether nodes that are not known are there or gone."""
    maker = Maker(random, Setting())
    situation = maker.situation()
    expected = [each for each in situation.pods if maker.odds(30) and "deletionTimestamp" not in each["metadata"]]
    bound = [each for each in situation.pods if each not in expected]
    judge = PluginRunner(replace(situation, pods=bound), expected=expected)
    known = [each for each in situation.nodes if each is situation.node or maker.odds(80)]
    judge.nodes = {each["metadata"]["name"]: judge.nodes[each["metadata"]["name"]] for each in known}
    came = [each for each in expected if maker.odds(50)]
    if isinstance(judge.inter_pod_affinity(), Passed):
        for nodes in (situation.nodes, known):
            refused = refusals(replace(situation, nodes=nodes, pods=[*bound, *came]), pinned=False)
            assert set(refused) <= {"spread"}


def test_the_situations_tell_something() -> None:
    """Of many made-up situations a good part is refused, for each of the rules, and few are not settled."""
    causes = []
    for seed in range(1000):
        ruled = PluginRunner(Maker.seeded(seed, Setting()).situation()).inter_pod_affinity()
        causes.append(None if isinstance(ruled, Passed) else ruled.cause)
    for cause in (Reason.POD_AFFINITY_UNMET, Reason.POD_ANTI_AFFINITY, Reason.REPELLED):
        assert causes.count(cause) > 40, cause
    assert 400 < causes.count(None) < 700
    assert causes.count(Reason.NAMESPACES_UNKNOWN) < 50
    assert 20 < causes.count(Reason.MATCH_LABEL_KEYS) < 150
