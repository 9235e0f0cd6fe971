"""The way from a claim to its share-manager, and from a volume to its VMs, step by step, for people. Core has decided
before; nothing here decides.
"""
