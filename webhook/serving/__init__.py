"""The HTTPS server: sockets, TLS, HTTP and limits. It imports neither the cluster's caches nor the decisions."""
