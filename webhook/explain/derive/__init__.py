"""The pod that KubeVirt would create for a VM, or Longhorn for a volume."""
