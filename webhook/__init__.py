"""Co-locates KubeVirt virtual machines with the Longhorn share-manager that serves their ReadWriteMany disk."""

__version__ = "0.1.0"
