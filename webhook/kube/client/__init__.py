"""Calls to the API server: connection, requests, answers and errors."""
