"""The keeper of the serving certificate: issues it, renews it, and publishes its authority to the API servers.

`plan` tells the story: what the cluster shows -> one step with its reason. `keep` takes the steps, `cluster` reads and
writes, `pki` makes certificates. Nothing here knows `webhook`, nor the other way round: the two meet at mounted files.
"""
