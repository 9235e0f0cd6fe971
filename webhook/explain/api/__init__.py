"""The objects of KubeVirt and Longhorn that explain reads, and the names by which users ask for them."""
