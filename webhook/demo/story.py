"""The demo as text for a terminal of 80 columns: before, after, each scenario with its answer, and what to do next.

Invariant: every node and sentence comes from the example cluster or from an answer of the webhook.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from webhook.core.reasons import ANNOTATION_DECISION
from webhook.demo.exchange import Exchange
from webhook.terminal import DIFF_COLOR, GREEN, RED, RESET, YELLOW, affinity_diff

_WIDTH: Final = 80
_BOLD: Final = "\x1b[1m"
_COLOR: Final[Mapping[str | None, str]] = {"required": GREEN, "preferred": YELLOW}
_SCENARIO_WIDTH: Final = 46
_INTRODUCTION: Final = (
    "Longhorn serves a ReadWriteMany filesystem disk from one pod, the share-manager, over NFS. A VM on another node "
    "reaches its disk over the network."
)
_PROGRAM: Final = "kubevirt-coschedule"


class Story:
    """Writes the parts of the demo. `color`: whether the terminal takes ANSI colors."""

    def __init__(self, *, color: bool) -> None:
        self._color = color

    def lines(self, exchanges: Sequence[Exchange], before: Mapping[str, str], examples: Path) -> Iterator[str]:
        """Return the story.

        Args:
            exchanges: the reviews and their answers; the first is of the VM of the introduction.
            before: the node on which each VM of the cluster runs, by its title.
            examples: the directory of the examples, for the commands.
        """
        yield from textwrap.wrap(_INTRODUCTION, _WIDTH)
        yield from self._before_and_after(exchanges[0], before.get(exchanges[0].title))
        yield from self._scenarios(exchanges)
        yield from self._change(exchanges[0])
        yield from self._next(examples)

    def _before_and_after(self, exchange: Exchange, node: str | None) -> Iterator[str]:
        after = ", ".join(exchange.got["nodes"]) or "no node"
        vm = f"{node or 'another node'}: {exchange.title}"
        yield from self._head("BEFORE: the VM runs where kube-scheduler put it")
        yield f"  {vm}  {self._painted('<==== network: every block ====>', RED)}  {after}: its share-manager"
        yield from self._head("AFTER: the VM restarts, and the webhook answers for its new pod")
        here = self._painted("<= no network =>", GREEN)
        yield f"  {after}: {exchange.title}  {here}  {after}: its share-manager"

    def _scenarios(self, exchanges: Sequence[Exchange]) -> Iterator[str]:
        yield from self._head(f"SCENARIOS: {len(exchanges)} pods, sent over TLS as the API server sends them")
        for number, exchange in enumerate(exchanges, start=1):
            yield from self._scenario(number, exchange)
        wrong = sum(exchange.flaw() is not None for exchange in exchanges)
        counted = f"{len(exchanges) - wrong} of {len(exchanges)} answers over TLS are as expected."
        yield f"\n{self._painted(counted, RED if wrong else GREEN)}"

    def _scenario(self, number: int, exchange: Exchange) -> Iterator[str]:
        got, because = exchange.got, exchange.response.get("auditAnnotations", {}).get("because", "no reason")
        nodes = f" {', '.join(got['nodes'])}" if got["nodes"] else ""
        title = self._painted(f"{exchange.scenario:{_SCENARIO_WIDTH}}", _BOLD)
        yield f"{number:2}  {title}  {self._painted(str(got['decision']), _COLOR.get(got['decision'], ''))}{nodes}"
        yield from _wrapped(f"{exchange.title}: {because}", 4)
        if flaw := exchange.flaw():
            yield self._painted(f"    WRONG {exchange.name}: {flaw}", RED)

    def _change(self, exchange: Exchange) -> Iterator[str]:
        before, after = exchange.review["request"]["object"], exchange.patched
        yield from self._head(f"WHAT THE WEBHOOK WROTE into the pod of {exchange.title}")
        for line in affinity_diff(before["spec"].get("affinity"), after["spec"].get("affinity")):
            yield f"  {self._painted(line, DIFF_COLOR.get(line[:1], ''))}"
        yield f"\n  {ANNOTATION_DECISION}, as kubectl describe pod shows it:"
        yield from _wrapped(after["metadata"]["annotations"].get(ANNOTATION_DECISION, "-"), 4)

    def _next(self, examples: Path) -> Iterator[str]:
        yield from self._head("WHAT TO DO NEXT")
        for purpose, commands in next_commands(examples):
            yield f"  {purpose}"
            yield from (f"    {command}" for command in commands)
        yield "  In a cluster: docs/install has a page for each way to install it."

    def _head(self, text: str) -> Iterator[str]:
        yield ""
        yield self._painted(text, _BOLD)
        yield ""

    def _painted(self, text: str, color: str) -> str:
        return f"{color}{text}{RESET}" if self._color and color else text


def next_commands(examples: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Return what a reader can try, and its commands; a backslash at the end of a line continues the command."""
    yield "Once: make venv && source .venv/bin/activate", [f"cluster={examples / 'cluster'}"]
    yield (
        "This cluster has VMs that are together, apart, stuck and free:",
        [f"{_PROGRAM} status -A --manifests $cluster", f"{_PROGRAM} reunite -o yaml --now --manifests $cluster"],
    )
    yield (
        "What decides about the next start of db01:",
        [f"{_PROGRAM} explain -f {examples / 'virtual-machine.yaml'} \\", "  --manifests $cluster"],
    )
    yield (
        "The page, at http://127.0.0.1:8080 until Ctrl-C:",
        [
            f"{_PROGRAM}-certs issue --dir demo-tls",
            f"{_PROGRAM} serve --manifests $cluster \\",
            "  --listen 127.0.0.1:9443 --health-listen 127.0.0.1:8080 \\",
            "  --tls-cert-file demo-tls/tls.crt --tls-private-key-file demo-tls/tls.key",
        ],
    )


def _wrapped(text: str, indent: int) -> list[str]:
    blank = " " * indent
    return textwrap.wrap(
        text, _WIDTH, initial_indent=blank, subsequent_indent=blank, break_on_hyphens=False, break_long_words=False
    )
