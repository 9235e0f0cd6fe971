"""What stays of an object in a bundle: the fields that the program reads, and nothing else.

The types of core and of `explain` have these fields. What these types take whole is narrowed here: annotations,
arguments of containers, messages of conditions, parameters and attributes of storage. Invariant: a field that no type
and no list here names is left out, so no environment variable, command or Secret can be in a bundle. A share-manager
pod of an encrypted volume has the passphrase in its environment (longhorn-manager,
controller/share_manager_controller.go, createPodManifest).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from webhook.core.api import storage
from webhook.core.api.container import Container
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, SHARE_MANAGER
from webhook.core.api.meta import Namespace, ObjectMeta
from webhook.core.api.pod import POD_SCHEDULED, Pod
from webhook.core.observe import reunite_messages
from webhook.core.reasons import LABEL_CO_SCHEDULE
from webhook.explain.api import longhorn

_Meta = TypeVar("_Meta", bound=ObjectMeta)
_OURS: Final = "kubevirt-scheduler/"
_ANNOTATIONS: Final = (
    "kubevirt.io/create-migration-target",
    "kubevirt.io/ephemeral-provisioning",
    "kubevirt.io/migrationJobName",
)
_ONLY_PRESENT: Final = "hooks.kubevirt.io/hookSidecars"  # images and arguments of containers
_LEFT_OUT: Final = "left out"
_OPTIONS: Final = ("--volume", "--data-engine")  # of a share-manager's container
_ATTRIBUTES: Final = ("migratable", "dataEngine")
_PARAMETERS: Final = ("shareManagerNodeSelector", "shareManagerTolerations")
_SETTINGS: Final = ("taint-toleration", "system-managed-components-node-selector")
_CONFIGURATION: Final = "kubevirt-coschedule"  # manifests/base/webhook.yaml


class _PersistentVolumeSpec(storage.PersistentVolumeSpec, rename="camel", frozen=True, kw_only=True, gc=False):
    storage_class_name: str | None = None


class PersistentVolume(Struct, rename="camel", frozen=True, kw_only=True):
    """v1.PersistentVolume, for core and for `explain`."""

    metadata: ObjectMeta
    spec: _PersistentVolumeSpec | None = None


class NamedStorageClass(longhorn.StorageClass, rename="camel", frozen=True, kw_only=True):
    """storage.k8s.io/v1 StorageClass, with its name."""

    metadata: ObjectMeta


class NamedSetting(longhorn.Setting, rename="camel", frozen=True, kw_only=True):
    """Setting of Longhorn, with its name."""

    metadata: ObjectMeta


class _Service(Struct, frozen=True):
    path: str | None = None


class _ClientConfig(Struct, frozen=True):
    service: _Service | None = None


class _Webhook(Struct, rename="camel", frozen=True):
    name: str | None = None
    client_config: _ClientConfig | None = None


class WebhookConfiguration(Struct, rename="camel", frozen=True, kw_only=True):
    """MutatingWebhookConfiguration: the paths that the API server calls."""

    metadata: ObjectMeta
    webhooks: list[_Webhook] | None = None


def as_json(found: Any) -> dict[str, Any] | None:
    """Return what stays of a decoded object, as JSON; None if the program reads no object of this name."""
    narrowed = _narrowed(replace(found, metadata=_metadata(found.metadata)))
    return None if narrowed is None else _without_nulls(msgspec.to_builtins(narrowed))


def _narrowed(found: Any) -> Any:
    match found:
        case Pod():
            return _pod(found)
        case Namespace():
            return replace(
                found, metadata=replace(found.metadata, labels=_only(found.metadata.labels, (LABEL_CO_SCHEDULE,)))
            )
        case PersistentVolume(spec=_PersistentVolumeSpec(csi=storage.CSIPersistentVolumeSource() as csi) as spec):
            csi = replace(csi, volume_attributes=_only(csi.volume_attributes, _ATTRIBUTES))
            return replace(found, spec=replace(spec, csi=csi))
        case NamedStorageClass():
            return replace(found, parameters=_only(found.parameters, _PARAMETERS))
        case NamedSetting():
            return found if found.metadata.name in _SETTINGS else None
        case WebhookConfiguration():
            return found if found.metadata.name == _CONFIGURATION else None
        case reunite_messages.ReuniteEvent():
            return found if reunite_messages.is_of_reunite(found) else None
    return _with_template(found)


def _with_template(found: Any) -> Any:
    """Narrow the metadata of a VirtualMachine's template, which KubeVirt copies to the pod."""
    template = getattr(getattr(found, "spec", None), "template", None)
    if template is None or template.metadata is None:
        return found
    template = replace(template, metadata=_metadata(template.metadata))
    return replace(found, spec=replace(found.spec, template=template))


def _pod(pod: Pod) -> Pod:
    spec, status = pod.spec, pod.status
    served = pod.metadata.label(LABEL_LONGHORN_COMPONENT) == SHARE_MANAGER
    spec = replace(
        spec,
        containers=[_container(each, served=served) for each in spec.containers or ()],
        init_containers=[_container(each, served=False) for each in spec.init_containers or ()],
    )
    if status and status.conditions:
        conditions = [each if each.type == POD_SCHEDULED else replace(each, message=None) for each in status.conditions]
        status = replace(status, conditions=conditions)
    return replace(pod, spec=spec, status=status)


def _container(container: Container, *, served: bool) -> Container:
    options = {name: container.option(name) for name in _OPTIONS} if served else {}
    args = [word for name, value in options.items() if value is not None for word in (name, value)]
    return replace(container, args=args or None)


def _metadata(meta: _Meta) -> _Meta:
    """Keep the annotations that a rule reads. An empty mapping stays: a patch depends on whether there is one."""
    if meta.annotations is None:
        return meta
    kept = {key: value for key, value in meta.annotations.items() if key.startswith(_OURS) or key in _ANNOTATIONS}
    present = {_ONLY_PRESENT: _LEFT_OUT} if meta.annotations.get(_ONLY_PRESENT) else {}
    return replace(meta, annotations=kept | present)


def _only(values: Mapping[str, str] | None, keys: tuple[str, ...]) -> dict[str, str] | None:
    return None if values is None else {key: values[key] for key in keys if key in values}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value
