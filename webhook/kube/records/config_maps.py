"""ConfigMaps: the record of one, which is empty, because only its name counts.

cluster-autoscaler rewrites its status every 10 s. Invariant: the data is never decoded, and all records are equal.
"""

from __future__ import annotations

from msgspec import Struct

from webhook.core.api.meta import ConfigMap, ObjectMeta
from webhook.kube.client.metadata import BareMeta


class WireConfigMap(Struct, gc=False):
    """A ConfigMap, as far as it is decoded."""

    metadata: BareMeta


def transform(_: WireConfigMap) -> tuple[()]:
    """Return the record of a ConfigMap."""
    return ()


def to_object(key: str, _: tuple[()]) -> ConfigMap:
    """Return the ConfigMap of this namespace and name."""
    namespace, _slash, name = key.partition("/")
    return ConfigMap(metadata=ObjectMeta(namespace=namespace, name=name))
