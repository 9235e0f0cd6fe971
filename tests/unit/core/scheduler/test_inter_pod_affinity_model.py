from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support.models.plugin_input import PluginRunner, add
from support.models.scheduler_model import REQUIRED, Situation, refuses
from support.strategies.inter_pod_situations import Maker

from webhook.core.reasons import Reason

RANDOMS = st.randoms(use_true_random=False)


def at_worst(situation: Situation) -> Situation:
    """The situation in which every namespace has the labels that a term asks for."""
    worst = copy.deepcopy(situation)
    for pod in worst.pods:
        for term in pod["spec"].get("affinity", {}).get("podAntiAffinity", {}).get(REQUIRED, ()):
            if term.get("namespaceSelector") is not None:
                term["namespaceSelector"] = {}
    return worst


@given(random=RANDOMS)
def test_it_agrees_with_the_model(random: Random) -> None:
    """What the pods there can have against the incoming pod, if the labels of namespaces are the worst.

    Rules of its own make a pod one that is never required, so that the plugin does not ask for them.
    """
    situation = Maker(random).situation()
    why = PluginRunner(situation).inter_pod_affinity()
    assert (why is not None) is refuses(at_worst(situation)), why
    assert why is not None or not refuses(situation)


@given(random=RANDOMS)
def test_what_is_uncertain_is_never_allowed(random: Random) -> None:
    """Allowed holds whether nodes that are not known are there or gone."""
    maker = Maker(random)
    situation = maker.situation()
    known = [each for each in situation.nodes if each is situation.node or maker.odds(70)]
    runner = PluginRunner(situation)
    runner.nodes = {each["metadata"]["name"]: runner.nodes[each["metadata"]["name"]] for each in known}
    if runner.inter_pod_affinity() is None:
        assert not refuses(situation)
        assert not refuses(replace(situation, nodes=known))


@given(random=RANDOMS)
def test_more_pods_never_make_room(random: Random) -> None:
    """A pod more, bound or on the way, allows nothing that was not allowed before."""
    maker = Maker(random)
    runner = PluginRunner(maker.situation())
    before = runner.inter_pod_affinity()
    for bound in (False, True):
        add(runner.scheduler_cache, maker.neighbour(), bound=bound)
        assert before is None or runner.inter_pod_affinity() is not None


def test_the_situations_tell_something() -> None:
    """Of many made-up situations a good part is excluded or allowed."""
    maker = Maker(Random(1))  # noqa: S311 - chance for a test, not for a secret
    ruled = [PluginRunner(maker.situation()).inter_pod_affinity() for _ in range(200)]
    counts = Counter(each and each.reason for each in ruled)
    assert counts.keys() == {None, Reason.EXCLUDED_BY_POD}
    assert min(counts.values()) > 40, counts
