"""NodePorts: which of the pod's host ports is taken."""

from __future__ import annotations

from msgspec import convert
from support.objects import builders

from webhook.core.api.node import Node
from webhook.core.api.pod import Pod
from webhook.core.scheduler.cycle_state import CycleState
from webhook.core.scheduler.plugins import node_ports
from webhook.core.scheduler.state.incoming_pod import IncomingPod
from webhook.core.scheduler.state.node_info import NodeInfo, NodeRequests
from webhook.core.scheduler.state.pod_requests import HostPort, Usage
from webhook.core.scheduler.state.snapshot import NOT_COUNTED
from webhook.core.scheduler.status import Rejected


def test_a_rejection_names_the_port() -> None:
    """Protocol, address and number, as the pod under admission asks for it."""
    ports = [{"containerPort": 22, "hostPort": 22, "hostIP": "10.0.0.1"}]
    pod = convert(builders.virt_launcher_pod(containers=[{"name": "compute", "ports": ports}]), Pod)
    requested = NodeRequests()
    requested.add(Usage(ports=(HostPort("TCP", 22, "10.0.0.1"),)))
    node = NodeInfo(convert(builders.node("n1"), Node), requested=requested)
    status = node_ports.filter_node(CycleState(IncomingPod.of(pod, "vms"), NOT_COUNTED), node)
    assert isinstance(status, Rejected)
    assert status.names == {"node": "n1", "port": "TCP 10.0.0.1:22"}
