"""What `reunite` runs with: its options, and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from webhook.component_base.options import ON_OR_OFF, SECONDS, option
from webhook.settings import OPT_IN_ALL, ChosenVMSettings, policy_of

if TYPE_CHECKING:
    from webhook.core.opt_in import Policy


@dataclass(frozen=True, kw_only=True)
class ReuniteSettings(ChosenVMSettings):
    """What `reunite` runs with.

    Raises:
        UsageError: two options that exclude each other.
    """

    dry_run: str = option(
        default="client",
        type=click.Choice(["none", "server", "client"]),
        help="As in kubectl. client: the program only says what it would do. server: the API server also checks each "
        "request, and keeps nothing. none: it acts.",
    )
    default: bool = option(
        default="on",
        type=ON_OR_OFF,
        help="Whether a VM without the annotation kubevirt-scheduler/reunite takes part. The annotation true lets a VM "
        "in, false keeps one out.",
    )
    apart_seconds: float = option(
        default="1800",
        type=SECONDS,
        help="The short wait: how long a VM is apart, and its share-manager's node calm, before it is migrated.",
    )
    rest_seconds: float = option(
        default="14400",
        type=SECONDS,
        help="How long a VM stays where others moved it, if no object says why.",
    )
    opt_in_all: str | None = option(
        type=OPT_IN_ALL,
        help="Which VMs the cluster opts in, as an option of `serve` says. Without this option: as the running pods of "
        "the webhook say. manifests/reunite.yaml sets it: its account may not read which pods are the webhook's.",
    )
    at_once: int = option(
        default="2",
        metavar="NUMBER",
        type=click.IntRange(min=0),
        help="Most migrations of this program at one time in a namespace, and most that one run creates.",
    )
    output: str = option(
        "-o",
        default="table",
        type=click.Choice(["table", "wide", "json", "name", "yaml"]),
        help="Output format, of the VMs that are apart. wide is the table with nodes and age, name is "
        "virtualmachineinstance.kubevirt.io/NAME. yaml: the migrations that the program would create now, for kubectl "
        "create -f -, with comments that say why.",
    )
    now: bool = option(
        is_flag=True,
        help="Beside -o yaml: leave out the waits that end by themselves, and how many at one time.",
    )

    @property
    def policy(self) -> Policy | None:
        """The choices by which VMs ask; None for those of the webhook."""
        return policy_of(vars(self)) if self.opt_in_all else None

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        got = f"got --dry-run {self.dry_run}"
        if self.manifests and self.dry_run != "client":
            raise click.UsageError(f"{got} and --manifests {self.manifests}: expected a live cluster to write to")
        if self.output == "yaml" and self.dry_run != "client":
            raise click.UsageError(f"{got} and --output yaml: expected one of the two")
        if self.now and self.output != "yaml":
            raise click.UsageError("got --now: expected --output yaml beside it")
