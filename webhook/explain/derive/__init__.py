"""The pod that a VM or a volume would become."""
