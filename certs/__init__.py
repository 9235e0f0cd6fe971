"""The certificate controller: issues the webhook's serving certificate, renews it, and publishes its authority to the
API servers.

`rotation` decides on one step from the state of the cluster, `controller` takes the step, `cluster` reads and writes
the objects, and `x509` makes and checks the certificates. The two programs meet at mounted files: `certs`
imports nothing of `webhook` except webhook.component_base, and `webhook` imports nothing of `certs`.
"""
