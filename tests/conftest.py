"""Hypothesis' profile for the whole suite: PROPERTY_EXAMPLES sets how many examples each property gets."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "200")),
    deadline=None,  # a shared machine's pauses are no findings
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # as deadline
)
settings.load_profile("suite")
