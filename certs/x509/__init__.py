"""Key pairs and certificates: made, parsed and verified. No clock and no I/O may be here, and nothing of Kubernetes."""
