"""Longhorn's settings, with all the fields that the commands read of them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from webhook.core.api.meta import ObjectMeta

LONGHORN_VERSION: Final = "current-longhorn-version"  # the name of a Setting that Longhorn writes itself


class Setting(Struct, rename="camel", frozen=True, kw_only=True):
    """Setting of Longhorn."""

    metadata: ObjectMeta
    value: str | None = None
