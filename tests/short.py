"""The short form of a row's pod and cluster, expanded with `builders`; `cases/README.md` describes it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import builders
import yaml

Object = dict[str, Any]

_POD_KEYS: Final = frozenset({"fixture", "optIn", "claims", "ephemeral", "labels", "annotations", "namespace"})
_POD_SPEC_KEYS: Final = frozenset(
    {"affinity", "nodeName", "nodeSelector", "tolerations", "topologySpreadConstraints", "resourceClaims", "volumes"}
)
_CLUSTER_KEYS: Final = frozenset({"nodes", "volumes", "longhornNodes"})
_NODE_KEYS: Final = frozenset({"ready", "cordoned", "deleting", "taints", "labels", "longhorn", "exists"})
_VOLUME_KEYS: Final = frozenset(
    {
        "claim",
        "access",
        "volumeMode",
        "bound",
        "phase",
        "namespace",
        "persistentVolume",
        "handle",
        "driver",
        "attributes",
        "pvLabels",
        "pvTerms",
        "servedFrom",
        "shareManager",
        "pod",
    }
)
_SHARE_MANAGER_KEYS: Final = frozenset({"state", "ownerID", "namespace"})
_SHARE_MANAGER_POD_KEYS: Final = frozenset({"phase", "node", "deleting", "labels", "namespace"})
_LONGHORN_READY: Final[Mapping[str, str | None]] = {"ready": "True", "not-ready": "False", "no-condition": None}
_ABSENT: Final = "absent"
_AFFINITY_WORDS: Final[Mapping[str, str]] = {
    "required": "requiredDuringSchedulingIgnoredDuringExecution",
    "preferred": "preferredDuringSchedulingIgnoredDuringExecution",
}


class Trouble(Exception):
    """What is wrong with a row, without its place."""


class Text(yaml.SafeLoader):
    """Safe YAML where a key that stands twice, or is no string (an unquoted `on`), is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        """The mapping, its keys checked."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge") or key.value in seen:
                raise Trouble(f"line {key.start_mark.line + 1}: key {key.value}: no string, or here twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def only(mapping: Any, known: frozenset[str], where: str) -> Object:
    """The mapping, which has known keys only."""
    if not isinstance(mapping, dict):
        raise Trouble(f"{where}: got {mapping!r}, expected a mapping")
    if unknown := sorted(set(mapping) - known):
        raise Trouble(f"{where}: unknown key {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    return mapping


def names(value: Any, where: str) -> list[str]:
    """The value, which is a list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Trouble(f"{where}: got {value!r}, expected a list of names")
    return value


def deep_merge(base: Any, over: Any) -> Any:
    """`over` on top of `base`: mappings key by key, anything else (null too) replaces what was there."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return copy.deepcopy(over)
    merged = {key: deep_merge(value, over[key]) if key in over else value for key, value in base.items()}
    return copy.deepcopy(merged | {key: value for key, value in over.items() if key not in base})


def copied(value: Any) -> Any:
    """The value, with each list item `{from: 1, to: 3, each: x#}` replaced by the items x1, x2, x3."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    items = []
    for item in value:
        if isinstance(item, dict) and item.keys() == {"from", "to", "each"}:
            items += [_numbered(copied(item["each"]), str(number)) for number in range(item["from"], item["to"] + 1)]
        else:
            items.append(copied(item))
    return items


def _numbered(value: Any, number: str) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbered(inner, number) for inner in value]
    return value.replace("#", number) if isinstance(value, str) else value


