"""The command reunite: one run that live-migrates VMs that are apart to the node of their share-managers.

Nothing is remembered: the VirtualMachineInstanceMigrations show what happened before.
"""
