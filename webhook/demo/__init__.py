"""The command demo: serve the example cluster on loopback, call the webhook over TLS, and tell what it decides."""
