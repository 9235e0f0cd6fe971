"""An affinity for a screen: what the webhook repeats in it is shown once, and counted.

Terms of a short list differ by the node alone; a wish beside Longhorn's own is written several times, and differs in
nothing. What the pod brought along is shown whole.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.core.api.affinity import PREFERRED, REQUIRED

_TERMS_SHOWN: Final = 2  # of a short list

Affinity = dict[str, Any] | None


def folded(before: Affinity, after: Affinity, *, shortlisted: bool) -> tuple[Affinity, list[str]]:
    """The affinity to show for `after`, and what is to be said of the rest."""
    told: list[str] = []
    node_affinity = dict(_within(after, "nodeAffinity"))
    own = _within(before, "nodeAffinity")
    wishes, rest = _once(node_affinity.get(PREFERRED) or [], len(own.get(PREFERRED) or ()))
    if rest:
        node_affinity[PREFERRED] = wishes
        told.append(f"and {rest} more preferences that repeat these: beside preferences of its own the pod needs them")
    required = _within(node_affinity, REQUIRED)
    terms = required.get("nodeSelectorTerms") or []
    shown = terms[: max(_TERMS_SHOWN, len(_within(own, REQUIRED).get("nodeSelectorTerms") or ()))]
    if shortlisted and len(shown) < len(terms):
        node_affinity[REQUIRED] = {**required, "nodeSelectorTerms": shown}
        rest = len(terms) - len(shown)
        told.append(f"and {rest} more nodeSelectorTerms like these, for the other nodes of the short list")
    return ({**(after or {}), "nodeAffinity": node_affinity} if told else after), told


def _once(wishes: list[Any], own: int) -> tuple[list[Any], int]:
    """The wishes, those after the first `own` each once; and how many are left out."""
    shown = list(wishes[:own])
    for wish in wishes[own:]:
        if wish not in shown[own:]:
            shown.append(wish)
    return shown, len(wishes) - len(shown)


def _within(value: Affinity, key: str) -> dict[str, Any]:
    """A part of an affinity; empty where it is absent or null."""
    return (value or {}).get(key) or {}
