from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from support.models.neighbour_judge import add
from support.models.scheduler_model import labels_of, matches
from support.strategies.neighbour_situations import Maker, Setting

from webhook.core.api.affinity import PodAffinityTerm
from webhook.core.api.meta import LabelSelector
from webhook.core.reasons import Reason
from webhook.core.scheduler.budget import Budget
from webhook.core.scheduler.state.label_selector import EVERYTHING, NOTHING, Scope, Selector, parse
from webhook.core.scheduler.state.pod_index import UNKEPT_LABELS, Found, Neighbours, Presence
from webhook.core.scheduler.status import Undecided

HOME = Scope(("vms",))


def selector(**labels: str) -> Selector:
    """A selector of labels."""
    return parse(LabelSelector(match_labels=labels)) or NOTHING


def ask(
    neighbours: Neighbours, asked: Selector = EVERYTHING, *scopes: Scope, budget: Budget | None = None
) -> Found | Undecided:
    """The answer; at home where no scope is told."""
    return neighbours.find(scopes or (HOME,), asked, rule="a test", budget=budget or Budget())


def found(neighbours: Neighbours, asked: Selector = EVERYTHING, *scopes: Scope) -> Found:
    """What is found."""
    answer = ask(neighbours, asked, *scopes)
    assert isinstance(answer, Found)
    return answer


@given(random=st.randoms(use_true_random=False))
def test_it_is_what_is_left(random: Random) -> None:
    """After pods came and went in any order it answers as one made of those that are left, and holds no more."""
    maker = Maker(random, Setting())
    neighbours, there = Neighbours(), []
    for step in range(random.randrange(30)):
        if there and maker.odds(40):
            neighbours.remove(there.pop(random.randrange(len(there)))[1])
        else:
            pod = maker.neighbour(step)
            there.append((pod, add(neighbours, pod)))
    asked = maker.selector()
    parsed = parse(convert(asked, LabelSelector | None))
    assert parsed is not None
    at_home = [pod for pod, _ in there if pod["metadata"]["namespace"] == "vms" and matches(asked, labels_of(pod))]
    answer = found(neighbours, parsed)
    assert answer.there + answer.terminating == Counter(pod["spec"]["nodeName"] for pod in at_home)
    assert set(answer.bound) == {pod["spec"]["nodeName"] for pod in at_home}
    living = [pod for pod in at_home if "deletionTimestamp" not in pod["metadata"]]
    assert answer.there == Counter(pod["spec"]["nodeName"] for pod in living)
    for _, held in there:
        neighbours.remove(held)
    assert not any(
        (neighbours._namespaces, neighbours._homes, len(neighbours.repulsions), neighbours.repulsions._files)
    )


def test_many_pods_of_the_same_labels() -> None:
    """However many there are, each node has its number, and each that goes takes one away."""
    neighbours = Neighbours()
    held = [neighbours.add("vms", f"n{number % 3}", {"app": "db"}) for number in range(20)]
    assert found(neighbours).there == {"n0": 7, "n1": 7, "n2": 6}
    for neighbour in held[3:]:
        neighbours.remove(neighbour)
    assert found(neighbours).there == {"n0": 1, "n1": 1, "n2": 1}
    for neighbour in held[1:3]:
        neighbours.remove(neighbour)
    assert found(neighbours).there == {"n0": 1}


@pytest.mark.parametrize(
    ("presence", "expected"),
    [
        pytest.param(Presence.BOUND, Found(there={"n1": 1}), id="bound"),
        pytest.param(Presence.TERMINATING, Found(terminating={"n1": 1}), id="terminating"),
        pytest.param(Presence.EXPECTED, Found(expected={"n1": 1}), id="expected"),
    ],
)
def test_how_sure_a_pod_is(presence: Presence, expected: Found) -> None:
    """A pod that is expected is told apart; one whose namespace can't be told counts neither way."""
    neighbours = Neighbours()
    neighbours.add("vms", "n1", None, presence=presence)
    assert found(neighbours) == expected
    by_team = Scope((), selector(team="a"))
    assert found(neighbours, EVERYTHING, by_team) == Found(unsure={"n1": 1})
    assert found(neighbours, EVERYTHING, HOME, by_team) == Found(unsure={"n1": 1})
    assert found(neighbours, EVERYTHING, HOME, Scope(("other",))) == Found()
    assert found(neighbours, NOTHING) == Found()


def test_all_namespaces() -> None:
    """A term may be about every namespace there is."""
    neighbours = Neighbours()
    neighbours.add("vms", "n1", {"app": "db"})
    neighbours.add("other", "n2", {"app": "db"})
    assert found(neighbours, selector(app="db"), Scope((), EVERYTHING)).there == {"n1": 1, "n2": 1}
    assert found(neighbours, selector(app="db"), Scope((), EVERYTHING), HOME).there == {"n1": 1}


@pytest.mark.parametrize("key", sorted(UNKEPT_LABELS))
def test_a_label_that_is_not_kept(key: str) -> None:
    """A selector that names it is not answered, whatever it asks of it."""
    neighbours = Neighbours()
    neighbours.add("vms", "n1", {key: "6d1f", "app": "db"})
    neighbours.add("vms", "n1", {key: "70aa", "app": "db"})
    answer = ask(neighbours, selector(**{key: "x"}))
    assert answer == Undecided(Reason.LABEL_NOT_KEPT, {"rule": "a test", "key": key})
    assert found(neighbours, selector(app="db")).there == {"n1": 2}
    [[group]] = [homes.values() for homes in neighbours._namespaces.values()]
    assert len(group) == 1, "two pods that differ in nothing else are one set of labels"


