"""JSONPath templates, as kubectl takes them."""
