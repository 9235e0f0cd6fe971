"""An affinity as text shows it: of the terms of a short list, which differ in the node only, two are shown.

The terms that the pod had before are shown completely.
"""

from __future__ import annotations

from typing import Any, Final

from webhook.core.api.affinity import REQUIRED

_TERMS_SHOWN: Final = 2  # of a short list

Affinity = dict[str, Any] | None


def folded(before: Affinity, after: Affinity, *, shortlisted: bool) -> tuple[Affinity, str]:
    """Return the affinity to show for `after`, and a sentence about the terms that are left out.

    Args:
        before: the affinity without the webhook's terms.
        after: the affinity with them.
        shortlisted: whether the required terms are those of a short list.
    """
    required = _within(_within(after, "nodeAffinity"), REQUIRED)
    terms = required.get("nodeSelectorTerms") or []
    own = _within(_within(before, "nodeAffinity"), REQUIRED).get("nodeSelectorTerms") or ()
    shown = terms[: max(_TERMS_SHOWN, len(own))]
    if not shortlisted or after is None or len(shown) == len(terms):
        return after, ""
    node_affinity = {**after["nodeAffinity"], REQUIRED: {**required, "nodeSelectorTerms": shown}}
    rest = f"and {len(terms) - len(shown)} more nodeSelectorTerms like these, for the other nodes of the short list"
    return {**after, "nodeAffinity": node_affinity}, rest


def _within(value: Affinity, key: str) -> dict[str, Any]:
    """A part of an affinity; empty if it is absent or null."""
    return (value or {}).get(key) or {}
