"""Namespaces: the record of one."""

from __future__ import annotations

from msgspec import Struct, field

from webhook.core.api.meta import Namespace, ObjectMeta
from webhook.core.reasons import LABEL_CO_SCHEDULE
from webhook.kube.client.metadata import BareMeta
from webhook.kube.records.shared import share


class _Labels(Struct, frozen=True, gc=False):
    co_schedule: str | None = field(name=LABEL_CO_SCHEDULE, default=None)


class _Meta(BareMeta, rename="camel", gc=False):
    labels: _Labels | None = None


class WireNamespace(Struct, gc=False):
    """A Namespace, as far as it is decoded."""

    metadata: _Meta


def transform(wire: WireNamespace) -> tuple[str | None]:
    """Return the record of a Namespace: the value of its label LABEL_CO_SCHEDULE. Equal records are one object."""
    return share((wire.metadata.labels.co_schedule if wire.metadata.labels else None,))


def to_object(key: str, record: tuple[str | None]) -> Namespace:
    """Return the Namespace of this name and label."""
    (label,) = record
    return Namespace(metadata=ObjectMeta(name=key, labels=None if label is None else {LABEL_CO_SCHEDULE: label}))
