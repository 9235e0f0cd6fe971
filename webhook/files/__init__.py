"""YAML files as a cluster."""
