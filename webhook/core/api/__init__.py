"""The Kubernetes, Longhorn and KubeVirt objects that core reads, with the forms of their names and quantities."""
