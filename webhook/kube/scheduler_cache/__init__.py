"""The pods and nodes of a live cluster as kube-scheduler counts them."""
