from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.models.plugin_runner import add
from support.models.scheduler_model import labels_of, matches
from support.strategies.inter_pod_situations import Maker, Setting

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.matching.label_selector import EVERYTHING, NOTHING, Scope, Selector, parse_selector
from webhook.core.scheduler.state.found_pods import Found
from webhook.core.scheduler.state.pod_index import UNKEPT_LABELS, PodIndex
from webhook.core.scheduler.state.pod_info import Presence
from webhook.core.scheduler.status import Unknown

HOME = Scope(("vms",))


def selector(**labels: str) -> Selector:
    """A selector of labels."""
    return parse_selector(LabelSelector(match_labels=labels)) or NOTHING


def ask(
    pod_index: PodIndex, asked: Selector = EVERYTHING, *scopes: Scope, budget: Budget | None = None
) -> Found | Unknown:
    """The answer; in the pod's own namespace if no scope is given."""
    return pod_index.find(scopes or (HOME,), asked, rule="a test", budget=budget or Budget())


def found(pod_index: PodIndex, asked: Selector = EVERYTHING, *scopes: Scope) -> Found:
    """What is found."""
    answer = ask(pod_index, asked, *scopes)
    assert isinstance(answer, Found)
    return answer


@given(random=st.randoms(use_true_random=False))
def test_it_is_what_is_left(random: Random) -> None:
    """After pods came and went in any order it answers as one made of those that are left, and holds no more."""
    maker = Maker(random, Setting())
    pod_index, there = PodIndex(), []
    for step in range(random.randrange(30)):
        if there and maker.odds(40):
            pod_index.remove(there.pop(random.randrange(len(there)))[1])
        else:
            pod = maker.neighbour(step)
            there.append((pod, add(pod_index, pod)))
    asked = maker.selector()
    parsed = parse_selector(convert(asked, LabelSelector | None))
    assert parsed is not None
    at_home = [pod for pod, _ in there if pod["metadata"]["namespace"] == "vms" and matches(asked, labels_of(pod))]
    answer = found(pod_index, parsed)
    assert answer.running + answer.terminating == Counter(pod["spec"]["nodeName"] for pod in at_home)
    assert set(answer.bound) == {pod["spec"]["nodeName"] for pod in at_home}
    living = [pod for pod in at_home if "deletionTimestamp" not in pod["metadata"]]
    assert answer.running == Counter(pod["spec"]["nodeName"] for pod in living)
    for _, held in there:
        pod_index.remove(held)
    assert not any(
        (
            pod_index._namespaces,
            pod_index._homes,
            len(pod_index.existing_anti_affinity),
            pod_index.existing_anti_affinity._files,
        )
    )


def test_many_pods_of_the_same_labels() -> None:
    """However many there are, each node has its number, and each that goes takes one away."""
    pod_index = PodIndex()
    held = [pod_index.add("vms", f"n{number % 3}", {"app": "db"}) for number in range(20)]
    assert found(pod_index).running == {"n0": 7, "n1": 7, "n2": 6}
    for indexed_pod in held[3:]:
        pod_index.remove(indexed_pod)
    assert found(pod_index).running == {"n0": 1, "n1": 1, "n2": 1}
    for indexed_pod in held[1:3]:
        pod_index.remove(indexed_pod)
    assert found(pod_index).running == {"n0": 1}


@pytest.mark.parametrize(
    ("presence", "expected"),
    [
        pytest.param(Presence.BOUND, Found(running={"n1": 1}), id="bound"),
        pytest.param(Presence.TERMINATING, Found(terminating={"n1": 1}), id="terminating"),
        pytest.param(Presence.EXPECTED, Found(expected={"n1": 1}), id="expected"),
    ],
)
def test_how_sure_a_pod_is(presence: Presence, expected: Found) -> None:
    """An expected pod counts apart, as does a pod whose namespace may not match."""
    pod_index = PodIndex()
    pod_index.add("vms", "n1", None, presence=presence)
    assert found(pod_index) == expected
    by_team = Scope((), selector(team="a"))
    assert found(pod_index, EVERYTHING, by_team) == Found(unsure={"n1": 1})
    assert found(pod_index, EVERYTHING, HOME, by_team) == Found(unsure={"n1": 1})
    assert found(pod_index, EVERYTHING, HOME, Scope(("other",))) == Found()
    assert found(pod_index, NOTHING) == Found()


def test_all_namespaces() -> None:
    """A term may be about every namespace there is."""
    pod_index = PodIndex()
    pod_index.add("vms", "n1", {"app": "db"})
    pod_index.add("other", "n2", {"app": "db"})
    assert found(pod_index, selector(app="db"), Scope((), EVERYTHING)).running == {"n1": 1, "n2": 1}
    assert found(pod_index, selector(app="db"), Scope((), EVERYTHING), HOME).running == {"n1": 1}


@pytest.mark.parametrize("key", sorted(UNKEPT_LABELS))
def test_a_label_that_is_not_kept(key: str) -> None:
    """A selector that names it is not answered, whatever it asks of it."""
    pod_index = PodIndex()
    pod_index.add("vms", "n1", {key: "6d1f", "app": "db"})
    pod_index.add("vms", "n1", {key: "70aa", "app": "db"})
    answer = ask(pod_index, selector(**{key: "x"}))
    assert answer == Unknown(Reason.LABEL_NOT_KEPT, {"rule": "a test", "key": key})
    assert found(pod_index, selector(app="db")).running == {"n1": 2}
    [[group]] = [homes.values() for homes in pod_index._namespaces.values()]
    assert len(group) == 1, "two pods that differ in nothing else are one set of labels"


