"""The pure core: an AdmissionReview and a view of a cluster go in, an AdmissionReview with a patch comes out. No
asyncio, sockets, clock, environment or logging may be here; import-linter checks it.

The caller passes the cluster, the time and the policy in as arguments.
"""
