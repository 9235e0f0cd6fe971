from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.models.plugin_runner import UNKNOWN, PluginRunner
from support.models.scheduler_model import labels_of, refusals
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.api.kubevirt import HOSTNAME
from webhook.core.reasons import Reason


@given(random=st.randoms(use_true_random=False))
def test_it_agrees_with_the_model(random: Random) -> None:
    """What is settled is what the scheduler says; not settled is what one node's pods don't decide."""
    situation = Maker(random, Setting()).situation()
    ruled = PluginRunner(situation).inter_pod_affinity()
    refused = set(refusals(situation, pinned=False)) - {"spread"}
    assert (ruled and ruled.reason in UNKNOWN) or (ruled is not None) is bool(refused), f"{ruled}, {refused}"


@given(random=st.randoms(use_true_random=False))
def test_what_is_uncertain_is_never_allowed(random: Random) -> None:
    """Allowed holds whichever of the expected pods come, and whether nodes that are not known are there or gone.

    A node that is not known, and has the hostname of another, is the exception that the plugin states.
    """
    maker = Maker(random, Setting())
    situation = maker.situation()
    expected = [each for each in situation.pods if maker.odds(30) and "deletionTimestamp" not in each["metadata"]]
    bound = [each for each in situation.pods if each not in expected]
    judge = PluginRunner(replace(situation, pods=bound), expected=expected)
    own = labels_of(situation.node).get(HOSTNAME)
    others = [each for each in situation.nodes if labels_of(each).get(HOSTNAME) != own]
    known = [each for each in situation.nodes if each not in others or maker.odds(80)]
    judge.nodes = {each["metadata"]["name"]: judge.nodes[each["metadata"]["name"]] for each in known}
    came = [each for each in expected if maker.odds(50)]
    if judge.inter_pod_affinity() is None:
        for nodes in (situation.nodes, known):
            refused = refusals(replace(situation, nodes=nodes, pods=[*bound, *came]), pinned=False)
            assert set(refused) <= {"spread"}


def test_the_situations_tell_something() -> None:
    """Of many made-up situations a good part is refused or allowed, for each of the rules."""
    ruled = [PluginRunner(Maker.seeded(seed, Setting()).situation()).inter_pod_affinity() for seed in range(1000)]
    counts = Counter(each and each.reason for each in ruled)
    assert counts[None] > 250
    for reason in (Reason.POD_AFFINITY_UNMET, Reason.POD_ANTI_AFFINITY, Reason.EXCLUDED_BY_POD):
        assert counts[reason] > 15, reason
    known_nodes = UNKNOWN - {Reason.MAY_BE_EXCLUDED_BY_POD}  # a situation has no pod on a node that is not known
    assert all(counts[reason] > 5 for reason in known_nodes), counts
