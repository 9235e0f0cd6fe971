"""The pod that KubeVirt would create for a VM, or Longhorn for a volume. Each rule here cites KubeVirt's or
Longhorn's source.
"""
