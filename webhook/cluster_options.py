"""Options that several commands share: which cluster they read, and how it is judged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.component_base.options import FILE, NAMESPACE, ClusterSettings, Parsed, argument, option

if TYPE_CHECKING:
    from webhook.core.scheduler.matching.label_selector import Selector

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE"


def selector(text: str) -> Selector:
    """The selector of labels that the user typed.

    Raises:
        ValueError: says what was expected.
    """
    from webhook.label_query import parse_query  # noqa: PLC0415 - the rules are not for help and completion

    return parse_query(text)


def opt_in_all_option() -> Any:
    """Declare `opt_in_all` of a program that decides: the cluster's choice."""
    return option(
        default="off",
        type=click.Choice(["off", "true", "required", "preferred"]),
        help="Opts in every VM without the annotation kubevirt-scheduler/co-schedule whose Namespace has no such label "
        "either: off, true (with --mode), required or preferred. The API server sends the pods of these VMs only with "
        "manifests/components/opt-in-all, which sets this option.",
    )


@dataclass(frozen=True, kw_only=True)
class LonghornSettings(ClusterSettings):
    """Which live cluster a command asks, and where Longhorn is in it."""

    longhorn_namespace: str = option(
        default="longhorn-system", type=NAMESPACE, help="Namespace of Longhorn's own objects."
    )


@dataclass(frozen=True, kw_only=True)
class AnyClusterSettings(LonghornSettings):
    """Which cluster a command reads: a live one, or one that files describe.

    Raises:
        UsageError: both.
    """

    manifests: Path | None = option(
        metavar="DIR",
        type=FILE,
        help="File, or directory of .yaml, .yml and .json files, in place of a live cluster: one that `bundle` wrote, "
        "or nodes, claims, volumes, ShareManagers, VolumeAttachments, pods and CSINodes.",
    )

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        for flag, value in (("--kubeconfig", self.kubeconfig), ("--context", self.context)):
            if self.manifests and value is not None:
                got = f"got {flag} {value} and --manifests {self.manifests}"
                raise click.UsageError(f"{got}: expected a live cluster or one in files, not both")


@dataclass(frozen=True, kw_only=True)
class VMListSettings(AnyClusterSettings):
    """Which VMs of which cluster a command lists. `names`: none for all of them.

    Raises:
        UsageError: two options that exclude each other.
    """

    names: tuple[str, ...] = argument(nargs=-1, metavar="[VM ...]", help="Names of VMs. Without one: all VMs.")
    namespace: str | None = option(
        "-n",
        type=NAMESPACE,
        help="Namespace of the VMs. Without this option: the namespace of the kubeconfig's context, else default.",
    )
    all_namespaces: bool = option("-A", is_flag=True, help="Show the VMs of all namespaces.")
    selector: Selector | None = option(
        "-l",
        type=Parsed("SELECTOR", selector),
        help="Show only VMs whose pods have these labels, as kubectl takes a label selector: app=db,tier!=test.",
    )
    no_headers: bool = option(is_flag=True, help="Print the table without the line of its column names.")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        if self.all_namespaces and self.namespace:
            raise click.UsageError("got --all-namespaces and --namespace: expected one of the two")
        if self.selector and self.names:
            raise click.UsageError("got --selector and names of VMs: expected one of the two")


_TYPED: Final = re.compile(r"(vmi?s?|virtualmachine(instance)?s?)(\.(v1\.)?kubevirt\.io)?/", re.IGNORECASE)


def vm_names(words: Iterable[str]) -> tuple[str, ...]:
    """Return the names of VMs, each once. `vm/NAME` and what `-o name` prints are taken, because kubectl takes them.

    Raises:
        UsageError: words that can't be the names of VMs.
    """
    names = [_TYPED.sub("", word, count=1) if _TYPED.match(word) else word for word in words]
    for name in names:
        if "/" in name:
            raise click.UsageError(f"got {name!r}: expected the name of a VM, or vm/NAME")
    return tuple(dict.fromkeys(names))


def opt_in_all_unknown(problem: str) -> str:
    """Return what is not known to a user who may not read whether the cluster opts in all VMs."""
    return f"whether the cluster opts in all VMs: {problem}"
