"""The server: sockets, TLS, HTTP and limits. It knows nothing of clusters or decisions."""
