"""What `candidates` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass

import click

from webhook.cluster_options import VMListSettings
from webhook.component_base.options import option


@dataclass(frozen=True, kw_only=True)
class CandidatesSettings(VMListSettings):
    """What `candidates` runs with."""

    output: str = option(
        "-o",
        default="table",
        type=click.Choice(["table", "wide", "commands", "json", "name"]),
        help="Output format: table, wide (the table with all evidence), json, name "
        "(virtualmachineinstance.kubevirt.io/NAME, for a stopped VM virtualmachine.kubevirt.io/NAME) or commands "
        "(the lines that opt VMs in).",
    )
    apart: bool = option(
        is_flag=True,
        help="Show only VMs that are apart from a share-manager. The counts and the exit code are still of all VMs.",
    )
