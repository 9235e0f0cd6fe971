"""An explanation as text. It reads an explanation and nothing of a cluster."""
