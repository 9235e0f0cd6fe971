"""List and watch: caches of kinds that follow the API server."""
