"""What `status` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass

import click

from webhook.cluster_options import VMListSettings
from webhook.component_base.options import option


@dataclass(frozen=True, kw_only=True)
class StatusSettings(VMListSettings):
    """What `status` runs with."""

    output: str = option(
        "-o",
        default="table",
        type=click.Choice(["table", "wide", "json", "name"]),
        help="Output format: table, wide (the table with all evidence), json or name "
        "(virtualmachineinstance.kubevirt.io/NAME).",
    )
    apart: bool = option(
        is_flag=True,
        help="Show only VMs that are apart from a share-manager, stuck or not running. The summary and the exit code "
        "still count all VMs.",
    )
