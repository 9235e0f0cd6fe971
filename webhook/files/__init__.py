"""Files of YAML or JSON, and the cluster that they describe."""
