"""The inspect command."""
