"""Whether `make image-test` runs the tests of the image."""

from __future__ import annotations

from typing import Final

ASKED: Final = "IMAGE_TEST"  # no setting of the program: those are removed for all tests
"""The environment variable that `make image-test` sets."""
