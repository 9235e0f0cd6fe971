"""An Explanation as text for a terminal. Nothing here reads a cluster."""
