"""The commands `status` and `candidates`, and what `explain` shares with them: one cluster, and its VMs as shown."""
