"""An Explanation as text for a terminal: sections with aligned columns as in `kubectl describe`, then a diff.

Invariant: everything shown is in the Explanation. Names come from files, so control characters are shown as escapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from webhook.core.admit import Entry
from webhook.core.opt_in import Mode, OptedInBy
from webhook.core.reasons import ANNOTATION_CO_SCHEDULE, ANNOTATION_DECISION, LABEL_CO_SCHEDULE
from webhook.explain.chain.claim_chain import ClaimChain
from webhook.explain.chain.evidence import NodeEvidence
from webhook.explain.chain.volume_chain import VolumeChain
from webhook.explain.explanation import Explanation, VMNow
from webhook.explain.render import links
from webhook.explain.render.folded import folded
from webhook.terminal import DIFF_COLOR, GREEN, RESET, YELLOW, affinity_diff, columns, printable

MAX_NODES_LISTED: Final = 40
"""A table has at most so many nodes, because a screen has about 40 lines. Other nodes are counted by reason."""

_INDENT: Final = "  "
_OUTCOME_COLOR: Final = {Mode.REQUIRED.value: GREEN, Mode.PREFERRED.value: YELLOW}
_LINK_WIDTH: Final = len("PersistentVolumeClaim")  # the longest title: it aligns the objects of all claims
_OUTCOME: Final = "Outcome:"


def render_explanation(explained: Explanation, *, color: bool) -> str:
    """Return the text of one explanation, with a line break at the end. `color`: with ANSI colors."""
    outcome = {_OUTCOME: _OUTCOME_COLOR.get(explained.decision, "")} if color else {}
    diff = DIFF_COLOR if color else {}
    lines = [
        *map(printable, _header(explained)),
        *(_section(_counted("Pods now", explained.running), _running(explained)) if explained.running else ()),
        *(_section("VM now", _now(explained.now)) if explained.now else ()),
        *(_section("Opt-in", _opt_in(explained)) if _is_virt_launcher(explained) else ()),
        *(_evidence_sections(explained) if _has_evidence(explained) else ()),
        *_section("Decision", _decision(explained), outcome),
        *_section("Affinity", _affinity(explained), diff),
    ]
    return "".join(f"{line}\n" for line in lines)


def _header(explained: Explanation) -> Iterator[str]:
    subject = explained.object
    yield f"{subject.kind} {subject.namespace}/{subject.name} ({subject.source})"
    yield f"{_INDENT}Cluster: {explained.cluster}"
    for hint in explained.hints:
        yield f"{_INDENT}Hint: {hint}"
    for note in explained.notes:
        yield f"{_INDENT}Note: {note}"


def _section(title: str, lines: Iterable[str], colors: Mapping[str, str] | None = None) -> Iterator[str]:
    """A title and its lines. A line that starts with a key of `colors` gets that color."""
    yield ""
    yield f"{title}:"
    for line in map(printable, lines):
        color = next((color for start, color in (colors or {}).items() if line.startswith(start)), "")
        yield f"{_INDENT}{color}{line}{RESET if color else ''}"


def _running(explained: Explanation) -> list[str]:
    rows = [
        (pod.name, pod.phase or "-", pod.node or "-", pod.decision or f"no annotation {ANNOTATION_DECISION}")
        for pod in explained.running
    ]
    return columns([("POD", "PHASE", "NODE", "DECISION AT CREATION"), *rows])


def _now(now: VMNow) -> list[str]:
    rows = [("State:", now.state.value), ("Since:", now.since or "-"), ("Because:", f"{now.reason}: {now.because}")]
    return columns([*rows, ("To do:", now.remedy)] if now.remedy else rows)


def _counted(title: str, items: Sequence[object]) -> str:
    return f"{title} ({len(items)})" if items else title


def _is_virt_launcher(explained: Explanation) -> bool:
    """Whether the pod is a VM's. A share-manager pod has no opt-in of its own, because its VMs opt in."""
    return explained.entry != Entry.SHARE_MANAGER.title


def _has_evidence(explained: Explanation) -> bool:
    """Whether there is evidence: not for a request that creates no pod, and not for a pod without claims."""
    return bool(explained.opt_in.opted_in or explained.claims or explained.volume or explained.nodes)


def _evidence_sections(explained: Explanation) -> Iterator[str]:
    if explained.volume:
        yield from _section("Volume", _volume(explained.volume))
    else:
        yield from _section(_counted("Claims", explained.claims), _claims(explained))
    yield from _section(_counted("Nodes", explained.nodes), _nodes(explained))


