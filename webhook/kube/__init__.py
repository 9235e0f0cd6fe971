"""A live cluster: what core asks about it, kept by list and watch, and read one by one where that is not enough."""
