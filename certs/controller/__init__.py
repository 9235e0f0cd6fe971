"""The controller that keeps the Secret and the caBundle."""
