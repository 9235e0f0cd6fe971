"""From a claim to its share-manager's node, and from a Longhorn volume to its VMs' nodes."""
