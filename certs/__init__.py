"""The certificate controller: issues and renews the serving certificate, and publishes its authority to API servers.

`rotation` decides the next step from the state of the cluster, `controller` takes it, `cluster` reads and writes the
objects, `x509` makes certificates, `inspect` checks what exists. `certs` and `webhook` share no state: they meet only
at the files of a mounted Secret.
"""
