"""Whether a selector matches labels: what Kubernetes has in apimachinery. No node and no pod is looked up here."""
