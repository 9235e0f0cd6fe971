"""What `bundle` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from webhook.cluster_options import CONTEXT, KUBECONFIG, LONGHORN_NAMESPACE, option
from webhook.component_base.options import FILE

BUNDLE: Final = (
    option(
        "--output",
        "-o",
        required=True,
        type=FILE,
        help="File to write. The program replaces an existing file, and only when the bundle is complete. - writes to "
        "standard output.",
    ),
    KUBECONFIG,
    CONTEXT,
    LONGHORN_NAMESPACE,
)


@dataclass(frozen=True, kw_only=True)  # no Struct: help and completion do without msgspec
class BundleSettings:
    """What `bundle` runs with."""

    output: Path
    kubeconfig: Path | None
    context: str | None
    longhorn_namespace: str
