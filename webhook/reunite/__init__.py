"""The command reunite: migrates VMs that are apart to the node of their share-managers (webhook.core.reunite)."""
