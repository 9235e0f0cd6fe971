"""The page on the health listener: which VMs are with their share-manager, and the last decisions. It only reads,
from memory.
"""
