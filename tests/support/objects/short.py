"""The short form of a row's pod and cluster, expanded with `builders`; `cases/README.md` describes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import Any, Final

from support.objects import builders, builders_kubevirt, builders_pods
from support.objects.short_yaml import BadRow, Object, deep_merge, names, only, spelled


def _keys(build: Callable[..., Object]) -> dict[str, str]:
    """Each keyword of a builder by its name in a row, which is in camel case."""
    keywords = [name for name, each in signature(build).parameters.items() if each.kind is each.KEYWORD_ONLY]
    return {re.sub("_(.)", lambda found: found[1].upper(), name): name for name in keywords}


_POD_KEYS: Final = frozenset({"fixture", "optIn", "claims", "ephemeral", "labels", "annotations", "namespace"})
_POD_SPEC_KEYS: Final = frozenset(
    {
        "affinity",
        "nodeName",
        "nodeSelector",
        "tolerations",
        "topologySpreadConstraints",
        "resourceClaims",
        "schedulingGates",
        "volumes",
    }
)
_ASKED_KEYS: Final = frozenset({"requests", "hostPort"})
_SHARE_MANAGER_POD_ROW_KEYS: Final = frozenset({"volume", "dataEngine", "labels", "namespace", *_POD_SPEC_KEYS})
_CLUSTER_KEYS: Final = frozenset(
    {"nodes", "volumes", "longhornNodes", "vms", "virtualMachines", "pods", "clusterAutoscaler", "namespaceLabel"}
)
_LONGHORN_KEYS: Final = frozenset({"longhorn", "conditions", "csiDrivers", "instanceManager"})
_NODE_KEYS: Final = _LONGHORN_KEYS | {"exists", *_keys(builders.node)}
_PERSISTENT_VOLUME_KEYS: Final = frozenset({"handle", "driver", "attributes", "pvLabels", "pvTerms", "inTree"})
_VOLUME_KEYS: Final = _PERSISTENT_VOLUME_KEYS | frozenset(
    {"claim", "access", "volumeMode", "bound", "phase", "namespace", "persistentVolume"}
    | {"servedFrom", "shareManager", "pod", "tickets"}
)
_VM_KEYS: Final = _keys(builders.vm_pod) | {
    "claims": "claims",
    "optIn": "opt_in",
    "labels": "labels",
    "nodeSelector": "nodeSelector",
    "requests": "requests",
}
_OTHER_POD_KEYS: Final = _keys(builders_pods.pod)
_TICKET_KEYS: Final = frozenset({"node", "type"})
_SHARE_MANAGER_KEYS: Final = frozenset({"state", "ownerID", "namespace"})
_SHARE_MANAGER_POD_KEYS: Final = frozenset({"phase", "node", "deleting", "labels", "namespace"})
_LONGHORN_READY: Final[Mapping[str, str | None]] = {"ready": "True", "not-ready": "False", "no-condition": None}
_ABSENT: Final = "absent"
_INSTANCE_MANAGERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "running": {},
    "pending": {"phase": "Pending"},
    "deleting": {"deleting": True},
    "failed": {"phase": "Failed"},
}


def pod(row: Mapping[str, Any], fixture: Callable[[str], Object]) -> Object:
    """The pod of a row: a fixture or a built one, then `override` merged in, then `without` taken away."""
    keys = spelled(row)
    override, without = keys.pop("override", {}), keys.pop("without", [])
    asked = {key: keys.pop(key) for key in _ASKED_KEYS & keys.keys()}
    full: Object
    if "fixture" in keys:
        only(keys, frozenset({"fixture"}), "pod with a fixture")
        full = fixture(keys["fixture"])
    else:
        only(keys, _POD_KEYS | _POD_SPEC_KEYS, "pod")
        if not isinstance(keys.get("optIn", ""), str):
            raise BadRow(f"pod.optIn: got {keys['optIn']!r}, expected a quoted string")
        full = builders.virt_launcher_pod(
            opt_in=keys.pop("optIn", None),
            claims=names(keys.pop("claims", []), "pod.claims"),
            ephemeral=names(keys.pop("ephemeral", []), "pod.ephemeral"),
            **keys,
        )
    return _bent(_asking(full, asked), override, without)


def share_manager_pod(row: Mapping[str, Any]) -> Object:
    """The share-manager pod of a row at its CREATE, then `override` and `without` as for a VM's."""
    keys = spelled(row)
    override, without = keys.pop("override", {}), keys.pop("without", [])
    asked = {key: keys.pop(key) for key in _ASKED_KEYS & keys.keys()}
    only(keys, _SHARE_MANAGER_POD_ROW_KEYS, "pod of a share-manager")
    if not isinstance(keys.get("volume"), str):
        raise BadRow(f"pod.volume: got {keys.get('volume')!r}, expected the name of a Longhorn volume")
    volume, engine = keys.pop("volume"), keys.pop("dataEngine", "v1")
    full = builders.share_manager_pod(volume, phase=None, data_engine=engine, **keys)
    return _bent(_asking(full, asked), override, without)


def _asking(full: Object, asked: Mapping[str, Any]) -> Object:
    return builders_pods.asking(full, asked.get("requests"), asked.get("hostPort")) if asked else full


def _bent(full: Object, override: Object, without: list[list[str]]) -> Object:
    full = deep_merge(full, override)
    for path in without:
        *parents, last = path
        holder = full
        for key in parents:
            holder = holder[key]
        if last not in holder:
            raise BadRow(f"pod.without: there is no {'.'.join(path)}")
        del holder[last]
    return full


