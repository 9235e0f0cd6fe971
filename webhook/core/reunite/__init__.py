"""When a VM that is apart from its share-manager is live-migrated to the share-manager's node, and when not yet.

`decide.decide` answers for all VMs of a cluster at one moment, and gets all that it needs: VMs, migrations, limits and
the time. Nothing here is remembered: the VirtualMachineInstanceMigrations show what happened before.
"""
