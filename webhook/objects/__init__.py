"""The objects of a cluster that was read once: their kinds, their text, and the cluster as core sees it."""
