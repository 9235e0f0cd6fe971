"""What can be odd about the objects of an admission, as plain JSON: node selectors, affinities, and single fields."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

NODES = ("n1", "n2", "n3", "node-4.example.com")
Object = dict[str, Any]


def odds(out_of: int) -> st.SearchStrategy[bool]:
    """True once in `out_of` times."""
    return st.integers(1, out_of).map(lambda number: number == out_of)


@st.composite
def rarely(draw: st.DrawFn, usual: st.SearchStrategy[Any], odd: st.SearchStrategy[Any], out_of: int = 10) -> Any:
    """`odd` once in `out_of` times."""
    return draw(odd if draw(odds(out_of)) else usual)


def some(*values: Any) -> st.SearchStrategy[Any]:
    """Return one of these values. A value that is given twice comes twice as often."""
    return st.sampled_from(values)


def sparse(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """Return a mapping in which each field can be absent."""
    return st.fixed_dictionaries({}, optional=fields)


def whole(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Object]:
    """Return a mapping that has every field, some of them null."""
    return st.fixed_dictionaries(fields)


LABELS = sparse(
    zone=some("a", "b"),
    disk=some("ssd", "hdd", ""),
    cpu=some("3", "16", "x", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
)
OPEN_EXPRESSION = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
OPEN_TERM = {"matchExpressions": [OPEN_EXPRESSION]}
SANE_EXPRESSIONS = some(
    OPEN_EXPRESSION,
    {**OPEN_EXPRESSION, "values": None},
    {"key": "zone", "operator": "In", "values": ["a"]},
    {"key": "zone", "operator": "In", "values": ["a", "b"]},
    {"key": "zone", "operator": "NotIn", "values": ["b"]},
    {"key": "disk", "operator": "Exists"},
    {"key": "cpu", "operator": "Gt", "values": ["2"]},
    {"key": "cpu", "operator": "Lt", "values": ["9223372036854775807"]},
)
_KEYS = some(*["zone", "disk", "cpu"] * 5, "example.com/x")
_VALUES = some("a", "b", "ssd", "", "3", "-3", "+3", "0x3", "1_0", "٣", "bad value!", "v" * 64, "a\n")
WILD_EXPRESSIONS = (
    whole(key=_KEYS, operator=some("In", "NotIn"), values=st.lists(_VALUES, min_size=1, max_size=2))
    | whole(key=_KEYS, operator=some("Exists", "DoesNotExist"), values=some(None, []))
    | whole(key=_KEYS, operator=some("Gt", "Lt"), values=_VALUES.map(lambda value: [value]))
)
"""What an API server stores. Before 1.33 it looks at no value. It refuses another key or operator, or more values."""
SANE_FIELDS = st.builds(
    lambda operator, node: {"key": "metadata.name", "operator": operator, "values": [node]},
    some("In", "NotIn"),
    some(*NODES, "elsewhere"),
)
WILD_FIELDS = whole(
    key=some("metadata.name", "metadata.name", "metadata.namespace", "", None),
    operator=some("In", "NotIn"),
    values=some(*NODES, "", "Bad_Name").map(lambda value: [value]),
)


def _term(expressions: st.SearchStrategy[Object], fields: st.SearchStrategy[Object]) -> st.SearchStrategy[Object]:
    return sparse(
        matchExpressions=st.none() | st.lists(expressions, max_size=2),
        matchFields=st.none() | st.lists(fields, max_size=2),
        unknownField=some({"deep": [None, {"x": 1.5}]}, None),
    )


_ON_N1, _ON_N2 = ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in NODES[:2])
SANE_TERMS = some(OPEN_TERM, {**OPEN_TERM, "matchFields": None}, {"matchFields": []}, {}, _ON_N1, _ON_N2) | _term(
    SANE_EXPRESSIONS, SANE_FIELDS
)
WILD_TERMS = _term(SANE_EXPRESSIONS | WILD_EXPRESSIONS, SANE_FIELDS | WILD_FIELDS)
TERMS = rarely(SANE_TERMS, WILD_TERMS, 4)
TERM_LISTS = st.builds(
    lambda terms, times: terms * times, st.lists(TERMS, min_size=1, max_size=3), some(*[1] * 12, 10, 40)
)
SELECTORS = st.fixed_dictionaries(
    {"nodeSelectorTerms": rarely(TERM_LISTS, some(None, []))}, optional={"unknownField": some(1)}
)
PREFERRED = some(None, [], [{"weight": 1, "preference": OPEN_TERM, "unknownField": 1}]) | st.lists(
    sparse(
        weight=some(1, 50, 100, 100, 0, None), preference=st.none() | SANE_FIELDS.map(lambda f: {"matchFields": [f]})
    ),
    max_size=3,
)
_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_EMPTY = [
    None,
    {},
    {"nodeAffinity": None},
    {"nodeAffinity": {}},
    {"nodeAffinity": {_REQUIRED: None, _PREFERRED: None}, "podAffinity": None},
    {"nodeAffinity": {_PREFERRED: []}, "podAntiAffinity": {}, "unknownField": [1]},
]
_POD_TERMS = some(
    *[None, {}, {_REQUIRED: []}, {_PREFERRED: [{"weight": 1}]}] * 4, {_REQUIRED: [{"topologyKey": "zone"}]}
)
_REQUIRED_TERMS = st.fixed_dictionaries(
    {_REQUIRED: SELECTORS}, optional={_PREFERRED: PREFERRED, "unknownField": some({})}
)
_BOTH = st.fixed_dictionaries({"nodeAffinity": _REQUIRED_TERMS}, optional={"podAffinity": _POD_TERMS})
_PREFERENCES = st.fixed_dictionaries({"nodeAffinity": st.fixed_dictionaries({_PREFERRED: PREFERRED})})
_OTHERS = st.fixed_dictionaries({"podAffinity": _POD_TERMS, "podAntiAffinity": _POD_TERMS, "unknownField": some([1])})
AFFINITIES = some(*_EMPTY) | _BOTH | _BOTH.map(dict) | _PREFERENCES | _OTHERS
"""Of an affinity's shapes the one with required terms comes twice as often."""


