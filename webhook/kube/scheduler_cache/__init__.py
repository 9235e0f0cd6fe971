"""The pods and nodes of a live cluster as kube-scheduler counts them: watched, with pods that were just admitted, or
listed once. No rule rejects a node here.
"""
