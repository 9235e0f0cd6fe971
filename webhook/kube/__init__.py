"""A live cluster: list and watch fill caches with what core reads, and single reads fill the gaps. Nothing here
decides.
"""

import os

# kubernetes-asyncio asks for the home directory at its import. In a container the user has none unless HOME is set.
os.environ.setdefault("HOME", "/")
