"""An admission webhook that starts KubeVirt VMs on the node of the Longhorn share-manager that serves their disk."""

__version__ = "0.2.0-dev"
