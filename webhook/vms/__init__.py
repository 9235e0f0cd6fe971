"""What `status`, `candidates` and `explain` share: one collected cluster, and its VMs as they are shown."""
