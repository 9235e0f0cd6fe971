"""An affinity as text shows it: terms that the webhook repeats are shown once, and counted.

The terms of a short list differ in the node only. Beside a pod's own preferences, the webhook writes several equal
copies of a preference. The terms that the pod had before are shown completely.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.core.api.affinity import PREFERRED, REQUIRED

_TERMS_SHOWN: Final = 2  # of a short list

Affinity = dict[str, Any] | None


def folded(before: Affinity, after: Affinity, *, shortlisted: bool) -> tuple[Affinity, list[str]]:
    """Return the affinity to show for `after`, and a sentence for each group of terms that is left out.

    Args:
        before: the affinity without the webhook's terms.
        after: the affinity with them.
        shortlisted: whether the required terms are those of a short list.
    """
    sentences: list[str] = []
    node_affinity = dict(_within(after, "nodeAffinity"))
    own = _within(before, "nodeAffinity")
    preferences, rest = _once(node_affinity.get(PREFERRED) or [], len(own.get(PREFERRED) or ()))
    if rest:
        node_affinity[PREFERRED] = preferences
        sentences.append(f"and {rest} more copies of these preferences, so that they outweigh the pod's own ones")
    required = _within(node_affinity, REQUIRED)
    terms = required.get("nodeSelectorTerms") or []
    shown = terms[: max(_TERMS_SHOWN, len(_within(own, REQUIRED).get("nodeSelectorTerms") or ()))]
    if shortlisted and len(shown) < len(terms):
        node_affinity[REQUIRED] = {**required, "nodeSelectorTerms": shown}
        rest = len(terms) - len(shown)
        sentences.append(f"and {rest} more nodeSelectorTerms like these, for the other nodes of the short list")
    return ({**(after or {}), "nodeAffinity": node_affinity} if sentences else after), sentences


def _once(preferences: list[Any], own: int) -> tuple[list[Any], int]:
    """The preferences without the repetitions after the first `own` ones; the number of those left out."""
    shown = list(preferences[:own])
    for preference in preferences[own:]:
        if preference not in shown[own:]:
            shown.append(preference)
    return shown, len(preferences) - len(shown)


def _within(value: Affinity, key: str) -> dict[str, Any]:
    """A part of an affinity; empty if it is absent or null."""
    return (value or {}).get(key) or {}
