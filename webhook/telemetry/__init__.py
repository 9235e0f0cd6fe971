"""Log and metrics of `serve`. Every room above imports it; it imports only the core."""
