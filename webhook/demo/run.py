"""The command demo: ask about all examples, and print the story for a terminal of 80 columns.

It has before, after, each scenario with its answer, and what to do next. Invariant: every node and sentence comes from
the example cluster or from an answer of the webhook.
"""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TextIO

from webhook.core.api.kubevirt import vm_name
from webhook.core.reasons import ANNOTATION_DECISION
from webhook.demo import exchange
from webhook.demo.exchange import Exchange
from webhook.invocation import LONGHORN_NAMESPACE
from webhook.objects.cluster import Cluster
from webhook.terminal import DIFF_COLOR, GREEN, RED, RESET, YELLOW, affinity_diff

_WIDTH: Final = 80
_SCENARIO_WIDTH: Final = 46
_BOLD: Final = "\x1b[1m"
_COLOR: Final = {"required": GREEN, "preferred": YELLOW}
_INTRODUCTION: Final = (
    "Longhorn serves a ReadWriteMany filesystem disk from one pod, the share-manager, over NFS. A VM on another node "
    "reaches its disk over the network."
)
_NEXT: Final = """
  Once: make venv && source .venv/bin/activate
    cluster={examples}/cluster
  This cluster has VMs that are together, apart, stuck and free:
    kubevirt-coschedule status -A --manifests $cluster
    kubevirt-coschedule reunite -A -o yaml --now --manifests $cluster
  What decides about the next start of db01:
    kubevirt-coschedule explain -f {examples}/virtual-machine.yaml \\
      --manifests $cluster
  The page, at http://127.0.0.1:8080 until Ctrl-C:
    kubevirt-coschedule-certs issue --dir demo-tls
    kubevirt-coschedule serve --manifests $cluster \\
      --listen 127.0.0.1:9443 --health-listen 127.0.0.1:8080 \\
      --tls-cert-file demo-tls/tls.crt --tls-private-key-file demo-tls/tls.key
  In a cluster: docs/install has a page for each way to install it."""

_Paint = Callable[[str, str], str]


def run(out: TextIO, *, color: bool) -> int:
    """Run the demo. Returns 0 if every answer is the expected one, else 1. `color`: whether `out` takes ANSI colors.

    Raises:
        UserError: the examples can't be read, or no directory can be written.
    """
    examples = examples_directory()
    cluster = Cluster.load(examples / "cluster", longhorn_namespace=LONGHORN_NAMESPACE)
    exchanges = asyncio.run(exchange.ask_all(examples, cluster, *exchange.trust()))
    titles = {f"VM {vm_name(pod)}": pod.spec.node_name for pod in cluster.all_virt_launchers() if pod.spec.node_name}

    def paint(text: str, code: str) -> str:
        return f"{code}{text}{RESET}" if color and code else text

    first = exchanges[0]
    story = [
        *textwrap.wrap(_INTRODUCTION, _WIDTH),
        *_before_and_after(first, titles.get(first.title) or "another node", paint),
        *_scenarios(exchanges, paint),
        *_change(first, paint),
        _head("WHAT TO DO NEXT", paint) + _NEXT.format(examples=_shown(examples)),
    ]
    print(*story, sep="\n", file=out)
    return 1 if any(each.flaw() for each in exchanges) else 0


def examples_directory() -> Path:
    """Return manifests/examples of the checkout, or the copy in an installed distribution."""
    checkout = Path(__file__).parents[2] / "manifests" / "examples"
    return checkout if checkout.is_dir() else Path(sys.prefix) / "share" / "kubevirt-coschedule" / "examples"


def _shown(directory: Path) -> Path:
    """The directory as seen from where the user is, if it is below."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _before_and_after(exchange: Exchange, node: str, paint: _Paint) -> Iterator[str]:
    after = ", ".join(exchange.got["nodes"]) or "no node"
    yield _head("BEFORE: the VM runs where kube-scheduler put it", paint)
    network = paint("<==== network: every block ====>", RED)
    yield f"  {node}: {exchange.title}  {network}  {after}: its share-manager"
    yield _head("AFTER: the VM restarts, and the webhook answers for its new pod", paint)
    yield f"  {after}: {exchange.title}  {paint('<= no network =>', GREEN)}  {after}: its share-manager"


def _scenarios(exchanges: Sequence[Exchange], paint: _Paint) -> Iterator[str]:
    yield _head(f"SCENARIOS: {len(exchanges)} pods, sent over TLS as the API server sends them", paint)
    for number, each in enumerate(exchanges, start=1):
        got, because = each.got, each.response.get("auditAnnotations", {}).get("because", "no reason")
        title, decision = paint(f"{each.scenario:{_SCENARIO_WIDTH}}", _BOLD), str(got["decision"])
        yield f"{number:2}  {title}  {paint(decision, _COLOR.get(decision, ''))} {', '.join(got['nodes'])}".rstrip()
        yield _wrapped(f"{each.title}: {because}")
        if flaw := each.flaw():
            yield paint(f"    WRONG {each.name}: {flaw}", RED)
    wrong = sum(each.flaw() is not None for each in exchanges)
    counted = f"{len(exchanges) - wrong} of {len(exchanges)} answers over TLS are as expected."
    yield f"\n{paint(counted, RED if wrong else GREEN)}"


def _change(exchange: Exchange, paint: _Paint) -> Iterator[str]:
    before, after = exchange.review["request"]["object"], exchange.patched
    yield _head(f"WHAT THE WEBHOOK WROTE into the pod of {exchange.title}", paint)
    for line in affinity_diff(before["spec"].get("affinity"), after["spec"].get("affinity")):
        yield f"  {paint(line, DIFF_COLOR.get(line[:1], ''))}"
    yield f"\n  {ANNOTATION_DECISION}, as kubectl describe pod shows it:"
    yield _wrapped(after["metadata"]["annotations"].get(ANNOTATION_DECISION, "-"))


def _head(text: str, paint: _Paint) -> str:
    return f"\n{paint(text, _BOLD)}\n"


def _wrapped(text: str) -> str:
    indent = "    "
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
