"""Which nodes a pod is required to use, or prefers, and why."""
