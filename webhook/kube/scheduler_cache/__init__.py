"""The pods and nodes of a live cluster as kube-scheduler counts them, pods that were just admitted among them. No
rule refuses a node here.
"""
