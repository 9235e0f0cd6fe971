"""The keeper of the serving certificate: issues it, renews it, and publishes its authority to the API servers.

`plan` tells the story: what the cluster shows -> one step with its reason. `keep` takes the steps, `cluster` reads and
writes, `pki` makes certificates. The two programs meet at mounted files: `certs` imports nothing of `webhook` but
webhook.component_base, and `webhook` imports nothing of `certs`.
"""
