"""The pure core: an AdmissionReview and a view of a cluster go in, an AdmissionReview with a patch comes out.

No asyncio, no sockets, no clock, no environment and no logging may live below here; import-linter holds it.
Whoever calls core passes the cluster and the policy in as arguments.
"""
