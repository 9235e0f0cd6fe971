"""How many volumes of a CSI driver a node can have attached: what the scheduler's NodeVolumeLimits filter goes by.

Limits stand in the node's CSINode (plugins/nodevolumelimits/csi.go); most drivers, Longhorn's among them, set none. So
what is attached is not counted here: a node with a limit on a driver is not required of a pod that uses it.
"""

from __future__ import annotations
