"""The command status: which VMs run with their share-managers, which run apart from them, since when, and why. It
only reads.
"""
