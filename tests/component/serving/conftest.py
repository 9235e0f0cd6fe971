"""The volume with the certificate that the tests of the server share."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.control_plane.mounted import Mounted


@pytest.fixture
def mounted(tmp_path: Path) -> Mounted:
    """A volume without a Secret."""
    return Mounted(tmp_path / "tls")
