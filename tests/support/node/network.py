"""The network of a cluster of nodes: a bridge, and a network namespace with one link for each node.

The control plane and the tests run where the bridge is. A node's pods have a network of their own, and every machine
has a route to it. Nothing leads out of the namespaces.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from support.node.namespaces import told

HOST: Final = "10.88.0.1"
"""The address of the machine that the control plane and the tests run on."""
SERVICES: Final = "10.97.0.0/24"
API_SERVICE: Final = "10.97.0.1"
PODS: Final = "10.90.0.0/16"

_BRIDGE: Final = "machines"


class Machine(NamedTuple):
    """A node's network namespace; `number` is from 1."""

    number: int

    @property
    def name(self) -> str:
        """The name of the node, of its namespace and of its link."""
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """The address that others reach the node at."""
        return f"10.88.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The network of the node's pods."""
        return f"10.90.{self.number}.0/24"

    def enter(self) -> list[str]:
        """The command that runs another in this namespace. Mounts stay shared: a kubelet's containerd must see them."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def plug(self, *, plugged: bool) -> None:
        """Connect the node to the others, or cut it off."""
        told("ip", "link", "set", self.name, "up" if plugged else "down")


def connect(machines: list[Machine]) -> None:
    """Make the bridge and every machine's namespace, in namespaces that have neither."""
    told("ip", "link", "add", _BRIDGE, "type", "bridge")
    told("ip", "addr", "add", f"{HOST}/24", "dev", _BRIDGE)
    told("ip", "link", "set", _BRIDGE, "up")
    told("ip", "route", "add", SERVICES, "dev", _BRIDGE)  # any route will do: kube-proxy replaces the address
    for machine in machines:
        told("ip", "route", "add", machine.pods, "via", machine.address)
        told("ip", "netns", "add", machine.name)
        told("ip", "link", "add", "name", machine.name, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
        told("ip", "link", "set", machine.name, "master", _BRIDGE, "up")
        inside = ("ip", "-n", machine.name)
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{machine.address}/24", "dev", "eth0"]):
            told(*inside, *words)
        told(*inside, "link", "set", "eth0", "up")
        told(*inside, "route", "add", "default", "via", HOST)
        told(*machine.enter(), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for other in machines:
            if other is not machine:
                told(*inside, "route", "add", other.pods, "via", other.address)


DIRECTORY: Final = "NODE_TEST_DIRECTORY"  # as IMAGE_TEST
"""The environment variable that has the directory of the cluster; it is set in prepared namespaces alone."""
IMAGE: Final = "image.tar"
"""The archive of the project's image, in that directory."""
MACHINES: Final = (Machine(1), Machine(2))
NODES: Final = tuple(machine.name for machine in MACHINES)
