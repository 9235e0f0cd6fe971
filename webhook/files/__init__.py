"""A cluster that YAML files describe. It needs no API server and no kubernetes-asyncio."""
