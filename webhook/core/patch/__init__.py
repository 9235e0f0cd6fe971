"""A decision as RFC 6902 operations on a pod, the record of what was written, and the inverse. Nothing here decides."""
