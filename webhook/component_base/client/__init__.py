"""Calls to an API server: connection, credentials, requests, answers and errors."""
