"""From a claim to the node of its share-manager, and from a Longhorn volume to the nodes of the VMs that use it.
Whether a pod can run on that node is not asked here.
"""
