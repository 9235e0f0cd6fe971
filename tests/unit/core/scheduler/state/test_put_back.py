"""A pod that is removed from the index for a moment and put back, as if nothing had happened."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.models.plugin_runner import add
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.matching.label_selector import EVERYTHING, NOTHING, Scope, Selector, parse_selector
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.pod_index import PodIndex


def found(pod_index: PodIndex, asked: Selector = EVERYTHING) -> Found:
    """Where the pods of the namespace are."""
    answer = pod_index.find((Scope(("vms",)),), asked, rule="a test", budget=Budget())
    assert isinstance(answer, Found)
    return answer


@given(random=st.randoms(use_true_random=False))
def test_a_removal_can_be_taken_back(random: Random) -> None:
    """The index answers as before it, and each pod can then be removed as if nothing had happened."""
    maker = Maker(random, Setting())
    pod_index, asked = PodIndex(), parse_selector(convert(maker.selector(), LabelSelector | None)) or NOTHING
    there = [add(pod_index, maker.neighbour(step)) for step in range(1 + random.randrange(12))]
    before, terms = found(pod_index, asked), len(pod_index.existing_anti_affinity)
    files = {file: len(held) for file, held in pod_index.existing_anti_affinity._files.items()}
    gone = random.sample(there, random.randrange(1 + len(there)))
    before = Found(*(part.copy() for part in (before.running, before.terminating, before.expected, before.unsure)))
    for held in gone:
        pod_index.remove(held)
    for held in reversed(gone):
        pod_index.put_back(held)
    assert found(pod_index, asked) == before
    assert found(pod_index, asked) == found(_again(pod_index), asked)
    assert len(pod_index.existing_anti_affinity) == terms
    assert {file: len(held) for file, held in pod_index.existing_anti_affinity._files.items()} == files
    random.shuffle(there)
    for held in there:
        pod_index.remove(held)
    assert not any((pod_index._namespaces, pod_index._homes, len(pod_index.existing_anti_affinity)))


def _again(pod_index: PodIndex) -> PodIndex:
    """The same index without its stored answers."""
    pod_index._answers.clear()
    return pod_index


def test_a_removal_of_one_of_several_pods_can_be_taken_back() -> None:
    """The others still have its labels and its term."""
    pod_index = PodIndex()
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "db"}), topology_key="zone")
    one, _ = (pod_index.add("vms", node, {"app": "db"}, [term]) for node in ("n1", "n2"))
    pod_index.remove(one)
    pod_index.put_back(one)
    assert found(pod_index).running == {"n1": 1, "n2": 1}
    ((existing, certain),) = pod_index.existing_anti_affinity.against("vms", {"app": "db"})
    assert (sorted(existing.node_counts or ()), certain) == (["n1", "n2"], True)
