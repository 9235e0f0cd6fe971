"""The webhook as a process."""
