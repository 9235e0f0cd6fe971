"""JSON and YAML text, as kubectl reads it."""
