"""The command bundle: list each kind, keep what the program reads, and write one file that `--manifests` takes.

What stays of an object: the fields that the types of webhook.objects.kinds have, and nothing else. What these types
take whole is narrowed here: annotations, arguments of containers, messages of conditions and attributes of storage.
Invariant: a field that no type and no list here names is left out. So no command and no Secret can be in a bundle. The
only environment variables are those of the webhook's options. A share-manager pod of an encrypted volume has the
passphrase in its environment (longhorn-manager, controller/share_manager_controller.go, createPodManifest).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from webhook.component_base.errors import UserError
from webhook.component_base.start import interrupts_raised
from webhook.core.api.container import Container
from webhook.core.api.longhorn import VOLUME_ATTRIBUTES, is_share_manager
from webhook.core.api.meta import Namespace, ObjectMeta
from webhook.core.api.migration import ANNOTATION_EVACUATION, ANNOTATION_WORKLOAD_UPDATE, CHANGES, PAUSED
from webhook.core.api.pod import POD_SCHEDULED, Pod
from webhook.core.api.storage import CSIPersistentVolumeSource, PersistentVolume, PersistentVolumeSpec
from webhook.core.api.virtual_machine import LIVE_MIGRATABLE, VMIStatus
from webhook.core.observe import events
from webhook.core.reasons import LABEL_CO_SCHEDULE
from webhook.kube.collect import collect_at_terminal
from webhook.objects.documents import field_at
from webhook.objects.installed import CONFIGURATION, LONGHORN_VERSION, ServeContainer, Setting, WebhookConfiguration
from webhook.objects.kinds import KINDS, POD, WEBHOOK_POD, APIResource
from webhook.objects.kubevirt import VirtualMachineInstance
from webhook.objects.objects import ClusterBundle, ObjectStore, parts_of_all
from webhook.settings import BundleSettings

_LIST_START: Final = b'{"apiVersion":"v1","kind":"List","items":[\n'
EXIT_WHOLE: Final = 0
EXIT_PARTIAL: Final = 2
_STDOUT: Final = Path("-")
_LEFT_OUT: Final = (
    "left out: Secrets, data of ConfigMaps, environment and commands of containers, cloud-init and disks' content of "
    "VMs, annotations except those of co-scheduling; in it: names, labels, node selectors and affinities. Read it "
    "before you pass it on"
)


class NotWritten(UserError):
    """The file can't be written."""


def run(settings: BundleSettings, *, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command with these settings.

    Returns:
        0 if every kind was listed, 2 if one could not be listed: the bundle says which and why.

    Raises:
        UserError: no cluster can be reached, the file can't be written, or it exists and a kind could not be listed.
    """
    found = collect_at_terminal(settings.client_config, settings.longhorn_namespace, lambda _: parts_of_all(), hint="")
    kept = {kind.title: _kept(found, kind) for kind in KINDS}
    counts = {title: len(lines) for title, lines in kept.items()} | {WEBHOOK_POD.title: len(found.of(WEBHOOK_POD))}
    made = found.bundle
    assert made  # noqa: S101 - for the type checker: what was collected has a record
    made = replace(made, lists=[replace(each, objects=counts[each.resource]) for each in made.lists])
    pieces = _pieces([msgspec.json.encode(made), *chain.from_iterable(kept.values())])
    unread = [f"{each.resource}: {each.problem}" for each in made.lists if each.problem]
    if settings.file == _STDOUT:
        stdout.write(b"".join(pieces).decode())
    elif unread and settings.file.exists():
        raise NotWritten(
            *(f"not everything could be read: {problem}" for problem in unread),
            f"{settings.file}: exists, and stays as it is; expected the right to list what could not be read, or "
            "another file: --file FILE",
        )
    else:
        _write(settings.file, pieces)
    _tell(settings.file, made, unread, stderr)
    return EXIT_PARTIAL if unread else EXIT_WHOLE


def _tell(file: Path, made: ClusterBundle, unread: Sequence[str], stderr: TextIO) -> None:
    counted = ", ".join(f"{each.objects} {each.resource}" for each in made.lists if not each.problem)
    name = "standard output" if file == _STDOUT else file
    stderr.write(f"{name}: written from {made.cluster} at {made.at}: {counted}\n{_LEFT_OUT}\n")
    stderr.writelines(f"not everything could be read: {problem}\n" for problem in unread)


def _kept(found: ObjectStore, kind: APIResource[Any]) -> list[bytes]:
    """What stays of the objects of a kind, as JSON."""
    stated = {"apiVersion": kind.api_version, "kind": kind.kind}
    serving = found.of(WEBHOOK_POD) if kind is POD else {}
    kept = (as_json(serving.get(key, each)) for key, each in found.of(kind).items())
    return [msgspec.json.encode(stated | each) for each in kept if each]


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """A List in JSON, one object a line."""
    yield _LIST_START
    for number, line in enumerate(lines):
        yield b",\n" + line if number else line
    yield b"\n]}\n"


def _write(file: Path, pieces: Iterator[bytes]) -> None:
    """Write a file beside the named one, and give it that name when it is complete. Only its owner may read it."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with interrupts_raised(), os.fdopen(number, "wb") as out:
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            Path(name).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise NotWritten(f"{file}: {error.strerror}; expected a file that can be written: --file FILE") from None


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
_WITHOUT_VALUE: Final = "left out"
_OPTIONS: Final = ("--volume", "--data-engine")  # of a share-manager's container
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
            csi = replace(csi, volume_attributes=_only(csi.volume_attributes, VOLUME_ATTRIBUTES))
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
    served = is_share_manager(pod.metadata)
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
    present = {_ONLY_PRESENT: _WITHOUT_VALUE} if meta.annotations.get(_ONLY_PRESENT) else {}
    return replace(meta, annotations=kept | present)


def _only(values: Mapping[str, str] | None, keys: tuple[str, ...]) -> dict[str, str] | None:
    return None if values is None else {key: values[key] for key in keys if key in values}
