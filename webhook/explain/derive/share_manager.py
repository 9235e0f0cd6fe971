"""Longhorn Volume -> the share-manager Pod that Longhorn would create at the next start of the share-manager.

The pod has the fields that core reads. The container has its arguments only, because for an encrypted volume its
environment has the passphrase. A note names each object that could not be read: nothing is guessed.
Rules: longhorn-manager controller/share_manager_controller.go (createShareManagerPod) and types/setting.go
(UnmarshalTolerations, UnmarshalNodeSelector), v1.12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from webhook.core.api.affinity import REQUIRED
from webhook.core.api.longhorn import (
    LABEL_LONGHORN_COMPONENT,
    LABEL_LONGHORN_SHARE_MANAGER,
    LONGHORN_API_VERSION,
    SHARE_MANAGER,
    SHARE_MANAGER_KIND,
    SHARE_MANAGER_POD_PREFIX,
)
from webhook.explain.derive.virt_launcher import ASSUMED_UID, Derived
from webhook.explain.sources.cluster_reader import ClusterReader
from webhook.objects.api.storage import StorageClass, Volume
from webhook.objects.kinds import PERSISTENT_VOLUME, SETTING, STORAGE_CLASS

_SHARED: Final = "rwx"
_DEFAULT_ENGINE: Final = "v1"  # webhook/resources/volume/mutator.go
_EFFECTS: Final = ("", "NoExecute", "NoSchedule", "PreferNoSchedule")
_DERIVED: Final = (
    "derived from the volume, its StorageClass and Longhorn's settings, as Longhorn makes it. Not derived: the "
    "preference against a node that Longhorn considers delinquent, and the priority class"
)


class _Parts:
    """The parts of the pod, collected from several objects. `notes` has a sentence for each missing part."""

    def __init__(self) -> None:
        self.node_selector: dict[str, str] = {}
        self.tolerations: list[dict[str, str]] = []
        self.notes: list[str] = [_DERIVED]

    def select(self, what: str, text: str) -> None:
        """Add the node selector in `text`; `what` names its source in a note."""
        self._take(what, lambda: self.node_selector.update(_node_selector(text)))

    def tolerate(self, what: str, text: str) -> None:
        """Add the tolerations in `text`; `what` names their source in a note."""
        self._take(what, lambda: self.tolerations.extend(_tolerations(text)))

    def _take(self, what: str, take: Callable[[], None]) -> None:
        try:
            take()
        except ValueError as error:
            self.notes.append(f"{what} can't be read ({error}), so Longhorn ignores it")


def derive_share_manager(volume: Volume, cluster: ClusterReader, namespace: str) -> Derived:
    """Return the next share-manager pod of a Longhorn volume.

    Args:
        volume: the Volume.
        cluster: has the PersistentVolume, its StorageClass and Longhorn's settings.
        namespace: of Longhorn.
    """
    parts = _Parts()
    _add_settings(parts, cluster, namespace)
    storage_class = _storage_class(volume, cluster, parts)
    affinity = _add_class(parts, storage_class) if storage_class else None
    name = volume.metadata.name or ""
    engine = (volume.spec.data_engine if volume.spec else None) or _DEFAULT_ENGINE
    spec: dict[str, Any] = {
        "nodeSelector": parts.node_selector,
        "tolerations": parts.tolerations,
        "containers": [{"name": SHARE_MANAGER, "args": ["--volume", name, "--data-engine", engine]}],
    }
    if affinity:
        spec["affinity"] = affinity
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": SHARE_MANAGER_POD_PREFIX + name,
            "namespace": namespace,
            "labels": {LABEL_LONGHORN_COMPONENT: SHARE_MANAGER, LABEL_LONGHORN_SHARE_MANAGER: name},
            "ownerReferences": [
                {"apiVersion": LONGHORN_API_VERSION, "kind": SHARE_MANAGER_KIND, "name": name, "uid": ASSUMED_UID}
            ],
        },
        "spec": spec,
    }
    return Derived(pod=pod, notes=parts.notes, hints=list(_hints(volume)))


def _hints(volume: Volume) -> Iterator[str]:
    mode = volume.spec.access_mode if volume.spec else None
    if mode != _SHARED:
        yield f"the volume's access mode is {mode or 'not set'}, not {_SHARED}: Longhorn makes no share-manager for it"
    elif volume.spec and volume.spec.migratable:
        yield "the volume is migratable: Longhorn attaches it as a block device, without a share-manager"
    elif not volume.persistent_volume:
        yield "the volume has no PersistentVolume: Longhorn makes no share-manager pod before that exists"


def _add_settings(parts: _Parts, cluster: ClusterReader, namespace: str) -> None:
    """Add what Longhorn adds to every component that it manages."""
    settings = {"taint-toleration": parts.tolerate, "system-managed-components-node-selector": parts.select}
    for name, take in settings.items():
        listed = cluster.lookup(SETTING, name, namespace)
        if listed.problem:
            parts.notes.append(f"not derived: what Longhorn's setting {name} adds: {listed.problem}")
        for found in listed.items:
            take(f"Longhorn's setting {name}", found.value or "")


def _storage_class(volume: Volume, cluster: ClusterReader, parts: _Parts) -> StorageClass | None:
    """The StorageClass of the volume's PersistentVolume; None if it does not exist, which Longhorn accepts."""
    if not volume.persistent_volume:
        return None
    listed = cluster.lookup(PERSISTENT_VOLUME, volume.persistent_volume)
    spec = listed.items[0].spec if listed.items else None
    name = spec.storage_class_name if spec else None
    of = f"StorageClass {name}" if name else f"the StorageClass of PersistentVolume {volume.persistent_volume}"
    classes = cluster.lookup(STORAGE_CLASS, name) if name else None
    problem = classes.problem if classes else listed.problem
    if problem:
        parts.notes.append(f"not derived: what {of} adds (topology, node selector, tolerations): {problem}")
    elif classes and not classes.items:
        parts.notes.append(f"{of} does not exist, so Longhorn does without it")
    return classes.items[0] if classes and classes.items else None


def _add_class(parts: _Parts, found: StorageClass) -> dict[str, Any] | None:
    """Add the node selector and tolerations of a class. Returns an affinity: one term with all of its topologies."""
    parameters = found.parameters or {}
    for name, take in (("shareManagerNodeSelector", parts.select), ("shareManagerTolerations", parts.tolerate)):
        take(f"{name} of its StorageClass", parameters.get(name, ""))
    expressions = [
        {"key": label.key, "operator": "In", "values": label.values or []}
        for topology in found.allowed_topologies or ()
        for label in topology.match_label_expressions or ()
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {REQUIRED: terms}} if expressions else None


def _node_selector(text: str) -> dict[str, str]:
    """Parse `key:value;key:value`. Raises ValueError for any other form."""
    labels = {}
    for part in filter(None, [text.strip(" ")]):
        for label in part.split(";"):
            key, colon, value = label.partition(":")
            if not colon or ":" in value:
                raise ValueError(f"got {label.strip()!r}, expected key:value")
            labels[key.strip(" ")] = value.strip(" ")
    return labels


def _tolerations(text: str) -> list[dict[str, str]]:
    """Parse `key=value:effect;key:effect`. Raises ValueError for any other form."""
    bare = text.replace(" ", "")
    return [_toleration(part) for part in bare.split(";")] if bare else []


def _toleration(text: str) -> dict[str, str]:
    pair, colon, effect = text.partition(":")
    if not colon or effect not in _EFFECTS:
        raise ValueError(f"got {text!r}, expected key=value:effect or key:effect")
    key, equals, value = pair.partition("=")
    return {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
