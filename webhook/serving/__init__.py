"""Calls over HTTPS: TLS, HTTP and the limits of bodies. It imports neither the cluster's caches nor the decisions."""
