"""What other webhooks do to a pod between two calls of this webhook, as functions from pod to pod; JSON in, JSON out.

Each change keeps the parts of this webhook or drops them. It does the same to a pod without these parts.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from support.strategies.affinity_shapes import SANE_EXPRESSIONS, SANE_FIELDS, some

Object = dict[str, Any]
Change = Callable[[Object], None]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

LABEL_TERMS = st.fixed_dictionaries({"matchExpressions": st.lists(SANE_EXPRESSIONS, min_size=1, max_size=2)})
NAME_TERMS = st.fixed_dictionaries({"matchFields": st.lists(SANE_FIELDS, min_size=1, max_size=2)})
_LATER = {"key": "example.com/later", "operator": "DoesNotExist"}  # of no term before: what is alike is not told apart
_SIDECAR = {"name": "sidecar", "resources": {"requests": {"cpu": "63", "memory": "1Gi"}}}


def _node_affinity(pod: Object) -> Object:
    """Return the pod's nodeAffinity, and create it if it is absent."""
    spec = pod["spec"]
    spec["affinity"] = spec.get("affinity") or {}
    spec["affinity"]["nodeAffinity"] = spec["affinity"].get("nodeAffinity") or {}
    found: Object = spec["affinity"]["nodeAffinity"]
    return found


def _terms(pod: Object) -> list[Object]:
    own = _node_affinity(pod)
    own[REQUIRED] = own.get(REQUIRED) or {}
    own[REQUIRED]["nodeSelectorTerms"] = own[REQUIRED].get("nodeSelectorTerms") or []
    found: list[Object] = own[REQUIRED]["nodeSelectorTerms"]
    return found


def select(pod: Object) -> None:
    """Add a nodeSelector."""
    pod["spec"]["nodeSelector"] = {**(pod["spec"].get("nodeSelector") or {}), "disk": "ssd"}


def inject(pod: Object) -> None:
    """Add a sidecar that is too large for any node."""
    pod["spec"]["containers"] = [*pod["spec"]["containers"], copy.deepcopy(_SIDECAR)]


def gate(pod: Object) -> None:
    """Add a scheduling gate."""
    pod["spec"]["schedulingGates"] = [{"name": "kubevirt.io/quota"}]


def spread(pod: Object) -> None:
    """Add a required topology spread."""
    pod["spec"]["topologySpreadConstraints"] = [{"topologyKey": "zone", "maxSkew": 1, "labelSelector": {}}]


def annotate(pod: Object) -> None:
    """Add an annotation."""
    pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), "other": "webhook"}


def drop_affinity(pod: Object) -> None:
    """Remove the whole affinity."""
    pod["spec"].pop("affinity", None)


def drop_node_affinity(pod: Object) -> None:
    """Remove the whole node affinity."""
    (pod["spec"].get("affinity") or {}).pop("nodeAffinity", None)


def nothing(pod: Object) -> None:
    """Change nothing."""


def narrow(pod: Object) -> None:
    """Add an expression to every term, as KubeVirt itself does; without a term add one."""
    terms = _terms(pod)
    for term in terms:
        term["matchExpressions"] = [*(term.get("matchExpressions") or ()), _LATER]
    if not terms:
        terms.append({"matchExpressions": [_LATER]})


@st.composite
def widen(draw: st.DrawFn, shapes: st.SearchStrategy[Object]) -> Change:
    """Add a term, ORed, before or after the existing ones."""
    term, first = draw(shapes), draw(st.booleans())

    def change(pod: Object) -> None:
        terms = _terms(pod)
        terms.insert(0 if first else len(terms), copy.deepcopy(term))

    return change


@st.composite
def prefer(draw: st.DrawFn, shapes: st.SearchStrategy[Object]) -> Change:
    """Add a preference."""
    wish, first = {"weight": draw(some(1, 50, 100)), "preference": draw(shapes)}, draw(st.booleans())

    def change(pod: Object) -> None:
        own = _node_affinity(pod)
        there = own.get(PREFERRED) or []
        own[PREFERRED] = [copy.deepcopy(wish), *there] if first else [*there, copy.deepcopy(wish)]

    return change


_HARMLESS = some(select, inject, gate, spread, annotate, nothing)
_ANY_TERMS = LABEL_TERMS | NAME_TERMS


def _changes(*kinds: st.SearchStrategy[Change]) -> st.SearchStrategy[list[Change]]:
    return st.lists(st.one_of(_HARMLESS, *kinds), min_size=1, max_size=3)


CHANGES = st.one_of(
    _changes(widen(LABEL_TERMS), prefer(_ANY_TERMS)),
    _changes(some(drop_affinity, drop_node_affinity), widen(LABEL_TERMS), prefer(LABEL_TERMS)),
    _changes(some(narrow), prefer(LABEL_TERMS)),
)
"""Some changes, never all of them together.

If another webhook drops this webhook's term and writes an equal one, nothing distinguishes the two. If it narrows all
terms and adds one, the result for a pod with this webhook's term differs from that for a pod without a term.
"""

NAME_CHANGES = _changes(widen(NAME_TERMS), prefer(_ANY_TERMS))
"""Changes that add required terms by the names of nodes, of which some can equal this webhook's."""


def changed(pod: Object, changes: list[Change]) -> Object:
    """Return the pod after these changes, one after the other."""
    after: Object = json.loads(json.dumps(pod))  # two terms that are one object here would both be changed
    for change in changes:
        change(after)
    return after


def plain(value: Any) -> Any:
    """Return the pod without empty and null fields, and with sorted preferences. To Kubernetes it is the same pod."""
    if isinstance(value, dict):
        kept = {key: rest for key, inner in value.items() if (rest := plain(inner)) not in (None, {}, [])}
        if PREFERRED in kept:
            kept[PREFERRED] = sorted(kept[PREFERRED], key=json.dumps)
        return kept
    return [plain(inner) for inner in value] if isinstance(value, list) else value
