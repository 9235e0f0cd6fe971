"""The objects between a claim and its share-manager, and between a volume and its VMs. Core has decided before;
nothing here decides.
"""
