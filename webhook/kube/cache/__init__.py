"""The caches of all kinds together, the reads for objects that no cache has, and the view of one call. Decisions do
not belong here.
"""
