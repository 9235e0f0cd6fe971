"""kube-scheduler's NodePorts filter (plugins/nodeports/node_ports.go, fitsPorts)."""

from __future__ import annotations

from msgspec import Struct

from webhook.core.scheduler.state.pod_requests import HostPort


class PortTaken(Struct, frozen=True):
    """A host port that a pod of the node has already."""

    port: HostPort

    def names(self) -> dict[str, str]:
        """The port as a person reads it, for a sentence."""
        return {"port": f"{self.port.protocol} {self.port.address}:{self.port.port}"}
