"""The cluster of a row of tests/cases as webhook.core reads it from a file; and the short list of the row's pod.

Which nodes a short list has, beside those that are preferred, is chance: the order of a cache that was filled by
watching. So a row says what the affinity is without the list, and which nodes are in it, or how many.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, cast

from support.objects.builders import LONGHORN_NAMESPACE, on_node
from support.objects.corpus import Case

from webhook.core.opt_in import Mode, OptInAll, Policy
from webhook.objects.cluster import Cluster
from webhook.objects.documents import Document, read_documents
from webhook.objects.files import read_objects


def policy(case: Case, *, audit: bool = False) -> Policy:
    """Return the settings of a row's cluster."""
    return Policy(Mode(case.mode), opt_in_all=cast("OptInAll", case.opt_in_all), audit=audit)


@cache
def embedded(case: Case) -> Cluster:
    """Return the embedded cluster of a row."""
    described = chain.from_iterable(map(_documents, map(json.dumps, case.objects)))
    return Cluster(read_objects(described), longhorn_namespace=LONGHORN_NAMESPACE)


@cache
def _documents(described: str) -> Sequence[Document]:
    """Rows share most of their objects. Each is read once."""
    return tuple(read_documents(described, "cluster.json"))


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EMPTY: dict[str, Any] = {}  # a term that matches nothing, and stays so


def shortlist_problems(case: Case, affinity: Any, expected: Any) -> list[str]:
    """What is wrong with the affinity that a row's pod came out with; `expected` is the row's, without the list."""
    wanted = case.expect.shortlist
    if not wanted:
        return [] if affinity == expected else [f"affinity: got {affinity}, expected {expected}"]
    listed = list(shortlisted(affinity))
    found = list(_list_problems(listed, case.expect.nodes, wanted))
    given = {each["metadata"]["name"] for each in case.nodes}
    found += [f"short list: {node} is no node of the cluster" for node in listed if node not in given]
    if _ordered(affinity) != _ordered(_narrowed(expected, listed)):
        found.append(f"affinity: got {affinity}, expected {expected} with {listed} in each term")
    return found


def _list_problems(listed: Sequence[str], first: Sequence[str], wanted: int | frozenset[str]) -> Iterator[str]:
    if isinstance(wanted, frozenset):  # one that is preferred, and has no room, is not on the list
        first = [node for node in first if node in wanted]
    if listed[: len(first)] != list(first):
        yield f"short list: it begins with {listed[: len(first)]}, expected the preferred nodes {list(first)}"
    if isinstance(wanted, int) and len(listed) != wanted:
        yield f"short list: got {len(listed)} nodes, expected {wanted}"
    if isinstance(wanted, frozenset) and set(listed) != wanted:
        yield f"short list: got {sorted(listed)}, expected {sorted(wanted)}"


def shortlisted(affinity: Mapping[str, Any]) -> dict[str, None]:
    """The nodes that the required terms name, each once, as they are listed."""
    terms = affinity["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    fields = (field for term in terms for field in term.get("matchFields") or ())
    return dict.fromkeys(field["values"][0] for field in fields if field["operator"] == "In")


def wishes(affinity: Mapping[str, Any], *, by_pod: bool) -> list[tuple[str, int]]:
    """The nodes that a pod is drawn to, with the weights: by instance-manager pods, or by name."""
    if not by_pod:
        terms = affinity.get("nodeAffinity", {}).get(_PREFERRED, ())
        return [(term["preference"]["matchFields"][0]["values"][0], term["weight"]) for term in terms]
    terms = affinity.get("podAffinity", {}).get(_PREFERRED, ())
    labels = [term["podAffinityTerm"]["labelSelector"]["matchLabels"] for term in terms]
    return [(each.get("longhorn.io/node", ""), term["weight"]) for each, term in zip(labels, terms, strict=True)]


def _narrowed(affinity: Mapping[str, Any], nodes: Sequence[str]) -> Mapping[str, Any]:
    """The affinity with any of these nodes in each of its required terms; in one term where it has none."""
    whole = copy.deepcopy(dict(affinity))
    required = whole.setdefault("nodeAffinity", {}).setdefault(_REQUIRED, {"nodeSelectorTerms": [_EMPTY]})
    terms = required["nodeSelectorTerms"]
    pins = [on_node(node)["matchFields"] for node in nodes]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), *pin]} if pin else term
        for term in terms
        for pin in (pins if term != _EMPTY or terms == [_EMPTY] else [[]])
    ]
    return whole


def _ordered(affinity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The affinity with its required terms in one order: they are ORed, so theirs means nothing."""
    whole = copy.deepcopy(dict(affinity))
    required = whole["nodeAffinity"][_REQUIRED]
    required["nodeSelectorTerms"] = sorted(
        required["nodeSelectorTerms"], key=lambda term: json.dumps(term, sort_keys=True)
    )
    return whole
