"""The page on the health listener: which VMs are with their share-manager, and what was decided last. It only reads."""
