"""Calls to the API server: connection, requests, answers and errors. It knows no rule of core."""
