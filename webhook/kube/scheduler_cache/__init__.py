"""The pods and nodes of a live cluster as kube-scheduler counts them, including pods that were just admitted. No
rule rejects a node here.
"""
