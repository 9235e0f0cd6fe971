"""A live cluster: list and watch fill caches with what core reads, and single reads fill the gaps. Nothing here
decides.
"""

import os

# kubernetes-asyncio asks for the home directory as it is imported, and a container's user has none unless told.
os.environ.setdefault("HOME", "/")
