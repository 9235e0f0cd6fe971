"""What `bundle` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from webhook.cluster_options import LonghornSettings
from webhook.component_base.options import FILE, option


@dataclass(frozen=True, kw_only=True)
class BundleSettings(LonghornSettings):
    """What `bundle` runs with."""

    file: Path = option(
        required=True,
        type=FILE,
        help="File to write. The program replaces an existing file only by a bundle in which everything could be read. "
        "- writes to standard output.",
    )
