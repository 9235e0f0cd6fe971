"""A cold start as objects: a stopped share-manager, and the VM that has got a node; and explain over these."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from support.drivers.explaining import Ran, run
from support.objects import builders

Object = dict[str, Any]
VOLUME: Final = "pvc-disk"
PASSPHRASE: Final = "correct horse battery staple"  # noqa: S105 - of a test


def nodes(*names: str) -> list[Object]:
    """Nodes with Longhorn on them."""
    makers = (builders.node, builders.longhorn_node, builders.instance_manager_pod)
    return [make(name) for name in names for make in makers]


def volume(*, pv: str = VOLUME, handle: str = VOLUME) -> list[Object]:
    """Claim `disk`, its PersistentVolume, and a ShareManager that is stopped."""
    return [
        builders.persistent_volume_claim("disk", volume_name=pv),
        builders.persistent_volume(pv, claim="disk", handle=handle),
        builders.share_manager(handle, state="stopped", ownerID="node-c"),
    ]


def cluster() -> list[Object]:
    """Three nodes; VM `db` runs on node-b, its volume is wanted there, and the share-manager is stopped."""
    return [
        *nodes("node-a", "node-b", "node-c"),
        *volume(),
        builders.vm_pod("db", node="node-b", claims=["disk"]),
        builders.volume_attachment(VOLUME, [("csi-attacher", "node-b")]),
    ]


def created(**spec: Any) -> Object:
    """The volume's share-manager pod at its CREATE."""
    return builders.share_manager_pod(VOLUME, phase=None, **spec)


def encrypted(**spec: Any) -> Object:
    """As Longhorn makes it for an encrypted volume: with the passphrase."""
    pod = created(**spec)
    pod["spec"]["containers"][0]["env"].append({"name": "PASSPHRASE", "value": PASSPHRASE})
    return pod


def explain(pod: Object, objects: Iterable[Object], **flags: Any) -> Ran:
    """A run of explain for one object, over these objects."""
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    return run(json.dumps(pod), cluster=items, **flags)


def explained(pod: Object, objects: Iterable[Object], **flags: Any) -> Any:
    """What `-o json` says of it."""
    return json.loads(explain(pod, objects, output="json", **flags).out)
