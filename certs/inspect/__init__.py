"""The inspect command: what is in the Secret, what the API servers trust, and what a TLS handshake gets. It only
reads.
"""
