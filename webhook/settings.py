"""Settings: the tables of options, and what a subcommand runs with.

The tables are what the parser, the help and the README are made from. Settings are frozen: a change of settings is a
restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from webhook.core.opt_in import Mode
from webhook.core.scheduler.state import node_info
from webhook.options import Address, BadSettings, Option, address, count, name, on_or_off, one_of, seconds, yes_or_no


def _mode(text: str) -> Mode:
    return Mode(one_of(*Mode)(text))


_MANIFESTS: Final = Option(
    flag="--manifests",
    placeholder="DIR",
    optional=True,
    parse=Path,
    help="Instead of a live cluster: file, or directory of .yaml, .yml and .json files, that describes it: nodes, "
    "claims, volumes, ShareManagers, VolumeAttachments, pods, CSINodes. Other kinds are ignored.",
)
_KUBECONFIG: Final = Option(
    flag="--kubeconfig",
    placeholder="FILE",
    optional=True,
    parse=Path,
    help="kubeconfig of the cluster to read. Without it: the service account where this runs in a pod, else "
    "$KUBECONFIG, else ~/.kube/config.",
)
_CONTEXT: Final = Option(
    flag="--context",
    placeholder="NAME",
    optional=True,
    parse=name,
    help="Context of the kubeconfig; without it the current one.",
)
_MODE: Final = Option(
    flag="--mode",
    placeholder="MODE",
    default="required",
    parse=_mode,
    help='What kubevirt-scheduler/co-schedule: "true" stands for: required, preferred or off. A VM that names '
    "required or preferred itself gets that.",
)


def _headroom(text: str) -> Mapping[str, int]:
    """RESOURCE=QUANTITY,... to resource -> milli-CPU or whole units.

    Raises:
        ValueError: says what was expected.
    """
    expected = "expected RESOURCE=QUANTITY,... such as cpu=500m,memory=2Gi,pods=5"
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if any(not (name and equals and quantity) for name, equals, quantity in pairs):
        raise ValueError(expected)
    kept = node_info.allocatable({name: quantity for name, _, quantity in pairs})
    odd = next((name for name, _, quantity in pairs if name not in kept and quantity != "0"), None)
    if odd is not None:
        raise ValueError(f"{expected}; {odd} is no resource that the scheduler counts, or its quantity can't be read")
    return kept


_WATCH_PODS: Final = Option(
    flag="--watch-pods",
    placeholder="WHICH",
    default="all",
    parse=one_of("all", "virt-launcher", "none"),
    help="Pods that are watched, cluster-wide. all: a VM is pinned hard only where it fits beside those that are "
    "there. virt-launcher: room is not looked at. none: no share-manager pod is steered to its VM, either.",
)
_HEADROOM: Final = Option(
    flag="--headroom",
    placeholder="RESOURCES",
    default="",
    parse=_headroom,
    help="What has to stay free on a node that a VM is pinned to, as RESOURCE=QUANTITY,...: cpu=500m,memory=2Gi. "
    "Without it a VM may take the last of it.",
)
_LONGHORN_NAMESPACE: Final = Option(
    flag="--longhorn-namespace",
    placeholder="NAMESPACE",
    default="longhorn-system",
    parse=name,
    help="Namespace of Longhorn's own objects.",
)

SERVE: Final = (
    Option(
        flag="--tls-cert-file",
        placeholder="FILE",
        parse=Path,
        help="PEM file with the serving certificate, and after it the certificates of its issuers.",
    ),
    Option(
        flag="--tls-private-key-file",
        placeholder="FILE",
        parse=Path,
        help="PEM file with the certificate's private key. Both files are looked at each second, and a new pair is "
        "served from then on. Where neither is there at the start, or a kubelet keeps them, a good pair is waited for.",
    ),
    Option(
        flag="--tls-server-name",
        placeholder="NAME",
        optional=True,
        parse=name,
        help="DNS name that the certificate must be for, such as kubevirt-coschedule.kubevirt-coschedule.svc; one for "
        "other names only is not served. Without it any name will do.",
    ),
    Option(
        flag="--tls-min-version",
        placeholder="VERSION",
        default="VersionTLS13",
        parse=one_of("VersionTLS12", "VersionTLS13"),
        help="Oldest TLS that callers may speak: VersionTLS12 or VersionTLS13.",
    ),
    Option(
        flag="--client-ca-file",
        placeholder="FILE",
        optional=True,
        parse=Path,
        help="PEM file with the authorities that issue callers' certificates, looked at each second too: whoever "
        "calls without one is refused. Without it anybody who can connect may call.",
    ),
    Option(
        flag="--client-name",
        placeholder="NAME",
        optional=True,
        parse=name,
        help="Common name, or DNS name, that a caller's certificate must have. Without it any name will do.",
    ),
    Option(
        flag="--listen",
        placeholder="ADDRESS",
        default=":9443",
        parse=address,
        help="Where the API server calls the webhook (TLS).",
    ),
    Option(
        flag="--health-listen",
        placeholder="ADDRESS",
        default=":8080",
        parse=address,
        help="Where /healthz, /readyz, /metrics and the page answer (plain HTTP).",
    ),
    Option(
        flag="--page",
        placeholder="ON_OR_OFF",
        default="on",
        parse=on_or_off,
        help="The page on that address, with the VMs and the last decisions: on or off. It shows names to whoever can "
        "connect.",
    ),
    Option(
        flag="--drain-seconds",
        placeholder="SECONDS",
        default="15",
        parse=seconds,
        help="After SIGTERM, how long connections are still accepted while /readyz says no, so that callers move "
        "elsewhere; with the 10 s for calls in flight it fits into the 30 s that Kubernetes gives a pod.",
    ),
    _MODE,
    _WATCH_PODS,
    _HEADROOM,
    Option(
        flag="--events",
        placeholder="ON_OR_OFF",
        default="off",
        parse=on_or_off,
        help="Events on the VirtualMachineInstance that tell what was decided for its pod: on or off. They take the "
        "right to create events, which manifests/components/events gives.",
    ),
    Option(
        flag="--log-format",
        placeholder="FORMAT",
        default="json",
        parse=one_of("json", "text"),
        help="Lines of the log: json, or text for people.",
    ),
    Option(
        flag="--log-level",
        placeholder="LEVEL",
        default="info",
        parse=one_of("debug", "info", "warning", "error"),
        help="The least that is logged: debug, info (with a line for each admission), warning or error.",
    ),
    Option(
        flag="--log-admissions-per-second",
        placeholder="NUMBER",
        default="100",
        parse=count,
        help="Admissions that get a line of their own in one second. What is beyond is one line, with how many there "
        "were of each decision and reason.",
    ),
    _LONGHORN_NAMESPACE,
    _KUBECONFIG,
    _CONTEXT,
    _MANIFESTS,
)

EXPLAIN: Final = (
    Option(
        flag="--filename",
        short="-f",
        placeholder="FILE",
        optional=True,
        parse=name,
        help="Pod, VirtualMachine, VirtualMachineInstance or AdmissionReview to explain, YAML or JSON, one or several; "
        "- reads standard input.",
    ),
    Option(
        flag="--namespace",
        short="-n",
        placeholder="NAMESPACE",
        optional=True,
        parse=name,
        help="Namespace of the names, and of objects in FILE that state none. Without it: the context's, else default. "
        "Longhorn's volumes are looked up in its own.",
    ),
    _KUBECONFIG,
    _CONTEXT,
    _MANIFESTS,
    Option(
        flag="--output",
        short="-o",
        placeholder="FORMAT",
        default="text",
        parse=one_of("text", "yaml", "json"),
        help="Output format: text, yaml or json.",
    ),
    _MODE,
    _WATCH_PODS,
    _HEADROOM,
    _LONGHORN_NAMESPACE,
)

STATUS: Final = (
    Option(
        flag="--namespace",
        short="-n",
        placeholder="NAMESPACE",
        optional=True,
        parse=name,
        help="Namespace of the VMs. Without it: the context's, else default.",
    ),
    Option(
        flag="--all-namespaces",
        short="-A",
        placeholder="",
        default="false",
        switch=True,
        parse=yes_or_no,
        help="VMs of all namespaces.",
    ),
    Option(
        flag="--apart",
        placeholder="",
        default="false",
        switch=True,
        parse=yes_or_no,
        help="Show only VMs that are apart from a share-manager, or stuck; the summary and the exit code are of all.",
    ),
    Option(
        flag="--watch",
        short="-w",
        placeholder="",
        default="false",
        switch=True,
        parse=yes_or_no,
        help="Go on until interrupted: in a terminal the table is kept up to date, elsewhere each change is a line.",
    ),
    Option(
        flag="--plan",
        placeholder="",
        default="false",
        switch=True,
        parse=yes_or_no,
        help="Print what would bring each VM that is apart together again, for kubectl create -f -; it makes nothing.",
    ),
    Option(
        flag="--output",
        short="-o",
        placeholder="FORMAT",
        default="table",
        parse=one_of("table", "wide", "json", "yaml"),
        help="Output format: table, wide, json or yaml.",
    ),
    _KUBECONFIG,
    _CONTEXT,
    _MANIFESTS,
    _LONGHORN_NAMESPACE,
)


class ServeSettings(Struct, frozen=True, kw_only=True):
    """What `serve` runs with; with `manifests` nothing of a live cluster is read.

    Raises:
        BadSettings: two clusters at once, or a name of callers and nobody who vouches for it.
    """

    tls_cert_file: Path
    tls_private_key_file: Path
    tls_server_name: str | None
    tls_min_version: Literal["VersionTLS12", "VersionTLS13"]
    client_ca_file: Path | None
    client_name: str | None
    listen: Address
    health_listen: Address
    page: bool
    drain_seconds: float
    mode: Mode
    watch_pods: Literal["all", "virt-launcher", "none"]
    headroom: Mapping[str, int]
    events: bool
    log_format: Literal["json", "text"]
    log_level: Literal["debug", "info", "warning", "error"]
    log_admissions_per_second: int
    longhorn_namespace: str
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        problems = _two_clusters(self.manifests, self.kubeconfig, self.context)
        if self.events and self.manifests:
            problems.append(f"got --events on and --manifests {self.manifests}: expected a live cluster to tell")
        if self.client_name is not None and self.client_ca_file is None:
            # A name is read from a certificate that somebody must have verified.
            problems.append(
                f"got --client-name {self.client_name} without --client-ca-file: expected the authority behind it"
            )
        if problems:
            raise BadSettings(*problems)


class ExplainSettings(Struct, frozen=True, kw_only=True):
    """What `explain` runs with: `names` of objects in the live cluster, or else a file of them.

    Raises:
        BadSettings: both or neither of these, or two clusters at once.
    """

    names: tuple[str, ...]
    filename: str | None
    manifests: Path | None
    kubeconfig: Path | None
    context: str | None
    namespace: str | None
    output: Literal["text", "yaml", "json"]
    mode: Mode
    watch_pods: Literal["all", "virt-launcher", "none"]
    headroom: Mapping[str, int]
    longhorn_namespace: str

    @property
    def guard(self) -> Mapping[str, int] | None:
        """The headroom that nodes are judged with; None where a server with these settings does not look at room."""
        return self.headroom if self.watch_pods == "all" else None

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        problems = []
        if not self.names and not self.filename:
            problems.append("nothing to explain: expected TYPE/NAME, such as vm/db01, or --filename FILE")
        if self.names and self.filename:
            problems.append(
                f"got {' '.join(self.names)} and --filename {self.filename}: expected names or a file, not both"
            )
        if self.names and self.manifests:
            problems.append(
                f"got {' '.join(self.names)} and --manifests: names are of a live cluster; leave "
                "--manifests out, or give the object with --filename FILE"
            )
        problems += _two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)


class StatusSettings(Struct, frozen=True, kw_only=True):
    """What `status` runs with: `names` of VMs, none for all of them.

    Raises:
        BadSettings: two of these that can't be had at once, or a name that is none.
    """

    names: tuple[str, ...]
    namespace: str | None
    all_namespaces: bool
    apart: bool
    watch: bool
    plan: bool
    output: Literal["table", "wide", "json", "yaml"]
    kubeconfig: Path | None
    context: str | None
    manifests: Path | None
    longhorn_namespace: str

    def __post_init__(self) -> None:
        """Say every contradiction at once."""
        both = (
            ("--all-namespaces and --namespace", self.all_namespaces and self.namespace),
            ("--all-namespaces and names of VMs", self.all_namespaces and self.names),
            ("--plan and --watch", self.plan and self.watch),
            ("--plan and --output", self.plan and self.output != "table"),
            ("--plan and --manifests", self.plan and self.manifests),
            ("--watch and --manifests", self.watch and self.manifests),
        )
        problems = [f"got {flags}: expected one of the two" for flags, given in both if given]
        problems += _two_clusters(self.manifests, self.kubeconfig, self.context)
        if problems:
            raise BadSettings(*problems)


def _two_clusters(manifests: Path | None, kubeconfig: Path | None, context: str | None) -> list[str]:
    return [
        f"got {flag} {value} and --manifests {manifests}: expected a live cluster or one in files, not both"
        for flag, value in (("--kubeconfig", kubeconfig), ("--context", context))
        if manifests and value is not None
    ]