def cluster(row: Any, *, instance_managers: bool = False) -> Iterator[Object]:
    """Every object of a row's cluster. `instance_managers`: whether a node of Longhorn has such a pod by default."""
    only(row, _CLUSTER_KEYS, "cluster")
    with_longhorn = row.get("longhornNodes", "as-nodes") != "none"
    for name, state in _named(row.get("nodes", []), "cluster.nodes"):
        keys = {"instanceManager": "running" if instance_managers else _ABSENT, **state}
        yield from _node(name, only(keys, _NODE_KEYS, f"cluster.nodes.{name}"), with_longhorn=with_longhorn)
    if "namespaceLabel" in row:
        yield builders.labeled_namespace(label=row["namespaceLabel"])
    if "clusterAutoscaler" in row:
        yield builders.cluster_autoscaler_status(row["clusterAutoscaler"])
    volumes = row.get("volumes", {})
    for claim, state in _named(volumes, "cluster.volumes"):
        yield from _volume(claim, only(state, _VOLUME_KEYS, f"cluster.volumes.{claim}"))
    for name, state in _named(row.get("vms", {}), "cluster.vms"):
        keys = {"claims": ["disk"], "optIn": "true", **only(state, frozenset(_VM_KEYS), f"cluster.vms.{name}")}
        if not isinstance(keys["optIn"], str | None):
            raise BadRow(f"cluster.vms.{name}.optIn: got {keys['optIn']!r}, expected a quoted string or null")
        requests = keys.pop("requests", None)
        yield builders_pods.asking(builders.vm_pod(name, **{_VM_KEYS[key]: keys[key] for key in keys}), requests)
    for name, state in _named(row.get("virtualMachines", {}), "cluster.virtualMachines"):
        keys = only(state, builders_kubevirt.VM_KEYS, f"cluster.virtualMachines.{name}")
        yield from builders_kubevirt.described_vm(name, keys)
    for name, state in _named(row.get("pods", {}), "cluster.pods"):
        keys = only(state, frozenset(_OTHER_POD_KEYS), f"cluster.pods.{name}")
        yield builders_pods.pod(name, **{_OTHER_POD_KEYS[key]: value for key, value in keys.items()})


def _named(value: Any, where: str) -> Iterator[tuple[str, Object]]:
    """(name, state) of a mapping, of a list of names, or of a list of states that each tell `claim` or `name`."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict) and "claim" not in item:
                yield item["name"], {key: told for key, told in item.items() if key != "name"}
            else:
                yield (item["claim"], item) if isinstance(item, dict) else (item, {})
    else:
        raise BadRow(f"{where}: got {value!r}, expected a mapping or a list")


def _node(name: str, state: Object, *, with_longhorn: bool) -> Iterator[Object]:
    longhorn, drivers = state.pop("longhorn", "ready"), state.pop("csiDrivers", None)
    conditions, instance_manager = state.pop("conditions", None), state.pop("instanceManager")
    if drivers is not None:
        yield builders_pods.csi_node(name, drivers)
    if state.pop("exists", True):
        yield builders.node(name, **state)
    if with_longhorn and longhorn != _ABSENT:
        yield builders.longhorn_node(name, ready=_LONGHORN_READY[longhorn], conditions=conditions)
    if instance_manager != _ABSENT:
        yield builders.instance_manager_pod(name, **_INSTANCE_MANAGERS[instance_manager])


def _volume(claim: str, state: Object) -> Iterator[Object]:
    """The claim, its PersistentVolume, ShareManager and share-manager pod, as far as they exist."""
    access = state.get("access", ["ReadWriteMany"])
    common = {
        "access_modes": [access] if isinstance(access, str) else access,
        "volume_mode": state.get("volumeMode", "Filesystem"),
    }
    namespace = state.get("namespace", builders.NAMESPACE)
    volume = state.get("persistentVolume", f"pvc-{claim}")
    bound = state.get("bound", True)
    if state.get("claim") != _ABSENT:
        yield builders.persistent_volume_claim(
            claim,
            namespace=namespace,
            volume_name=(f"pvc-{claim}" if volume == _ABSENT else volume) if bound else None,
            phase=state.get("phase"),
            **common,
        )
    handle: Any = state.get("handle", volume)
    if volume != _ABSENT and bound:
        yield builders.persistent_volume(
            volume,
            claim=claim,
            namespace=namespace,
            handle=handle,
            driver=None if "inTree" in state else state.get("driver", builders.LONGHORN_DRIVER),
            attributes=state.get("attributes"),
            terms=state.get("pvTerms"),
            labels=state.get("pvLabels"),
            source=state.get("inTree"),
            **common,
        )
    yield from _server(handle, state)
    if "tickets" in state:
        yield builders.volume_attachment(handle, [_ticket(each) for each in state["tickets"]])


def _ticket(told: Any) -> tuple[str, str]:
    """(type, node) of a ticket: a node's name stands for that of a consumer there."""
    keys = {"node": told} if isinstance(told, str) else only(told, _TICKET_KEYS, "a ticket")
    return keys.get("type", "csi-attacher"), keys["node"]


def _server(handle: str, state: Object) -> Iterator[Object]:
    """The share-manager of a volume. `servedFrom: node` stands for one that runs there, its pod too."""
    node = state.get("servedFrom")
    manager = state.get("shareManager", _ABSENT if node is None else {})
    if manager != _ABSENT:
        only(manager, _SHARE_MANAGER_KEYS, "shareManager")
        served = {} if node is None else {"state": "running", "ownerID": node}
        yield builders.share_manager(handle, **(served | manager))
    server_pod = state.get("pod", _ABSENT if node is None else {})
    if server_pod != _ABSENT:
        keys = ({} if node is None else {"node": node}) | only(server_pod, _SHARE_MANAGER_POD_KEYS, "the volume's pod")
        place = {"nodeName": keys.pop("node")} if keys.get("node") else {}
        keys.pop("node", None)
        yield builders.share_manager_pod(handle, **keys, **place)
