"""Why no VM can start on a node, whatever the VM: the node's own state, and Longhorn's on it.

A node that passes here can still reject a VM: resources, taints and affinity belong to the VM, and `explain` evaluates
them. Nothing unknown counts as a problem, and nothing unknown counts as none: a node that was not read has a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from webhook.core import refs
from webhook.core.api.longhorn import Need
from webhook.core.placement import feasibility, longhorn_node
from webhook.core.reasons import Reason, Why
from webhook.core.view import ClusterView, NoObject

if TYPE_CHECKING:
    from webhook.core.observe.vm_status import VMStatus


def why_no_vm_starts(name: str, view: ClusterView) -> Why | None:
    """Return why no VM can start on this node; None if nothing about the node forbids a start."""
    ref = refs.node(name)
    node = view.get(ref)
    if node is NoObject.NOT_FOUND:
        return Reason.NODE_NOT_FOUND.why(node=name)
    if isinstance(node, NoObject):
        return Reason.NODE_LOOKUP_FAILED.why(node=name, kind=ref.kind, problem=view.read_error(ref))
    unhealthy = feasibility.why_unhealthy(node)
    if unhealthy:
        return unhealthy
    longhorn = view.get(refs.longhorn_node(name)) if view.has_longhorn_nodes() else None
    lacks = [lack for lack in longhorn_node.lacks_known(longhorn) if lack.need is Need.NFS_CLIENT]
    return longhorn_node.why_not_ready(name, longhorn) or longhorn_node.why_lacking(name, lacks, view)


def nodes_of(vm: VMStatus) -> Iterator[str]:
    """Yield the nodes that a VM is on or is pinned to, and the nodes of its share-managers; a name can come twice."""
    for node in (vm.node, vm.only, *(volume.node for volume in vm.volumes)):
        if node:
            yield node
