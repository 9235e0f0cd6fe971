"""The log, the record of an admission, and the metrics. Nothing here decides, and nothing waits for it."""