@pytest.mark.parametrize("labels", [pytest.param({"unique"}, id="label sets"), pytest.param(set(), id="nodes")])
def test_too_many_to_look_at(labels: set[str]) -> None:
    """A step or two for each; with one step less there is no answer, and what is passed over costs next to nothing."""

    def crowded() -> Neighbours:
        neighbours = Neighbours()
        neighbours.add("vms", "n", {"app": "db"})
        for each in range(1_000):
            neighbours.add("crowd", f"n{each}", dict.fromkeys(labels, str(each)))
        return neighbours

    crowd, enough = Scope(("crowd",)), Budget()
    assert isinstance(ask(crowded(), EVERYTHING, crowd, budget=enough), Found)
    steps = enough.most - enough.left
    assert 1_000 <= steps <= 2_100
    assert isinstance(ask(crowded(), EVERYTHING, crowd, budget=Budget(steps)), Found)
    assert ask(crowded(), EVERYTHING, crowd, budget=Budget(steps - 1)) == Undecided(
        Reason.TOO_MANY_NEIGHBOURS, {"rule": "a test", "most": steps - 1}
    )
    for asked, scope in ((EVERYTHING, HOME), (selector(app="db"), crowd)):
        assert isinstance(ask(crowded(), asked, scope, budget=Budget(50)), Found)


@given(random=st.randoms(use_true_random=False))
def test_an_answer_that_is_kept_follows_the_pods(random: Random) -> None:
    """Whatever came and went since it was first given, it is what is found anew."""
    maker = Maker(random, Setting())
    selectors = [parse(convert(maker.selector(), LabelSelector | None)) or NOTHING for _ in range(3)]
    scopes = [(HOME,), (Scope((), EVERYTHING),), (HOME, Scope((), selector(team="a"))), (Scope(("apps", "vms")),)]
    asked = [(each, random.choice(scopes)) for each in selectors]
    neighbours, there = Neighbours(), []
    for step in range(random.randrange(40)):
        if there and maker.odds(40):
            neighbours.remove(there.pop(random.randrange(len(there)))[1])
        else:
            pod, presence = maker.neighbour(step), Presence.EXPECTED if maker.odds(20) else None
            there.append(((pod, presence), add(neighbours, pod, presence)))
        each, within = random.choice(asked)
        found(neighbours, each, *within)
    fresh = Neighbours()
    for (pod, presence), _ in there:
        add(fresh, pod, presence)
    for each, within in asked:
        assert found(neighbours, each, *within) == found(fresh, each, *within)


def test_an_answer_that_is_kept_costs_nothing() -> None:
    """The last few questions are; what was not asked for so long is looked for anew."""
    neighbours = Neighbours()
    neighbours.add("vms", "n1", {"app": "db"})
    nothing = Budget(0)
    assert isinstance(ask(neighbours, budget=nothing), Undecided)
    found(neighbours)
    assert isinstance(ask(neighbours, budget=nothing), Found)
    for other in range(16):
        found(neighbours, selector(app=str(other)))
    assert isinstance(ask(neighbours, budget=nothing), Undecided)


def test_terms_are_kept_once() -> None:
    """A thousand pods of one term are one term; each goes with its last pod."""
    neighbours = Neighbours()
    term = PodAffinityTerm(topology_key="zone", label_selector=LabelSelector(match_labels={"app": "db"}))
    held = [neighbours.add("vms", f"n{number}", {}, [term, term]) for number in range(1000)]
    assert len(neighbours.repulsions) == 1
    for neighbour in held:
        neighbours.remove(neighbour)
    assert len(neighbours.repulsions) == 0


def test_terms_that_do_not_parse() -> None:
    """A pod of which one term is unreadable has none, as for the scheduler, which ignores the error."""
    neighbours = Neighbours()
    fine = convert({"topologyKey": "zone", "labelSelector": {}}, PodAffinityTerm)
    odd = convert({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}, PodAffinityTerm)
    neighbours.add("vms", "n1", {}, [fine, odd])
    assert len(neighbours.repulsions) == 0


def test_only_the_files_of_a_pods_own_labels_are_opened() -> None:
    """Of ten thousand terms, each for one VM, a pod is compared with those that could be about it."""
    neighbours = Neighbours()
    for number in range(10_000):
        own = LabelSelector(match_labels={"app": "vm", "vm": str(number)})
        neighbours.add("vms", "n1", {}, [PodAffinityTerm(topology_key="zone", label_selector=own)])
    opened = [neighbours.repulsions._files.get(("vms", *pair), []) for pair in (("app", "vm"), ("vm", "7"))]
    assert sum(map(len, opened)) <= 2
    [(held, certain)] = neighbours.repulsions.against("vms", {"app": "vm", "vm": "7"})
    assert (str(held.term), certain) == ("app=vm, vm=7", True)
    assert not list(neighbours.repulsions.against("other", {"app": "vm", "vm": "7"}))
