"""Where explain gets its objects: a live cluster or files. Nothing here decides or prints."""
