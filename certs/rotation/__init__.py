"""When to renew, and what to publish."""