GONE = object()


def disk(index: int) -> Object:
    """Return the pod's volume of the claim `c<index>`."""
    return {"name": f"disk{index}", "persistentVolumeClaim": {"claimName": f"c{index}"}}


_DELETED = {"metadata.deletionTimestamp": ["2026-01-01T00:00:00Z"]}
_READINESS = {"": [GONE], "status": [None, {}, {"conditions": None}, {"conditions": [{"type": "Ready"}]}]}
_EVIDENCE = [*NODES, "ghost", "Bad_Name", "", None]
_OPT_IN, _DECISION = (
    "metadata.annotations.kubevirt-scheduler/co-schedule",
    "metadata.annotations.kubevirt-scheduler/decision",
)
LOCAL, V2 = {"dataLocality": "strict-local"}, {"dataEngine": "v2"}
WITHOUT_V2 = {"node.longhorn.io/disable-v2-data-engine": "true"}
OBJECT_QUIRKS: dict[str, dict[str, list[Any]]] = {
    "node": {
        **_DELETED,
        **_READINESS,
        "spec.unschedulable": [True, True, True, False],
        "metadata.labels": [None, {}, WITHOUT_V2],
    },
    "longhorn_node": _READINESS,
    "claim": {
        "": [GONE],
        "spec": [None],
        "spec.accessModes": [None, [], ["ReadWriteOnce"], ["ReadOnlyMany", "ReadWriteMany"]],
        "spec.volumeName": [None, "", "lost", "pv0", "pv0"],
        "spec.volumeMode": ["Filesystem", "Block"],
        "status": [None, {}, {"phase": "Pending"}, {"phase": "Lost"}],
    },
    "volume": {
        "": [GONE],
        "spec.csi": [None, {}],
        "spec.csi.driver": [None, "nfs.csi.k8s.io"],
        "spec.csi.volumeHandle": ["", None, "h0", "h0"],
        "spec.csi.volumeAttributes": [None, *({"migratable": value} for value in ("true", "T", "false")), LOCAL, V2],
        "spec.volumeMode": ["Filesystem", "Block"],
        "metadata.labels": [None, {}, {"topology.kubernetes.io/zone": "north__south"}],
        "spec.nodeAffinity": [None, {}, {"required": None}, {"required": {"nodeSelectorTerms": [OPEN_TERM]}}],
    },
    "manager": {
        "": [GONE],
        "status": [None, {}],
        "status.ownerID": _EVIDENCE,
        "status.state": [None, "", "starting", "stopped", "error"],
    },
    "pod": {
        **_DELETED,
        "": [GONE, GONE, GONE],
        "spec": [{}],
        "spec.nodeName": _EVIDENCE,
        "status": [None, {}, {"phase": "Pending"}, {"phase": "Failed"}],
        "metadata.labels": [None, {}],
    },
}
POD_QUIRKS: dict[str, list[Any]] = {
    _OPT_IN: ["required", "preferred", "false", "True", "", GONE],
    _DECISION: ["stale"],
    "metadata.annotations": [None, {}],
    "metadata.annotations.kubevirt.io/ephemeral-provisioning": ["true", "false"],
    "metadata.labels": [None, {"kubevirt.io": "hotplug-disk"}],
    "metadata.labels.kubevirt.io/migrationJobUID": [""],
    "spec.nodeName": ["n1", "", None],
    "spec.nodeSelector": [None, {}, {"zone": "a"}, {"disk": ""}],
    "spec.resourceClaims": [None, [{"name": "gpu"}]],
    "spec.topologySpreadConstraints": [[], [{"whenUnsatisfiable": "ScheduleAnyway"}], [{"topologyKey": "zone"}]],
    "spec.volumes": [None, [{"name": "scratch", "ephemeral": {}}], [disk(0), {"name": "scratch", "ephemeral": {}}]],
}


def evenly(quirks: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    """Return (path, value) pairs, equally many for each path: a path with few values is as frequent as any other."""
    return [(path, value) for path, values in quirks.items() for value in (values * _EACH)[:_EACH]]


_EACH = max(len(values) for paths in OBJECT_QUIRKS.values() for values in paths.values())


def bend(thing: Object, path: str, value: Any) -> None:
    """Set a field by its dotted path (annotation and label keys keep their dots); GONE removes it."""
    *parents, last = path.split(".", 2)
    for key in parents:
        thing = thing.get(key) or {}  # a parent that an earlier quirk took away: nothing to bend
    if value is GONE:
        thing.pop(last, None)
    else:
        thing[last] = copy.deepcopy(value)
