"""Where the objects come from: a live cluster or files."""