def spelled(value: Any) -> Any:
    """The value with an affinity's short words spelled out, of which Kubernetes' own are long.

    `required` and `preferred` stand for the fields that begin so; a list in nodeAffinity's `required` for its terms.
    """
    if isinstance(value, list):
        return [spelled(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    full = {_AFFINITY_WORDS.get(key, key): spelled(inner) for key, inner in value.items()}
    node_affinity = full.get("nodeAffinity") or {}
    if isinstance(node_affinity.get(_AFFINITY_WORDS["required"]), list):
        node_affinity[_AFFINITY_WORDS["required"]] = {"nodeSelectorTerms": node_affinity[_AFFINITY_WORDS["required"]]}
    return full


def pod(row: Mapping[str, Any], fixture: Callable[[str], Object]) -> Object:
    """The pod of a row: a fixture or a built one, then `override` merged in, then `without` taken away."""
    keys = spelled(row)
    override, without = keys.pop("override", {}), keys.pop("without", [])
    full: Object
    if "fixture" in keys:
        only(keys, frozenset({"fixture"}), "pod with a fixture")
        full = fixture(keys["fixture"])
    else:
        only(keys, _POD_KEYS | _POD_SPEC_KEYS, "pod")
        if not isinstance(keys.get("optIn", ""), str):
            raise Trouble(f"pod.optIn: got {keys['optIn']!r}, expected a quoted string")
        full = builders.virt_launcher_pod(
            opt_in=keys.pop("optIn", None),
            claims=names(keys.pop("claims", []), "pod.claims"),
            ephemeral=names(keys.pop("ephemeral", []), "pod.ephemeral"),
            **keys,
        )
    full = deep_merge(full, override)
    for path in without:
        *parents, last = path
        holder = full
        for key in parents:
            holder = holder[key]
        if last not in holder:
            raise Trouble(f"pod.without: there is no {'.'.join(path)}")
        del holder[last]
    return full


def cluster(row: Any) -> Iterator[Object]:
    """Every object of a row's cluster."""
    only(row, _CLUSTER_KEYS, "cluster")
    with_longhorn = row.get("longhornNodes", "as-nodes") != "none"
    for name, state in _named(row.get("nodes", []), "cluster.nodes"):
        yield from _node(name, only(state, _NODE_KEYS, f"cluster.nodes.{name}"), with_longhorn=with_longhorn)
    volumes = row.get("volumes", {})
    for claim, state in _named(volumes, "cluster.volumes"):
        yield from _volume(claim, only(state, _VOLUME_KEYS, f"cluster.volumes.{claim}"))


def _named(value: Any, where: str) -> Iterator[tuple[str, Object]]:
    """(name, state) of a mapping, of a list of names, or of a list of states that each tell their `claim`."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        for item in value:
            yield (item["claim"], item) if isinstance(item, dict) else (item, {})
    else:
        raise Trouble(f"{where}: got {value!r}, expected a mapping or a list")


def _node(name: str, state: Object, *, with_longhorn: bool) -> Iterator[Object]:
    longhorn = state.pop("longhorn", "ready")
    if state.pop("exists", True):
        yield builders.node(name, **state)
    if with_longhorn and longhorn != _ABSENT:
        yield builders.longhorn_node(name, ready=_LONGHORN_READY[longhorn])


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
            driver=state.get("driver", builders.LONGHORN_DRIVER),
            attributes=state.get("attributes"),
            terms=state.get("pvTerms"),
            labels=state.get("pvLabels"),
            **common,
        )
    yield from _server(handle, state)


def _server(handle: str, state: Object) -> Iterator[Object]:
    """The share-manager of a volume. `servedFrom: node` stands for one that runs there, its pod too."""
    node = state.get("servedFrom")
    manager = state.get("shareManager", _ABSENT if node is None else {})
    if manager != _ABSENT:
        only(manager, _SHARE_MANAGER_KEYS, "shareManager")
        yield builders.share_manager(
            handle, **({} if node is None else {"state": "running", "ownerID": node}) | manager
        )
    server_pod = state.get("pod", _ABSENT if node is None else {})
    if server_pod != _ABSENT:
        keys = ({} if node is None else {"node": node}) | only(server_pod, _SHARE_MANAGER_POD_KEYS, "the volume's pod")
        place = {"nodeName": keys.pop("node")} if keys.get("node") else {}
        keys.pop("node", None)
        yield builders.share_manager_pod(handle, **keys, **place)
