"""The records of Longhorn's objects and of its share-manager pods."""
