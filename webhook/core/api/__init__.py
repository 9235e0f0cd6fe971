"""The Kubernetes, Longhorn and KubeVirt objects that core reads, and the forms of their names and quantities."""
