"""The page on the health listener: which VMs run with their share-managers, and the last decisions. Read-only."""
