"""metav1.ObjectMeta as it is on the wire."""

from __future__ import annotations

from msgspec import Struct, field


class Annotations(Struct, gc=False):
    """The annotation that marks the end of a streaming list."""

    initial_events_end: str | None = field(name="k8s.io/initial-events-end", default=None)


class WireMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta, as far as it is decoded."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None


class BareMeta(Struct, rename="camel", gc=False):
    """metav1.ObjectMeta of kinds whose labels core does not read."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: Annotations | None = None


def is_before(version: str, than: str) -> bool:
    """Return whether a resourceVersion is older: decimal numbers, of any length, can be compared (KEP-5504)."""
    return version.isdecimal() and than.isdecimal() and (len(version), version) < (len(than), than)
