"""The names that the program which makes the namespaces, and the tests in them, have in common."""

from __future__ import annotations

from typing import Final

from support.node.network import Machine

DIRECTORY: Final = "NODE_TEST_DIRECTORY"  # as IMAGE_TEST
"""The environment variable that has the directory of the cluster; it is set in prepared namespaces alone."""
IMAGE: Final = "image.tar"
"""The archive of the project's image, in that directory."""
MACHINES: Final = (Machine(1), Machine(2))
NODES: Final = tuple(machine.name for machine in MACHINES)
