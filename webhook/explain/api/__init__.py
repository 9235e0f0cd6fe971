"""KubeVirt's and Longhorn's objects as explain reads them, and how they are named."""
