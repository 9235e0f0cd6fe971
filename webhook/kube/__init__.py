"""A live cluster: what core asks about it, kept by list and watch, and read one by one where that is not enough."""

import os

# kubernetes-asyncio asks for the home directory as it is imported, and a container's user has none unless told.
os.environ.setdefault("HOME", "/")
