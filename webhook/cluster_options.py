"""Options that several commands share: which cluster they read, and how it is judged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from webhook.component_base.errors import BadSettings
from webhook.component_base.options import FILE, NAMESPACE, ClusterSettings, OneOf, Parsed, option

if TYPE_CHECKING:
    from webhook.core.scheduler.matching.label_selector import Selector

ENVIRONMENT_PREFIX: Final = "KUBEVIRT_COSCHEDULE_"


def selector(text: str) -> Selector:
    """The selector of labels that the user typed.

    Raises:
        ValueError: says what was expected.
    """
    from webhook.label_query import parse_query  # noqa: PLC0415 - the rules are not for help and completion

    return parse_query(text)


def manifests_option() -> Any:
    """Declare `manifests`."""
    return option(
        metavar="DIR",
        type=FILE,
        help="File, or directory of .yaml, .yml and .json files, in place of a live cluster: one that `bundle` wrote, "
        "or nodes, claims, volumes, ShareManagers, VolumeAttachments, pods and CSINodes.",
    )


def opt_in_all_option() -> Any:
    """Declare `opt_in_all` of a program that decides: the cluster's choice."""
    return option(
        default="off",
        type=OneOf("off", "true", "required", "preferred"),
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
class DecisionSettings(LonghornSettings):
    """How the webhook decides."""

    mode: Literal["required", "preferred", "off"] = option(
        default="required",
        type=OneOf("required", "preferred", "off"),
        help="Mode of a VM whose annotation, or whose Namespace's label, is true: required, preferred or off. A VM "
        "that asks for required or preferred gets that mode.",
    )
    shortlist: Literal["auto", "off"] = option(
        default="auto",
        type=OneOf("auto", "off"),
        help="Whether a preference among more than 100 nodes comes with a short list of required nodes: auto or off. "
        "An autoscaler makes no node for a pod with such a list. auto: no list beside Karpenter and "
        "cluster-autoscaler. Beside another autoscaler choose off.",
    )
    manifests: Path | None = manifests_option()


@dataclass(frozen=True, kw_only=True)
class VMListSettings(LonghornSettings):
    """Which VMs of which cluster a command lists. `names`: none for all of them.

    Raises:
        BadSettings: two options that exclude each other.
    """

    names: tuple[str, ...] = option(
        is_argument=True, nargs=-1, metavar="[VM ...]", help="Names of VMs. Without one: all VMs."
    )
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
    manifests: Path | None = manifests_option()

    def __post_init__(self) -> None:
        """Report all contradictions at once."""
        problems = [f"got {flags}: expected one of the two" for flags, given in self.contradictions() if given]
        problems += two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)

    def contradictions(self) -> list[tuple[str, object]]:
        """Return the options that exclude each other, and whether both were given."""
        return [
            ("--all-namespaces and --namespace", self.all_namespaces and self.namespace),
            ("--selector and names of VMs", self.selector and self.names),
        ]


_TYPED: Final = re.compile(r"(vmi?s?|virtualmachine(instance)?s?)(\.(v1\.)?kubevirt\.io)?/", re.IGNORECASE)


def vm_names(words: Iterable[str]) -> tuple[str, ...]:
    """Return the names of VMs, each once. `vm/NAME` and what `-o name` prints are taken, because kubectl takes them.

    Raises:
        BadSettings: words that can't be the names of VMs.
    """
    words = list(words)
    wrong = [word for word in words if "/" in _TYPED.sub("", word, 1)]
    if wrong:
        raise BadSettings(*(f"got {word!r}: expected the name of a VM, or vm/NAME" for word in wrong))
    return tuple(dict.fromkeys(_TYPED.sub("", word, 1) if _TYPED.match(word) else word for word in words))


def opt_in_all_unknown(problem: str) -> str:
    """Return what is not known to a user who may not read whether the cluster opts in all VMs."""
    return f"whether the cluster opts in all VMs: {problem}"


def two_clusters(manifests: Path | None, kubeconfig: Path | None, context: str | None) -> list[str]:
    """A problem for each option that names a live cluster, where the manifests describe another one."""
    return [
        f"got {flag} {value} and --manifests {manifests}: expected a live cluster or one in files, not both"
        for flag, value in (("--kubeconfig", kubeconfig), ("--context", context))
        if manifests and value is not None
    ]
