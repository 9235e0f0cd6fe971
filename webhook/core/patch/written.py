"""The record of what we wrote into a pod's affinity: an annotation for programs, beside the one for people.

A webhook after ours may change the pod, and then the API server asks us again about a pod that carries our parts
(apiserver mutating/dispatcher.go, reinvocationPolicy IfNeeded). By the record they are told from the user's own.
Invariant: the record is bounded: MAX_TERMS node names and fingerprints, and as many preferences.
"""

from __future__ import annotations

from zlib import crc32

import msgspec
from msgspec import Struct

from webhook.core.api.node_selector import NodeSelectorTerm


class Written(Struct, frozen=True, omit_defaults=True):
    """What one answer of ours added to a pod.

    Attributes:
        nodes: the nodes that required terms were narrowed to, the first one in place, the others in copies of a term.
        terms: place among all terms, and `fingerprint`, of each of these terms, as it was afterwards.
        preferred: node, weight, and how often the preference was written.
        near: namespace and uid of each VirtualMachineInstance whose pods are preferred company.
    """

    nodes: tuple[str, ...] = ()
    terms: tuple[tuple[int, str], ...] = ()
    preferred: tuple[tuple[str, int, int], ...] = ()
    near: tuple[tuple[str, str], ...] = ()


def encode(written: Written) -> str:
    """The annotation's value."""
    return msgspec.json.encode(written).decode()


def decode(text: str | None) -> Written:
    """The record of an annotation's value; an empty one where there is none, or where somebody else wrote it."""
    try:
        return msgspec.json.decode(text or "{}", type=Written)
    except msgspec.DecodeError:  # ValidationError is one of these
        return Written()


def fingerprint(term: NodeSelectorTerm) -> str:
    """What tells a required term from any other. An empty list counts as an absent one, as it does on the wire."""
    told = NodeSelectorTerm(match_expressions=term.match_expressions or None, match_fields=term.match_fields or None)
    return f"{crc32(msgspec.json.encode(told)):08x}"
