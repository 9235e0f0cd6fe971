"""An independent model of how kube-scheduler decides whether a pod may run on a node.

Written from the Go sources of Kubernetes 1.37 over plain JSON dicts, without any code of `webhook`. The tests compare
the webhook's own rules with it. Each function names the Go function that it follows. Not modelled, because
they depend on other pods: resources, ports, inter-pod affinity and topology spread. `room_parity` asks the real
kube-scheduler about these.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT64_MAX_DIGITS = 19
SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
TAINT_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
TOPOLOGY_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "",
    "topology.kubernetes.io/region": "",
}
DO_NOT_SCHEDULE = ("NoSchedule", "NoExecute")

# apimachinery pkg/api/validate/content. Go's `$` is the end of the text, so these are used with fullmatch only.
NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
SUBDOMAIN_MAX_CHARS = 253
LABEL_MAX_CHARS = 63


def admits(pod: Json, node: Json, pvs: Iterable[Json] = ()) -> bool:
    """Whether NodeAffinity, TaintToleration, NodeUnschedulable, VolumeBinding and VolumeZone all let the pod in."""
    spec = pod.get("spec") or {}
    tolerations = spec.get("tolerations") or []
    return (
        affinity_admits(pod, node)
        and all(tolerated(tolerations, taint) for taint in _blocking_taints(node))
        and (not (node.get("spec") or {}).get("unschedulable") or tolerated(tolerations, TAINT_UNSCHEDULABLE))
        and all(volume_admits(pv, node) and zone_admits(pv, node) for pv in pvs)
    )


def affinity_admits(pod: Json, node: Json) -> bool:
    """nodeaffinity.go, GetRequiredNodeAffinity and RequiredNodeAffinity.Match: nodeSelector, then required terms."""
    spec = pod.get("spec") or {}
    wanted = spec.get("nodeSelector") or {}
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return required is None or selector_matches(required, labels, name_of(node))


def volume_admits(pv: Json, node: Json) -> bool:
    """storage/volume/helpers.go, CheckNodeAffinity: it is given the node's labels only, so no field ever refuses."""
    required = ((pv.get("spec") or {}).get("nodeAffinity") or {}).get("required")
    return required is None or selector_matches(required, labels_of(node), "")


def zone_admits(pv: Json, node: Json) -> bool:
    """volumezone/volume_zone.go, getPVbyPod and Filter: a node with no topology label is let through unasked."""
    has, wanted = labels_of(node), labels_of(pv)
    if not any(label in has for label in TOPOLOGY_LABELS):
        return True
    for label, newer in TOPOLOGY_LABELS.items():
        if label in wanted:
            zones = [zone.strip() for zone in wanted[label].split("__")]
            here = has[label] if label in has else has.get(newer)
            if all(zones) and (here is None or here not in zones):
                return False
    return True


def selector_matches(selector: Json, labels: Mapping[str, str], name: str) -> bool:
    """nodeaffinity.go, LazyErrorNodeSelector.Match: ORed terms; one that is empty or can't be parsed is no match."""
    return any(term_matches(term, labels, name) for term in selector.get("nodeSelectorTerms") or [])


def term_matches(term: Json, labels: Mapping[str, str], name: str) -> bool:
    """nodeaffinity.go, newNodeSelectorTerm and nodeSelectorTerm.match."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    if not all(label_requirement_parses(r) for r in expressions) or not all(
        field_requirement_parses(r) for r in fields
    ):
        return False
    if not all(label_requirement_matches(r, labels) for r in expressions):
        return False
    return not name or all(field_requirement_matches(r, {"metadata.name": name}) for r in fields)


def label_requirement_parses(requirement: Json) -> bool:
    """labels/selector.go, NewRequirement: what it accepts."""
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator not in SELECTOR_OPERATORS or not is_label_key(requirement.get("key") or ""):
        return False
    if operator in ("In", "NotIn") and not values:
        return False
    if operator in ("Exists", "DoesNotExist") and values:
        return False
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int(values[0]) is None):
        return False
    return all(is_label_value(value) for value in values)


def label_requirement_matches(requirement: Json, labels: Mapping[str, str]) -> bool:
    """labels/selector.go, Requirement.Matches."""
    operator, values = requirement["operator"], requirement.get("values") or []
    has, value = requirement["key"] in labels, labels.get(requirement["key"], "")
    if operator == "In":
        return has and value in values
    if operator == "NotIn":
        return not has or value not in values
    if operator == "Exists":
        return has
    if operator == "DoesNotExist":
        return not has
    left, right = parse_int(value), parse_int(values[0])
    if not has or left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def field_requirement_parses(requirement: Json) -> bool:
    """nodeaffinity.go, nodeSelectorRequirementsAsFieldSelector: what it accepts."""
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or []) == 1


def field_requirement_matches(requirement: Json, fields: Mapping[str, str]) -> bool:
    """fields/selector.go, hasTerm and notHasTerm: a field that is absent reads as the empty string."""
    same = fields.get(requirement.get("key") or "", "") == requirement["values"][0]
    return same if requirement["operator"] == "In" else not same


def tolerated(tolerations: Iterable[Json], taint: Json) -> bool:
    """scheduling/corev1/helpers.go, TolerationsTolerateTaint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def tolerates(toleration: Json, taint: Json) -> bool:
    """toleration.go, ToleratesTaint, with Gt and Lt on: where the gate is off, no pod that has them is admitted."""
    for part in ("effect", "key"):
        if toleration.get(part) and toleration[part] != (taint.get(part) or ""):
            return False
    operator = toleration.get("operator") or "Equal"
    value, taint_value = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return value == taint_value
    if operator == "Exists":
        return True
    left, right = _canonical_int(taint_value), _canonical_int(value)
    if operator not in ("Gt", "Lt") or left is None or right is None:
        return False
    return left > right if operator == "Gt" else left < right


