"""The pure core: an AdmissionReview and a view of a cluster go in, an AdmissionReview with a patch comes out.

Core uses no asyncio, no sockets, no clock, no environment and no logging; import-linter checks this. The caller passes
the cluster and the policy as arguments. `webhook.core.admit` has the numbered list of the rules.
"""
