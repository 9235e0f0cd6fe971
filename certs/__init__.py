"""The certificate controller: issues the webhook's serving certificate, renews it, and publishes its authority to the
API servers.

`plan` decides on one step from the `state` of the cluster, `controller` takes the step, and `cluster` reads and writes
the objects. `pki` makes the certificates, and `verify` checks them. The two programs meet at mounted files: `certs`
imports nothing of `webhook` except webhook.component_base, and `webhook` imports nothing of `certs`.
"""
