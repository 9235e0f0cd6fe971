"""What kube-scheduler would answer for a pod and a node, as far as the cluster is known. This room knows
neither share-managers nor a ClusterView.
"""
