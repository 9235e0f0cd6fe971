"""metav1.ObjectMeta as it is on the wire."""

from __future__ import annotations

from msgspec import Struct, field


class Annotations(Struct, gc=False):
    """The one annotation that a list by watch ends with."""

    initial_events_end: str | None = field(name="k8s.io/initial-events-end", default=None)


class WireMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta as it is on the wire, as far as it is read."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None


class BareMeta(Struct, rename="camel", gc=False):
    """WireMeta of kinds whose labels nobody reads."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: Annotations | None = None
