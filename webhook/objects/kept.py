"""What stays of an object in a bundle: the fields that the program reads, and nothing else.

The types of webhook.objects.kinds have these fields. What these types take whole is narrowed here: annotations,
arguments of containers, messages of conditions and attributes of storage. Invariant: a field that no type and no list
here names is left out. So no command and no Secret can be in a bundle. The only environment variables are those of the
webhook's options. A share-manager pod of an encrypted volume has the passphrase in its environment (longhorn-manager,
controller/share_manager_controller.go, createPodManifest).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from webhook.core.api.container import Container
from webhook.core.api.longhorn import LABEL_LONGHORN_COMPONENT, SHARE_MANAGER, SHARE_MANAGER_NODE_SELECTOR
from webhook.core.api.meta import Namespace, ObjectMeta
from webhook.core.api.pod import POD_SCHEDULED, Pod
from webhook.core.api.storage import CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec
from webhook.core.api.virtual_machine import LIVE_MIGRATABLE, VMIStatus
from webhook.core.observe import events
from webhook.core.reasons import LABEL_CO_SCHEDULE
from webhook.core.reunite.migration import ANNOTATION_EVACUATION, ANNOTATION_WORKLOAD_UPDATE
from webhook.core.reunite.vm import CHANGES, PAUSED
from webhook.objects.documents import field_at
from webhook.objects.installed import CONFIGURATION, LONGHORN_VERSION, ServeContainer, Setting, WebhookConfiguration
from webhook.objects.kubevirt import VirtualMachineInstance

_Meta = TypeVar("_Meta", bound=ObjectMeta)
_OURS: Final = "kubevirt-scheduler/"
_ANNOTATIONS: Final = (
    "kubevirt.io/create-migration-target",
    "kubevirt.io/ephemeral-provisioning",
    "kubevirt.io/migrationJobName",
    ANNOTATION_EVACUATION,
    ANNOTATION_WORKLOAD_UPDATE,
)
_ONLY_PRESENT: Final = "hooks.kubevirt.io/hookSidecars"  # images and arguments of containers
_LEFT_OUT: Final = "left out"
_OPTIONS: Final = ("--volume", "--data-engine")  # of a share-manager's container
_ATTRIBUTES: Final = ("migratable", "dataEngine", "dataLocality", "encrypted", SHARE_MANAGER_NODE_SELECTOR)
_CONDITIONS: Final = (LIVE_MIGRATABLE, PAUSED, *CHANGES)


def as_json(found: Any) -> dict[str, Any] | None:
    """Return what stays of a decoded object, as JSON; None if the program reads no object of this name."""
    narrowed = _narrowed(replace(found, metadata=_metadata(found.metadata)))
    return None if narrowed is None else to_builtins(narrowed)


def _narrowed(found: Any) -> Any:
    match found:
        case Pod():
            return _pod(found)
        case Namespace():
            return replace(
                found, metadata=replace(found.metadata, labels=_only(found.metadata.labels, (LABEL_CO_SCHEDULE,)))
            )
        case PersistentVolume(spec=PersistentVolumeSpec(csi=CSIPersistentVolumeSource() as csi) as spec):
            csi = replace(csi, volume_attributes=_only(csi.volume_attributes, _ATTRIBUTES))
            return replace(found, spec=replace(spec, csi=csi))
        case Setting():
            return found if found.metadata.name == LONGHORN_VERSION else None
        case WebhookConfiguration():
            return _configuration(found) if found.metadata.name == CONFIGURATION else None
        case VirtualMachineInstance(status=VMIStatus() as status):
            conditions = [each for each in status.conditions or () if each.type in _CONDITIONS]
            return replace(found, status=replace(status, conditions=conditions or None))
        case events.ReuniteEvent():
            return found if events.is_of_reunite(found) else None
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


def _configuration(found: WebhookConfiguration) -> WebhookConfiguration:
    """Keep the namespace of the webhook that the API server calls."""
    namespaces = [field_at(each, "clientConfig", "service", "namespace") for each in found.webhooks or ()]
    return replace(found, webhooks=[{"clientConfig": {"service": {"namespace": each}}} for each in namespaces])


def _container(container: Container, *, served: bool) -> Container:
    if isinstance(container, ServeContainer):
        return replace(container.only_options(), image=None)
    options = {name: container.option(name) for name in _OPTIONS} if served else {}
    args = [word for name, value in options.items() if value is not None for word in (name, value)]
    return replace(container, args=args or None, image=container.image if served else None)


def _metadata(meta: _Meta) -> _Meta:
    """Keep the annotations that a rule reads. An empty mapping stays: a patch depends on whether there is one."""
    if meta.annotations is None:
        return meta
    kept = {key: value for key, value in meta.annotations.items() if key.startswith(_OURS) or key in _ANNOTATIONS}
    present = {_ONLY_PRESENT: _LEFT_OUT} if meta.annotations.get(_ONLY_PRESENT) else {}
    return replace(meta, annotations=kept | present)


def _only(values: Mapping[str, str] | None, keys: tuple[str, ...]) -> dict[str, str] | None:
    return None if values is None else {key: values[key] for key in keys if key in values}