def _opt_in(explained: Explanation) -> list[str]:
    opt_in = explained.opt_in
    besides = "; claims and nodes are shown for information only" if _has_evidence(explained) else ""
    annotation = "none" if opt_in.annotation is None else f'{ANNOTATION_CO_SCHEDULE}: "{opt_in.annotation}"'
    mode = opt_in.mode or f"none: the webhook leaves the pod unchanged{besides}"
    label = opt_in.namespace_label
    return columns(
        [
            ("Annotation:", annotation),
            *([] if label is None else [("Namespace's label:", f'{LABEL_CO_SCHEDULE}: "{label}"')]),
            ("Mode:", mode),
            *([] if opt_in.by in (None, OptedInBy.VM) else [("Opted in by:", str(opt_in.by))]),
            ("Cluster's mode:", opt_in.cluster_mode),
        ]
    )


def _claims(explained: Explanation) -> Iterator[str]:
    if not explained.claims:
        yield "none"
    for chain in explained.claims:
        yield chain.claim
        found = f"{chain.reason}: {chain.sentence.removeprefix(f'claim {chain.claim}: ')}"
        rows = [("->", what, value) for what, value in links.claim_links(chain)]
        yield from (f"{_INDENT}{line}" for line in columns([*rows, ("= ", _evidence(chain).ljust(_LINK_WIDTH), found)]))


def _volume(chain: VolumeChain) -> Iterator[str]:
    """The objects behind a volume, and the findings of core."""
    yield chain.volume
    rows = [("->", what, value) for what, value in links.volume_links(chain)]
    for found in chain.consumers:
        node = f"node {found.node}" if found.node else "no node"
        rows.append(("= ", node.ljust(_LINK_WIDTH), f"{found.reason}: {found.sentence}"))
    yield from (f"{_INDENT}{line}" for line in columns(rows))


def _evidence(chain: ClaimChain) -> str:
    if chain.node is None:
        return "no node"
    return f"node {chain.node}{'' if chain.firm else ' (a hint)'}"


def _nodes(explained: Explanation) -> Iterator[str]:
    if not explained.nodes:
        yield "none"
        return
    listed, others = list(explained.nodes), Counter[str]()
    if len(listed) > MAX_NODES_LISTED:
        listed = [node for node in explained.nodes if node.candidate][:MAX_NODES_LISTED]
        shown = {node.name for node in listed}
        others = Counter(node.reason for node in explained.nodes if node.name not in shown)
    if listed:
        yield from columns([("NODE", "CANDIDATE", "FEASIBLE", "REASON"), *map(_node_row, listed)])
    if others:
        yield "others, by reason:" if listed else "no candidate; by reason:"
        yield from columns([(f"{count:>6}", reason) for reason, count in others.most_common()])


def _node_row(node: NodeEvidence) -> tuple[str, str, str, str]:
    candidate, feasible = ("yes" if node.candidate else "-"), ("yes" if node.feasible else "no")
    return node.name, candidate, feasible, node.reason if node.feasible else f"{node.reason}: {node.sentence}"


def _decision(explained: Explanation) -> list[str]:
    nodes = explained.required or [term.node for term in explained.preferred]
    where = f" on {', '.join(nodes)}" if nodes else ""
    is_preference = explained.preferred and not explained.required and _is_virt_launcher(explained)
    because = "Not required:" if is_preference else "Because:"
    rows = [(_OUTCOME, f"{explained.decision}{where}"), (because, f"{explained.reason}: {explained.sentence}")]
    if explained.preferred:
        rows.append(("Preferred:", ", ".join(f"{term.node} (weight {term.weight})" for term in explained.preferred)))
    if explained.shortlist:
        shortlist = f"any of {len(explained.shortlist)} nodes, so that kube-scheduler scores each of them"
        rows.append(("Short list:", f"{shortlist} (-o json lists them; the webhook can choose others)"))
    if explained.followers:
        volumes = ", ".join(explained.followers)
        rows.append(
            ("Afterwards:", f"when this pod has a node, the webhook steers the share-manager pod of {volumes} to it")
        )
    if explained.annotation is not None:
        rows.append(("Annotation:", f"{ANNOTATION_DECISION}: {explained.annotation}"))
    return columns(rows)


def _affinity(explained: Explanation) -> Iterator[str]:
    before = explained.affinity.before
    after, sentences = folded(before, explained.affinity.after, shortlisted=bool(explained.shortlist))
    yield from affinity_diff(before, after)
    yield from sentences
