"""The certificate controller: reads the Secrets and the webhook configuration, takes the next step of a rotation, and
waits. Which step is next is the matter of `certs.rotation`.
"""