@pytest.mark.parametrize("labels", [pytest.param({"unique"}, id="label sets"), pytest.param(set(), id="nodes")])
def test_too_many_to_look_at(labels: set[str]) -> None:
    """A step or two for each; with one step less there is no answer, and what is passed over costs next to nothing."""

    def crowded() -> PodIndex:
        pod_index = PodIndex()
        pod_index.add("vms", "n", {"app": "db"})
        for each in range(1_000):
            pod_index.add("crowd", f"n{each}", dict.fromkeys(labels, str(each)))
        return pod_index

    snapshot, enough = Scope(("crowd",)), Budget()
    assert isinstance(ask(crowded(), EVERYTHING, snapshot, budget=enough), Found)
    steps = enough.most - enough.left
    assert 1_000 <= steps <= 2_100
    assert isinstance(ask(crowded(), EVERYTHING, snapshot, budget=Budget(steps)), Found)
    assert ask(crowded(), EVERYTHING, snapshot, budget=Budget(steps - 1)) == Unknown(
        Reason.TOO_MANY_NEIGHBOURS, {"rule": "a test", "most": steps - 1}
    )
    for asked, scope in ((EVERYTHING, HOME), (selector(app="db"), snapshot)):
        assert isinstance(ask(crowded(), asked, scope, budget=Budget(50)), Found)


@given(random=st.randoms(use_true_random=False))
def test_an_answer_that_is_kept_follows_the_pods(random: Random) -> None:
    """Whatever came and went since it was first given, it is equal to a new search."""
    maker = Maker(random, Setting())
    selectors = [parse_selector(convert(maker.selector(), LabelSelector | None)) or NOTHING for _ in range(3)]
    scopes = [(HOME,), (Scope((), EVERYTHING),), (HOME, Scope((), selector(team="a"))), (Scope(("apps", "vms")),)]
    asked = [(each, random.choice(scopes)) for each in selectors]
    pod_index, there = PodIndex(), []
    for step in range(random.randrange(40)):
        if there and maker.odds(40):
            pod_index.remove(there.pop(random.randrange(len(there)))[1])
        else:
            pod, presence = maker.neighbour(step), Presence.EXPECTED if maker.odds(20) else None
            there.append(((pod, presence), add(pod_index, pod, presence)))
        each, within = random.choice(asked)
        found(pod_index, each, *within)
    fresh = PodIndex()
    for (pod, presence), _ in there:
        add(fresh, pod, presence)
    for each, within in asked:
        assert found(pod_index, each, *within) == found(fresh, each, *within)


def test_an_answer_that_is_kept_costs_nothing() -> None:
    """The last answers are stored; for an older question the index searches again."""
    pod_index = PodIndex()
    pod_index.add("vms", "n1", {"app": "db"})
    nothing = Budget(0)
    assert isinstance(ask(pod_index, budget=nothing), Unknown)
    found(pod_index)
    assert isinstance(ask(pod_index, budget=nothing), Found)
    for other in range(16):
        found(pod_index, selector(app=str(other)))
    assert isinstance(ask(pod_index, budget=nothing), Unknown)


def test_terms_are_kept_once() -> None:
    """A thousand pods of one term are one term; each goes with its last pod."""
    pod_index = PodIndex()
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"app": "db"}))
    held = [pod_index.add("vms", f"n{number}", {}, [term, term]) for number in range(1000)]
    assert len(pod_index.existing_anti_affinity) == 1
    for indexed_pod in held:
        pod_index.remove(indexed_pod)
    assert len(pod_index.existing_anti_affinity) == 0


def test_terms_that_do_not_parse() -> None:
    """A pod of which one term is unreadable has none, as for the scheduler, which ignores the error."""
    pod_index = PodIndex()
    fine = convert({"topologyKey": "zone", "labelSelector": {}}, PodAffinityTerm)
    odd = convert({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, PodAffinityTerm)
    pod_index.add("vms", "n1", {}, [fine, odd])
    assert len(pod_index.existing_anti_affinity) == 0


def test_only_the_files_of_a_pods_own_labels_are_opened() -> None:
    """Of ten thousand terms, each for one VM, a pod is compared with those that could be about it."""
    pod_index = PodIndex()
    for number in range(10_000):
        own = LabelSelector(match_labels={"app": "vm", "vm": str(number)})
        pod_index.add("vms", "n1", {}, [PodAffinityTerm(topology_key="zone", label_selector=own)])
    opened = [pod_index.existing_anti_affinity._files.get(("vms", *pair), []) for pair in (("app", "vm"), ("vm", "7"))]
    assert sum(map(len, opened)) <= 2
    [(held, certain)] = pod_index.existing_anti_affinity.against("vms", {"app": "vm", "vm": "7"})
    assert (str(held.term), certain) == ("app=vm, vm=7", True)
    assert not list(pod_index.existing_anti_affinity.against("other", {"app": "vm", "vm": "7"}))
