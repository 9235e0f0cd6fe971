"""What all objects share: the metadata, label selectors, conditions, references and times of metav1."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple, dataclass_transform

from msgspec import Struct, field

CLUSTER_AUTOSCALER_STATUS: Final = "cluster-autoscaler-status"
"""The ConfigMap that a running cluster-autoscaler rewrites every 10 s, and deletes when it ends.

Upstream: kubernetes/autoscaler cluster-autoscaler/clusterstate/utils/status.go, and core/static_autoscaler.go
(ExitCleanUp). The ConfigMap is in cluster-autoscaler's own namespace. The name is the default of
--status-config-map-name. With --write-status-configmap=false there is none.
"""


# apimachinery pkg/util/validation and pkg/api/validate/content.
NAME_MAX_CHARS: Final = 253  # DNS1123SubdomainMaxLength
NAMESPACE_MAX_CHARS: Final = 63  # DNS1123LabelMaxLength
LABEL_KEY_MAX_CHARS: Final = 317  # a prefix of 253, a slash and 63 (IsLabelKey); of a resource's name, too
LABEL_VALUE_MAX_CHARS: Final = 63  # LabelValueMaxLength
UID_MAX_CHARS: Final = 64  # an API server makes uids of 36


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class ApiType(Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """A type of an API with the fields that are read, by Go's names. It is a tree: no cycle collector tracks it."""


class Present(ApiType):
    """An object that only has to be there: all of its fields are left out."""


class LabelSelectorRequirement(ApiType):
    """metav1.LabelSelectorRequirement: a label's key, an operator, and the values to compare with."""

    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class LabelSelector(ApiType):
    """metav1.LabelSelector: requirements, ANDed. An empty one matches everything, an absent one nothing."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None


class OwnerReference(ApiType):
    """metav1.OwnerReference: the fields that name the owner."""

    kind: str | None = None
    name: str | None = None
    uid: str | None = None


class ObjectMeta(ApiType):
    """metav1.ObjectMeta. A pod at CREATE has `generate_name` and no `name`, and often no `namespace`."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    def label(self, key: str) -> str | None:
        """Return the value of a label, None if the label is absent."""
        return self.labels.get(key) if self.labels else None

    def annotation(self, key: str) -> str | None:
        """Return the value of an annotation, None if the annotation is absent."""
        return self.annotations.get(key) if self.annotations else None

    def owner(self, kind: str) -> OwnerReference | None:
        """Return the reference to the object of this kind that owns the object, None if none does."""
        return next((each for each in self.owner_references or () if each.kind == kind), None)


class Namespace(ApiType):
    """v1.Namespace: its name and labels."""

    metadata: ObjectMeta


class ConfigMap(ApiType):
    """v1.ConfigMap without its data: core reads only whether CLUSTER_AUTOSCALER_STATUS exists."""

    metadata: ObjectMeta


class ObjectReference(ApiType):
    """v1.ObjectReference: the fields that name the object."""

    namespace: str | None = None
    name: str | None = None


class Condition(ApiType):
    """metav1.Condition, and those of nodes, pods and VMs. `last_transition_time` is when `status` last changed."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


def condition_of(conditions: Iterable[Condition] | None, type_: str) -> Condition | None:
    """Return the condition of this type, the first of several (pkg/controller/util/node, GetNodeCondition); or None."""
    return next((each for each in conditions or () if each.type == type_), None)


class NamespacedName(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-wide object is empty."""

    namespace: str
    name: str


_LAST_SECOND: Final = 253_402_300_799  # of the year 9999: RFC 3339 has no later one


def utc_text(seconds: float) -> str:
    """Return a time, in seconds since 1970, as the API server writes times: RFC 3339, UTC, whole seconds.

    A time that has no such text is the last that has one: a user can write a wait's beginning into a status.
    """
    return datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_or_none(text: str | None) -> str | None:
    """Return an RFC 3339 time in UTC with whole seconds, so that times compare as text; None for any other text.

    An API server writes times so. A file can have any text.
    """
    try:
        time = datetime.fromisoformat(text or "")
        return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z" if time.tzinfo else None
    except (ValueError, OverflowError):  # OverflowError: in UTC its year is 0 or 10000
        return None
