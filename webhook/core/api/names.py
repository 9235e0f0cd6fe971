"""The names that the API server accepts (apimachinery pkg/util/validation)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_DNS_SUBDOMAIN_MAX_CHARS: Final = 253
LABEL_VALUE_MAX_CHARS: Final = 63


@lru_cache(maxsize=8192)  # as many as the largest clusters have nodes
def is_node_name(name: str) -> bool:
    """Whether the API server accepts this as a node's name in matchFields (validation.go, ValidateNodeName).

    The API server rejects the whole pod for a term with any other name, so the webhook must never write such a term.
    """
    return len(name) <= _DNS_SUBDOMAIN_MAX_CHARS and _DNS_SUBDOMAIN.fullmatch(name) is not None
