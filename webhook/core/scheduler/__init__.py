"""What kube-scheduler would answer for a pod and a node, as far as the cluster is known. This room knows no share-
manager and no ClusterView.
"""
