"""The way from claim to share-manager, and from volume to VMs, step by step."""
