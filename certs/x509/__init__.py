"""Key pairs and certificates."""
