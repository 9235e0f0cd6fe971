"""Whether `make image-test` runs the tests of the image."""

from __future__ import annotations

from typing import Final

ASKED: Final = "KUBEVIRT_COSCHEDULE_IMAGE_TEST"
"""The environment variable that `make image-test` sets."""
