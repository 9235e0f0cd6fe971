"""The command reunite: one run that migrates VMs that are apart to their share-managers (webhook.core.reunite)."""
