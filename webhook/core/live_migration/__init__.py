"""What a live migration is judged by, for `reunite` and for a plan: the VM, its migrations, and KubeVirt itself."""
