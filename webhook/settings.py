"""What the commands run with: their options, and the values. `serve` and `reunite` have settings of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.component_base.options import FILE, NAME, ClusterSettings, Parsed, argument, option
from webhook.invocation import LONGHORN_NAMESPACE

if TYPE_CHECKING:
    from webhook.core.opt_in import Policy
    from webhook.core.scheduler.label_selector import Selector

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE"
OPT_IN_ALL: Final = click.Choice(["off", "true", "required", "preferred"])
_TYPED: Final = re.compile(r"(vmi?s?|virtualmachine(instance)?s?)(\.(v1\.)?kubevirt\.io)?/", re.IGNORECASE)


def selector(text: str) -> Selector:
    """The selector of labels that the user typed.

    Raises:
        ValueError: says what was expected.
    """
    from webhook.core.scheduler.label_selector import parse_query  # noqa: PLC0415 - the rules are not for help and completion

    return parse_query(text)


def policy_of(values: Mapping[str, Any]) -> Policy:
    """Return the operator's choices, of the values of `serve`'s options by name. An absent one is the default."""
    from webhook.core.opt_in import Mode, Policy  # noqa: PLC0415 - help and completion do without

    return Policy(
        Mode(values.get("mode", "required")),
        opt_in_all=values.get("opt_in_all", "off"),
        audit=values.get("audit") == "on",
        shortlist=values.get("shortlist") != "off",
    )


@dataclass(frozen=True, kw_only=True)
class LonghornSettings(ClusterSettings):
    """Which live cluster a command asks, and where Longhorn is in it."""

    longhorn_namespace: str = option(
        default=LONGHORN_NAMESPACE, metavar="NAMESPACE", type=NAME, help="Namespace of Longhorn's own objects."
    )


@dataclass(frozen=True, kw_only=True)
class AnyClusterSettings(LonghornSettings):
    """Which cluster a command reads: a live one, or one that files describe.

    Raises:
        UsageError: both.
    """

    manifests: Path | None = option(
        excludes=("kubeconfig", "context"),
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
class BundleSettings(LonghornSettings):
    """What `bundle` runs with."""

    file: Path = option(
        required=True,
        type=FILE,
        help="File to write. The program replaces an existing file only by a bundle in which everything could be read. "
        "- writes to standard output.",
    )


@dataclass(frozen=True, kw_only=True)
class ChosenVMSettings(AnyClusterSettings):
    """Which VMs of which cluster a command is about. `names`: none for all of them.

    Raises:
        UsageError: two options that exclude each other.
    """

    names: tuple[str, ...] = argument(nargs=-1, metavar="[VM ...]", help="Names of VMs. Without one: all VMs.")
    namespace: str | None = option(
        "-n",
        type=NAME,
        metavar="NAMESPACE",
        help="Namespace of the VMs. Without this option: the namespace of the kubeconfig's context, else default.",
    )
    all_namespaces: bool = option("-A", excludes=("namespace",), is_flag=True, help="The VMs of all namespaces.")
    selector: Selector | None = option(
        "-l",
        excludes=("names",),
        type=Parsed("SELECTOR", selector),
        help="Only VMs whose pods have these labels, as kubectl takes a label selector: app=db,tier!=test.",
    )

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        if self.all_namespaces and self.namespace:
            raise click.UsageError("got --all-namespaces and --namespace: expected one of the two")
        if self.selector and self.names:
            raise click.UsageError("got --selector and names of VMs: expected one of the two")

    def namespace_of(self, usual: str) -> str:
        """Return the namespace of the VMs, empty for all. `usual`: that of the kubeconfig's context."""
        return "" if self.all_namespaces else self.namespace or usual

    @property
    def whose(self) -> str:
        """The names or labels in words, after the word VM; empty for all VMs."""
        labels = ",".join(map(str, self.selector.requirements)) if self.selector else ""
        return " of these names" if self.names else f" with labels {labels}" if labels else ""


@dataclass(frozen=True, kw_only=True)
class ExplainSettings(ChosenVMSettings):
    """What `explain` runs with: `names` of objects in the cluster, VMs of all namespaces or labels, or a file.

    Raises:
        UsageError: a file beside another choice, no choice at all, or two options that exclude each other.
    """

    names: tuple[str, ...] = argument(
        nargs=-1,
        metavar="[VM | TYPE/NAME ...]",
        help="Objects of the cluster. TYPE is vm, vmi or pod; a name alone is that of a VM.",
    )
    filename: str | None = option(
        "-f",
        excludes=("names", "all_namespaces", "selector"),
        metavar="FILE",
        type=click.Path(readable=False),
        help="YAML or JSON file with one or several objects to explain: Pod, VirtualMachine, VirtualMachineInstance or "
        "AdmissionReview. - reads standard input.",
    )
    namespace: str | None = option(
        "-n",
        type=NAME,
        metavar="NAMESPACE",
        help="Namespace of the names, and of objects in FILE that state none. Without this option: the namespace of "
        "the kubeconfig's context, else default.",
    )
    output: str = option("-o", default="text", type=click.Choice(["text", "json"]), help="Output format.")

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        super().__post_init__()
        if bool(self.filename) == bool(self.names or self.chooses):
            got = "got objects of the cluster and --filename" if self.filename else "nothing to explain"
            expected = "a VM, TYPE/NAME, --all-namespaces, --selector, or else --filename FILE"
            raise click.UsageError(f"{got}: expected {expected}; a file of a whole cluster is for --manifests")

    @property
    def chooses(self) -> bool:
        """Whether VMs are chosen among those that are listed."""
        return self.all_namespaces or self.selector is not None


@dataclass(frozen=True, kw_only=True)
class VMListSettings(ChosenVMSettings):
    """Which VMs of which cluster a command lists, and how."""

    apart: bool = option(
        is_flag=True,
        help="Show only VMs that are apart from a share-manager, stuck or not running. The counts and the exit code "
        "are still of all VMs.",
    )
    no_headers: bool = option(is_flag=True, help="Print the table without the line of its column names.")


@dataclass(frozen=True, kw_only=True)
class StatusSettings(VMListSettings):
    """What `status` runs with."""

    output: str = option(
        "-o",
        default="table",
        type=click.Choice(["table", "wide", "json", "name"]),
        help="Output format. wide is the table with all evidence, name is virtualmachineinstance.kubevirt.io/NAME.",
    )


@dataclass(frozen=True, kw_only=True)
class CandidatesSettings(VMListSettings):
    """What `candidates` runs with."""

    output: str = option(
        "-o",
        default="table",
        type=click.Choice(["table", "wide", "commands", "json", "name"]),
        help="Output format. wide is the table with all evidence, name is virtualmachineinstance.kubevirt.io/NAME (for "
        "a stopped VM virtualmachine.kubevirt.io/NAME), commands are the lines that opt VMs in.",
    )


def namespace_in_words(namespace: str) -> str:
    """Return where the VMs are that a command is about; `namespace` is empty for all."""
    return f"namespace {namespace}" if namespace else "any namespace"


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
