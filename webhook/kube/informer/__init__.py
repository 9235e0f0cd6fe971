"""List and watch: a cache that follows one kind of object at the API server, with the promises of client-go's
Reflector. The table of kinds is in `webhook.kube.kinds`.
"""
