"""The snapshot of a live cluster for a command that runs once: its nodes, pods and CSINodes, each listed one time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from webhook.component_base.client.api import Api
from webhook.component_base.client.errors import ApiError
from webhook.core.api.node import CSINode, Node, csi_drivers_of
from webhook.core.api.pod import Pod
from webhook.core.listed_snapshot import ListedSnapshot
from webhook.core.placement.replica_share import count_replicas
from webhook.core.scheduler.state.snapshot import SnapshotUnavailable
from webhook.kube import reader
from webhook.kube.client.wire import Decoders
from webhook.kube.cluster_setting import read_own_namespace

_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"


async def list_nodes(api: Api) -> dict[str, Node]:
    """LIST all nodes, by name, with all the fields that core reads.

    Raises:
        ApiError: the nodes can't be listed.
    """
    nodes = await reader.get_all(api, "/api/v1/nodes", Decoders(Node))
    return {node.metadata.name or "": node for node in nodes}


async def list_snapshot(
    api: Api, nodes: Mapping[str, Node], headroom: Mapping[str, int]
) -> ListedSnapshot | SnapshotUnavailable:
    """LIST all unfinished pods and all CSINodes, and return the snapshot that they make with these nodes.

    `headroom` is the amount of each resource that must stay free on a node. If the API server refuses a list, the
    answer is a SnapshotUnavailable with its message.
    """
    try:
        pods = await reader.get_all(api, "/api/v1/pods", Decoders(Pod), fields=_UNFINISHED)
        drivers = await reader.get_all(api, _CSI_NODES, Decoders(CSINode))
    except ApiError as problem:
        return SnapshotUnavailable(str(problem))
    drivers_of = {each.metadata.name or "": csi_drivers_of(each.spec) for each in drivers}
    replicas = count_replicas(pods, await read_own_namespace(api))
    return ListedSnapshot(pods, nodes, drivers_of, headroom, replicas)
