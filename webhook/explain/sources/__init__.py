"""The cluster that explain reads: a live one, or one that files describe. Nothing here decides or prints."""
