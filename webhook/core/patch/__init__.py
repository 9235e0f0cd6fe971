"""A decision as RFC 6902 operations, and the operations that revert them. Nothing here decides."""
