"""The certificate controller: issues the webhook's serving certificate, renews it, and publishes its authority to the
API servers.

`rotation` decides on one step from what the cluster shows, `controller` takes the step, and `x509` makes the
certificates. The two programs meet at mounted files: `certs` imports nothing of `webhook` except
webhook.component_base, and `webhook` imports nothing of `certs`.
"""
