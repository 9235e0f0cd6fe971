"""What kube-scheduler would say of a pod and a node, from what is known of the cluster."""
