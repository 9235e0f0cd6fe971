"""Whether a selector matches labels, and a toleration a taint: what Kubernetes has in apimachinery and in
component-helpers. No node and no pod is looked up here.
"""
