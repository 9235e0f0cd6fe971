"""The names that the API server takes (apimachinery pkg/util/validation)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_DNS_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_DNS_SUBDOMAIN_MAX_CHARS: Final = 253


@lru_cache(maxsize=8192)  # as many as the largest clusters have nodes
def is_node_name(name: str) -> bool:
    """Whether the API server takes this as a node's name in matchFields (validation.go, ValidateNodeName).

    A term that names anything else makes it reject the whole pod, so we must never write one.
    """
    return len(name) <= _DNS_SUBDOMAIN_MAX_CHARS and _DNS_SUBDOMAIN.fullmatch(name) is not None