def affinity_problems(node_affinity: Json | None) -> list[str]:
    """apis/core/validation, validateNodeAffinity: what kube-apiserver would refuse at CREATE."""
    given = node_affinity or {}
    problems: list[str] = []
    required = given.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        problems += [] if terms else ["required: at least one term"]
        problems += [p for term in terms for p in _term_problems(term, check_values=True)]
    for preferred in given.get("preferredDuringSchedulingIgnoredDuringExecution") or []:
        weight = preferred.get("weight") or 0
        problems += [] if 1 <= weight <= 100 else [f"weight {weight}"]
        problems += _term_problems(preferred.get("preference") or {}, check_values=False)
    return problems


def _term_problems(term: Json, *, check_values: bool) -> list[str]:
    """apis/core/validation, ValidateNodeSelectorTerm; label values are not checked in preferred terms."""
    problems = []
    for requirement in term.get("matchExpressions") or []:
        operator, count = requirement.get("operator"), len(requirement.get("values") or [])
        good = {"In": count > 0, "NotIn": count > 0, "Exists": count == 0, "DoesNotExist": count == 0}
        if not good.get(operator, operator in ("Gt", "Lt") and count == 1):
            problems.append(f"matchExpressions {operator} with {count} values")
        if not is_label_key(requirement.get("key") or ""):
            problems.append(f"matchExpressions key {requirement.get('key')!r}")
        if check_values and not all(is_label_value(v) for v in requirement.get("values") or []):
            problems.append(f"matchExpressions values {requirement['values']!r}")
    for requirement in term.get("matchFields") or []:
        if not field_requirement_parses(requirement):
            problems.append(f"matchFields {requirement!r}")
        if requirement.get("key") != "metadata.name":
            problems.append(f"matchFields key {requirement.get('key')!r}")
        problems += [f"matchFields value {v!r}" for v in requirement.get("values") or [] if not is_subdomain(v)]
    return problems


def is_subdomain(text: str) -> bool:
    """content/dns.go, IsDNS1123Subdomain; also what a node may be called."""
    return len(text) <= SUBDOMAIN_MAX_CHARS and bool(SUBDOMAIN.fullmatch(text))


def is_label_key(key: str) -> bool:
    """content/kube.go, IsLabelKey."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= LABEL_MAX_CHARS and bool(NAME_PART.fullmatch(name))


def is_label_value(value: str) -> bool:
    """content/kube.go, IsLabelValue."""
    return not value or (len(value) <= LABEL_MAX_CHARS and bool(NAME_PART.fullmatch(value)))


def parse_int(text: str) -> int | None:
    """Go's strconv.ParseInt(text, 10, 64); None where it gives an error."""
    digits = re.fullmatch(r"[+-]?0*([0-9]+)", text)
    if not digits or len(digits.group(1)) > INT64_MAX_DIGITS:
        return None
    number = int(digits.group(1)) * (-1 if text[0] == "-" else 1)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _canonical_int(text: str) -> int | None:
    """content/decimal_int.go, IsDecimalInteger, then ParseInt: no plus, no leading zero, no minus zero."""
    return parse_int(text) if re.fullmatch(r"0|-?[1-9][0-9]*", text) else None


def _blocking_taints(node: Json) -> list[Json]:
    """plugins/helper/taint.go, DoNotScheduleTaintsFilterFunc."""
    return [t for t in (node.get("spec") or {}).get("taints") or [] if t.get("effect") in DO_NOT_SCHEDULE]


def labels_of(thing: Json) -> Mapping[str, str]:
    """The labels, an empty map where there are none."""
    return (thing.get("metadata") or {}).get("labels") or {}


def name_of(thing: Json) -> str:
    """The name, empty where there is none."""
    return (thing.get("metadata") or {}).get("name") or ""
